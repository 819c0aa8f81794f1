"""What a retrieval benchmark is asked about: conversations with their questions, whatever file they come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Role

READ_BYTES = 1 << 20
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing said. `id` is unique within its conversation; `utc_offset` is in minutes east of UTC."""

    id: str
    session: str
    speaker: str
    text: str
    ts: Millis
    utc_offset: int = 0
    role: Role = Role.USER

    @property
    def document(self) -> str:
        """The text that is searched: the protocols say `[speaker] text`, and so does the product."""
        return f"[{self.speaker}] {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact that a data set ships. `source` names its turn; None where it names several, so that none is it."""

    session: str
    speaker: str
    text: str
    source: str | None
    ts: Millis

    @property
    def document(self) -> str:
        """The text that is searched, and the content of the memory."""
        return f"[{self.speaker}] {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with the turns, and where the data set names them the sessions, that answer it.

    `asked` is when, None for the day after the last turn: what "last week" means depends on it. `left_out` is why the
    data set itself says not to count it, "" to count it. `answer` is the right one, "" where none is given.
    """

    text: str
    evidence: frozenset[str]
    category: str
    sessions: frozenset[str] = frozenset()
    asked: Millis | None = None
    left_out: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation in order, and what is asked about it. A question searches its own conversation only."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    facts: tuple[Fact, ...] = ()

    @property
    def end(self) -> Millis:
        """The day after the last turn: when a question without a time is asked."""
        return Millis(max((turn.ts for turn in self.turns), default=0) + DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Conversations, with the name and SHA-256 of the file or files that they were read from."""

    name: str
    sha256: str
    conversations: tuple[Conversation, ...]


def digest(*paths: Path) -> str:
    """Return the SHA-256 (hex) of some files, one after another."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(READ_BYTES):
                found.update(piece)
    return found.hexdigest()
