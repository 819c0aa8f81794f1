"""What was read of one session is stored: each new fact as a memory, each known one as a place more, at once.

Readers (patterns, an observer) say what they found and where; here it becomes writes, in one transaction with the mark
of how far the session was read. So a crash repeats a step or leaves it done, and two readers never store one fact
twice: what says the same as a memory that is there, or as an earlier fact of the step, only adds its places. The words
of what came first stay.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.distill import Observation, same_memory
from scrubjay.distill.answer import Promoted
from scrubjay.distill.observe import SOURCE
from scrubjay.jobs import successions
from scrubjay.lifecycle.supersession import NewStatement, Succession, stated
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, MemoryWrite, Statement, Store, Transaction
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, Grip, Kind, Memory, Scope, content_hash
from scrubjay_shared.text import analyse, fts_query

NEAR_CHARS = 8
"""A memory so many times as long as another says more than it. Comparing one of 8 MB with a sentence took 6 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader found in the next events of a session. `upto` is the arrival number up to which it read them.

    `events` are all that it was shown; `counts` are added to those of its `job`. With
    `keeps_streak`, the job's `malformed_reject_streak` goes on where some were malformed, and back to zero where none.
    """

    session_id: str
    events: Sequence[Event]
    upto: int
    job: str
    promoted: Sequence[Promoted]
    counts: Mapping[str, int] = field(default_factory=dict)
    keeps_streak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How many memories are new, how many known ones have more places, and how long the streak is now."""

    made: int
    merged: int
    streak: int = 0


class SessionCommit:
    """Stores readings. Between two memories it looks whether the process is `stopping`."""

    def __init__(self, store: Store, policy: MemoryPolicy, stopping: asyncio.Event) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping

    async def store(self, reading: Reading, cause: Cause) -> Stored | None:
        """Store a reading in one transaction; None where nothing was written and it is to be read again.

        That is so when the process stops, and when somebody added or forgot something of it meanwhile.
        """
        by_id = {event.id: event for event in reading.events}
        pending: dict[str, tuple[Promoted, list[Grip]]] = {}
        grown: dict[str, list[Grip]] = {}
        ended: list[Succession] = []
        for promoted in reading.promoted:
            if self._stopping.is_set():
                return None  # nothing of it is written yet: it is read again after the next start
            observation = promoted.observation
            known = await self._known(observation, [kept for kept, _ in pending.values()])
            if isinstance(known, Memory):
                memory_id = known.id
                grown.setdefault(memory_id, []).extend(_grips(memory_id, promoted, by_id))
            elif known is not None:
                memory_id = _observation_id(known.observation, by_id, known.source)
                pending[memory_id][1].extend(_grips(memory_id, promoted, by_id))
            else:
                memory_id = _observation_id(observation, by_id, promoted.source)
                pending[memory_id] = (promoted, _grips(memory_id, promoted, by_id))
            if promoted.supersedes is not None and promoted.supersedes.id != memory_id:
                statement = _statement(memory_id, observation, by_id)
                if (succession := stated(statement, promoted.supersedes)) is not None:
                    ended.append(succession)

        statements = [_statement(memory_id, kept.observation, by_id) for memory_id, (kept, _) in pending.items()]
        alike = [await successions.candidates_of(self._store, one.content, self._policy) for one in statements]
        named = {(one.old, one.new) for one in ended}
        found = await successions.find(statements, alike, self._policy, also_each_other=True)
        replaced = [*ended, *(one for one in found if (one.old, one.new) not in named)]

        def work(tx: Transaction) -> Stored | None:
            wanted = {
                (content_hash(kept.observation.content), kept.observation.scope, kept.observation.resource_id)
                for kept, _ in pending.values()
            }
            added = {
                (said, scope, resource)
                for said, scope, resource, _ in tx.queries.memories.duplicates(said for said, _, _ in wanted)
            }
            if added & wanted or tx.queries.events.erased_since(reading.events):
                return None  # somebody added or forgot something of this while it was read: read it again
            gone = tx.queries.ops.forgotten([*pending, *grown])
            refused = _refused(tx, {one: found for one, found in pending.items() if one not in gone})
            gone |= refused
            writes = [
                MemoryWrite(memory_id=memory_id, fields=_observed(kept.observation, by_id), grips=tuple(grips))
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
            tx.events.distilled(reading.session_id, reading.upto)
            counts = {**reading.counts, "forgotten_facts": len(refused)} if refused else reading.counts
            streak = tx.jobs.count(reading.job, counts, keeps_streak=reading.keeps_streak)
            return Stored(made=len(pending.keys() - gone), merged=len(grown), streak=streak)

        return await self._store.write(work, cause=cause)

    async def _known(self, observation: Observation, pending: Sequence[Promoted]) -> Memory | Promoted | None:
        """Return the stored memory or the earlier fact that already says this, if any."""
        earlier = same_memory(observation, [kept.observation for kept in pending], self._policy.distill)
        if earlier is not None:
            return next(kept for kept in pending if kept.observation is earlier)
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


def _refused(tx: Transaction, pending: Mapping[str, tuple[Promoted, Sequence[Grip]]]) -> set[str]:
    """Return which facts were forgotten for good: in their own words, or in those of a place they are read from."""
    said = [
        (memory_id, Statement(text=text, project=kept.resource_id if kept.scope is Scope.PROJECT else None))
        for memory_id, (promoted, grips) in pending.items()
        for kept in [promoted.observation]
        for text in (kept.content, *(grip.excerpt for grip in grips))
    ]
    left = tx.forget.left_of([statement for _, statement in said])
    return {memory_id for (memory_id, statement), text in zip(said, left, strict=True) if text != statement.text}


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


def _observation_id(observation: Observation, events: Mapping[str, Event], source: str) -> str:
    """Return the id of what is read at a place: the same on every device and on every repetition of a crashed job.

    Patterns read one thing at a place; an observer may find several there, in words of its own.
    """
    return _id_of(
        events[observation.event_id_start].ts,
        observation.event_id_start,
        observation.event_id_end,
        observation.span_start,
        observation.span_end,
        source,
        *(() if source == SOURCE else (content_hash(observation.content), observation.scope.value)),
    )


def _grips(memory_id: str, promoted: Promoted, events: Mapping[str, Event]) -> list[Grip]:
    """Return the places of a fact."""
    return [_grip(memory_id, place, events, promoted.source) for place in (promoted.observation, *promoted.also)]


def _grip(memory_id: str, observation: Observation, events: Mapping[str, Event], source: str) -> Grip:
    event = events[observation.event_id_start]
    return Grip(
        id=_id_of(event.ts, memory_id, observation.event_id_start, observation.span_start, observation.span_end),
        memory_id=memory_id,
        event_id_start=observation.event_id_start,
        event_id_end=observation.event_id_end,
        span_start=observation.span_start,
        span_end=observation.span_end,
        excerpt=observation.excerpt,
        source=source,
        created_at=event.ts,
    )


def _id_of(ts: Millis, *parts: object) -> str:
    return ulid(ts, hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:10])
