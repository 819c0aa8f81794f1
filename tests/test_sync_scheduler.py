"""When rounds are: the scheduler over real engines, stores and the real service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from scrubjay_shared.errors import RevokedError
from scrubjay_sync import planning, scheduler
from scrubjay_sync.account import account_devices
from scrubjay_sync.policy import SYNC
from scrubjay_sync.scheduler import Scheduler
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
        SYNC, debounce_ms=20, debounce_most_ms=150, idle_ms=200, backoff_ms=20, backoff_most_ms=200, wait_s=1.0
    )
    monkeypatch.setattr(scheduler, "SYNC", policy)
    monkeypatch.setattr(scheduler, "due", lambda *args, **options: planning.due(*args, **options, policy=policy))
    monkeypatch.setattr(scheduler, "backoff", lambda *args: planning.backoff(*args, policy))


@asynccontextmanager
async def watching(device: Device, **options: object) -> AsyncIterator[Scheduler]:
    made = Scheduler(device.engine, device.store, roll=lambda: 0.5, **options)  # type: ignore[arg-type]
    made.start()
    try:
        yield made
    finally:
        await made.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON_S):
        while not await condition():  # noqa: ASYNC110 - what it waits for is in a database
            await asyncio.sleep(0.01)


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
    monkeypatch.setattr(scheduler, "SYNC", replace(scheduler.SYNC, idle_ms=60_000))
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
    async with watching(one) as watch_:
        await asyncio.sleep(0.3)  # by now it waits for news
        async with asyncio.timeout(0.9), watch_.hold():
            done = await one.engine.sync()

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
    async with watching(two) as watch_:
        await two.note("mine")
        await account_devices.revoke(
            one.member,
            one.machine.cloud,
            two.machine.device,
            ends=await account_devices.ends_of(one.store, two.machine.device),
            entropy=world.random.randbytes,
        )

        async def ended() -> bool:
            return watch_.ended is not None

        await until(ended)
        assert isinstance(watch_.ended, RevokedError)

    assert await two.contents() == ["mine"]


async def test_quiet_mode_does_not_send_at_once(world: World) -> None:
    one = await world.device()
    async with watching(one, quiet=True):
        await asyncio.sleep(0.3)
        await one.note("later")
        await asyncio.sleep(0.5)
        assert (await one.engine.status()).pending_ops == 1
