"""A JSON array that is too large to be read at once, cut between its elements. Pure, and reads no value."""

from __future__ import annotations

import re
from collections.abc import Iterator

OPENING, CLOSING, ENDING = (b"[", b"{"), (b"]", b"}"), (b",", b"]")
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def is_array(data: bytes) -> bool:
    """Say whether a file begins as a JSON array does."""
    return data[:100].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def pieces(data: bytes, most: int) -> Iterator[bytes]:
    """Yield arrays of at most about `most` bytes that together hold the elements of one, in order.

    An element that is larger comes alone. What is no whole JSON array is yielded as it is: reading it will say so.
    """
    found = spans(data)
    if found is None:
        yield data
        return
    held: list[tuple[int, int]] = []
    size = 0
    for start, end in found:
        if held and size + end - start > most:
            yield _array(data, held)
            held, size = [], 0
        held.append((start, end))
        size += end - start
    if held:
        yield _array(data, held)


def spans(data: bytes) -> list[tuple[int, int]] | None:
    """Return where the elements of an array begin and end; None for what is no whole array."""
    depth = start = 0
    found: list[tuple[int, int]] = []
    for token in TOKEN.finditer(data):
        mark = token[0]
        depth += mark in OPENING
        if depth == 1 and mark == b"[" and not start:
            start = token.end()
        elif depth == 1 and mark in ENDING:
            if data[start : token.start()].strip():
                found.append((start, token.start()))
            start = token.end()
        depth -= mark in CLOSING
        if depth == 0:
            return found if mark == b"]" and start else None
    return None


def _array(data: bytes, found: list[tuple[int, int]]) -> bytes:
    return b"[" + b",".join(data[start:end] for start, end in found) + b"]"
