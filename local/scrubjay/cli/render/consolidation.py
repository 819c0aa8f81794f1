"""What a run of consolidation did or would do, and what became of memories since."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import ConsolidateResponse, ConsolidationStep, DiffResponse, FieldDiff, MemoryDiff
from scrubjay.cli import times
from scrubjay.cli.render.history import shortened
from scrubjay.cli.render.words import clean, counted, one_line, short
from scrubjay_shared.clock import Millis

LINE_CHARS = 100
"""Of a memory's words in a line: what fits beside its id."""

_DID = {
    "supersede": "ended",
    "question": "marked as doubtful",
    "merge": "merged",
    "compress": "compressed",
    "prune": "put away",
}
_TIMES = {"valid_from", "valid_to", "archived_at"}


def consolidated(answer: ConsolidateResponse, *, dry_run: bool) -> RenderableType:
    """Return the steps, what they come to, and how to take them back."""
    parts: list[Text] = []
    for step in answer.steps:
        parts += _step(step)
    did = "would change" if dry_run else "changed"
    total = f"{did} {answer.touched:,} of {counted(answer.considered, 'memory', 'memories')}"
    tokens = f", {answer.tokens_before:,} tokens become {answer.tokens_after:,}" if answer.steps else ""
    parts.append(Text(total + tokens, style="green" if answer.steps else ""))
    if answer.left:
        parts.append(Text(f"  {counted(answer.left, 'memory', 'memories')} left for the next run"))
    if answer.cause is not None:
        parts.append(Text(f"to take this back: scrubjay undo {shortened(answer.cause)}", style="dim"))
    return Group(*parts)


def _step(step: ConsolidationStep) -> list[Text]:
    title = f"{_DID.get(step.action, step.action)} {counted(len(step.members), 'memory', 'memories')}"
    head = Text(title + (f" ({step.why})" if step.why else ""), style="bold")
    if step.into is not None:
        head.append(" → ", style="dim").append(short(step.into), style="dim")
    found = [head]
    for member in step.members:
        line = Text("  - ").append(short(member.id), style="dim")
        found.append(line.append(f"  {one_line(member.content, LINE_CHARS)}"))
    if step.content is not None:
        found += [Text(f"  + {clean(line)}") for line in step.content.splitlines()]
    return found


def compared(answer: DiffResponse) -> RenderableType:
    """Return each memory that changed, with what of it is different and what wrote that."""
    if not answer.changes:
        return Text(f"nothing changed since {times.moment(answer.since)}")
    parts: list[Text] = []
    for change in answer.changes:
        parts += _change(change)
    return Group(*parts)


def _change(change: MemoryDiff) -> list[Text]:
    head = Text(f"{change.change} ", style="bold").append(short(change.id), style="dim")
    head.append(f"  {one_line(change.content, LINE_CHARS)}")
    if change.causes:
        head.append(f"  by {', '.join(map(shortened, change.causes))}", style="dim")
    return [head, *(_field(field) for field in change.fields)]


def _field(field: FieldDiff) -> Text:
    before, after = _value(field.field, field.before), _value(field.field, field.after)
    return (
        Text(f"  {field.field.replace('_', ' ')}: ")
        .append(before, style="red")
        .append(" → ")
        .append(after, style="green")
    )


def _value(field: str, value: Any) -> str:
    if value is None:
        return "none"
    if field in _TIMES and isinstance(value, int):
        return times.moment(Millis(value))
    return one_line(str(value), LINE_CHARS)
