"""The answer to a question: hits, the evidence under them, their scores."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
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
from scrubjay.api.recall import REVIEWS, WHOSE
from scrubjay.cli import times
from scrubjay.cli.render.layout import Packed, dim, spaced
from scrubjay.cli.render.words import clean, counted, one_line, short
from scrubjay.retrieval.packing import CUT
from scrubjay.retrieval.passages import tidied
from scrubjay.retrieval.turns import says_again
from scrubjay_shared.clock import Millis

LINES = 10
"""Lines of a hit that are shown: code and lists are longer, and other hits want to be seen."""

SHOWN = 10
"""Hits that a person is shown unless they ask for more: a window full. A program has as many as recall gives."""

FULL = 3
"""Hits that are shown with all that is known of them; each of the others has two lines of a terminal."""

MODES = {"hybrid": "", "lexical": "by words alone", "keyword": "mode keyword", "weighted": "mode weighted"}
"""What is said of how an answer was found; nothing of the usual way."""

WORDS = 600
"""Characters of a line of evidence: a short turn whole; `why` shows all of it."""


def _spoken(said: Quote, words: str | Text) -> Text:
    line = Text().append(one_line(said.speaker, 40), style="cyan").append(words)
    return line.append(f"  {times.moment(said.ts)} · {short(said.event_id)}", style="dim")


def _source(said: Quote) -> Text:
    """Return a line of evidence under a memory; one in the memory's own words is not said twice."""
    return quote(said) if said.text else _spoken(said, " said so")


def _whose(found: Hit) -> str:
    """Return whose words a memory's are, where they are not yours."""
    if found.trust in {None, "user"}:
        return ""
    if found.trust == "import" and found.read_from:
        speaker = found.read_from[0].speaker
        return "your words, imported" if speaker == "user" else f"{one_line(speaker, 40)}'s, imported"
    return WHOSE.get(found.trust or "", f"trust: {found.trust}")


def _other_side(said: Quote) -> Text:
    """Return what a turn answered, or what was answered to it: the other side of the exchange."""
    word = "answering " if said.beside is Beside.ASKED else "answered by "
    return Text(word, style="dim").append_text(quote(said))


def quote(said: Quote, limit: int = WORDS) -> Text:
    """Return a line of evidence: who, what, when, which event. What a memory was read from stands out in it."""
    return _spoken(said, Text(": “").append_text(_marked(said, limit)).append("”"))


def _marked(said: Quote, limit: int) -> Text:
    """Return the words of a quote on one line, with those that a memory was read from marked among others."""
    start, end = (0, len(said.text)) if said.cited is None else said.cited
    before, words, after = said.text[:start].split(), said.text[start:end], said.text[end:].split()
    if not (before or after):
        return Text(one_line(words, limit))
    line = Text(" ".join([*map(clean, before), ""]))
    line.append("«", style="dim").append(" ".join(clean(words).split()), style="bold").append("»", style="dim")
    line.append(clean(" ".join(after) if said.text[end : end + 1].strip() else " ".join(["", *after])))
    line.truncate(limit, overflow="ellipsis")
    return line


def _is_told(found: Hit) -> bool:
    """Say whether the turns that a memory was read from say all that it does."""
    turns = found.told_in
    said, speakers = " ".join(turn.text for turn in turns), " ".join(turn.speaker for turn in turns)
    return bool(turns) and not found.truncated and says_again(said, speakers, found.text)


def _words(found: Hit) -> Text:
    """Return what a hit says: an event who said it, a memory its turn where that says all of it."""
    if found.kind == "memory" and _is_told(found):
        lines = [_named(turn.speaker).append_text(_marked(turn, WORDS)) for turn in found.told_in]
        return Text("\n").join(lines)
    speaker = found.sources[0].speaker if found.kind == "event" and found.sources else ""
    words = Text(_shortened(found), style="bold" if found.kind == "memory" else "")
    return _named(speaker).append_text(words) if speaker else words


def _named(speaker: str) -> Text:
    return Text().append(f"{one_line(speaker, 40)}: ", style="cyan")


def _shortened(found: Hit) -> str:
    """Return the words of a hit, and where they go on."""
    lines = tidied(clean(found.text)).splitlines()
    if len(lines) <= LINES:
        return "\n".join(lines) + ("…" if found.truncated and CUT.strip() not in found.text else "")
    whole = f"scrubjay {'get' if found.kind == 'memory' else 'grip expand'} {short(found.id)}"
    return "\n".join([*lines[:LINES], f"… {len(lines) - LINES} more lines: {whole}"])


def _about(found: Hit) -> Text:
    """Return the line about a hit: when it was said, what it is, and what is doubted of it.

    Of an event who spoke says how far it is to be trusted.
    """
    now = Millis(time.time_ns() // 1_000_000)
    return dim(
        times.day(found.ts),
        found.type.replace("_", " ") if found.kind == "memory" else "",
        one_line(found.name or "", 60),
        "superseded"
        if found.superseded_by
        else times.over(found.valid_from, found.valid_to, found.ts if found.read_from else None, now),
        f"may be out of date: see {short(found.questioned_by)}" if found.questioned_by else "",
        f"in archive {short(found.archive)}" if found.archive else "",
        "" if found.kind == "event" else _whose(found),
        "" if found.review is None else REVIEWS.get(found.review.partition(" ")[0], ""),
        short(found.id),
    )


def hit(found: Hit, rank: int, *, why: bool = False, note: str = "") -> RenderableType:
    """Return one answer: what it says, when and what it is, and who said so. `note` stands beside it.

    With `why` its score follows, by parts, and its confidence: numbers that compare hits, and no mark for an answer.
    """
    parts: list[RenderableType] = [_hanging(Text(f"{rank:>2}  ", style="bold green").append_text(_words(found)))]
    about = _about(found)
    if note:
        about.append(f"  {note}", style="not dim green")
    parts.append(Padding(Packed(about), (0, 0, 0, 4)))
    is_told = found.kind == "memory" and _is_told(found)
    for line in found.sources:
        if (found.kind == "event" and line.event_id == found.id) or (is_told and line.cited):
            continue
        shown = _other_side(line) if line.beside else _source(line)
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


class _Brief:
    """A hit on two lines of the window at most: the beginning of what it says, and what it is."""

    def __init__(self, found: Hit, rank: int) -> None:
        self._found = found
        self._rank = rank

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        about = _about(self._found)
        words = _words(self._found)
        words = Text(" ").join(words.split())
        words.truncate(
            max(2 * (options.max_width - 4) - about.cell_len - 4, options.max_width - 6), overflow="ellipsis"
        )
        head = Text(f"{self._rank:>2}  ", style="bold green")
        room = options.max_width - 4
        if words.wrap(console, room)[-1].cell_len + 2 + about.cell_len <= room:
            yield _hanging(head.append_text(words).append("  ").append_text(about))
            return
        words.truncate(room, overflow="ellipsis")  # what it is has a line of its own, so that no date is cut in two
        yield _hanging(head.append_text(words))
        yield Padding(Packed(about), (0, 0, 0, 4))


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


def recall(answer: RecallResponse, *, why: bool = False) -> RenderableType:
    """Return the hits, best first."""
    if not answer.hits:
        return Text("nothing found")
    full = answer.hits if why or any(found.neighbours for found in answer.hits) else answer.hits[:FULL]
    first = spaced(hit(found, rank, why=why) for rank, found in enumerate(full, 1))
    rest = [_Brief(found, rank) for rank, found in enumerate(answer.hits[len(full) :], len(full) + 1)]
    return Group(first, Text(), *rest) if rest else first


def recalled(answer: RecallResponse) -> str:
    """Return what is to be said about an answer, beside it."""
    parts = [counted(len(answer.hits), "hit"), f"{answer.elapsed_ms:.0f} ms", MODES.get(answer.mode, answer.mode)]
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
        f"{one_line(answer.model, 60)} read {counted(answer.found, 'hit')}",
        f"{counted(answer.input_tokens + answer.output_tokens, 'token')} in {counted(answer.calls, 'call')}",
        f"{counted(answer.dropped, 'line')} without a citation not shown" if answer.dropped else "",
    ]
    return " · ".join(part for part in [*parts, *answer.notes] if part)
