"""The job that keeps copies of the store of the last nights, beside it.

They are the daemon's own and not the person's: what the person forgets for good is blanked in them
(`scrubjay.service.leftovers`).
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

from scrubjay import destination
from scrubjay.jobs.registry import Trigger
from scrubjay.policy import NightPolicy
from scrubjay.store import Store, half_made, next_nightly_copy, nightly_copies, superfluous
from scrubjay_shared.errors import ScrubjayError, UnavailableError

log = logging.getLogger(__name__)


class Backup:
    """Copies one store. Whoever wants no copies pauses the job."""

    name = "backup"

    def __init__(self, store: Store, policy: NightPolicy, stopping: asyncio.Event) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._copied: int | None = None
        """What the store's last op was when this process copied it."""

    @property
    def trigger(self) -> Trigger:
        """Once a night."""
        return Trigger.nightly(self._policy)

    async def due(self) -> bool:
        """Say whether something was written since the last copy, or the copies are gone."""
        return self._copied != self._store.last_seq or not await asyncio.to_thread(nightly_copies, self._store.path)

    async def pending(self) -> int:
        """Return 0: nothing waits to be done."""
        return 0

    async def run(self) -> Path | None:
        """Make a checked copy, then delete those that hold least. Raises UnavailableError on a full disk.

        A copy that cannot be made, or does not pass its check, costs no earlier one. One during which something was
        forgotten is made again. Returns the copy; None when the daemon ends first.
        """
        for left in await asyncio.to_thread(half_made, self._store.path):
            await asyncio.to_thread(destination.discard, left)
        while not self._stopping.is_set():
            erasures, last = self._store.erasures, self._store.last_seq
            target = await asyncio.to_thread(self._target)
            try:
                size, _ = await self._store.backup(target, force=True)
            except ScrubjayError:
                if erasures == self._store.erasures:
                    raise
                continue  # forgetting deleted it half made
            if erasures != self._store.erasures:
                await asyncio.to_thread(target.unlink, missing_ok=True)
                continue
            self._copied = last
            await asyncio.to_thread(self._drop_others, target)
            log.info("copied the store bytes=%d", size)
            return target
        return None

    def _drop_others(self, newest: Path) -> None:
        """Delete what is beyond the policy's number, but never the copy that was made and checked just now."""
        older = [copy for copy in nightly_copies(self._store.path) if copy != newest]
        for copy in superfluous(self._store.path, older, self._policy.backups - 1):
            copy.unlink(missing_ok=True)

    def _target(self) -> Path:
        """Return where the next copy goes; make its folder. Raises UnavailableError when the disk is too full."""
        path = self._store.path
        size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
        if free < size * self._policy.free_share:
            raise UnavailableError(
                f"the disk has {free // 2**20:,} MiB free, too little for a copy of {size // 2**20:,} MiB",
                hint="make room, or pause this job and use scrubjay backup FILE to another disk",
            )
        return next_nightly_copy(path)
