"""Applying what other devices wrote: page by page, each in one transaction with the cursor behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scrubjay.store.replication_state import Lane
from scrubjay.store.transaction import Transaction
from scrubjay_shared import ops
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.errors import (
    CorruptError,
    MalformedError,
)
from scrubjay_shared.parts import joined
from scrubjay_sync.engine import checkpoints, outbox, validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED
from scrubjay_sync.engine.results import Tally
from scrubjay_sync.packing import Opened
from scrubjay_sync.planning import LaneId


async def receive_objects(context: Context, objects: Sequence[Envelope], tally: Tally, *, cursor: str | None) -> None:
    """Check and open some objects, and apply what holds, together with the cursor behind them."""
    if any(context.ahead_of_log(envelope) for envelope in objects):
        await context.member.refresh(context.cloud)
    lanes = await context.store.read(lambda q: q.replication.lanes())
    groups: dict[LaneId, list[Envelope]] = {}
    for envelope in objects:
        groups.setdefault(envelope.lane, []).append(envelope)
    accepted: list[tuple[Lane, list[Opened]]] = []
    for lane_id, group in groups.items():
        scope, device = lane_id
        if not context.reads(scope):
            continue
        lane = lanes.get(lane_id) or context.empty_lane(scope, device)
        run = [one for one in group if one.header.n_to <= context.counts_to(scope, device)]
        if not run:
            continue
        try:
            if device == context.device:
                await validation.check_own(context, lane, run)
                continue
            opened = await validation.check_new(context, lane, run, tally)
        except REFUSED as error:
            await context.refuse(tally, lane_id, error)
            continue
        if opened:
            accepted.append((lane, opened))
    await apply_objects(context, accepted, tally, cursor=cursor)


async def apply_objects(
    context: Context,
    accepted: Sequence[tuple[Lane, Sequence[Opened]]],
    tally: Tally,
    *,
    cursor: str | None,
    down: bool = False,
) -> None:
    """Write opened objects and what follows from them, in one transaction. `down`: below what we hold."""

    def work(tx: Transaction) -> list[tuple[int, int, int, bool]]:
        told = []
        for lane, found in accepted:
            told.append(_receive(context, tx, lane, found))
            outbox.keep_objects(tx, found)
            first, last = found[0].envelope, found[-1].envelope
            if down:
                changed = replace(lane, low=first.header.n_from, low_prev=first.header.prev)
            else:
                n, tip = last.header.n_to, last.end
                changed = replace(lane, n=n, tip=tip, hw_n=n, hw_tip=tip)
            tx.replication.put_lane(changed)
        if cursor is not None:
            tx.replication.set_state(cursor=cursor)
        return told

    for applied, conflicts, quarantined, erased in await context.store.write(work):
        tally.ops_received += applied
        tally.conflicts += conflicts
        tally.quarantined += quarantined
        tally.erased |= erased
    for lane, found in accepted:
        for one in found:
            if one.checkpoint is not None:
                await checkpoints.compare(context, lane.device, one.checkpoint, tally)


def _receive(context: Context, tx: Transaction, lane: Lane, found: Sequence[Opened]) -> tuple[int, int, int, bool]:
    device = lane.device.hex()
    entries = [entry for one in found for entry in one.entries]
    for one in found:
        if one.part is not None:
            seq, number, count, data = one.part
            whole = tx.replication.keep_part(device, seq, place=number, parts=count, data=data)
            if whole is not None:
                entries.append((seq, _joined(whole)))
        if one.checkpoint is not None:
            tx.replication.saw(lane.device, one.checkpoint.at)
    if not entries:
        return 0, 0, 0, False
    if lane.scope != context.member.home:
        tx.replication.place({entity: lane.scope for seq, data in entries for entity in _entities(data, device, seq)})
    told = tx.ingest.receive(device, entries)
    return told.applied, told.conflicts, told.quarantined, told.erased


def _joined(pieces: bytes) -> bytes:
    """Return the op of all its parts. What does not join is returned as it is, and the store quarantines it."""
    try:
        return joined([pieces])
    except MalformedError:
        return pieces


def _entities(data: bytes | None, device: str, seq: int) -> tuple[str, ...]:
    """Return what an op is about, as far as it can be read here."""
    if data is None:
        return ()
    try:
        op = ops.decode(data, device=device, seq=seq)
    except CorruptError:
        return ()  # it is quarantined, and belongs to no scope
    return () if ops.problem(op) else (ops.owner_of(op) or ops.entity_of(op),)
