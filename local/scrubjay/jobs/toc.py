"""The job that keeps the table of contents: sessions that changed are cut again, and the periods around them follow.

It is called `toc` where people meet it, as the operation that reads what it makes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from scrubjay.jobs.giving_way import give_way
from scrubjay.jobs.registry import Trigger
from scrubjay.policy import MemoryPolicy, TocPolicy
from scrubjay.store import Cut, SessionPlace, Store, StoredSegment, TocStep
from scrubjay.store.queries import Queries

log = logging.getLogger(__name__)


class TableOfContents:
    """Builds the table of contents of one store."""

    name = "toc"

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        quiet_seconds: Callable[[], float],
    ) -> None:
        """`quiet_seconds` says how long ago the last question came."""
        self._store = store
        self._quiet_seconds = quiet_seconds
        self._policy = policy
        self._stopping = stopping
        self._building = asyncio.Lock()
        self._checked = False

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, which find what a crash left."""
        return Trigger(seconds=self._policy.work.sweep_seconds)

    async def due(self) -> bool:
        """Say whether there is something to build, once nobody has written for a moment: building slows writing.

        Who writes without a pause is waited for up to `wait_seconds`. Costs a look-up, however large the store is.
        """
        if self._checked and not await self._store.read(lambda q: q.toc.is_stale()):
            return False
        until = time.monotonic() + self._policy.toc.wait_seconds
        commits = -1
        while commits != self._store.commits and time.monotonic() < until and not self._stopping.is_set():
            commits = self._store.commits
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._policy.toc.quiet_seconds)
        return not self._stopping.is_set()

    async def pending(self) -> int:
        """Return how many sessions changed since they were last looked at."""
        return await self._store.read(lambda q: q.toc.count_stale())

    async def run(self) -> int:
        """Cut the sessions again that changed, between questions. Returns in how many steps."""
        return await self._build(self._give_way)

    async def finish(self) -> int:
        """Cut the sessions again that changed, for somebody who waits for that. Returns in how many steps."""
        return await self._build(None)

    async def _give_way(self) -> None:
        await give_way(self._quiet_seconds, self._stopping, self._policy.toc)

    async def _build(self, give_way: Callable[[], Awaitable[None]] | None) -> int:
        """Carry out steps until none is left. Returns how many.

        A step takes some short sessions, or a part of a long one: it is read and planned in a reader's thread, and
        written in a short transaction. Where somebody erased anything meanwhile, nothing is written, and the step is
        done again.
        """
        steps = 0
        async with self._building:
            began = time.perf_counter()
            if not self._checked:
                await self._store.write(lambda tx: tx.toc.start_anew())
                self._checked = True
            while not self._stopping.is_set():
                if give_way is not None:
                    await give_way()
                step = await self._store.read(planned(self._policy.toc))
                if step is None:
                    break
                steps += 1
                await self._store.write(lambda tx, step=step: tx.toc.put(step))  # type: ignore[misc]
            if steps:
                log.info("built the table of contents steps=%d ms=%d", steps, (time.perf_counter() - began) * 1000)
        return steps


def planned(policy: TocPolicy) -> Callable[[Queries], TocStep | None]:
    """Return what plans the next step over one snapshot, None when nothing is left: to run in a reader's thread.

    Sessions come in the order of their time: neighbours share the days and months that change with them.
    """
    from scrubjay.toc.extraction import outline  # noqa: PLC0415  # with the tables of `distill`, needed at work only
    from scrubjay.toc.segmentation import cut, settled  # noqa: PLC0415

    def next_cut(q: Queries, session_id: str, left: int) -> tuple[Cut, list[StoredSegment], int] | None:
        """Return how to cut a session, the segments that this takes away, and how many turns it has."""
        stale = q.toc.stale_session(session_id)
        if stale is None:
            return None
        uncut = q.toc.uncut(stale, policy, limit=policy.step_events)
        if len(uncut.turns) > left:
            return None  # of the next step
        pieces = cut(uncut.turns, policy)
        go_on: str | None = None
        if uncut.more:  # the last cuts may be moved by what follows: the next step begins at the last that stands
            count, starts = len(uncut.turns), [0]
            for piece in pieces:
                starts.append(starts[-1] + len(piece))
            last = max(n for n, start in enumerate(starts) if settled(count, start, policy))
            go_on = SessionPlace(*uncut.turns[starts[last]].place).text
            pieces = pieces[:last]
        segments = [
            StoredSegment(
                id=piece[0].id,
                session_id=session_id,
                project=piece[0].project,
                day=piece[0].day,
                place=SessionPlace(*piece[0].place).text,
                last=piece[-1].id,
                outline=outline(piece, policy, opens=uncut.opens and n == 0),
            )
            for n, piece in enumerate(pieces)
        ]
        replaced = {one.id: one for one in q.toc.segments_of_session(session_id, uncut.start, go_on)}
        fresh = tuple(one for one in segments if replaced.get(one.id) != one)
        staying = {one.id for one in segments} - {one.id for one in fresh}
        lost = [one for one in replaced.values() if one.id not in staying]
        cut_ = Cut(stale=stale, gone=tuple(one.id for one in lost), segments=fresh, go_on=go_on)
        return cut_, lost, len(uncut.turns)

    def plan(q: Queries) -> TocStep | None:
        cuts: list[Cut] = []
        lost: list[StoredSegment] = []
        left = policy.step_events
        for session_id in q.toc.stale(limit=policy.step_sessions):
            found = next_cut(q, session_id, left)
            if found is None:
                break
            cuts.append(found[0])
            lost += found[1]
            left -= found[2]
        if not cuts:
            return None
        fresh = [one for each in cuts for one in each.segments]
        touched = {(one.day, one.project) for one in (*lost, *fresh)}
        changed = q.toc.rolled_up(touched, policy, without={one.id for one in lost}, planned=fresh)
        return TocStep(cuts=tuple(cuts), changed=tuple(changed), generation=q.toc.generation())

    return plan
