"""Twenty invented sessions of three people, and what their starts are handed: read from the fixture and tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FIXTURE = Path(__file__).parent / "fixtures" / "twenty_starts.txt"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a session; `lasts` says whether a later agent should be told of it."""

    is_person: bool
    lasts: bool
    text: str
    ts: int


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a project."""

    id: str
    project: str
    turns: tuple[Turn, ...]


def sessions() -> Iterator[Session]:
    """Yield the sessions in their order."""
    for n, part in enumerate(FIXTURE.read_text(encoding="utf-8").split("\n== ")[1:]):
        head, *lines = part.strip().splitlines()
        project, day = head.split()
        begin = int(datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC).timestamp() * 1000)
        turns = tuple(
            Turn(who.startswith("u"), who == "u+", text, begin + 60_000 * place)
            for place, (who, _, text) in enumerate(line.partition(" ") for line in lines)
        )
        yield Session(f"s{n + 1:02}", f"/home/{project}", turns)
