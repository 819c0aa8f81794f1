"""Looking through a text a window at a time, so that other threads get their turn."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What is looked for first, and how far one call may go.

WINDOW = 65_536  # characters that one call into `re` walks over: it holds the interpreter's lock all the while
FIND_WINDOW = 16 * WINDOW  # of `str.find`, which is so much faster


def lower_case(text: str) -> str:
    """Return the text in lower case, every character where it was."""
    if len(text) <= WINDOW and text.isascii():
        return text.lower()
    pieces = (text[at : at + WINDOW] for at in range(0, len(text), WINDOW))
    # U+0130 alone changes length in lower case, and would shift all offsets.
    return "".join([piece.replace("İ", "i").lower() for piece in pieces])


def find(text: str, needle: str, start: int = 0) -> int:
    """Do what `text.find(needle, start)` does, a window at a time."""
    while start < len(text):
        at = text.find(needle, start, start + FIND_WINDOW + len(needle) - 1)
        if at >= 0:
            return at
        start += FIND_WINDOW
    return -1


def holds(text: str, needle: str) -> bool:
    """Say whether `needle` stands in the text."""
    return needle in text if len(text) <= FIND_WINDOW else find(text, needle) >= 0


def scan(
    pattern: re.Pattern[str], text: str, reach: int, start: int = 0, end: int | None = None
) -> Iterator[re.Match[str]]:
    """Do what `pattern.finditer` does, a window at a time. No match, with all it looks ahead to, exceeds `reach`."""
    end = len(text) if end is None else end
    while True:
        edge = start + WINDOW
        for match in pattern.finditer(text, start, min(end, edge + reach)):
            if match.start() >= edge:
                break
            yield match
            start = match.end()
        if edge >= end:
            return
        start = max(start, edge)


def long_runs(
    text: str, least: re.Pattern[str], more: re.Pattern[str], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Spans of unbroken runs: of at least what `least` matches, going on as long as `more` does."""
    while start < end:
        edge = min(end, start + WINDOW)
        first = least.search(text, start, min(end, edge + 64))
        if first:
            start = end_of(more, text, first.end(), end)
            yield first.start(), start
        else:
            start = edge


def end_of(run: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Where the run that goes on at `at` ends; `run` matches any number of its characters."""
    while at < end:
        match = run.match(text, at, min(end, at + WINDOW))
        if not match or match.end() == at:
            return at
        at = match.end()
    return at


def hits(text: str, needle: str) -> Iterator[int]:
    """Every place where `needle` stands."""
    at = find(text, needle)
    while at >= 0:
        yield at
        at = find(text, needle, at + 1)
