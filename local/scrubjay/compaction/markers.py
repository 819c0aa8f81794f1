"""Markers: the events that say up to where a session was compacted, and which archive stands for what came before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scrubjay_shared.clock import MAX_MILLIS, Millis
from scrubjay_shared.records import Event, EventType, Json

ARCHIVE_NAME = "archive_name"
ARCHIVED_AT = "archived_at"
UPTO = "upto"
UPTO_TS = "upto_ts"
UPTO_SEQ = "upto_seq"
EVENTS = "events"

MAX_SEQ = (1 << 63) - 1


class Place(NamedTuple):
    """Where an event stands in its session: in order of time, then of its device's log, then of its id."""

    ts: int
    seq: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """One marker. Its archive stands for the events up to `upto`, after the marker before it.

    `event_id` is the marker's own event; `archived_at` is in UTC milliseconds.
    """

    event_id: str
    archive_name: str
    archived_at: Millis
    upto: Place
    placed: Place


def metadata_of(*, archive_name: str, archived_at: Millis, upto: Place, events: int) -> Json:
    """Return what a marker's event says of itself."""
    return {
        ARCHIVE_NAME: archive_name,
        ARCHIVED_AT: int(archived_at),
        EVENTS: events,
        UPTO: upto.id,
        UPTO_SEQ: upto.seq,
        UPTO_TS: upto.ts,
    }


def marker_of(event: Event, seq: int) -> Marker | None:
    """Return the marker that an event is; None for any other, also for one whose metadata cannot be read as one."""
    if event.type is not EventType.COMPACTION:
        return None
    said = event.metadata
    name, upto = said.get(ARCHIVE_NAME), said.get(UPTO)
    archived_at, upto_ts = _number(said.get(ARCHIVED_AT), MAX_MILLIS), _number(said.get(UPTO_TS), MAX_MILLIS)
    upto_seq = _number(said.get(UPTO_SEQ), MAX_SEQ)
    if not isinstance(name, str) or not name or not isinstance(upto, str):
        return None
    if archived_at is None or upto_ts is None or upto_seq is None:
        return None
    return Marker(
        event_id=event.id,
        archive_name=name,
        archived_at=Millis(archived_at),
        upto=Place(upto_ts, upto_seq, upto),
        placed=Place(event.ts, seq, event.id),
    )


def _number(value: Any, most: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def in_order(markers: Sequence[Marker]) -> list[Marker]:
    """Return markers by how far they reach; of two that reach as far, the one that was placed first comes first.

    Two devices may have compacted one session without having seen each other's: this order is the same on both.
    """
    return sorted(markers, key=lambda marker: (marker.upto, marker.placed))


def before(markers: Sequence[Marker], marker: Marker) -> Place | None:
    """Return where the archive of a marker begins: after the marker before it; None at the session's beginning."""
    ordered = in_order(markers)
    at = ordered.index(marker)
    return ordered[at - 1].upto if at else None
