"""The job that reads the spool: what agents reported while the daemon was away or busy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from scrubjay import spool
from scrubjay.jobs.registry import Trigger
from scrubjay.policy import WorkPolicy


class Spool:
    """Drains the spool of a folder with `drain`."""

    name = "spool"

    def __init__(self, folder: Path, policy: WorkPolicy, drain: Callable[[], Awaitable[int]]) -> None:
        self._folder = folder
        self._policy = policy
        self._drain = drain

    @property
    def trigger(self) -> Trigger:
        """At the start, and every few seconds: nobody announces a file."""
        return Trigger(seconds=self._policy.spool_seconds, gathers=False)

    async def due(self) -> bool:
        """Say whether a file waits."""
        return spool.has_waiting(self._folder)

    async def pending(self) -> int:
        """Return how many files wait."""
        return len(await asyncio.to_thread(spool.waiting, self._folder))

    async def run(self) -> int:
        """Store what waits. Returns how much that was."""
        return await self._drain()
