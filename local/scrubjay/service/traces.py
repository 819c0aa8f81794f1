"""`trace`: the whole way of one memory or one request, from the log of ops and from the spans that are kept."""

from __future__ import annotations

import asyncio

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.policy import MemoryPolicy
from scrubjay.service.history import change_of
from scrubjay.service.paging import page_limit
from scrubjay.service.references import References
from scrubjay.store import Store
from scrubjay.tracing import Span, Tracer
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, millis_of, ulid_millis
from scrubjay_shared.errors import NotFoundError

_STAGES = {"event": "commit", "forget": "forget", "redact": "forget", "recalled": "recall"}
"""What stage an op is of that names no cause."""


class Traces:
    """Traces of one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, tracer: Tracer, *, references: References) -> None:
        self._store = store
        self._policy = policy
        self._tracer = tracer
        self._references = references

    async def trace(self, caller: Caller, request: api.TraceRequest) -> api.TraceResponse:
        """Return every step that is known of a memory, an event, a session, a request or a cause, oldest first.

        Raises NotFoundError where nothing is known of it.
        """
        limit = page_limit(self._policy, request.limit)
        try:
            found = await self._references.resolve(request.id, access.view(caller))
        except NotFoundError:
            found = request.id
        logged = await self._logged(found)
        spans = await asyncio.to_thread(self._tracer.find, found, limit)
        steps = sorted([*logged, *map(_step, spans)], key=lambda step: step.at)[-limit:]
        if not steps:
            raise NotFoundError(
                f"nothing is known of {request.id[:60]!r}",
                hint="give a memory's id or name, or the id of an event, a session, a request or a run;"
                " spans are kept for some days",
            )
        return api.TraceResponse(id=found, steps=tuple(steps), lost=self._tracer.lost)

    async def _logged(self, entity: str) -> list[api.TraceStep]:
        """Return what the log of ops says of a memory and of the events it was read from."""
        grips = (await self._store.read(lambda q: q.grips.of_memories([entity]))).get(entity, ())
        about = [entity, *dict.fromkeys(grip.event_id_start for grip in grips)]
        steps = []
        for one in about:
            for op, op_type, device, _ in await self._store.read(lambda q, one=one: q.ops.history(one)):  # type: ignore[misc]
                cause = None if op is None else ops.cause_of(op)
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
    )
