"""Learning from a text on purpose: what is kept of each sentence, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay.api.memories import Entry
from scrubjay_shared.records import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    """A text that the person says, in a project or of none. `dry_run` stores nothing."""

    text: str
    project: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnable:
    """A memory as it would be worded: `confidence` is in [0, 1]."""

    content: str
    type: MemoryType
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of the sentence at `[start:end]` (characters) of the text as it is stored, and why.

    Nothing is kept of it where `memories` is empty. `chance` is what the reader gives it, in [0, 1]; None where
    patterns alone decide, because the text is of no project.
    """

    start: int
    end: int
    sentence: str
    memories: tuple[Learnable, ...]
    why: str
    chance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnResponse:
    """The verdicts in the order of the text, and the memories that rest on it: none in a dry run.

    `event_id` is the event that holds the text, "" in a dry run. `redactions` counts secrets that were taken out.
    `project` is in which project it was said, None for none.
    """

    verdicts: tuple[Verdict, ...]
    learned: tuple[Entry, ...] = ()
    event_id: str = ""
    redactions: dict[str, int] = field(default_factory=dict)
    project: str | None = None
