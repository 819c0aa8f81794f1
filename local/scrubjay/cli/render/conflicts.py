"""Fields that devices disagree about, and memories that may take the place of others."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import (
    Conflict,
    ConflictsResponse,
    Doubt,
)
from scrubjay.cli import times
from scrubjay.cli.render.layout import spaced
from scrubjay.cli.render.words import clean, one_line, short


def conflicts(answer: ConflictsResponse, names: Mapping[str, str]) -> RenderableType:
    """Return what is to be settled: fields with the versions of each device, and memories with the earlier ones.

    `names` are those of the devices, by id; one that has none is shown by its id.
    """
    if not (answer.conflicts or answer.doubts):
        return Text("no conflicts")
    return spaced([*(conflict(each, names) for each in answer.conflicts), *map(doubt, answer.doubts)])


def doubt(found: Doubt) -> RenderableType:
    """Return a memory that may take the place of an earlier one, with the commands that settle it."""
    old, new = short(found.old.id), short(found.new.id)
    parts: list[RenderableType] = []
    for memory, what in ((found.old, "earlier"), (found.new, "later  ")):
        line = Text(f"{what}  ", style="cyan").append(one_line(memory.content, 300), style="bold")
        trust = "" if memory.trust.value == "user" else f" · trust: {memory.trust.value}"
        parts.append(line.append(f"  {times.day(memory.created_at)} · {short(memory.id)}{trust}", style="dim"))
    parts.append(Text(f"  the later one holds: scrubjay supersede {old} {new}", style="dim"))
    parts.append(Text(f"  both hold:           scrubjay conflicts --both {old} {new}", style="dim"))
    return Group(*parts)


def conflict(found: Conflict, names: Mapping[str, str]) -> RenderableType:
    """Return one disputed field. The version stands where `--keep` wants it."""
    title = Text(clean(found.name or short(found.memory_id)), style="bold").append(f"  {found.field}", style="cyan")
    parts: list[RenderableType] = [title, Text(f"  shown    {clean(str(found.shown))}")]
    for other in found.others:
        line = Text(f"  or       {clean(str(other.value))}")
        device = clean(names.get(other.device) or short(other.device))
        where = f"{times.moment(other.ts)} · {device} · {other.version}"
        parts.append(line.append(f"  {where}", style="dim"))
    return Group(*parts)
