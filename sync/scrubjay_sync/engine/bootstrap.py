"""The first reading of an account: lanes are pinned at their ends and read backwards from there."""

from __future__ import annotations

from dataclasses import replace

from scrubjay.store.replication_state import Lane, SyncState
from scrubjay.store.transaction import Transaction
from scrubjay_shared.errors import (
    WithheldError,
)
from scrubjay_shared.wire import Heads
from scrubjay_sync import packing
from scrubjay_sync.engine import apply, validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED, VERIFY, short
from scrubjay_sync.engine.results import Progress, Tally
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC


async def pin_lanes(context: Context, heads: Heads) -> SyncState:
    """Begin on a device that has read nothing: pin where every lane ends, to be read backwards from there."""

    def work(tx: Transaction) -> SyncState:
        for head in heads.heads:
            if head.device == context.device or head.scope not in context.scopes:
                continue
            known = context.member.state.device_of(head.device)
            end = None if known is None else known.end_of(head.scope, head.device)
            n, tip = head.n, head.tip
            if end is not None and n > end[0]:
                n, tip = end
            if n and tx.queries.replication.lane(head.scope, head.device) is None:
                pinned = context.empty_lane(head.scope, head.device)
                pinned = replace(pinned, n=n, tip=tip, low=n + 1, low_prev=tip, hw_n=n, hw_tip=tip)
                tx.replication.put_lane(pinned)
        tx.replication.set_state(
            cursor=heads.cursor, store_id=context.cloud.store_id or "", generation=context.cloud.generation or 0
        )
        state = tx.queries.replication.state()
        assert state is not None  # noqa: S101 - `_begun` made it
        return state

    return await context.store.write(work)


async def backfill(context: Context, tally: Tally) -> None:
    """Read what a new device still lacks, from each lane's newest end backwards, the lanes in turn."""
    waiting = [
        lane_id
        for lane_id, lane in sorted((await context.store.read(lambda q: q.replication.lanes())).items())
        if lane.low > 1
    ]
    total = sum(lane.n for lane in (await context.store.read(lambda q: q.replication.lanes())).values())
    reach: dict[LaneId, int] = {}
    while waiting:
        for lane_id in list(waiting):
            context.check_disk()
            lane = (await context.store.read(lambda q: q.replication.lanes()))[lane_id]
            if lane.low <= 1 or lane_id in tally.held or not context.reads(lane.scope):
                waiting.remove(lane_id)
                continue
            try:
                reach[lane_id] = await _read_back(context, lane, reach.get(lane_id, SYNC.reach_places), tally)
            except REFUSED as error:
                await context.refuse(tally, lane_id, error)
            tally.pages += 1
        left = sum(lane.low - 1 for lane in (await context.store.read(lambda q: q.replication.lanes())).values())
        context.on_progress(Progress(step="bootstrap", done=total - left, total=total))


async def _read_back(context: Context, lane: Lane, reach: int, tally: Tally) -> int:
    """Read the objects before what we hold of a lane, `reach` places or the pack that holds them.

    Returns how far to reach the next time, so that a page is filled and not overrun.
    """
    start = max(1, lane.low - reach)
    got = await context.cloud.lane(lane.scope, lane.device, start=start, limit=SYNC.pull_bytes)
    page = [envelope for envelope in got if envelope.header.n_from < lane.low]
    if not page:
        raise WithheldError(
            f"the server does not hand out places up to {lane.low - 1} of lane {short(lane.device)}", hint=VERIFY
        )
    if page[-1].header.n_to < lane.low - 1 and len(page) == len(got) and reach > 1:
        return max(1, reach // 2)  # the page was full before it came so far
    above, prev, found = lane.low, lane.low_prev, []
    for envelope in reversed(page):
        await validation.check_below(context, lane, envelope, above, prev)
        found.append(packing.opened(envelope, context.key(envelope)))
        above, prev = envelope.header.n_from, envelope.header.prev
        await context.sleep(0)
    await apply.apply_objects(context, [(lane, found[::-1])], tally, cursor=None, down=True)
    filled = sum(len(envelope.data) for envelope in got) > SYNC.pull_bytes // 2
    return reach if filled else reach * 2
