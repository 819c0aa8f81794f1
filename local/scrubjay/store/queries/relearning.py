"""Reading what lesser readers learned of which session, for a run that reads sessions anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scrubjay.lifecycle.relearning import Kept, Learned, Lesser, kept
from scrubjay.store import rows
from scrubjay.store.queries.events import EventSize
from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType

AT_ONCE = 500
"""Memories whose ops are read together: some hundredths of a second."""

_CURRENT = (
    "m.kind = 'observation' and m.superseded_by is null and m.archived_at is null and g.source <> ?2"
    " and exists (select 1 from json_each(?1) where instr(g.source, value) = 1)"
)
"""A memory m that holds, with a passage g of a source that is to be replaced: see `_sources`."""


class RelearningQueries:
    """Memories that lesser readers made, by the sessions that they were read from.

    `replaced` are the sources of these, `told` the sessions of what was told on purpose.
    """

    def __init__(self, fetch: Fetch, ops: OpLogQueries) -> None:
        self._fetch = fetch
        self._ops = ops

    def next_session(self, after: str, replaced: Lesser) -> str | None:
        """Return the first session, by its id, after another, of which they learned something that holds."""
        found = self._fetch(
            "select s.id from session s where s.id > ?3 and exists (select 1 from event e"
            " cross join grip g on g.event_id_start = e.id cross join memory m on m.id = g.memory_id"
            f" where e.session_id = s.id and {_CURRENT}) order by s.id limit 1",
            (*_sources(replaced), after),
        )
        return str(found[0][0]) if found else None

    def of_session(
        self, session_id: str, told: Collection[str], replaced: Lesser
    ) -> dict[str, tuple[Learned, Kept | None]]:
        """Return what they learned of a session and still holds, by id, with why it stays."""
        found = self._fetch(
            "select distinct m.id from event e cross join grip g on g.event_id_start = e.id"
            f" cross join memory m on m.id = g.memory_id where e.session_id = ?3 and {_CURRENT}",
            (*_sources(replaced), session_id),
        )
        return self.weighed([str(row[0]) for row in found], told, replaced)

    def all(self, told: Collection[str], replaced: Lesser) -> dict[str, tuple[Learned, Kept | None]]:
        """Return all that they learned and still holds, by id, with why it stays."""
        found = self._fetch(
            f"select distinct m.id from grip g join memory m on m.id = g.memory_id where {_CURRENT} order by m.id",
            _sources(replaced),
        )
        ids = [str(row[0]) for row in found]
        weighed: dict[str, tuple[Learned, Kept | None]] = {}
        for at in range(0, len(ids), AT_ONCE):
            weighed |= self.weighed(ids[at : at + AT_ONCE], told, replaced)
        return weighed

    def read_upto(self, session_id: str) -> int:
        """Return the arrival number up to which a session was read here: all of it where that is another device's."""
        found = self._fetch(
            "select iif(s.last_n > coalesce(l.n, 0), l.n, (select max(n) from event where session_id = s.id))"
            " from session s left join learned l on l.session_id = s.id where s.id = ?",
            (session_id,),
        )
        return int(found[0][0] or 0) if found else 0

    def has_left(self, session_id: str, after: int, upto: int) -> bool:
        """Say whether any event of a session between two arrival numbers may be learned from."""
        return bool(
            self._fetch(
                "select 1 from event where session_id = ? and n > ? and n <= ? and not forgotten"
                f" and not {rows.NOT_AGAIN} limit 1",
                (session_id, after, upto),
            )
        )

    def chars(self, session_id: str, upto: int) -> int:
        """Return how much of a session up to an arrival number may be learned from, without what tools printed."""
        found = self._fetch(
            "select coalesce(sum(length(text)), 0) from event where session_id = ? and n <= ? and not forgotten"
            f" and type <> 'tool_result' and not {rows.NOT_AGAIN}",
            (session_id, upto),
        )
        return int(found[0][0])

    def sizes(self, session_ids: Collection[str]) -> list[EventSize]:
        """Return how large the events of some sessions are that may be learned from, session by session in order."""
        return [
            EventSize(session_id=str(row[0]), ts=Millis(row[1]), type=EventType(row[2]), chars=int(row[3]))
            for row in self._fetch(
                "select e.session_id, e.ts, e.type, length(trim(e.text)) from json_each(?) w"
                " cross join event e on e.session_id = w.value where not e.forgotten"
                f" and not {rows.NOT_AGAIN} order by e.session_id, e.ts, e.seq",
                (rows.array(sorted(session_ids)),),
            )
        ]

    def weighed(
        self, ids: Sequence[str], told: Collection[str], replaced: Lesser
    ) -> dict[str, tuple[Learned, Kept | None]]:
        """Return some memories, by id, with why each stays."""
        if not ids:
            return {}
        wanted = rows.array(ids)
        sources: dict[str, set[str]] = {}
        sessions: dict[str, dict[str, int]] = {}
        for memory_id, source, session_id, last in self._fetch(
            "select g.memory_id, g.source, e.session_id, max(e.n) from json_each(?) w"
            " cross join grip g on g.memory_id = w.value"
            " left join event e on e.id in (g.event_id_start, g.event_id_end)"
            " group by g.memory_id, g.source, e.session_id",
            (wanted,),
        ):
            sources.setdefault(memory_id, set()).add(source)
            if session_id is not None:
                said = sessions.setdefault(memory_id, {})
                said[session_id] = max(last, said.get(session_id, 0))
        memories = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null,"
            " exists (select 1 from name where memory_id = m.id),"
            " exists (select 1 from feedback where memory_id = m.id and helped > 0),"
            " exists (select 1 from used where ref = m.id),"
            " exists (select 1 from memory o where o.superseded_by = m.id)"
            " from memory m where m.id in (select value from json_each(?))",
            (wanted,),
        )
        logs = self._ops.of_entities(ids)
        weighed = {}
        for *row, named, helped, used, supersedes in memories:
            memory = rows.memory_of(tuple(row))
            learned = Learned(
                memory=memory,
                sources=frozenset(sources.get(memory.id, ())),
                sessions=sessions.get(memory.id, {}),
                named=bool(named),
                helped=bool(helped),
                used=bool(used),
                supersedes=bool(supersedes),
            )
            weighed[memory.id] = (learned, kept(learned, logs.get(memory.id, ()), told, replaced))
        return weighed


def _sources(replaced: Lesser) -> tuple[str, str]:
    return rows.array(replaced.begins), replaced.but
