"""Times as people write and read them: "7 days ago" becomes a range of UTC, and UTC becomes the local day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from scrubjay import intervals
from scrubjay.dates import find_dates
from scrubjay.toc import periods
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

HINT = 'write 2026-11-21, 2026-11-21T14:30, today, yesterday, "7 days ago", "last week" or "May 2026"'
FIRST, LAST = -62_135_510_400_000, 253_402_214_400_000
"""The second day of the year 1 and the last one of 9999, in UTC milliseconds, for any zone."""
MINUTES = {"minute": 1, "hour": 60}
"""Units that are counted back from this moment. Days and longer are days of the calendar: `dates` reads those."""


class TimeRange(NamedTuple):
    """A range of time: `start` belongs to it, `end` does not."""

    start: Millis
    end: Millis


def time_range(words: str, now: datetime) -> TimeRange:
    """Return the time that a person means. `now` carries their time zone. Raises InvalidError for other words."""
    plain = " ".join(words.split())
    return _exact(plain, now) or _counted(plain, now) or _prose(plain, now)


def since(words: str | None, now: datetime) -> Millis | None:
    """Return where that time begins."""
    return time_range(words, now).start if words is not None else None


def until(words: str | None, now: datetime) -> Millis | None:
    """Return where that time ends, so that `--until 2026-11-21` holds the whole of that day; the bound is outside."""
    return time_range(words, now).end if words is not None else None


def node(words: str, now: datetime) -> str:
    """Return the id of the node of the table of contents that a person means: by its id, its key, or a time in words.

    Raises InvalidError for other words.
    """
    plain = " ".join(words.split())
    if plain.startswith(periods.ROOT):
        return plain
    for level in (*periods.PERIODS, periods.Level.SEGMENT):
        if periods.FORMS[level].fullmatch(plain):
            return periods.node_id(level, plain)
    meant = time_range(plain, now)
    first, last = (datetime.fromtimestamp(ts / 1000, now.tzinfo).date() for ts in (meant.start, meant.end - 1))
    found = periods.covering(first, last)
    if len(found) != 1:
        raise InvalidError(
            f"{words[:80]!r} is no one day, week, month or year",
            hint=f'scrubjay timeline --from "{plain}" --to "{plain}" shows such a time',
        )
    return found[0].id


def millis(moment: datetime) -> Millis:
    """Return the UTC milliseconds of an aware time."""
    return Millis(round(moment.timestamp() * 1000))


def local(ts: Millis, utc_offset: int | None = None) -> datetime:
    """Return the time on the clock of the place `utc_offset` minutes east of UTC; None is this machine's.

    What no calendar holds shows as its first or last day: another device may have written any number.
    """
    moment = datetime.fromtimestamp(min(max(ts, FIRST), LAST) / 1000, UTC)
    return moment.astimezone(None if utc_offset is None else timezone(timedelta(minutes=utc_offset)))


def day(ts: Millis, utc_offset: int | None = None) -> str:
    """Return "21 Nov 2026"."""
    moment = local(ts, utc_offset)
    return f"{moment.day} {moment:%b %Y}"


def moment(ts: Millis, utc_offset: int | None = None) -> str:
    """Return "21 Nov 2026 14:30"."""
    return f"{day(ts, utc_offset)} {local(ts, utc_offset):%H:%M}"


def over(valid_from: Millis | None, valid_to: Millis | None, said_at: Millis | None, now: Millis) -> str:
    """Return until when something held, as "until 14 Mar 2026", where that time is over; else "".

    Of what happened at a time nothing is said: it is as true as it was. `said_at` as of `intervals.happened`.
    """
    if valid_to is None or not intervals.over(valid_from, valid_to, said_at, now):
        return ""
    return f"until {day(Millis(valid_to - 1))}"


def _exact(words: str, now: datetime) -> TimeRange | None:
    """Read an ISO date (the whole day) or date and time (that minute, or second), by default in the person's zone."""
    try:
        found = datetime.fromisoformat(words)
    except ValueError:
        return None
    try:
        if found.tzinfo is None:
            found = found.replace(tzinfo=None if now.tzinfo is None else now.tzinfo)
        if re.fullmatch(r"\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}(-?\d)?", words):
            return TimeRange(millis(found), millis(found + timedelta(days=1)))
        return TimeRange(millis(found), Millis(millis(found) + (60_000 if words.count(":") == 1 else 1_000)))
    except (OverflowError, OSError) as error:
        raise InvalidError(f"{words!r} is too early or too late a time", hint=HINT) from error


def _counted(words: str, now: datetime) -> TimeRange | None:
    if words.casefold() == "now":
        return TimeRange(millis(now), millis(now))
    counted = re.fullmatch(r"(\d{1,6}|an?) (minute|hour)s? ago", words, re.IGNORECASE)
    if counted is None:
        return None
    number = int(counted[1]) if counted[1].isdecimal() else 1
    then = now - timedelta(minutes=number * MINUTES[counted[2].lower()])
    return TimeRange(millis(then), millis(then))


def _prose(words: str, now: datetime) -> TimeRange:
    offset = now.utcoffset() or timedelta()
    found = find_dates(words, millis(now), int(offset.total_seconds() // 60))
    if len(found) != 1 or words[: found[0].span_start].strip() or words[found[0].span_end :].strip():
        raise InvalidError(f"{words[:80]!r} is not a time", hint=HINT)
    return TimeRange(found[0].start, found[0].end)
