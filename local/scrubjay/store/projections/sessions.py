"""Sessions: what their events say of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scrubjay.store import rows
from scrubjay.store.session_counts import TITLE_CHARS, SessionCount
from scrubjay.store.write_context import WriteContext
from scrubjay_shared.records import EventType

_TOLD = "session_id, agent, project, events, start, last"
_TELL = "select session_id, agent, coalesce(project, ''), count(*), min(ts), max(ts) from event"
_FIRST_AT = SessionCount._fields.index("first_at")


class Sessions:
    """The tables `session` and `session_agent`."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many

    def extend(self, numbers: Sequence[int], counts: Iterable[SessionCount], last_learned: Mapping[str, int]) -> None:
        """Count new events into their sessions: what `project` would say, without reading the old ones.

        `numbers` are their arrival numbers, one after the other, and `last_learned` that of the last of them that is to
        be distilled here, by session.
        """
        if numbers:
            self._run(
                f"insert into session_agent ({_TOLD}) {_TELL} where n between ? and ? and not forgotten"
                " group by 1, 2, 3 on conflict do update set events = events + excluded.events,"
                " start = min(start, excluded.start), last = max(last, excluded.last)",
                (numbers[0], numbers[-1]),
            )
        columns = "id, agent, project, start, last, closed, title, title_at, events, last_n"
        self._run_many(
            f"insert into session ({columns}) values ({rows.placeholders(columns)})"
            " on conflict (id) do update set agent = min(agent, excluded.agent),"
            " project = coalesce(min(project, excluded.project), project, excluded.project),"
            " start = min(start, excluded.start), last = max(last, excluded.last),"
            " closed = coalesce(max(closed, excluded.closed), closed, excluded.closed),"
            " title = iif(excluded.title <> '' and (title = '' or excluded.title_at < title_at),"
            " excluded.title, title),"
            " title_at = iif(excluded.title <> '' and (title = '' or excluded.title_at < title_at),"
            " excluded.title_at, title_at), events = events + excluded.events, last_n = max(last_n, excluded.last_n)",
            [(*count[:_FIRST_AT], last_learned.get(count.id, 0)) for count in counts],
        )

    def project(self, session_ids: Iterable[str]) -> None:
        """Make the rows of some sessions again from all their events."""
        ids = rows.array(session_ids)
        self._run("delete from session where id in (select value from json_each(?))", (ids,))
        self._run("delete from session_agent where session_id in (select value from json_each(?))", (ids,))
        self._run(
            f"insert into session_agent ({_TOLD}) {_TELL} where session_id in (select value from json_each(?))"
            " and not forgotten group by 1, 2, 3",
            (ids,),
        )
        said = (
            "select {} from event t where t.session_id = e.session_id and t.type = ?4 and t.text <> ''"
            " and not t.forgotten order by t.ts, t.seq, t.id limit 1"
        )
        self._run(
            "insert into session (id, agent, project, start, last, closed, title, title_at, events, last_n)"
            " select session_id, min(agent), min(project), min(ts), max(ts), max(case when type = ?2 then ts end),"
            f" coalesce(({said.format('substr(t.text, 1, ?3)')}), ''), coalesce(({said.format(rows.PLACE)}), ''),"
            " count(*), max(iif(n in (select n from unlearned), 0, n))"
            " from event e where session_id in (select value from json_each(?1)) and not forgotten group by session_id",
            (ids, EventType.SESSION_END.value, TITLE_CHARS, EventType.USER_MESSAGE.value),
        )
