"""Text cut into the sentences that somebody said, with their spans. Code, logs, quotes and tagged blocks are not said.

A line is read as one of: part of a fenced or tagged block, something other than prose, a list item, or prose. Prose
lines run on into each other only where a hard wrap is evident. Every pattern is anchored or bounded, so that time is
linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
BLOCK_OPEN = re.compile(r"\s*<([A-Za-z][\w:-]{0,60})(?:\s[^<>]{0,300})?>")
LIST_MARK = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
NOT_PROSE = re.compile(
    r"\s*(?:>|#|\||\$ |%|@@|\+\+\+|---|///|//|/\*|\*/|<|\{|\}|\[(?!\s*\w+ \w+)|\]|Traceback\b|File \"|at \S+\(|"
    r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d|(?:\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\]?\b)|"
    r"(?:def|class|import|from \S+ import|return|const|let \w+ =|var|function|public|private|SELECT|"
    r"INSERT|UPDATE)\b.*[:;{(=,]\s*$)"
)
INDENTED_CODE = re.compile(r"(?: {4,}|\t)\S")
ENDING = re.compile(r"[.!?…。！？]{1,9}[\"'”’)\]*_]{0,4}(?=\s|$)|[。！？]|\s?(?::\)|:D|;\))(?=\s|$)")
ABBREVIATION = re.compile(
    r"(?:\b(?:Ms|Mt|No|Co|Fig|ca|dept|est|(?i:mr|mrs|dr|prof|st|jr|sr|vs|e\.g|i\.e|etc|cf|approx|inc|ltd)|"
    r"[A-HJ-Z])|\b[A-Za-z]\.[A-Za-z]|(?<!\d)(?<!\d )(?<!\bin )\bms)\.$"
)
"""Of short words that are words too ("no.", "in ms.") only those that are written as a title or before a name."""
RANGE = re.compile(r"(?s)(?:.?\d|\d )\s?(?:\.{2,3}|…) ?[+-]?\d")
"""From one number to another: "0.0 ... 10.0" ends no sentence."""

ASIDE_CHARS = 120
"""Characters of parentheses in which a stop ends no sentence. What is longer are sentences of their own."""

SMILEY_EYES = ":;"
LETTERS = re.compile(r"[^\W\d_]")
PROSE_SHARE = 0.6
"""Letters per visible character below which a line is not prose: English has about 0.95, shell output about 0.5."""

WRAP_COLUMN = 60
"""A line shorter than this was ended by its writer: editors wrap at 70 to 100 columns."""


WINDOW = 200
"""Characters that are looked back for the length of the last line: longer than any editor wraps."""

MAX_UNCLOSED = 32
"""Kinds of tags without an end that are looked up in the rest of the text: bounds the time on hostile text."""


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` of the text it was cut from."""

    start: int
    end: int


def sentences(text: str, within: Sequence[Span] | None = None) -> Iterator[Span]:
    """Yield what was said, in order, without outer white space; within the given spans, None: in all of the text."""
    for span in (Span(0, len(text)),) if within is None else within:
        for start, end in _paragraphs(text[span.start : span.end]):
            yield from _cut(text, span.start + start, span.start + end)


class Blocks:
    """Which lines lie inside a fence, or inside a tag that is closed further on. Lines come in order.

    `own` are the tags that hold what was said.
    """

    def __init__(self, text: str, own: Collection[str] = ()) -> None:
        self._own = own
        self._text = text
        self._fence = ""
        self._until = 0
        self._unclosed: set[str] = set()

    def holds(self, line: str, start: int) -> bool:
        """Say whether a line, which begins at `start`, is part of a block; its first and last line are."""
        if self._fence:
            self._fence = "" if line.strip().startswith(self._fence) else self._fence
            return True
        if start < self._until:
            return True
        if mark := FENCE.match(line):
            self._fence = mark[1] if line.count(mark[1]) == 1 else ""
            return True
        tag = BLOCK_OPEN.match(line)
        if tag is None or tag[1] in self._own or tag[1] in self._unclosed or len(self._unclosed) >= MAX_UNCLOSED:
            return False
        closed = self._text.find(f"</{tag[1]}>", start)
        if closed < 0:
            self._unclosed.add(tag[1])
            return False
        self._until = closed
        return True


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of prose paragraphs and list items."""
    blocks = Blocks(text)
    begin = finish = -1
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        mark = LIST_MARK.match(line)
        told = not blocks.holds(line, start) and _is_prose(line)
        if begin >= 0 and not (told and mark is None and _runs_on(text[max(begin, finish - WINDOW) : finish])):
            yield begin, finish
            begin = -1
        if told:
            begin = begin if begin >= 0 else start + (mark.end() if mark else 0)
            finish = start + len(line.rstrip())
    if begin >= 0:
        yield begin, finish


def _is_prose(line: str) -> bool:
    bare = line.strip()
    if not bare or NOT_PROSE.match(line) or (INDENTED_CODE.match(line) and not LIST_MARK.match(line)):
        return False
    visible = len(bare) - bare.count(" ")
    return len(LETTERS.findall(bare)) >= PROSE_SHARE * visible


def _runs_on(before: str) -> bool:
    """Say whether the line after `before` goes on with it: a hard-wrapped line is long and ends without a stop."""
    last = before.rsplit("\n", 1)[-1]
    return len(last) >= WRAP_COLUMN and not last.endswith((".", "!", "?", ":"))


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    begin = start
    for stop in ENDING.finditer(text, start, end):
        upto = stop.end()
        if text[stop.start() : upto] == "." and ABBREVIATION.search(text, max(begin, upto - 12), upto):
            continue
        if RANGE.match(text, max(begin, stop.start() - 2), min(end, upto + 4)) or _is_aside(text, begin, upto, end):
            continue
        if (sentence := _trimmed(text, begin, upto)) is not None:
            yield sentence
        begin = upto
    if (sentence := _trimmed(text, begin, end)) is not None:
        yield sentence


def _is_aside(text: str, begin: int, at: int, end: int) -> bool:
    """Say whether a stop before `at` stands in parentheses that its sentence, from `begin`, opened and will close."""
    opened = text.rfind("(", max(begin + 1, at - ASIDE_CHARS), at)
    if opened < 0 or text[opened - 1] in SMILEY_EYES or text.rfind(")", opened, at) >= 0:
        return False
    closed = text.find(")", at, min(end, opened + ASIDE_CHARS))
    return closed >= 0 and text[closed - 1] not in SMILEY_EYES


def _trimmed(text: str, start: int, end: int) -> Span | None:
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    right = end - (len(piece) - len(piece.rstrip()))
    return Span(left, right) if left < right else None
