"""The service behind a pgbouncer in transaction mode: several instances, few connections, nothing of a session lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

import bouncer
from cloud_client import Client, Clock, World, opened, second_device, signed_up
from scrubjay_cloud.database.announcements import CHANNEL
from scrubjay_cloud.database.pooler import Way, way
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.policy import Bucket, CloudPolicy, LimitPolicy

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bouncer.found() is None, reason="make pgbouncer builds the pooler that this needs"),
]

WIDE = Bucket(burst=10**9, rate=10**6, draw=10**6)
POLICY = CloudPolicy(
    limits=LimitPolicy(register=WIDE, challenge=WIDE, token=WIDE, push=WIDE, pull=WIDE),
    hash_memory_kib=64,
    hash_iterations=1,
    poll_s=0.05,
)
SELDOM = replace(POLICY, poll_s=3_600.0)
CONNECTIONS = 3


@contextmanager
def direct(address: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def sessions(postgres: str, query: str = "") -> int:
    """How many sessions of others the database has, or of those with this last statement."""
    with direct(postgres) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            " and backend_type = 'client backend' and (query = %s or %s = '')",
            (query, query),
        ).fetchone()
    assert row is not None
    return int(str(row[0]))


async def test_two_instances_share_a_few_connections_and_lose_nothing(postgres: str) -> None:
    now = Clock()
    with bouncer.running(postgres, connections=CONNECTIONS) as address:
        async with opened(address, policy=POLICY, now=now) as one, opened(address, policy=POLICY, now=now) as two:
            devices = [await signed_up(one.client, f"user{n}", now=now) for n in range(8)]
            sent = [[device.segment() for _ in range(6)] for device in devices]

            async def push(place: int) -> None:
                device = devices[place]
                for number, segment in enumerate(sent[place]):
                    device.client.http = (one, two)[(number + place) % 2].client.http
                    assert await device.statuses(segment) == ["ok"]

            await asyncio.gather(*map(push, range(len(devices))))
            got = await asyncio.gather(*(device.drain() for device in devices))

            assert [[each.data for each in some] for some in got] == [[each.data for each in some] for some in sent]
            assert sessions(postgres) <= CONNECTIONS + 1, "one besides, while a connection is replaced"


async def test_statements_are_prepared_where_the_pooler_keeps_track_of_them(postgres: str) -> None:
    async def names(world: World) -> list[str]:
        device = await signed_up(world.client, now=world.now)
        for _ in range(20):
            await device.push(device.segment())
        found = await asyncio.gather(*(world.rows("select name from pg_prepared_statements") for _ in range(4)))
        return [name for rows in found for (name,) in rows]

    with bouncer.running(postgres, connections=1) as address:
        async with opened(address, policy=POLICY) as world:
            assert any(name.startswith("PGBOUNCER_") for name in await names(world))


async def test_without_that_nothing_is_prepared_by_name(postgres: str) -> None:
    with bouncer.running(postgres, connections=2, prepared=0) as address:
        async with opened(address, policy=POLICY) as world:
            devices = [await signed_up(world.client, f"user{n}", now=world.now) for n in range(6)]
            for _ in range(8):
                statuses = await asyncio.gather(*(device.statuses(device.segment()) for device in devices))
                assert statuses == [["ok"]] * len(devices)
            found = await asyncio.gather(*(world.rows("select name from pg_prepared_statements") for _ in range(4)))

    assert not [name for rows in found for (name,) in rows if name.startswith("_pg3_")]


@pytest.mark.parametrize(("prepared", "expected"), [(100, True), (0, False)])
def test_the_way_to_the_database_is_known_by_asking(postgres: str, prepared: int, expected: bool) -> None:  # noqa: FBT001
    with bouncer.running(postgres, prepared=prepared) as address, direct(address) as connection:
        assert way(connection) == Way(pooled=True, prepares=expected)
    with direct(postgres) as connection:
        assert way(connection) == Way(pooled=False, prepares=True)


async def test_each_transaction_has_its_bounds_in_whatever_session_it_runs(postgres: str) -> None:
    def bounds(tx: Transaction) -> list[object]:
        tx.rows("select pg_sleep(0.05)")  # so that they run beside each other, in sessions that nobody has set up
        return [tx.row(f"show {name}") for name in ("statement_timeout", "synchronous_commit")]

    with direct(postgres) as connection:
        connection.execute("alter database " + connection.info.dbname + " set synchronous_commit = off")
    with bouncer.running(postgres, connections=CONNECTIONS) as address:
        async with opened(address, policy=POLICY) as world:
            found = await asyncio.gather(*(world.database.write(bounds) for _ in range(2 * CONNECTIONS)))

    assert found == [[("1min",), ("on",)]] * len(found)


async def test_instances_hear_each_other_by_polling_where_only_the_pooler_is_named(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    with bouncer.running(postgres) as address:
        await _heard(address, POLICY)

    assert "SCRUBJAY_CLOUD_LISTEN_URL" in caplog.text
    assert sessions(postgres, f"listen {CHANNEL}") == 0


async def test_instances_hear_each_other_at_once_where_postgres_itself_is_named_too(postgres: str) -> None:
    with bouncer.running(postgres) as address:
        await _heard(address, SELDOM, listen_url=postgres)


async def _heard(address: str, policy: CloudPolicy, **settings: str) -> None:
    now = Clock()
    async with (
        opened(address, policy=policy, now=now, **settings) as one,
        opened(address, policy=policy, now=now, **settings) as two,
    ):
        first = await signed_up(one.client, now=now)
        second = await second_device(first)
        second.client = Client(two.client.http, second.client.token)
        sent = first.segment()

        async def news() -> bytes:
            while not (page := await second.pull(wait=25)).objects:
                pass
            return page.objects[0].data

        waiting = asyncio.create_task(news())
        while not len(two.service.notifier):  # noqa: ASYNC110 - the service has no event for a test's sake
            await asyncio.sleep(0.01)
        await first.push(sent)
        async with asyncio.timeout(20):
            assert await waiting == sent.data
