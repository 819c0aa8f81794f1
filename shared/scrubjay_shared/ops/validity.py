"""Which ops this version can apply. The others are kept, and fold to nothing until a version can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS
from scrubjay_shared.ops.outside import bounds_of
from scrubjay_shared.ops.schema import (
    ALSO,
    BASES,
    CLAIMED,
    COUNTER,
    EMPTIED,
    ENTITY,
    FIELDS,
    LAST,
    LASTING,
    OWNER,
    SEEN,
    SPANS,
    TOTAL,
    VERSION,
    Field,
    OpType,
    Wire,
)
from scrubjay_shared.ops.stamps import MAX_HLC
from scrubjay_shared.records import EventType, Op, Role, Trust

MAX_JSON_DEPTH = 64
"""Levels of metadata that are read; above what writers allow, and below where readers of JSON give up."""


def problem(op: Op) -> str:
    """Return why this version cannot apply an op, in words that quote nothing of it; "" when it can.

    An unknown value of a closed set (a type, a scope) does no harm in a memory, which shows its default instead until
    this device knows the value; an event has no default, so it waits.
    """
    return wire_problem((op.type, op.version, op.op_id, op.hlc, op.body))


def wire_problem(wire: Wire) -> str:
    """Return what `problem` says of an op as it was read."""
    op_type, version, _, hlc, body = wire
    check = _CHECKS.get(op_type)
    if check is None:
        return f"type {op_type} is of a newer version"
    if version != VERSION:
        return f"version {version} of type {op_type} is not known here"
    if not 0 < hlc <= MAX_HLC:
        return "its time is out of range"
    try:
        return check(body)
    except (LookupError, TypeError, ValueError, AttributeError):
        return "it is not well formed"


def _id(value: Any) -> bool:
    return type(value) is bytes and len(value) == 16


def _whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= MAX_HLC


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


def all_events_fit(
    *,
    hlcs: Sequence[int],
    agents: Sequence[str],
    sessions: Sequence[str],
    types: Sequence[str],
    roles: Sequence[str],
    times: Sequence[int],
    keys: Sequence[str],
    projects: Sequence[str | None],
    offsets: Sequence[int],
    trusts: Sequence[str],
    metadata: Sequence[dict[str, Any] | None],
) -> bool:
    """Whether `wire_problem` says nothing of any of some events, of which there is one at least: column by column.

    That the values are of these types is known, and that the ids are of the right size. A million events are looked at
    in a tenth of the time.
    """
    return (
        _EVENT_TYPES.issuperset(types)
        and _ROLES.issuperset(roles)
        and _TRUSTS.issuperset(trusts)
        and 0 < min(hlcs) <= max(hlcs) <= MAX_HLC
        and 0 <= min(times) <= max(times) <= MAX_EVENT_MILLIS
        and -DAY_MINUTES < min(offsets) <= max(offsets) < DAY_MINUTES
        and not any("\0" in "".join(column) for column in (agents, sessions, keys, filter(None, projects)))
        and all(map(_map, filter(None, metadata)))
    )


def _memory_problem(body: dict[int, Any]) -> str:
    fine = (
        _id(body[ENTITY])
        and all(type(key) is int and _FITS.get(key, _anything)(value) for key, value in body[FIELDS].items())
        and _stamps(body.get(BASES, {}).values())
        and all(_stamps(wires) for wires in body.get(ALSO, {}).values())
        and (EMPTIED not in body or _emptied(body[EMPTIED], body[FIELDS]))
    )
    bounds_of(body)
    return "" if fine else "it is not well formed"


def _emptied(keys: Any, values: dict[int, Any]) -> bool:
    """Whether these are registers without a value, of those that may lose theirs."""
    return type(keys) is list and all(type(key) is int and key not in values and key not in LASTING for key in keys)


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
    OpType.FORGET: _said(lambda body: OWNER not in body or _id(body[OWNER])),
    OpType.CLAIM: _said(lambda body: _words(body[CLAIMED])),
    OpType.UNCLAIM: _said(lambda body: _words(body[CLAIMED]) and _stamps(body[SEEN])),
    OpType.COUNT: _said(lambda body: all(_whole(body[key]) for key in (COUNTER, TOTAL, LAST))),
    OpType.GRIP: _grip_problem,
    OpType.BLANK: _said(lambda body: all(len(span) == 2 and all(map(_whole, span)) for span in body[SPANS])),
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
    Field.ARCHIVED_AT: _or_none(_whole),
    Field.REVIEW: _or_none(_words),
}
