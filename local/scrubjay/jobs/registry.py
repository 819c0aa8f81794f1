"""What a background job is."""

from __future__ import annotations

from typing import Protocol


class Job(Protocol):
    """Work that the daemon does by itself. Idempotent: a run that a crash cut off is simply done again."""

    name: str

    async def due(self) -> bool:
        """Say whether there may be something to do. Asked at every interval of an idle store: must cost little."""

    async def pending(self) -> int:
        """Return how much there is to do, for people."""

    async def run(self) -> object:
        """Do what there is to do."""
