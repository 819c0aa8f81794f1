"""The sums of several answers about what came in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from scrubjay import api


@dataclass(slots=True)
class Totals:
    """The sums of the answers so far."""

    files: int = 0
    events: int = 0
    memories: int = 0
    duplicates: int = 0
    renamed: int = 0
    aliases_taken: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    taken_back: list[str] = field(default_factory=list)
    cause: str | None = None
    """What the history lists the import under."""

    def add(self, answer: api.ImportResponse) -> None:
        """Add what one import took."""
        self.formats[answer.format] += 1
        self.cause = answer.cause
        self.events += answer.events
        self.memories += answer.memories
        self.duplicates += answer.duplicates
        self.renamed += answer.renamed
        self.aliases_taken += answer.aliases_taken
        self.redactions.update(answer.redactions)
        self.taken_back += answer.taken_back
        self.skip(answer.skipped)
        self.changed.update({each.reason: each.count for each in answer.changed})

    def skip(self, skipped: Iterable[api.Skipped]) -> None:
        """Add reasons."""
        for each in skipped:
            self.skipped[each.reason] += each.count

    def reasons(self) -> tuple[api.Skipped, ...]:
        """Return the reasons, the commonest first."""
        return tuple(api.Skipped(reason=reason, count=count) for reason, count in self.skipped.most_common())
