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
    said = [(place_of(seq, row), row[9]) for seq, row in run if row[7] == _TITLES and row[9]]
    title_at, title = min(said, default=("", ""))
    start = min(times)
    return SessionCount(
        id=session_id,
        agent=min([row[2] for _, row in run]),
        project=min([row[4] for _, row in run if row[4] is not None], default=None),
        start=start,
        last=max(times),
        closed=max([row[5] for _, row in run if row[7] == _CLOSES], default=None),
        title=title[:TITLE_CHARS],
        title_at=title_at,
        events=len(run),
        first_at=min([place_of(seq, row) for seq, row in run if row[5] == start]),
    )


def place_of(seq: int, row: Sequence[Any]) -> str:
    """Return where an event stands among all, as a text: what `rows.PLACE` says."""
    return f"{row[5]:015d}{seq:019d}{row[0]}"
