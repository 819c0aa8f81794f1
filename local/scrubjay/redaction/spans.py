"""Where credentials stand: spans in order, merged, and the markers that replace them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scrubjay.redaction.rules import KINDS
from scrubjay.redaction.windows import WINDOW, holds, scan

# ---------------------------------------------------------------------------------------------------- credentials


_PlainSpan = tuple[int, int, int, str]  # a Span without names: the garbage collector need not walk over millions


class Span(NamedTuple):
    """A credential's place in the text."""

    start: int
    end: int
    rank: int  # 0 names the issuer, 1 the key it was assigned to, 2 only that it looks random
    kind: str


MARKER = re.compile(r"\[REDACTED:(?:" + "|".join(sorted(KINDS, key=len, reverse=True)) + r")\]")


def marker(kind: str) -> str:
    """Return what stands in place of a credential."""
    return f"[REDACTED:{kind}]"


def _in_order(spans: Iterable[Span], text: str) -> Iterator[_PlainSpan]:
    """Sort by start, a window of the text at a time: sorting half a million holds the interpreter's lock too long."""
    by_window: dict[int, list[_PlainSpan]] = {}
    for start, end, rank, kind in spans:
        escape = _ESCAPE.match(text, start) if text[start - 1 : start] == "\\" else None
        if escape and escape.end() < end:
            start = escape.end()  # noqa: PLW2901 - behind the n of a line break in JSON: JSON must stay JSON
        by_window.setdefault(start // WINDOW, []).append((start, end, rank, kind))
    for window in sorted(by_window):
        yield from sorted(by_window.pop(window))


def merged(spans: Iterable[Span], text: str) -> list[_PlainSpan]:
    """Disjoint spans in order; those that only touch a marker of an earlier pass are gone."""
    result: list[_PlainSpan] = []
    for span in _in_order(spans, text):
        if result and span[0] < result[-1][1]:
            start, end, rank, kind = result[-1]
            best = (rank, kind) if rank <= span[2] else span[2:]
            result[-1] = (start, max(end, span[1]), *best)
        else:
            result.append(span)
    if not result or not holds(text, "[REDACTED:"):
        return result
    ends = {marker.start(): marker.end() for marker in scan(MARKER, text, _MARKER_CHARS)}
    starts = [*ends]
    return [span for span in result if not _is_within(span, starts, ends)]


_MARKER_CHARS = 64


def _is_within(span: _PlainSpan, starts: list[int], ends: dict[int, int]) -> bool:
    at = bisect_right(starts, span[0]) - 1
    return at >= 0 and span[1] <= ends[starts[at]]


_ESCAPE = re.compile(r"(?<=\\)(?:[nrtbf]|u[0-9a-fA-F]{4})")
