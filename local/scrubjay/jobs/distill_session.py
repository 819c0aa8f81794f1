"""One session distilled: its next events are read, and the memories in them stored with the passages they rest on."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scrubjay.distill import Observation, distill, same_memory
from scrubjay.distill.observe import SOURCE
from scrubjay.jobs import successions
from scrubjay.lifecycle.supersession import NewStatement
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, MemoryWrite, Store, Transaction
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, Grip, Kind, Memory, content_hash
from scrubjay_shared.text import analyse, fts_query

log = logging.getLogger(__name__)

NEAR_CHARS = 8
"""A memory so many times as long as another says more than it. Comparing one of 8 MB with a sentence took 6 s."""


class SessionDistiller:
    """Distils the sessions of one store. Between two memories it looks whether the process is `stopping`."""

    def __init__(self, store: Store, policy: MemoryPolicy, stopping: asyncio.Event) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping

    async def distill(self, session_id: str, names: Mapping[str, str], cause: Cause) -> int:
        """Distil the next events of one session and store what they say, in one transaction.

        Reading takes long and keeps nobody waiting: what was added or forgotten meanwhile is seen when it is written.
        """
        began = time.perf_counter()
        work_policy = self._policy.work
        events, new, upto = await self._store.read(
            lambda q: q.events.undistilled(
                session_id,
                context=work_policy.learn_context,
                limit=work_policy.learn_events,
                chars=self._policy.limits.page_chars,
            )
        )
        if not events:
            return 0
        found = await asyncio.to_thread(
            distill,
            events,
            new,
            policy=self._policy.distill,
            user_name=names.get("human") or names.get("user"),
            assistant_name=names.get("name"),
        )
        by_id = {event.id: event for event in events}
        pending: dict[str, tuple[Observation, list[Grip]]] = {}
        grown: dict[str, list[Grip]] = {}
        for observation in found.observations:
            if self._stopping.is_set():
                return 0  # nothing of it is written yet: it is read again after the next start
            known = await self._known(observation, [kept for kept, _ in pending.values()])
            if isinstance(known, Memory):
                grown.setdefault(known.id, []).append(_grip(known.id, observation, by_id))
            elif known is not None:
                memory_id = _observation_id(known, by_id)
                pending[memory_id][1].append(_grip(memory_id, observation, by_id))
            else:
                memory_id = _observation_id(observation, by_id)
                pending[memory_id] = (observation, [_grip(memory_id, observation, by_id)])

        statements = [_statement(memory_id, kept, by_id) for memory_id, (kept, _) in pending.items()]
        alike = [await successions.candidates_of(self._store, one.content, self._policy) for one in statements]
        replaced = await successions.find(statements, alike, self._policy, also_each_other=True)

        def work(tx: Transaction) -> int | None:
            wanted = {(content_hash(kept.content), kept.scope, kept.resource_id) for kept, _ in pending.values()}
            added = {
                (said, scope, resource)
                for said, scope, resource, _ in tx.queries.memories.duplicates(said for said, _, _ in wanted)
            }
            if added & wanted or tx.queries.events.erased_since(events):
                return None  # somebody added or forgot something of this while it was read: read it again
            gone = tx.queries.ops.forgotten([*pending, *grown])
            writes = [
                MemoryWrite(memory_id=memory_id, fields=_observed(kept, by_id), grips=tuple(grips))
                for memory_id, (kept, grips) in pending.items()
                if memory_id not in gone
            ]
            writes = successions.carry_out(tx, replaced, {write.memory_id: write.memory_id for write in writes}, writes)
            anchored = tx.queries.grips.anchored(grown)
            writes += [
                MemoryWrite(memory_id=memory_id, fields={}, grips=fresh)
                for memory_id, grips in grown.items()
                if memory_id not in gone and (fresh := tuple(grip for grip in grips if grip.id not in anchored))
            ]
            writes = _joined(writes)
            if writes:
                tx.memories.write(writes)
            tx.events.distilled(session_id, upto)
            return len(pending.keys() - gone)

        made = await self._store.write(work, cause=cause)
        if made is None:
            return 0
        log.info(
            "distilled events=%d memories=%d merged=%d ms=%d",
            len(new),
            made,
            len(grown),
            (time.perf_counter() - began) * 1000,
        )
        return made

    async def _known(self, observation: Observation, pending: Sequence[Observation]) -> Memory | Observation | None:
        """Return the stored memory or the earlier observation that already says this, if any."""
        earlier = same_memory(observation, pending, self._policy.distill)
        if earlier is not None:
            return earlier
        exact = await self._store.read(lambda q: q.memories.with_content([content_hash(observation.content)]))
        tokens = list(dict.fromkeys(analyse(observation.content)))[: self._policy.work.near_tokens]
        like = (
            await self._store.read(
                lambda q: q.memories.like(
                    fts_query(tokens), self._policy.work.near_candidates, chars=NEAR_CHARS * len(observation.content)
                )
            )
            if tokens
            else []
        )
        return same_memory(observation, [*exact, *like], self._policy.distill)


def _joined(writes: Sequence[MemoryWrite]) -> list[MemoryWrite]:
    """Return the writes, those to one memory as one: it may be anchored again and replaced by the same session."""
    joined: dict[str, MemoryWrite] = {}
    for write in writes:
        before = joined.get(write.memory_id)
        joined[write.memory_id] = (
            write
            if before is None
            else replace(before, fields={**before.fields, **write.fields}, grips=(*before.grips, *write.grips))
        )
    return list(joined.values())


def _statement(memory_id: str, said: Observation, events: Mapping[str, Event]) -> NewStatement:
    return NewStatement(
        id=memory_id,
        content=said.content,
        scope=said.scope,
        resource_id=said.resource_id,
        trust=said.trust,
        created_at=events[said.event_id_start].ts,
        valid_from=said.valid_from,
    )


def _observed(observation: Observation, events: Mapping[str, Event]) -> dict[Field, Any]:
    """Return the registers of a distilled memory. It was made when it was said, not when it was distilled."""
    event = events[observation.event_id_start]
    where = {"session_id": event.session_id, "agent": event.agent, "project": event.project}
    fields: dict[Field, Any] = {
        Field.CONTENT: observation.content,
        Field.KIND: Kind.OBSERVATION.value,
        Field.TYPE: observation.type.value,
        Field.SCOPE: observation.scope.value,
        Field.RESOURCE_ID: observation.resource_id,
        Field.SALIENCE: observation.salience,
        Field.CONFIDENCE: observation.confidence,
        Field.TOPIC: observation.topic,
        Field.TRUST: observation.trust.value,
        Field.VALID_FROM: observation.valid_from,
        Field.VALID_TO: observation.valid_to,
        Field.CREATED_AT: event.ts,
        Field.METADATA: {key: value for key, value in sorted(where.items()) if value is not None},
    }
    return {key: value for key, value in fields.items() if value is not None}


def _observation_id(observation: Observation, events: Mapping[str, Event]) -> str:
    """Return the id of what is read at a place: the same on every device and on every repetition of a crashed job."""
    return _id_of(
        events[observation.event_id_start].ts,
        observation.event_id_start,
        observation.event_id_end,
        observation.span_start,
        observation.span_end,
        SOURCE,
    )


def _grip(memory_id: str, observation: Observation, events: Mapping[str, Event]) -> Grip:
    event = events[observation.event_id_start]
    return Grip(
        id=_id_of(event.ts, memory_id, observation.event_id_start, observation.span_start, observation.span_end),
        memory_id=memory_id,
        event_id_start=observation.event_id_start,
        event_id_end=observation.event_id_end,
        span_start=observation.span_start,
        span_end=observation.span_end,
        excerpt=observation.excerpt,
        source=SOURCE,
        created_at=event.ts,
    )


def _id_of(ts: Millis, *parts: object) -> str:
    return ulid(ts, hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:10])
