"""What runs by itself: what is over is deleted, backups are made and drilled, sizes are measured.

Each job takes a lease in the database before it does anything, and keeps it until it is due again. So of several
instances one does the work, a service that is restarted every hour still makes one backup a day, and a job that its
process took along when it died is done by another once the lease has run out.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from scrubjay_cloud.backup import back_up
from scrubjay_cloud.bodies import BodyStore
from scrubjay_cloud.bodies.collection import collect
from scrubjay_cloud.bodies.loose import waiting
from scrubjay_cloud.database.port import Database, Transaction
from scrubjay_cloud.drill import Drilled, drill
from scrubjay_cloud.materialise import behind, caught_up
from scrubjay_cloud.metrics import Metrics, Sizes
from scrubjay_cloud.policy import DEFAULT, MIB, OPERATIONS, CloudPolicy, OperationsPolicy
from scrubjay_cloud.retention import sweep
from scrubjay_cloud.search.vector_index import indexed
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, NotFoundError, ScrubjayError

log = logging.getLogger(__name__)

# APScheduler logs every run at INFO; ours say what was done.
logging.getLogger("apscheduler").setLevel(logging.ERROR)

BACKUP_AT, DRILL_AT, DRILL_OK, DRILL_MS = "backup_at", "drill_at", "drill_ok", "drill_ms"
"""Keys of `meta`: when a backup was last made, when a drill last held, and how the last one went."""


ACCOUNTS, STORED_BYTES = "accounts", "stored_bytes"
"""Keys of `meta`: what was counted last, by whichever instance had the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job: how often it is due, how often each instance looks whether it is, and what it does.

    `run` returns what is logged.
    """

    period_s: float
    look_s: float
    run: Callable[[], Awaitable[Mapping[str, object]]]


class Jobs:
    """The background work of one instance; `holder` is what it is called in leases."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        metrics: Metrics,
        *,
        holder: str,
        now: Callable[[], Millis],
        body_store: BodyStore | None = None,
        policy: CloudPolicy = DEFAULT,
        operations: OperationsPolicy = OPERATIONS,
    ) -> None:
        self._database = database
        self._settings = settings
        self._metrics = metrics
        self._holder = holder
        self._now = now
        self._body_store = body_store
        self._policy = policy
        self._operations = operations
        self.problem = ""
        """Why nothing can be written, in words for whoever asks whether the service is ready; "" while it can."""
        self._running: set[asyncio.Task[None]] = set()
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        short = min(operations.sweep_s, operations.look_s)
        self.jobs: dict[str, Job] = {"sweep": Job(period_s=operations.sweep_s, look_s=short, run=self._sweep)}
        self.jobs["count"] = Job(period_s=operations.count_s, look_s=min(short, operations.count_s), run=self._count)
        self.jobs["search"] = Job(period_s=operations.search_s, look_s=short, run=self._search)
        if body_store is not None:
            self.jobs["bodies"] = Job(period_s=operations.bodies_s, look_s=short, run=self._collect)
        if not settings.database_url:
            self.jobs |= {
                "shrink": Job(period_s=operations.shrink_s, look_s=short, run=self._shrink),
                "backup": Job(period_s=operations.daily_s, look_s=operations.look_s, run=self._back_up),
                "drill": Job(period_s=operations.daily_s, look_s=operations.look_s, run=self._drill),
            }

    async def start(self) -> None:
        """Measure once, then begin. The first look at every job is at once, one after another."""
        await self.measure()
        first = datetime.now(UTC)
        for index, (name, job) in enumerate(self.jobs.items()):
            self._scheduler.add_job(
                self._look,
                "interval",
                args=[name],
                seconds=job.look_s,
                next_run_time=first + timedelta(seconds=1 + index),
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
            )
        self._scheduler.add_job(
            self._measured, "interval", seconds=self._operations.measure_s, max_instances=1, coalesce=True
        )
        self._scheduler.start()

    async def stop(self) -> None:
        """Begin no more, and wait a little for what runs.

        A backup or drill may take minutes. It is left behind then: what it leaves is cleared away by the next one.
        """
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        if self._running:
            _, left = await asyncio.wait(self._running, timeout=self._operations.drain_s)
            if left:
                log.warning("left jobs behind count=%d", len(left))

    async def _look(self, name: str) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - APScheduler runs coroutines as tasks
        self._running.add(task)
        try:
            await self.run(name)
        finally:
            self._running.discard(task)

    async def run(self, name: str) -> bool:
        """Run a job if it is due and nobody else does; say whether it ran. What fails is logged and counted."""
        job, now = self.jobs[name], self._now()
        try:
            taken = await self._database.write(lambda tx: take(tx, name, self._holder, now, self._operations.lease_s))
        except ScrubjayError as error:
            log.error("lease failed job=%s code=%s why=%s", name, error.code, error.message)  # noqa: TRY400
            return False
        if not taken:
            return False
        began = time.monotonic()
        result, until = "failed", Millis(now + round(job.look_s * 1000))
        try:
            done = await job.run()
        except NotFoundError as error:
            result = "idle"
            log.info("had nothing to do job=%s why=%s", name, error.message)
        except ScrubjayError as error:
            log.error("failed job=%s code=%s why=%s", name, error.code, error.message)  # noqa: TRY400
        except Exception as error:
            log.exception("failed job=%s error=%s", name, type(error).__name__)
        else:
            result, until = "done", Millis(now + round(job.period_s * 1000))
            log.info("did job=%s %s", name, " ".join(f"{key}={value}" for key, value in done.items()))
        self._metrics.jobs.labels(name, result).inc()
        self._metrics.job_seconds.labels(name).set(time.monotonic() - began)
        try:
            await self._database.write(lambda tx: keep(tx, name, self._holder, until))
        except ScrubjayError as error:
            log.error("lease failed job=%s code=%s why=%s", name, error.code, error.message)  # noqa: TRY400
        return True

    # --- the jobs -----------------------------------------------------------------------------------------------------

    async def _sweep(self) -> Mapping[str, object]:
        gone = await sweep(self._database, self._now(), self._policy)
        return asdict(gone)

    async def _collect(self) -> Mapping[str, object]:
        assert self._body_store is not None  # noqa: S101 - else there is no such job
        rows = self._policy.bodies.collect_rows
        return {"deleted": await collect(self._database, self._body_store, self._now(), rows=rows)}

    async def _search(self) -> Mapping[str, object]:
        late = await behind(self._database)
        for account, scope in late:
            await caught_up(self._database, account, scope, policy=self._policy.search, offload=asyncio.to_thread)
        return {"scopes": len(late), "indexes": await indexed(self._database, self._policy.search)}

    async def _count(self) -> Mapping[str, object]:
        accounts, stored = await self._database.read(_counted)

        def noted(tx: Transaction) -> None:
            note(tx, ACCOUNTS, accounts)
            note(tx, STORED_BYTES, stored)

        await self._database.write(noted)
        await self.measure()
        return {"accounts": accounts, "bytes": stored}

    async def _shrink(self) -> Mapping[str, object]:
        await self._database.shrink(self._operations.shrink_pages)
        return {"pages_most": self._operations.shrink_pages}

    async def _back_up(self) -> Mapping[str, object]:
        now = self._now()
        made = await back_up(self._database, self._settings.backups, self._operations, now=now)
        await self._database.write(lambda tx: note(tx, BACKUP_AT, now))
        await self.measure()
        return {"file": made.path, "bytes": made.bytes, "ms": made.ms, "removed": len(made.removed)}

    async def _drill(self) -> Mapping[str, object]:
        now = self._now()
        drilled = await asyncio.to_thread(drill, self._settings)
        await self._database.write(lambda tx: note_drill(tx, drilled, now))
        await self.measure()
        for one in drilled:
            if not one.held:
                raise CorruptError(f"the {one.source} does not restore: {one.error}", hint="scrubjay-cloud admin drill")
        return {one.source: f"{one.restore_ms}ms" for one in drilled}

    async def measure(self) -> None:
        """Measure sizes, for the metrics."""
        path = None if self._settings.database_url else self._settings.database_path
        now = self._now()
        sizes = await self._database.read(lambda tx: _sizes(tx, now))
        used = sizes.database_bytes
        if path is not None:
            files = [path, path.with_name(path.name + "-wal")]
            used = sum(file.stat().st_size for file in files if file.exists())
        free = None if path is None else shutil.disk_usage(path.parent).free
        self._metrics.measured(replace(sizes, database_bytes=used, free_bytes=free))
        await self._look_whether_writable(free)

    async def _look_whether_writable(self, free: int | None) -> None:
        """Begin to write, and see how much room there is: at 0 bytes free reading goes on as ever.

        PostgreSQL writes something, for only that tells; SQLite nothing, or litestream would send it.
        """
        problem = ""

        def write(tx: Transaction) -> None:
            if tx.dialect == "postgres":
                tx.execute("update meta set v = v where k = 'generation'")

        try:
            await self._database.write(write)
        except ScrubjayError as error:
            problem = error.message
        if not problem and free is not None and free < self._operations.full_bytes:
            problem = f"only {free // MIB} MiB of the database's disk are free"
        if problem and problem != self.problem:
            log.error("not ready: %s", problem)
        self.problem = problem
        self._metrics.writable.set(not problem)

    async def _measured(self) -> None:
        try:
            await self.measure()
        except (ScrubjayError, OSError) as error:
            log.error("could not measure error=%s why=%s", type(error).__name__, error)  # noqa: TRY400
            self.problem = "the database cannot be measured"
            self._metrics.writable.set(0)


# --- in a transaction -------------------------------------------------------------------------------------------------


def take(tx: Transaction, job: str, holder: str, now: Millis, lease_s: float) -> bool:
    """Take the lease of a job unless it is held or the job is not due; say whether it was taken."""
    return (
        tx.execute(
            "insert into lease (job, holder, until) values (?, ?, ?) on conflict (job) do update"
            " set holder = excluded.holder, until = excluded.until where lease.until <= ?",
            (job, holder, now + round(lease_s * 1000), now),
        )
        > 0
    )


def keep(tx: Transaction, job: str, holder: str, until: Millis) -> None:
    """Keep a lease until the job is due again, unless somebody else has taken it meanwhile."""
    tx.execute("update lease set until = ? where job = ? and holder = ?", (until, job, holder))


def note(tx: Transaction, key: str, value: int) -> None:
    """Write down in `meta` when or how something went."""
    tx.execute("insert into meta (k, v) values (?, ?) on conflict (k) do update set v = excluded.v", (key, str(value)))


def note_drill(tx: Transaction, drilled: list[Drilled], now: Millis) -> None:
    """Write down how a drill went: its age counts from the last one that held."""
    held = all(one.held for one in drilled)
    note(tx, DRILL_OK, int(held))
    note(tx, DRILL_MS, max(one.restore_ms for one in drilled))
    if held:
        note(tx, DRILL_AT, now)


def _counted(tx: Transaction) -> tuple[int, int]:
    """Return how many accounts there are, and their bytes. Reads every account's row: a job of one instance."""
    row = tx.row("select count(*), coalesce(sum(bytes), 0) from account") or (0, 0)
    return int(row[0]), int(row[1])


def _sizes(tx: Transaction, now: Millis) -> Sizes:
    meta: dict[str, str] = dict(tx.rows("select k, v from meta"))
    used = 0
    if tx.dialect == "postgres":
        row = tx.row("select pg_database_size(current_database())")
        used = int(row[0]) if row else 0
    return Sizes(
        database_bytes=used,
        free_bytes=None,
        accounts=_number(meta, ACCOUNTS) or 0,
        stored_bytes=_number(meta, STORED_BYTES) or 0,
        loose_bodies=waiting(tx, now),
        generation=int(meta["generation"]),
        backup_at=_number(meta, BACKUP_AT),
        drill_at=_number(meta, DRILL_AT),
        drill_ok=_number(meta, DRILL_OK) == 1,
        drill_ms=_number(meta, DRILL_MS) or 0,
    )


def _number(meta: Mapping[str, str], key: str) -> int | None:
    return int(meta[key]) if key in meta else None
