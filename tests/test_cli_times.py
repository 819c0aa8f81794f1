"""Times are read as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from scrubjay.cli import times
from scrubjay_shared.clock import Millis

STOCKHOLM = timezone(timedelta(hours=1))
NOW = datetime(2026, 11, 21, 15, 30, tzinfo=STOCKHOLM)


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("2026-11-20", "2026-11-20T00:00+01:00", "2026-11-21T00:00+01:00"),
        ("2026-11-20T10:00", "2026-11-20T10:00+01:00", "2026-11-20T10:01+01:00"),
        ("2026-11-20 10:00", "2026-11-20T10:00+01:00", "2026-11-20T10:01+01:00"),
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00+00:00", "2026-11-20T10:00:01+00:00"),
        ("today", "2026-11-21T00:00+01:00", "2026-11-22T00:00+01:00"),
        ("yesterday", "2026-11-20T00:00+01:00", "2026-11-21T00:00+01:00"),
        ("  Yesterday ", "2026-11-20T00:00+01:00", "2026-11-21T00:00+01:00"),
        ("7 days ago", "2026-11-14T00:00+01:00", "2026-11-15T00:00+01:00"),
        ("2 weeks ago", None, None),
        ("last week", None, None),
        ("May 2026", "2026-05-01T00:00+01:00", "2026-06-01T00:00+01:00"),
        ("3 hours ago", "2026-11-21T12:30+01:00", "2026-11-21T12:30+01:00"),
        ("an hour ago", "2026-11-21T14:30+01:00", "2026-11-21T14:30+01:00"),
        ("now", "2026-11-21T15:30+01:00", "2026-11-21T15:30+01:00"),
    ],
)
def test_times_are_read_as_people_write_them(words: str, start: str | None, end: str | None) -> None:
    found = times.time_range(words, NOW)

    assert found.start <= found.end <= times.millis(NOW) + 86_400_000
    if start is not None and end is not None:
        assert found == (times.millis(datetime.fromisoformat(start)), times.millis(datetime.fromisoformat(end)))


def test_until_a_day_holds_the_whole_of_it() -> None:
    until = times.until("2026-11-20", NOW)

    assert until == times.millis(datetime.fromisoformat("2026-11-21T00:00+01:00"))


@pytest.mark.parametrize("at", [-(1 << 62), -(1 << 45), 0, 1 << 43, 1 << 60, (1 << 63) - 1])
@pytest.mark.parametrize("zone", [None, -1439, 0, 1439])
def test_a_time_that_no_calendar_holds_is_shown_all_the_same(at: int, zone: int | None) -> None:
    assert times.moment(Millis(at), zone)
