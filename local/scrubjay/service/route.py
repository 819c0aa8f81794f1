"""Routing: what a question is after decides which layers are asked; they stand in for one another, and say how it went.

Theory of operation. The question is read by rules (`routing.intent`, `routing.timespans`), the course of its intent
says which layers are asked (`routing.plan`), each proposes events, and what they found together becomes pointers into
the table of contents (`routing.pointers`). Every layer runs by itself: one that fails is noted in the answer and in the
log, and the others go on. Where the table of contents cannot be read, a pointer names the day, which follows from the
event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.index.documents import EVENT
from scrubjay.models.active_embedder import Asked
from scrubjay.models.runtime import Models
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval import teleport
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.passages import SEARCHED_CHARS
from scrubjay.retrieval.query import Query
from scrubjay.routing import intent as intents
from scrubjay.routing import plan, pointers
from scrubjay.routing.timespans import Timespan, timespans
from scrubjay.service.index_maintainer import IndexMaintainer
from scrubjay.service.recall import Recall
from scrubjay.service.recall_request import checked, local_offset
from scrubjay.service.references import References
from scrubjay.service.route_health import Health, tier
from scrubjay.service.route_pointers import MOST_NODES, Pointing
from scrubjay.service.route_run import MODEL, Run, lap
from scrubjay.service.toc import Toc
from scrubjay.store import EventFilter, Queries, Store
from scrubjay.toc import periods
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, UnavailableError
from scrubjay_shared.text import estimate_tokens, query_tokens

log = logging.getLogger(__name__)

T = TypeVar("T")

LATER_DAYS = 7
"""How long after a time that is named its layers still look: what happened is told within the week."""


class Router:
    """Routes questions through the layers of one store."""

    def __init__(
        self,
        store: Store,
        policy: Callable[[], MemoryPolicy],
        *,
        maintainer: IndexMaintainer,
        models: Models,
        references: References,
        recall: Recall,
        toc: Toc,
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._maintainer = maintainer
        self._models = models
        self._references = references
        self._recall = recall
        self._now = now
        self._health = Health(store, maintainer=maintainer, models=models)
        self._pointing = Pointing(store, policy, toc=toc, now=now)

    async def teleport(self, caller: Caller, request: api.TeleportRequest) -> api.TeleportResponse:
        """Return pointers to what some words or their meaning lead to. Raises as `recall` for a bad request."""
        run = await self._run(caller, request, request.query)
        mode = request.mode.value
        if request.mode is not api.TeleportMode.KEYWORD and run.query.vector is None:
            mode = plan.KEYWORD
            run.notes.append("there is no vector to compare: by words alone")
        await run.layer(mode, lambda: self._proposed(run, mode))
        shown = await self._pointing.pointers(run, request.limit)
        failed = [state for state in run.states.values() if state.state is api.LayerState.FAILED]
        run.notes += [f"{state.name} failed: {state.detail}" for state in failed]
        return api.TeleportResponse(
            pointers=shown, mode=mode, elapsed_ms=lap(run.began), notes=tuple(dict.fromkeys(run.notes))
        )

    async def route(self, caller: Caller, request: api.RouteRequest) -> api.RouteResponse:
        """Return where a question's answer stands, and how that was found. Raises as `recall` for a bad request."""
        if request.timeout_ms is not None and request.timeout_ms < 1:
            raise InvalidError(f"timeout_ms must be 1 or more, got {request.timeout_ms}", hint="leave it out")
        run = await self._run(caller, request, request.query, timeout_ms=request.timeout_ms)
        words = tuple(span.words for span in run.times if span.words)
        reading = intents.classify(request.query, times=words)
        if request.intent is not None:
            reading = intents.Reading(intent=request.intent, confidence=1.0, reasons=("named by who asks",))
        about = plan.subject(request.query, words)
        course = plan.course(reading.intent, about)
        run.plain = course is plan.PLAIN.get(reading.intent)
        policy = self._policy().routing
        for layer in course.first:
            await self._ask(run, layer, request)
        for layer in course.fallback:
            found = await self._pointing.talks(run) + len(run.nodes)
            if found >= policy.enough or (found and (run.plain or layer == plan.EVENTS)):
                break  # a time may hold less than is enough; and the last resort is for where there is nothing
            await self._ask(run, layer, request)
        shown = await self._pointing.pointers(run, request.limit)
        hits = run.hits if course.answers else ()
        costs = [estimate_tokens(f"{each.node} {each.title} {' '.join(each.grips)}") for each in shown]
        spent = sum(estimate_tokens(hit.text) + sum(estimate_tokens(one.text) for one in hit.sources) for hit in hits)
        states = {state.name: state for state in [*await self._health.layers(), *run.states.values()]}
        return api.RouteResponse(
            intent=reading.intent,
            confidence=reading.confidence,
            reasons=reading.reasons,
            pointers=shown,
            hits=hits,
            steps=tuple(run.steps),
            layers=tuple(states.values()),
            tokens=sum(costs) + spent,
            elapsed_ms=lap(run.began),
            times=tuple(map(self._named, run.times)),
            notes=tuple(dict.fromkeys(run.notes)),
        )

    async def layers(self, _: Caller, _request: api.Nothing) -> api.LayersResponse:
        """Return how each layer is."""
        found = await self._health.layers()
        return api.LayersResponse(tier=tier(found), layers=tuple(found))

    # --- one question -------------------------------------------------------------------------------------------------

    async def _run(
        self, caller: Caller, request: api.TeleportRequest | api.RouteRequest, text: str, timeout_ms: int | None = None
    ) -> Run:
        """Return a question that is about to be routed. Raises InvalidError, TooLargeError or DeniedError."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        policy, now = self._policy(), self._now()
        [asked] = checked(
            api.RecallRequest(
                query=text,
                limit=request.limit,
                since=request.since,
                until=request.until,
                max_tokens=request.max_tokens if isinstance(request, api.RouteRequest) else None,
            ),
            seen,
            policy,
        )
        began = time.perf_counter()
        named = isinstance(request, api.RouteRequest) and request.since is None and request.until is None
        times = timespans(asked, now, local_offset(now)) if named else ()
        if request.since is not None or request.until is not None:
            times = (Timespan(since=request.since, until=request.until, words=""),)
        run = Run(
            caller=caller,
            query=Query(
                text=asked,
                tokens=tuple(query_tokens(asked)),
                dates=tuple(
                    (span.since, span.until) for span in times if span.since is not None and span.until is not None
                ),
            ),
            filters=Filters(
                caller_project=seen.project,
                caller_session=seen.session_id,
                kinds=frozenset({EVENT.name}),
                agent=request.agent,
                since=request.since,
                until=request.until,
            ),
            times=times,
            began=began,
            until=None if timeout_ms is None else began + timeout_ms / 1000,
            project=request.project,
            session_id=request.session_id,
        )
        run.notes += await self._references.notes_on(request.project)
        by_words = isinstance(request, api.TeleportRequest) and request.mode is api.TeleportMode.KEYWORD
        if asked.strip() and not by_words:
            await run.layer(MODEL, lambda: self._embed(run))
        return run

    async def _embed(self, run: Run) -> list[str]:
        asked, note = await self._models.embedder.ask(run.query.text)
        if asked is not None and asked.space == self._maintainer.space:
            run.query = _with(run.query, asked)
        elif note:
            run.notes.append(note)
        return []

    async def _ask(self, run: Run, layer: str, request: api.RouteRequest) -> None:
        """Ask one layer, and keep what it found."""
        if layer == plan.MEMORIES:
            await run.layer(layer, lambda: self._recalled(run, request))
        elif layer == plan.CONTENTS:
            await run.layer(layer, lambda: self._pointing.of_contents(run, request.limit))
        elif layer == plan.EVENTS:
            await run.layer(layer, lambda: self._scanned(run))
        else:
            await run.layer(layer, lambda: self._proposed(run, layer))

    # --- the layers ---------------------------------------------------------------------------------------------------

    async def _proposed(self, run: Run, layer: str) -> list[str]:
        """Return the events that words, meaning or both lead to."""
        if layer == plan.VECTOR and run.query.vector is None:
            raise UnavailableError("no embedding model is in use", hint="scrubjay models pull")
        await self._maintainer.indexed()
        index, policy = self._maintainer.index, self._policy()
        looked = policy.routing.looked
        if layer == plan.VECTOR:
            work = partial(teleport.by_meaning, index, run.query, run.filters, limit=looked)
        elif layer == plan.KEYWORD:
            work = partial(teleport.by_words, index, run.query, run.filters, policy.recall, limit=looked)
        else:
            work = partial(teleport.by_both, index, run.query, run.filters, policy.recall, limit=looked)
        return [event for event, _ in await asyncio.to_thread(work)]

    async def _recalled(self, run: Run, request: api.RouteRequest) -> list[str]:
        """Return the events behind what recall answers, in its order."""
        policy = self._policy()
        since = until = None
        if len(run.times) == 1:
            since, until = run.times[0].since, run.times[0].until
            until = None if until is None else Millis(until + LATER_DAYS * pointers.DAY_MS)
        answer = await self._recall.recall(
            run.caller,
            api.RecallRequest(
                query=request.query,
                limit=max(request.limit, policy.routing.hits),
                agent=request.agent,
                since=since,
                until=until,
                max_tokens=policy.routing.max_tokens if request.max_tokens is None else request.max_tokens,
                project=request.project,
                session_id=request.session_id,
            ),
        )
        run.hits = answer.hits
        run.notes += answer.notes
        events: dict[str, None] = {}
        for hit in answer.hits:
            ids = [hit.id] if hit.kind == EVENT.name else [source.event_id for source in hit.read_from]
            events.update(dict.fromkeys(ids))
        return list(events)

    async def _scanned(self, run: Run) -> list[str]:
        """Return the newest events that hold words of the question, read from the table itself: the last resort."""
        span = run.times[0] if run.times else Timespan(since=None, until=None, words="")
        chosen = EventFilter(
            project=run.filters.caller_project,
            own_session=run.filters.caller_session,
            since=span.since,
            until=span.until,
        )
        tokens = set() if run.plain else set(run.query.tokens)
        policy = self._policy().routing

        def work(q: Queries) -> list[tuple[int, str]]:
            held = []
            for event in q.routes.newest(chosen, limit=policy.scanned, chars=SEARCHED_CHARS):
                if run.filters.agent is None or event.agent == run.filters.agent:
                    count = len(tokens & {*query_tokens(event.text)})
                    if count or not tokens:
                        held.append((count, event.id))
            return held

        held = await self._store.read(work)
        held.sort(key=lambda entry: -entry[0])
        return [event for _, event in held[: policy.looked]]

    def _named(self, span: Timespan) -> api.NamedTime:
        days = span.days(local_offset(self._now()))
        nodes = () if days is None else tuple(node.id for node in periods.covering(*days)[:MOST_NODES])
        return api.NamedTime(words=span.words, since=span.since, until=span.until, nodes=nodes)


def _with(query: Query, asked: Asked) -> Query:
    return Query(
        text=query.text, tokens=query.tokens, vector=asked.vector, dates=query.dates, cosine_baseline=asked.spread
    )
