"""What writes do to the table of contents at once: mark what is to be cut again, take out what was erased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrubjay.policy import DEFAULT
from scrubjay.store import contents, rows
from scrubjay.store.contents import StoredPeriod
from scrubjay.store.write_context import WriteContext

_MARK = (
    "insert into toc_stale (session_id, place, since, said, marks) values (?1, ?2, ?2, ?3, 1) on conflict (session_id)"
    " do update set place = min(place, excluded.place), since = min(coalesce(since, excluded.since), excluded.since),"
    " said = max(said, excluded.said), marks = marks + 1"
)
_PLACE = rows.PLACE.replace("t.", "e.")


class Contents:
    """The tables `toc_segment`, `toc_period`, `toc_stale` and `toc_told`, within one transaction."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many

    def mark(self, places: Iterable[tuple[str, str]]) -> None:
        """Note that something was said: (session, place of the event)."""
        first: dict[str, str] = {}
        for session_id, place in places:
            first[session_id] = min(first.get(session_id, place), place)
        self._run_many(_MARK, [(session_id, place, 1) for session_id, place in first.items()])

    def mark_vectors(self, owners: Iterable[str]) -> None:
        """Note that some events got a vector. Of memories nothing is noted."""
        self._run_many(
            _MARK,
            [
                (session_id, place, 0)
                for session_id, place in self._fetch(
                    f"select e.session_id, min({_PLACE}) from event e where e.id in (select value from json_each(?))"
                    " group by e.session_id",
                    (rows.array(owners),),
                )
            ],
        )

    def mark_all(self, *, said: bool) -> None:
        """Note that every session is to be cut again."""
        self._run(
            "insert into toc_stale (session_id, place, since, said, marks) select id, ?1, ?1, ?2, 1 from session"
            " where true on conflict (session_id) do update"
            " set place = ?1, since = ?1, said = max(said, ?2), marks = marks + 1",
            (contents.BEGINNING, int(said)),
        )

    def empty(self) -> None:
        """Take out everything, to be made again."""
        for table in ("toc_segment", "toc_period", "toc_stale"):
            self._run(f"delete from {table}")
        self._taken_out()
        self.mark_all(said=True)

    def erased(self, event_ids: str) -> None:
        """Take out what was made of some events (a JSON array of ids) whose words changed, and note to cut again.

        Keywords of theirs may stand in every period that they lie in, so these are made again without them at once.
        """
        found = self._fetch(
            f"select e.session_id, {_PLACE}, e.ts from event e where e.id in (select value from json_each(?))",
            (event_ids,),
        )
        self.mark((session_id, place) for session_id, place, _ in found)
        self._run_many(
            "delete from toc_told where session_id = ?1 and since <= ?2 and last >= ?2",
            [(session_id, place) for session_id, place, _ in found],
        )
        gone = {
            row[0]: (str(row[1]), str(row[2]))
            for session_id, place, ts in found
            for row in self._fetch(
                "select id, day, project, until from toc_segment where session_id = ? and place <= ?"
                " order by place desc limit 1",
                (session_id, place),
            )
            if row[3] >= ts  # else the segment that held it is gone already, with another event of it
        }
        if found:
            self._taken_out()
        if gone:
            self._run_many("delete from toc_segment where id = ?", [(segment_id,) for segment_id in gone])
            self.put_periods(self._context.queries.toc.rolled_up(gone.values(), DEFAULT.toc))

    def _taken_out(self) -> None:
        generation = self._context.queries.toc.generation()
        self._context.set_meta(contents.GENERATION, str(int(generation or 0) + 1))

    def put_periods(self, changed: Sequence[StoredPeriod]) -> None:
        """Write what periods hold now."""
        self._run_many(
            "delete from toc_period where level = ? and key = ? and project = ?",
            [(one.level.value, one.key, one.project) for one in changed],
        )
        self._run_many(
            f"insert into toc_period ({contents.PERIOD_COLUMNS}) values ({rows.placeholders(contents.PERIOD_COLUMNS)})",
            [contents.period_row(one, one.outline) for one in changed if one.outline is not None],
        )
