"""What a run of a job would cost, before it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from scrubjay import api
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Store
from scrubjay.writer.budget import Asked
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.ledger import DAY_MS, local_day
from scrubjay_shared.clock import Millis


class JobCosts:
    """The estimates of one store's jobs: `asks` has what each would ask, by its name, of those that ask a Writer."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        writer: BudgetedWriter,
        asks: Mapping[str, Callable[[], Awaitable[Asked]]],
    ) -> None:
        self._store = store
        self._policy = policy
        self._writer = writer
        self._asks = asks

    async def told(self, jobs: tuple[api.Job, ...]) -> tuple[api.Job, ...]:
        """Return the jobs, each that asks a Writer with what a run would cost now."""
        if not self._writer.is_on:
            return jobs
        spent, caps = await self._writer.spent(), self._writer.caps
        found = []
        for job in jobs:
            ask = self._asks.get(job.name)
            if ask is None:
                found.append(job)
                continue
            asked = await ask()
            estimate = await self._writer.estimate(asked)
            cost = api.JobCost(
                calls=asked.calls,
                input_tokens=estimate.input_tokens,
                output_tokens=estimate.output_tokens,
                left_today=max(0, caps.daily - spent.daily),
                left_this_month=max(0, caps.monthly - spent.monthly),
                fits=estimate.fits,
                whole=asked.whole,
                about=await self._about(job.name, asked.calls),
            )
            found.append(replace(job, cost=cost))
        return tuple(found)

    async def _about(self, job: str, calls: int) -> int | None:
        """Return what so many calls of a job cost by the average of its last days; None where it made none."""
        now = self._store.clock()
        since = local_day(Millis(now - (self._policy.work.activity_days - 1) * DAY_MS))
        mean = await self._store.read(lambda q: q.writer_calls.mean(job, since=since))
        return None if mean is None else round(mean * calls)
