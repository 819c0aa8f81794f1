"""When background work runs: APScheduler jobs, each idempotent, leased in the store, and visible in `status`.

A job is told of work (`Scheduler.wake`) and then runs at once; besides, it looks for work at intervals, which is how
what a crash left behind is found. Looking costs the same whatever the store holds; only a job that has something to do
takes its lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from scrubjay import api
from scrubjay.jobs.registry import Job
from scrubjay.policy import WorkPolicy
from scrubjay.store import Store
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)

# APScheduler logs every run at INFO; ours say what was done.
logging.getLogger("apscheduler").setLevel(logging.ERROR)


class Scheduler:
    """Runs jobs on the running event loop, each at its own pace."""

    def __init__(self, jobs: Iterable[Job], store: Store, policy: WorkPolicy, stopping: asyncio.Event) -> None:
        """Take the jobs. `stopping` is set at the end: they look at it between two steps."""
        self._jobs = {job.name: job for job in jobs}
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._holder = f"{os.getpid()}"
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._idle = asyncio.Event()
        self._scheduler = AsyncIOScheduler(timezone=UTC)

    def start(self) -> None:
        """Start the jobs, each with a first look at once."""
        for name in self._jobs:
            slow = name == "maintain"
            self._scheduler.add_job(
                self._run,
                "interval",
                args=[name],
                id=name,
                seconds=self._policy.maintain_seconds if slow else self._policy.sweep_seconds,
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
                next_run_time=_now() + timedelta(seconds=self._policy.maintain_seconds if slow else 0),
            )
        self._scheduler.start()

    async def stop(self) -> None:
        """Stop looking for work and wait for the step under way; the rest is found again at the next start."""
        self._stopping.set()
        if self._scheduler.running:
            self._scheduler.remove_all_jobs()
            if self._running:
                self._idle.clear()
                await self._idle.wait()
            self._scheduler.shutdown(wait=False)
            await asyncio.sleep(0)  # AsyncIOScheduler shuts down on the next turn of the loop

    def wake(self, name: str) -> None:
        """Run a job soon, or once more when it is running: it may have looked before this work was there.

        Soon and not at once: events come in bursts, and one step over a burst costs what a step over one event does.
        """
        if self._stopping.is_set():
            return
        if name in self._running:
            self._again.add(name)
            return
        job = self._scheduler.get_job(name)
        at = _now() + timedelta(milliseconds=self._policy.gather_ms)
        if job is not None and (job.next_run_time is None or job.next_run_time > at):
            job.modify(next_run_time=at)

    async def _run(self, name: str) -> None:
        if name in self._running:
            return
        job = self._jobs[name]
        self._running.add(name)
        try:
            while True:
                self._again.discard(name)
                if await job.due():
                    await self._leased(job)
                if name not in self._again:
                    return
                await asyncio.sleep(self._policy.gather_ms / 1000)
        except ScrubjayError as error:
            # The next look tries again; status shows the code, the log the whole.
            log.warning("job failed name=%s code=%s message=%s", name, error.code, error.message)
        finally:
            self._running.discard(name)
            if not self._running:
                self._idle.set()

    async def _leased(self, job: Job) -> None:
        name = job.name
        if not await self._store.write(lambda tx: tx.jobs.take_lease(name, self._holder, self._policy.lease_ms)):
            return
        began = time.monotonic()
        failed: str | None = "cancelled"
        try:
            await job.run()
            failed = None
        except ScrubjayError as error:
            failed = error.code
            raise
        except Exception as error:
            failed = type(error).__name__
            log.exception("job failed name=%s", name)
        finally:
            took_ms = int((time.monotonic() - began) * 1000)
            await self._store.write(lambda tx: tx.jobs.end_lease(name, took_ms, failed))

    async def jobs(self) -> tuple[api.Job, ...]:
        """Return how each job is doing."""
        ran = await self._store.read(lambda q: q.stats.jobs())
        found = []
        for name, job in self._jobs.items():
            planned = self._scheduler.get_job(name)
            at = None if planned is None or planned.next_run_time is None else planned.next_run_time
            row = ran.get(name)
            found.append(
                api.Job(
                    name=name,
                    running=name in self._running,
                    runs=0 if row is None else row.runs,
                    failures=0 if row is None else row.failures,
                    last_start=None if row is None else row.last_start,
                    last_ms=None if row is None else row.last_ms,
                    last_error=None if row is None else row.last_error,
                    next_run=None if at is None else Millis(int(at.timestamp() * 1000)),
                    pending=await job.pending(),
                )
            )
        return tuple(found)


def _now() -> datetime:
    return datetime.now(UTC)
