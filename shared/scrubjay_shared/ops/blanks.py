"""The erased passages of an event's text."""

from __future__ import annotations

from collections.abc import Collection

BLANK_CHARACTER = "░"
"""Stands for each erased character, so that the spans of neighbouring grips keep their places."""


def blanked(text: str, spans: Collection[tuple[int, int]]) -> str:
    """Return a text of the same length with the characters of some spans replaced by `BLANK_CHARACTER`."""
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        low, high = max(at, start), min(end, len(text))
        if low < high:
            parts += (text[at:low], BLANK_CHARACTER * (high - low))
            at = high
    parts.append(text[at:])
    return "".join(parts)
