"""Reading for the audit: pages of current memories, of events, and of what sessions were handed."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Memory

_CURRENT = "m.superseded_by is null and m.archived_at is null and m.kind <> 'archive' and m.layer = 'archive'"


class AuditQueries:
    """What the audit looks at, newest first, a page at a time."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def memories(self, before: int | None, limit: int, *, chars: int) -> tuple[list[Memory], int | None]:
        """Return a page of current memories that arrived before a number, and the number to read on before."""
        columns = rows.beginning(rows.prefixed(rows.MEMORY_COLUMNS, "m"), "m.content", chars)
        found = self._fetch(
            f"select {columns}, null, null, m.n from memory m where {_CURRENT} and (?1 is null or m.n < ?1)"
            " order by m.n desc limit ?2",
            (before, limit),
        )
        return [rows.memory_of(row[:-1]) for row in found], int(found[-1][-1]) if len(found) == limit else None

    def count(self) -> int:
        """Return how many current memories there are."""
        return int(self._fetch(f"select count(*) from memory m where {_CURRENT}")[0][0])

    def texts(self, before: int | None, limit: int, *, chars: int) -> tuple[list[tuple[str, str]], int | None]:
        """Return a page of (id, text) of events that arrived before a number, and the number to read on before."""
        found = self._fetch(
            "select e.id, substr(e.text, 1, ?3), e.n from event e where not e.forgotten and (?1 is null or e.n < ?1)"
            " order by e.n desc limit ?2",
            (before, limit, chars),
        )
        return [(str(row[0]), str(row[1])) for row in found], int(found[-1][2]) if len(found) == limit else None

    def later(self, than: int, limit: int) -> dict[str, tuple[int, list[str]]]:
        """Return how many current memories, and events, are dated later, with the ids of the first of each."""
        found = {}
        for kind, which in (
            ("future", f"from memory m where {_CURRENT} and m.created_at > ?1"),
            ("future_event", "from event m where not m.forgotten and m.ts > ?1"),
        ):
            ids = [str(row[0]) for row in self._fetch(f"select m.id {which} order by m.n limit ?2", (than, limit))]
            found[kind] = int(self._fetch(f"select count(*) {which}", (than,))[0][0]), ids
        return found

    def sessions_handed(self, limit: int) -> list[str]:
        """Return the sessions that were handed something, the last first."""
        found = self._fetch("select session_id from handed group by 1 order by max(at) desc limit ?", (limit,))
        return [str(row[0]) for row in found]

    def learned_from(self, session_id: str) -> list[tuple[str, str, str]]:
        """Return (memory, content, trust) of the current memories that a session gave, and was not handed."""
        found = self._fetch(
            f"select distinct m.id, substr(m.content, 1, 2000), m.trust from event e"
            f" join grip g on g.event_id_start = e.id join memory m on m.id = g.memory_id"
            f" where e.session_id = ?1 and {_CURRENT}"
            " and not exists (select 1 from handed h where h.session_id = ?1 and h.ref = m.id)",
            (session_id,),
        )
        return [(str(row[0]), str(row[1]), str(row[2])) for row in found]

    def echoed_sources(self, session_id: str) -> tuple[list[str], int]:
        """Return the grips of agents' words on memories that their session was handed before; and of all its grips."""
        found = self._fetch(
            "select g.id from event e join grip g on g.event_id_start = e.id"
            " join handed h on h.session_id = e.session_id and h.ref = g.memory_id"
            " where e.session_id = ?1 and e.role <> 'user' and e.ts > h.at",
            (session_id,),
        )
        [(all_,)] = self._fetch(
            "select count(*) from event e join grip g on g.event_id_start = e.id where e.session_id = ?1", (session_id,)
        )
        return [str(row[0]) for row in found], int(all_)

    def handed_though(self, clause: str) -> list[str]:
        """Return the memories that were handed to a session and of which a condition over memory m holds."""
        found = self._fetch(
            f"select distinct m.id from handed h join memory m on m.id = h.ref where {clause} order by 1"
        )
        return [str(row[0]) for row in found]

    def handed_memories(self) -> int:
        """Return how many memories were handed to any session."""
        return int(self._fetch("select count(distinct m.id) from handed h join memory m on m.id = h.ref")[0][0])

    def elsewhere(self) -> Sequence[str]:
        """Return the memories of a project that were learned in another one."""
        found = self._fetch(
            f"select m.id from memory m where {_CURRENT} and m.scope = 'project'"
            " and json_extract(m.metadata, '$.project') is not null"
            " and json_extract(m.metadata, '$.project') <> m.resource_id order by m.n"
        )
        return [str(row[0]) for row in found]
