"""Text cut into the sentences that somebody said, with their spans. Code, logs, quotes and injected blocks are not said.

A line is read as one of: a fence or tag that opens or closes a block, a line of something other than prose, a list item,
or prose. Prose lines run on into each other only where a hard wrap is evident. Every pattern is anchored or bounded, so
that time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
ENDING = re.compile(r"[.!?…。！？]+[\"'”’)\]*_]*(?=\s|$)|[。！？]|\s?(?::\)|:D|;\))(?=\s|$)")
ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Mt|Jr|Sr|vs|e\.g|i\.e|etc|cf|approx|No|Inc|Ltd|Co|Fig|ca|dept|est|"
    r"[A-HJ-Z])|\b[A-Za-z]\.[A-Za-z])\.$"
)
LETTERS = re.compile(r"[^\W\d_]")
PROSE_SHARE = 0.6
"""Letters per visible character below which a line is not prose. English prose has about 0.95, shell output about 0.5."""

WRAP_COLUMN = 60
"""A line shorter than this was ended by its writer: editors wrap at 70 to 100 columns."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text[start:end]` of the text it was cut from, without outer white space. `item`: it stands in a list."""

    start: int
    end: int
    item: bool


def sentences(text: str) -> Iterator[Sentence]:
    """Yield what was said, in order."""
    for start, end, item in _paragraphs(text):
        yield from _cut(text, start, end, item=item)


def _paragraphs(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the spans of prose paragraphs and list items."""
    fence = closing = ""
    begin = finish = -1
    item = False
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        bare = line.strip()
        skip = False
        if fence:
            skip, fence = True, "" if bare.startswith(fence) else fence
        elif closing:
            skip, closing = True, "" if closing in line else closing
        elif mark := FENCE.match(line):
            skip, fence = True, mark[1] if bare.count(mark[1]) == 1 else ""
        elif tag := BLOCK_OPEN.match(line):
            skip, closing = True, f"</{tag[1]}>" if f"</{tag[1]}>" not in line else ""
        if skip or not bare or not _is_prose(line, bare):
            if begin >= 0:
                yield begin, finish, item
            begin = -1
            continue
        mark = LIST_MARK.match(line)
        if begin >= 0 and (mark or not _runs_on(text[begin:finish][-200:], bare, finish - begin)):
            yield begin, finish, item
            begin = -1
        if begin < 0:
            begin, item = start + (mark.end() if mark else 0), mark is not None
        finish = start + len(line.rstrip())
    if begin >= 0:
        yield begin, finish, item


def _is_prose(line: str, bare: str) -> bool:
    if NOT_PROSE.match(line) or (INDENTED_CODE.match(line) and not LIST_MARK.match(line)):
        return False
    visible = len(bare) - bare.count(" ")
    return len(LETTERS.findall(bare)) >= PROSE_SHARE * visible


def _runs_on(before: str, line: str, length: int) -> bool:
    """Say whether a line goes on with the paragraph `before`: hard-wrapped text does, a new thought does not."""
    last = before.rsplit("\n", 1)[-1]
    return (len(last) >= WRAP_COLUMN or length >= WRAP_COLUMN > 0 and "\n" in before) and not last.rstrip().endswith(
        (".", "!", "?", ":")
    )


def _cut(text: str, start: int, end: int, *, item: bool) -> Iterator[Sentence]:
    begin = start
    for stop in ENDING.finditer(text, start, end):
        upto = stop.end()
        if text[stop.start() : upto] == "." and ABBREVIATION.search(text, max(begin, upto - 12), upto):
            continue
        if (sentence := _trimmed(text, begin, upto, item=item)) is not None:
            yield sentence
        begin = upto
    if (sentence := _trimmed(text, begin, end, item=item)) is not None:
        yield sentence


def _trimmed(text: str, start: int, end: int, *, item: bool) -> Sentence | None:
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    right = end - (len(piece) - len(piece.rstrip()))
    return Sentence(left, right, item) if left < right else None
