"""What a state shows to a reader."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from scrubjay_shared.clock import MAX_EVENT_MILLIS, Hlc, Millis, millis_of, shown_time
from scrubjay_shared.ops.blanks import blanked
from scrubjay_shared.ops.names import FIRST_CLAIM, holders, live_claims
from scrubjay_shared.ops.outside import within_bounds
from scrubjay_shared.ops.registers import unseen, winner
from scrubjay_shared.ops.schema import ABSENT, Counter, Field
from scrubjay_shared.ops.stamps import Stamp
from scrubjay_shared.ops.state import State
from scrubjay_shared.records import (
    Alias,
    Event,
    Grip,
    Kind,
    Layer,
    Memory,
    MemoryType,
    Scope,
    Trust,
    allowed_layer,
    content_hash,
    least,
)

T = TypeVar("T", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class View:
    """What a state shows: live memories, names and grips by id, and events with their blanks applied."""

    events: dict[str, Event]
    memories: dict[str, Memory]
    aliases: dict[str, Alias]
    grips: dict[str, Grip]
    conflicts: dict[tuple[str, int], tuple[Stamp, ...]]


def view(state: State) -> View:
    """Return what a state shows. Forgotten things are absent; a memory without content has not fully arrived yet."""
    fields: dict[str, dict[int, Any]] = {}
    latest: dict[str, int] = {}
    tops: dict[str, dict[int, Stamp]] = {}
    conflicts: dict[tuple[str, int], tuple[Stamp, ...]] = {}
    for (entity, key), versions in state.registers.items():
        if entity in state.forgotten:
            continue
        top = winner(versions)
        fields.setdefault(entity, {})[key] = versions[top][0]
        tops.setdefault(entity, {})[key] = top
        latest[entity] = max(latest.get(entity, 0), top[0])
        if key == Field.TRUST:
            # A trust that only a newer version knows counts as the least: nobody gains by saying nonsense.
            fields[entity][key] = least(*(_known(Trust, value, Trust.UNTRUSTED) for value, _ in versions.values()))
        if still_open := unseen(versions):
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
            memory = _memory_of(entity, values, name, latest[entity], counts.get(entity, (0, 0)))
            noted = state.bounds.get(entity)
            memories[entity] = within_bounds(memory, tops[entity], noted, state.registers) if noted else memory
    claimed_at: dict[tuple[str, str], int] = {}
    for name, stamp, entity in live_claims(state):
        found = (stamp[0], claimed_at.get((entity, name), stamp[0]))
        claimed_at[entity, name] = min(found, key=lambda hlc: (hlc < FIRST_CLAIM, hlc))
    return View(
        events={
            event_id: replace(event, text=blanked(event.text, state.blanks.get(event_id, ())))
            for event_id, event in state.events.items()
            if event_id not in state.forgotten
        },
        memories=memories,
        aliases={
            name: Alias(name=name, memory_id=entity, created_at=shown_time(millis_of(Hlc(claimed_at[entity, claimed]))))
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


def _time(said: int | None) -> Millis | None:
    """Return a time that a register says, or that it says none; as far back as it goes ahead."""
    return None if said is None else shown_time(said, least=-MAX_EVENT_MILLIS)


def _memory_of(entity: str, values: dict[int, Any], name: str | None, latest: int, accessed: tuple[int, int]) -> Memory:
    said = ABSENT | values
    trust = _known(Trust, said[Field.TRUST], Trust.UNTRUSTED)
    return Memory(
        id=entity,
        content=said[Field.CONTENT],
        content_hash=content_hash(said[Field.CONTENT]),
        kind=_known(Kind, said[Field.KIND], Kind.STORED),
        type=_known(MemoryType, said[Field.TYPE], MemoryType.FACT),
        scope=_known(Scope, said[Field.SCOPE], Scope.USER),
        resource_id=said[Field.RESOURCE_ID],
        layer=allowed_layer(_known(Layer, said[Field.LAYER], Layer.ARCHIVE), trust),
        salience=said[Field.SALIENCE],
        confidence=said[Field.CONFIDENCE],
        topic=said[Field.TOPIC],
        trust=trust,
        valid_from=_time(said[Field.VALID_FROM]),
        valid_to=_time(said[Field.VALID_TO]),
        superseded_by=said[Field.SUPERSEDED_BY],
        archived_at=_time(said[Field.ARCHIVED_AT]),
        review=said[Field.REVIEW],
        metadata=dict(said[Field.METADATA]),
        name=name,
        created_at=shown_time(said[Field.CREATED_AT], least=-MAX_EVENT_MILLIS),
        updated_at=shown_time(millis_of(Hlc(latest))),
        access_count=accessed[0],
        accessed_at=Millis(accessed[1]) if accessed[0] else None,
    )
