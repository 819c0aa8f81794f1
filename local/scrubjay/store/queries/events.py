"""Reading events and sessions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay.store import rows, sqlite
from scrubjay.store.queries.memories import MIN_PREFIX
from scrubjay.store.queries.pages import within
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError
from scrubjay_shared.records import Event, EventType, Session
from scrubjay_shared.text import unbracketed


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events a page holds: all conditions that are given. Times in UTC milliseconds, `until` excluded.

    Of a project, the events that belong to no project are among them, and those of the asking session, `own_session`.
    `after` and `upto` are places in a session (time, seq, id), the first excluded; `without` are ids to leave out.
    """

    session_id: str | None = None
    project: str | None = None
    own_session: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    types: tuple[EventType, ...] = ()
    after: tuple[int, int, str] | None = None
    upto: tuple[int, int, str] | None = None
    without: tuple[str, ...] = ()

    def clause(self) -> tuple[str, list[object]]:
        """Return the condition over the columns of `event`, and its values."""
        given = (("session_id = ?", self.session_id), ("ts >= ?", self.since), ("ts < ?", self.until))
        chosen = [(sql, value) for sql, value in given if value is not None]
        clauses = [sql for sql, _ in chosen]
        values: list[object] = [value for _, value in chosen]
        if self.project is not None or self.own_session is not None:
            clauses.append("(project = ? or project is null or session_id = ?)")
            values += [self.project, self.own_session]
        if self.types:
            clauses.append("type in (select value from json_each(?))")
            values.append(rows.array(type_.value for type_ in self.types))
        for sql, place in (("(ts, seq, id) > (?, ?, ?)", self.after), ("(ts, seq, id) <= (?, ?, ?)", self.upto)):
            if place is not None:
                clauses.append(sql)
                values += place
        if self.without:
            clauses.append("id not in (select value from json_each(?))")
            values.append(rows.array(self.without))
        return " and ".join(clauses) or "1", values


FEW = 5_000
"""Events of a project up to which their sessions are read and put in order, instead of all events in theirs."""

_OF_PROJECT = "project = ? or project = '' or session_id = ?"
"""Of `session_agent`: what `EventFilter` says of events where a project or an asking session is given."""


SPOKEN = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP, EventType.NOTE)
"""What somebody says, as `distill.observe.SAID` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """How far a session has come: how many events wait to be distilled, and the time and type of the last of all.

    `chars` are those of what somebody said among the waiting ones, whatever a tool printed between.
    """

    session_id: str
    waiting: int
    chars: int
    last: Millis
    last_type: EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSize:
    """Of an event: its session, when and what it was, and how many characters its text has."""

    session_id: str
    ts: Millis
    type: EventType
    chars: int


class EventQueries:
    """Events by id, page, session or dedupe key."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def by_id(self, ids: Sequence[str], *, chars: int | None = None) -> dict[str, Event]:
        """Return the events of some ids, by id; unknown ids are absent.

        `chars` reads no more of a text than so many characters from its beginning, or below zero from its end.
        """
        if not ids:
            return {}
        columns = rows.beginning(rows.EVENT_COLUMNS, "text", chars)
        found = self._fetch(
            f"select {columns} from event where id in (select value from json_each(?)) and not forgotten",
            (rows.array(ids),),
        )
        return {row[0]: rows.event_of(row) for row in found}

    def resolve(self, ref: str) -> str | None:
        """Return the id of the event that `ref` names: an id, or the beginning of one. None when there is none.

        Raises ConflictError when a beginning fits several.
        """
        ref = unbracketed(ref)
        found = self._fetch("select id from event where id = ? and not forgotten", (ref,))
        if not found and len(ref) >= MIN_PREFIX and ref.isalnum():
            low = ref.upper()
            found = self._fetch(
                "select id from event where id >= ? and id < ? and not forgotten limit 2", (low, low + "[")
            )
            if len(found) > 1:
                raise ConflictError(
                    f"the ids of several events begin with {ref}", hint="give more characters of the id"
                )
        return str(found[0][0]) if found else None

    def run(self, start: str, end: str, *, chars: int) -> list[Event]:
        """Return the events of one session from one to another, inclusive, in order, no more than `chars` of a text."""
        columns = rows.beginning(rows.prefixed(rows.EVENT_COLUMNS, "e"), "e.text", chars)
        found = self._fetch(
            f"select {columns} from event e where e.id in ({rows.COVERED}) order by e.ts, e.seq, e.id",
            (start, end),
        )
        return [rows.event_of(row) for row in found]

    def around(self, start: str, end: str, *, before: int, after: int, chars: int) -> list[Event]:
        """Return the events of one session from one to another with some before and after, in order.

        No more than `chars` of a text. Nothing where either is not there, or they are of two sessions.
        """
        covered = self.run(start, end, chars=chars)
        if not covered:
            return []
        columns = rows.beginning(rows.prefixed(rows.EVENT_COLUMNS, "e"), "e.text", chars)
        beside = [
            self._fetch(
                f"select {columns} from event a cross join event e where a.id = ? and e.session_id = a.session_id"
                f" and (e.ts, e.seq, e.id) {compare} (a.ts, a.seq, a.id) and not e.forgotten"
                f" order by e.ts {order}, e.seq {order}, e.id {order} limit ?",
                (event_id, count),
            )
            for event_id, compare, order, count in ((start, "<", "desc", before), (end, ">", "asc", after))
        ]
        return [
            *(rows.event_of(row) for row in reversed(beside[0])),
            *covered,
            *(rows.event_of(row) for row in beside[1]),
        ]

    def of_project(self, project: str, limit: int) -> list[Event]:
        """Return the first events of a project, in order and whole."""
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS} from event"
            " where session_id in (select session_id from session_agent where project = ?1)"
            " and project = ?1 and not forgotten order by ts, seq, id limit ?2",
            (project, limit),
        )
        return [rows.event_of(row) for row in found]

    def page(
        self, chosen: EventFilter, *, after: tuple[int, int] | None, limit: int, chars: int
    ) -> tuple[list[Event], tuple[int, int] | None]:
        """Return a page in time order and where the next one starts.

        It ends after `limit` events, or before their texts have more than `chars` characters; it has at least one.
        """
        clause, values = chosen.clause()
        table = "event"
        if (chosen.project is not None or chosen.own_session is not None) and chosen.session_id is None:
            given = (chosen.project, chosen.own_session)
            [(few,)] = self._fetch(
                f"select coalesce(sum(events), 0) < {FEW} from session_agent where {_OF_PROJECT}", given
            )
            if few:  # in the order of time one might read all events and find none
                table = "event indexed by event_session"
                clause += f" and session_id in (select session_id from session_agent where {_OF_PROJECT})"
                values += given
        if after:
            clause += (
                " and (ts, seq, id) > (?, (select seq from event where n = ?), (select id from event where n = ?))"
            )
            values += (*after, after[1])
        places = self._fetch(
            f"select ts, n, length(text) from {table} where {clause} and not forgotten order by ts, seq, id limit ?",
            (*values, limit + 1),
        )
        shown = within(places, limit, chars)
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS} from event where n in (select value from json_each(?)) and not forgotten"
            " order by ts, seq, id",
            (rows.array(n for _, n, _ in shown),),
        )
        return [rows.event_of(row) for row in found], shown[-1][:2] if len(places) > len(shown) else None

    def deduped(self, keys: Sequence[str]) -> set[tuple[str, str | None]]:
        """Return the (dedupe key, project) of the events that have one of these keys."""
        return {
            (str(key), None if project is None else str(project))
            for key, project in self._fetch(
                "select dedupe_key, project from event where dedupe_key in (select value from json_each(?))",
                (rows.array(keys),),
            )
        }

    def known(self, events: Sequence[Event]) -> dict[str, str]:
        """Return the ids of those events that are already there, by dedupe key; forgotten ones count as there.

        An event is there when its key is, or its id (of an import).
        """
        given = [event.id for event in events if event.id]
        found = given and self._fetch(
            "select id from event where id in (select value from json_each(?1)) union"
            " select id from tombstone where id in (select value from json_each(?1))",
            (rows.array(given),),
        )
        ids = {str(row[0]) for row in found}
        return {event.dedupe_key: event.id for event in events if event.id in ids} | {
            str(key): str(event_id)
            for key, event_id in self._fetch(
                "select dedupe_key, min(id) from event where dedupe_key in (select value from json_each(?)) group by 1",
                (rows.array(event.dedupe_key for event in events),),
            )
        }

    def told_otherwise(self, session_id: str, prefix: str) -> list[tuple[Event, bool]]:
        """Return what a session has under keys that do not begin so, and whether words of it were erased since.

        Forgotten events are among them: whoever reads the same again must find that it was here.
        """
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS}, erased or forgotten from event where session_id = ?"
            " and substr(dedupe_key, 1, ?) <> ? order by ts, seq, id",
            (session_id, len(prefix), prefix),
        )
        return [(rows.event_of(row[:-1]), bool(row[-1])) for row in found]

    def answers_told(self, session_id: str, prefix: str) -> list[Event]:
        """Return what agents said in a session, of what has keys that begin so, as it was stored."""
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS} from event where session_id = ? and type = ? and substr(dedupe_key, 1, ?) = ?"
            " and not forgotten order by n",
            (session_id, EventType.ASSISTANT_MESSAGE.value, len(prefix), prefix),
        )
        return [rows.event_of(row) for row in found]

    def ends_of_undistilled(self) -> list[SessionEnd]:
        """Return how the sessions end that have events to distil, oldest first."""
        return [
            SessionEnd(
                session_id=str(row[0]),
                waiting=int(row[1]),
                chars=int(row[2]),
                last=Millis(row[3]),
                last_type=EventType(row[4]),
            )
            for row in self._fetch(
                "select w.id, waiting, chars, w.last, (select type from event e where e.session_id = w.id"
                " and not e.forgotten order by e.ts desc, e.seq desc, e.id desc limit 1) from (select s.id, s.last,"
                " s.last_n, count(*) waiting,"
                " sum(iif(e.type in (select value from json_each(?)), length(e.text), 0)) chars"
                " from session s left join learned l on l.session_id = s.id"
                " cross join event e on e.session_id = s.id and e.n > coalesce(l.n, 0) and not e.forgotten"
                " and e.n not in (select n from unlearned)"
                " where s.last_n > coalesce(l.n, 0) group by s.id) w order by last_n",
                (rows.array(SPOKEN),),
            )
        ]

    def sizes_since(self, ts: Millis) -> list[EventSize]:
        """Return how large the events since a time are that may be learned from, session by session in their order."""
        found = [
            EventSize(session_id=str(row[0]), ts=Millis(row[1]), type=EventType(row[2]), chars=int(row[3]))
            for row in self._fetch(
                "select session_id, ts, type, length(trim(text)) from event where ts >= ? and not forgotten"
                " and n not in (select n from unlearned) order by ts, seq",
                (ts,),
            )
        ]
        return sorted(found, key=lambda event: event.session_id)  # by SQLite all sessions of the store would be read

    def last_ids(self, session_id: str, limit: int) -> list[str]:
        """Return the ids of the last events of a session, at most so many, in their order."""
        found = self._fetch(
            "select id from event where session_id = ? and not forgotten order by ts desc, seq desc, id desc limit ?",
            (session_id, limit),
        )
        return [str(row[0]) for row in reversed(found)]

    def latest(self, session_id: str, limit: int, chars: int) -> list[Event]:
        """Return the last events of a session that may be learned from, in their order.

        At most so many, and of at most so many characters together, unless one alone has more.
        """
        places = self._fetch(
            "select ts, n, length(text) from event where session_id = ? and not forgotten"
            " and n not in (select n from unlearned) order by ts desc, seq desc, id desc limit ?",
            (session_id, limit),
        )
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS} from event where n in (select value from json_each(?)) and not forgotten"
            " order by ts, seq, id",
            (rows.array(n for _, n, _ in within(places, limit, chars)),),
        )
        return [rows.event_of(row) for row in found]

    def last_before(self, session_id: str, ts: Millis) -> Event | None:
        """Return the last event of a session up to a time, without its words; None where there is none."""
        columns = rows.beginning(rows.EVENT_COLUMNS, "text", 0)
        found = self._fetch(
            f"select {columns} from event where session_id = ? and ts <= ? and not forgotten"
            " order by ts desc, seq desc limit 1",
            (session_id, ts),
        )
        return rows.event_of(found[0]) if found else None

    def unlearned(self, ids: Sequence[str], *, again: bool = False) -> set[str]:
        """Return which of some events nothing is to be learned from here, or not even where they are read `again`."""
        which = rows.NOT_AGAIN if again else "n in (select n from unlearned)"
        return {
            str(row[0])
            for row in self._fetch(
                f"select id from event where id in (select value from json_each(?)) and {which}", (rows.array(ids),)
            )
        }

    def erased_since(self, events: Sequence[Event]) -> bool:
        """Say whether forget has reached into any of some events since they were read."""
        read = {event.id: event.text for event in events}
        found = self._fetch(
            "select id, text from event where erased > 0 and id in (select value from json_each(?))",
            (rows.array(read),),
        )
        return any(read[event_id] != text for event_id, text in found)

    def existing(self, ids: Sequence[str]) -> set[str]:
        """Return which of some events are there and were not forgotten."""
        return {
            str(row[0])
            for row in self._fetch(
                "select id from event where not forgotten and id in (select value from json_each(?))",
                (rows.array(ids),),
            )
        }

    def held(self, ids: Sequence[str]) -> set[str]:
        """Return which of some ids are those of events that are held, forgotten ones too."""
        if not ids or not self._fetch("select 1 from event where id between ? and ? limit 1", (min(ids), max(ids))):
            return set()  # ids rise with time: what a new device reads lies before or behind what it has
        found = self._fetch("select id from event where id in (select value from json_each(?))", (rows.array(ids),))
        return {str(row[0]) for row in found}

    def last(self) -> int:
        """Return the arrival number of the last event, 0 when there is none."""
        return int(self._fetch("select coalesce(max(n), 0) from event")[0][0])

    def sessions(self) -> list[Session]:
        """Return all sessions, newest first."""
        return [
            rows.session_of(row)
            for row in self._fetch(f"select {rows.SESSION_COLUMNS} from session order by start desc, id")
        ]

    def has_session(self, session_id: str) -> bool:
        """Say whether anything of a session is stored."""
        return bool(self._fetch("select 1 from session where id = ?", (session_id,)))

    def session_of(self, ref: str) -> str:
        """Return the id of the session that an id or its beginning names; `ref` itself where there is none.

        Raises ConflictError when a beginning fits several.
        """
        if len(ref) < MIN_PREFIX or self.has_session(ref):
            return ref
        found = self._fetch("select id from session where id >= ? and id < ? limit 2", (ref, ref + chr(sys.maxunicode)))
        if len(found) > 1:
            raise ConflictError(
                f"the ids of several sessions begin with {ref[:60]}", hint="give more of it: scrubjay sessions"
            )
        return str(found[0][0]) if found else ref

    def last_session(self, project: str, agent: str | None) -> str | None:
        """Return the session of a project that was heard of last, one of this agent before others. None without any."""
        found = self._fetch(
            "select id from session where project = ? order by agent = ? desc, last desc, id desc limit 1",
            (project, agent or ""),
        )
        return str(found[0][0]) if found else None

    def undistilled_sessions(self) -> list[tuple[str, int]]:
        """Return the sessions with events that were not distilled yet, and how many, oldest first."""
        return [
            (str(row[0]), int(row[1]))
            for row in self._fetch(
                "select s.id, (select count(*) from event e where e.session_id = s.id and e.n > coalesce(l.n, 0)"
                " and e.n not in (select n from unlearned) and not e.forgotten)"
                " from session s left join learned l on l.session_id = s.id where s.last_n > coalesce(l.n, 0)"
                " order by s.last_n"
            )
        ]

    def undistilled(
        self, session_id: str, *, context: int, limit: int, chars: int, after: int = 0, again: int | None = None
    ) -> tuple[list[Event], set[str], int]:
        """Return up to `limit` undistilled events of a session, in order, with `context` events before them.

        They have at most `chars` characters together, unless one alone has more, and arrived later than `after`. With
        `again` they are those up to that arrival number, distilled or not.
        Also the ids of those to distil (not the context, nor what others said in between), and the arrival number up to
        which this covers the session.
        """
        columns = f"{rows.EVENT_COLUMNS}, n, seq"
        waiting = self._fetch(
            "select ts, n, length(text) from event where session_id = ?1 and not forgotten"
            f" and iif(?4 is null, n not in (select n from unlearned), not {rows.NOT_AGAIN}) and n <= coalesce(?4, n)"
            " and n > max(?3, iif(?4 is null, coalesce((select n from learned where session_id = ?1), 0), 0))"
            " order by n limit ?2",
            (session_id, limit, after, again),
        )
        fresh = self._fetch(
            f"select {columns} from event where n in (select value from json_each(?)) and not forgotten",
            (rows.array(n for _, n, _ in within(waiting, limit, chars)),),
        )
        if not fresh:
            return [], set(), 0
        first, last = min(map(_place, fresh)), max(map(_place, fresh))
        before = self._fetch(
            f"select {columns} from event where session_id = ? and (ts, seq, id) < (?, ?, ?) and not forgotten"
            " order by ts desc, seq desc, id desc limit ?",
            (session_id, *first, context),
        )
        between = self._fetch(
            f"select {columns} from event where session_id = ? and (ts, seq, id) > (?, ?, ?)"
            " and (ts, seq, id) < (?, ?, ?)"
            " and not forgotten and n in (select n from unlearned) order by ts, seq, id limit ?",
            (session_id, *first, *last, limit),
        )
        ordered = sorted({row[13]: row for row in (*before, *between, *fresh)}.values(), key=_place)
        return [rows.event_of(row) for row in ordered], {row[0] for row in fresh}, max(row[13] for row in fresh)


def _place(row: sqlite.Row) -> tuple[int, int, str]:
    """Return where an event stands in its session, of a row of EVENT_COLUMNS, n, seq."""
    return row[5], row[14], row[0]
