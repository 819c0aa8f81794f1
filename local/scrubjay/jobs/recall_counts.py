"""How often memories were recalled: counted in memory, and written down by a job, so that a recall writes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import WorkPolicy
from scrubjay.store import Store
from scrubjay_shared.clock import Millis


class RecallCounts:
    """Counts recalls until `run` writes them down."""

    name = "count"

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps: nobody announces a recall."""
        return Trigger(seconds=self._policy.sweep_seconds)

    def __init__(self, store: Store, policy: WorkPolicy) -> None:
        self._store = store
        self._policy = policy
        self._counts: dict[str, tuple[int, Millis]] = {}

    def add(self, memory_ids: Iterable[str], now: Millis) -> None:
        """Count one recall of each memory."""
        for memory_id in memory_ids:
            count, _ = self._counts.get(memory_id, (0, now))
            self._counts[memory_id] = (count + 1, now)

    def discard(self) -> None:
        """Forget what was counted: the store is closed, and nothing is left to write it to."""
        self._counts = {}

    async def due(self) -> bool:
        """Say whether memories were recalled since that was last written down."""
        return bool(self._counts)

    async def pending(self) -> int:
        """Return how many memories were recalled since that was last written down."""
        return len(self._counts)

    async def run(self) -> int:
        """Write how often memories were recalled since the last time. Returns how many memories that were."""
        counts, self._counts = self._counts, {}
        if counts:
            try:
                await self._store.write(lambda tx: tx.accesses.count(counts, log_after_ms=self._policy.count_log_ms))
            except Exception:
                for memory_id, (count, last) in counts.items():
                    more, later = self._counts.get(memory_id, (0, last))
                    self._counts[memory_id] = (count + more, later)
                raise
        return len(counts)
