"""Review: what waits for the person, and what the person says of it. Only the person asks and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scrubjay import api
from scrubjay.api.access import EVERYTHING
from scrubjay.api.caller import Caller
from scrubjay.importers import reconcile
from scrubjay.lifecycle.trust import reasons
from scrubjay.policy import MemoryPolicy
from scrubjay.service.paging import cursor, cursor_text, page_limit
from scrubjay.service.references import References
from scrubjay.store import MemoryWrite, Store, Transaction
from scrubjay.store.queries import Queries
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Memory, ReviewState, review_state

OPEN = (ReviewState.WAITING, ReviewState.DISPUTED)
"""What somebody should look at."""

QUOTED = 3
"""Passages shown of a memory: where it came from, and not all that confirms it."""

QUOTED_CHARS = 400
"""Of a passage: three sentences."""

DECIDED_AT_ONCE = 200
"""Memories that are decided on in one transaction."""


class Review:
    """The queue of one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, references: References) -> None:
        self._store = store
        self._policy = policy
        self._references = references

    async def review(self, _: Caller, request: api.ReviewRequest) -> api.ReviewResponse:
        """Return a page of what is in review, newest first, with the words that each was read from."""
        limit = page_limit(self._policy, request.limit)
        states = OPEN if request.state is None else (request.state,)
        after = cursor(request.cursor)
        chars = self._policy.limits.page_chars

        def read(queries: Queries) -> tuple[list[api.Reviewed], tuple[int, int] | None, dict[str, int]]:
            found, more = queries.review.page([state.value for state in states], after=after, limit=limit, chars=chars)
            return _with_sources(queries, found), more, queries.review.counts()

        entries, more, counts = await self._store.read(read)
        return api.ReviewResponse(entries=tuple(entries), counts=counts, next=cursor_text(more))

    async def decide(self, _: Caller, request: api.DecideRequest) -> api.DecideResponse:
        """Accept or reject memories. Raises InvalidError unless some are named, or all that wait are meant."""
        if bool(request.refs) == request.every:
            raise InvalidError(
                "name the memories, or say that you mean all that wait", hint="scrubjay review lists them"
            )
        most = self._policy.work.page
        if len(request.refs) > most:
            raise InvalidError(f"refs must hold at most {most} references, got {len(request.refs)}", hint="name fewer")
        if request.every:
            ids = await self._store.read(lambda q: q.review.waiting())
        else:
            ids = list(dict.fromkeys([await self._references.resolve(ref, EVERYTHING) for ref in request.refs]))
        cause = self._store.new_cause("review")
        changed: list[str] = []
        for at in range(0, len(ids), DECIDED_AT_ONCE):
            batch = ids[at : at + DECIDED_AT_ONCE]
            changed += await self._store.write(partial(_decided, ids=batch, accept=request.accept), cause=cause)
        return api.DecideResponse(memories=tuple(changed), accepted=request.accept, cause=cause.id if changed else None)


def _decided(tx: Transaction, ids: Sequence[str], *, accept: bool) -> list[str]:
    """Write what a person says of some memories. Returns which that changes; one that is gone is passed over."""
    shown = tx.queries.memories.by_id(ids)
    state = ReviewState.ACCEPTED if accept else ReviewState.REJECTED
    writes = [
        MemoryWrite(memory_id=memory_id, fields=decision(shown[memory_id], state, now=int(tx.now)), settles=True)
        for memory_id in ids
        if memory_id in shown and review_state(shown[memory_id].review) is not state
    ]
    if writes:
        tx.memories.write(writes)
    return [write.memory_id for write in writes]


def decision(memory: Memory, state: ReviewState, *, now: int) -> Mapping[Field, Any]:
    """Return the registers of a memory that a person accepts or rejects: one that was rejected before comes back."""
    fields: dict[Field, Any] = {Field.REVIEW: state.value}
    if state is ReviewState.REJECTED and memory.archived_at is None:
        fields[Field.ARCHIVED_AT] = now
    elif state is ReviewState.ACCEPTED and review_state(memory.review) is ReviewState.REJECTED:
        fields[Field.ARCHIVED_AT] = None
    return fields


def _with_sources(queries: Queries, memories: Sequence[Memory]) -> list[api.Reviewed]:
    grips = queries.grips.of_memories([memory.id for memory in memories])
    shown = {memory.id: list(grips.get(memory.id, ()))[:QUOTED] for memory in memories}
    events = queries.events.by_id([grip.event_id_start for found in shown.values() for grip in found], chars=0)
    return [
        api.Reviewed(
            memory=memory,
            state=review_state(memory.review) or ReviewState.WAITING,
            reasons=reasons(memory.review),
            sources=tuple(
                api.Quote(
                    event_id=event.id,
                    session_id=event.session_id,
                    ts=event.ts,
                    utc_offset=event.utc_offset,
                    speaker=f"{event.speaker} ({event.agent})",
                    text=grip.excerpt[:QUOTED_CHARS],
                )
                for grip in shown[memory.id]
                if (event := events.get(grip.event_id_start)) is not None
            ),
            places=tuple(
                api.Place(
                    file=str(place.get("path") or place.get("source") or ""), heading=str(place.get("heading", ""))
                )
                for place in reconcile.places(memory.metadata)[:QUOTED]
            ),
        )
        for memory in memories
    ]
