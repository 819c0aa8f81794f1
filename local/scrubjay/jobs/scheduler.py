"""When background work runs: APScheduler jobs, each idempotent, leased in the store, and visible in `status`.

A job is told of work (`Service.on_work`) and then runs at once; besides, it looks for work at intervals, which is how
what a crash left behind is found. Looking costs the same whatever the store holds; only a job that has something to do
takes its lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from scrubjay.api import Job
from scrubjay.service.service import Service
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)

# APScheduler logs every run at INFO; ours say what was done.
logging.getLogger("apscheduler").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One job: whether it may have something to do, how much that is, how it is done, and when it looks (in seconds).

    `look` is called at every interval of an idle store, so its cost must not grow with the store.
    """

    look: Callable[[], Awaitable[bool]]
    waiting: Callable[[], Awaitable[int]]
    run: Callable[[], Awaitable[object]]
    seconds: int
    first: float = 0


class Scheduler:
    """Runs the service's background work on the running event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._holder = f"{os.getpid()}"
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._idle = asyncio.Event()
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        work = service.policy.work
        self._tasks: Mapping[str, Task] = {
            "learn": Task(
                look=service.may_learn, waiting=service.to_learn, run=service.learn, seconds=work.sweep_seconds
            ),
            "embed": Task(
                look=service.may_embed, waiting=service.to_embed, run=service.embed, seconds=work.sweep_seconds
            ),
            "count": Task(
                look=service.may_count, waiting=service.to_count, run=service.flush_accesses, seconds=work.sweep_seconds
            ),
            "maintain": Task(
                look=service.may_maintain,
                waiting=service.to_maintain,
                run=service.maintain,
                seconds=work.maintain_seconds,
                first=work.maintain_seconds,
            ),
        }

    def start(self) -> None:
        """Start the jobs, each with a first look at once."""
        for name, task in self._tasks.items():
            self._scheduler.add_job(
                self._run,
                "interval",
                args=[name],
                id=name,
                seconds=task.seconds,
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
                next_run_time=_now() + timedelta(seconds=task.first),
            )
        self._scheduler.start()
        self._service.on_work = self._wake
        self._service.jobs = self.jobs

    async def stop(self) -> None:
        """Stop looking for work and wait for the step under way; the rest is found again at the next start."""
        self._service.stop_working()
        self._service.on_work = lambda _job: None
        if self._scheduler.running:
            self._scheduler.remove_all_jobs()
            if self._running:
                self._idle.clear()
                await self._idle.wait()
            self._scheduler.shutdown(wait=False)
            await asyncio.sleep(0)  # AsyncIOScheduler shuts down on the next turn of the loop

    def _wake(self, name: str) -> None:
        """Run a job soon, or once more when it is running: it may have looked before this work was there.

        Soon and not at once: events come in bursts, and one step over a burst costs what a step over one event does.
        """
        if name in self._running:
            self._again.add(name)
            return
        job = self._scheduler.get_job(name)
        at = _now() + timedelta(milliseconds=self._service.policy.work.gather_ms)
        if job is not None and (job.next_run_time is None or job.next_run_time > at):
            job.modify(next_run_time=at)

    async def _run(self, name: str) -> None:
        if name in self._running:
            return
        task = self._tasks[name]
        self._running.add(name)
        try:
            while True:
                self._again.discard(name)
                if await task.look():
                    await self._leased(name, task)
                if name not in self._again:
                    return
                await asyncio.sleep(self._service.policy.work.gather_ms / 1000)
        except ScrubjayError as error:
            # The next look tries again; status shows the code, the log the whole.
            log.warning("job failed name=%s code=%s message=%s", name, error.code, error.message)
        finally:
            self._running.discard(name)
            if not self._running:
                self._idle.set()

    async def _leased(self, name: str, task: Task) -> None:
        store = self._service.store
        if not await store.take_lease(name, self._holder, self._service.policy.work.lease_ms):
            return
        began = time.monotonic()
        failed: str | None = "cancelled"
        try:
            await task.run()
            failed = None
        except ScrubjayError as error:
            failed = error.code
            raise
        except Exception as error:
            failed = type(error).__name__
            log.exception("job failed name=%s", name)
        finally:
            await store.end_lease(name, int((time.monotonic() - began) * 1000), failed)

    async def jobs(self) -> tuple[Job, ...]:
        """Return how each job is doing."""
        ran = await self._service.store.jobs()
        found = []
        for name, task in self._tasks.items():
            job = self._scheduler.get_job(name)
            at = None if job is None or job.next_run_time is None else job.next_run_time
            row = ran.get(name)
            found.append(
                Job(
                    name=name,
                    running=name in self._running,
                    runs=0 if row is None else row.runs,
                    failures=0 if row is None else row.failures,
                    last_start=None if row is None else row.last_start,
                    last_ms=None if row is None else row.last_ms,
                    last_error=None if row is None else row.last_error,
                    next_run=None if at is None else Millis(int(at.timestamp() * 1000)),
                    pending=await task.waiting(),
                )
            )
        return tuple(found)


def _now() -> datetime:
    return datetime.now(UTC)
