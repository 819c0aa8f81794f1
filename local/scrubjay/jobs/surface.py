"""The job that predicts what sessions will need, while they go on; and judges what was told ahead."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import WorkPolicy

log = logging.getLogger(__name__)


class Surface:
    """Keeps predictions up with what is said. `refresh` predicts for the sessions that went on, and says how many."""

    name = "surface"

    def __init__(
        self,
        policy: WorkPolicy,
        *,
        behind: Callable[[], Awaitable[bool]],
        refresh: Callable[[], Awaitable[int]],
    ) -> None:
        self._policy = policy
        self._behind = behind
        self._refresh = refresh

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, for what nobody announced; what is said announces itself."""
        return Trigger(seconds=self._policy.sweep_seconds)

    async def due(self) -> bool:
        """Say whether something was said since it was last predicted. Costs a look-up, however large the store is."""
        return await self._behind()

    async def pending(self) -> int:
        """Return 1 where something was said since it was last predicted."""
        return int(await self._behind())

    async def run(self) -> int:
        """Predict for the sessions that went on. Returns how many those were."""
        began = time.perf_counter()
        sessions = await self._refresh()
        if sessions:
            log.info("predicted sessions=%d ms=%d", sessions, (time.perf_counter() - began) * 1000)
        return sessions
