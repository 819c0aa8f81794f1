"""The job that keeps plain files and store in step: people and agents edit either."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sized

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import VaultPolicy


class Vault:
    """Looks at the files of vaults, and has those merged that changed. It runs only where there is a vault."""

    name = "vault"

    def __init__(
        self, policy: VaultPolicy, changed: Callable[[], Awaitable[Sized]], follow: Callable[[], Awaitable[int]]
    ) -> None:
        self._policy = policy
        self._changed = changed
        self._follow = follow

    @property
    def trigger(self) -> Trigger:
        """Twice a second: whoever saves a file asks for it soon after."""
        return Trigger(seconds=self._policy.look_seconds)

    async def due(self) -> bool:
        """Say whether a file or a memory that stands in one changed. Costs a call of `stat` for each file."""
        return bool(len(await self._changed()))

    async def pending(self) -> int:
        """Return how many files are to be merged."""
        return len(await self._changed())

    async def run(self) -> int:
        """Merge what changed. Returns how many memories were written."""
        return await self._follow()
