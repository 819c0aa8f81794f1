"""What a session was handed."""

from __future__ import annotations

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Event, EventType, Session

_WORDS = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP)


class HandedQueries:
    """What sessions were handed, and what a new one may be told of the last."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def refs(self, session_id: str) -> set[str]:
        """Return the ids of what a session was handed."""
        return {str(row[0]) for row in self._fetch("select ref from handed where session_id = ?", (session_id,))}

    def told(self, session_id: str) -> list[tuple[str, int]]:
        """Return the ids of what a session was handed, and when."""
        found = self._fetch("select ref, at from handed where session_id = ? order by at, ref", (session_id,))
        return [(str(row[0]), int(row[1])) for row in found]

    def unused(self, project: str, *, sessions: int, least: int) -> dict[str, int]:
        """Return in how many of a project's last sessions each thing was handed since it was used last.

        What was handed in fewer than `least` of them is absent.
        """
        found = self._fetch(
            "select h.ref, count(*) from (select id from session where project = ?1 order by last desc limit ?2) s"
            " join handed h on h.session_id = s.id"
            " where h.at > coalesce((select max(u.at) from used u where u.ref = h.ref), 0)"
            " group by h.ref having count(*) >= ?3",
            (project, sessions, least),
        )
        return {str(row[0]): int(row[1]) for row in found}

    def texts(self, session_id: str, *, chars: int) -> list[str]:
        """Return the words of what a session was handed, of each at most so many characters."""
        found = self._fetch(
            "select coalesce((select substr(m.content, 1, ?2) from memory m where m.id = h.ref),"
            " (select substr(e.text, 1, ?2) from event e where e.id = h.ref and not e.forgotten))"
            " from handed h where h.session_id = ?1",
            (session_id, chars),
        )
        return [str(row[0]) for row in found if row[0]]

    def session_before(self, project: str, session_id: str | None) -> Session | None:
        """Return the session of a project in which somebody spoke last, other than one."""
        found = self._fetch(
            f"select {rows.SESSION_COLUMNS} from session where project = ?1 and id is not ?2"
            " and exists (select 1 from event e where e.session_id = session.id and not e.forgotten"
            " and e.type in (select value from json_each(?3))) order by last desc limit 1",
            (project, session_id, rows.array(kind.value for kind in _WORDS)),
        )
        return rows.session_of(found[0]) if found else None

    def last_words(self, session_id: str, *, limit: int, chars: int) -> list[Event]:
        """Return the last turns of a session, newest first, with at most `chars` characters of each."""
        found = self._fetch(
            f"select {rows.beginning(rows.EVENT_COLUMNS, 'text', chars)} from event where session_id = ?"
            f" and type in (select value from json_each(?)) and not forgotten and not {rows.KEPT_OUT}"
            " order by ts desc, seq desc, id desc limit ?",
            (session_id, rows.array(kind.value for kind in _WORDS), limit),
        )
        return [rows.event_of(row) for row in found]
