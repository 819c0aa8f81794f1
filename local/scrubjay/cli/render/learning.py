"""What was learned from a text, and why each sentence was kept or not; what reading sessions anew does."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from scrubjay.api import LearnResponse, RelearnCost, RelearnResponse, Verdict
from scrubjay.cli.render.history import shortened
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


_WHY = {
    "edited": "edited",
    "pinned": "pinned",
    "confirmed": "confirmed, told on purpose, or found by another reader",
    "cited": "cited, or in the place of another",
}
_READERS = {"reader": "the reader of this version", "patterns": "the patterns of this version"}
_LESSER = {"writer": "patterns or the reader", "reader": "patterns or an earlier reader", "patterns": "patterns"}


def relearning(answer: RelearnResponse, *, runs: bool) -> Group:
    """Return what reading anew would do, and what is to be done for it; of a run under way, how far it is."""
    if answer.cause is not None:
        return Group(preview(answer), under_way(answer, runs=runs))
    if not answer.sessions:
        return Group(preview(answer))
    return Group(preview(answer), dim("nothing was changed; to begin: scrubjay relearn --yes"))


def preview(answer: RelearnResponse) -> Group:
    """Return what a run reads and may end, what it leaves alone, and what the Writer is sent for it."""
    lesser = _LESSER[answer.reader]
    if not answer.sessions:
        return Group(Text(f"nothing is to be read anew: no memory may end that {lesser} made"), *_kept(answer))
    sessions = counted(answer.sessions, "session")
    writer = "the Writer" if answer.cost is None else f"the Writer ({clean(answer.cost.model)})"
    reader = _READERS.get(answer.reader, writer)
    return Group(
        Text(f"{sessions} would be read anew, by {reader}" if answer.cause is None else f"{sessions}, by {reader}"),
        _beneath(
            f"{counted(answer.memories, 'memory', 'memories')} that {lesser} made may end: those that are learned again"
            " stay, and undo brings all back"
        ),
        *_kept(answer),
        _beneath("nothing that you added, imported or edited is touched"),
        *(() if answer.cost is None else _cost(answer.cost)),
    )


def under_way(answer: RelearnResponse, *, runs: bool) -> Group:
    """Return how far a run is, and how to follow it and take it back."""
    told = "scrubjay jobs shows how far it is" if runs else "no daemon runs: scrubjay jobs run relearn does it now"
    return Group(
        Text(f"reading anew: {answer.done:,} of {counted(answer.sessions, 'session')} done; {told}"),
        dim(f"to take this back: scrubjay undo {shortened(answer.cause or '')}"),
    )


def _beneath(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, 2))


def _kept(answer: RelearnResponse) -> list[Padding]:
    return [
        _beneath(f"{counted(count, 'other stays', 'others stay')}: {_WHY.get(why, why)}")
        for why, count in answer.kept.items()
    ]


def _cost(cost: RelearnCost) -> list[Padding]:
    where = "leaves this machine" if cost.leaves else "stays on this machine"
    return [
        _beneath(
            f"what was said to your agents in them, and what these answered, goes to {clean(cost.destination)} and"
            f" {where}; secrets that redaction knows are out of it"
        ),
        _beneath(
            f"about {counted(cost.calls, 'call')}, {cost.input_tokens:,} tokens read and {cost.output_tokens:,}"
            f" written: {counted(cost.days, 'day')} with half of the daily cap, {cost.left_today:,} of it left today"
        ),
    ]
