"""Background jobs: told of work they do it, what fails is shown and tried again, and what is paused stays so."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.jobs import conditions
from scrubjay.jobs.registry import Jobs, Trigger
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.store import nightly_copies
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOTHING = api.Nothing()


@asynccontextmanager
async def scheduled(service: Application) -> AsyncIterator[Scheduler]:
    await service.scheduler.start()
    try:
        yield service.scheduler
    finally:
        await service.scheduler.stop()


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    """Wait for something that happens in the background; a hang ends the test."""
    with anyio.fail_after(60):
        while not await holds():  # noqa: ASYNC110 - the job tells nobody
            await asyncio.sleep(0.01)


async def say(service: Application, text: str) -> None:
    draft = EventDraft(agent="test", session_id="s", type=EventType.USER_MESSAGE, text=text)
    await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))


async def job(service: Application, name: str) -> api.Job:
    return next(found for found in (await service.call(PERSON, "status", NOTHING)).jobs if found.name == name)


async def learned(service: Application) -> bool:
    ran = await job(service, "learn")
    return ran.runs > 0 and ran.last_error is None and not ran.running and not ran.pending


async def test_what_is_said_is_learned_without_being_asked(service: Application) -> None:
    async with scheduled(service):
        await say(service, "I prefer tea to coffee in the morning.")
        await until(lambda: learned(service))

        ran = await job(service, "learn")

    assert (ran.failures, ran.last_error, ran.pending) == (0, None, 0)
    assert ran.last_start is not None
    assert len((await service.call(PERSON, "list", api.ListRequest())).entries) == 1


async def test_what_a_crash_left_undone_is_found_at_the_start(opened: Opener) -> None:
    async with opened() as service:
        await say(service, "I prefer tea to coffee in the morning.")
        assert await service.distill.pending() == 1
    async with opened() as service, scheduled(service):
        await until(lambda: learned(service))


async def test_work_that_comes_while_a_job_runs_is_done_too(service: Application) -> None:
    async with scheduled(service):
        for n in range(40):
            await say(service, f"We decided to paint boat number {n} blue.")
        await until(lambda: learned(service))

    assert len((await service.call(PERSON, "list", api.ListRequest(limit=100))).entries) == 40


async def test_a_job_that_fails_shows_it_and_is_done_at_the_next_look(service: Application) -> None:
    def trigger(sql: str) -> Callable[[Any], Any]:
        return lambda connection: connection.execute(sql)

    refuse = "create trigger refuse before insert on learned begin select raise(abort, 'no'); end"
    await service.store._connection.call(trigger(refuse))
    async with scheduled(service):
        await say(service, "I prefer tea to coffee in the morning.")
        await until(lambda: _failed(service))
        failed = await job(service, "learn")
        await service.store._connection.call(trigger("drop trigger refuse"))
        service.on_work("learn")
        await until(lambda: learned(service))

        healed = await job(service, "learn")

    assert failed.last_error == "internal"
    assert failed.pending == 1
    assert healed.last_error is None
    assert healed.failures == failed.failures


async def _failed(service: Application) -> bool:
    return (await job(service, "learn")).failures > 0


class Counter:
    """A job of a package: it counts its runs, and fails when told."""

    name = "counter"
    trigger = Trigger(seconds=3_600, first_seconds=3_600)

    def __init__(self) -> None:
        self.runs = 0
        self.error: Exception | None = None

    async def due(self) -> bool:
        return True

    async def pending(self) -> int:
        return 1

    async def run(self) -> None:
        self.runs += 1
        if self.error is not None:
            raise self.error


class Slow(Counter):
    """One that takes longer than anybody waits."""

    name = "slow"

    async def run(self) -> None:
        await asyncio.sleep(60)


async def test_a_job_woken_many_times_in_a_moment_runs_once_and_again_for_what_comes_later(
    service: Application,
) -> None:
    counter = Counter()
    async with scheduled(service) as scheduler:
        scheduler.add(counter)
        for times in (1, 2, 3):
            for _ in range(20):
                scheduler.wake("counter")
            await until(partial(job_ran, service, "counter", times))

    assert counter.runs == 3


async def test_a_job_of_a_package_runs_as_those_of_the_core_do(service: Application) -> None:
    counter = Counter()
    async with scheduled(service) as scheduler:
        scheduler.add(counter)
        scheduler.wake("counter")
        await until(lambda: job_ran(service, "counter"))
        with pytest.raises(ConflictError, match="counter"):
            scheduler.add(Counter())

        await scheduler.remove("counter")
        scheduler.wake("counter")

    assert counter.runs == 1
    assert "counter" not in [found.name for found in await service.scheduler.jobs()]


async def job_ran(service: Application, name: str, times: int = 1) -> bool:
    return (await job(service, name)).runs >= times


async def test_a_paused_job_is_left_alone_until_it_is_resumed_also_after_a_restart(opened: Opener) -> None:
    async with opened() as service, scheduled(service) as scheduler:
        await scheduler.pause("learn")
        await say(service, "I prefer tea to coffee in the morning.")
    async with opened() as service, scheduled(service) as scheduler:
        await asyncio.sleep(service.policy.work.gather_ms / 1000 * 2)
        paused = await job(service, "learn")

        await scheduler.resume("learn")
        await until(lambda: learned(service))

    assert (paused.paused, paused.runs, paused.pending, paused.next_run) == (True, 0, 1, None)


async def test_a_job_that_is_paused_while_it_looks_for_work_does_not_begin(service: Application) -> None:
    looked = asyncio.Event()

    class Slow(Counter):
        async def due(self) -> bool:
            await service.scheduler.pause("counter")
            looked.set()
            return True

    counter = Slow()
    async with scheduled(service) as scheduler:
        scheduler.add(counter)
        scheduler.wake("counter")
        await looked.wait()
        await until(lambda: at_rest(service, "counter"))

    assert counter.runs == 0


async def at_rest(service: Application, name: str) -> bool:
    return not (await job(service, name)).running


async def test_a_job_runs_when_asked_paused_or_not_and_says_how_that_went(service: Application) -> None:
    counter = Counter()
    service.scheduler.add(counter)
    await service.scheduler.pause("counter")

    well = await service.scheduler.run("counter")
    counter.error = InvalidError("no", hint="none")
    badly = await service.scheduler.run("counter")

    assert (well.error, badly.error) == (None, "invalid")
    assert [ran.error for ran in await service.scheduler.history("counter", 10)] == ["invalid", None]
    with pytest.raises(NotFoundError, match="cuonter"):
        await service.scheduler.run("cuonter")


class Once(Counter):
    """One whose first run takes a while."""

    async def run(self) -> None:
        await asyncio.sleep(0.5 if self.runs == 0 else 0.0)
        self.runs += 1


async def test_a_run_that_waits_for_the_one_under_way_says_how_long(service: Application) -> None:
    service.scheduler.add(Once())
    first, second = await asyncio.gather(
        *(service.call(PERSON, "run_job", api.JobRequest(name="counter")) for _ in range(2))
    )

    assert (first.ms >= 500, first.waited_ms < 400) == (True, True)
    assert (second.ms < 400, second.waited_ms >= 400) == (True, True)


async def test_what_is_done_for_whoever_settles_is_in_the_history_and_nothing_else_is(service: Application) -> None:
    await say(service, "We decided to use PostgreSQL for the ledger.")
    await service.call(PERSON, "settle", api.SettleRequest())

    ran = await service.scheduler.history(None, 50)
    assert [one.job for one in ran] == ["toc", "learn"], "the latest first; what had nothing to do is not noted"
    assert [one.error for one in ran] == [None, None]
    assert (await job(service, "learn")).runs == 1
    [cause] = (await service.call(PERSON, "history", api.HistoryRequest(kind="distill"))).causes
    steps = (await service.call(PERSON, "trace", api.TraceRequest(id=cause.id))).steps
    [request] = {step.request for step in steps if step.request}
    run = (await service.call(PERSON, "trace", api.TraceRequest(id=request))).steps
    assert {(step.stage, step.name) for step in run} == {("job", "learn"), ("distill", "write")}

    await service.call(PERSON, "settle", api.SettleRequest())
    assert await service.scheduler.history(None, 50) == ran


async def test_who_waits_for_a_job_need_not_wait_until_it_would_be_due(service: Application) -> None:
    looked, quiet = asyncio.Event(), asyncio.Event()

    class Patient(Counter):
        async def due(self) -> bool:
            looked.set()
            await quiet.wait()  # as the table of contents waits until nobody writes
            return True

    counter = Patient()
    async with scheduled(service) as scheduler:
        scheduler.add(counter)
        scheduler.wake("counter")
        await looked.wait()
        with anyio.fail_after(30):
            await scheduler.finish("counter")
        assert counter.runs == 1
        quiet.set()


async def test_what_a_job_is_told_of_while_somebody_waits_for_it_is_done_too(service: Application) -> None:
    class Told(Counter):
        async def run(self) -> None:
            if not self.runs:
                service.scheduler.wake("counter")  # after it looked
            await super().run()

    counter = Told()
    async with scheduled(service) as scheduler:
        scheduler.add(counter)
        await scheduler.finish("counter")
        await until(partial(job_ran, service, "counter", 2))


async def test_a_stop_while_work_gathers_leaves_nobody_waiting(service: Application) -> None:
    ran = asyncio.Event()

    class Told(Counter):
        async def run(self) -> None:
            service.scheduler.wake("counter")  # after it looked: it looks again in a moment
            ran.set()

    before = asyncio.all_tasks()
    async with scheduled(service) as scheduler:
        scheduler.add(Told())
        scheduler.wake("counter")
        await ran.wait()
        await until(lambda: at_rest(service, "counter"))

    assert asyncio.all_tasks() - before == set(), "what the loop cuts off at its end is printed as a failure"


async def test_who_waits_for_a_job_is_told_of_its_failure_and_cuts_off_no_run_as_failed(service: Application) -> None:
    counter, slow = Counter(), Slow()
    service.scheduler.add(counter)
    service.scheduler.add(slow)
    counter.error = InvalidError("no", hint="none")
    with pytest.raises(InvalidError):
        await service.scheduler.finish("counter")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await service.scheduler.finish("slow")

    assert [ran.error for ran in await service.scheduler.history("counter", 10)] == ["invalid"]
    assert [ran.error for ran in await service.scheduler.history("slow", 10)] == [None]
    assert (await job(service, "slow")).failures == 0


async def test_the_last_runs_are_kept_and_no_more(opened: Opener) -> None:
    policy = replace(DEFAULT, work=replace(DEFAULT.work, history=3))
    async with opened(policy=policy) as service:
        service.scheduler.add(Counter())
        runs = [await service.scheduler.run("counter") for _ in range(5)]  # several begin in one millisecond
        await service.scheduler.run("count")

        assert list(await service.scheduler.history("counter", 10)) == runs[:1:-1]
        assert (await job(service, "counter")).runs == 5
        assert next(ran.job for ran in await service.scheduler.history(None, 10)) == "count"


async def test_a_job_that_fails_with_an_error_of_its_own_does_not_stop_the_others(
    service: Application, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = Counter(), Counter()
    broken.error = RuntimeError("the words of a memory")
    sound.name = "sound"
    async with scheduled(service) as scheduler:
        scheduler.add(broken)
        scheduler.add(sound)
        scheduler.wake("counter")
        scheduler.wake("sound")
        await until(lambda: job_ran(service, "counter"))
        await until(lambda: job_ran(service, "sound"))

    assert (await job(service, "counter")).last_error == "RuntimeError"
    assert (await job(service, "sound")).last_error is None
    assert "the words of a memory" not in caplog.text


async def test_looks_that_a_sleeping_machine_missed_are_made_once(service: Application) -> None:
    counter = Counter()
    async with scheduled(service) as scheduler:
        scheduler.add(counter)
        asleep = datetime.now(UTC) - timedelta(hours=30)
        scheduler._scheduler.modify_job("counter", next_run_time=asleep)
        await until(lambda: job_ran(service, "counter"))
        await asyncio.sleep(0.05)

    assert counter.runs == 1


async def test_counts_of_recall_are_written_down_by_their_job(opened: Opener) -> None:
    policy = replace(DEFAULT, work=replace(DEFAULT.work, sweep_seconds=1))
    async with opened(policy=policy) as service, scheduled(service):
        await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes", name="zebra"))
        await service.call(PERSON, "recall", api.RecallRequest(query="stripes"))

        await until(lambda: _counted(service))


async def _counted(service: Application) -> bool:
    return (await service.call(PERSON, "get", api.RefRequest(ref="zebra"))).memory.access_count == 1


async def test_maintenance_leaves_nothing_in_the_log(service: Application) -> None:
    await say(service, "hello")

    await service.maintain.run()

    assert service.store.path.with_name("memory.db-wal").stat().st_size == 0


async def test_stopping_waits_for_what_runs_and_starts_nothing_more(service: Application) -> None:
    async with scheduled(service) as scheduler:
        await say(service, "I prefer tea to coffee in the morning.")
        await scheduler.stop()
        await say(service, "We decided to paint the boat blue.")

        runs = (await job(service, "learn")).runs
        await asyncio.sleep(0.05)

    assert (await job(service, "learn")).runs == runs
    assert not any(found.running for found in (await service.call(PERSON, "status", NOTHING)).jobs)


# --- work of the night ------------------------------------------------------------------------------------------------

NIGHT = DEFAULT.night
DAY_MS = 86_400_000
MIDNIGHT = Millis(int(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1000))


def at(hours: float) -> Millis:
    return Millis(int(MIDNIGHT + hours * 3_600_000))


@pytest.mark.parametrize(
    ("last", "now", "every_days", "failed", "due"),
    [
        (None, at(12), 1, False, True),
        (at(3.5), at(23), 1, False, False),
        (at(3.5), at(26.9), 1, False, False),
        (at(3.5), at(27.1), 1, False, True),
        (at(23), at(27.1), 1, False, True),
        (at(3.5), at(100), 1, False, True),
        (at(3.5), at(100), 7, False, False),
        (at(3.5), at(3.5 + 24 * 7), 7, False, True),
        (at(50), at(27), 1, False, True),
        (at(3.5), at(4), 1, True, False),
        (at(3.5), at(4.6), 1, True, True),
    ],
)
def test_work_of_the_night_is_due_once_in_so_many_nights_however_many_were_slept_through(
    last: Millis | None,
    now: Millis,
    every_days: int,
    failed: bool,  # noqa: FBT001 - a column of the table
    due: bool,  # noqa: FBT001 - likewise
) -> None:
    asked = partial(conditions.is_due, last, failed=failed, every_days=every_days, policy=NIGHT)

    assert asked(now=now, utc_offset=timedelta()) is due
    shift = timedelta(hours=-7)  # elsewhere, the same hours of another clock
    moved = None if last is None else Millis(last + 7 * 3_600_000)
    assert (
        conditions.is_due(
            moved,
            failed=failed,
            every_days=every_days,
            policy=NIGHT,
            now=Millis(now + 7 * 3_600_000),
            utc_offset=shift,
        )
        is due
    )


@pytest.mark.parametrize(
    ("battery", "load", "quiet", "waited", "reason"),
    [
        (False, 0.1, math.inf, 0, None),
        (True, 0.1, math.inf, 0, "battery"),
        (False, 0.9, math.inf, 0, "busy"),
        (False, 0.1, 5, 0, "questions"),
        (True, 0.9, math.inf, NIGHT.most_seconds, None),
        (True, 0.9, 5, NIGHT.most_seconds, "questions"),
    ],
)
def test_work_that_can_wait_waits_for_a_socket_an_idle_machine_and_a_pause_in_questions(
    battery: bool,  # noqa: FBT001 - a column of the table
    load: float,
    quiet: float,
    waited: float,
    reason: str | None,
) -> None:
    found = conditions.reason_to_wait(
        conditions.Conditions(on_battery=battery, load=load, quiet_seconds=quiet), waited, NIGHT
    )

    assert found is None if reason is None else reason in str(found)


def test_this_machine_can_say_how_it_is() -> None:
    assert conditions.read(3.0).quiet_seconds == 3.0
    assert conditions.read(3.0).load >= 0


class Nightly(Counter):
    trigger = Trigger(seconds=0.02, every_days=1)


async def test_a_job_of_the_night_waits_says_why_and_runs_once_when_the_moment_is_good(
    service: Application,
) -> None:
    job, now = Nightly(), [conditions.Conditions(on_battery=True, load=0, quiet_seconds=math.inf)]
    scheduler = Scheduler(Jobs([job]), service.store, DEFAULT, asyncio.Event(), read_conditions=lambda: now[0])
    await scheduler.start()
    try:

        async def waits() -> bool:
            return (await scheduler.jobs())[0].waiting is not None

        await until(waits)
        assert "battery" in str((await scheduler.jobs())[0].waiting)
        assert job.runs == 0

        now[0] = conditions.Conditions(on_battery=False, load=0, quiet_seconds=math.inf)

        async def ran() -> bool:
            return job.runs > 0

        await until(ran)
        await asyncio.sleep(0.1)  # five more looks of that night
        assert job.runs == 1
        assert (await scheduler.jobs())[0].waiting is None
        assert (await scheduler.run("counter")).error is None
        assert job.runs == 2
    finally:
        await scheduler.stop()


async def test_copies_of_the_last_nights_are_kept_and_forgetting_for_good_blanks_them(service: Application) -> None:
    added = (await service.call(PERSON, "add", MemoryDraft(content="the gate code is 4711"))).memory
    for _ in range(NIGHT.backups + 1):
        assert (await service.scheduler.run("backup")).error is None

    copies = nightly_copies(service.store.path)
    assert len(copies) == NIGHT.backups
    assert all(copy.stat().st_mode & 0o077 == 0 and b"4711" in copy.read_bytes() for copy in copies)

    await service.call(PERSON, "forget", api.ForgetRequest(ref=added.id))
    assert nightly_copies(service.store.path) == copies
    assert all(b"4711" not in copy.read_bytes() for copy in copies)
    assert (await service.scheduler.run("backup")).error is None
    assert all(b"4711" not in copy.read_bytes() for copy in nightly_copies(service.store.path))


@pytest.mark.slow
async def test_damage_is_found_told_by_status_and_no_longer_once_it_is_mended(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="the gate is green"))
    assert (await service.scheduler.run("integrity")).error is None

    await service.store.checkpoint(truncate=True)
    before = service.store.path.read_bytes()
    assert before.count(b"the gate is green") >= 1
    service.store.path.write_bytes(before.replace(b"the gate is green", b"the gate is grain"))
    assert (await service.scheduler.run("integrity")).error == "corrupt"
    told = (await service.call(PERSON, "status", NOTHING)).warnings
    assert [line for line in told if "scrubjay doctor" in line]

    await service.store.checkpoint(truncate=True)
    damaged = service.store.path.read_bytes()
    service.store.path.write_bytes(damaged.replace(b"the gate is grain", b"the gate is green"))
    assert (await service.scheduler.run("integrity")).error is None
    assert not [line for line in (await service.call(PERSON, "status", NOTHING)).warnings if "scrubjay doctor" in line]
