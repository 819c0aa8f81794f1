"""The table of contents by time: its nodes, a period of it, and the passages that its bullets were taken from.

Ids of nodes: `toc` (the root), `toc:year:2026`, `toc:month:2026-11`, `toc:week:2026-W47`, `toc:day:2026-11-21` and
`toc:segment:` with the id of the segment's first event. Days are the person's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, TocNode


@dataclass(frozen=True, slots=True, kw_only=True)
class TocRequest:
    """A node with a page of its children. Without `id`, the root: its children are the years."""

    id: str | None = None
    project: str | None = None
    session_id: str | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TocResponse:
    """A node, and the ways on from it: up, sideways, down. All of it is only what the caller sees.

    `level` is root, year, month, week, day or segment. `parents` are the ids above (a week may lie in two months),
    `previous` and `following` those beside. `children` come with less of their bullets; `next` is the cursor of their
    next page. Of a segment, `session_id` and `project` say where it was said; its events are those of that session from
    `node.start` to `node.end`. `building` says how many sessions changed and are not in it yet.
    """

    node: TocNode
    level: str
    events: int = 0
    segments: int = 0
    sessions: int = 0
    parents: tuple[str, ...] = ()
    previous: str | None = None
    following: str | None = None
    children: tuple[TocNode, ...] = ()
    next: str | None = None
    session_id: str | None = None
    project: str | None = None
    building: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """The nodes of one level with events between two times (`until` is outside), oldest first.

    Without `level`, one that divides the period into a few dozen nodes at most.
    """

    since: Millis | None = None
    until: Millis | None = None
    level: str | None = None
    project: str | None = None
    session_id: str | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineResponse:
    """The nodes of a period, all of one level, and the cursor of the next page."""

    level: str
    nodes: tuple[TocNode, ...]
    next: str | None = None
    building: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GripRequest:
    """A passage, of a bullet (`grip:…`) or of a memory (the id of a grip), with so many events before and after.

    The id of an event, or the beginning of it, stands for the whole event.
    """

    id: str
    before: int = 2
    after: int = 2
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GripResponse:
    """A passage with what was said around it.

    The events from `event_id_start` to `event_id_end`, joined by a newline, hold `excerpt` at `[span_start:span_end]`.
    They stand in `events` among those before and after, in order; long texts are cut. `segment` is the node that holds
    the passage, None while it is not built yet; `memory_id` is the memory that rests on it, where it is a memory's.
    """

    id: str
    excerpt: str
    event_id_start: str
    event_id_end: str
    span_start: int
    span_end: int
    events: tuple[Event, ...]
    memory_id: str | None = None
    segment: str | None = None
