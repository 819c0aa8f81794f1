"""The active layer, and what is proposed for it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import ActiveResponse, BriefResponse
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim
from scrubjay.cli.render.words import clean, one_line

WORDS = {"goal": "open goal", "decision": "decided", "left_off": "left unfinished"}


def active(found: ActiveResponse) -> RenderableType:
    """Return what is active and what is proposed, a line each."""
    lines: list[RenderableType] = [Text("active", style="bold")]
    for line in found.active:
        left_out = "" if line.fits else "  (not loaded: the layer is full)"
        lines.append(
            Text.assemble(
                (f"  {line.ref}  ", "dim"), f"{one_line(line.key, 40)}: {clean(line.text)}", (left_out, "yellow")
            )
        )
    if not found.active:
        lines.append(dim("  nothing"))
    lines.append(Text("proposed", style="bold"))
    lines += [
        Text.assemble(
            (f"  {one.ref}  ", "dim"),
            (f"{WORDS.get(one.reason, one.reason)}, {times.day(one.ts)}, from the {one.trust}: ", "cyan"),
            clean(one.text),
        )
        for one in found.proposed
    ]
    lines.append(dim("  scrubjay active confirm ID, or dismiss ID") if found.proposed else dim("  nothing"))
    lines.append(dim(f"{found.tokens:,} of {found.budget:,} tokens"))
    return Group(*lines)


def brief(found: BriefResponse) -> RenderableType:
    """Return a project's brief as agents are handed it, with its pinned lines marked."""
    pinned = {item.text for item in found.items if item.pinned}
    lines: list[RenderableType] = []
    for line in clean(found.text).splitlines():
        is_line = line.startswith("- ")
        mark = "  (pinned)" if line.removeprefix("- ") in {clean(text) for text in pinned} else ""
        lines.append(Text.assemble((line, "" if is_line else "bold"), (mark, "green")))
    return Group(*(lines or [dim('nothing is worth telling yet: scrubjay add --project . --layer surfaced "…"')]))
