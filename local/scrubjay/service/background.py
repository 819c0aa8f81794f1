"""The background jobs, for people: how they are, how they went, and their pause."""

from __future__ import annotations

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.policy import MemoryPolicy
from scrubjay.service.job_costs import JobCosts
from scrubjay.service.paging import page_limit


class Background:
    """The jobs of one scheduler, with what they would cost."""

    def __init__(self, scheduler: Scheduler, policy: MemoryPolicy, *, costs: JobCosts) -> None:
        self._policy = policy
        self._scheduler = scheduler
        self._costs = costs

    async def jobs(self, _: Caller, _request: api.Nothing) -> api.JobsResponse:
        """Return how each job is, and what a run would cost where it asks a Writer."""
        return api.JobsResponse(jobs=await self._costs.told(await self._scheduler.jobs()))

    async def run(self, _: Caller, request: api.JobRequest) -> api.JobRun:
        """Run a job now and return how that went; its failure is in the answer.

        Raises NotFoundError, and ConflictError for a job that has no part now.
        """
        ran = await self._scheduler.run(request.name)
        return api.JobRun(
            job=ran.job,
            started=ran.started,
            ms=ran.ms,
            error=ran.error,
            waited_ms=ran.waited_ms,
            problem=ran.problem,
        )

    async def pause(self, _: Caller, request: api.JobRequest) -> api.JobsResponse:
        """Leave a job alone until it is resumed. Raises NotFoundError."""
        await self._scheduler.pause(request.name)
        return api.JobsResponse(jobs=await self._scheduler.jobs())

    async def resume(self, _: Caller, request: api.JobRequest) -> api.JobsResponse:
        """Have a paused job look for work again. Raises NotFoundError."""
        await self._scheduler.resume(request.name)
        return api.JobsResponse(jobs=await self._scheduler.jobs())

    async def history(self, _: Caller, request: api.JobRunsRequest) -> api.JobRunsResponse:
        """Return the last runs of one job or of all, newest first. Raises NotFoundError."""
        found = await self._scheduler.history(request.name, page_limit(self._policy, request.limit))
        return api.JobRunsResponse(
            runs=tuple(api.JobRun(job=ran.job, started=ran.started, ms=ran.ms, error=ran.error) for ran in found)
        )
