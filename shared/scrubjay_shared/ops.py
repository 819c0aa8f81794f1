"""The op log's meaning: what one change says, how changes merge, and what they add up to. Pure, and free of policy.

Theory of operation. Everything that is not derived is the fold of a set of ops. The fold is commutative, associative
and idempotent, so that any two replicas holding the same ops show the same view, whatever order they came in:

* events and grips are grow-only sets by id; of two that two devices made under one id, the smaller one counts;
* a memory is a set of registers, one a field; a register keeps every version `{(hlc, device): (value, seen)}` and shows
  the greatest stamp. `seen` are the versions that its writer knew. One that is no ancestor (through `seen`) of the
  shown one is an open conflict, never lost;
* the trust of a memory is the least that any write of it said: no later op raises it. One that is trusted less than an
  agent's own words shows in the layer `archive` where its register says `identity` or `active`;
* the trust of an event is at most what its role allows (`records.TRUST_OF`);
* names are a set of claims; the smallest live stamp holds a name, the others show as `name~2`, `name~3`;
* counters are a running total per device, merged by the greater;
* `forget` is absorbing: it beats every edit, earlier or later. Blanked passages of an event are a union of spans.

The encoding is `[type, version, op_id, hlc, body]` in MessagePack (docs/protocol.md, 5). Types and fields are only ever
added; an op that `problem` refuses (of an unknown type, or not well formed) is kept and folds to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from enum import IntEnum, StrEnum
from math import isfinite
from typing import Any, TypeVar

import msgspec

from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS, Hlc, Millis, millis_of, ulid_bytes, ulid_text
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.records import (
    TRUST_OF,
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
    allowed_layer,
    content_hash,
    least,
)

T = TypeVar("T", bound=StrEnum)

Stamp = tuple[int, str]
"""When and where a write happened: (hlc, device). Greater is later; ties between devices break by device."""


Version = tuple[Any, tuple[Stamp, ...]]
"""A value of a register, and the stamps of the versions that its writer had seen: first the one it replaced."""

Wire = tuple[int, int, bytes, int, dict[int, Any]]
"""What the bytes of an op say: (type, version, op id, hlc, body). Its device and seq stand outside them."""

MAX_HLC = (1 << 63) - (1 << 32)
"""The greatest stamp an op may have. SQLite counts to 2^63; what is left is room for edits that stamp above it."""


MAX_JSON_DEPTH = 64
"""Levels of metadata that are read; above what writers allow, and below where readers of JSON give up."""


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
_FIELDS, _BASES, _ALSO = 2, 3, 4
_OWNER = 2
_CLAIMED = 2
_SEEN = 3
_COUNTER, _TOTAL, _LAST = 2, 3, 4
_SPANS = 2


@dataclass(slots=True)
class State:
    """The fold of a set of ops. Built by `fold` and `merge` only; treat it as a value."""

    events: dict[str, Event] = field(default_factory=dict)
    registers: dict[tuple[str, int], dict[Stamp, Version]] = field(default_factory=dict)
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
    memory_id: str,
    fields: Mapping[Field, Any],
    bases: Mapping[Field, Stamp] | None = None,
    also: Mapping[Field, Iterable[Stamp]] | None = None,
) -> dict[int, Any]:
    """Return the body of a write to some registers.

    `bases` are the stamps of the values that the writer replaced, `also` those of other versions that it settles.
    """
    body: dict[int, Any] = {ENTITY: ulid_bytes(memory_id), _FIELDS: {int(key): value for key, value in fields.items()}}
    if bases:
        body[_BASES] = {int(key): _wire(stamp) for key, stamp in bases.items()}
    if also:
        body[_ALSO] = {int(key): [_wire(stamp) for stamp in sorted(stamps)] for key, stamps in also.items()}
    return body


def forget_body(entity: str, owner: str | None = None) -> dict[int, Any]:
    """Return the body of a forget: the id of a memory, an event or a grip. `owner` is the memory of a grip."""
    body = {ENTITY: ulid_bytes(entity)}
    if owner is not None:
        body[_OWNER] = ulid_bytes(owner)
    return body


def claim_body(memory_id: str, name: str) -> dict[int, Any]:
    """Return the body of a claim to a name. The claim's stamp is the op's."""
    return {ENTITY: ulid_bytes(memory_id), _CLAIMED: name}


def unclaim_body(memory_id: str, name: str, seen: Iterable[Stamp]) -> dict[int, Any]:
    """Return the body that takes a name away: it ends the claims in `seen`, and no claim made elsewhere meanwhile."""
    return {
        ENTITY: ulid_bytes(memory_id),
        _CLAIMED: name,
        _SEEN: [_wire(stamp) for stamp in sorted(seen)],
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


def _wire(stamp: Stamp) -> list[Any]:
    return [stamp[0], bytes.fromhex(stamp[1])]


def _stamp(wire: list[Any]) -> Stamp:
    return wire[0], wire[1].hex()


def entity_of(op: Op) -> str:
    """Return the id of what an op is about; a grip's op is about its memory."""
    return ulid_text(op.body[ENTITY])


def fields_of(op: Op) -> tuple[Field, ...]:
    """Return the registers that an op of type MEMORY writes, as far as this version knows them."""
    return tuple(Field(key) for key in op.body.get(_FIELDS, {}) if key in set(Field))


def owner_of(op: Op) -> str | None:
    """Return the memory of the grip that an op of type FORGET is about, where it says so."""
    return ulid_text(op.body[_OWNER]) if op.type == OpType.FORGET and _OWNER in op.body else None


def grip_of(op: Op) -> str:
    """Return the id of the grip that an op of type GRIP makes."""
    return ulid_text(op.body[2])


def name_of(op: Op) -> str:
    """Return the name that an op of type CLAIM or UNCLAIM is about."""
    name: str = op.body[_CLAIMED]
    return name


def stamps_of(op: Op) -> list[tuple[str, int | str, int]]:
    """Return what an op gives its stamp to: (entity, field or name, hlc) of each register and each claim."""
    if op.type == OpType.MEMORY:
        return [(entity_of(op), key, int(op.hlc)) for key in op.body[_FIELDS]]
    return [(entity_of(op), op.body[_CLAIMED], int(op.hlc))] if op.type == OpType.CLAIM else []


def readdressed(op: Op, device: str, seq: int, moved: Collection[tuple[str, int | str, int]]) -> Op:
    """Return an op as that of another device. `moved` are the `stamps_of` of the ops that change hands with it.

    What it says of stamps of theirs it says of their new ones. Its id and its own time stay.
    """
    old, new, entity, body = bytes.fromhex(op.device), bytes.fromhex(device), entity_of(op), dict(op.body)

    def at(key: int | str, wire: list[Any]) -> list[Any]:
        return [wire[0], new] if wire[1] == old and (entity, key, wire[0]) in moved else wire

    if op.type == OpType.MEMORY:
        if _BASES in body:
            body[_BASES] = {key: at(key, wire) for key, wire in body[_BASES].items()}
        if _ALSO in body:
            body[_ALSO] = {key: sorted(at(key, wire) for wire in wires) for key, wires in body[_ALSO].items()}
    elif op.type == OpType.UNCLAIM:
        body[_SEEN] = sorted(at(body[_CLAIMED], wire) for wire in body[_SEEN])
    return replace(op, device=device, seq=seq, body=body)


def adopted(op: Op, device: str, seq: int) -> Op:
    """Return an op as that of a device to which all ops go that it speaks of: each stamp in it is that device's."""
    new, body = bytes.fromhex(device), dict(op.body)
    if op.type == OpType.MEMORY:
        if _BASES in body:
            body[_BASES] = {key: [wire[0], new] for key, wire in body[_BASES].items()}
        if _ALSO in body:
            body[_ALSO] = {key: sorted([wire[0], new] for wire in wires) for key, wires in body[_ALSO].items()}
    elif op.type == OpType.UNCLAIM:
        body[_SEEN] = sorted([wire[0], new] for wire in body[_SEEN])
    return replace(op, device=device, seq=seq, body=body)


def counted(op: Op, total: int) -> Op:
    """Return an op of type COUNT with another total."""
    return replace(op, body={**op.body, _TOTAL: total})


def total_of(op: Op) -> tuple[int, int, Millis]:
    """Return what an op of type COUNT says: (counter, total, when it last rose)."""
    return op.body[_COUNTER], op.body[_TOTAL], Millis(op.body[_LAST])


def spans_of(op: Op) -> list[tuple[int, int]]:
    """Return the passages that an op of type BLANK erases."""
    return [(start, end) for start, end in op.body[_SPANS]]


def with_blanks(op: Op, spans: Collection[tuple[int, int]]) -> Op:
    """Return an op of type EVENT with some passages of its text erased."""
    return replace(op, body={**op.body, 6: blanked(op.body[6], spans)})


# --- what can be applied ----------------------------------------------------------------------------------------------


def problem(op: Op) -> str:
    """Return why this version cannot apply an op, in words that quote nothing of it; "" when it can.

    An unknown value of a closed set (a type, a scope) is no problem in a memory, which shows its default instead until
    this device knows the value; an event has no default, so it waits.
    """
    return wire_problem((op.type, op.version, op.op_id, op.hlc, op.body))


def wire_problem(wire: Wire) -> str:
    """Return what `problem` says of an op as it was read."""
    op_type, _, _, hlc, body = wire
    check = _CHECKS.get(op_type)
    if check is None:
        return f"type {op_type} is of a newer version"
    if not 0 < hlc <= MAX_HLC:
        return "its time is out of range"
    try:
        return check(body)
    except (LookupError, TypeError, ValueError, AttributeError):
        return "it is not well formed"


def _id(value: Any) -> bool:
    return type(value) is bytes and len(value) == 16


def _whole(value: Any) -> bool:
    return type(value) is int and abs(value) < MAX_HLC


def _stamps(wires: Iterable[Any]) -> bool:
    return all(len(wire) == 2 and _whole(wire[0]) and _id(wire[1]) for wire in wires)


def _words(value: Any) -> bool:
    """Whether this is a text that SQLite and its JSON compare as it is: one with a NUL is cut there."""
    return type(value) is str and "\0" not in value


def _map(value: Any) -> bool:
    if type(value) is not dict:
        return False
    for key, one in value.items():  # nearly all metadata is a few texts
        if type(key) is not str or (type(one) is not str and not _json(one, MAX_JSON_DEPTH - 1)):
            return False
    return True


def _json(value: Any, depth: int) -> bool:
    """Whether JSON can say it: MessagePack has keys, numbers and types that it has not."""
    if type(value) is dict:
        return depth > 0 and all(type(key) is str and _json(one, depth - 1) for key, one in value.items())
    if type(value) is list:
        return depth > 0 and all(_json(one, depth - 1) for one in value)
    return value is None or type(value) in {str, int, bool} or (type(value) is float and isfinite(value))


def _event_problem(body: dict[int, Any]) -> str:
    if body[4] not in _EVENT_TYPES or body[5] not in _ROLES or body[11] not in _TRUSTS:
        return "its type, role or trust is of a newer version"
    project = body.get(9)
    fine = (  # spelled out: this runs a million times when a device joins
        type(entity := body[ENTITY]) is bytes
        and len(entity) == 16
        and type(agent := body[2]) is str
        and type(session := body[3]) is str
        and type(key := body[8]) is str
        and "\0" not in f"{agent}{session}{key}"
        and type(body[6]) is str
        and type(ts := body[7]) is int
        and 0 <= ts <= MAX_EVENT_MILLIS
        and (project is None or _words(project))
        and (10 not in body or (_whole(body[10]) and abs(body[10]) < DAY_MINUTES))
        and (12 not in body or _map(body[12]))
    )
    return "" if fine else "it is not well formed"


def _memory_problem(body: dict[int, Any]) -> str:
    fine = (
        _id(body[ENTITY])
        and all(type(key) is int and _FITS.get(key, _anything)(value) for key, value in body[_FIELDS].items())
        and _stamps(body.get(_BASES, {}).values())
        and all(_stamps(wires) for wires in body.get(_ALSO, {}).values())
    )
    return "" if fine else "it is not well formed"


def _grip_problem(body: dict[int, Any]) -> str:
    fine = (
        all(_id(body[key]) for key in (ENTITY, 2, 3, 4))
        and all(_whole(body[key]) for key in (5, 6, 9))
        and type(body[7]) is str
        and _words(body[8])
    )
    return "" if fine else "it is not well formed"


def _said(fine: Callable[[dict[int, Any]], bool]) -> Callable[[dict[int, Any]], str]:
    return lambda body: "" if _id(body[ENTITY]) and fine(body) else "it is not well formed"


def _anything(_: Any) -> bool:
    return True


def _share(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value <= 1


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_EVENT_TYPES, _ROLES, _TRUSTS = frozenset(EventType), frozenset(Role), frozenset(Trust)
_CHECKS: dict[int, Callable[[dict[int, Any]], str]] = {
    OpType.EVENT: _event_problem,
    OpType.MEMORY: _memory_problem,
    OpType.FORGET: _said(lambda body: _OWNER not in body or _id(body[_OWNER])),
    OpType.CLAIM: _said(lambda body: _words(body[_CLAIMED])),
    OpType.UNCLAIM: _said(lambda body: _words(body[_CLAIMED]) and _stamps(body[_SEEN])),
    OpType.COUNT: _said(lambda body: all(_whole(body[key]) for key in (_COUNTER, _TOTAL, _LAST))),
    OpType.GRIP: _grip_problem,
    OpType.BLANK: _said(lambda body: all(len(span) == 2 and all(map(_whole, span)) for span in body[_SPANS])),
}
_FITS: dict[int, Callable[[Any], bool]] = {
    Field.CONTENT: lambda value: type(value) is str,
    Field.KIND: _words,
    Field.TYPE: _words,
    Field.SCOPE: _words,
    Field.RESOURCE_ID: _or_none(_words),
    Field.LAYER: _words,
    Field.SALIENCE: _share,
    Field.CONFIDENCE: _share,
    Field.TOPIC: _or_none(_words),
    Field.TRUST: _words,
    Field.VALID_FROM: _or_none(_whole),
    Field.VALID_TO: _or_none(_whole),
    Field.SUPERSEDED_BY: _or_none(_words),
    Field.CREATED_AT: _whole,
    Field.METADATA: _map,
    Field.NAME: _or_none(_words),
}


# --- wire -------------------------------------------------------------------------------------------------------------

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Wire)


def encode(op: Op) -> bytes:
    """Return the bytes of an op as sync sends them.

    Maps are written in their own order: the body builders above always give the same one, and metadata is kept with
    its keys sorted, so that an event's bytes can be made again from its row.
    """
    return encode_wire((op.type, op.version, op.op_id, op.hlc, op.body))


def encode_wire(wire: Wire) -> bytes:
    """Return the bytes that say what some bytes said, as `read` gave it."""
    return _encoder.encode(wire)


def decode(data: bytes, *, device: str, seq: int) -> Op:
    """Return the op of some bytes; its device and place in the lane stand outside them. Raises CorruptError."""
    return op_of(read(data, device=device, seq=seq), device=device, seq=seq)


def read(data: bytes, *, device: str, seq: int) -> Wire:
    """Return what some bytes say; of a million events no records are made. Raises CorruptError as `decode` does."""
    try:
        wire: Wire = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptError(
            f"op {seq} of device {device[:8]} cannot be read", hint="scrubjay restore FILE brings back a backup"
        ) from error
    return wire


def op_of(wire: Wire, *, device: str, seq: int) -> Op:
    """Return the op that was read of some bytes."""
    op_type, version, op_id, hlc, body = wire
    return Op(device=device, seq=seq, op_id=op_id, hlc=Hlc(hlc), type=op_type, body=body, version=version)


# --- folding ----------------------------------------------------------------------------------------------------------


def fold(ops: Iterable[Op], start: State | None = None) -> State:
    """Return the state of `start` plus some ops, in any order. `start` is not modified."""
    state = merge(start, State()) if start is not None else State()
    for op in ops:
        if not problem(op):
            _apply(state, op)
    return state


def apply(state: State, op: Op) -> State:
    """Return the state after one more op. Applying it twice is applying it once."""
    return fold((op,), state)


def merge(left: State, right: State) -> State:
    """Return the union of two states: commutative, associative, idempotent."""
    merged = State(
        events=dict(left.events),
        registers={key: dict(versions) for key, versions in left.registers.items()},
        forgotten=left.forgotten | right.forgotten,
        claims={**left.claims, **right.claims},
        unclaimed=left.unclaimed | right.unclaimed,
        counters=dict(left.counters),
        grips=dict(left.grips),
        blanks={key: set(spans) for key, spans in left.blanks.items()},
    )
    for event in right.events.values():
        merged.events[event.id] = first_event(event, merged.events.get(event.id, event))
    for grip in right.grips.values():
        merged.grips[grip.id] = first_grip(grip, merged.grips.get(grip.id, grip))
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
        event = event_of(op)
        state.events[event.id] = first_event(event, state.events.get(event.id, event))
    elif op.type == OpType.MEMORY:
        entity = ulid_text(body[ENTITY])
        bases, also = body.get(_BASES, {}), body.get(_ALSO, {})
        for key, value in body[_FIELDS].items():
            seen = [bases[key]] if key in bases else []
            state.registers.setdefault((entity, key), {})[stamp] = (
                value,
                tuple(_stamp(wire) for wire in [*seen, *also.get(key, ())]),
            )
    elif op.type == OpType.FORGET:
        state.forgotten.add(ulid_text(body[ENTITY]))
    elif op.type == OpType.CLAIM:
        state.claims[body[_CLAIMED], stamp] = ulid_text(body[ENTITY])
    elif op.type == OpType.UNCLAIM:
        state.unclaimed.update((body[_CLAIMED], _stamp(wire)) for wire in body[_SEEN])
    elif op.type == OpType.COUNT:
        counter = (ulid_text(body[ENTITY]), body[_COUNTER], op.device)
        state.counters[counter] = max(state.counters.get(counter, (0, 0)), (body[_TOTAL], body[_LAST]))
    elif op.type == OpType.GRIP:
        grip = _grip_of(op)
        state.grips[grip.id] = first_grip(grip, state.grips.get(grip.id, grip))
    elif op.type == OpType.BLANK:
        spans = state.blanks.setdefault(ulid_text(body[ENTITY]), set())
        spans.update((start, end) for start, end in body[_SPANS])


def first_event(one: Event, other: Event) -> Event:
    """Return which of two events of one id counts: two devices may import the same export before they meet."""
    if one is other:
        return one
    if one.device != other.device:
        return one if one.device < other.device else other
    return one if encode_event(one) < encode_event(other) else other


def first_grip(one: Grip, other: Grip) -> Grip:
    """Return which of two grips of one id counts."""
    return one if one == other or astuple(one) < astuple(other) else other


def is_repeatable(wire: Wire, data: bytes, metadata: object) -> bool:
    """Whether the bytes of an op of type EVENT are those that `encode_event` gives again of the event's row.

    `metadata` is what the row gives back of the body's, None where the body has none.
    """
    op_type, _, op_id, hlc, body = wire
    if tuple(body) not in _PLAIN or (9 in body and body[9] is None) or (10 in body and body[10] == 0):
        return False
    if trust_of(body).value != body[11]:
        return False  # the row says what its role allows
    if 12 in body:
        if not metadata:
            return False
        body = {**body, 12: metadata}
    return _encoder.encode((op_type, 1, op_id, hlc, body)) == data


_PLAIN = frozenset(
    (*range(1, 9), *project, *offset, 11, *metadata)
    for project in ((), (9,))
    for offset in ((), (10,))
    for metadata in ((), (12,))
)
"""The keys of an event in their order: with and without a project, an offset, metadata."""


def encode_event(event: Event, op_id: bytes = b"", hlc: int = 0) -> bytes:
    """Return the bytes of the op that appended an event, made again from the event."""
    return encode_event_body(event_body(event), op_id, hlc)


def encode_event_body(body: dict[int, Any], op_id: bytes, hlc: int) -> bytes:
    """Return the bytes of the op that appended an event, made again from what `event_body` gives of it."""
    return _encoder.encode((_EVENT, 1, op_id, hlc, body))


_EVENT = int(OpType.EVENT)


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


_TRUSTED = {(role.value, trust.value): least(trust, most) for role, most in TRUST_OF.items() for trust in Trust}


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


def blanked(text: str, spans: Collection[tuple[int, int]]) -> str:
    """Return a text of the same length with the characters of some spans replaced by `BLANK_CHARACTER`."""
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        low, high = max(at, start), min(end, len(text))
        if low < high:
            parts += (text[at:low], BLANK_CHARACTER * (high - low))
            at = high
    parts.append(text[at:])
    return "".join(parts)


def winner(versions: Mapping[Stamp, Version]) -> Stamp:
    """Return the stamp of the version that a register shows: the greatest."""
    return max(versions)


def _ancestors(versions: Mapping[Stamp, Version], stamp: Stamp) -> set[Stamp]:
    """Return a version and all that its writer knew of, directly or through what that one knew."""
    found: set[Stamp] = set()
    left = [stamp]
    while left:
        at = left.pop()
        if at in versions and at not in found:
            found.add(at)
            left += versions[at][1]
    return found


def open_conflicts(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the stamps that the shown version never saw: no ancestors of it through what each writer had seen."""
    return tuple(sorted(set(versions) - _ancestors(versions, winner(versions))))


def unseen(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the open conflicts that their own side did not replace knowingly: of ten edits made offline, the last one.

    A write that has seen these has seen all.
    """
    still_open = open_conflicts(versions)
    replaced = {seen for stamp in still_open for seen in versions[stamp][1] if seen < stamp}
    return tuple(stamp for stamp in still_open if stamp not in replaced)


def to_settle(versions: Mapping[Stamp, Version]) -> tuple[Stamp, ...]:
    """Return the open conflicts that somebody must decide: the `unseen` that say something else than what is shown."""
    shown = versions[winner(versions)][0]
    return tuple(stamp for stamp in unseen(versions) if versions[stamp][0] != shown)


def live_claims(state: State) -> list[tuple[str, Stamp, str]]:
    """Return the claims (name, stamp, memory) that were not taken back, of memories that were not forgotten."""
    return [
        (name, stamp, entity)
        for (name, stamp), entity in state.claims.items()
        if (name, stamp) not in state.unclaimed and entity not in state.forgotten
    ]


def holders(state: State) -> dict[str, tuple[str, str]]:
    """Return, for each name shown, the memory it resolves to and the name as it was claimed.

    The two names differ only where the claimed one was already held: the second holder shows as `name~2`, or as the
    next number that nobody holds, claimed or shown.
    """
    live: dict[str, list[tuple[Stamp, str]]] = {}
    for name, stamp, entity in live_claims(state):
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
        if key == Field.TRUST:
            # A trust that only a newer version knows counts as the least: nobody gains by saying nonsense.
            fields[entity][key] = least(*(_known(Trust, value, Trust.UNTRUSTED) for value, _ in versions.values()))
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
    for name, stamp, entity in live_claims(state):
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


def _known(closed: type[T], value: Any, default: T) -> T:
    """Return a value of a closed set; the default for one that a newer version wrote."""
    return closed(value) if value in closed._value2member_map_ else default


def _memory_of(entity: str, values: dict[int, Any], name: str | None, latest: int, accessed: tuple[int, int]) -> Memory:
    trust = _known(Trust, values.get(Field.TRUST, Trust.USER), Trust.UNTRUSTED)
    return Memory(
        id=entity,
        content=values[Field.CONTENT],
        content_hash=content_hash(values[Field.CONTENT]),
        kind=_known(Kind, values.get(Field.KIND), Kind.STORED),
        type=_known(MemoryType, values.get(Field.TYPE), MemoryType.FACT),
        scope=_known(Scope, values.get(Field.SCOPE), Scope.USER),
        resource_id=values.get(Field.RESOURCE_ID),
        layer=allowed_layer(_known(Layer, values.get(Field.LAYER), Layer.ARCHIVE), trust),
        salience=values.get(Field.SALIENCE, 0.0),
        confidence=values.get(Field.CONFIDENCE, 1.0),
        topic=values.get(Field.TOPIC),
        trust=trust,
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
