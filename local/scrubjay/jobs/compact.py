"""The job that compacts: sessions whose hosts said that they compacted their context get an archive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import WorkPolicy
from scrubjay.store import Store


class Compact:
    """Compacts what hosts asked for. `compact` does one session, and returns how many archives it made."""

    name = "compact"

    def __init__(
        self,
        store: Store,
        policy: WorkPolicy,
        stopping: asyncio.Event,
        *,
        compact: Callable[[str], Awaitable[int]],
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._compact = compact
        self._done = 0  # the arrival number of the last event of type compaction that was looked at
        self._looked = -1  # the store's commits at the last look

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, which find what a crash left."""
        return Trigger(seconds=self._policy.sweep_seconds)

    async def due(self) -> bool:
        """Say whether sessions may have to be compacted."""
        return await self.pending() > 0

    async def pending(self) -> int:
        """Return how many sessions have compaction events that were not looked at yet."""
        if self._looked == self._store.commits:
            return 0
        commits = self._store.commits
        _, sessions = await self._store.read(lambda q: q.compactions.arrived(self._done))
        if not sessions:
            self._looked = commits
        return len(sessions)

    async def run(self) -> int:
        """Compact the sessions that hosts asked for. Returns how many archives are new."""
        last, sessions = await self._store.read(lambda q: q.compactions.arrived(self._done))
        made = 0
        for session_id in sessions:
            if self._stopping.is_set():
                return made
            made += await self._compact(session_id)
        self._done = max(self._done, last)
        return made
