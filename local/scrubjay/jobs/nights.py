"""When a job's work of the night begins: it is time for it, and the moment is good. Remembers why it waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from scrubjay.jobs import conditions
from scrubjay.jobs.conditions import Conditions
from scrubjay.jobs.registry import Job
from scrubjay.policy import NightPolicy
from scrubjay.store import JobStatistics
from scrubjay_shared.clock import Millis

log = logging.getLogger(__name__)


class Nights:
    """Says of each job's work whether it may begin now. Of jobs that are not of the night, always."""

    def __init__(self, policy: NightPolicy, read_conditions: Callable[[], Conditions]) -> None:
        """`read_conditions` says how the machine is; it is called in a thread."""
        self._policy = policy
        self._read_conditions = read_conditions
        self._waiting: dict[str, tuple[str, float]] = {}

    def reason(self, name: str) -> str | None:
        """Return why a job waits, None when nothing keeps it."""
        found = self._waiting.get(name)
        return None if found is None else found[0]

    def begun(self, name: str) -> None:
        """Note that a job runs."""
        self._waiting.pop(name, None)

    def is_time(self, job: Job, gone: JobStatistics | None) -> bool:
        """Say whether a night has begun in which a job has not run yet. `gone` is how it has gone so far."""
        if job.trigger.every_days is None:
            return True
        now = Millis(time.time_ns() // 1_000_000)
        return conditions.is_due(
            None if gone is None else gone.last_start,
            failed=gone is not None and gone.last_error is not None,
            every_days=job.trigger.every_days,
            now=now,
            utc_offset=conditions.local_offset(now),
            policy=self._policy,
        )

    async def must_wait(self, job: Job) -> bool:
        """Say whether a job waits for a better moment, and remember why."""
        if job.trigger.every_days is None:
            return False
        began = time.monotonic()
        _, since = self._waiting.get(job.name, ("", began))
        found = await asyncio.to_thread(self._read_conditions)
        reason = conditions.reason_to_wait(found, began - since, self._policy)
        if reason is None:
            return False
        self._waiting[job.name] = (reason, since)
        log.debug("job waits name=%s", job.name)
        return True
