"""Reading what other devices wrote: by cursor, and by lane where places are missing."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.store.replication_state import Lane, SyncState
from scrubjay_shared.errors import (
    BrokenChainError,
    InvalidError,
    MalformedError,
    RolledBackError,
    TooLargeError,
    WithheldError,
)
from scrubjay_shared.wire import Heads
from scrubjay_sync.cloud.client import Page
from scrubjay_sync.engine import apply
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import VERIFY, short
from scrubjay_sync.engine.results import RestartRoundError, Tally
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A page that the server had for a device that waited for news after the cursor `after`.

    Without objects it says that the account's end moved all the same, or that the server is another than before.
    """

    after: str
    page: Page

    def follows(self, state: SyncState) -> bool:
        """Say whether nothing was read since the page was asked for."""
        return state.cursor == self.after


async def wait_for_news(context: Context, wait_s: float) -> News | None:
    """Wait for news, at most so long, and return them; None when all is as it was."""
    state = await context.store.read(lambda q: q.replication.state())
    assert state is not None  # noqa: S101 - a round was before it
    context.check_disk()
    page = await _page(context, state.cursor, wait_s)
    still = not page.objects and page.cursor == page.head == state.cursor and not context.server_changed(state)
    return None if still else News(after=state.cursor, page=page)


async def take_in(context: Context, page: Page, tally: Tally) -> None:
    """Take in a page of what other devices wrote, and go on behind it."""
    context.check_disk()
    await apply.receive_objects(context, page.objects, tally, cursor=page.cursor)
    tally.pages += bool(page.objects)


async def _page(context: Context, cursor: str, wait_s: float) -> Page:
    return await context.cloud.pull(
        cursor, limit=SYNC.pull_bytes, wait_s=wait_s, scopes=context.scopes if context.member.limited else ()
    )


async def pull_pages(context: Context, heads: Heads, tally: Tally, wait_s: float) -> None:
    """Read what other devices wrote, page by page, until there is no more."""
    state = await context.store.read(lambda q: q.replication.state())
    assert state is not None  # noqa: S101 - a round begins with it
    cursor = state.cursor
    furthest: dict[LaneId, int] = {}  # a server that hands out the same for ever must not keep us for ever
    while True:
        context.check_disk()
        try:
            page = await _page(context, cursor, wait_s)
        except (InvalidError, RolledBackError) as error:
            if isinstance(error, (MalformedError, TooLargeError)) or cursor == heads.cursor:
                raise
            # It does not know its own cursor, or was set back behind it. `_settled` reads up to the heads by lane.
            await context.store.write(lambda tx: tx.replication.set_state(cursor=heads.cursor))
            return
        wait_s = 0
        if context.server_changed(state):
            raise RestartRoundError
        if page.cursor == cursor and page.head == cursor and not page.objects:
            return
        further = {one.lane: one.header.n_to for one in page.objects if one.header.n_to > furthest.get(one.lane, 0)}
        if page.cursor == cursor or not (further or page.cursor == page.head):
            raise WithheldError(
                f"{context.cloud.origin} says that there are more objects, and hands out none",
                hint="tell its operator; nothing was lost here",
            )
        furthest |= further
        await take_in(context, page, tally)
        if len(tally.held) > SYNC.held_lanes:
            raise MalformedError(
                f"{context.cloud.origin} hands out more than {SYNC.held_lanes} lanes that cannot be taken",
                hint="do not trust it; scrubjay sync status says what is wrong with them",
            )
        cursor = page.cursor
        if cursor == page.head:
            return


async def settle(context: Context, heads: Heads, tally: Tally) -> bool:
    """Read by lane what is still missing, and say whether nothing is, on either side."""
    shown = {(head.scope, head.device): head.n for head in heads.heads}
    known = await context.store.read(lambda q: q.replication.lanes())
    for lane_id in sorted(known.keys() | shown.keys()):
        if lane_id[1] == context.device or not context.reads(lane_id[0]):
            continue
        lane = known.get(lane_id) or context.empty_lane(*lane_id)
        wanted = min(max(lane.hw_n, shown.get(lane_id, 0)), context.counts_to(*lane_id))
        if lane.n < wanted:
            await read_on(context, lane, wanted, tally)
    state = await context.store.read(lambda q: q.replication.state())
    lanes = await context.store.read(lambda q: q.replication.lanes())
    return (
        state is not None
        and not tally.held
        and (context.member.read_only or state.sealed_seq >= context.store.last_seq)
        and all(lane.acked_n == lane.n for (_, device), lane in lanes.items() if device == context.device)
        and all(lane.low <= 1 for (scope, _), lane in lanes.items() if context.reads(scope))
    )


async def read_on(context: Context, lane: Lane, wanted: int, tally: Tally) -> None:
    """Read a lane from its end here to a place that was shown: a hole, or an object that was refused before."""
    lane_id = (lane.scope, lane.device)
    while lane.n < wanted:
        context.check_disk()
        page = await context.cloud.lane(*lane_id, start=lane.n + 1, limit=SYNC.pull_bytes)
        if not page:
            error = WithheldError(
                f"the server does not hand out places {lane.n + 1} to {wanted} of lane {short(lane.device)}",
                hint="if the server was restored from a backup, the device that wrote them gives them back; " + VERIFY,
            )
            await context.refuse(tally, lane_id, error)
            return
        if any(envelope.lane != lane_id for envelope in page):
            await context.refuse(tally, lane_id, BrokenChainError("the server answered with another lane", hint=VERIFY))
            return
        if page[0].header.n_from > lane.n + 1:
            error = WithheldError(f"the server left out place {lane.n + 1} of lane {short(lane.device)}", hint=VERIFY)
            await context.refuse(tally, lane_id, error)
            return
        await apply.receive_objects(context, page, tally, cursor=None)
        tally.pages += 1
        after = (await context.store.read(lambda q: q.replication.lanes())).get(lane_id) or lane
        if after.n <= lane.n:
            return  # refused, and said so
        lane = after
