"""Compaction: a session's beginning becomes an archive, and its history is replayed from there."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.api.memories import Entry
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactRequest:
    """Compact a session up to one of its events, which is included; up to its last event where `upto` is None."""

    session_id: str
    upto: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResponse:
    """The archive and its marker. `events` counts what the archive stands for.

    With `created` false the session was compacted up to there before, and these are the archive and marker of then.
    """

    archive: Entry
    marker: Event
    events: int
    created: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A page of a session's history from its latest marker on; or of the events that `archive`, a name, stands for."""

    session_id: str
    archive: str | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResponse:
    """What stands before the events as one text (the archive), and a page of the events, in order.

    Without a marker all events are replayed, and the archive's fields are None. `archive_text` is None as well where
    the archive was forgotten. `archives` names all archives of the session, the oldest first; of another one, `archive`
    in the request gives the events. `next` is the cursor of the next page.
    """

    session_id: str
    events: tuple[Event, ...]
    archive_name: str | None = None
    archived_at: Millis | None = None
    archive_text: str | None = None
    archives: tuple[str, ...] = ()
    next: str | None = None
