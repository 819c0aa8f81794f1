"""The first reading of an account: lanes are pinned at their ends and read backwards from there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from scrubjay.store.preparation import Preparation
from scrubjay.store.received import Ready
from scrubjay.store.replication_state import Lane, SyncState
from scrubjay.store.transaction import Transaction
from scrubjay_shared.errors import (
    WithheldError,
)
from scrubjay_shared.wire import Heads, LaneHead
from scrubjay_sync import packing
from scrubjay_sync.engine import apply, snapshots, validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED, VERIFY, short
from scrubjay_sync.engine.results import Progress, RestartRoundError, Tally, UnfaithfulSnapshotError
from scrubjay_sync.packing import Opened
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC

log = logging.getLogger(__name__)


async def pin_lanes(context: Context, heads: Heads) -> SyncState:
    """Begin on a device that has read nothing: pin where every lane ends, to be read backwards from there.

    What this machine holds of an earlier login that stands beyond there becomes its own: the server lost that since,
    and no object is left here to heal it with.
    """
    pinned = [_pinned(context, head) for head in heads.heads if head.device != context.device]
    lanes = [lane for lane in pinned if lane.n and lane.scope in context.scopes]
    ends = await _ends_of_left_devices(context, lanes)

    def work(tx: Transaction) -> SyncState:
        tx.incarnation.adopt_rest(ends)
        for lane in lanes:
            if tx.queries.replication.lane(lane.scope, lane.device) is None:
                tx.replication.put_lane(lane)
        tx.replication.set_state(
            cursor=heads.cursor, store_id=context.cloud.store_id or "", generation=context.cloud.generation or 0
        )
        state = tx.queries.replication.state()
        assert state is not None  # noqa: S101 - `_begun` made it
        return state

    return await context.store.write(work)


def _pinned(context: Context, head: LaneHead) -> Lane:
    """Return a lane that is to be read backwards from the server's end of it, or from where its device was revoked."""
    known = context.member.state.device_of(head.device)
    end = None if known is None else known.end_of(head.scope, head.device)
    n, tip = (head.n, head.tip) if end is None or head.n <= end[0] else end
    lane = context.empty_lane(head.scope, head.device)
    return replace(lane, n=n, tip=tip, low=n + 1, low_prev=tip, hw_n=n, hw_tip=tip)


async def _ends_of_left_devices(context: Context, lanes: Sequence[Lane]) -> dict[str, int]:
    """Return the last op that the server has of each device of which an earlier login left ops here; 0 is none.

    A device with a lane that does not open is left out: its ops stay where they are. So do all on a limited device,
    which sees some scopes only.
    """
    own = context.member.state.device_of(context.device)
    if own is None or not own.full:
        return {}
    left = await context.store.read(lambda q: q.replication.left_devices())
    ends = {one: 0 for one in left if context.member.state.device_of(bytes.fromhex(one)) is not None}
    for lane in lanes:
        device = lane.device.hex()
        if device in ends:
            try:
                ends[device] = max(ends[device], await _last_op(context, lane))
            except REFUSED as error:  # reading the lane meets it again, and raises the alarm
                log.warning("sync leaves ops of an earlier login alone code=%s device=%s", error.code, device[:8])
                del ends[device]
    return ends


async def _last_op(context: Context, lane: Lane) -> int:
    """Return the last op in a lane that was pinned, 0 where it has none."""
    n, prev, above = lane.n, lane.tip, lane.n + 1
    while n:
        got = await context.cloud.lane(lane.scope, lane.device, start=n, limit=1)
        if not got:
            raise WithheldError(f"the server does not hand out place {n} of lane {short(lane.device)}", hint=VERIFY)
        await validation.check_below(context, lane, got[0], above, prev)
        opened = packing.opened(got[0], context.key(got[0]))
        if last := packing.seqs([opened])[1]:
            return last
        above, prev = got[0].header.n_from, got[0].header.prev
        n = above - 1
    return 0


async def backfill(context: Context, tally: Tally) -> None:
    """Read what a new device still lacks: a snapshot where there is one, then every lane, which it is compared with."""
    try:
        await _backfill(context, tally)
        unfaithful = await snapshots.settle(context, tally)
    except UnfaithfulSnapshotError:
        await snapshots.discard(context, tally)
        unfaithful = True
    if unfaithful:
        raise RestartRoundError


async def _backfill(context: Context, tally: Tally) -> None:
    """Read what a new device still lacks, from each lane's newest end backwards, the lanes in turn.

    While the store takes in one page, the next is made ready in another process, and the one after it is fetched,
    checked and opened. Pages are written in their order, each with where its lane is read to: a kill loses what was
    not written, and no more.
    """
    await _cut_revoked(context)
    lanes = await context.store.read(lambda q: q.replication.lanes())
    waiting = [lane_id for lane_id, lane in sorted(lanes.items()) if lane.low > 1 and context.reads(lane.scope)]
    if not waiting:
        return
    reading = _Backwards(context, tally, lanes)
    async with context.store.taking_in():
        try:
            reading.is_new = not await _begin_with_snapshot(context, reading, tally)
            while waiting:
                for lane_id in list(waiting):
                    context.check_disk()
                    if lanes[lane_id].low <= 1 or lane_id in tally.held:
                        waiting.remove(lane_id)
                        continue
                    await reading.step(lane_id)
                    tally.pages += 1
            await reading.written()
        finally:
            await reading.close()


async def _cut_revoked(context: Context) -> None:
    """Wait no longer for places of a revoked device that do not count: they may be lost with a server's disk."""
    for lane_id, lane in (await context.store.read(lambda q: q.replication.lanes())).items():
        end = context.counts_to(*lane_id)
        if lane.low - 1 <= end:
            continue
        known = context.member.state.device_of(lane.device)
        tip = known.end_of(*lane_id) if known is not None and end else None
        root = context.empty_lane(*lane_id)
        link = root.tip if tip is None else tip[1]
        cut = replace(lane, low=end + 1, low_prev=link)
        if lane.low > lane.n:  # nothing of it is held
            cut = replace(cut, n=end, tip=link, hw_n=end, hw_tip=link)
        await context.store.write(partial(_put_cut, cut))


def _put_cut(lane: Lane, tx: Transaction) -> None:
    tx.replication.put_lane(lane, cut_back=True)


async def _begin_with_snapshot(context: Context, reading: _Backwards, tally: Tally) -> bool:
    """Take in a snapshot, if there is one, after what its maker had not seen: what was forgotten since is read then.

    Returns whether it is taken in.
    """
    manifest = await snapshots.offered(context, tally)
    if manifest is None:
        return False
    lanes = reading.lanes
    above = snapshots.above(context, manifest, lanes)
    for lane_id, seen in above.items():
        while lanes[lane_id].low > seen + 1 and lane_id not in tally.held:
            context.check_disk()
            await reading.step(lane_id)
            tally.pages += 1
    await reading.written()
    if any(lane_id in tally.held for lane_id in above):
        return False  # what was forgotten since may stand in what that lane did not say
    await snapshots.load(context, manifest, lanes, reading.preparation, tally)
    return True


class _Read(NamedTuple):
    """A page of a lane, checked and opened. `ready` makes its ops ready, None where they are too few for that."""

    lane_id: LaneId
    lane: Lane
    found: list[Opened]
    ready: asyncio.Task[Ready] | None


class _Backwards:
    """Lanes that are read backwards. `lanes` says where each is read to, with the pages that are not written yet.

    `is_new` says that what they hold did not come by a snapshot before.
    """

    def __init__(self, context: Context, tally: Tally, lanes: dict[LaneId, Lane]) -> None:
        self._context = context
        self._tally = tally
        self.lanes = lanes
        self._reach: dict[LaneId, int] = {}
        self.preparation = Preparation()
        self.is_new = False
        self._is_first = True
        self._waiting: _Read | None = None
        self._writing: tuple[_Read, asyncio.Task[None]] | None = None
        self._total = sum(lane.n for lane in lanes.values())
        self._left = {lane_id: lane.low - 1 for lane_id, lane in lanes.items()}

    async def close(self) -> None:
        """End the other process, after the page that is being written."""
        if self._waiting is not None and self._waiting.ready is not None:
            self._waiting.ready.cancel()
            await asyncio.gather(self._waiting.ready, return_exceptions=True)
        if self._writing is not None:
            await asyncio.gather(self._writing[1], return_exceptions=True)  # whatever ended this is raised already
        await self.preparation.close()

    async def written(self) -> None:
        """Return once what was read is written. Raises what writing it raised, but for what a lane is to blame for."""
        await self._next()
        await self._finished()

    async def _next(self) -> None:
        """Begin to write the page that waits, once it is ready and the one before it is written."""
        page = self._waiting
        if page is None:
            return
        ready = None if page.ready is None else await page.ready
        await self._finished()
        self._waiting = None
        if page.lane_id in self._tally.held:
            if ready is not None:
                self.preparation.settled(ready)
            return
        self._writing = page, asyncio.create_task(self._write(page, ready), name="bootstrap-write")

    async def _write(self, page: _Read, ready: Ready | None) -> None:
        try:
            await apply.apply_objects(
                self._context, [(page.lane, page.found)], self._tally, cursor=None, down=True, ready=ready
            )
        finally:
            if ready is not None:
                self.preparation.settled(ready)
        if self.is_new:  # else what is read is here, and gets no numbers
            self.preparation.follow(await self._context.store.read(lambda q: q.events.last()))

    async def _finished(self) -> None:
        if self._writing is None:
            return
        (page, writing), self._writing = self._writing, None
        try:
            await writing
        except REFUSED as error:
            await self._context.refuse(self._tally, page.lane_id, error)
        self._left[page.lane_id] = page.found[0].envelope.header.n_from - 1
        done = self._total - sum(self._left.values())
        self._context.on_progress(Progress(step="bootstrap", done=done, total=self._total))

    async def step(self, lane_id: LaneId) -> None:
        """Read the next page of a lane, and begin to make it ready and to write the one before it."""
        lane = self.lanes[lane_id]
        try:
            found = await self._page(lane_id, lane)
        except REFUSED as error:
            await self.written()  # what was read of it before holds
            await self._context.refuse(self._tally, lane_id, error)
            return
        if not found:
            return  # with another reach
        run = dict(entry for one in found for entry in one.entries)
        ready = None
        is_first, self._is_first = self._is_first, False
        if is_first and len(run) >= SYNC.prepare_ops:
            await self.preparation.start()
        elif len(run) >= SYNC.prepare_ops:
            preparing = self.preparation.ready(lane.device.hex(), sorted(run.items()))
            ready = asyncio.create_task(preparing, name="bootstrap-prepare")
        first = found[0].envelope.header
        self.lanes[lane_id] = replace(lane, low=first.n_from, low_prev=first.prev)
        try:
            await self._next()
        finally:
            self._waiting = _Read(lane_id, lane, found, ready)
        if is_first:
            await self.written()  # what is newest is there to be found, before any process has started

    async def _page(self, lane_id: LaneId, lane: Lane) -> list[Opened]:
        """Return the objects before what we hold of a lane, checked and opened: `reach` places, or what holds them.

        None of them where they do not fit a page. Sets how far to reach the next time, so that a page is filled and not
        overrun.
        """
        context, reach = self._context, self._reach.get(lane_id, SYNC.reach_places)
        start = max(1, lane.low - reach)
        got = await context.cloud.lane(lane.scope, lane.device, start=start, limit=SYNC.pull_bytes)
        page = [envelope for envelope in got if envelope.header.n_from < lane.low]
        if not page:
            raise WithheldError(
                f"the server does not hand out places up to {lane.low - 1} of lane {short(lane.device)}", hint=VERIFY
            )
        if page[-1].header.n_to < lane.low - 1 and len(page) == len(got) and reach > 1:
            self._reach[lane_id] = max(1, reach // 2)  # the page was full before it came so far
            return []
        if page[-1].header.n_to >= lane.low:
            await self.written()  # it stands for places that we hold, and is compared with them
        above, prev, found = lane.low, lane.low_prev, []
        for envelope in reversed(page):
            await validation.check_below(context, lane, envelope, above, prev)
            found.append(packing.opened(envelope, context.key(envelope)))
            above, prev = envelope.header.n_from, envelope.header.prev
            await context.sleep(0)
        filled = sum(len(envelope.data) for envelope in got) > SYNC.pull_bytes // 2
        self._reach[lane_id] = reach if filled else reach * 2
        return found[::-1]
