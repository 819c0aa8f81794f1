"""What a caller may see and wants to see, as masks over the tables of the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrubjay.index.arrays import Mask
from scrubjay.index.documents import EVENT, FOREVER, KINDS, MEMORY
from scrubjay.index.index import Index
from scrubjay.index.table import Table
from scrubjay_shared.records import Kind, Scope

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What may be seen, and what is wanted. None means "any".

    A caller with a project sees what is for the person, for its project, and for its session; and events of its
    project, of its session, or of none. A caller without one (the person at the terminal) sees all.

    `scope`, `resource_id` and `topic` narrow memories further; naming a scope or topic leaves no events, which have
    none.

    `types` are event or memory types: naming only memory types leaves no events. `min_salience` above 0 leaves no
    events either, which have none. `since` ≤ time < `until`, in UTC milliseconds: an event's time; a memory's validity
    where its text gave one (any overlap), else its creation. `as_of`, in UTC milliseconds, leaves what was known before
    that moment, and what was replaced only later counts as current.
    """

    caller_project: str | None = None
    caller_session: str | None = None
    kinds: frozenset[str] = frozenset(kind.name for kind in KINDS)
    types: frozenset[str] | None = None
    min_salience: float = 0.0
    agent: str | None = None
    session_id: str | None = None
    project: str | None = None
    scope: str | None = None
    resource_id: str | None = None
    topic: str | None = None
    since: int | None = None
    until: int | None = None
    as_of: int | None = None
    superseded: bool = True


def visible_events(index: Index, filters: Filters) -> Mask | None:
    """Return which events a caller may see, None for every living one."""
    if filters.caller_project is None and filters.caller_session is None:
        return None
    events = index.events
    project = events["project"]
    own = (project == index.names.projects.find(filters.caller_project)) | (project == -1)
    if filters.caller_session is not None:
        own |= events["session"] == index.names.sessions.find(filters.caller_session)
    return np.asarray(own & events["alive"], np.bool_)


def visible_memories(index: Index, filters: Filters) -> Mask | None:
    """Return which memories a caller may see, None for every living one.

    What was put away by then is seen only for the sake of what holds it.
    """
    memories = index.memories
    there = _not_archived(memories, filters.as_of)
    if filters.caller_project is None and filters.caller_session is None:
        return there
    scope, resource = memories["scope"], memories["resource"]
    own = scope == index.names.scopes.find(Scope.USER)
    if filters.caller_project is not None:
        own |= (scope == index.names.scopes.find(Scope.PROJECT)) & (
            (resource == index.names.resources.find(filters.caller_project))
            | ((resource == -1) & (memories["project"] == index.names.projects.find(filters.caller_project)))
        )
    if filters.caller_session is not None:
        own |= (scope == index.names.scopes.find(Scope.SESSION)) & (
            (resource == index.names.resources.find(filters.caller_session))
            | (memories["session"] == index.names.sessions.find(filters.caller_session))
        )
    own &= memories["alive"]
    return np.asarray(own if there is None else own & there, np.bool_)


def _not_archived(memories: Table, as_of: int | None) -> Mask | None:
    """Return which living memories were not put away by themselves at a moment (None for now); None where none was."""
    if not len(memories) or not (memories["archived"] != FOREVER).any():
        return None
    there = ~_put_away(memories, as_of) | memories["is_member"]
    return np.asarray(memories["alive"] & there, np.bool_)


def _put_away(memories: Table, as_of: int | None) -> Mask:
    return np.asarray(memories["archived"] <= (FOREVER - 1 if as_of is None else as_of), np.bool_)


def members(memories: Table, as_of: int | None) -> Mask:
    """Return which memories were put away into another at a moment, None for now: they lead to that."""
    return np.asarray(memories["is_member"] & _put_away(memories, as_of), np.bool_)


def found_by_members(memories: Table) -> Mask:
    """Return which archives are found by the words of what they hold, and so are not looked for by their own."""
    return np.asarray(memories["has_members"], np.bool_)


def wanted_events(index: Index, filters: Filters) -> Mask | None:
    """Return which events are asked for, None for every living one."""
    events = index.events
    if (
        EVENT.name not in filters.kinds
        or filters.min_salience > 0
        or filters.scope is not None
        or filters.topic is not None
    ):
        return np.zeros(len(events), np.bool_)
    masks = _wanted(index, events, filters)
    if filters.since is not None:
        masks.append(events["ts"] >= filters.since)
    if filters.until is not None:
        masks.append(events["ts"] < filters.until)
    if filters.as_of is not None:
        masks.append(events["ts"] < filters.as_of)
    return _all(events, masks)


def wanted_memories(index: Index, filters: Filters) -> Mask | None:
    """Return which memories are asked for, None for every living one."""
    memories = index.memories
    if MEMORY.name not in filters.kinds:
        return np.zeros(len(memories), np.bool_)
    masks = _wanted(index, memories, filters)
    if filters.scope is not None:
        masks.append(memories["scope"] == index.names.scopes.find(filters.scope))
    if filters.resource_id is not None:
        masks.append(memories["resource"] == index.names.resources.find(filters.resource_id))
    if filters.topic is not None:
        masks.append(memories["topic"] == index.names.topics.find(filters.topic))
    if filters.min_salience > 0:
        masks.append(memories["salience"] >= np.float32(filters.min_salience))
    if not filters.superseded:
        masks.append(~superseded(memories, None, filters.as_of))
    if filters.as_of is not None:
        masks.append(memories["created"] < filters.as_of)
        # An archive is as old as what it holds, and was not known before it was made.
        made_later = (memories["kind"] == index.names.kinds.find(Kind.ARCHIVE)) & (memories["ts"] >= filters.as_of)
        masks.append(~made_later)
    if filters.since is not None or filters.until is not None:
        since = -FOREVER if filters.since is None else filters.since
        masks.append(held(memories, None, since, FOREVER if filters.until is None else filters.until))
    return _all(memories, masks)


def _all(table: Table, masks: Sequence[Mask]) -> Mask | None:
    return np.logical_and.reduce([table["alive"], *masks]) if masks else None


def _wanted(index: Index, table: Table, filters: Filters) -> list[Mask]:
    masks: list[Mask] = []
    if filters.types is not None:
        masks.append(np.isin(table["type"], [index.names.types.find(type_) for type_ in sorted(filters.types)]))
    for column, name, names in (
        ("agent", filters.agent, index.names.agents),
        ("session", filters.session_id, index.names.sessions),
        ("project", filters.project, index.names.projects),
    ):
        if name is not None:
            masks.append(table[column] == names.find(name))
    return masks


def superseded(memories: Table, rows: Rows | None, as_of: int | None) -> Mask:
    """Return which memories (of all without `rows`) another had taken the place of at a moment, None for now."""
    columns = (memories[name] for name in ("superseded", "valid_to", "archived", "is_member"))
    gone, until, archived, member = columns if rows is None else (column[rows] for column in columns)
    if as_of is None:
        return np.asarray(gone, np.bool_)
    gone = gone & (~member | (archived <= as_of))  # of a member, `superseded` speaks of what holds it
    until = np.where(until == FOREVER, archived, until)  # put away into another, which says the same: not outdated
    return np.asarray(gone & ((until <= as_of) | (until == FOREVER)), np.bool_)


def happened(events: Table, rows: Rows | None, start: int, end: int) -> Mask:
    """Return which events (of all without `rows`) happened in [start, end)."""
    ts = events["ts"] if rows is None else events["ts"][rows]
    return np.asarray((ts >= start) & (ts < end), np.bool_)


def held(memories: Table, rows: Rows | None, start: int, end: int) -> Mask:
    """Return which memories held at some time in [start, end), by their validity if a bound is known, else creation.

    One that another took the place of, of which no words say when it began, held from when it was said.
    """
    columns = (memories[name] for name in ("valid_from", "valid_to", "created", "superseded"))
    first, last, created, superseded = columns if rows is None else (column[rows] for column in columns)
    first = np.where(superseded & (first == -FOREVER) & (last != FOREVER), created, first)
    bounded = (first != -FOREVER) | (last != FOREVER)
    overlapping = (first < end) & (last >= start)
    return np.asarray(np.where(bounded, overlapping, (created >= start) & (created < end)), np.bool_)
