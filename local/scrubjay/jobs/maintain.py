"""The job that looks after the store's file, the saved index and idle models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from scrubjay.jobs.registry import Trigger
from scrubjay.models.runtime import Models
from scrubjay.policy import WorkPolicy
from scrubjay.store import Store, Transaction

log = logging.getLogger(__name__)


class Maintain:
    """Keeps the file small and quick, and the process too."""

    name = "maintain"

    def __init__(
        self,
        store: Store,
        models: Models,
        policy: WorkPolicy,
        stopping: asyncio.Event,
        *,
        blank_copies: Callable[[], Awaitable[object]],
        save_index: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._policy = policy
        self._models = models
        self._stopping = stopping
        self._blank_copies = blank_copies
        self._save_index = save_index

    @property
    def trigger(self) -> Trigger:
        """Once an hour, and not at the start, when others are busy."""
        return Trigger(seconds=self._policy.maintain_seconds, first_seconds=self._policy.maintain_seconds)

    async def due(self) -> bool:
        """Say that there is always something to look after, at the pace of the schedule."""
        return True

    async def pending(self) -> int:
        """Return 1: there is always something to look after, at the pace of the schedule."""
        return 1

    async def run(self) -> None:
        """Let an idle model go, erase what edits replaced, merge and shrink the store's file, save the index."""
        await self._models.unload_idle()
        while await self._store.write(lambda tx: tx.superseded.sweep()) and not self._stopping.is_set():
            pass
        await self._store.write(Transaction.tidy)
        if given := await self._store.shrink(self._stopping.is_set):
            log.info("gave back pages=%d", given)
        await self._store.checkpoint(truncate=True)
        await self._blank_copies()  # what a crash left to do
        await self._save_index()
