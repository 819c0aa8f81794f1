"""New incarnations: a store whose copy wrote under the same device id goes on under a new id."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from scrubjay.store.replication_state import Lane
from scrubjay.store.transaction import Transaction
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared import ops
from scrubjay_shared.account import instance_of
from scrubjay_shared.envelope import lane_root
from scrubjay_shared.errors import (
    ForkError,
    SplitError,
)
from scrubjay_shared.parts import joined
from scrubjay_sync import packing
from scrubjay_sync.engine import validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import short
from scrubjay_sync.engine.results import Tally
from scrubjay_sync.policy import SYNC

log = logging.getLogger(__name__)


async def new_incarnation(context: Context, tally: Tally) -> None:
    """Go on under a new device id with what was never confirmed, and leave the rest to the old one.

    Only on proof: objects that the server shows at places of our own lanes must bear our own signature. The ops
    keep their ids, so that one which the server had after all is the same op twice.
    """
    common: dict[bytes, int] = {}
    theirs: dict[int, bytes] = {}
    proved = False
    for scope in context.scopes:
        common[scope], found, shown = await _diverged(context, scope)
        theirs |= found
        proved |= shown
    if not proved:
        raise SplitError(
            f"{context.cloud.origin} says that a copy of this store wrote as this device, and does not show it",
            hint="do not trust this server; nothing was changed here",
        )
    old = context.device
    after = await last_shared(context, common, theirs)
    new = next_id(context).hex()
    lanes = await context.store.read(lambda q: q.replication.lanes())

    def work(tx: Transaction) -> int:
        for scope, n in common.items():
            lane = lanes.get((scope, old))
            if lane is None:
                continue
            tip = tx.queries.replication.link(scope, old, n) if n else None
            if tip is None:
                tx.replication.drop_lane(scope, old)
                continue
            tx.replication.drop_sealed(scope, old, after=n)
            cut = replace(lane, n=n, tip=tip, acked_n=0, hw_n=n, hw_tip=tip)
            tx.replication.put_lane(cut, cut_back=True)
        tx.replication.settle_erased(old, [seq for seq in theirs if seq > after])
        tx.replication.set_state(sealed_seq=0, beacon_at=0, beacon_n=0)
        return tx.incarnation.renew(new, after)

    moved = await context.store.write(work)
    tally.new_incarnation = True
    log.warning("sync new_incarnation old=%s new=%s ops=%d", short(old), new[:8], moved)
    error = ForkError(
        f"another copy of this store wrote as device {short(old)}; this one goes on as device {new[:8]}"
        f" with {moved} changes that only it had",
        hint="nothing was lost. A restored backup or a copied data folder causes this; else look for a copy. Device"
        f" {short(old)} is still in force: whoever has the copy syncs as it until scrubjay devices revoke {short(old)}",
    )
    await context.alarm(tally, error, old.hex(), holds=False)


def next_id(context: Context) -> bytes:
    """Return the id of this store's next incarnation: an instance's stays one of its limited device's."""
    known = context.member.certified
    return context.entropy(16) if known is None or known.full else instance_of(known.id, context.entropy(8))


async def _diverged(context: Context, scope: bytes) -> tuple[int, dict[int, bytes], bool]:
    """Return up to where the server's lane of ours is what we sent, and what follows: op ids by place.

    Also whether anything follows, or differs, that bears our own signature.
    """
    lane = (await context.store.read(lambda q: q.replication.lanes())).get(
        (scope, context.device)
    ) or context.empty_lane(scope, context.device)
    root = lane_root(context.member.account, scope, context.device)
    n, prev, common, found = 0, root, 0, dict[int, bytes]()
    parts: dict[int, dict[int, bytes]] = {}
    proved = False
    while page := await context.cloud.lane(scope, context.device, start=n + 1, limit=SYNC.pull_bytes):
        for envelope in page:
            validation.check_header(context, envelope)
        wire_envelope.check_run(page, n=n, prev=prev, keys=context.keys_of)
        for envelope in page:
            n, prev = envelope.header.n_to, envelope.end
            if not found and not proved and await _have(context, lane, n, prev):
                common = n
                continue
            proved = True
            opened = packing.opened(envelope, context.key(envelope))
            entries = list(opened.entries)
            if opened.part is not None:
                seq, number, count, data = opened.part
                pieces = parts.setdefault(seq, {})
                pieces[number] = data
                if len(pieces) == count:
                    entries.append((seq, joined(pieces[place] for place in range(count))))
            device = context.device.hex()
            found |= {seq: _op_id(data, device, seq) for seq, data in entries if data is not None}
    return common, found, proved


async def _have(context: Context, lane: Lane, n: int, tip: bytes) -> bool:
    if n == lane.n:
        return tip == lane.tip
    return n < lane.n and await context.store.read(lambda q: q.replication.link(lane.scope, lane.device, n)) == tip


async def last_shared(context: Context, common: Mapping[bytes, int], theirs: Mapping[int, bytes]) -> int:
    """Return the place of the last op of this device before the first that the server does not have."""
    state = await context.store.read(lambda q: q.replication.state())
    assert state is not None  # noqa: S101 - a round begins with it
    ours = await context.store.read(lambda q: q.ops.op_ids(context.device.hex()))
    missing = [seq for seq, op_id in ours.items() if seq > state.sealed_seq and theirs.get(seq) != op_id]
    for scope, n in common.items():
        rows = await context.store.read(lambda q: q.replication.sealed(scope, context.device, after=n))
        for data in await context.store.read(lambda q: q.replication.objects(rows)):
            envelope = wire_envelope.parse(data)
            if envelope.header.n_from <= n:
                continue
            opened = packing.opened(envelope, context.key(envelope))
            seqs = [seq for seq, _ in opened.entries] + ([opened.part[0]] if opened.part else [])
            missing += [seq for seq in seqs if seq in ours and theirs.get(seq) != ours[seq]]
    # Not the store's last place of now: what was written since `ours` was read is of this device alone.
    return min(missing) - 1 if missing else max(ours, default=0)


def _op_id(data: bytes, device: str, seq: int) -> bytes:
    return ops.decode(data, device=device, seq=seq).op_id
