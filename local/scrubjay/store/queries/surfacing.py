"""What is predicted for sessions, what they were told ahead, and what they used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType

COVERED = "surfaced_covered"
"""The setting of the file that says up to which arriving event and memory predictions were made."""

_PROMPTS = (EventType.USER_MESSAGE,)
_ANSWERS = (EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP)
_TURNS = (*_PROMPTS, *_ANSWERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrediction:
    """That a session of a project will need something. `kind` is "memory" or "event"."""

    ref: str
    kind: str
    probability: float
    because: str
    at: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaced:
    """Something that a session was told ahead. `outcome` is None while it may still be used."""

    session_id: str
    ref: str
    project: str
    kind: str
    probability: float
    tokens: int
    at: Millis
    outcome: str | None = None


class SurfacingQueries:
    """Predictions and their outcomes on this device, and what predicting reads of sessions."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def predictions(self, project: str, session_id: str, *, since: Millis) -> list[StoredPrediction]:
        """Return what was predicted for a session since a time, the most probable first; "" is the next session."""
        found = self._fetch(
            "select ref, kind, probability, because, at from prediction where project = ? and session_id = ?"
            " and at >= ? order by probability desc, ref",
            (project, session_id, since),
        )
        return [
            StoredPrediction(ref=row[0], kind=row[1], probability=row[2], because=row[3], at=Millis(row[4]))
            for row in found
        ]

    def outcomes(self, *, since: Millis, limit: int) -> list[tuple[float, str]]:
        """Return (probability, outcome) of what was judged since a time, the last judged first."""
        return [
            (float(row[0]), str(row[1]))
            for row in self._fetch(
                "select probability, outcome from surfaced where judged >= ? order by judged desc, session_id, ref"
                " limit ?",
                (since, limit),
            )
        ]

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return by outcome how much was surfaced, and its tokens; under "" what is not judged yet."""
        return {
            str(row[0]): (int(row[1]), int(row[2]))
            for row in self._fetch("select coalesce(outcome, ''), count(*), sum(tokens) from surfaced group by 1")
        }

    def unjudged(self, *, limit: int) -> list[Surfaced]:
        """Return what was surfaced and may still be used, the oldest first."""
        found = self._fetch(
            "select session_id, ref, project, kind, probability, tokens, at from surfaced where outcome is null"
            " order by at, session_id, ref limit ?",
            (limit,),
        )
        return [
            Surfaced(
                session_id=row[0],
                ref=row[1],
                project=row[2],
                kind=row[3],
                probability=row[4],
                tokens=row[5],
                at=Millis(row[6]),
            )
            for row in found
        ]

    def uses(self, session_id: str) -> dict[str, str]:
        """Return what a session used, and how."""
        return {
            str(row[0]): str(row[1])
            for row in self._fetch("select ref, how from used where session_id = ?", (session_id,))
        }

    def helped_since(self, refs: Iterable[str], since: Millis) -> set[str]:
        """Return the memories of which somebody said after a time that they helped."""
        return {
            str(row[0])
            for row in self._fetch(
                "select distinct memory_id from feedback where helped > 0 and last >= ?"
                " and memory_id in (select value from json_each(?))",
                (since, rows.array(refs)),
            )
        }

    def used_in(self, project: str, *, without: str | None, sessions: int) -> dict[str, list[str]]:
        """Return what the last sessions of a project used, by session, the last first."""
        found = self._fetch(
            "select session_id, json_group_array(ref) from used where project = ? and session_id is not ?"
            " group by session_id order by max(at) desc limit ?",
            (project, without, sessions),
        )
        return {str(row[0]): rows.array_of(row[1]) for row in found}

    def use_counts(self, refs: Iterable[str]) -> dict[str, int]:
        """Return in how many sessions each of some things was used; what never was is absent."""
        found = self._fetch(
            "select ref, count(*) from used where ref in (select value from json_each(?)) group by ref",
            (rows.array(refs),),
        )
        return {str(row[0]): int(row[1]) for row in found}

    def arrived(self) -> tuple[int, int]:
        """Return the arrival numbers of the last event and of the last memory, 0 for none."""
        found = self._fetch("select (select coalesce(max(n), 0) from event), (select coalesce(max(n), 0) from memory)")
        return int(found[0][0]), int(found[0][1])

    def covered(self) -> tuple[int, int]:
        """Return what `arrived` was when predictions were made last."""
        found = self._fetch("select value from meta where key = ?", (COVERED,))
        events, _, memories = str(found[0][0]).partition(" ") if found else ("0", "", "0")
        return int(events), int(memories)

    def changed(self, upto: int, *, since: Millis, limit: int) -> list[tuple[str, str]]:
        """Return (session, project) of the sessions of projects with events after an arriving one, the last first."""
        found = self._fetch(
            "select s.id, s.project from session s where s.project is not null and s.last >= ? and exists"
            " (select 1 from event e where e.session_id = s.id and e.n > ?) order by s.last desc, s.id limit ?",
            (since, upto, limit),
        )
        return [(str(row[0]), str(row[1])) for row in found]

    def newest(self, project: str) -> Millis:
        """Return when something was said last in a project, 0 where nothing was."""
        return Millis(
            int(self._fetch("select coalesce(max(last), 0) from session where project = ?", (project,))[0][0])
        )

    def last_turns(self, session_id: str, *, limit: int, chars: int) -> list[Event]:
        """Return the last turns of a session, newest first, with at most `chars` characters of each."""
        return self._turns("order by ts desc, seq desc, id desc", session_id, _TURNS, limit, chars)

    def beginning(self, session_id: str, *, limit: int, chars: int) -> list[Event]:
        """Return the first prompts of a session, newest first, with at most `chars` characters of each."""
        return self._turns("order by ts, seq, id", session_id, _PROMPTS, limit, chars)[::-1]

    def answers(self, session_id: str, since: Millis, *, limit: int, chars: int) -> list[Event]:
        """Return what was said in a session since a time, oldest first, with at most `chars` characters of each."""
        found = self._fetch(
            f"select {rows.beginning(rows.EVENT_COLUMNS, 'text', chars)} from event where session_id = ? and ts >= ?"
            " and type in (select value from json_each(?)) and not forgotten order by ts, seq, id limit ?",
            (session_id, since, rows.array(kind.value for kind in _TURNS), limit),
        )
        return [rows.event_of(row) for row in found]

    def _turns(self, order: str, session_id: str, kinds: Sequence[EventType], limit: int, chars: int) -> list[Event]:
        found = self._fetch(
            f"select {rows.beginning(rows.EVENT_COLUMNS, 'text', chars)} from event where session_id = ?"
            f" and type in (select value from json_each(?)) and not forgotten and not {rows.KEPT_OUT} {order} limit ?",
            (session_id, rows.array(kind.value for kind in kinds), limit),
        )
        return [rows.event_of(row) for row in found]

    def kept_out(self, event_ids: Iterable[str]) -> set[str]:
        """Return which of some events were stored here without being learned from."""
        found = self._fetch(
            f"select id from event where id in (select value from json_each(?)) and {rows.KEPT_OUT}",
            (rows.array(event_ids),),
        )
        return {str(row[0]) for row in found}

    def sessions_of(self, memory_ids: Iterable[str]) -> dict[str, set[str]]:
        """Return the sessions that some memories were read from; one without a source is absent."""
        found: dict[str, set[str]] = {}
        for memory_id, session_id in self._fetch(
            "select g.memory_id, e.session_id from grip g join event e on e.id = g.event_id_start"
            " where g.memory_id in (select value from json_each(?))",
            (rows.array(memory_ids),),
        ):
            found.setdefault(str(memory_id), set()).add(str(session_id))
        return found

    def turns_of(self, memory_ids: Iterable[str]) -> dict[str, set[str]]:
        """Return the events that some memories were read from; one without a source is absent."""
        found: dict[str, set[str]] = {}
        for memory_id, event_id in self._fetch(
            "select memory_id, event_id_start from grip where memory_id in (select value from json_each(?))",
            (rows.array(memory_ids),),
        ):
            found.setdefault(str(memory_id), set()).add(str(event_id))
        return found

    def branches(self, session_ids: Iterable[str]) -> Mapping[str, str]:
        """Return the branch that was checked out last in some sessions; one of which that is not known is absent."""
        found = self._fetch(
            "select s.value, (select json_extract(e.metadata, '$.git_branch') from event e where e.session_id = s.value"
            " and not e.forgotten order by e.ts desc, e.seq desc limit 1) from json_each(?) s",
            (rows.array(session_ids),),
        )
        return {str(row[0]): str(row[1]) for row in found if row[1]}
