"""Instances that tell each other what they stored: over a real PostgreSQL, with connections that end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_client import Client, Clock, Device, RefusedError, World, opened, second_device, signed_up
from scrubjay_cloud.announcements import decoded, encoded
from scrubjay_cloud.database.announcements import CHANNEL, PAYLOAD_BYTES
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.errors import MalformedError

pytestmark = pytest.mark.anyio

SELDOM = CloudPolicy(hash_memory_kib=64, hash_iterations=1, poll_s=3_600.0)
"""Where polling alone would bring nothing while a test lasts."""
SOON_S = 20.0
LISTENERS = "select pid from pg_stat_activity where datname = current_database() and query = %s"


# --- what is told -----------------------------------------------------------------------------------------------------

NEWS = st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.none() | st.integers(0, 2**63 - 1)), max_size=600)


@given(NEWS)
def test_what_is_told_is_heard_and_each_announcement_fits(news: list[tuple[bytes, int | None]]) -> None:
    payloads = encoded("0123456789abcdef", news)

    assert all(len(payload.encode()) <= PAYLOAD_BYTES for payload in payloads)
    heard = [decoded(payload) for payload in payloads]
    assert {sender for sender, _ in heard} <= {"0123456789abcdef"}
    assert [one for _, some in heard for one in some] == news


@given(st.text(alphabet="0123456789abcdefghABCDEF-_,+= é", max_size=200))
def test_whatever_is_announced_is_news_or_refused(payload: str) -> None:
    try:
        _, news = decoded(payload)
    except MalformedError:
        return
    assert all(len(account) == 16 and (gseq is None or gseq >= 0) for account, gseq in news)


# --- two instances ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def instances(
    postgres: str, policy: CloudPolicy = SELDOM, **settings: str
) -> AsyncIterator[tuple[World, Device, World, Device]]:
    """Two instances, an account with a device at each."""
    now = Clock()
    async with (
        opened(postgres, policy=policy, now=now, **settings) as one,
        opened(postgres, policy=policy, now=now, **settings) as two,
    ):
        first = await signed_up(one.client, now=now)
        second = await second_device(first)
        second.client = Client(two.client.http, second.client.token)
        yield one, first, two, second


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    end = time.monotonic() + SOON_S
    while True:
        found = condition()
        if found if isinstance(found, bool) else await found:
            return
        assert time.monotonic() < end, "it did not come to it in time"
        await asyncio.sleep(0.01)


async def news(device: Device) -> list[Envelope]:
    """Wait for objects again and again, as a device does: the account itself has news too."""
    while not (page := await device.pull(wait=25)).objects:
        pass
    return page.objects


def listeners(postgres: str) -> list[int]:
    """The sessions that listen, by their processes."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        return [row[0] for row in connection.execute(LISTENERS, (f"listen {CHANNEL}",))]


async def test_a_push_to_one_instance_is_told_another_that_does_not_poll(postgres: str) -> None:
    async with instances(postgres) as (_, first, two, second):
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(two.service.notifier) == 1 and len(listeners(postgres)) == 1)

        sent = first.segment()
        await first.push(sent)
        async with asyncio.timeout(SOON_S):
            got = await waiting

        assert [one.data for one in got] == [sent.data]


async def test_a_revocation_at_one_instance_ends_the_waiting_at_another(postgres: str) -> None:
    async with instances(postgres) as (_, first, two, second):
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(two.service.notifier) == 1 and len(listeners(postgres)) == 1)

        first.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(second.id, {}))
        await first.append(first.account.entries[-1])

        async with asyncio.timeout(SOON_S):
            with pytest.raises(RefusedError, match="revoked"):
                await waiting


async def test_where_nothing_can_be_heard_the_database_is_asked(postgres: str) -> None:
    nobody = "postgres://127.0.0.1:9/nobody"
    async with instances(postgres, replace(SELDOM, poll_s=0.02), listen_url=nobody) as (_, first, two, second):
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(two.service.notifier) == 1)

        sent = first.segment()
        await first.push(sent)
        async with asyncio.timeout(SOON_S):
            assert [one.data for one in await waiting] == [sent.data]

        await second.drain()
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(two.service.notifier) == 1)
        first.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(second.id, {}))
        await first.append(first.account.entries[-1])

        async with asyncio.timeout(SOON_S):
            with pytest.raises(RefusedError, match="revoked"):
                await waiting


def lost(postgres: str) -> list[int]:
    """End the sessions that listen; return which."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        query = "select pid from pg_stat_activity where application_name = 'scrubjay-cloud-listen'"
        pids = [row[0] for row in connection.execute(query)]
        for pid in pids:
            connection.execute("select pg_terminate_backend(%s)", (pid,))
    return pids


async def test_what_comes_while_the_connection_is_lost_is_found_and_the_next_is_heard_again(postgres: str) -> None:
    async with instances(postgres, replace(SELDOM, poll_s=0.05)) as (_, first, two, second):
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(two.service.notifier) == 1 and len(listeners(postgres)) == 1)
        before = listeners(postgres)

        assert lost(postgres) == before
        sent = first.segment()
        await first.push(sent)
        async with asyncio.timeout(SOON_S):
            assert [one.data for one in await waiting] == [sent.data]

        await second.drain()
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(listeners(postgres)) == 1 and listeners(postgres) != before)
        more = first.segment()
        await first.push(more)
        async with asyncio.timeout(SOON_S):
            assert [one.data for one in await waiting] == [more.data]


async def test_many_changes_are_announced_in_few_words(postgres: str) -> None:
    accounts = [n.to_bytes(16, "big") for n in range(2_000)]
    async with (
        opened(postgres, policy=SELDOM) as world,
        await psycopg.AsyncConnection.connect(postgres, autocommit=True) as ears,
    ):
        await ears.execute(f"listen {CHANNEL}")
        for gseq in range(3):
            for account in accounts:
                world.service.notifier.notify(account, gseq)

        heard: dict[bytes, int | None] = {}
        count = 0
        async for told in ears.notifies(timeout=SOON_S):
            heard |= decoded(told.payload)[1]
            count += 1
            if len(heard) == len(accounts):
                break

    assert heard == dict.fromkeys(accounts, 2), "of each account the last"
    assert count <= 10


async def test_words_of_strangers_disturb_nobody(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    async with instances(postgres) as (_, first, two, second):
        waiting = asyncio.create_task(news(second))
        await until(lambda: len(two.service.notifier) == 1 and len(listeners(postgres)) == 1)

        with psycopg.connect(postgres, autocommit=True) as stranger:
            stranger.execute("select pg_notify(%s, %s)", (CHANNEL, "someone,else's words"))
        await until(lambda: "cannot be read" in caplog.text)
        sent = first.segment()
        await first.push(sent)
        async with asyncio.timeout(SOON_S):
            got = await waiting

    assert [one.data for one in got] == [sent.data]
    assert "else's words" not in caplog.text


async def test_who_only_pushes_opens_no_connection_to_listen(postgres: str) -> None:
    async with opened(postgres, policy=SELDOM) as world:
        device = await signed_up(world.client, now=world.now)
        await device.push(device.segment())

        assert listeners(postgres) == []
