"""What was read of one session is stored: each new fact as a memory, each known one as a place more, at once.

Readers (patterns, an observer) say what they found and where; here it becomes writes, in one transaction with the mark
of how far the session was read. So a crash repeats a step or leaves it done, and two readers never store one fact
twice: what says the same as a memory that is there, or as an earlier fact of the step, only adds its places. The words
of what came first stay.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scrubjay.distill import Observation, same_memory
from scrubjay.distill.answer import SOURCE as OBSERVER
from scrubjay.distill.answer import UNTITLED, Promoted, Titled
from scrubjay.distill.attributed import is_plain
from scrubjay.distill.observe import PROMOTED, SOURCE
from scrubjay.distill.pasted import brings_others, is_all_own
from scrubjay.distill.restated import Told, restates, told
from scrubjay.intervals import TOLD
from scrubjay.jobs import successions
from scrubjay.jobs.alike import Alike
from scrubjay.lifecycle.relearning import PATTERNS, READER, Kept, Lesser
from scrubjay.lifecycle.supersession import NewStatement, Succession, contradicting, repeated, stated
from scrubjay.lifecycle.trust import is_believed, risks_of, waiting
from scrubjay.lifecycle.undo import was_undone
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, MemoryWrite, Statement, Store, Transaction
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.ops import Field
from scrubjay_shared.records import TRUST_ORDER, Event, Grip, Kind, Memory, Scope, Trust, content_hash

NEAR_CHARS = 8
"""A memory so many times as long as another says more than it. Comparing one of 8 MB with a sentence took 6 s."""


HANDED_CHARS = 4_000
"""Of a thing that was handed over: a turn, of which some sentences were shown."""


TRIES = 3
"""How often a reading is stored anew where somebody added what it says meanwhile: it is compared again each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Turns of a session that are read once more: those that arrived after a number, up to another.

    `ending` are memories that may end by it: the Writer is not shown them, or it would not say them again. `holds` says
    within the transaction whether this still goes on; `mark` notes there how far it came, and which memories stand.
    """

    after: int
    upto: int
    job: str
    ending: Collection[str]
    holds: Callable[[Transaction], bool]
    mark: Callable[[Transaction, int, Collection[str]], None]


class Refused(StrEnum):
    """Why a fact is not stored: the person rejected or forgot it, or the session was handed it from memory."""

    REJECTED = "rejected"
    FORGOTTEN = "forgotten"
    ECHO = "echo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader found in the next events of a session. `upto` is the arrival number up to which it read them.

    It is None of a reading out of turn, of events whose own turn is still to come or is long past: how far the session
    was read stays as it is, as it does of one `again`. `events` are all that it was shown; `counts` are added to those
    of its `job`. `titled` is what its reader calls those that are `fresh`, by id. With `keeps_streak`, the job's
    `malformed_reject_streak` goes on where some were malformed, and back to zero where none. What was learned of the
    events `taken_back` alone ends, when they were.
    """

    session_id: str
    events: Sequence[Event]
    upto: int | None
    job: str
    promoted: Sequence[Promoted]
    counts: Mapping[str, int] = field(default_factory=dict)
    keeps_streak: bool = False
    taken_back: Mapping[str, Millis] = field(default_factory=dict)
    again: Again | None = None
    titled: Titled = UNTITLED
    fresh: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The ids of memories that are new, and of known ones that were said again; what was counted, and the streak.

    `refused` says how many facts were not stored although the turns support them, by why.
    """

    new: tuple[str, ...]
    confirmed: tuple[str, ...]
    counts: Mapping[str, int]
    refused: Mapping[Refused, int]
    streak: int = 0


class SessionCommit:
    """Stores readings. Between two memories it looks whether the process is `stopping`."""

    def __init__(self, store: Store, policy: MemoryPolicy, stopping: asyncio.Event, alike: Alike) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._alike = alike

    async def store_at_last(self, reading: Reading, cause: Cause) -> Stored | None:
        """Store a reading, anew where somebody added what it says meanwhile; None where it is to be read again.

        That is so when the process stops, and when somebody forgot something of it meanwhile.
        """
        for _ in range(TRIES):
            stored = await self.store(reading, cause)
            if stored is not None:
                return stored
            erased = await self._store.read(lambda q: q.events.erased_since(reading.events))
            if erased or self._stopping.is_set():
                break
        return None

    async def store(self, reading: Reading, cause: Cause) -> Stored | None:
        """Store a reading in one transaction; None where nothing was written and it is to be read again.

        That is so when the process stops, when somebody added or forgot something of it meanwhile, and when what was
        read again is not to be any more.
        """
        by_id = {event.id: event for event in reading.events}
        taken = _Taken(by_id)
        said = [promoted.observation for promoted in reading.promoted]
        rejected = await successions.rejected(self._store, said, self._policy)
        texts = await self._store.read(lambda q: q.handed.texts(reading.session_id, chars=HANDED_CHARS))
        handed = await asyncio.to_thread(told, texts)
        refused: Counter[Refused] = Counter()
        for promoted in reading.promoted:
            if self._stopping.is_set():
                return None  # nothing of it is written yet: it is read again after the next start
            if _place(promoted.observation) in rejected:
                refused[Refused.REJECTED] += 1
            elif self._is_echo(promoted.observation, handed):
                refused[Refused.ECHO] += 1
            else:
                taken.take(
                    promoted, await self._known(promoted.observation, [kept for kept, _ in taken.pending.values()])
                )
        pending, grown = taken.pending, taken.grown

        statements = [_statement(memory_id, kept.observation, by_id) for memory_id, (kept, _) in pending.items()]
        alike = await successions.candidates(self._alike, [one.content for one in statements], self._policy)
        ended = [*taken.ended, *taken.repeated()]
        named = {(one.old, one.new) for one in ended}
        said_in = [by_id[kept.observation.event_id_start].text for kept, _ in pending.values()]
        turns = [text if len(text) <= self._policy.supersession.turn_chars else "" for text in said_in]
        found = await successions.find(statements, alike, self._policy, turns=turns)
        replaced = [*ended, *(one for one in found if (one.old, one.new) not in named)]
        reviews = await asyncio.to_thread(self._reviews, pending, by_id, contradicting(replaced))

        counted = _without_known(reading.counts, taken.confirmed)

        def work(tx: Transaction) -> Stored | None:
            if reading.again is not None and not reading.again.holds(tx):
                return None
            wanted = {
                (content_hash(kept.observation.content), kept.observation.scope, kept.observation.resource_id)
                for kept, _ in pending.values()
            }
            added = {
                (said, scope, resource)
                for said, scope, resource, there in tx.queries.memories.duplicates(said for said, _, _ in wanted)
                if there not in taken.outranked
            }
            if added & wanted or tx.queries.events.erased_since(reading.events):
                return None  # somebody added or forgot something of this while it was read: read it again
            gone = tx.queries.ops.forgotten([*pending, *grown])
            unwanted = _refused(tx, {one: found for one, found in pending.items() if one not in gone})
            there, undone = _made_before(tx, pending if reading.again is not None else ())
            gone |= unwanted | there
            anchored = tx.queries.grips.anchored({**grown, **{one: pending[one][1] for one in undone}})
            writes = [
                MemoryWrite(
                    memory_id=memory_id,
                    fields=_observed(kept.observation, by_id, reviews[memory_id])
                    | ({Field.ARCHIVED_AT: None} if memory_id in undone else {}),
                    grips=tuple(grip for grip in grips if grip.id not in anchored),
                )
                for memory_id, (kept, grips) in pending.items()
                if memory_id not in gone
            ]
            writes = successions.carry_out(tx, replaced, {write.memory_id: write.memory_id for write in writes}, writes)
            writes += [
                MemoryWrite(memory_id=memory_id, fields={}, grips=fresh)
                for memory_id, grips in grown.items()
                if memory_id not in gone and (fresh := tuple(grip for grip in grips if grip.id not in anchored))
            ]
            writes += _taken_back(tx, reading.taken_back)
            writes = _joined(writes)
            if writes:
                tx.memories.write(writes)
            _mark(tx, reading, {*pending, *grown})
            _title(tx, reading)
            counts = {**counted, "forgotten_facts": len(unwanted)} if unwanted else counted
            streak = tx.jobs.count(reading.job, counts, keeps_streak=reading.keeps_streak)
            forgotten = {Refused.FORGOTTEN: lost} if (lost := len((gone - there) & {*pending, *grown})) else {}
            return Stored(
                new=tuple(memory_id for memory_id in pending if memory_id not in gone),
                confirmed=tuple(memory_id for memory_id in grown if memory_id not in gone),
                counts=counts,
                refused={**refused, **forgotten},
                streak=streak,
            )

        return await self._store.write(work, cause=cause)

    async def _known(self, observation: Observation, pending: Sequence[Promoted]) -> Memory | Promoted | None:
        """Return the stored memory or the earlier fact that already says this, if any."""
        earlier = same_memory(observation, [kept.observation for kept in pending], self._policy.distill)
        if earlier is not None:
            return next(kept for kept in pending if kept.observation is earlier)
        exact = await self._store.read(lambda q: q.memories.with_content([content_hash(observation.content)]))
        like = await self._alike.to(observation.content, chars=NEAR_CHARS * len(observation.content))
        # What holds and is believed most first: a repetition confirms that one.
        there = sorted([*exact, *like], key=lambda one: (one.superseded_by is not None, -TRUST_ORDER.index(one.trust)))
        return same_memory(observation, there, self._policy.distill)

    def _is_echo(self, said: Observation, handed: Told) -> bool:
        """Say whether an agent only tells back what its session was handed: that is known, and confirms nothing."""
        return bool(handed) and said.trust is not Trust.USER and restates(said.content, handed, self._policy.distill)

    def _reviews(
        self,
        pending: Mapping[str, tuple[Promoted, list[Grip]]],
        events: Mapping[str, Event],
        contradicts: Collection[str],
    ) -> dict[str, str | None]:
        """Return the review of each new memory: None for one that nobody need look at."""
        return {
            memory_id: waiting(
                risks_of(
                    kept.observation.content,
                    trust=kept.observation.trust,
                    scope=kept.observation.scope,
                    kind=Kind.OBSERVATION,
                    policy=self._policy.review,
                    contradicts=memory_id in contradicts,
                    is_own=_is_own(kept, events),
                    by_others=any(brings_others(text) for text in _turns(kept, events)),
                    is_plain=all(is_plain(text) for text in _turns(kept, events)),
                )
            )
            for memory_id, (kept, _) in pending.items()
        }


@dataclass(slots=True)
class _Taken:
    """What was taken in of a reading: new memories, by id, and passages that confirm others, of this step or before.

    `outranked` are memories that say the same as a new one and are trusted less, with the id of that; `ended` is what
    ends because its author said so; `confirmed` are the facts that were known.
    """

    events: Mapping[str, Event]
    pending: dict[str, tuple[Promoted, list[Grip]]] = field(default_factory=dict)
    grown: dict[str, list[Grip]] = field(default_factory=dict)
    outranked: dict[str, str] = field(default_factory=dict)
    ended: list[Succession] = field(default_factory=list)
    confirmed: list[Promoted] = field(default_factory=list)

    def take(self, promoted: Promoted, known: Memory | Promoted | None) -> None:
        """Take a fact in, beside what says the same already."""
        memory_id = self._placed(promoted, known)
        if promoted.supersedes is not None and promoted.supersedes.id != memory_id:
            statement = _statement(memory_id, promoted.observation, self.events)
            if (succession := stated(statement, promoted.supersedes)) is not None:
                self.ended.append(succession)

    def _placed(self, promoted: Promoted, known: Memory | Promoted | None) -> str:
        """Return the memory that a fact is, or confirms: who is trusted less than it only confirms."""
        trust = promoted.observation.trust
        if isinstance(known, Memory) and is_believed(known.trust, trust):
            self.grown.setdefault(known.id, []).extend(_grips(known.id, promoted, self.events))
            self.confirmed.append(promoted)
            return known.id
        if isinstance(known, Promoted) and is_believed(known.observation.trust, trust):
            there = self._id(known)
            self.pending[there][1].extend(_grips(there, promoted, self.events))
            self.confirmed.append(promoted)
            return there
        memory_id = self._id(promoted)
        grips = _grips(memory_id, promoted, self.events)
        if isinstance(known, Memory):
            self.outranked[known.id] = memory_id
        elif known is not None:
            del self.pending[self._id(known)]
            grips += _grips(memory_id, known, self.events)
        self.pending[memory_id] = (promoted, grips)
        return memory_id

    def _id(self, promoted: Promoted) -> str:
        return _observation_id(promoted.observation, self.events, promoted.source)

    def repeated(self) -> list[Succession]:
        """Return that new memories take the place of the same ones, said by who is trusted less."""
        return [
            repeated(old, new, said.observation.trust, at=self.events[said.observation.event_id_start].ts)
            for old, new in self.outranked.items()
            if new in self.pending
            for said, _ in [self.pending[new]]
        ]


def _is_own(promoted: Promoted, events: Mapping[str, Event]) -> bool:
    """Say whether all turns that a fact was read from are the person's own words."""
    places = (promoted.observation, *promoted.also)
    if any(place.trust is not Trust.USER for place in places):
        return False
    return all(is_all_own(text) for text in _turns(promoted, events))


def _turns(promoted: Promoted, events: Mapping[str, Event]) -> list[str]:
    """Return the texts of the turns that a fact was read from."""
    places = (promoted.observation, *promoted.also)
    return [events[at].text for place in places for at in {place.event_id_start, place.event_id_end}]


def _without_known(counts: Mapping[str, int], confirmed: Sequence[Promoted]) -> dict[str, int]:
    """Return what was counted of an observer's answer: a fact that was known is a duplicate, and nothing promoted."""
    found = Counter(counts)
    for one in confirmed:
        if one.source == OBSERVER:
            found[PROMOTED[one.observation.scope]] -= 1
            found["duplicates"] += 1
    return {name: count for name, count in found.items() if count}


def _taken_back(tx: Transaction, events: Mapping[str, Millis]) -> list[MemoryWrite]:
    """Return what ends since the person takes it back, and that what it had replaced holds again.

    What somebody pinned, edited, named, accepted or found helpful stays: they did not mean that.
    """
    learned = tx.queries.grips.learned_of(events) if events else {}
    weighed = tx.queries.relearning.weighed(list(learned), (), Lesser(begins=(PATTERNS, READER)))
    gone = [one for one in learned if one in weighed and weighed[one][1] in {None, Kept.CITED}]
    ends = [MemoryWrite(memory_id=one, fields={Field.VALID_TO: int(events[learned[one]])}, grips=()) for one in gone]
    again = {Field.SUPERSEDED_BY: None, Field.VALID_TO: None}
    back = [old.id for one in gone for old in tx.queries.memories.superseded_by(one)]
    return [*ends, *(MemoryWrite(memory_id=one, fields=dict(again), grips=()) for one in back)]


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


def _mark(tx: Transaction, reading: Reading, said: Collection[str]) -> None:
    """Note how far a session was read, and of what is read again which memories say it."""
    if reading.again is not None and reading.upto is not None:
        reading.again.mark(tx, reading.upto, said)
    elif reading.upto is not None:
        tx.events.distilled(reading.session_id, reading.upto)


def _title(tx: Transaction, reading: Reading) -> None:
    """Keep what a reader calls the turns, for the table of contents; not what says forgotten words."""
    titled = [reading.titled.title, reading.titled.summary]
    projects = {event.project for event in reading.events if event.id in reading.fresh}
    said = [Statement(text=text, project=project) for text in titled for project in projects]
    if any(titled) and tx.forget.left_of(said) == [one.text for one in said]:
        tx.toc.tell([event.id for event in reading.events], reading.fresh, *titled)


def _made_before(tx: Transaction, ids: Collection[str]) -> tuple[set[str], set[str]]:
    """Return which memories are there already, and which of them undoing put away: these come back by being read again.

    The others stay as they are: somebody changed their words, ended them or put them away.
    """
    found = tx.queries.memories.by_id([*ids], chars=0)
    away = [one for one, memory in found.items() if memory.archived_at is not None]
    undone = {one for one, log in tx.queries.ops.of_entities(away).items() if was_undone(log)}
    return found.keys() - undone, undone


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
        metadata=_undated(events[said.event_id_start]),
    )


def _undated(event: Event) -> dict[str, Any]:
    """Return what is noted of a memory whose event told a time that cannot be."""
    return {TOLD: event.metadata[TOLD]} if TOLD in event.metadata else {}


def _place(said: Observation) -> successions.Place:
    return content_hash(said.content), said.scope.value, said.resource_id


def _observed(observation: Observation, events: Mapping[str, Event], review: str | None) -> dict[Field, Any]:
    """Return the registers of a distilled memory. It was made when it was said, not when it was distilled."""
    event = events[observation.event_id_start]
    where = {"session_id": event.session_id, "agent": event.agent, "project": event.project, **_undated(event)}
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
        Field.REVIEW: review,
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
