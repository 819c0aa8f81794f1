"""The job that keeps the table of contents: sessions that changed are cut again, and the periods around them follow.

It is called `toc` where people meet it, as the operation that reads what it makes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import MemoryPolicy, TocPolicy
from scrubjay.store import SessionPlace, Stale, Store, StoredPeriod, StoredSegment
from scrubjay.store.queries import Queries

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step writes: segments in place of those that are `gone`, and the periods that change with them."""

    stale: Stale
    generation: str
    gone: tuple[str, ...]
    segments: tuple[StoredSegment, ...]
    changed: tuple[StoredPeriod, ...]
    go_on: str | None


class TableOfContents:
    """Builds the table of contents of one store."""

    name = "toc"

    def __init__(self, store: Store, policy: MemoryPolicy, stopping: asyncio.Event) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._building = asyncio.Lock()
        self._checked = False

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, which find what a crash left."""
        return Trigger(seconds=self._policy.work.sweep_seconds)

    async def due(self) -> bool:
        """Say whether there is something to build. Costs a look-up, however large the store is."""
        return not self._checked or await self._store.read(lambda q: q.toc.is_stale())

    async def pending(self) -> int:
        """Return how many sessions changed since they were last looked at."""
        return await self._store.read(lambda q: q.toc.count_stale())

    async def run(self) -> int:
        """Cut the sessions again that changed. Returns in how many steps.

        Each step reads and plans in a reader's thread, and is written in a short transaction. Where somebody added or
        erased something of it meanwhile, nothing is written, and the step is done again.
        """
        steps = 0
        async with self._building:
            began = time.perf_counter()
            if not self._checked:
                await self._store.write(lambda tx: tx.toc.start_anew())
                self._checked = True
            while not self._stopping.is_set() and (waiting := await self._store.read(lambda q: q.toc.stale())):
                for stale in waiting:
                    steps += await self._cut(stale.session_id)
            if steps:
                log.info("built the table of contents steps=%d ms=%d", steps, (time.perf_counter() - began) * 1000)
        return steps

    async def _cut(self, session_id: str) -> int:
        """Cut one session to its end. Returns in how many steps."""
        steps = 0
        while not self._stopping.is_set():
            step = await self._store.read(planned(session_id, self._policy.toc))
            if step is None:
                break
            steps += 1
            await self._store.write(
                lambda tx, step=step: tx.toc.put(  # type: ignore[misc]
                    step.stale,
                    step.generation,
                    gone=step.gone,
                    segments=step.segments,
                    changed=step.changed,
                    go_on=step.go_on,
                )
            )
        return steps


def planned(session_id: str, policy: TocPolicy) -> Callable[[Queries], Step | None]:
    """Return what plans the next step of a session over one snapshot: it is to run in a reader's thread."""
    from scrubjay.toc.extraction import outline  # noqa: PLC0415  # with the tables of `distill`, needed at work only
    from scrubjay.toc.segmentation import cut, settled  # noqa: PLC0415

    def plan(q: Queries) -> Step | None:
        stale = q.toc.stale_session(session_id)
        if stale is None:
            return None
        uncut = q.toc.uncut(stale, policy, limit=policy.step_events)
        pieces = cut(uncut.turns, policy)
        go_on: str | None = None
        if uncut.more:  # the last cuts may be moved by what follows: the next step begins at the last that stands
            count, starts = len(uncut.turns), [0]
            for piece in pieces:
                starts.append(starts[-1] + len(piece))
            last = max(n for n, start in enumerate(starts) if settled(count, start, policy))
            go_on = SessionPlace(*uncut.turns[starts[last]].place).text
            pieces = pieces[:last]
        segments = tuple(
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
        )
        replaced = q.toc.segments_of_session(session_id, uncut.start, go_on)
        kept = {one.id: one for one in replaced}
        fresh = tuple(one for one in segments if kept.get(one.id) != one)
        staying = {one.id for one in segments} - {one.id for one in fresh}
        lost = [one for one in replaced if one.id not in staying]
        gone = tuple(one.id for one in lost)
        touched = {(one.day, one.project) for one in (*lost, *fresh)}
        return Step(
            stale=stale,
            generation=uncut.generation,
            gone=gone,
            segments=fresh,
            changed=tuple(q.toc.rolled_up(touched, policy, without=set(gone), planned=fresh)),
            go_on=go_on,
        )

    return plan
