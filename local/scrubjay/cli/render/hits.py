"""The answer to a question: hits, the evidence under them, their scores."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scrubjay.api import (
    Hit,
    Quote,
    RecallResponse,
)
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim, spaced
from scrubjay.cli.render.words import clean, counted, one_line, short

WORDS = 240
"""Characters of a source line: two or three lines of a terminal; `why` shows all of it."""


def quote(said: Quote, limit: int = WORDS) -> Text:
    """Return a line of evidence: who, what, when, which event."""
    line = Text()
    line.append(f"{one_line(said.speaker, 40)}: ", style="cyan")
    line.append(f"“{one_line(said.text, limit)}”")
    line.append(f"  {times.moment(said.ts)} · {short(said.event_id)}", style="dim")
    return line


def hit(found: Hit, rank: int, *, why: bool = False, note: str = "") -> RenderableType:
    """Return one answer: what it says, when and what it is, and who said so. `note` stands beside it."""
    speaker = found.sources[0].speaker if found.kind == "event" and found.sources else ""
    head = Text(f"{rank:>2}  ", style="bold green")
    if speaker:
        head.append(f"{one_line(speaker, 40)}: ", style="cyan")
    head.append(clean(found.text) + ("…" if found.truncated else ""), style="bold" if found.kind == "memory" else "")
    parts: list[RenderableType] = [_hanging(head)]
    about = dim(
        times.day(found.ts),
        found.type.replace("_", " "),
        one_line(found.name or "", 60),
        "superseded" if found.superseded_by else "",
        f"may be out of date: see {short(found.questioned_by)}" if found.questioned_by else "",
        f"in archive {short(found.archive)}" if found.archive else "",
        "" if found.trust in {None, "user"} else f"trust: {found.trust}",
        "" if found.review is None else one_line(found.review.partition(" ")[0], 20),
        short(found.id),
        f"{found.score:.3f}",
        "" if found.confidence is None else f"{found.confidence:.0%} sure",
    )
    if note:
        about.append(f"  {note}", style="not dim green")
    parts.append(Padding(about, (0, 0, 0, 4)))
    said = [line for line in found.sources if not (found.kind == "event" and line.event_id == found.id)]
    parts.extend(Padding(Text("↳ ", style="dim").append_text(quote(line)), (0, 0, 0, 4)) for line in said)
    parts.extend(Padding(Text("· ").append_text(quote(line)), (0, 0, 0, 4), style="dim") for line in found.neighbours)
    if why and found.parts:
        parts.append(Padding(score(found.parts, found.score), (0, 0, 0, 4)))
    return Group(*parts)


def _hanging(text: Text) -> RenderableType:
    """Return the text with every line but its first set in, so that ranks stand out."""
    grid = Table.grid(padding=0)
    grid.add_column(width=4, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(text[:4], text[4:])
    return grid


def score(parts: Mapping[str, float], total: float) -> RenderableType:
    """Return the parts of a score, and what they add up to."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    for name, value in sorted(parts.items(), key=lambda part: -abs(part[1])):
        table.add_row(Text(clean(name)), f"{value:+.3f}")
    table.add_row("score", Text(f"{total:+.3f}", style="bold"))
    return table


def recall(answer: RecallResponse, *, why: bool = False, unknown: bool = False) -> RenderableType:
    """Return the hits, best first. Where nothing is known it says so, and shows them only with `unknown`."""
    if not answer.hits:
        return Text("nothing found")
    if not answer.known and not unknown:
        nearest = counted(len(answer.hits), "hit")
        return Text(f"nothing is known about that ({nearest} below the floor: --all shows what comes nearest)")
    return spaced(hit(found, rank, why=why) for rank, found in enumerate(answer.hits, 1))


def recalled(answer: RecallResponse) -> str:
    """Return what is to be said about an answer, beside it."""
    parts = [counted(len(answer.hits), "hit"), answer.mode, f"{answer.elapsed_ms:.0f} ms"]
    if answer.confidence is not None:
        parts.append(f"{answer.confidence:.0%} sure that it is answered")
    if answer.left_out:
        parts.append(f"{answer.left_out} more did not fit")
    return " · ".join([*parts, *answer.notes])
