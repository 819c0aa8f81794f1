"""The passage of a long text that answers: its right sentences with a little around them.

Theory of operation. A text is cut where sentences and lines end. Of all runs of neighbouring pieces that fit, the one
that holds the most of what the question's words weigh, each word once, is taken; among equals the shortest, then the
first. It then grows by whole pieces, by what follows before what precedes, while it still fits: an answer mostly
follows the words that it shares with its question. The time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SEARCHED_CHARS = 20_000
"""Of a longer text only the beginning is looked at, as the index does."""

_END = re.compile(r"[.!?]+[\"')\]]*\s+|[。！？]+|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Part of a text: `text` is what stands at [start, end) of it, in characters."""

    text: str
    start: int
    end: int


def passage(text: str, weights: Mapping[str, float], *, chars: int) -> Passage:
    """Return the best part of a text of at most `chars` characters (1 at least); the whole text where it is no longer.

    `weights` say by token of the question (`scrubjay_shared.text.query_tokens`) what finding it is worth. Where none of
    them stands in the text, its beginning is returned.
    """
    chars = max(chars, 1)
    if len(text) <= chars:
        return Passage(text=text, start=0, end=len(text))
    searched = text[:SEARCHED_CHARS]
    pieces = _pieces(searched, chars)
    first, last = _best_run(pieces, _held(searched, pieces, weights), weights, chars)
    while True:
        if last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= chars:
            last += 1
        elif first > 0 and pieces[last][1] - pieces[first - 1][0] <= chars:
            first -= 1
        else:
            break
    start, end = pieces[first][0], pieces[last][1]
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    part = part.strip()
    return Passage(text=part, start=start, end=start + len(part))


def _held(text: str, pieces: Sequence[tuple[int, int]], weights: Mapping[str, float]) -> list[set[str]]:
    """Return which words each piece holds. A word is found by its stem, which most of its forms begin with."""
    held: list[set[str]] = [set() for _ in pieces]
    starts = [start for start, _ in pieces]
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose small one is two characters long: rare, and places would be wrong
        return held
    for token in weights:
        stem = token[:-1] if len(token) > _SHORT and token.endswith("i") else token  # "happi" of "happy"
        before = r"(?<![^\W_])" if stem[:1].isascii() else ""
        for found in re.finditer(before + re.escape(stem), lowered):
            held[bisect_right(starts, found.start()) - 1].add(token)
    return held


_SHORT = 3


def _best_run(
    pieces: Sequence[tuple[int, int]], held: Sequence[set[str]], weights: Mapping[str, float], chars: int
) -> tuple[int, int]:
    """Return the first and the last piece of the run that holds the most."""
    best, chosen = (0.0, 0), (0, 0)
    counts: Counter[str] = Counter()
    first = 0
    for last, (_, end) in enumerate(pieces):
        counts.update(held[last])
        # leave what does not fit any more, and what the rest of the run holds too
        while first < last and (end - pieces[first][0] > chars or all(counts[word] > 1 for word in held[first])):
            counts.subtract(held[first])
            first += 1
        worth = round(sum(weights[word] for word, count in counts.items() if count > 0), 6)
        if worth > 0 and (worth, pieces[first][0] - end) > best:
            best, chosen = (worth, pieces[first][0] - end), (first, last)
    return chosen


def _pieces(text: str, chars: int) -> list[tuple[int, int]]:
    """Return where sentences and lines begin and end; one that is too long is cut at words."""
    found: list[tuple[int, int]] = []
    start = 0
    for end in [match.end() for match in _END.finditer(text)] + [len(text)]:
        while end - start > chars:
            space = text.rfind(" ", start + chars // 2, start + chars)
            cut = start + chars if space < 0 else space + 1
            found.append((start, cut))
            start = cut
        if end > start:
            found.append((start, end))
        start = end
    return found
