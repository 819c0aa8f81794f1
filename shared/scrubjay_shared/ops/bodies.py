"""The bodies of ops, made from records, and what can be asked of an op. The order of keys is part of the bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrubjay_shared.clock import Millis, shown_time, ulid_bytes, ulid_text
from scrubjay_shared.ops.blanks import blanked
from scrubjay_shared.ops.schema import (
    ALSO,
    BASES,
    CAUSE,
    CLAIMED,
    COUNTER,
    EMPTIED,
    ENTITY,
    FIELDS,
    LAST,
    LIFTED,
    NEW_KEY,
    OWNER,
    SEEN,
    SPANS,
    TOTAL,
    VALUE_KEY,
    VALUE_PROJECT,
    VALUES,
    Counter,
    Field,
    OpType,
)
from scrubjay_shared.ops.stamps import Stamp, wire_of
from scrubjay_shared.records import TRUST_OF, Event, EventType, Grip, Op, Role, Trust, least
from scrubjay_shared.tombstones import DIGEST_BYTES, KEY_BYTES

ID_BYTES = 16
MAX_TOTAL = 1 << 40
"""The most that one device can have counted: a recall a millisecond for 35 years. Sums of many stay in 63 bits."""


def event_body(event: Event) -> dict[int, Any]:
    """Return the body of the op that appends an event. Absent keys are absent values; the device is the op's."""
    body: dict[int, Any] = {
        ENTITY: ulid_bytes(event.id),
        2: event.agent,
        3: event.session_id,
        4: event.type.value,
        5: event.role.value,
        6: event.text,
        7: event.ts,
        8: event.dedupe_key,
    }
    if event.project is not None:
        body[9] = event.project
    if event.utc_offset:
        body[10] = event.utc_offset
    body[11] = event.trust.value
    if event.metadata:
        body[12] = event.metadata
    return body


def memory_body(
    memory_id: str,
    fields: Mapping[Field, Any],
    bases: Mapping[Field, Stamp] | None = None,
    also: Mapping[Field, Iterable[Stamp]] | None = None,
) -> dict[int, Any]:
    """Return the body of a write to some registers.

    `bases` are the stamps of the values that the writer replaced, `also` those of other versions that it settles.
    """
    body: dict[int, Any] = {ENTITY: ulid_bytes(memory_id), FIELDS: {int(key): value for key, value in fields.items()}}
    if bases:
        body[BASES] = {int(key): wire_of(stamp) for key, stamp in bases.items()}
    if also:
        body[ALSO] = {int(key): [wire_of(stamp) for stamp in sorted(stamps)] for key, stamps in also.items()}
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenWords:
    """What is left of forgotten words: the id of a key, digests under it, and that of the project they were of."""

    key: str
    digests: tuple[bytes, ...]
    project: bytes = b""
    """Empty for what was of no project: it is refused in all."""


def forget_body(
    entity: str, owner: str | None = None, words: ForgottenWords | None = None, *, lifted: bool = False
) -> dict[int, Any]:
    """Return the body of a forget: the id of a memory, an event or a grip. `owner` is the memory of a grip.

    `words` are refused from then on; `lifted` says that they are no more.
    """
    body: dict[int, Any] = {ENTITY: ulid_bytes(entity)}
    if owner is not None:
        body[OWNER] = ulid_bytes(owner)
    if words is not None:
        body[VALUE_KEY] = ulid_bytes(words.key)
        body[VALUES] = sorted(words.digests)
        if words.project:
            body[VALUE_PROJECT] = words.project
    if lifted:
        body[LIFTED] = True
    return body


def new_key_body(key_id: str, key: bytes) -> dict[int, Any]:
    """Return the body that gives a key for digests of forgotten words: a forget of an id that nothing else has.

    So a reader from before applies it too, and keeps it, and its lane is packed as ever.
    """
    return {ENTITY: ulid_bytes(key_id), NEW_KEY: key}


def claim_body(memory_id: str, name: str) -> dict[int, Any]:
    """Return the body of a claim to a name. The claim's stamp is the op's."""
    return {ENTITY: ulid_bytes(memory_id), CLAIMED: name}


def unclaim_body(memory_id: str, name: str, seen: Iterable[Stamp]) -> dict[int, Any]:
    """Return the body that takes a name away: it ends the claims in `seen`, and no claim made elsewhere meanwhile."""
    return {
        ENTITY: ulid_bytes(memory_id),
        CLAIMED: name,
        SEEN: [wire_of(stamp) for stamp in sorted(seen)],
    }


def count_body(memory_id: str, counter: Counter, total: int, last: Millis) -> dict[int, Any]:
    """Return the body of this device's running total of a counter, and when it last rose."""
    return {ENTITY: ulid_bytes(memory_id), COUNTER: int(counter), TOTAL: total, LAST: last}


def grip_body(grip: Grip) -> dict[int, Any]:
    """Return the body of the op that anchors a memory in events."""
    return {
        ENTITY: ulid_bytes(grip.memory_id),
        2: ulid_bytes(grip.id),
        3: ulid_bytes(grip.event_id_start),
        4: ulid_bytes(grip.event_id_end),
        5: grip.span_start,
        6: grip.span_end,
        7: grip.excerpt,
        8: grip.source,
        9: grip.created_at,
    }


def blank_body(event_id: str, spans: Iterable[tuple[int, int]]) -> dict[int, Any]:
    """Return the body of an erasure of passages (character spans) of an event's text."""
    return {ENTITY: ulid_bytes(event_id), SPANS: sorted([start, end] for start, end in spans)}


def entity_of(op: Op) -> str:
    """Return the id of what an op is about; a grip's op is about its memory."""
    return ulid_text(op.body[ENTITY])


def fields_of(op: Op) -> tuple[Field, ...]:
    """Return the registers that an op of type MEMORY writes or wrote, as far as this version knows them."""
    return tuple(Field(key) for key in [*op.body.get(FIELDS, {}), *op.body.get(EMPTIED, ())] if key in set(Field))


def emptied(op: Op, keys: Collection[int]) -> Op:
    """Return an op of type MEMORY without its values for some registers. What it has seen of them stays.

    The same object where it has none of these values. Which came first changes nothing of the bytes.
    """
    values = op.body[FIELDS]
    if not (gone := {int(key) for key in keys if key in values}):
        return op
    body = {key: value for key, value in op.body.items() if key != CAUSE}
    body[FIELDS] = {key: value for key, value in values.items() if key not in gone}
    body[EMPTIED] = sorted({*body.get(EMPTIED, ()), *gone})
    if CAUSE in op.body:
        body[CAUSE] = op.body[CAUSE]
    return replace(op, body=body)


def is_replacing(op: Op) -> bool:
    """Whether an op is a write to a memory that takes the place of an earlier one."""
    return op.type == OpType.MEMORY and bool(op.body.get(BASES) or op.body.get(ALSO))


def is_hollow(op: Op) -> bool:
    """Whether an op of type MEMORY has no value left: it says what it superseded, and nothing else."""
    return op.type == OpType.MEMORY and not op.body.get(FIELDS) and bool(op.body.get(EMPTIED))


def owner_of(op: Op) -> str | None:
    """Return the memory of the grip that an op of type FORGET is about, where it says so."""
    return ulid_text(op.body[OWNER]) if op.type == OpType.FORGET and OWNER in op.body else None


def words_of(op: Op) -> ForgottenWords | None:
    """Return what is left of the words that an op of type FORGET is about; None where that is nothing we can read."""
    body = op.body
    key, digests, project = body.get(VALUE_KEY), body.get(VALUES), body.get(VALUE_PROJECT, b"")
    if (
        op.type == OpType.FORGET
        and isinstance(key, bytes)
        and len(key) == ID_BYTES
        and isinstance(digests, list)
        and all(isinstance(one, bytes) and len(one) == DIGEST_BYTES for one in digests)
        and isinstance(project, bytes)
        and len(project) in {0, DIGEST_BYTES}
    ):
        return ForgottenWords(key=ulid_text(key), digests=tuple(digests), project=project)
    return None


def new_key_of(op: Op) -> bytes | None:
    """Return the key that an op of type FORGET gives under its entity's id; None where it gives none."""
    key = op.body.get(NEW_KEY)
    return key if op.type == OpType.FORGET and type(key) is bytes and len(key) == KEY_BYTES else None


def lifts(op: Op) -> bool:
    """Whether an op of type FORGET says that the words of its entity are refused no more."""
    return op.type == OpType.FORGET and op.body.get(LIFTED) is True


def of_id_alone(body: Mapping[int, Any]) -> dict[int, Any]:
    """Return the body of a forget without what it says of words."""
    return {key: value for key, value in body.items() if key not in _OF_WORDS}


_OF_WORDS = frozenset({VALUE_KEY, VALUES, VALUE_PROJECT, NEW_KEY, LIFTED})


def grip_of(op: Op) -> str:
    """Return the id of the grip that an op of type GRIP makes."""
    return ulid_text(op.body[2])


def named_in(op: Op) -> frozenset[str]:
    """Return the ids that an op names: what it is about, the events of a grip, what takes a memory's place."""
    named = {entity_of(op)}
    if op.type == OpType.GRIP:
        named.update(ulid_text(op.body[key]) for key in (2, 3, 4))
    elif op.type == OpType.MEMORY and isinstance(successor := op.body[FIELDS].get(Field.SUPERSEDED_BY), str):
        named.add(successor)
    return frozenset(named)


def name_of(op: Op) -> str:
    """Return the name that an op of type CLAIM or UNCLAIM is about."""
    name: str = op.body[CLAIMED]
    return name


def stamps_of(op: Op) -> list[tuple[str, int | str, int]]:
    """Return what an op gives its stamp to: (entity, field or name, hlc) of each register and each claim."""
    if op.type == OpType.MEMORY:
        return [(entity_of(op), key, int(op.hlc)) for key in [*op.body[FIELDS], *op.body.get(EMPTIED, ())]]
    return [(entity_of(op), op.body[CLAIMED], int(op.hlc))] if op.type == OpType.CLAIM else []


def counted(op: Op, total: int) -> Op:
    """Return an op of type COUNT with another total."""
    return replace(op, body={**op.body, TOTAL: total})


def total_of(op: Op) -> tuple[int, int, Millis]:
    """Return what an op of type COUNT says: (counter, total, when it last rose)."""
    return op.body[COUNTER], min(max(op.body[TOTAL], 0), MAX_TOTAL), shown_time(op.body[LAST])


def spans_of(op: Op) -> list[tuple[int, int]]:
    """Return the passages that an op of type BLANK erases."""
    return [(start, end) for start, end in op.body[SPANS]]


def with_blanks(op: Op, spans: Collection[tuple[int, int]]) -> Op:
    """Return an op of type EVENT with some passages of its text erased."""
    return replace(op, body={**op.body, 6: blanked(op.body[6], spans)})


def event_of(op: Op) -> Event:
    """Return the event that an op of type EVENT appends."""
    body = op.body
    return Event(
        id=ulid_text(body[ENTITY]),
        device=op.device,
        agent=body[2],
        session_id=body[3],
        type=EventType(body[4]),
        role=Role(body[5]),
        text=body[6],
        ts=Millis(body[7]),
        dedupe_key=body[8],
        project=body.get(9),
        utc_offset=body.get(10, 0),
        trust=trust_of(body),
        metadata=body.get(12, {}),
    )


def trust_of(body: Mapping[int, Any]) -> Trust:
    """Return how far the event of an op's body is believed: as its writer said, and at most what its role allows."""
    return _TRUSTED[body[5], body[11]]


def trust_word(body: Mapping[int, Any]) -> str:
    """Return what `trust_of` does, as the text that rows and ops keep: twice for each event of a new device."""
    return _TRUST_WORDS[body[5], body[11]]


_TRUSTED = {(role.value, trust.value): least(trust, most) for role, most in TRUST_OF.items() for trust in Trust}
_TRUST_WORDS = {key: trust.value for key, trust in _TRUSTED.items()}


def grip_made_by(op: Op) -> Grip:
    """Return the grip that an op of type GRIP makes."""
    body = op.body
    return Grip(
        id=ulid_text(body[2]),
        memory_id=ulid_text(body[ENTITY]),
        event_id_start=ulid_text(body[3]),
        event_id_end=ulid_text(body[4]),
        span_start=body[5],
        span_end=body[6],
        excerpt=body[7],
        source=body[8],
        created_at=shown_time(body[9]),
    )
