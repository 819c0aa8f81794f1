"""The job that looks for what other devices forgot: the same words under other ids, in memories and in events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import WorkPolicy
from scrubjay.store import Store


class Sweep:
    """Compares what is here with forgotten words that came from elsewhere. `step` erases what the next rows say of it.

    Only their digests came, so everything must be read once; a page at a time, and from where it was after a crash.
    """

    name = "sweep"

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps; and it is woken when a forget comes."""
        return Trigger(seconds=self._policy.sweep_seconds)

    def __init__(
        self, store: Store, policy: WorkPolicy, stopping: asyncio.Event, step: Callable[[], Awaitable[int | None]]
    ) -> None:
        """`step` returns how many memories and passages it erased, None when it is through."""
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._step = step

    async def due(self) -> bool:
        """Say whether something came that is to be compared."""
        return await self._store.read(lambda q: q.tombstones.unswept()) is not None

    async def pending(self) -> int:
        """Return 1 while something that came is to be compared."""
        return int(await self.due())

    async def run(self) -> int:
        """Compare all. Returns how many memories and passages were erased."""
        erased = 0
        while not self._stopping.is_set() and (done := await self._step()) is not None:
            erased += done
        return erased
