"""A session that was compacted, and its history from there."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from scrubjay.api import CompactResponse, ReplayResponse
from scrubjay.cli import times
from scrubjay.cli.render import events
from scrubjay.cli.render.layout import spaced
from scrubjay.cli.render.words import clean, counted


def compacted(answer: CompactResponse) -> RenderableType:
    """Return the archive of a compaction, and what it stands for."""
    done = "stands for" if answer.created else "stood already for"
    head = Text.assemble(
        (clean(answer.archive.memory.name or answer.archive.memory.id), "bold"),
        f" {done} {counted(answer.events, 'event')}",
    )
    return spaced([head, Text(clean(answer.archive.memory.content))])


def replayed(answer: ReplayResponse) -> RenderableType:
    """Return the archive that stands before the events, and these."""
    parts: list[RenderableType] = []
    if answer.archive_name is not None and answer.archived_at is not None:
        parts.append(Text(f"{clean(answer.archive_name)}, {times.moment(answer.archived_at)}", style="bold"))
        parts.append(Text(clean(answer.archive_text or "the archive was forgotten")))
    parts.append(events.events(answer.events))
    return spaced(parts)
