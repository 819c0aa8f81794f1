"""Waiting for news on an event stream of a real service over loopback, and what becomes of it where there is none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from fault_proxy import FaultProxy
from scrubjay.store import Store
from scrubjay_cloud.settings import Settings
from scrubjay_shared.account import EntryType
from scrubjay_shared.errors import UnavailableError
from scrubjay_sync.account import admission, registration
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud import client
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import CLOUD
from sync_devices import AUTH_KEY, KDF, Vault, let_in
from test_sync_identity_cli import now, serving

pytestmark = pytest.mark.anyio
LONG_S = 30.0


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = Settings(data=tmp_path_factory.mktemp("cloud"), registration="open", pepper="p" * 32)
    with serving(settings) as address:
        yield address


@dataclass(frozen=True)
class Pair:
    """Two machines of one account, in step."""

    one: Engine
    two: Engine


@pytest.fixture
async def pair(tmp_path: Path, origin: str) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:

        async def machine(name: str) -> Machine:
            store = await Store.open(tmp_path / name / "memory.db", now=now, entropy=os.urandom)
            stack.push_async_callback(store.close)
            cloud = Cloud(origin, now=now)
            stack.push_async_callback(cloud.aclose)
            return Machine(store=store, vault=Vault(), cloud=cloud, now=now, entropy=os.urandom)

        def engine(of: Machine, member: Member) -> Engine:
            return Engine(
                of.store,
                member,
                of.cloud,
                now=now,
                entropy=os.urandom,
                sleep=asyncio.sleep,
                free_bytes=lambda: 1 << 40,
            )

        username = f"u{os.urandom(4).hex()}"
        first, second = await machine("one"), await machine("two")
        member = await registration.sign_up(
            first,
            username=username,
            auth_key=AUTH_KEY,
            kdf=KDF,
            recovery=RecoveryCode(secret=os.urandom(20)),
            name="one",
            bring_all=False,
        )
        joining = await admission.log_in(second, username=username, auth_key=AUTH_KEY, name="two")
        other = await let_in(joining, member, first.cloud)
        made = Pair(engine(first, member), engine(second, other))
        for _ in range(2):
            await made.one.sync()
            await made.two.sync()
        yield made


async def written(engine: Engine) -> None:
    """Have a machine write something and send it."""
    await engine.context.store.write(lambda tx: tx.forget.memory(str(tx.new_id())))
    await engine.sync()


async def test_what_another_machine_writes_wakes_who_waits_on_the_stream(pair: Pair) -> None:
    assert pair.two.streams
    waiting = asyncio.create_task(pair.two.wait_for_news(LONG_S))
    await asyncio.sleep(0.5)
    assert not waiting.done()

    began = asyncio.get_running_loop().time()
    await written(pair.one)
    news = await asyncio.wait_for(waiting, 10)

    assert news is not None
    assert news.page.objects
    assert asyncio.get_running_loop().time() - began < 5
    done = await pair.two.sync(news=news)
    assert done.ops_received == 1


async def test_what_was_written_before_the_stream_was_open_is_not_waited_for(pair: Pair) -> None:
    await written(pair.one)
    news = await asyncio.wait_for(pair.two.wait_for_news(LONG_S), 10)
    assert news is not None
    assert news.page.objects


async def test_a_change_of_who_is_in_ends_the_waiting(pair: Pair) -> None:
    waiting = asyncio.create_task(pair.two.wait_for_news(LONG_S))
    await asyncio.sleep(0.5)
    one = pair.one.context
    await one.member.append(one.cloud, lambda *_: _another_address())
    assert await asyncio.wait_for(waiting, 10) is None  # before its time: a round follows, and tells of it


def _another_address() -> Draft:
    return Draft(entries=[(EntryType.ORIGIN_ADD, {1: "https://another.example"})])


async def test_where_nothing_happens_the_time_is_waited_for(pair: Pair) -> None:
    began = asyncio.get_running_loop().time()
    assert await pair.two.wait_for_news(1.0) is None
    assert asyncio.get_running_loop().time() - began >= 1
    assert pair.two.streams


async def test_behind_a_proxy_that_keeps_streams_back_long_polls_are_used(
    pair: Pair, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CLOUD", replace(CLOUD, stream_opens_s=0.2))
    connection = pair.two.context.cloud._connection
    with FaultProxy(target=int(origin.rpartition(":")[2]), roll=Random(1)) as proxy:  # reads whole answers
        monkeypatch.setattr(connection._http, "base_url", f"http://127.0.0.1:{proxy.port}")
        for _ in range(CLOUD.stream_faults):
            assert pair.two.streams
            assert await pair.two.wait_for_news(LONG_S) is None
        assert not pair.two.streams
        waiting = asyncio.create_task(pair.two.wait_for_news(LONG_S))
        await asyncio.sleep(0.3)
        await written(pair.one)
        news = await asyncio.wait_for(waiting, 10)
        assert news is not None
        assert news.page.objects


@pytest.mark.parametrize("words", [0, 1])
async def test_streams_that_end_at_once_are_not_opened_for_ever(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, words: int
) -> None:
    async def short() -> AsyncIterator[None]:
        for _ in range(words):
            yield

    monkeypatch.setattr(pair.two.context.cloud._connection, "events", short)
    for _ in range(CLOUD.stream_faults):
        assert pair.two.streams
        assert await pair.two.wait_for_news(LONG_S) is None
    assert not pair.two.streams


async def test_a_server_that_is_away_is_an_error_and_costs_no_stream(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair.two.context.cloud._connection._http, "base_url", "http://127.0.0.1:9")
    for _ in range(CLOUD.stream_faults + 1):
        with pytest.raises(UnavailableError):
            await pair.two.wait_for_news(LONG_S)
    assert pair.two.streams
