"""Where a page of rows ends."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import sqlite


def within(places: Sequence[sqlite.Row], limit: int, chars: int) -> list[tuple[int, int, int]]:
    """Return the first rows (…, …, length) of a page: at most `limit`, at most `chars` together, one at least."""
    shown: list[tuple[int, int, int]] = []
    for at, n, length in places[:limit]:
        chars -= length
        if chars < 0 and shown:
            break
        shown.append((at, n, length))
    return shown
