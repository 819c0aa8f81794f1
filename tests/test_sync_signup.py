"""Signing up over a bad network, as the commands do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from scrubjay.store import Store
from scrubjay_shared.errors import ConflictError, UnavailableError
from scrubjay_sync.api.account import RecoveryCheckRequest
from scrubjay_sync.api.login import SignUpCheckRequest, SignUpRequest
from scrubjay_sync.api.rounds import SyncRequest
from scrubjay_sync.operations import account, login, rounds
from scrubjay_sync.operations.client import SyncClient
from sync_devices import AUTH_KEY, KDF, ORIGIN, Answer, Network, World, world_at

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


async def test_the_next_try_goes_on_with_the_account_that_was_made_before_it_shows_another_code(
    world: World, tmp_path: Path
) -> None:
    store = await Store.open(tmp_path / "mine" / "memory.db", now=world.now, entropy=world.random.randbytes)
    world.stack.push_async_callback(store.close)
    network = Network(world)
    mine = SyncClient(
        store,
        tmp_path / "mine",
        environ={"SCRUBJAY_KEYCHAIN": "file"},
        now=world.now,
        entropy=world.random.randbytes,
        sleep=asyncio.sleep,
        transport=network,
    )
    world.stack.push_async_callback(mine.close)

    async def cut(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        if request.url.path == "/v1/register":
            raise httpx2.ReadError("cut off", request=request)
        return response

    network.fault = cut
    asked = SignUpRequest(
        origin=ORIGIN, username="ann", auth_key=AUTH_KEY, kdf=KDF, recovery=world.code.text, device_name="mine"
    )
    with pytest.raises(UnavailableError, match="may have been made"):
        await login.sign_up(mine, asked)
    network.fault = None

    again = SignUpCheckRequest(origin=ORIGIN, username="ann")
    with pytest.raises(ConflictError, match="this machine is logged in now"):
        await login.sign_up_check(mine, again)
    assert (await account.check_recovery(mine, RecoveryCheckRequest(rsk=world.code.rsk))).valid
    assert (await rounds.sync(mine, SyncRequest())).synced
    with pytest.raises(ConflictError, match="logged in as ann"):
        await login.sign_up_check(mine, again)
