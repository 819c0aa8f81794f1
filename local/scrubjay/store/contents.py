"""The rows of the table of contents, and how those of periods follow from those of segments.

Theory of operation. Segments are cut in the background (`jobs.toc`) from what `toc_stale` names; every write of events
and vectors marks what it changes there, in its own transaction. A period has one row for each project that has
something in it and one for all of them, and follows from rows alone: a day from its segments, weeks and months from
days, years from months. So a segment that goes or comes costs some dozen rows, however large the store is, and a reader
merges the rows of the projects that it sees. What is planned outside of a transaction (`rolled_up` of a snapshot) is
written only where nothing was erased meanwhile: `generation` says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from scrubjay.policy import TocPolicy
from scrubjay.store.rows import DAMAGED_HINT
from scrubjay.store.sqlite import Row
from scrubjay.toc import periods
from scrubjay.toc.extraction import Outline
from scrubjay.toc.periods import Level
from scrubjay.toc.rollup import merged
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError

SEGMENT_COLUMNS = "id, session_id, project, day, place, last, start, until, outline"
PERIOD_COLUMNS = "level, key, project, start, until, outline"

GENERATION = "toc_generation"
"""The setting of the file that counts how often something was taken out of the table of contents."""

MADE_BY = "toc_made_by"
"""The setting of the file that says which version of `scrubjay.toc` made the table."""

ALL = "\x1f"
"""Stands for all projects together in `toc_period`: what the person reads, who sees everything. No caller's own."""

BEGINNING = ""
"""The place before every event of a session."""


class SessionPlace(NamedTuple):
    """Where an event stands in its session."""

    ts: int
    seq: int
    event_id: str

    @property
    def text(self) -> str:
        """The place as a text, in the same order: what `rows.PLACE` says."""
        return f"{self.ts:015d}{self.seq:019d}{self.event_id}"

    @classmethod
    def of(cls, text: str) -> SessionPlace:
        """Return the place of a text; BEGINNING is before every other."""
        return cls(int(text[:15]), int(text[15:34]), text[34:]) if text else cls(-1, -1, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A segment as it is stored. `project` is "" where its events have none; `last` is the id of its last event."""

    id: str
    session_id: str
    project: str
    day: str
    place: str
    last: str
    outline: Outline

    @property
    def start(self) -> Millis:
        """The time of its first event."""
        return self.outline.start

    @property
    def end(self) -> Millis:
        """The time of its last event."""
        return self.outline.end


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPeriod:
    """What one project has in a period. `outline` None says that there is nothing any more."""

    level: Level
    key: str
    project: str
    outline: Outline | None


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Outline)


def outline_of(text: str) -> Outline:
    """Return a stored outline. Raises CorruptError."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise CorruptError("the table of contents is damaged", hint=DAMAGED_HINT) from error


def segment_of(row: Row) -> StoredSegment:
    """Return the segment of a row of `SEGMENT_COLUMNS`."""
    return StoredSegment(
        id=row[0],
        session_id=row[1],
        project=row[2],
        day=row[3],
        place=row[4],
        last=row[5],
        outline=outline_of(row[8]),
    )


def segment_row(segment: StoredSegment) -> Row:
    """Return the values of a segment in the order of `SEGMENT_COLUMNS`."""
    return (
        segment.id,
        segment.session_id,
        segment.project,
        segment.day,
        segment.place,
        segment.last,
        segment.start,
        segment.end,
        _ENCODER.encode(segment.outline).decode(),
    )


def period_row(period: StoredPeriod, outline: Outline) -> Row:
    """Return the values of what is in a period in the order of `PERIOD_COLUMNS`."""
    encoded = _ENCODER.encode(outline).decode()
    return (period.level.value, period.key, period.project, outline.start, outline.end, encoded)


class Parts:
    """What periods are made from: rows of a store, with those of some segments that are planned in place of others."""

    def __init__(
        self,
        stored_segments: Iterable[StoredSegment],
        stored_periods: Mapping[tuple[Level, str, str], Outline],
        *,
        without: Collection[str] = (),
        planned: Sequence[StoredSegment] = (),
    ) -> None:
        self._periods = dict(stored_periods)
        self._days: dict[tuple[str, str], list[StoredSegment]] = {}
        for segment in (*(one for one in stored_segments if one.id not in without), *planned):
            for project in (segment.project, ALL):
                self._days.setdefault((segment.day, project), []).append(segment)

    def rolled_up(self, touched: Iterable[tuple[str, str]], policy: TocPolicy) -> list[StoredPeriod]:
        """Return every period of some (day, project) as it now is, and of all projects together."""

        def merging(outlines: Iterable[Outline]) -> Outline | None:
            found = list(outlines)
            return merged(found, policy) if found else None

        changed: list[StoredPeriod] = []
        above: dict[Level, dict[tuple[str, str], None]] = {Level.WEEK: {}, Level.MONTH: {}, Level.YEAR: {}}
        for day, project in both(touched):
            segments = sorted(self._days.get((day, project), ()), key=lambda one: (one.start, one.id))
            changed.append(self._put(Level.DAY, day, project, merging(one.outline for one in segments)))
            keys = periods.keys_of(day)
            for level, found in above.items():
                found[keys[level], project] = None
        for level, found in above.items():
            below = periods.parts(level)
            for key, project in found:
                held = [self._periods.get((below, part, project)) for part in periods.part_keys(level, key)]
                changed.append(self._put(level, key, project, merging(one for one in held if one is not None)))
        return changed

    def _put(self, level: Level, key: str, project: str, outline: Outline | None) -> StoredPeriod:
        if outline is None:
            self._periods.pop((level, key, project), None)
        else:
            self._periods[level, key, project] = outline
        return StoredPeriod(level=level, key=key, project=project, outline=outline)


def both(touched: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return some (day, project), and the same days of all projects, in order."""
    return sorted({(day, each) for day, project in touched for each in (project, ALL)})


def needed(touched: Iterable[tuple[str, str]]) -> set[tuple[Level, str, str]]:
    """Return the periods that may be parts of what changes with some (day, project)."""
    found: set[tuple[Level, str, str]] = set()
    for day, project in both(touched):
        keys = periods.keys_of(day)
        for level in (Level.WEEK, Level.MONTH, Level.YEAR):
            below = periods.parts(level)
            found |= {(below, part, project) for part in periods.part_keys(level, keys[level])}
    return found
