"""The calendar of the table of contents: its levels, the ids of its nodes, and which node lies in which. Pure.

A year, a month and a day hold exactly their days of the calendar. A week is the whole ISO week, and a child of each
month that it touches. Days are written `2026-11-21`, and are those of the person's own time zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from scrubjay_shared.clock import ULID_LENGTH, Millis
from scrubjay_shared.errors import InvalidError, NotFoundError

ROOT = "toc"
HINT = "scrubjay toc shows the years; a node's id is like toc:month:2026-11, and its children are listed with it"
GRIP = re.compile(rf"grip:([0-9A-Za-z]{{{ULID_LENGTH}}}):(\d{{1,9}})-(\d{{1,9}})", re.ASCII)


class Level(StrEnum):
    """How much time a node covers, from all of it to one stretch of a session."""

    ROOT = "root"
    YEAR = "year"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    SEGMENT = "segment"


PERIODS = (Level.YEAR, Level.MONTH, Level.WEEK, Level.DAY)
"""The levels whose nodes are periods of the calendar, longest first."""

FORMS = {
    Level.YEAR: re.compile(r"\d{4}", re.ASCII),
    Level.MONTH: re.compile(r"\d{4}-\d\d", re.ASCII),
    Level.WEEK: re.compile(r"\d{4}-W\d\d", re.ASCII),
    Level.DAY: re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    Level.SEGMENT: re.compile(rf"[0-9A-Z]{{{ULID_LENGTH}}}"),
}
"""What the keys of nodes look like, by level."""


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the table: `key` is "" for the root, the id of its first event for a segment, else as in `keys_of`."""

    level: Level
    key: str

    @property
    def id(self) -> str:
        """The id that people and agents name it by."""
        return node_id(self.level, self.key)


def node_id(level: Level, key: str) -> str:
    """Return the id of a node.

    >>> node_id(Level.WEEK, "2026-W47")
    'toc:week:2026-W47'
    """
    return ROOT if level is Level.ROOT else f"{ROOT}:{level.value}:{key}"


def parse(text: str) -> Node:
    """Return the node that an id names. Raises InvalidError for what is no such id, NotFoundError for 30 February.

    >>> parse("toc:month:2026-11").key
    '2026-11'
    """
    if text == ROOT:
        return Node(Level.ROOT, "")
    _, _, rest = text.partition(f"{ROOT}:")
    name, _, key = rest.partition(":")
    form = FORMS.get(Level(name)) if name in FORMS else None
    if form is None or not form.fullmatch(key):
        raise InvalidError(f"{text[:60]!r} is not a node of the table of contents", hint=HINT)
    if name != Level.SEGMENT and not _is_date(Level(name), key):
        raise NotFoundError(f"the calendar has no {name} {key}", hint=HINT)
    return Node(Level(name), key)


def _is_date(level: Level, key: str) -> bool:
    try:
        return bool(days_of(level, key))
    except ValueError:
        return False


def local_day(ts: Millis, utc_offset: int) -> str:
    """Return the day of a time, `utc_offset` minutes east of UTC.

    >>> local_day(Millis(0), -60)
    '1969-12-31'
    """
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ts, minutes=utc_offset)).date().isoformat()


def keys_of(day: str) -> dict[Level, str]:
    """Return the periods that a day lies in, by level.

    >>> keys_of("2027-01-01")[Level.WEEK]
    '2026-W53'
    """
    found = date.fromisoformat(day)
    year, week, _ = found.isocalendar()
    return {Level.YEAR: day[:4], Level.MONTH: day[:7], Level.WEEK: f"{year:04}-W{week:02}", Level.DAY: day}


def days_of(level: Level, key: str) -> tuple[date, date]:
    """Return the first and the last day of a period. Raises ValueError where there is no such period."""
    if level is Level.YEAR:
        return date(int(key), 1, 1), date(int(key), 12, 31)
    if level is Level.MONTH:
        first = date.fromisoformat(f"{key}-01")
        return first, date(first.year, 12, 31) if first.month == 12 else first.replace(month=first.month + 1) - _DAY
    if level is Level.WEEK:
        first = date.fromisocalendar(int(key[:4]), int(key[6:]), 1)
        return first, min(date.max - _DAY, first) + 6 * _DAY if first < date(9999, 12, 20) else date.max
    day = date.fromisoformat(key)
    return day, day


_DAY = timedelta(days=1)


def parents(level: Level, key: str) -> tuple[Node, ...]:
    """Return the nodes that a period is a child of: a week may lie in two months."""
    if level is Level.YEAR:
        return (Node(Level.ROOT, ""),)
    if level is Level.MONTH:
        return (Node(Level.YEAR, key[:4]),)
    first, last = days_of(level, key)
    if level is Level.WEEK:
        months = dict.fromkeys((first.isoformat()[:7], last.isoformat()[:7]))
        return tuple(Node(Level.MONTH, month) for month in months)
    return (Node(Level.WEEK, keys_of(key)[Level.WEEK]),)


def child_keys(level: Level, key: str) -> tuple[Level, tuple[str, ...]]:
    """Return the periods below a period that may be there, in order. Not of a day: its children are segments.

    >>> child_keys(Level.MONTH, "2026-11")[1][0]
    '2026-W44'
    """
    first, last = days_of(level, key)
    if level is Level.YEAR:
        return Level.MONTH, tuple(f"{key}-{month:02}" for month in range(1, 13))
    days = [(first + n * _DAY).isoformat() for n in range((last - first).days + 1)]
    if level is Level.MONTH:
        return Level.WEEK, tuple(dict.fromkeys(keys_of(day)[Level.WEEK] for day in days))
    return Level.DAY, tuple(days)


def parts(level: Level) -> Level:
    """Return the level whose nodes add up to one of a level: weeks cross the ends of months, so these add up days."""
    return {Level.YEAR: Level.MONTH, Level.MONTH: Level.DAY, Level.WEEK: Level.DAY}[level]


def part_keys(level: Level, key: str) -> tuple[str, ...]:
    """Return the keys of what adds up to a year, a month or a week."""
    if level is Level.YEAR:
        return child_keys(level, key)[1]
    first, last = days_of(level, key)
    return tuple((first + n * _DAY).isoformat() for n in range((last - first).days + 1))


def title(level: Level, key: str) -> str:
    """Return what a period is called.

    >>> title(Level.WEEK, "2026-W47"), title(Level.DAY, "2026-11-21")
    ('Week 47: 16–22 November 2026', 'Saturday, 21 November 2026')
    """
    if level in {Level.ROOT, Level.YEAR}:
        return key or "Everything"
    first, last = days_of(level, key)
    if level is Level.MONTH:
        return f"{_MONTHS[first.month - 1]} {first.year}"
    if level is Level.DAY:
        return f"{_WEEKDAYS[first.weekday()]}, {_shown(first)} {first.year}"
    start = str(first.day) if first.month == last.month else _shown(first)
    start += f" {first.year}" if first.year != last.year else ""
    return f"Week {int(key[6:])}: {start}–{_shown(last)} {last.year}"


def _shown(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def covering(first: date, last: date) -> tuple[Node, ...]:
    """Return the fewest periods that hold some days and no others, in order: whole years, months, weeks, then days."""
    found: list[Node] = []
    day = first
    while day <= last:
        keys = keys_of(day.isoformat())
        for level in PERIODS:
            start, end = days_of(level, keys[level])
            if start == day and end <= last:
                found.append(Node(level, keys[level]))
                break
        if end == date.max:
            break
        day = end + _DAY
    return tuple(found)


def grip_id(event_id: str, start: int, end: int) -> str:
    """Return the id of a passage of an event: `[start:end]` of its text, in characters."""
    return f"grip:{event_id}:{start}-{end}"


def parse_grip(text: str) -> tuple[str, int, int] | None:
    """Return the event and the span that the id of a passage names; None for a text that is no such id."""
    found = GRIP.fullmatch(text)
    if found is None:
        return None
    start, end = int(found[2]), int(found[3])
    return (found[1].upper(), start, end) if start < end else None
