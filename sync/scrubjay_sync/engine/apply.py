"""Applying what other devices wrote: page by page, each in one transaction with the cursor behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from scrubjay.store import received
from scrubjay.store.op_ingest import Received
from scrubjay.store.received import Ready
from scrubjay.store.replication_state import Lane
from scrubjay.store.transaction import Transaction
from scrubjay_shared import ops
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.errors import (
    CorruptError,
    DeniedError,
    MalformedError,
)
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.ops.schema import FIELDS
from scrubjay_shared.parts import joined
from scrubjay_shared.segment import Entry
from scrubjay_sync.confinement import about, confined, named_by
from scrubjay_sync.engine import checkpoints, outbox, validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED, subject
from scrubjay_sync.engine.results import Tally, UnfaithfulSnapshotError
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
    ready: Ready | None = None,
) -> None:
    """Write opened objects and what follows from them, in one transaction. `down`: below what we hold.

    `ready` are the ops of the objects, where they are of one lane, as they were made ready to be stored.
    """

    def work(tx: Transaction) -> list[_Told]:
        told = []
        for lane, found in accepted:
            told.append(_receive(context, tx, lane, found, ready))
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

    for (lane, _), told in zip(accepted, await context.store.write(work), strict=True):
        tally.ops_received += told.received.applied
        tally.conflicts += told.received.conflicts
        tally.quarantined += told.received.quarantined
        tally.erased |= told.received.erased
        if told.beyond:
            error = DeniedError(
                f"limited device {lane.device.hex()[:8]} wrote about what is not of its scope: {told.beyond} of its"
                " changes were not taken",
                hint="if it should not do that, scrubjay devices revoke shuts it out",
            )
            await context.alarm(tally, error, subject(lane.scope, lane.device), holds=False)
    for lane, found in accepted:
        for one in found:
            if one.checkpoint is not None:
                await checkpoints.compare(context, lane.device, one.checkpoint, tally)


class _Told(NamedTuple):
    """What the store took in of a lane, and how many ops were `beyond` what their device may write."""

    received: Received
    beyond: int = 0


def _receive(
    context: Context, tx: Transaction, lane: Lane, found: Sequence[Opened], ready: Ready | None = None
) -> _Told:
    device = lane.device.hex()
    entries = [entry for one in found for entry in one.entries]
    for one in found:
        if one.part is not None:
            seq, number, count, data = one.part
            whole = tx.replication.keep_part(device, seq, place=number, parts=count, data=data)
            if whole is not None:
                ready = None  # there is more now than was made ready
                entries.append((seq, _joined(whole)))
        if one.checkpoint is not None:
            tx.replication.saw(lane.device, one.checkpoint.at)
            read = {lane_id: n for lane_id, (n, _) in one.checkpoint.heads.items()}
            tx.receipts.keep(device, one.checkpoint.at, read)
    beyond = 0
    owner = context.member.state.device_of(lane.device)
    if owner is not None and not owner.full:
        before, ready = len(entries), None
        entries = _within_rights(context, tx, lane, entries, owner.id)
        beyond = before - len(entries)
    if not entries:
        return _Told(Received(), beyond)
    is_elsewhere = lane.scope != context.member.home
    if is_elsewhere or tx.queries.replication.places():
        spoken_of = {entity for seq, data in entries for entity in _entities(data, device, seq)}
        if owner is not None and owner.full:
            _take_back(context, tx, lane, {one for seq, data in entries for one in _made(data, device, seq)})
        if is_elsewhere:
            known = tx.queries.replication.lives(spoken_of, context.member.home)
            tx.replication.place({entity: lane.scope for entity in spoken_of if entity not in known})
    return _Told(_ingested(tx, device, entries, ready), beyond)


def _ingested(tx: Transaction, device: str, entries: Sequence[Entry], ready: Ready | None) -> Received:
    """Take in ops of a device. Raises UnfaithfulSnapshotError where a snapshot has said otherwise."""
    if tx.queries.snapshots.unconfirmed(device):
        ready = received.ready(device, sorted(dict(entries).items())) if ready is None else ready
        if not tx.unconfirmed.confirm(ready):
            raise UnfaithfulSnapshotError
    return tx.ingest.receive(device, entries) if ready is None else tx.ingest.receive_ready(ready)


def _within_rights(
    context: Context, tx: Transaction, lane: Lane, entries: Sequence[Entry], owner: bytes
) -> list[Entry]:
    """Return the ops of a limited device that it may write: about new things, and those of its lane's scope."""
    device, by = lane.device.hex(), context.outsider(lane.scope, owner)
    allowed: list[tuple[int, bytes | None, frozenset[str]]] = []
    for seq, data in entries:
        if data is None:
            allowed.append((seq, None, frozenset()))
        elif (kept := confined(data, device=device, seq=seq, by=by)) is not None:
            named = named_by(kept, device=device, seq=seq) | {about(kept, device=device, seq=seq)}
            allowed.append((seq, kept, named))
    where = tx.queries.replication.lives({one for _, _, named in allowed for one in named}, context.member.home)
    return [
        (seq, data)
        for seq, data, named in allowed
        if all(where.get(entity, lane.scope) == lane.scope for entity in named)
    ]


def _take_back(context: Context, tx: Transaction, lane: Lane, entities: set[str]) -> None:
    """Let things live where a full device makes them, when somebody outside had named them elsewhere before.

    Else an id that a limited device or another member has seen would draw later edits of that thing to where they read
    it. What these had said of it goes, as it is not taken where the full device's word came first. `entities` are those
    that the full device made: an edit comes from home too, of what shows in a project not bound to where it lives.
    """
    state = context.member.state
    for entity, scope in tx.queries.replication.placed(entities).items():
        if scope == lane.scope:
            continue
        writers = {one: state.device_of(bytes.fromhex(one)) for one in tx.queries.ops.writers(entity)}
        outside = [one for one, known in writers.items() if known is None or not known.full]
        if outside:
            tx.replication.unplace(entity)
            tx.ingest.disown(entity, outside)


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


def _made(data: bytes | None, device: str, seq: int) -> tuple[str, ...]:
    """Return what an op makes: an event, or the memory whose time of creation it gives."""
    found = _entities(data, device, seq)
    if data is None or not found:
        return ()
    op = ops.decode(data, device=device, seq=seq)
    is_new = op.type == OpType.EVENT or (op.type == OpType.MEMORY and Field.CREATED_AT in op.body[FIELDS])
    return found if is_new else ()
