"""When background jobs run: at once when told of work, else at their own pace, each noted in the store.

A job is told of work (`Scheduler.wake`) and then runs soon; besides, it looks for work at intervals, which is how what
a crash left behind is found. What a sleeping machine missed is made up for once when it is awake. Looking costs the
same whatever the store holds, and only a run is noted. Work of the night (`conditions`) is done once a day, when nobody
needs the machine. One process has the store (its lock says so) and a job never
overlaps itself here, so nothing else keeps two runs apart. A job that fails says so in its history; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from scrubjay import api
from scrubjay.jobs import conditions
from scrubjay.jobs.nights import Nights
from scrubjay.jobs.registry import Job, Jobs, Patient
from scrubjay.policy import MemoryPolicy, WorkPolicy
from scrubjay.store import JobRun, JobStatistics, Store
from scrubjay.tracebacks import frames_of
from scrubjay.tracing import REQUEST, Tracer, new_request
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, ScrubjayError

log = logging.getLogger(__name__)

_TURNED_ON = "scrubjay jobs lists those that have; scrubjay writer and scrubjay docs vault say how to turn one on"

_OWN = "scrubjay"
"""APScheduler's executor of ours. It logs by this name, apart from that of a program which uses APScheduler too."""

# APScheduler logs every run at INFO, and warns of runs that it leaves out; ours say what was done.
_APSCHEDULER = logging.getLogger("scrubjay.apscheduler")
for _quiet in (_APSCHEDULER, logging.getLogger(f"apscheduler.executors.{_OWN}")):
    _quiet.setLevel(logging.ERROR)


class Scheduler:
    """Runs jobs on the running event loop."""

    def __init__(
        self,
        jobs: Jobs,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        read_conditions: Callable[[], conditions.Conditions] = lambda: conditions.read(math.inf),
        tracer: Tracer | None = None,
    ) -> None:
        """Take the jobs. `stopping` is set at the end: they look at it between two steps.

        `read_conditions` says how the machine is, for work of the night; called in a thread.
        """
        self._jobs = jobs
        self._store = store
        self._policy = policy.work
        self._tracer = tracer
        self._nights = Nights(policy.night, read_conditions)
        self._stopping = stopping
        self._paused: set[str] = set()
        self._running: dict[str, asyncio.Lock] = {}
        self._looking: set[str] = set()
        self._nobody_looks = asyncio.Event()
        self._nobody_looks.set()
        self._again: set[str] = set()
        """Of those that look for work or wait for their turn to, which were told of more meanwhile."""
        self._soon: dict[str, float] = {}
        """Until when (of the monotonic clock) a look is planned for which a job was woken; gone when that begins."""
        self._scheduler: Any = None  # APScheduler's; loaded at the start, which comes after the daemon answers

    async def start(self) -> None:
        """Start the jobs, each with a first look as its trigger says. One that was paused stays so."""
        self._paused = {name for name, job in (await self._statistics()).items() if job.paused}
        self._scheduler = await asyncio.to_thread(_scheduler)
        self._scheduler.start()
        for job in self._jobs:
            self._schedule(job)

    async def stop(self) -> None:
        """Stop looking for work and wait for the step under way; the rest is found again at the next start."""
        self._stopping.set()
        if self._scheduler is not None and self._scheduler.running:
            self._scheduler.remove_all_jobs()
            await self._nobody_looks.wait()
            for running in tuple(self._running.values()):
                async with running:
                    pass
            self._scheduler.shutdown(wait=False)
            await asyncio.sleep(0)  # AsyncIOScheduler shuts down on the next turn of the loop

    def add(self, job: Job) -> None:
        """Take one more job, and start it where the others run. Raises ConflictError when another has its name."""
        self._jobs.add(job)
        if self._scheduler is not None and self._scheduler.running:
            self._schedule(job)

    async def remove(self, name: str) -> None:
        """Let go of a job, after the run under way."""
        if self._planned(name) is not None:
            self._scheduler.remove_job(name)
        self._jobs.remove(name)
        self._soon.pop(name, None)
        async with self._lock(name):
            pass

    def wake(self, name: str) -> None:
        """Run a job soon, or once more when it is running: it may have looked before this work was there.

        Soon and not at once: events come in bursts, and one step over a burst costs what a step over one event does. A
        job whose trigger gathers nothing runs at once.
        """
        if self._stopping.is_set() or name in self._paused:
            return
        if name in self._looking:
            self._again.add(name)
            return
        if time.monotonic() < self._soon.get(name, 0):  # told a moment ago: that look comes, and finds this work too
            return
        planned = self._planned(name)
        if planned is None:
            return
        gather_s = _gather_s(self._jobs.named(name), self._policy)
        at = _now() + timedelta(seconds=gather_s)
        if planned.next_run_time is None or planned.next_run_time > at:
            planned.modify(next_run_time=at)
            self._soon[name] = time.monotonic() + gather_s

    async def run(self, name: str) -> JobRun:
        """Run a job now, paused or not, after the run under way, and return how that went.

        It does all that waits, also what its own looks would leave until it is older. Raises NotFoundError,
        ConflictError for a job that has no part now: it would do nothing and say that all went well.
        """
        job = self._jobs.named(name)
        if await job.pending() is None:
            raise ConflictError(f"{name} has no part now: nothing is set that it works for", hint=_TURNED_ON)
        asked = time.monotonic()
        async with self._lock(name):
            waited_ms = int((time.monotonic() - asked) * 1000)
            return replace(await self._noted(job, _whole(job)), waited_ms=waited_ms)

    async def finish(self, name: str) -> None:
        """Have a job do all that waits, for somebody who waits for that; paused or not, after the run under way.

        A run that found something to do is noted as any other is. Raises what the job raises.
        """
        job = self._jobs.named(name)
        async with self._lock(name):
            waits = await job.pending()
            if waits is not None:
                await self._noted(job, _whole(job), waited_for=True, has_work=waits > 0)

    async def pause(self, name: str) -> None:
        """Leave a job alone until it is resumed, also after the next start. A run under way goes on."""
        self._jobs.named(name)
        await self._store.write(lambda tx: tx.jobs.pause(name, paused=True))
        self._paused.add(name)

    async def resume(self, name: str) -> None:
        """Have a job look for work again, beginning now."""
        self._jobs.named(name)
        await self._store.write(lambda tx: tx.jobs.pause(name, paused=False))
        self._paused.discard(name)
        self.wake(name)

    def is_paused(self, name: str) -> bool:
        """Say whether a job is left alone until it is resumed."""
        return name in self._paused

    async def jobs(self) -> tuple[api.Job, ...]:
        """Return how each job is doing that has a part now."""
        statistics = await self._statistics()
        found = []
        for job in self._jobs:
            pending = await job.pending()
            if pending is None:
                continue
            planned = self._planned(job.name)
            at = None if planned is None or planned.next_run_time is None else planned.next_run_time
            row = statistics.get(job.name)
            paused = row is not None and row.paused
            found.append(
                api.Job(
                    name=job.name,
                    running=self._lock(job.name).locked(),
                    runs=0 if row is None else row.runs,
                    failures=0 if row is None else row.failures,
                    last_start=None if row is None else row.last_start,
                    last_ms=None if row is None else row.last_ms,
                    last_error=None if row is None else row.last_error,
                    next_run=None if at is None or paused else Millis(int(at.timestamp() * 1000)),
                    pending=pending,
                    paused=paused,
                    waiting=self._nights.reason(job.name),
                    counts={} if row is None else dict(row.counts),
                )
            )
        return tuple(found)

    async def history(self, name: str | None, limit: int) -> tuple[JobRun, ...]:
        """Return the last runs of one job or of all, newest first."""
        if name is not None:
            self._jobs.named(name)
        return tuple(await self._store.read(lambda queries: queries.stats.job_runs(name, limit)))

    def _planned(self, name: str) -> Any:
        """Return what APScheduler has planned for a job, None when nothing."""
        return None if self._scheduler is None else self._scheduler.get_job(name)

    def _schedule(self, job: Job) -> None:
        self._scheduler.add_job(
            self._look,
            "interval",
            executor=_OWN,
            args=[job],
            id=job.name,
            seconds=job.trigger.seconds,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            next_run_time=_now() + timedelta(seconds=job.trigger.first_seconds),
        )

    async def _look(self, job: Job) -> None:
        """Run a job if it is due, and again as long as it is told of more: each time after the run under way.

        It holds nothing up but while it runs: whoever waits for the job to finish need not wait until it is due or
        until what comes has gathered.
        """
        self._soon.pop(job.name, None)
        if job.name in self._paused or job.name in self._looking:
            return
        self._looking.add(job.name)
        self._nobody_looks.clear()
        try:
            while not self._stopping.is_set():
                self._again.discard(job.name)
                if await self._may_run(job):
                    async with self._lock(job.name):
                        if self._is_wanted(job):  # that may have changed meanwhile
                            await self._noted(job, job.run)
                if job.name not in self._again:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _gather_s(job, self._policy))
        finally:
            self._looking.discard(job.name)
            if not self._looking:
                self._nobody_looks.set()

    def _is_wanted(self, job: Job) -> bool:
        """Say whether a job is still there and not paused, and the process goes on."""
        return job.name not in self._paused and not self._stopping.is_set() and self._planned(job.name) is not None

    async def _may_run(self, job: Job) -> bool:
        """Say whether a job has something to do, and work of the night may begin."""
        if job.trigger.every_days is None:
            return await self._is_due(job)
        gone = (await self._statistics()).get(job.name)
        return self._nights.is_time(job, gone) and await self._is_due(job) and not await self._nights.must_wait(job)

    async def _is_due(self, job: Job) -> bool:
        try:
            return await job.due()
        except Exception as error:  # noqa: BLE001  # one that cannot even look must not stop the others
            _log_failure(job.name, error)
            return False

    async def _noted(
        self,
        job: Job,
        work: Callable[[], Awaitable[object]],
        *,
        waited_for: bool = False,
        has_work: bool = True,
    ) -> JobRun:
        """Do the work of a job and note how that went: the next look tries again what failed.

        Without work known of, it is noted only where it did or failed at something. Who waits is told of the failure,
        and a run that ends because nobody waits any more has not failed: what it left is found again.
        """
        began, started = time.monotonic(), Millis(time.time_ns() // 1_000_000)
        failed: str | None = None if waited_for else "cancelled"
        problem: str | None = None
        did: object = has_work
        self._nights.begun(job.name)
        token = REQUEST.set(new_request())
        try:
            with nullcontext() if self._tracer is None or not has_work else self._tracer.span("job", job.name):
                did = await work() or has_work
            failed = None
        except Exception as error:  # as above; its history says so, and doctor
            failed = error.code if isinstance(error, ScrubjayError) else type(error).__name__
            problem = "; ".join(filter(None, (error.message, error.hint))) if isinstance(error, ScrubjayError) else None
            _log_failure(job.name, error)
            if waited_for:
                raise
        finally:
            REQUEST.reset(token)
            ms = int((time.monotonic() - began) * 1000)
            ran = JobRun(job=job.name, started=started, ms=ms, error=failed, problem=problem)
            if did or failed is not None:
                await self._note(ran)
        return ran

    async def _note(self, ran: JobRun) -> None:
        try:
            await self._store.write(lambda tx: tx.jobs.note(ran, keep=self._policy.history))
        except ScrubjayError as error:  # the store says what is wrong with it to everybody who writes
            log.warning("job not noted name=%s code=%s", ran.job, error.code)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._running.setdefault(name, asyncio.Lock())

    async def _statistics(self) -> dict[str, JobStatistics]:
        return await self._store.read(lambda queries: queries.stats.jobs())


def _whole(job: Job) -> Callable[[], Awaitable[object]]:
    """Return what does all that waits for a job, also what its own looks would leave until it is older."""
    return job.finish if isinstance(job, Patient) else job.run


def _gather_s(job: Job, policy: WorkPolicy) -> float:
    return policy.gather_ms / 1000 if job.trigger.gathers else 0.0


def _log_failure(name: str, error: Exception) -> None:
    if isinstance(error, ScrubjayError):
        log.warning("job failed name=%s code=%s message=%s", name, error.code, error.message)
    else:  # not its words: they may quote a memory
        log.error("job failed name=%s error=%s at=%s", name, type(error).__qualname__, frames_of(error))


def _scheduler() -> Any:
    from apscheduler.executors.asyncio import AsyncIOExecutor  # noqa: PLC0415  # see where it is called
    from apscheduler.schedulers.asyncio import AsyncIOScheduler  # noqa: PLC0415

    return AsyncIOScheduler(timezone=UTC, logger=_APSCHEDULER, executors={_OWN: AsyncIOExecutor()})


def _now() -> datetime:
    return datetime.now(UTC)
