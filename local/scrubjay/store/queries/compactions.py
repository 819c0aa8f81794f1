"""Reading a session as compaction sees it: places, the events that speak of compactions, and what lies between."""

from __future__ import annotations

from scrubjay.store import rows
from scrubjay.store.queries.events import EventFilter
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Event, EventType

_COMPACTION = f"type = '{EventType.COMPACTION.value}'"


class CompactionQueries:
    """Places in sessions, and the events of type compaction."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def place(self, event_id: str) -> tuple[str, tuple[int, int, str]] | None:
        """Return the session of an event and its place there, None when there is no such event (any more)."""
        found = self._fetch("select session_id, ts, seq, id from event where id = ? and not forgotten", (event_id,))
        return (str(found[0][0]), (found[0][1], found[0][2], str(found[0][3]))) if found else None

    def last(self, chosen: EventFilter) -> tuple[Event, tuple[int, int, str]] | None:
        """Return the last of some events in order with its place, None when there is none."""
        clause, values = chosen.clause()
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS}, seq from event where {clause} and not forgotten"
            " order by ts desc, seq desc, id desc limit 1",
            values,
        )
        if not found:
            return None
        event = rows.event_of(found[0])
        return event, (event.ts, int(found[0][13]), event.id)

    def extent(self, chosen: EventFilter) -> tuple[int, list[str | None]]:
        """Return how many events there are, and the projects that they belong to."""
        clause, values = chosen.clause()
        found = self._fetch(
            f"select project, count(*) from event where {clause} and not forgotten group by project order by project",
            values,
        )
        return sum(int(row[1]) for row in found), [row[0] for row in found]

    def of_session(self, session_id: str) -> list[tuple[Event, int]]:
        """Return the compaction events of a session in order, each with its seq."""
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS}, seq from event indexed by event_compaction"
            f" where {_COMPACTION} and session_id = ? and not forgotten order by ts, seq, id",
            (session_id,),
        )
        return [(rows.event_of(row), int(row[13])) for row in found]

    def arrived(self, after: int) -> tuple[int, list[str]]:
        """Return the sessions with compaction events after an arrival number, and the last number of these."""
        found = self._fetch(
            f"select session_id, max(n) from event indexed by event_compaction"
            f" where {_COMPACTION} and n > ? and not forgotten group by session_id order by max(n)",
            (after,),
        )
        return max((int(row[1]) for row in found), default=after), [str(row[0]) for row in found]
