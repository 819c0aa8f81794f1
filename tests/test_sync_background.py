"""When rounds are: sync as a job of the real scheduler, over real engines, stores and the real service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.jobs.registry import Jobs
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import RevokedError
from scrubjay_sync import background, planning
from scrubjay_sync.account import account_devices
from scrubjay_sync.background import JOB, Background, Rounds, SyncJob
from scrubjay_sync.planning import Burst
from scrubjay_sync.policy import SYNC
from sync_devices import Device, World, world_at

pytestmark = pytest.mark.anyio
SOON_S = 15.0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules, a hundred times quicker: what is tested is their order, not their length."""
    policy = replace(
        SYNC,
        soon_ms=2,
        debounce_ms=20,
        debounce_most_ms=150,
        idle_ms=200,
        calm_ms=3_000,
        backoff_ms=20,
        backoff_most_ms=200,
        wait_s=1.0,
    )
    monkeypatch.setattr(background, "SYNC", policy)
    monkeypatch.setattr(background, "due", lambda *args, **options: planning.due(*args, **options, policy=policy))
    monkeypatch.setattr(background, "backoff", lambda *args: planning.backoff(*args, policy))


@dataclass(frozen=True)
class Running:
    """A device whose rounds run in the background, and the scheduler that runs them."""

    device: Device
    rounds: Rounds
    scheduler: Scheduler

    async def paused(self) -> None:
        """Return when the job is paused and the long poll that was under way has ended."""
        await self.scheduler.pause(JOB)
        await asyncio.sleep(background.SYNC.wait_s + 0.2)


@asynccontextmanager
async def watching(device: Device, *, quiet: bool = False) -> AsyncIterator[Running]:
    scheduler = Scheduler(Jobs(), device.store, DEFAULT, asyncio.Event())
    daemon = Background(wake=lambda: scheduler.wake(JOB), paused=lambda: scheduler.is_paused(JOB), roll=lambda: 0.5)

    async def nothing() -> None:
        """What a login would follow up."""

    rounds = Rounds(device.engine, device.store, daemon, quiet=quiet, on_done=nothing)
    await scheduler.start()
    rounds.start()
    scheduler.add(SyncJob(lambda: rounds))
    try:
        yield Running(device, rounds, scheduler)
    finally:
        await rounds.close()
        await scheduler.remove(JOB)
        await scheduler.stop()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON_S):
        while not await condition():  # noqa: ASYNC110 - what it waits for is in a database
            await asyncio.sleep(0.01)


def rounds_for(gaps: list[int]) -> list[tuple[int, list[int]]]:
    """When rounds begin, and the writes that each takes up, for writes with such gaps between them; a round takes none."""
    writes = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    found: list[tuple[int, list[int]]] = []
    burst, before, taken = None, None, list[int]()
    for at in [*writes, None]:
        begins = None if burst is None else planning.due(Millis(0), burst, quiet=False)
        if begins is not None and (at is None or begins <= at):
            found.append((begins, taken))
            burst, taken = None, []
        if at is not None:
            burst, before = Burst.grown(burst, Millis(at), before), Millis(at)
            taken.append(at)
    return found


def test_a_write_that_comes_alone_is_due_soon_and_the_rest_of_its_burst_once_nobody_writes() -> None:
    turn = [10_000, 100, 400, 500]  # the second comes along with the first, the others follow

    assert rounds_for(turn) == [
        (10_000 + SYNC.soon_ms, [10_000, 10_100]),
        (11_000 + SYNC.debounce_ms, [10_500, 11_000]),
    ]


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=300))
def test_every_write_is_taken_up_in_time_and_writing_steadily_costs_few_rounds(gaps: list[int]) -> None:
    rounds = rounds_for(gaps)

    assert sum(len(taken) for _, taken in rounds) == len(gaps), "every write, and once"
    for begins, taken in rounds:
        assert taken[-1] <= begins <= min(taken[-1] + SYNC.debounce_ms, taken[0] + SYNC.debounce_most_ms)
    lulls = sum(gap >= SYNC.debounce_ms for gap in gaps)
    assert len(rounds) <= 2 * (lulls + 1) + sum(gaps) // SYNC.debounce_most_ms


def test_in_quiet_mode_a_write_that_comes_alone_waits_for_its_quarter_of_an_hour() -> None:
    burst = Burst.grown(None, Millis(1_000), None)

    assert planning.due(Millis(1_000), burst, quiet=True) == SYNC.quiet_ms


async def test_what_one_device_writes_appears_on_the_other_without_a_command(world: World) -> None:
    one, two = await world.device(), await world.device()
    async with watching(one), watching(two):
        await one.note("the kettle is blue")

        async def arrived() -> bool:
            return await two.contents() == ["the kettle is blue"]

        await until(arrived)


async def test_writes_in_a_burst_go_out_in_few_objects(world: World) -> None:
    one = await world.device()
    async with watching(one):
        for number in range(60):
            await one.note(f"thought {number}")

        async def sent() -> bool:
            return (await one.engine.status()).pending_ops == 0

        await until(sent)

    assert sum(lane.n for lane in (await one.engine.status()).lanes) < 25


async def test_a_server_that_is_away_is_not_asked_in_a_loop_and_no_write_waits(world: World) -> None:
    one = await world.device()
    await one.sync()

    async def away(_: httpx2.Request, __: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        raise httpx2.ConnectError("no route")

    one.network.fault = away
    one.network.asked.clear()
    async with watching(one):
        for number in range(20):
            await one.note(f"offline {number}")
            await asyncio.sleep(0.02)
        asked = len(one.network.asked)
        one.network.fault = None

        async def sent() -> bool:
            return (await one.engine.status()).pending_ops == 0

        await until(sent)

    assert asked < 40
    assert len(await one.contents()) == 20


async def test_a_write_in_the_middle_of_a_round_does_not_wait_for_the_next_idle_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await world.device()
    monkeypatch.setattr(background, "SYNC", replace(background.SYNC, idle_ms=60_000))
    written = asyncio.Event()

    async def meanwhile(request: httpx2.Request, answer: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        if request.url.path == "/v1/push" and not written.is_set():
            written.set()
            await one.note("said while a round was under way")
        return await answer()

    one.network.fault = meanwhile
    async with watching(one):
        await one.note("first")

        async def sent() -> bool:
            return written.is_set() and (await one.engine.status()).pending_ops == 0

        await until(sent)


async def test_a_round_of_ones_own_does_not_wait_for_the_long_poll(world: World) -> None:
    one = await world.device()
    async with watching(one) as running:
        await asyncio.sleep(0.3)  # by now it waits for news
        async with asyncio.timeout(0.9):
            done = await running.rounds.run()

    assert done.synced


async def test_closing_sends_what_was_just_written(world: World) -> None:
    one, two = await world.device(), await world.device()
    async with watching(one):
        await asyncio.sleep(0.3)
        await one.note("said at the door")
    await two.sync()

    assert await two.contents() == ["said at the door"]


async def test_a_revoked_device_stops_asking_and_keeps_its_memories(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    async with watching(two) as running:
        await two.note("mine")
        await account_devices.revoke(
            one.member,
            one.machine.cloud,
            two.machine.device,
            ends=await account_devices.ends_of(one.store, one.member.state, two.machine.device),
            entropy=world.random.randbytes,
        )

        async def ended() -> bool:
            ran = await running.scheduler.history(JOB, 1)
            return running.rounds.ended is not None and [one.error for one in ran] == ["revoked"]

        await until(ended)
        assert isinstance(running.rounds.ended, RevokedError)

    assert await two.contents() == ["mine"]


async def test_quiet_mode_does_not_send_at_once(world: World) -> None:
    one = await world.device()
    async with watching(one, quiet=True):
        await asyncio.sleep(0.3)
        await one.note("later")
        await asyncio.sleep(0.5)
        assert (await one.engine.status()).pending_ops == 1


async def test_the_job_is_listed_with_its_history_and_what_waits_to_be_sent(world: World) -> None:
    one = await world.device()
    async with watching(one, quiet=True) as running:

        async def ran() -> bool:
            return bool(await running.scheduler.history(JOB, 10))

        await until(ran)
        await one.note("later")
        (job,) = await running.scheduler.jobs()
        assert (job.name, job.pending, job.failures) == (JOB, 1, 0)

        await running.scheduler.run(JOB)
        (job,) = await running.scheduler.jobs()

    assert (job.pending, job.runs) == (0, 2)


async def test_a_round_that_fails_is_in_the_history_by_its_kind(world: World) -> None:
    one = await world.device()
    await one.sync()

    async def away(_: httpx2.Request, __: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        raise httpx2.ConnectError("no route")

    one.network.fault = away
    async with watching(one) as running:

        async def failed() -> bool:
            return "unavailable" in [ran.error for ran in await running.scheduler.history(JOB, 10)]

        await until(failed)


async def test_a_paused_job_asks_the_server_for_nothing_until_it_is_resumed(world: World) -> None:
    one, two = await world.device(), await world.device()
    async with watching(one) as running:
        await asyncio.sleep(0.3)
        await running.paused()
        await two.note("the kettle is blue")
        await two.sync()
        one.network.asked.clear()
        await one.note("said while paused")
        await asyncio.sleep(0.5)
        assert one.network.asked == []
        assert await one.contents() == ["said while paused"]

        await running.scheduler.resume(JOB)

        async def exchanged() -> bool:
            sent = (await one.engine.status()).pending_ops == 0
            return sent and sorted(await one.contents()) == ["said while paused", "the kettle is blue"]

        await until(exchanged)


async def test_closing_a_paused_job_sends_nothing(world: World) -> None:
    one = await world.device()
    async with watching(one) as running:
        await asyncio.sleep(0.3)
        await running.scheduler.pause(JOB)
        await one.note("said while paused")

    assert (await one.engine.status()).pending_ops == 1


async def test_news_are_taken_in_as_they_came_and_not_fetched_again(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    waiting = asyncio.create_task(two.engine.wait_for_news(5))
    await one.note("the kettle is blue")
    await one.sync()
    news = await waiting
    assert news is not None
    assert await two.contents() == []

    two.network.asked.clear()
    done = await two.engine.sync(news=news)

    assert (done.synced, await two.contents()) == (True, ["the kettle is blue"])
    assert two.network.asked.count("GET /v1/pull") == 1, "the look whether there is more"

    assert (await two.engine.sync(news=news)).ops_received == 0, "what was read since is not read again"


async def test_polls_without_news_are_repeated_without_a_round_and_still_hear_of_news(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    monkeypatch.setattr(background, "SYNC", replace(background.SYNC, calm_ms=60_000))
    async with watching(one) as running:

        async def polled() -> bool:
            return one.network.asked.count("GET /v1/pull") >= 4

        one.network.asked.clear()
        await until(polled)
        assert [ran.error for ran in await running.scheduler.history(JOB, 10)] == [None]
        assert one.network.asked.count("GET /v1/heads") == 1

        await two.note("the kettle is blue")
        await two.sync()

        async def arrived() -> bool:
            return await one.contents() == ["the kettle is blue"]

        await until(arrived)


async def test_a_change_of_the_account_ends_the_waiting_with_a_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, two = await world.device(), await world.device()
    await world.settle()
    monkeypatch.setattr(background, "SYNC", replace(background.SYNC, calm_ms=60_000, wait_s=25.0))
    async with watching(two):

        async def waits() -> bool:
            asked = len(two.network.asked)
            await asyncio.sleep(0.3)  # a round asks the same, and goes on: what waits is the last for a while
            return two.network.asked[-1:] == ["GET /v1/pull"] and len(two.network.asked) == asked

        await until(waits)
        before = len(await two.changes())
        await world.device()  # let in by the first: the second learns of it by the log alone

        async def told() -> bool:
            return len(await two.changes()) > before

        await until(told)


async def test_a_server_that_asks_not_to_wait_is_left_alone_and_what_is_written_goes_all_the_same(world: World) -> None:
    one = await world.device()
    await world.settle()
    waits = 0

    async def full(request: httpx2.Request, answer: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        nonlocal waits
        if request.url.params.get("wait", "0") == "0":
            return await answer()
        waits += 1
        problem = b'{"type":"","title":"","status":429,"detail":"","code":"too_many","hint":"","request_id":""}'
        return httpx2.Response(429, headers={"Retry-After": "25"}, content=problem)

    one.network.fault = full
    async with watching(one):

        async def refused() -> bool:
            return waits > 0

        async def sent() -> bool:
            return (await one.engine.status()).pending_ops == 0

        await until(refused)
        for number in range(3):
            await one.note(f"said {number}")
            await until(sent)

    assert waits == 1


async def test_without_a_login_the_job_is_not_listed(world: World) -> None:
    one = await world.device()
    scheduler = Scheduler(Jobs([SyncJob(lambda: None)]), one.store, DEFAULT, asyncio.Event())

    assert await scheduler.jobs() == ()


async def test_a_long_poll_that_always_fails_is_not_repeated_in_a_loop(world: World) -> None:
    one = await world.device()

    async def cut(request: httpx2.Request, answer: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        if request.url.params.get("wait", "0") != "0":
            raise httpx2.ReadError("a proxy that lets nobody wait")
        return await answer()

    one.network.fault = cut
    async with watching(one) as running:
        await asyncio.sleep(1.5)
        polls = len(await running.scheduler.history(JOB, 50))
        await one.note("sent all the same")

        async def sent() -> bool:
            return (await one.engine.status()).pending_ops == 0

        await until(sent)

    assert polls < 25
