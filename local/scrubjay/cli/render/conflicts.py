"""Fields that devices disagree about."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import (
    Conflict,
    ConflictsResponse,
)
from scrubjay.cli import times
from scrubjay.cli.render.layout import spaced
from scrubjay.cli.render.words import clean, short


def conflicts(answer: ConflictsResponse, names: Mapping[str, str]) -> RenderableType:
    """Return the fields that devices disagree about: what is shown, and what each other version says.

    `names` are those of the devices, by id; one that has none is shown by its id.
    """
    if not answer.conflicts:
        return Text("no conflicts")
    return spaced(conflict(each, names) for each in answer.conflicts)


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
