"""When and where a write happened, and how that stands in a body."""

from __future__ import annotations

from typing import Any

Stamp = tuple[int, str]
"""When and where a write happened: (hlc, device). Greater is later; ties between devices break by device."""

MAX_HLC = (1 << 63) - (1 << 32)
"""The greatest stamp an op may have. SQLite counts to 2^63; what is left is room for edits that stamp above it."""


def wire_of(stamp: Stamp) -> list[Any]:
    """Return a stamp as it stands in a body."""
    return [stamp[0], bytes.fromhex(stamp[1])]


def stamp_of(wire: list[Any]) -> Stamp:
    """Return the stamp that stands in a body."""
    return wire[0], wire[1].hex()
