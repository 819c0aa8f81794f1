"""What the tests of operating the cloud share: settings, an open database, a client, and an account with data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx

from cloud_client import Client, Clock, Device, Entropy, second_device, signed_up
from scrubjay_cloud import database
from scrubjay_cloud.app import create_app
from scrubjay_cloud.database import Database
from scrubjay_cloud.policy import OperationsPolicy
from scrubjay_cloud.settings import Settings

NOW = Clock()
ENTROPY = Entropy("ops")
POLICY = OperationsPolicy()


def settings_of(folder: Path, **changed: Any) -> Settings:
    return replace(Settings(data=folder / "data", registration="open"), **changed)


@asynccontextmanager
async def opened(where: Settings | Path | str) -> AsyncIterator[Database]:
    found = await database.open(where, now=NOW, entropy=ENTROPY)
    try:
        yield found
    finally:
        await found.close()


@asynccontextmanager
async def clients(found: Database, settings: Settings) -> AsyncIterator[Client]:
    """A client of a real app in this process."""
    app = create_app(found, settings, now=NOW, entropy=ENTROPY)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://cloud.test") as http:
        yield Client(http)
    app.state.service.stop()


async def filled(client: Client, name: str = "ann", *, objects: int = 12) -> tuple[Device, Device]:
    """Two devices of an account that have pushed, packed a part, and written into two scopes."""
    first = await signed_up(client, name, now=NOW)
    second = await second_device(first)
    scope = first.account.scope()
    await first.append(first.account.entries[-1])
    for device in (first, second):
        made = [device.quick(100 + 40 * place) for place in range(objects)]
        assert set(await device.statuses(*made)) == {"ok"}
    assert await first.statuses(first.quick(300, scope=scope)) == ["ok"]
    lane = first.lanes[first.account.home]
    pack = first.pack(lane[:5])
    assert await first.statuses(pack, path="/v1/pack") == ["ok"]
    return first, second


async def heads_of(device: Device) -> dict[tuple[bytes, bytes], tuple[int, bytes]]:
    return {(one.scope, one.device): (one.n, one.tip) for one in (await device.heads()).heads}
