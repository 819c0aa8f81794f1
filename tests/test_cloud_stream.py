"""Event streams: what they tell, what they cost while nothing happens, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloud_client import Device, World, opened, second_device, signed_up
from scrubjay_cloud.policy import HOUR_MS, CloudPolicy
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import EntryType

pytestmark = pytest.mark.anyio

SEVERAL = 5
POLICY = CloudPolicy(hash_memory_kib=64, hash_iterations=1, keepalive_s=0.02)
STILL = replace(POLICY, keepalive_s=3_600.0)
"""Where nothing is sent unless something happens."""


class Stream:
    """An open stream: its lines as they come, None at its end."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[str | None] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        """Be a client that stays."""
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: Any) -> None:
        """Take what the service sends."""
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        elif message.get("body"):
            await self._sent.put(message["body"].decode().strip())
        if message["type"] == "http.response.body" and not message.get("more_body"):
            await self._sent.put(None)

    async def line(self) -> str | None:
        async with asyncio.timeout(20):
            return await self._sent.get()

    async def rest(self) -> list[str]:
        """All lines until it ends."""
        found = []
        while (line := await self.line()) is not None:
            found.append(line)
        return found


@asynccontextmanager
async def streaming(world: World, device: Device) -> AsyncIterator[Stream]:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/v1/events",
        "raw_path": b"/v1/events",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"cloud.test"), (b"authorization", f"Bearer {device.client.token}".encode())],
        "client": ("127.0.0.1", 1),
        "server": ("cloud.test", 80),
    }
    stream = Stream()
    task = asyncio.create_task(world.app(scope, stream.receive, stream.send))
    try:
        yield stream
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_stream_tells_where_the_account_is_whenever_it_moves(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=STILL) as world:
        device = await signed_up(world.client, now=world.now)
        other = await second_device(device)
        async with streaming(world, other) as stream:
            assert await stream.line() == 'data: {"gseq":0}'
            for gseq in (1, 2):
                await device.push(device.segment())
                line = await stream.line()
                if line == f'data: {{"gseq":{gseq - 1}}}':  # the account itself had changed
                    line = await stream.line()
                assert line == f'data: {{"gseq":{gseq}}}'


async def test_a_stream_tells_of_a_change_of_who_is_in(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=STILL) as world:
        device = await signed_up(world.client, now=world.now)
        async with streaming(world, device) as stream:
            assert await stream.line() == 'data: {"gseq":0}'
            await second_device(device)

            assert await stream.line() == 'data: {"gseq":0}'


async def test_while_nothing_happens_the_database_is_asked_for_no_token_until_it_is_time_to(tmp_path: Path) -> None:
    async with opened(tmp_path / "server.db", policy=replace(POLICY, recheck_s=0.5)) as world:
        device = await signed_up(world.client, now=world.now)
        async with streaming(world, device) as stream:
            await stream.line()
            await world.database.write(lambda tx: tx.execute("delete from token"))

            assert [await stream.line() for _ in range(SEVERAL)] == [":"] * SEVERAL
            assert set(await stream.rest()) <= {":"}, "and then it ends"


async def test_a_stream_ends_with_its_token_by_the_clock_alone(tmp_path: Path) -> None:
    async with opened(tmp_path / "server.db", policy=replace(POLICY, recheck_s=3_600.0)) as world:
        device = await signed_up(world.client, now=world.now)
        async with streaming(world, device) as stream:
            await stream.line()
            world.now.pass_(HOUR_MS / 1000)

            assert set(await stream.rest()) <= {":"}


async def test_a_stream_ends_when_its_device_is_revoked(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=replace(STILL, recheck_s=3_600.0)) as world:
        device = await signed_up(world.client, now=world.now)
        other = await second_device(device)
        async with streaming(world, other) as stream:
            await stream.line()
            device.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(other.id, {}))
            await device.append(device.account.entries[-1])

            assert set(await stream.rest()) <= {":"}


async def test_a_stream_ends_when_the_service_stops(tmp_path: Path) -> None:
    async with opened(tmp_path / "server.db", policy=STILL) as world:
        device = await signed_up(world.client, now=world.now)
        async with streaming(world, device) as stream:
            await stream.line()
            world.service.stop()

            assert await stream.rest() == []
        assert len(world.service.notifier) == 0
