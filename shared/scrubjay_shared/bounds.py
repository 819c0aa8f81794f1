"""Bounds of what devices write, for readers that open nothing: they need no cryptography and no compression. Pure."""

from __future__ import annotations

LIMIT = 1 << 63
"""Places are below this: databases count in 64 bits with a sign."""
MAX_ENTRIES = 100_000
"""The ops of one object: each costs a hundred bytes of memory, even where two bytes say that it was erased."""
