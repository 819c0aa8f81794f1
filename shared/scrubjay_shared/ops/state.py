"""The fold of a set of ops, and the union of two folds: commutative, associative and idempotent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from scrubjay_shared.clock import ulid_text
from scrubjay_shared.ops.bodies import event_of, grip_made_by, total_of
from scrubjay_shared.ops.encoding import encode_event
from scrubjay_shared.ops.outside import Bounds, bounds_of
from scrubjay_shared.ops.registers import Version, supersedes
from scrubjay_shared.ops.schema import ALSO, BASES, CLAIMED, EMPTIED, ENTITY, FIELDS, SEEN, SPANS, OpType
from scrubjay_shared.ops.stamps import Stamp, stamp_of
from scrubjay_shared.ops.validity import problem
from scrubjay_shared.records import Event, Grip, Op


@dataclass(slots=True)
class State:
    """The fold of a set of ops. Built by `fold` and `merge` only; treat it as a value.

    `registers` has the versions that have a value; `superseded` what writes without one say: that they, and what they
    had seen, show no more.
    """

    events: dict[str, Event] = field(default_factory=dict)
    registers: dict[tuple[str, int], dict[Stamp, Version]] = field(default_factory=dict)
    superseded: dict[tuple[str, int], set[Stamp]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    claims: dict[tuple[str, Stamp], str] = field(default_factory=dict)
    unclaimed: set[tuple[str, Stamp]] = field(default_factory=set)
    counters: dict[tuple[str, int, str], tuple[int, int]] = field(default_factory=dict)
    grips: dict[str, Grip] = field(default_factory=dict)
    blanks: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    bounds: dict[str, dict[Stamp, Bounds]] = field(default_factory=dict)
    """By memory, what was noted of the writes to it that came from outside."""


def fold(ops: Iterable[Op], start: State | None = None) -> State:
    """Return the state of `start` plus some ops, in any order. `start` is not modified."""
    state = merge(start, State()) if start is not None else State()
    for op in ops:
        if not problem(op):
            _apply(state, op)
    return state


def apply(state: State, op: Op) -> State:
    """Return the state after one more op. Applying it again changes nothing."""
    return fold((op,), state)


def merge(left: State, right: State) -> State:
    """Return the union of two states: commutative, associative, idempotent."""
    merged = State(
        events=dict(left.events),
        registers={key: dict(versions) for key, versions in left.registers.items()},
        superseded={key: set(stamps) for key, stamps in left.superseded.items()},
        forgotten=left.forgotten | right.forgotten,
        claims={**left.claims, **right.claims},
        unclaimed=left.unclaimed | right.unclaimed,
        counters=dict(left.counters),
        grips=dict(left.grips),
        blanks={key: set(spans) for key, spans in left.blanks.items()},
        bounds={key: dict(noted) for key, noted in left.bounds.items()},
    )
    for event in right.events.values():
        merged.events[event.id] = first_event(event, merged.events.get(event.id, event))
    for grip in right.grips.values():
        merged.grips[grip.id] = first_grip(grip, merged.grips.get(grip.id, grip))
    for key, versions in right.registers.items():
        merged.registers.setdefault(key, {}).update(versions)
    for key in left.superseded.keys() | right.superseded.keys():
        _drop(merged, key, left.superseded.get(key, set()) | right.superseded.get(key, set()))
    for counter, total in right.counters.items():
        merged.counters[counter] = max(merged.counters.get(counter, (0, 0)), total)
    for event_id, spans in right.blanks.items():
        merged.blanks.setdefault(event_id, set()).update(spans)
    for entity, noted in right.bounds.items():
        merged.bounds.setdefault(entity, {}).update(noted)
    return merged


def _apply(state: State, op: Op) -> None:
    """Add one op to a state that `fold` owns."""
    body, stamp = op.body, (int(op.hlc), op.device)
    if op.type == OpType.EVENT:
        event = event_of(op)
        state.events[event.id] = first_event(event, state.events.get(event.id, event))
    elif op.type == OpType.MEMORY:
        _write(state, body, stamp)
    elif op.type == OpType.FORGET:
        state.forgotten.add(ulid_text(body[ENTITY]))
    elif op.type == OpType.CLAIM:
        state.claims[body[CLAIMED], stamp] = ulid_text(body[ENTITY])
    elif op.type == OpType.UNCLAIM:
        state.unclaimed.update((body[CLAIMED], stamp_of(wire)) for wire in body[SEEN])
    elif op.type == OpType.COUNT:
        kind, total, last = total_of(op)
        counter = (ulid_text(body[ENTITY]), kind, op.device)
        state.counters[counter] = max(state.counters.get(counter, (0, 0)), (total, int(last)))
    elif op.type == OpType.GRIP:
        grip = grip_made_by(op)
        state.grips[grip.id] = first_grip(grip, state.grips.get(grip.id, grip))
    elif op.type == OpType.BLANK:
        spans = state.blanks.setdefault(ulid_text(body[ENTITY]), set())
        spans.update((start, end) for start, end in body[SPANS])


def _write(state: State, body: dict[int, Any], stamp: Stamp) -> None:
    """Add the versions of one write to a memory."""
    entity = ulid_text(body[ENTITY])
    bases, also = body.get(BASES, {}), body.get(ALSO, {})
    if (bounds := bounds_of(body)) is not None:
        state.bounds.setdefault(entity, {})[stamp] = bounds
    for key, value in body[FIELDS].items():
        state.registers.setdefault((entity, key), {})[stamp] = (value, _seen(bases, also, key))
        if stamp in state.superseded.get((entity, key), ()):
            _drop(state, (entity, key), [stamp])
    for key in body.get(EMPTIED, ()):
        seen = [one for one in _seen(bases, also, key) if supersedes(stamp, one)]
        _drop(state, (entity, key), [stamp, *seen])


def _seen(bases: Mapping[int, Any], also: Mapping[int, Any], key: int) -> tuple[Stamp, ...]:
    """Return what the writer of a register had seen of it."""
    return tuple(stamp_of(wire) for wire in [*([bases[key]] if key in bases else []), *also.get(key, ())])


def _drop(state: State, key: tuple[str, int], stamps: Iterable[Stamp]) -> None:
    """Take superseded versions out of a register, and what they superseded; one without versions nobody has written."""
    versions, gone = state.registers.get(key, {}), state.superseded.setdefault(key, set())
    left = list(stamps)
    while left:
        stamp = left.pop()
        gone.add(stamp)
        if (version := versions.pop(stamp, None)) is not None:
            left += [seen for seen in version[1] if supersedes(stamp, seen)]
    if not versions:
        state.registers.pop(key, None)


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
