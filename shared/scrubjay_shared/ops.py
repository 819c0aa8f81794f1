"""The op log's meaning: what one change says, how changes merge, and what they add up to. Pure, and free of policy.

Theory of operation. Everything that is not derived is the fold of a set of ops. The fold is commutative, associative
and idempotent, so that any two replicas holding the same ops show the same view, whatever order they came in:

* events and grips are grow-only sets by id;
* a memory is a set of registers, one a field; a register keeps every version `{(hlc, device): (value, base)}` and shows
  the greatest stamp. A version that is no ancestor (through `base`) of the shown one is an open conflict, never lost;
* names are a set of claims; the smallest live stamp holds a name, the others show as `name~2`, `name~3`;
* counters are a running total per device, merged by the greater;
* `forget` is absorbing: it beats every edit, earlier or later. Blanked passages of an event are a union of spans.

The encoding is `[type, version, op_id, hlc, body]` in MessagePack (sync.md §3.6). Types and fields are only ever added;
an op of an unknown type is kept and folds to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import msgspec

from scrubjay_shared.clock import Hlc, Millis, millis_of, ulid_bytes, ulid_text
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.records import (
    Alias,
    Event,
    EventType,
    Grip,
    Kind,
    Layer,
    Memory,
    MemoryType,
    Op,
    Role,
    Scope,
    Trust,
    content_hash,
)

Stamp = tuple[int, str]
"""When and where a write happened: (hlc, device). Greater is later; ties between devices break by device."""


class OpType(IntEnum):
    """What an op says. Numbers are wire format: never reused."""

    EVENT = 1
    MEMORY = 2
    FORGET = 3
    CLAIM = 4
    UNCLAIM = 5
    COUNT = 6
    GRIP = 7
    BLANK = 8


class Field(IntEnum):
    """The registers of a memory. Numbers are wire format: never reused."""

    CONTENT = 1
    KIND = 2
    TYPE = 3
    SCOPE = 4
    RESOURCE_ID = 5
    LAYER = 6
    SALIENCE = 7
    CONFIDENCE = 8
    TOPIC = 9
    TRUST = 10
    VALID_FROM = 11
    VALID_TO = 12
    SUPERSEDED_BY = 13
    CREATED_AT = 14
    METADATA = 15
    NAME = 16


class Counter(IntEnum):
    """The counters of a memory."""

    ACCESS = 1


# Body keys, by op type. 1 is always the entity the op is about.
ENTITY = 1
_FIELDS, _BASES = 2, 3
_CLAIMED = 2
_SEEN = 3
_COUNTER, _TOTAL, _LAST = 2, 3, 4
_SPANS = 2


@dataclass(slots=True)
class State:
    """The fold of a set of ops. Built by `fold` and `merge` only; treat it as a value."""

    events: dict[str, Event] = field(default_factory=dict)
    registers: dict[tuple[str, int], dict[Stamp, tuple[Any, Stamp | None]]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    claims: dict[tuple[str, Stamp], str] = field(default_factory=dict)
    unclaimed: set[tuple[str, Stamp]] = field(default_factory=set)
    counters: dict[tuple[str, int, str], tuple[int, int]] = field(default_factory=dict)
    grips: dict[str, Grip] = field(default_factory=dict)
    blanks: dict[str, set[tuple[int, int]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """What a state shows: live memories, names and grips by id, and events with their blanks applied."""

    events: dict[str, Event]
    memories: dict[str, Memory]
    aliases: dict[str, Alias]
    grips: dict[str, Grip]
    conflicts: dict[tuple[str, int], tuple[Stamp, ...]]


# --- making ops -------------------------------------------------------------------------------------------------------


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
    memory_id: str, fields: Mapping[Field, Any], bases: Mapping[Field, Stamp] | None = None
) -> dict[int, Any]:
    """Return the body of a write to some registers. `bases` are the stamps of the values that the writer replaced."""
    body: dict[int, Any] = {ENTITY: ulid_bytes(memory_id), _FIELDS: {int(key): value for key, value in fields.items()}}
    if bases:
        body[_BASES] = {int(key): [hlc, bytes.fromhex(device)] for key, (hlc, device) in bases.items()}
    return body


def forget_body(entity: str) -> dict[int, Any]:
    """Return the body of a forget: the id of a memory, an event or a grip."""
    return {ENTITY: ulid_bytes(entity)}


def claim_body(memory_id: str, name: str) -> dict[int, Any]:
    """Return the body of a claim to a name. The claim's stamp is the op's."""
    return {ENTITY: ulid_bytes(memory_id), _CLAIMED: name}


def unclaim_body(memory_id: str, name: str, seen: Iterable[Stamp]) -> dict[int, Any]:
    """Return the body that takes a name away: it ends the claims in `seen`, and no claim made elsewhere meanwhile."""
    return {
        ENTITY: ulid_bytes(memory_id),
        _CLAIMED: name,
        _SEEN: [[hlc, bytes.fromhex(device)] for hlc, device in sorted(seen)],
    }


def count_body(memory_id: str, counter: Counter, total: int, last: Millis) -> dict[int, Any]:
    """Return the body of this device's running total of a counter, and when it last rose."""
    return {ENTITY: ulid_bytes(memory_id), _COUNTER: int(counter), _TOTAL: total, _LAST: last}


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
    return {ENTITY: ulid_bytes(event_id), _SPANS: sorted([start, end] for start, end in spans)}


def entity_of(op: Op) -> str:
    """Return the id of what an op is about; a grip's op is about its memory."""
    return ulid_text(op.body[ENTITY])


def fields_of(op: Op) -> tuple[Field, ...]:
    """Return the registers that an op of type MEMORY writes, as far as this version knows them."""
    return tuple(Field(key) for key in op.body.get(_FIELDS, {}) if key in set(Field))


# --- wire -------------------------------------------------------------------------------------------------------------

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, int, bytes, int, dict[int, Any]])


def encode(op: Op) -> bytes:
    """Return the bytes of an op as sync sends them.

    Maps are written in their own order: the body builders above always give the same one, and metadata is kept with
    its keys sorted, so that an event's bytes can be made again from its row.
    """
    return _encoder.encode((op.type, op.version, op.op_id, op.hlc, op.body))


def decode(data: bytes, *, device: str, seq: int) -> Op:
    """Return the op of some bytes; its device and place in the lane stand outside them. Raises CorruptError."""
    try:
        op_type, version, op_id, hlc, body = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise CorruptError(
            f"op {seq} of device {device[:8]} cannot be read", hint="scrubjay restore FILE brings back a backup"
        ) from error
    return Op(device=device, seq=seq, op_id=op_id, hlc=Hlc(hlc), type=op_type, body=body, version=version)


# --- folding ----------------------------------------------------------------------------------------------------------


def fold(ops: Iterable[Op], start: State | None = None) -> State:
    """Return the state of `start` plus some ops, in any order. `start` is not modified."""
    state = merge(start, State()) if start is not None else State()
    for op in ops:
        _apply(state, op)
    return state


def apply(state: State, op: Op) -> State:
    """Return the state after one more op. Applying it twice is applying it once."""
    return fold((op,), state)


def merge(left: State, right: State) -> State:
    """Return the union of two states: commutative, associative, idempotent."""
    merged = State(
        events={**left.events, **right.events},
        registers={key: dict(versions) for key, versions in left.registers.items()},
        forgotten=left.forgotten | right.forgotten,
        claims={**left.claims, **right.claims},
        unclaimed=left.unclaimed | right.unclaimed,
        counters=dict(left.counters),
        grips={**left.grips, **right.grips},
        blanks={key: set(spans) for key, spans in left.blanks.items()},
    )
    for key, versions in right.registers.items():
        merged.registers.setdefault(key, {}).update(versions)
    for counter, total in right.counters.items():
        merged.counters[counter] = max(merged.counters.get(counter, (0, 0)), total)
    for event_id, spans in right.blanks.items():
        merged.blanks.setdefault(event_id, set()).update(spans)
    return merged


def _apply(state: State, op: Op) -> None:
    """Add one op to a state that `fold` owns."""
    body, stamp = op.body, (int(op.hlc), op.device)
    if op.type == OpType.EVENT:
        event = _event_of(op)
        state.events[event.id] = event
    elif op.type == OpType.MEMORY:
        entity = ulid_text(body[ENTITY])
        bases = body.get(_BASES, {})
        for key, value in body[_FIELDS].items():
            base = bases.get(key)
            seen = (base[0], base[1].hex()) if base else None
            state.registers.setdefault((entity, key), {})[stamp] = (value, seen)
    elif op.type == OpType.FORGET:
        state.forgotten.add(ulid_text(body[ENTITY]))
    elif op.type == OpType.CLAIM:
        state.claims[body[_CLAIMED], stamp] = ulid_text(body[ENTITY])
    elif op.type == OpType.UNCLAIM:
        state.unclaimed.update((body[_CLAIMED], (hlc, device.hex())) for hlc, device in body[_SEEN])
    elif op.type == OpType.COUNT:
        counter = (ulid_text(body[ENTITY]), body[_COUNTER], op.device)
        state.counters[counter] = max(state.counters.get(counter, (0, 0)), (body[_TOTAL], body[_LAST]))
    elif op.type == OpType.GRIP:
        grip = _grip_of(op)
        state.grips[grip.id] = grip
    elif op.type == OpType.BLANK:
        spans = state.blanks.setdefault(ulid_text(body[ENTITY]), set())
        spans.update((start, end) for start, end in body[_SPANS])


def _event_of(op: Op) -> Event:
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
        trust=Trust(body[11]),
        metadata=body.get(12, {}),
    )


def _grip_of(op: Op) -> Grip:
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
        created_at=Millis(body[9]),
    )


# --- viewing ----------------------------------------------------------------------------------------------------------

BLANK_CHARACTER = "░"
"""Stands for each erased character, so that the spans of neighbouring grips keep their places."""


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length with the characters of some spans replaced by `BLANK_CHARACTER`."""
    characters = list(text)
    for start, end in spans:
        low, high = max(0, start), min(end, len(characters))
        if low < high:
            characters[low:high] = BLANK_CHARACTER * (high - low)
    return "".join(characters)


def winner(versions: Mapping[Stamp, tuple[Any, Stamp | None]]) -> Stamp:
    """Return the stamp of the version that a register shows: the greatest."""
    return max(versions)


def open_conflicts(versions: Mapping[Stamp, tuple[Any, Stamp | None]]) -> tuple[Stamp, ...]:
    """Return the stamps that the shown version never saw: no ancestors of it through the base links."""
    ancestors: set[Stamp] = set()
    at: Stamp | None = winner(versions)
    while at is not None and at in versions and at not in ancestors:
        ancestors.add(at)
        at = versions[at][1]
    return tuple(sorted(set(versions) - ancestors))


def holders(state: State) -> dict[str, tuple[str, str]]:
    """Return, for each name shown, the memory it resolves to and the name as it was claimed.

    The two names differ only where the claimed one was already held: the second holder shows as `name~2`, or as the
    next number that nobody holds, claimed or shown.
    """
    live: dict[str, list[tuple[Stamp, str]]] = {}
    for (name, stamp), entity in state.claims.items():
        if (name, stamp) not in state.unclaimed and entity not in state.forgotten:
            live.setdefault(name, []).append((stamp, entity))
    in_order = {name: list(dict.fromkeys(entity for _, entity in sorted(claims))) for name, claims in live.items()}
    names = {name: (entities[0], name) for name, entities in in_order.items()}
    for name in sorted(in_order):  # sorted: which `~2` is free must not depend on the order the ops came in
        place = 2
        for entity in in_order[name][1:]:
            while f"{name}~{place}" in names:
                place += 1
            names[f"{name}~{place}"] = (entity, name)
    return names


def view(state: State) -> View:
    """Return what a state shows. Forgotten things are absent; a memory without content has not fully arrived yet."""
    fields: dict[str, dict[int, Any]] = {}
    latest: dict[str, int] = {}
    conflicts: dict[tuple[str, int], tuple[Stamp, ...]] = {}
    for (entity, key), versions in state.registers.items():
        if entity in state.forgotten:
            continue
        top = winner(versions)
        fields.setdefault(entity, {})[key] = versions[top][0]
        latest[entity] = max(latest.get(entity, 0), top[0])
        if still_open := open_conflicts(versions):
            conflicts[entity, key] = still_open

    counts: dict[str, tuple[int, int]] = {}
    for (entity, counter, _device), (total, last) in state.counters.items():
        if counter == Counter.ACCESS:
            known = counts.get(entity, (0, 0))
            counts[entity] = (known[0] + total, max(known[1], last))

    names = holders(state)
    shown = {(entity, claimed): name for name, (entity, claimed) in names.items()}
    memories: dict[str, Memory] = {}
    for entity, values in fields.items():
        if Field.CONTENT in values and Field.CREATED_AT in values:
            name = shown.get((entity, values.get(Field.NAME, "")))
            memories[entity] = _memory_of(entity, values, name, latest[entity], counts.get(entity, (0, 0)))
    claimed_at: dict[tuple[str, str], int] = {}
    for (name, stamp), entity in state.claims.items():
        claimed_at[entity, name] = min(claimed_at.get((entity, name), stamp[0]), stamp[0])
    return View(
        events={
            event_id: replace(event, text=blanked(event.text, state.blanks.get(event_id, ())))
            for event_id, event in state.events.items()
            if event_id not in state.forgotten
        },
        memories=memories,
        aliases={
            name: Alias(name=name, memory_id=entity, created_at=millis_of(Hlc(claimed_at[entity, claimed])))
            for name, (entity, claimed) in names.items()
            if entity in memories and memories[entity].name != name
        },
        grips={
            grip_id: grip
            for grip_id, grip in state.grips.items()
            if grip_id not in state.forgotten and grip.memory_id in memories
        },
        conflicts=conflicts,
    )


def _memory_of(entity: str, values: dict[int, Any], name: str | None, latest: int, accessed: tuple[int, int]) -> Memory:
    return Memory(
        id=entity,
        content=values[Field.CONTENT],
        content_hash=content_hash(values[Field.CONTENT]),
        kind=Kind(values.get(Field.KIND, Kind.STORED)),
        type=MemoryType(values.get(Field.TYPE, MemoryType.FACT)),
        scope=Scope(values.get(Field.SCOPE, Scope.USER)),
        resource_id=values.get(Field.RESOURCE_ID),
        layer=Layer(values.get(Field.LAYER, Layer.ARCHIVE)),
        salience=values.get(Field.SALIENCE, 0.0),
        confidence=values.get(Field.CONFIDENCE, 1.0),
        topic=values.get(Field.TOPIC),
        trust=Trust(values.get(Field.TRUST, Trust.USER)),
        valid_from=values.get(Field.VALID_FROM),
        valid_to=values.get(Field.VALID_TO),
        superseded_by=values.get(Field.SUPERSEDED_BY),
        metadata=values.get(Field.METADATA, {}),
        name=name,
        created_at=Millis(values[Field.CREATED_AT]),
        updated_at=millis_of(Hlc(latest)),
        access_count=accessed[0],
        accessed_at=Millis(accessed[1]) if accessed[0] else None,
    )
