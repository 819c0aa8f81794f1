"""`trace`: the whole way of one memory or one request, from the log of ops and from the spans that are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.policy import MemoryPolicy
from scrubjay.service.history import change_of
from scrubjay.service.paging import page_limit
from scrubjay.service.references import References
from scrubjay.store import Store
from scrubjay.store.queries import Queries
from scrubjay.tracing import Span, Tracer
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, millis_of, ulid_millis
from scrubjay_shared.errors import NotFoundError

_STAGES = {"event": "commit", "forget": "forget", "redact": "forget", "recalled": "recall"}
"""What stage an op is of that names no cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What is followed: the id that spans know it by, and the memories and events whose ops are its steps.

    `cause` is set for a run or a request that wrote: only ops of its own count.
    """

    id: str
    entities: tuple[str, ...] = ()
    cause: str | None = None


class Traces:
    """Traces of one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, tracer: Tracer, *, references: References) -> None:
        self._store = store
        self._policy = policy
        self._tracer = tracer
        self._references = references

    async def trace(self, caller: Caller, request: api.TraceRequest) -> api.TraceResponse:
        """Return every step that is known of a memory, an event, a session, a request or a cause, oldest first.

        Raises NotFoundError where nothing is known of it, ConflictError where the beginning of an id fits several.
        """
        limit = page_limit(self._policy, request.limit)
        place = await self._place(caller, request.id, limit)
        logged = await self._logged(place)
        spans = await asyncio.to_thread(self._tracer.find, place.id, limit)
        steps = sorted([*logged, *map(_step, spans)], key=lambda step: step.at)[-limit:]
        if not steps:
            raise NotFoundError(
                f"nothing is known of {request.id[:60]!r}",
                hint="give a memory's id or name, or the id of an event, a session, a request or a run;"
                " spans are kept for some days",
            )
        return api.TraceResponse(id=place.id, steps=tuple(steps), lost=self._tracer.lost)

    async def _place(self, caller: Caller, ref: str, limit: int) -> _Place:
        """Return what a reference means: a memory, an event, a run or a session, in this order; else a request."""
        seen = access.view(caller)
        try:
            memory = await self._references.resolve(ref, seen)
        except NotFoundError:
            event = await self._references.event(ref, seen)
        else:
            return _Place(id=memory, entities=await self._store.read(lambda q: _with_sources(q, memory)))
        if event is not None:
            return _Place(id=event, entities=await self._store.read(lambda q: _with_learned(q, [event])))
        return await self._store.read(lambda q: _run(q, ref) or _session(q, ref, limit)) or _Place(
            id=ref, entities=(ref,)
        )

    async def _logged(self, place: _Place) -> list[api.TraceStep]:
        """Return what the log of ops says of a place: of a run only what it wrote itself."""
        steps = []
        for one in place.entities:
            for op, op_type, device, _ in await self._store.read(lambda q, one=one: q.ops.history(one)):  # type: ignore[misc]
                cause = None if op is None else ops.cause_of(op)
                if place.cause is not None and cause != place.cause:
                    continue
                change = change_of(op_type)
                steps.append(
                    api.TraceStep(
                        at=ulid_millis(one) if op is None else millis_of(Hlc(op.hlc)),
                        stage=_STAGES.get(change, "commit") if cause is None else cause.partition(":")[0],
                        name=change,
                        cause=cause,
                        device=device,
                        ids=(one,),
                        count=1,
                    )
                )
        return steps


def _with_sources(queries: Queries, memory_id: str) -> tuple[str, ...]:
    """Return a memory and the events that it was read from."""
    grips = queries.grips.of_memories([memory_id]).get(memory_id, ())
    return (memory_id, *dict.fromkeys(grip.event_id_start for grip in grips))


def _with_learned(queries: Queries, event_ids: Sequence[str]) -> tuple[str, ...]:
    """Return events and the memories that were read from them."""
    learned = (grip.memory_id for event_id in event_ids for grip in queries.grips.over(event_id, None))
    return (*event_ids, *dict.fromkeys(learned))


def _run(queries: Queries, ref: str) -> _Place | None:
    """Return the run or the request of an id or of its beginning, as `history` shows it; None where there is none."""
    try:
        found = queries.causes.resolve(ref)
    except NotFoundError:
        return None
    return _Place(id=found.id, entities=tuple(queries.causes.memories(found.n)), cause=found.id)


def _session(queries: Queries, ref: str, limit: int) -> _Place | None:
    """Return a session with its last events, at most so many, and what was learned of them; None where it is none."""
    if not queries.events.has_session(ref):
        return None
    return _Place(id=ref, entities=_with_learned(queries, queries.events.last_ids(ref, limit)))


def _step(span: Span) -> api.TraceStep:
    return api.TraceStep(
        at=span.at,
        ms=span.ms,
        stage=span.stage,
        name=span.name,
        request=span.request,
        session=span.session,
        cause=span.cause,
        ids=span.ids,
        count=span.count,
        error=span.error,
        model=span.model,
        input_tokens=span.input_tokens,
        output_tokens=span.output_tokens,
    )
