"""Background jobs: told of work they do it, what fails is shown and tried again, and a lease keeps others out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.policy import DEFAULT
from scrubjay.service.service import Service
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Service]]
NOTHING = api.Nothing()


@asynccontextmanager
async def scheduled(service: Service) -> AsyncIterator[Scheduler]:
    service.scheduler.start()
    try:
        yield service.scheduler
    finally:
        await service.scheduler.stop()


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    """Wait for something that happens in the background; a hang ends the test."""
    with anyio.fail_after(60):
        while not await holds():  # noqa: ASYNC110 - the job tells nobody
            await asyncio.sleep(0.01)


async def say(service: Service, text: str) -> None:
    draft = EventDraft(agent="test", session_id="s", type=EventType.USER_MESSAGE, text=text)
    await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))


async def job(service: Service, name: str) -> api.Job:
    return next(found for found in (await service.call(PERSON, "status", NOTHING)).jobs if found.name == name)


async def learned(service: Service) -> bool:
    ran = await job(service, "learn")
    return ran.runs > 0 and ran.last_error is None and not ran.running and not ran.pending


async def test_what_is_said_is_learned_without_being_asked(service: Service) -> None:
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


async def test_work_that_comes_while_a_job_runs_is_done_too(service: Service) -> None:
    async with scheduled(service):
        for n in range(40):
            await say(service, f"We decided to paint boat number {n} blue.")
        await until(lambda: learned(service))

    assert len((await service.call(PERSON, "list", api.ListRequest(limit=100))).entries) == 40


async def test_a_job_that_fails_shows_it_and_is_done_at_the_next_look(service: Service) -> None:
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


async def _failed(service: Service) -> bool:
    return (await job(service, "learn")).failures > 0


async def test_a_job_waits_while_another_holds_its_lease(service: Service) -> None:
    assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "somebody", 600_000))
    async with scheduled(service):
        await say(service, "I prefer tea to coffee in the morning.")
        for _ in range(5):
            service.on_work("learn")
            await asyncio.sleep(0.02)
        assert await service.distill.pending() == 1

        await service.store.write(lambda tx: tx.jobs.end_lease("learn", 1, None))
        service.on_work("learn")
        await until(lambda: learned(service))


async def test_a_lease_runs_out_and_is_not_trusted_when_the_clock_was_set_back(opened: Opener) -> None:
    times = [1_000_000]
    async with opened(now=lambda: times[0]) as service:
        assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "one", 1_000))
        assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "one", 1_000))
        assert not await service.store.write(lambda tx: tx.jobs.take_lease("learn", "two", 1_000))
        times[0] += 1_001
        assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "two", 1_000))
        times[0] -= 500_000
        assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "one", 1_000))


async def test_leases_of_a_dead_process_are_dropped_at_the_start(opened: Opener) -> None:
    async with opened() as service:
        assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "dead", 600_000))
    async with opened() as service:
        assert await service.store.write(lambda tx: tx.jobs.take_lease("learn", "alive", 600_000))


async def test_counts_of_recall_are_written_down_by_their_job(opened: Opener) -> None:
    policy = replace(DEFAULT, work=replace(DEFAULT.work, sweep_seconds=1))
    async with opened(policy=policy) as service, scheduled(service):
        await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes", name="zebra"))
        await service.call(PERSON, "recall", api.RecallRequest(query="stripes"))

        await until(lambda: _counted(service))


async def _counted(service: Service) -> bool:
    return (await service.call(PERSON, "get", api.RefRequest(ref="zebra"))).memory.access_count == 1


async def test_maintenance_leaves_nothing_in_the_log(service: Service) -> None:
    await say(service, "hello")

    await service.maintain.run()

    assert service.store.path.with_name("memory.db-wal").stat().st_size == 0


async def test_stopping_waits_for_what_runs_and_starts_nothing_more(service: Service) -> None:
    async with scheduled(service) as scheduler:
        await say(service, "I prefer tea to coffee in the morning.")
        await scheduler.stop()
        await say(service, "We decided to paint the boat blue.")

        runs = (await job(service, "learn")).runs
        await asyncio.sleep(0.05)

    assert (await job(service, "learn")).runs == runs
    assert not any(found.running for found in (await service.call(PERSON, "status", NOTHING)).jobs)
