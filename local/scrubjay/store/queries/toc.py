"""Reading the table of contents: segments, periods, and what is to be cut again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from scrubjay.policy import TocPolicy
from scrubjay.store import contents, embed_queue, rows
from scrubjay.store.contents import Parts, SessionPlace, StoredPeriod, StoredSegment
from scrubjay.store.sqlite import Fetch, Row
from scrubjay.toc.extraction import Outline
from scrubjay.toc.periods import Level
from scrubjay.toc.segmentation import Turn
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType, Role, Trust
from scrubjay_shared.scoring import decode_vectors, dequantise

_QUOTED = ", ".join(
    f"'{kind.value}'"
    for kind in (
        EventType.USER_MESSAGE,
        EventType.ASSISTANT_MESSAGE,
        EventType.ASSISTANT_STOP,
        EventType.COMPACTION,
        EventType.NOTE,
    )
)
_SAID = (
    f"iif(e.type in ({_QUOTED}) and e.role <> '{Role.TOOL.value}' and e.trust <> '{Trust.UNTRUSTED.value}',"
    " substr(e.text, 1, ?), '')"
)
"""What is quoted of an event: never the output of a tool, which may hold anybody's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Whose segments are read: of these projects ("" is none), and of this session. `projects` None is everything."""

    projects: frozenset[str] | None = None
    session_id: str | None = None

    def of_projects(self) -> tuple[str, list[object]]:
        """Return the condition over the projects of periods, and its values."""
        wanted = {contents.ALL} if self.projects is None else self.projects - {contents.ALL}
        return "project in (select value from json_each(?))", [rows.array(sorted(wanted))]

    def of_segments(self) -> tuple[str, list[object]]:
        """Return the condition over the columns of `toc_segment`, and its values."""
        if self.projects is None:
            return "1", []
        clause, values = self.of_projects()
        return f"({clause} or session_id = ?)", [*values, self.session_id]

    def shows(self, segment: StoredSegment) -> bool:
        """Say whether a segment is seen."""
        return self.projects is None or segment.project in self.projects or segment.session_id == self.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A session that changed from a place on. `said` is whether its words did; `marks` counts how often.

    `since` is the place from which it changed since a step of it was written, None when it did not.
    """

    session_id: str
    place: str
    since: str | None
    said: bool
    marks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncut:
    """Turns of a session from a cut that stands, at the place `start`; `opens` says that the session begins there.

    `more` says that the session goes on after them.
    """

    start: str
    turns: Sequence[Turn]
    opens: bool
    more: bool


_AT = "json_extract(w.value, '$[{}]')"
"""A value of an array within the array that was given."""

_STALE = "session_id, place, since, said, marks"


def _stale(row: Row) -> Stale:
    return Stale(session_id=row[0], place=row[1], since=row[2], said=bool(row[3]), marks=row[4])


class TocQueries:
    """The table of contents."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    # --- what is to be done -------------------------------------------------------------------------------------------

    def is_stale(self) -> bool:
        """Say whether anything is to be cut again now: vectors are waited for while some are being made."""
        return bool(
            self._fetch(
                "select exists (select 1 from toc_stale where said)"
                f" or (exists (select 1 from toc_stale) and not ({embed_queue.LOOK}))"
            )[0][0]
        )

    def count_stale(self) -> int:
        """Return how many sessions are to be cut again."""
        return int(self._fetch("select count(*) from toc_stale")[0][0])

    def stale(self, *, limit: int) -> list[str]:
        """Return the first sessions to be cut again now, in the order of their time."""
        waits = self._fetch(embed_queue.LOOK)[0][0]
        found = self._fetch(
            "select t.session_id from toc_stale t left join session s on s.id = t.session_id where t.said or not ?"
            " order by s.start, t.session_id limit ?",
            (waits, limit),
        )
        return [str(row[0]) for row in found]

    def stale_session(self, session_id: str) -> Stale | None:
        """Return what is to be cut again of a session, None when nothing is."""
        found = self._fetch(f"select {_STALE} from toc_stale where session_id = ?", (session_id,))
        return _stale(found[0]) if found else None

    def generation(self) -> str:
        """Return how often something was taken out of the table: what is planned before is not written after."""
        found = self._fetch("select value from meta where key = ?", (contents.GENERATION,))
        return str(found[0][0]) if found else ""

    def uncut(self, stale: Stale, policy: TocPolicy, *, limit: int) -> Uncut:
        """Return turns of a session to cut, beginning with the last cut that what changed cannot move."""
        start = self._standing_cut(stale, policy)
        found = self._fetch(
            f"select e.id, e.ts, e.seq, e.utc_offset, coalesce(e.project, ''), e.agent, {_SAID},"
            f" e.type = '{EventType.USER_MESSAGE.value}' and e.role = '{Role.USER.value}',"
            " iif(e.metadata <> '{}' and json_valid(e.metadata), json_extract(e.metadata, '$.speaker'), null)"
            " from event e where e.session_id = ? and (e.ts, e.seq, e.id) >= (?, ?, ?) and not e.forgotten"
            " order by e.ts, e.seq, e.id limit ?",
            (policy.said_chars, stale.session_id, *SessionPlace.of(start), limit + 1),
        )
        before = self._fetch(
            "select 1 from event where session_id = ? and (ts, seq, id) < (?, ?, ?) and not forgotten limit 1",
            (stale.session_id, *SessionPlace.of(start)),
        )
        vectors = self._vectors([row[0] for row in found])
        return Uncut(
            start=start,
            turns=[
                Turn(
                    id=row[0],
                    ts=Millis(row[1]),
                    seq=row[2],
                    utc_offset=row[3],
                    project=row[4],
                    agent=row[5],
                    said=row[6],
                    by_person=bool(row[7]),
                    speaker=row[8] if isinstance(row[8], str) else "",
                    vector=vectors.get(row[0]),
                )
                for row in found[:limit]
            ],
            opens=not before,
            more=len(found) > limit,
        )

    def _standing_cut(self, stale: Stale, policy: TocPolicy) -> str:
        """Return where the last segment begins that has `TocPolicy.reach` events before what changed."""
        reached = self._fetch(
            "select ts, seq, id from event where session_id = ? and (ts, seq, id) < (?, ?, ?) and not forgotten"
            " order by ts desc, seq desc, id desc limit 1 offset ?",
            (stale.session_id, *SessionPlace.of(stale.place), policy.reach - 1),
        )
        if not reached:
            return contents.BEGINNING
        found = self._fetch(
            "select place from toc_segment where session_id = ? and place <= ? order by place desc limit 1",
            (stale.session_id, SessionPlace(*reached[0]).text),
        )
        return str(found[0][0]) if found else contents.BEGINNING

    def _vectors(self, ids: Sequence[str]) -> dict[str, object]:
        found = self._fetch(
            "select owner, vector from embedding where space = (select space from embed_queue)"
            " and owner in (select value from json_each(?))",
            (rows.array(ids),),
        )
        if not found:
            return {}
        vectors = dequantise(*decode_vectors([bytes(row[1]) for row in found]))
        return {str(row[0]): vector for row, vector in zip(found, vectors, strict=True)}

    # --- segments -----------------------------------------------------------------------------------------------------

    def segments(self, ids: Sequence[str]) -> dict[str, StoredSegment]:
        """Return some segments, by id; unknown ids are absent."""
        return {
            str(row[0]): contents.segment_of(row)
            for row in self._fetch(
                f"select {contents.SEGMENT_COLUMNS} from toc_segment where id in (select value from json_each(?))",
                (rows.array(ids),),
            )
        }

    def told(self, ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """Return what the Writer calls the stretches that begin in some segments: (title, summary), "" for none."""
        found: dict[str, list[tuple[str, str]]] = {}
        for segment_id, title, summary in self._fetch(
            "select s.id, t.title, t.summary from json_each(?) w cross join toc_segment s on s.id = w.value"
            " cross join toc_told t on t.session_id = s.session_id and t.place >= s.place and not exists (select 1"
            " from toc_segment n where n.session_id = s.session_id and n.place > s.place and n.place <= t.place)"
            " order by t.place",
            (rows.array(ids),),
        ):
            found.setdefault(str(segment_id), []).append((str(title), str(summary)))
        return found

    def segments_of_session(self, session_id: str, start: str, end: str | None) -> list[StoredSegment]:
        """Return the segments of a session that begin from one place on, and before another, in order."""
        return [
            contents.segment_of(row)
            for row in self._fetch(
                f"select {contents.SEGMENT_COLUMNS} from toc_segment where session_id = ?1 and place >= ?2"
                " and (?3 is null or place < ?3) order by place",
                (session_id, start, end),
            )
        ]

    def segments_of_events(self, ids: Sequence[str]) -> dict[str, StoredSegment]:
        """Return the segment that holds an event, by the event's id. One that was not cut yet is absent."""
        placed = {
            str(event_id): str(segment)
            for event_id, segment in self._fetch(
                "select e.id, (select s.id from toc_segment s where s.session_id = e.session_id"
                " and s.place <= printf('%015d%019d%s', e.ts, e.seq, e.id) order by s.place desc limit 1)"
                " from event e where e.id in (select value from json_each(?)) and not e.forgotten",
                (rows.array(ids),),
            )
            if segment is not None
        }
        found = self.segments(sorted(set(placed.values())))
        return {
            event_id: found[segment]
            for event_id, segment in placed.items()
            if segment in found and event_id is not None
        }

    def segments_of_day(self, day: str, seen: Seen, *, limit: int, offset: int = 0) -> list[StoredSegment]:
        """Return segments of a day, in the order in which they began."""
        clause, values = seen.of_segments()
        return [
            contents.segment_of(row)
            for row in self._fetch(
                f"select {contents.SEGMENT_COLUMNS} from toc_segment where day = ? and {clause}"
                " order by start, id limit ? offset ?",
                (day, *values, limit, offset),
            )
        ]

    def segments_within(
        self, since: Millis, until: Millis, seen: Seen, *, limit: int, offset: int = 0
    ) -> list[StoredSegment]:
        """Return segments that have an event in a period (`until` is outside), in the order in which they began."""
        clause, values = seen.of_segments()
        return [
            contents.segment_of(row)
            for row in self._fetch(
                f"select {contents.SEGMENT_COLUMNS} from toc_segment where start < ? and until >= ? and {clause}"
                " order by start, id limit ? offset ?",
                (until, since, *values, limit, offset),
            )
        ]

    def beside(self, segment: StoredSegment, seen: Seen) -> tuple[str | None, str | None]:
        """Return the ids of the segments that began before and after one, None at the ends."""
        clause, values = seen.of_segments()
        found: list[str | None] = []
        for compare, order in (("<", "desc"), (">", "asc")):
            row = self._fetch(
                f"select id from toc_segment where (start, id) {compare} (?, ?) and {clause}"
                f" order by start {order}, id {order} limit 1",
                (segment.start, segment.id, *values),
            )
            found.append(str(row[0][0]) if row else None)
        return found[0], found[1]

    def of_own_session(self, seen: Seen) -> list[StoredSegment]:
        """Return what a caller sees beyond its projects: segments of its session that are of another project."""
        if seen.projects is None or seen.session_id is None:
            return []
        return [
            contents.segment_of(row)
            for row in self._fetch(
                f"select {contents.SEGMENT_COLUMNS} from toc_segment where session_id = ?"
                " and project not in (select value from json_each(?)) order by start, id",
                (seen.session_id, rows.array(sorted(seen.projects))),
            )
        ]

    # --- periods ------------------------------------------------------------------------------------------------------

    def periods(self, level: Level, keys: Collection[str], seen: Seen) -> dict[str, list[Outline]]:
        """Return what the projects that are seen have in some periods, by key; those with nothing are absent."""
        clause, values = seen.of_projects()
        found: dict[str, list[Outline]] = {}
        for key, outline in self._fetch(
            "select key, outline from toc_period where level = ? and key in (select value from json_each(?))"
            f" and {clause} order by key, project",
            (level.value, rows.array(sorted(keys)), *values),
        ):
            found.setdefault(str(key), []).append(contents.outline_of(outline))
        return found

    def keys(self, level: Level, seen: Seen) -> list[str]:
        """Return the keys of all periods of a level with something in them, in order."""
        clause, values = seen.of_projects()
        return [
            str(row[0])
            for row in self._fetch(
                f"select distinct key from toc_period where level = ? and {clause} order by key", (level.value, *values)
            )
        ]

    def keys_within(self, level: Level, since: Millis, until: Millis, seen: Seen) -> list[str]:
        """Return the keys of the periods of a level that have an event between two times, in order."""
        clause, values = seen.of_projects()
        return [
            str(row[0])
            for row in self._fetch(
                "select distinct key from toc_period where level = ? and start < ? and until >= ?"
                f" and {clause} order by key",
                (level.value, until, since, *values),
            )
        ]

    def keys_beside(self, level: Level, key: str, seen: Seen) -> tuple[str | None, str | None]:
        """Return the keys of the periods before and after one that have something in them, None at the ends."""
        clause, values = seen.of_projects()
        found = [
            self._fetch(
                f"select key from toc_period where level = ? and key {compare} ? and {clause}"
                f" order by key {order} limit 1",
                (level.value, key, *values),
            )
            for compare, order in (("<", "desc"), (">", "asc"))
        ]
        before, after = (str(row[0][0]) if row else None for row in found)
        return before, after

    def rolled_up(
        self,
        touched: Iterable[tuple[str, str]],
        policy: TocPolicy,
        *,
        without: Collection[str] = (),
        planned: Sequence[StoredSegment] = (),
    ) -> list[StoredPeriod]:
        """Return the periods of some (day, project) as they are with some segments in place of others."""
        days = sorted(set(touched))
        segments = [
            contents.segment_of(row)
            for day in sorted({day for day, _ in days})
            for row in self._fetch(f"select {contents.SEGMENT_COLUMNS} from toc_segment where day = ?", (day,))
        ]
        wanted = contents.needed(days)
        stored = {
            (Level(level), str(key), str(project)): contents.outline_of(outline)
            for level, key, project, outline in self._fetch(
                "select p.level, p.key, p.project, p.outline from json_each(?) w cross join toc_period p"
                f" on p.level = {_AT.format(0)} and p.key = {_AT.format(1)} and p.project = {_AT.format(2)}",
                (rows.array(sorted((level.value, key, project) for level, key, project in wanted)),),
            )
        }
        return Parts(segments, stored, without=without, planned=planned).rolled_up(days, policy)

    # --- passages -----------------------------------------------------------------------------------------------------

    def excerpts(self, spans: Iterable[tuple[str, int, int]]) -> dict[tuple[str, int, int], str]:
        """Return the words of some passages (event, start, end) as the events now say them; those gone are absent."""
        return {
            (str(event_id), int(start), int(end)): str(words)
            for event_id, start, end, words in self._fetch(
                f"select e.id, {_AT.format(1)}, {_AT.format(2)},"
                f" substr(e.text, {_AT.format(1)} + 1, {_AT.format(2)} - {_AT.format(1)})"
                f" from json_each(?) w cross join event e on e.id = {_AT.format(0)} where not e.forgotten",
                (rows.array(sorted(set(spans))),),
            )
        }
