"""Events: appended in batches, and paged through."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventDraft, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Why something was not taken, and how often."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """A batch of events. `learn` false stores them, and nothing is learned of them (the request-level off switch).

    An event whose metadata has `"useMemory": false` has that switch by itself, and so has what follows it in its
    session up to the next prompt.
    """

    events: tuple[EventDraft, ...]
    learn: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResponse:
    """What became of a batch: durable when this is returned. `ids` stand in the order of the drafts.

    An id of an event that was already there is that event's; "" stands where the draft was skipped.
    """

    accepted: int
    duplicates: int
    ids: tuple[str, ...]
    redactions: dict[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRequest:
    """A page of events in time order, optionally of one session."""

    session_id: str | None = None
    project: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsResponse:
    """A page of events and the cursor of the next, None at the end. A page of large texts ends before its limit.

    `notes` say when nothing belongs to `project`.
    """

    events: tuple[Event, ...]
    next: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsResponse:
    """All sessions, newest first."""

    sessions: tuple[Session, ...]
