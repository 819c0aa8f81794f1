"""Which of the compaction events that hosts send ask for an archive.

A host that tells when a compaction is over tells with it what is left of the context: that event asks. One that only
tells when a compaction begins is taken at its word; of the others, a beginning without an end is a compaction that was
called off.
"""

from __future__ import annotations

from scrubjay.compaction.markers import ARCHIVE_NAME
from scrubjay_shared.records import Event, EventType

PHASE = "phase"
"""The key in an event's metadata that says where in a compaction it stands: `BEFORE` it, or `AFTER` it."""

BEFORE = "before"
AFTER = "after"

TELL_THE_END = frozenset({"claude-code", "codex", "opencode"})
"""The hosts that send an event when a compaction is over."""


def asks(event: Event) -> bool:
    """Say whether an event asks that its session be compacted up to it."""
    if event.type is not EventType.COMPACTION or ARCHIVE_NAME in event.metadata:
        return False
    phase = event.metadata.get(PHASE)
    return phase == AFTER or (phase == BEFORE and event.agent not in TELL_THE_END)
