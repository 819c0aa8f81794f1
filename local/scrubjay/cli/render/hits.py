"""The answer to a question: hits, the evidence under them, their scores."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scrubjay.api import (
    AskResponse,
    Beside,
    Hit,
    Quote,
    RecallResponse,
)
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim, spaced
from scrubjay.cli.render.words import clean, counted, one_line, short
from scrubjay_shared.clock import Millis

LINES = 10
"""Lines of a hit that are shown: code and lists are longer, and four other hits want to be seen."""

REVIEWS = {"waiting": "not reviewed yet", "disputed": "disputed", "rejected": "rejected"}
"""What the state of a memory's review is called beside it; what was accepted needs no word."""

WHOSE = {"import": "from a file", "agent": "an agent's words", "untrusted": "a tool's output, not verified"}
"""What is said of a hit that is not the person's own words, by its trust."""

MODES = {"hybrid": "", "lexical": "by words alone", "keyword": "mode keyword", "weighted": "mode weighted"}
"""What is said of how an answer was found; nothing of the usual way."""

WORDS = 240
"""Characters of a source line: two or three lines of a terminal; `why` shows all of it."""


def _spoken(said: Quote, words: str) -> Text:
    line = Text().append(one_line(said.speaker, 40), style="cyan").append(words)
    return line.append(f"  {times.moment(said.ts)} · {short(said.event_id)}", style="dim")


def _source(said: Quote, text: str) -> Text:
    """Return a line of evidence under a memory; one in the memory's own words is not said twice."""
    own, theirs = (" ".join(each.split()).rstrip(".!").casefold() for each in (text, said.text))
    return _spoken(said, " said so") if own == theirs else quote(said)


def _shortened(found: Hit) -> str:
    """Return the words of a hit, and where they go on."""
    lines = clean(found.text).splitlines()
    if len(lines) <= LINES:
        return "\n".join(lines) + ("…" if found.truncated else "")
    whole = f"scrubjay {'get' if found.kind == 'memory' else 'grip expand'} {short(found.id)}"
    return "\n".join([*lines[:LINES], f"… {len(lines) - LINES} more lines: {whole}"])


def _whose(found: Hit) -> str:
    """Return whose words a hit's are, where they are not yours and nobody is named beside it."""
    if found.trust in {None, "user"}:
        return ""
    named = found.sources if found.kind == "event" else found.read_from
    if found.trust == "import" and named:
        return "your words, imported" if named[0].speaker == "user" else f"{one_line(named[0].speaker, 40)}'s, imported"
    return WHOSE.get(found.trust or "", f"trust: {found.trust}")


def _other_side(said: Quote) -> Text:
    """Return what a turn answered, or what was answered to it: the other side of the exchange."""
    word = "answering " if said.beside is Beside.ASKED else "answered by "
    return Text(word, style="dim").append_text(quote(said))


def quote(said: Quote, limit: int = WORDS) -> Text:
    """Return a line of evidence: who, what, when, which event."""
    return _spoken(said, f": “{one_line(said.text, limit)}”")


def hit(found: Hit, rank: int, *, why: bool = False, note: str = "") -> RenderableType:
    """Return one answer: what it says, when and what it is, and who said so. `note` stands beside it.

    With `why` its score follows, by parts, and its confidence: numbers that compare hits, and no mark for an answer.
    """
    speaker = found.sources[0].speaker if found.kind == "event" and found.sources else ""
    head = Text(f"{rank:>2}  ", style="bold green")
    if speaker:
        head.append(f"{one_line(speaker, 40)}: ", style="cyan")
    head.append(_shortened(found), style="bold" if found.kind == "memory" else "")
    parts: list[RenderableType] = [_hanging(head)]
    now = Millis(time.time_ns() // 1_000_000)
    about = dim(
        times.day(found.ts),
        found.type.replace("_", " "),
        one_line(found.name or "", 60),
        "superseded"
        if found.superseded_by
        else times.over(found.valid_from, found.valid_to, found.ts if found.read_from else None, now),
        f"may be out of date: see {short(found.questioned_by)}" if found.questioned_by else "",
        f"in archive {short(found.archive)}" if found.archive else "",
        _whose(found),
        "" if found.review is None else REVIEWS.get(found.review.partition(" ")[0], ""),
        short(found.id),
    )
    if note:
        about.append(f"  {note}", style="not dim green")
    parts.append(Padding(about, (0, 0, 0, 4)))
    for line in found.sources:
        if found.kind == "event" and line.event_id == found.id:
            continue
        shown = _other_side(line) if line.beside else _source(line, found.text)
        parts.append(Padding(Text("↳ ", style="dim").append_text(shown), (0, 0, 0, 4)))
    parts.extend(Padding(Text("· ").append_text(quote(line)), (0, 0, 0, 4), style="dim") for line in found.neighbours)
    if why and found.parts:
        parts.append(Padding(score(found.parts, found.score, found.confidence), (0, 0, 0, 4)))
    return Group(*parts)


def _hanging(text: Text) -> RenderableType:
    """Return the text with every line but its first set in, so that ranks stand out."""
    grid = Table.grid(padding=0)
    grid.add_column(width=4, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(text[:4], text[4:])
    return grid


def score(parts: Mapping[str, float], total: float, confidence: float | None = None) -> RenderableType:
    """Return the parts of a score, what they add up to, and how likely a hit of that score answers."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    for name, value in sorted(parts.items(), key=lambda part: -abs(part[1])):
        table.add_row(Text(clean(name)), f"{value:+.3f}")
    table.add_row("score", Text(f"{total:+.3f}", style="bold"))
    if confidence is not None:
        table.add_row("confidence", f"{confidence:.1%}")
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
    parts = [counted(len(answer.hits), "hit"), f"{answer.elapsed_ms:.0f} ms", MODES.get(answer.mode, answer.mode)]
    if answer.confidence is not None and answer.known:
        parts.append(f"known here with a chance of {answer.confidence:.0%}")
    if answer.left_out:
        parts.append(f"{answer.left_out} more did not fit")
    return " · ".join(part for part in [*parts, *answer.notes] if part)


def answered(answer: AskResponse) -> RenderableType:
    """Return what the Writer states, with the numbers of what each statement cites, and these hits below."""
    if not answer.known:
        return Text("not known: nothing that was found answers that (scrubjay recall shows what comes nearest)")
    number = {found.id: str(rank) for rank, found in enumerate(answer.hits, 1)}
    statements = [
        Text(clean(one.text)).append("".join(f" [{number[id_]}]" for id_ in one.ids), style="green")
        for one in answer.statements
    ]
    return Group(*statements, Text(), spaced(hit(found, rank) for rank, found in enumerate(answer.hits, 1)))


def asked(answer: AskResponse) -> str:
    """Return what is to be said about an answer of the Writer, beside it."""
    parts = [
        f"{answer.model} read {counted(answer.found, 'hit')}",
        f"{counted(answer.input_tokens + answer.output_tokens, 'token')} in {counted(answer.calls, 'call')}",
        f"{counted(answer.dropped, 'line')} without a citation not shown" if answer.dropped else "",
    ]
    return " · ".join(part for part in [*parts, *answer.notes] if part)
