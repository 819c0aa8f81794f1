"""The part of a long text that answers, and what is shown of a turn.

Theory of operation. A text is cut where sentences and lines end. Of all runs of neighbouring pieces that fit, the one
that holds the most of what the question's words weigh, each word once, is taken; among equals the shortest, then the
first. It then grows by whole pieces, by what follows before what precedes, while it still fits: an answer mostly
follows the words that it shares with its question. The time is linear in the text.

Of a turn that has no room whole, lines that say nothing (empty ones, rules, the frame of a table) go first. An agent's
long turn begins with what it is about to do and ends with what came of it: its last words are shown whatever else is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SEARCHED_CHARS = 20_000
"""Of a longer text only the beginning is looked at, as the index does."""

GAP = "\n[…]\n"
"""What stands between a passage and the last words of its turn."""

ENDING_SHARE = 3
"""The last words of an agent's turn have one in so many of its characters: a conclusion is a sentence or two."""

_END = re.compile(r"[.!?]+[\"')\]]*\s+|[。！？]+|\n+")

_SILENT = re.compile(
    r"^[ \t\r!-/:-@\[-`{-~\u2500-\u257f]*(?:\n|\Z)|^[ \t]*\[Request interrupted by user[^\]\n]*\][ \t\r]*(?:\n|\Z)",
    re.MULTILINE,
)
"""A line without a word, in ASCII or a frame, or what a host notes of the person's stopping it."""

_REMARK = re.compile(r"\s*(?:\[[^\[\]\n]{0,80}\]|<[^<>\n]{0,80}>|\([^()\n]{0,80}\))\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Part of a text: `text` is what stands at [start, end) of it, in characters."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """What is shown of a turn. `span` is where the passage stands in the whole, None where nothing was cut.

    `cited` is where in `text` the words stand that were to be marked, None where they are not in it. `ends` says that
    the turn's last words are in it.
    """

    text: str
    span: tuple[int, int] | None = None
    cited: tuple[int, int] | None = None
    ends: bool = True


def says_nothing(text: str) -> bool:
    """Say whether a turn is only a remark in brackets, as hosts note that the person stopped them, or no word at all.

    >>> says_nothing("[Request interrupted by user for tool use]"), says_nothing("<no message>"), says_nothing("[x] ok")
    (True, True, False)
    """
    return _REMARK.fullmatch(text) is not None or not text.strip()


def tidied(text: str) -> str:
    r"""Return a text without the lines that say nothing; the text where it has no other.

    >>> tidied("| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.")
    '| a | b |\n| 1 | 2 |\nDone.'
    """
    return _Said(text).text.rstrip()


def excerpt(
    text: str,
    weights: Mapping[str, float],
    *,
    chars: int,
    cited: tuple[int, int] | None = None,
    concludes: bool = False,
    ending: str = "",
) -> Excerpt:
    """Return at most `chars` characters of a turn: the whole, or its best passage (see `passage`).

    The words at `cited` count as one of the question's. A turn that `concludes` keeps its last words too; where the
    text is only its beginning, they are those of `ending`.
    """
    if len(text) <= chars:
        return Excerpt(text=text, cited=cited)
    said = _Said(text[:SEARCHED_CHARS])
    marked = None if cited is None else (said.at(cited[0]), said.at(cited[1]))
    is_all = len(text) <= SEARCHED_CHARS
    if is_all and len(said.text) <= chars:
        return Excerpt(text=said.text.rstrip(), cited=marked)
    is_all = is_all and not ending
    ending = _ending(ending or text, chars // ENDING_SHARE) if concludes else ""
    part = _passage(said.text, weights, chars - len(ending) - (len(GAP) if ending else 0), marked)
    shown = part.text
    if ending:
        at = said.text.rfind(ending) if is_all else -1
        joins = 0 <= at <= part.end + 1
        shown = said.text[part.start : max(part.end, at + len(ending))].rstrip() if joins else shown + GAP + ending
    if marked is not None:
        low, high = max(marked[0], part.start) - part.start, min(marked[1], part.end) - part.start
        marked = (low, high) if low < high else None
    return Excerpt(
        text=shown,
        span=(said.place(part.start), said.place(part.end - 1) + 1),
        cited=marked,
        ends=bool(ending) or (is_all and not said.text[part.end :].strip()),
    )


class _Said:
    """A text without the lines that say nothing, and where its characters stood."""

    def __init__(self, whole: str) -> None:
        self._tidied: list[int] = []  # where each piece that is kept begins, in the new text
        self._whole: list[int] = []  # and in the old one
        pieces: list[str] = []
        at = length = 0
        for silent in (*_SILENT.finditer(whole), None):
            start = len(whole) if silent is None else silent.start()
            if at < start:
                self._tidied.append(length)
                self._whole.append(at)
                pieces.append(whole[at:start])
                length += start - at
            at = start if silent is None else silent.end()
        self.text = "".join(pieces)
        if not self.text:  # nothing but such lines: then they are what was said
            self._tidied, self._whole, self.text = [0], [0], whole

    def place(self, at: int) -> int:
        """Return where a character of the new text stands in the old one."""
        piece = max(bisect_right(self._tidied, at) - 1, 0)
        return self._whole[piece] + at - self._tidied[piece]

    def at(self, place: int) -> int:
        """Return where a character of the old text stands in the new one, or what is kept after it begins."""
        piece = bisect_right(self._whole, place) - 1
        if piece < 0:
            return 0
        end = self._tidied[piece + 1] if piece + 1 < len(self._tidied) else len(self.text)
        return min(self._tidied[piece] + place - self._whole[piece], end)


def _ending(text: str, chars: int) -> str:
    """Return the last whole sentences or lines of a text that fit, before what it offers to do; nothing if none does.

    Of a last sentence that is too long they are its last words.
    """
    end = _OFFER.sub("", _Said(text[-ENDED_SHARE * chars :]).text.rstrip())
    if len(end) <= chars:
        return end.strip()
    at = len(end) - chars
    begins = next((match.end() for match in _END.finditer(end, at) if match.end() < len(end)), len(end))
    if len(end) - begins < chars // 3:
        begins = end.find(" ", at) + 1 or len(end)
    return end[begins:].strip()


ENDED_SHARE = 4
"""So many times as much of the end of a turn is looked at as its last words may have: an offer stands behind them."""

_OFFER = re.compile(
    r"(?:(?<=[.!?:\n])|\A)[\s*_-]*(?:if you(?:'d| would)? (?:want|like|prefer|need|wish)|let me know|would you like"
    r"|do you want|want me to|should i|shall i|just (?:say|tell me|let me know))\b[^\n]*(?:\n.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
"""What an agent offers at the end of a turn: it says nothing of what came of it."""


def passage(text: str, weights: Mapping[str, float], *, chars: int) -> Passage:
    """Return the best part of a text of at most `chars` characters (1 at least); the whole text where it is no longer.

    `weights` say by token of the question (`scrubjay_shared.text.query_tokens`) what finding it is worth. Where none of
    them stands in the text, its beginning is returned.
    """
    return _passage(text, weights, chars, None)


def _passage(text: str, weights: Mapping[str, float], chars: int, cited: tuple[int, int] | None) -> Passage:
    chars = max(chars, 1)
    if len(text) <= chars:
        return Passage(text=text, start=0, end=len(text))
    searched = text[:SEARCHED_CHARS]
    pieces = _pieces(searched, chars)
    held = _held(searched, pieces, weights)
    if cited is not None:
        for (start, end), words in zip(pieces, held, strict=True):
            if start < cited[1] and cited[0] < end:
                words.add(_CITED)
        weights = {**weights, _CITED: sum(weights.values()) / len(weights) if weights else 1.0}
    first, last = _best_run(pieces, held, weights, chars)
    while True:
        if last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= chars:
            last += 1
        elif first > 0 and pieces[last][1] - pieces[first - 1][0] <= chars:
            first -= 1
        else:
            break
    start, end = pieces[first][0], pieces[last][1]
    if last + 1 < len(pieces) and (space := text.rfind(" ", end + _FEW, start + chars)) > 0:
        end = space  # what is left has room for some words of what follows
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    part = part.strip()
    return Passage(text=part, start=start, end=start + len(part))


_FEW = 40
"""Characters of a sentence that is not told to its end: fewer are a word or two."""

_CITED = ""
"""The token that the cited words are; no text has it."""


def _held(text: str, pieces: Sequence[tuple[int, int]], weights: Mapping[str, float]) -> list[set[str]]:
    """Return which words each piece holds. A word is found by its stem, which most of its forms begin with."""
    held: list[set[str]] = [set() for _ in pieces]
    starts = [start for start, _ in pieces]
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose small one is two characters long: rare, and places would be wrong
        return held
    for token in weights:
        stem = token[:-1] if len(token) > _SHORT and token.endswith("i") else token  # "happi" of "happy"
        inside = not stem[:1].isascii()
        at = lowered.find(stem)
        while at >= 0:
            if inside or at == 0 or not lowered[at - 1].isalnum():
                held[bisect_right(starts, at) - 1].add(token)
            at = lowered.find(stem, at + 1)
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
        if not held[last]:
            continue
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
