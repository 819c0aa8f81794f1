"""What some new events add to their sessions. Pure; any process can work it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from scrubjay_shared.records import EventType

TITLE_CHARS = 80
"""How much of the first words of a session serves as its title."""

_CLOSES, _TITLES = EventType.SESSION_END.value, EventType.USER_MESSAGE.value


class SessionCount(NamedTuple):
    """What some events add to one session: the values of a row of `session`, then where the first of them stands."""

    id: str
    agent: str
    project: str | None
    start: int
    last: int
    closed: int | None
    title: str
    title_at: str
    events: int
    first_at: str


def session_counts(events: Iterable[tuple[int, Sequence[Any]]]) -> list[SessionCount]:
    """Return what events, as (seq, row of `rows.EVENT_COLUMNS`), add to each of their sessions."""
    found: dict[str, list[tuple[int, Sequence[Any]]]] = {}
    for event in events:
        found.setdefault(event[1][3], []).append(event)
    return [_counted(session_id, run) for session_id, run in found.items()]


def _counted(session_id: str, run: Sequence[tuple[int, Sequence[Any]]]) -> SessionCount:
    times = [row[5] for _, row in run]
    start = min(times)
    # As `place_of` orders them: a million places are not made into texts, to keep one of each session.
    said = [(row[5], seq, row[0], row[9]) for seq, row in run if row[7] == _TITLES and row[9]]
    titled = min(said, default=None)
    first = min([(seq, row[0]) for seq, row in run if row[5] == start])
    projects = {row[4] for _, row in run} - {None}
    return SessionCount(
        id=session_id,
        agent=min({row[2] for _, row in run}),
        project=min(projects, default=None),
        start=start,
        last=max(times),
        closed=max([row[5] for _, row in run if row[7] == _CLOSES], default=None),
        title="" if titled is None else titled[3][:TITLE_CHARS],
        title_at="" if titled is None else _place(*titled[:3]),
        events=len(run),
        first_at=_place(start, *first),
    )


def place_of(seq: int, row: Sequence[Any]) -> str:
    """Return where an event stands among all, as a text: what `rows.PLACE` says."""
    return _place(row[5], seq, row[0])


def _place(ts: int, seq: int, event_id: str) -> str:
    return f"{ts:015d}{seq:019d}{event_id}"
