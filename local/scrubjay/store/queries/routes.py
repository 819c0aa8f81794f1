"""Reading for routes: the newest events as they stand, and whether a table can be read at all."""

from __future__ import annotations

from scrubjay.store import rows
from scrubjay.store.queries.events import EventFilter
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event

PROBED = ("event", "memory", "toc_segment")


class RouteQueries:
    """What routing reads beside the other queries."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def newest(self, chosen: EventFilter, *, limit: int, chars: int) -> list[Event]:
        """Return the newest of some events that hold words, the newest first, no more than `chars` of a text."""
        clause, values = chosen.clause()
        columns = rows.beginning(rows.EVENT_COLUMNS, "text", chars)
        found = self._fetch(
            f"select {columns} from event where {clause} and not forgotten and text <> ''"
            " order by ts desc, seq desc, id desc limit ?",
            (*values, limit),
        )
        return [rows.event_of(row) for row in found]

    def probe(self, table: str) -> bool:
        """Read a row of a table, to see whether it can be read. Raises what SQLite raises where it cannot."""
        if table not in PROBED:
            raise InvalidError(f"{table!r} is not probed", hint=f"tables: {', '.join(PROBED)}")
        self._fetch(f"select * from {table} limit 1")
        return True
