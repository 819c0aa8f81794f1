"""What a commit changed, told to whoever keeps a copy in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay.index.documents import EventDoc, MemoryDoc


@dataclass(slots=True)
class Changes:
    """What one commit changed, for whoever keeps a copy in memory."""

    events: list[EventDoc] = field(default_factory=list)
    memories: list[MemoryDoc] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    """Owners whose text changed, so that their vector no longer stands for it."""
    vectors: list[tuple[int, str, bytes]] = field(default_factory=list)
    """(space, owner, vector) of what was embedded."""
    arrived: bool = False
    """Whether ops of other devices were taken in."""
    erased: bool = False
    """Whether these made words go: what holds them outside the tables must go too (`Store.drop_traces`)."""

    def ids(self) -> list[str]:
        """Return the memories and events that it is about, each once."""
        docs = [*(doc.id for doc in self.memories), *(doc.id for doc in self.events)]
        return list(dict.fromkeys([*docs, *self.removed]))

    def follow(self, later: Changes) -> None:
        """Add what a later write of the same group changed: of an owner that both touched, the later word counts."""
        touched = set(later.removed)
        if self.events or self.memories or self.removed or self.vectors:
            touched |= {doc.id for doc in later.events} | {doc.id for doc in later.memories}
        if touched:
            self.events = [doc for doc in self.events if doc.id not in touched]
            self.memories = [doc for doc in self.memories if doc.id not in touched]
            self.removed = [owner for owner in self.removed if owner not in touched]
            self.vectors = [row for row in self.vectors if row[1] not in later.stale and row[1] not in later.removed]
        self.events += later.events
        self.memories += later.memories
        self.removed += later.removed
        self.stale |= later.stale
        self.vectors += later.vectors
        self.arrived |= later.arrived
        self.erased |= later.erased
