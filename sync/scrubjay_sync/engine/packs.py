"""Packs: many small objects become one, and what was forgotten leaves the objects that held it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from scrubjay.store.replication_state import Lane, Sealed
from scrubjay.store.transaction import Transaction
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared import ops
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import ObjectKind, signed_by
from scrubjay_sync import packing, planning
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.engine import outbox, refusals, validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED
from scrubjay_sync.engine.results import Progress, Tally
from scrubjay_sync.packing import Opened, SealContext
from scrubjay_sync.planning import LaneId, Outcome
from scrubjay_sync.policy import SYNC


async def pack_lanes(context: Context, tally: Tally) -> None:
    """Put packs in the place of many small objects, and of those that hold words which were erased."""
    lanes = await context.store.read(lambda q: q.replication.lanes())
    for device in sorted({lane.device for lane in lanes.values()}):
        mine = [lane for lane in lanes.values() if lane.device == device and lane.scope in context.scopes]
        mine = [lane for lane in mine if lane.low <= 1 and (lane.scope, device) not in tally.held]
        await _pack_device(context, device, mine, tally)


async def _pack_device(context: Context, device: bytes, lanes: Sequence[Lane], tally: Tally) -> None:
    own = device == context.device
    erased = await context.store.read(lambda q: q.replication.erased(device))
    due = {seq for seq, at in erased.items() if not 0 <= context.now() - at < SYNC.repack_after_ms}
    found: set[int] = set()
    for lane in lanes:
        confirmed = lane.acked_n if own else lane.n
        rows = await context.store.read(lambda q: q.replication.sealed(lane.scope, device))
        ranges = planning.packs([row for row in rows if row.n_to <= confirmed], due)
        if any(row.n_to > confirmed for row in rows):
            found |= due  # what is not confirmed yet may hold them
        if not ranges:
            continue
        if own or await _adopts(context, (lane.scope, device)):
            for one in ranges:
                found |= await _pack(context, lane, one, set(erased), tally)
        else:
            stale = [one.rows[0] for one in ranges if one.erasing]
            found |= await _follow_owner(context, lane, stale, due, tally)
    if due - found:  # they stand in nothing that is kept or served
        await context.store.write(lambda tx: tx.replication.settle_erased(device, due - found))


async def _adopts(context: Context, lane_id: LaneId) -> bool:
    """Say whether this device packs a lane whose device is gone, or is an instance that may be gone tomorrow.

    Who revoked a device has adopted its lanes. Where that one is gone too, or nobody has, the oldest full device does.
    """
    scope, device = lane_id
    state = context.member.state
    owner = state.device_of(device)
    if owner is None or context.member.limited or not (owner.revoked or (not owner.full and device != owner.id)):
        return False
    in_force = [one.id for one in state.active() if one.full]
    adopters = [one for one in state.adopters_of(scope, device) if one in in_force]
    if adopters or in_force[:1] != [context.device]:
        return adopters[:1] == [context.device]
    body = {1: scope, 2: owner.id, 3: context.device}
    await context.member.append(context.cloud, lambda _state, _ring: Draft(entries=[(EntryType.LANE_ADOPT, body)]))
    return True


async def _pack(context: Context, lane: Lane, chosen: planning.Range, erased: set[int], tally: Tally) -> set[int]:
    """Send one pack, and keep it in the place of what it covers once the server has it.

    Returns which erased ops stood in what it covers.
    """
    covered = [
        wire_envelope.parse(data) for data in await context.store.read(lambda q: q.replication.objects(chosen.rows))
    ]
    if len(covered) != len(chosen.rows):
        return erased
    opened = [packing.opened(envelope, context.key(envelope)) for envelope in covered]
    entries: dict[int, bytes | None] = {seq: data for one in opened for seq, data in one.entries}
    parts = {one.part[0] for one in opened if one.part is not None}
    gone = erased & (entries.keys() | parts)
    if parts - gone or (chosen.erasing and not gone):
        # Parts of a living op stay as they are. What was erased may stand in another lane's object.
        return gone
    entries |= dict.fromkeys(parts)
    if gone:
        device = lane.device.hex()
        current = await context.store.write(
            lambda tx: {one.seq: one.data for one in tx.queries.ops.between(device, min(gone), max(gone))}
        )
        entries |= {seq: current.get(seq) for seq in gone}
    epoch = context.member.scopes.epoch(lane.scope)
    place = SealContext(
        account=context.member.account,
        scope=lane.scope,
        device=lane.device,
        n=covered[0].header.n_from,
        prev=covered[0].header.prev,
        suite=int(context.member.scopes.suite(lane.scope)),
        epoch=epoch,
        key=context.member.scopes.key(lane.scope, epoch),
    )
    made = packing.pack(place, covered, sorted(entries.items()), context.signer)
    if made is None:
        return gone  # what it stands for is as small as it can be
    result = (await context.cloud.pack([made]))[0]
    outcome = planning.outcome(result.status)
    if outcome is Outcome.RESEND and await _adopt_served_pack(context, lane, made.header.n_from, tally):
        return gone  # and what stands there now is planned again, in the next round
    if outcome is not Outcome.TAKEN:
        await context.refuse(tally, (lane.scope, lane.device), refusals.not_taken(result))
        return gone
    low, high = (min(entries), max(entries)) if entries else (0, 0)

    def work(tx: Transaction) -> None:
        header = made.header
        tx.replication.keep_sealed(
            Sealed(
                scope=header.scope,
                device=header.device,
                n_from=header.n_from,
                n_to=header.n_to,
                seq_low=low,
                seq_high=high,
                size=len(made.data),
                tip=made.end,
            ),
            made.data,
        )
        tx.replication.settle_erased(lane.device, gone)

    await context.store.write(work)
    tally.packed += len(covered)
    context.on_progress(Progress(step="pack", done=len(covered), total=len(covered)))
    return gone


async def _adopt_served_pack(context: Context, lane: Lane, n: int, tally: Tally) -> bool:
    """Replace what we hold at a place by the pack that the server has there. Returns whether it has one.

    The answer to a pack of ours was lost, and ours was planned anew since, with other ends: a server never cuts one
    object in two. Or somebody else packs this lane too.
    """
    served = await _served_pack(context, lane, n, tally)
    if served is None:
        return False
    header = served.envelope.header
    rows = await context.store.read(lambda q: q.replication.sealed(lane.scope, lane.device))
    ends = {row.n_from for row in rows} & {header.n_from}, {row.n_to for row in rows} & {header.n_to}
    if not all(ends):  # it would cut one of ours in two
        return False
    await context.store.write(lambda tx: outbox.keep_objects(tx, [served]))
    return True


async def _served_pack(context: Context, lane: Lane, n: int, tally: Tally) -> Opened | None:
    """Return the pack that the server has at a place of a lane, checked; None when there is none that we know."""
    page = await context.cloud.lane(lane.scope, lane.device, start=n, limit=1)
    if not page or page[0].header.kind != ObjectKind.PACK or page[0].lane != (lane.scope, lane.device):
        return None
    pack = page[0]
    known = await context.store.read(lambda q: q.replication.link(lane.scope, lane.device, pack.header.n_to))
    try:
        validation.check_header(context, pack)
        if known is not None and (known != pack.end or not signed_by(pack, context.keys_of(pack))):
            raise refusals.split(lane.device, pack.header.n_to)
        opened = packing.opened(pack, context.key(pack))
    except REFUSED as error:
        await context.refuse(tally, (lane.scope, lane.device), error)
        return None
    return None if known is None else opened


async def _follow_owner(context: Context, lane: Lane, rows: Sequence[Sealed], due: set[int], tally: Tally) -> set[int]:
    """Take over what a lane's owner packed anew after a forget, so that no device gives the old words back.

    Returns which erased ops stand in these objects. Until the owner has been here, they are looked at again after
    a while.
    """
    found = set[int]()
    for row in rows:
        held = [seq for seq in due if row.seq_low <= seq <= row.seq_high]
        found.update(held)
        now_said = await context.store.write(partial(_current_content, context, lane.device, held))
        opened = await _served_pack(context, lane, row.n_from, tally)
        if opened is None:
            continue
        said = dict(opened.entries)
        clean = [seq for seq in held if seq not in said or ops.says_no_more(said[seq], now_said.get(seq))]
        if clean == held:
            await context.store.write(partial(_swap, opened, held))
    return found


def _current_content(context: Context, device: bytes, seqs: Sequence[int], tx: Transaction) -> dict[int, bytes | None]:
    """Return what some erased ops of a device say by now, and put off looking at them again."""
    tx.replication.wait_erased(device, seqs, context.now())
    return {one.seq: one.data for one in tx.queries.ops.between(device.hex(), min(seqs), max(seqs))}


def _swap(pack: Opened, seqs: Sequence[int], tx: Transaction) -> None:
    outbox.keep_objects(tx, [pack])
    tx.replication.settle_erased(pack.envelope.header.device, seqs)


async def trim(context: Context) -> None:
    """Let go of other devices' oldest objects when they take too much room; the server has them."""
    await context.store.write(lambda tx: tx.replication.trim_sealed([context.device], SYNC.repair_bytes))
