"""What was learned from a text, and why each sentence was kept or not."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from scrubjay.api import LearnResponse, Verdict
from scrubjay.cli.render.layout import dim
from scrubjay.cli.render.words import clean, counted, one_line, short

SHOWN_CHARS = 200
"""Characters of a refused sentence that are shown: enough to know which one it is."""


def learned(answer: LearnResponse, *, explain: bool, dry_run: bool) -> RenderableType:
    """Return the memories of a text; with `explain` every sentence of it, with what became of it and why."""
    lines: list[RenderableType] = []
    if explain:
        lines += [line for verdict in answer.verdicts for line in _verdict(verdict)]
    elif dry_run:
        for verdict in answer.verdicts:
            for memory in verdict.memories:
                lines.append(Text.assemble(("+ ", "green"), clean(memory.content)))
                lines.append(Padding(dim(memory.type.value, f"{memory.confidence:.0%} sure"), (0, 0, 0, 2)))
    if not dry_run:
        for entry in answer.learned:
            lines.append(Text.assemble(("learned  ", "bold green"), clean(entry.memory.content)))
            lines.append(Padding(dim(short(entry.memory.id), entry.memory.type.value), (0, 0, 0, 2)))
    kept = sum(len(verdict.memories) for verdict in answer.verdicts)
    if kept == 0 and not answer.learned:
        lines.append(
            Text("nothing in it is worth keeping" + ("" if explain else "; --explain says why, scrubjay add keeps it"))
        )
    elif dry_run:
        lines.append(dim(f"{counted(kept, 'memory', 'memories')} would be learned; nothing was stored"))
    return Group(*lines)


def _verdict(verdict: Verdict) -> Iterator[RenderableType]:
    kept = bool(verdict.memories)
    sign = ("+ ", "green") if kept else ("- ", "dim")
    yield Text.assemble(sign, (one_line(verdict.sentence, SHOWN_CHARS), "" if kept else "dim"))
    yield Padding(dim(verdict.why), (0, 0, 0, 2))
    for memory in verdict.memories:
        yield Padding(
            Text.assemble(("→ ", "cyan"), clean(memory.content), (f"  {memory.type.value}", "dim")), (0, 0, 0, 2)
        )
