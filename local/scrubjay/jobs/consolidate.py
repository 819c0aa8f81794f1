"""The jobs that keep the memory small: old detail becomes archives, twins become one, what decayed is put away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import NightPolicy


class _Nightly:
    """Does with `carry_out` what a night asks for; it returns how many memories a run touched."""

    def __init__(self, policy: NightPolicy, *, carry_out: Callable[[], Awaitable[int]]) -> None:
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


class Consolidate(_Nightly):
    """Merges what is there twice, ends what was outdated, and compresses old detail."""

    name = "consolidate"


class Prune(_Nightly):
    """Puts away what decayed and is too little for an archive of its own, under causes of its own."""

    name = "prune"
