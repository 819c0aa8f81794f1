"""The job that consolidates: each night old detail becomes archives, and what is there twice becomes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import NightPolicy
from scrubjay.store import Store


class Consolidate:
    """Consolidates with `carry_out`, which returns how many memories a run touched."""

    name = "consolidate"

    def __init__(self, store: Store, policy: NightPolicy, *, carry_out: Callable[[], Awaitable[int]]) -> None:
        self._store = store
        self._policy = policy
        self._carry_out = carry_out

    @property
    def trigger(self) -> Trigger:
        """Once a night: it reads all that is current, and changes what somebody may be reading by day."""
        return Trigger.nightly(self._policy)

    async def due(self) -> bool:
        """Say that there may be something to do: memories grow old without anybody writing anything."""
        return True

    async def pending(self) -> int:
        """Return 0: nothing waits to be done."""
        return 0

    async def run(self) -> int:
        """Carry out a run. Returns how many memories it touched."""
        return await self._carry_out()
