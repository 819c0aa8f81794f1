"""What the service asks of a store of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

Observed = Callable[[str, float, int, bool], None]
"""Told of every request to the store: its kind, its seconds, the bytes of its bodies, and whether it held."""


class BodyStore(Protocol):
    """Bodies by their keys.

    Every method raises UnavailableError when the store does not do it in time, retries included.
    """

    async def put(self, key: str, body: bytes) -> None:
        """Keep a body; once this returns, it is durable."""

    async def get(self, key: str) -> bytes:
        """Return a body. Raises NotFoundError when the store has none of that key."""

    def fetch(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return bodies in the order of their keys, None for those that the store does not have.

        For a thread that may wait: it does not return before all are there.
        """

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete bodies; those that are not there count as deleted."""
