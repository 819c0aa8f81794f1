"""From what layers found to pointers: events are placed in sessions, days and segments, and the best places opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta

from scrubjay import api
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval.passages import SEARCHED_CHARS, passage
from scrubjay.routing import plan
from scrubjay.routing.pointers import DAY_MS, Placed, Spot, spots
from scrubjay.service.recall_request import local_offset
from scrubjay.service.route_run import PASSAGES, PLACES, UNTOLD, Run
from scrubjay.service.toc import Toc, cut_short
from scrubjay.store import Store
from scrubjay.toc import periods
from scrubjay.toc.periods import Level
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.records import TocNode

MOST_NODES = 12
"""Of the nodes that cover a time, so many are named: a year of odd days has more than anybody opens."""


LATEST_DAYS = (90, 1_100, None)
"""How far back the latest days are looked for, step by step; None is from the beginning."""

TITLE_CHARS = 60
"""Of a title: enough to tell two talks of a day apart."""


class Pointing:
    """Makes the pointers of an answer."""

    def __init__(
        self, store: Store, policy: Callable[[], MemoryPolicy], *, toc: Toc, now: Callable[[], Millis]
    ) -> None:
        self._store = store
        self._policy = policy
        self._toc = toc
        self._now = now

    async def of_contents(self, run: Run, limit: int) -> list[str]:
        """Put the nodes of the time that is named, or of the latest days, into the run: these are pointers already."""
        if not run.times:
            run.nodes = tuple(await self._latest(run, limit))
            return [pointer.node for pointer in run.nodes]
        span = run.times[0]
        made: list[api.Pointer] = []
        days = span.days(local_offset(self._now()))
        if days is not None:
            for node in periods.covering(*days)[:MOST_NODES]:
                if len(made) < limit and (pointer := await self._opened(run, node.id)) is not None:
                    made.append(pointer)
        level = Level.SEGMENT if days is not None and days[0] == days[1] else Level.DAY
        there = {pointer.node for pointer in made}
        within = await self._within(run, span.since, span.until, level, limit)
        run.nodes = (*made, *(pointer for pointer in within if pointer.node not in there))
        return [pointer.node for pointer in run.nodes]

    async def _latest(self, run: Run, limit: int) -> list[api.Pointer]:
        """Return the latest days on which something was said, the latest first."""
        now, found = self._now(), []
        for days in LATEST_DAYS:
            since = None if days is None else Millis(max(now - days * DAY_MS, 0))
            found = await self._within(run, since, None, Level.DAY, self._policy().work.page)
            if len(found) >= limit:
                break
        return found[::-1][:limit]

    async def _within(
        self, run: Run, since: Millis | None, until: Millis | None, level: Level, limit: int
    ) -> list[api.Pointer]:
        """Return the first nodes of a level with events between two times."""
        request = api.TimelineRequest(
            since=since,
            until=until,
            level=level.value,
            project=run.project,
            session_id=run.session_id,
            limit=min(limit, self._policy().work.page),
        )
        page = await self._toc.timeline(run.caller, request)
        return [self._pointer(node, level.value) for node in page.nodes]

    def _pointer(self, node: TocNode, level: str, *, day: str = "", session_id: str | None = None) -> api.Pointer:
        """Return a node of the table of contents as a pointer."""
        key = node.id.rpartition(":")[2] if level == Level.DAY.value else day
        return api.Pointer(
            node=node.id,
            level=level,
            title=cut_short(node.title, TITLE_CHARS),
            day=key or _day(node.start, local_offset(node.start)),
            score=0.0,
            start=node.start,
            end=node.end,
            grips=node.grip_ids[: self._policy().routing.grips],
            agents=node.agents,
            session_id=session_id,
            found_by=(plan.CONTENTS,),
        )

    async def talks(self, run: Run) -> int:
        """Return in how many talks of a day what was found so far stands."""
        ids = [id_ for events in run.found.values() for id_ in events if id_ not in run.placed]
        if ids:
            await run.layer(PLACES, lambda: self._place(run, ids))
        found = {id_ for events in run.found.values() for id_ in events}
        return len({(at.day, at.session_id) for id_, at in run.placed.items() if id_ in found})

    async def pointers(self, run: Run, limit: int) -> tuple[api.Pointer, ...]:
        """Return the best places of what was found, each opened for its title."""
        await self.talks(run)
        if ids := list(run.placed):
            await run.layer(plan.CONTENTS, lambda: self._segments(run, ids))
        best = spots(run.found, run.placed, run.times, self._policy().routing)[:limit]
        grips: dict[str, str] = {}
        await run.layer(PASSAGES, lambda: self._passages(run, best, grips))
        shown = [await self._shown(run, spot, grips) for spot in best]
        first, then = (run.nodes, shown) if run.plain else (shown, run.nodes)
        there = {pointer.node for pointer in first}
        shown = [*first, *(pointer for pointer in then if pointer.node not in there)]
        run.steps[:] = [step for step in run.steps if step.layer not in UNTOLD or step.note]
        return tuple(shown[:limit])

    async def _place(self, run: Run, ids: Sequence[str]) -> list[str]:
        """Find out when and in which session events were said."""
        events = await self._store.read(lambda q: q.events.by_id(ids, chars=0))
        run.placed |= {
            id_: Placed(
                ts=event.ts, day=_day(event.ts, event.utc_offset), session_id=event.session_id, agent=event.agent
            )
            for id_, event in events.items()
        }
        return list(events)

    async def _segments(self, run: Run, ids: Sequence[str]) -> list[str]:
        """Find out in which segments events stand."""
        found = await self._store.read(lambda q: q.toc.segments_of_events(ids))
        for id_, segment in found.items():
            if id_ in run.placed:
                at = run.placed[id_]
                run.placed[id_] = Placed(
                    ts=at.ts, day=segment.day, session_id=at.session_id, agent=at.agent, segment=segment.id
                )
        if len(found) < len(run.placed):
            run.notes.append("some of it is not in the table of contents yet: their days are named")
        return []

    async def _passages(self, run: Run, best: Sequence[Spot], grips: dict[str, str]) -> list[str]:
        """Find the passages of the best events of each place."""
        policy = self._policy().routing
        wanted = [event for spot in best for event in spot.events[: policy.grips]]
        weights = dict.fromkeys(run.query.tokens, 1.0)
        events = await self._store.read(lambda q: q.events.by_id(wanted, chars=SEARCHED_CHARS))

        def find() -> None:  # in a thread: two hundred long texts take a tenth of a second
            for id_, event in events.items():
                if event.text:
                    part = passage(event.text, weights, chars=policy.passage_chars)
                    grips[id_] = periods.grip_id(id_, part.start, part.end)

        await asyncio.to_thread(find)
        return []

    async def _shown(self, run: Run, spot: Spot, grips: Mapping[str, str]) -> api.Pointer:
        level = Level.DAY if spot.segment is None else Level.SEGMENT
        node = periods.node_id(level, spot.day if spot.segment is None else spot.segment)
        opened = await self._opened(run, node)
        policy = self._policy().routing
        return api.Pointer(
            node=node,
            level=level.value,
            title=opened.title if opened is not None else periods.title(Level.DAY, spot.day),
            day=spot.day,
            score=spot.score,
            start=Millis(spot.first) if opened is None else opened.start,
            end=Millis(spot.last) if opened is None else opened.end,
            grips=tuple(grips[event] for event in spot.events[: policy.grips] if event in grips),
            agents=spot.agents,
            session_id=spot.session_id,
            found_by=spot.layers,
        )

    async def _opened(self, run: Run, node: str) -> api.Pointer | None:
        """Return a node of the table of contents as a pointer, None where it is not there or cannot be read."""
        if plan.CONTENTS in run.states:
            return None
        opened: list[api.TocResponse] = []

        async def work() -> list[str]:
            request = api.TocRequest(id=node, project=run.project, session_id=run.session_id, limit=1)
            try:
                opened.append(await self._toc.toc(run.caller, request))
            except NotFoundError:  # a node that covers a time has not always something in it
                return []
            return [node]

        steps = len(run.steps)
        await run.layer(plan.CONTENTS, work)
        if plan.CONTENTS not in run.states:
            del run.steps[steps:]
        if not opened:
            return None
        found = opened[0]
        above = found.parents[0].rpartition(":")[2] if found.level == Level.SEGMENT.value and found.parents else ""
        return self._pointer(found.node, found.level, day=above, session_id=found.session_id)


def _day(at: int, utc_offset: int) -> str:
    """Return the civil day of a moment: 2026-11-21."""
    return (date(1970, 1, 1) + timedelta(minutes=at // 60_000 + utc_offset)).isoformat()
