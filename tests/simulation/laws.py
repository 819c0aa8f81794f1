"""What must hold of any history (docs/protocol.md, 6), told from the list of ops alone and written apart from `ops.fold`.

`shown` is a second reading of the merge rules: slow, plain, and order-free by construction, because it sorts first.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from scrubjay_shared import clock, ops, records
from scrubjay_shared.ops import Counter, Field, OpType, Stamp, State, View
from scrubjay_shared.records import Op

ulid_text = functools.lru_cache(maxsize=4096)(clock.ulid_text)
"""The text of an id, remembered: half the time of a history would go into writing the same ids again."""
ops.ulid_text = ulid_text  # a pure function, only remembered, as are those that follow
ops.ulid_bytes = functools.lru_cache(maxsize=4096)(clock.ulid_bytes)
ops.content_hash = functools.lru_cache(maxsize=4096)(records.content_hash)


GONE = object()
"""Stands for a value that was emptied."""

CENTURIES = 1 << 59
"""How far two stamps must be apart for the smaller to be the later one."""


UNSET = 1_704_067_200_000 << 16
"""A stamp before 2024 is of a clock that nobody had set."""


class Faults(frozenset[str]):
    """The faults of a history. They are told in one order, so that a seed says the same in every process."""

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, sorted(self)))}}}"


class BrokenLawError(AssertionError):
    """A history in which one of the laws does not hold. `law` is its number."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law


def require(law: str, what: str, *, holds: bool) -> None:
    """Raise BrokenLawError unless a law holds."""
    if not holds:
        raise BrokenLawError(law, what)


def shown(every: Iterable[Op]) -> dict[str, Any]:
    """Return what a reader must see after some ops, as plain values: the expectation that `seen` is compared with."""
    in_order = sorted(every, key=lambda op: (op.hlc, op.device, op.seq))
    gone = {ulid_text(op.body[1]) for op in in_order if op.type == OpType.FORGET}
    versions: dict[tuple[str, int], dict[Stamp, tuple[Any, list[Stamp]]]] = defaultdict(dict)
    totals: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    claims: list[tuple[Stamp, str, str]] = []
    ended: set[tuple[str, Stamp]] = set()
    spans: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for op in in_order:
        entity, stamp = ulid_text(op.body[1]), (int(op.hlc), op.device)
        if op.type == OpType.MEMORY:
            for key in [*op.body[2], *op.body.get(5, ())]:
                versions[entity, key][stamp] = (op.body[2].get(key, GONE), _seen(op.body, key))
        elif op.type == OpType.COUNT and op.body[2] == Counter.ACCESS:
            total = (op.body[3], op.body[4])
            totals[entity][op.device] = max(total, totals[entity].get(op.device, (0, 0)))
        elif op.type == OpType.CLAIM:
            claims.append((stamp, op.body[2], entity))
        elif op.type == OpType.UNCLAIM:
            ended |= {(op.body[2], (hlc, device.hex())) for hlc, device in op.body[3]}
        elif op.type == OpType.BLANK:
            spans[entity] |= {(start, end) for start, end in op.body[2]}
    return {
        "values": _winners(versions, gone),
        "conflicts": _conflicts(versions, gone),
        "counts": {
            entity: (sum(total for total, _ in found.values()), max(last for _, last in found.values()))
            for entity, found in totals.items()
            if entity not in gone
        },
        "names": _names([one for one in claims if one[2] not in gone and (one[1], one[0]) not in ended]),
        "texts": {
            ulid_text(op.body[1]): _erased(op.body[6], spans[ulid_text(op.body[1])])
            for op in in_order
            if op.type == OpType.EVENT and ulid_text(op.body[1]) not in gone
        },
        "grips": {
            ulid_text(op.body[2])
            for op in in_order
            if op.type == OpType.GRIP and not {ulid_text(op.body[2]), ulid_text(op.body[1])} & gone
        },
    }


def _seen(body: dict[int, Any], key: int) -> list[Stamp]:
    """Return the stamps that a write names as seen: of the value it replaced, and of others that it settles."""
    wires = [body[3][key]] if key in body.get(3, {}) else []
    return [(hlc, device.hex()) for hlc, device in [*wires, *body.get(4, {}).get(key, ())]]


def _living(known: dict[Stamp, tuple[Any, list[Stamp]]]) -> list[Stamp]:
    """Return what of a register nobody replaced knowingly, in the order of stamps: the last one shows.

    What a write without a value had seen is replaced, and so is that write: nobody empties what nobody replaced.
    """
    replaced = {stamp for stamp, (value, _) in known.items() if value is GONE}
    for stamp, (_, given) in known.items():
        replaced |= {seen for seen in given if _later(stamp, seen)}
    return sorted(stamp for stamp in known if stamp not in replaced)


def as_told(every: list[Op], held: Mapping[tuple[str, int], Op | None]) -> list[Op]:
    """Return ops in their own words, but as they are `held` where what replaced them is lost with all who had it.

    Whoever emptied such a write had seen that, and nobody knows its words any more.
    """
    named = {
        (ulid_text(op.body[1]), key, seen)
        for op in every
        if op.type == OpType.MEMORY
        for key in op.body[2]
        for seen in _seen(op.body, key)
        if _later((int(op.hlc), op.device), seen)
    }
    told = []
    for op in every:
        now = held[op.device, op.seq]
        emptied = now.body.get(5, ()) if now is not None and op.type == OpType.MEMORY else ()
        lost = any((ulid_text(op.body[1]), key, (int(op.hlc), op.device)) not in named for key in emptied)
        told.append(now if lost and now is not None else op)
    return told


def _later(stamp: Stamp, seen: Stamp) -> bool:
    """Say whether a write counts as later than one it names: unless the other is centuries ahead, by the stamps."""
    return stamp > seen if abs(stamp[0] - seen[0]) < CENTURIES else stamp < seen


def _winners(
    versions: dict[tuple[str, int], dict[Stamp, tuple[Any, list[Stamp]]]], gone: set[str]
) -> dict[tuple[str, int], Any]:
    return {
        key: found[living[-1]][0]
        for key, found in versions.items()
        if key[0] not in gone and (living := _living(found))
    }


def _conflicts(
    versions: dict[tuple[str, int], dict[Stamp, tuple[Any, list[Stamp]]]], gone: set[str]
) -> dict[tuple[str, int], tuple[Stamp, ...]]:
    found = {}
    for key, known in versions.items():
        if key[0] not in gone and (still_open := _living(known)[:-1]):
            found[key] = tuple(still_open)
    return found


def _names(live: list[tuple[Stamp, str, str]]) -> dict[str, str]:
    """Return the holder of each name: the first to claim it; who came later takes the next `~n` that is nobody's."""
    order: dict[str, list[str]] = defaultdict(list)
    for _, name, entity in sorted(live, key=lambda one: (one[0][0] < UNSET, *one)):
        if entity not in order[name]:
            order[name].append(entity)
    names = {name: entities[0] for name, entities in order.items()}
    for name, entities in sorted(order.items()):
        number = 2
        for entity in entities[1:]:
            while f"{name}~{number}" in names:
                number += 1
            names[f"{name}~{number}"] = entity
    return names


def _erased(text: str, spans: set[tuple[int, int]]) -> str:
    covered = {at for start, end in spans for at in range(max(start, 0), end)}
    return "".join("░" if at in covered else character for at, character in enumerate(text)) if covered else text


def seen(state: State, view: View) -> dict[str, Any]:
    """Return what a state and its view say, in the form of `shown`."""
    return {
        "values": {
            (entity, key): versions[ops.winner(versions)][0]
            for (entity, key), versions in state.registers.items()
            if entity not in state.forgotten
        },
        "conflicts": view.conflicts,
        "counts": _counts(state),
        "names": {name: entity for name, (entity, _) in ops.holders(state).items()},
        "texts": {event_id: event.text for event_id, event in view.events.items()},
        "grips": {grip for grip, made in state.grips.items() if not {grip, made.memory_id} & state.forgotten},
    }


def _counts(state: State) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for (entity, _, _), (total, last) in state.counters.items():
        if entity not in state.forgotten:
            before = found.get(entity, (0, 0))
            found[entity] = (before[0] + total, max(before[1], last))
    return found


def check_view(every: list[Op], state: State, view: View) -> None:
    """I1, I2, I3, I5: a view says what the ops say: every value shown, an ancestor or a conflict; counts exact."""
    expected, actual = shown(every), seen(state, view)
    for part, law in (
        ("values", "I1 the greatest stamp wins"),
        ("conflicts", "I2 no edit is lost unseen"),
        ("counts", "I5 counters are exact"),
        ("names", "I1 the first claim holds a name"),
        ("texts", "I2 events are kept, and blanked where told"),
        ("grips", "I2 grips are kept"),
    ):
        require(law, f"{part}: {actual[part]!r} is not {expected[part]!r}", holds=actual[part] == expected[part])
    for entity, memory in view.memories.items():
        content = expected["values"].get((entity, int(Field.CONTENT)))
        require("I1 the view shows the winner", entity, holds=memory.content == content)
        counted = expected["counts"].get(entity, (0, 0))[0]
        require("I5 counters are exact", entity, holds=memory.access_count == counted)
    whole = {
        entity
        for entity, key in expected["values"]
        if key == Field.CONTENT and (entity, int(Field.CREATED_AT)) in expected["values"]
    }
    require("I2 every memory shows", "", holds=set(view.memories) == whole)
    grips = {grip for grip in expected["grips"] if state.grips[grip].memory_id in whole}
    require("I2 every grip of a memory shows", "", holds=set(view.grips) == grips)


def check_forgotten(gone: Iterable[str], view: View) -> None:
    """I3: what was forgotten is never seen again, in no form."""
    for entity in gone:
        visible = (
            entity in view.memories
            or entity in view.events
            or entity in view.grips
            or any(alias.memory_id == entity for alias in view.aliases.values())
            or any(grip.memory_id == entity for grip in view.grips.values())
            or any(key[0] == entity for key in view.conflicts)
        )
        require("I3 forgotten is never seen again", entity, holds=not visible)


def check_moved(before: State, after: State) -> None:
    """I5, I2: a device that goes on under a new id shows the same counts and no conflict that was not there."""
    old, new = ops.view(before), ops.view(after)
    for entity, memory in old.memories.items():
        same = entity in new.memories and new.memories[entity].access_count == memory.access_count
        require("I5 a new incarnation counts nothing twice", entity, holds=same)
    for key, stamps in new.conflicts.items():
        times = sorted(hlc for hlc, _ in after.registers[key])
        if len(times) == len(set(times)):  # where two devices wrote at one time, the new id may win where the old lost
            grown = len(stamps) > len(old.conflicts.get(key, ()))
            require("I2 a new incarnation makes no conflicts", str(key), holds=not grown)


def tables(every: Iterable[Op]) -> dict[str, Any]:
    """Return what the tables of a store must show after some ops, in the form of `Machine.shown`."""
    kept = list(every)
    expected = shown(kept)
    values = expected["values"]
    ids = {entity for entity, key in values if key == Field.CONTENT and (entity, int(Field.CREATED_AT)) in values}
    owners = {ulid_text(op.body[2]): ulid_text(op.body[1]) for op in kept if op.type == OpType.GRIP}
    return {
        "memories": {
            entity: (values[entity, int(Field.CONTENT)], values.get((entity, int(Field.TOPIC)))) for entity in ids
        },
        "counts": {entity: counted for entity, counted in expected["counts"].items() if entity in ids},
        "names": {name: entity for name, entity in expected["names"].items() if entity in ids},
        "texts": expected["texts"],
        "grips": {grip for grip in expected["grips"] if owners[grip] in ids},
        "conflicts": {one for one in _disputed(kept) if one[0] in ids},
    }


def _disputed(every: list[Op]) -> set[tuple[str, int, Stamp]]:
    """Return the versions that somebody must decide on: lost unseen, not replaced by their own side, and different."""
    versions: dict[tuple[str, int], dict[Stamp, tuple[Any, list[Stamp]]]] = defaultdict(dict)
    gone = {ulid_text(op.body[1]) for op in every if op.type == OpType.FORGET}
    for op in every:
        if op.type == OpType.MEMORY:
            for key in [*op.body[2], *op.body.get(5, ())]:
                said = (op.body[2].get(key, GONE), _seen(op.body, key))
                versions[ulid_text(op.body[1]), key][int(op.hlc), op.device] = said
    found = set()
    for (entity, key), still_open in _conflicts(versions, gone).items():
        known = versions[entity, key]
        found |= {(entity, key, one) for one in still_open if known[one][0] != known[_living(known)[-1]][0]}
    return found


def check_tables(every: Iterable[Op], actual: dict[str, Any]) -> None:
    """I1, I2, I3, I5: the tables of a store say what its ops say, read a second time and otherwise."""
    expected = tables(every)
    for part, law in (
        ("memories", "I1 the greatest stamp wins"),
        ("counts", "I5 counters are exact"),
        ("names", "I1 the first claim holds a name"),
        ("texts", "I2 events are kept, and blanked where told"),
        ("grips", "I2 grips are kept"),
        ("conflicts", "I2 no edit is lost unseen"),
    ):
        same = actual[part] == expected[part]
        require(law, f"{part}: {actual[part]!r} is not {expected[part]!r}" if not same else "", holds=same)
