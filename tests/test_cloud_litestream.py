"""What a replica is worth: whatever else reads, copies or empties the database, a restored file is whole.

A real litestream. It reads SQLite's log once a second; what is emptied out of the log before that, and not noticed, is
missing in the replica, and a restored file has old pages among new ones: rows missing from an index, pages never used.
"""

# ruff: noqa: ASYNC110 - one test at a time: nothing else waits for the loop

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from cloud_client import Clock
from quick_disk import quick_folder
from scrubjay_cloud import litestream, serving
from scrubjay_cloud.database import Database, Transaction, sqlite_file
from scrubjay_cloud.database.sqlite import SqliteTransaction
from scrubjay_cloud.metrics import Metrics
from scrubjay_cloud.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings() -> Iterator[Settings]:
    """A folder in memory, where the system has one, with a replica beside."""
    with tempfile.TemporaryDirectory(prefix="sj-lite-", dir=quick_folder()) as name:
        yield replace(Settings(data=Path(name) / "data"), replica=str(Path(name) / "replica"))


@asynccontextmanager
async def replicated(settings: Settings) -> AsyncIterator[Database]:
    """The service's database with the service's litestream, which has said once that all is in the replica."""
    async with serving._database(settings, Metrics(now=Clock(), backups=True)) as opened:
        await replicating(opened)
        yield opened.database


async def replicating(opened: serving._Opened) -> None:
    while opened.condition().state is not litestream.State.REPLICATING:
        await asyncio.sleep(0.02)


def own_litestream() -> psutil.Process:
    return next(child for child in psutil.Process().children() if child.name() == "litestream")


async def put(found: Database, count: int) -> None:
    """Write rows that land all over the table and its index, two or three pages each."""
    for _ in range(count):
        row = (os.urandom(12).hex(), os.urandom(1000).hex())
        await found.write(lambda tx, row=row: tx.execute("insert into meta (k, v) values (?, ?)", row))


def everything(tx: Transaction) -> list[tuple[object, ...]]:
    return sorted(tx.rows("select k, v from meta"))


async def restored_is_whole(settings: Settings, found: Database) -> None:
    """Ask litestream to send all, restore it, and compare."""
    await litestream.synced(settings.database_path, 20)
    expected, out = await found.read(everything), settings.data / "out.db"
    await asyncio.to_thread(litestream.restore, settings.replica, out, timeout_s=60)
    with closing(sqlite_file.raw(out, read_only=True)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert everything(SqliteTransaction(connection)) == expected


@pytest.mark.parametrize("read_only", [True, False])
def test_opening_a_database_writes_nothing_and_empties_no_log(settings: Settings, read_only: bool) -> None:  # noqa: FBT001
    settings.data.mkdir(parents=True)
    path = settings.database_path
    log = path.with_name(path.name + "-wal")
    with closing(sqlite_file.raw(path, read_only=False)) as writer:
        writer.execute("create table t (b)")
        for _ in range(sqlite_file.CHECKPOINT_PAGES):
            writer.execute("insert into t values (randomblob(5000))")
        before = log.read_bytes(), path.read_bytes()

        sqlite_file.raw(path, read_only=read_only).close()

        assert (log.read_bytes(), path.read_bytes()) == before
    with closing(sqlite_file.raw(path, read_only=True)) as reader:
        assert reader.execute("pragma auto_vacuum").fetchone() == (2,)


async def test_a_backup_beside_litestream_costs_the_replica_nothing(settings: Settings) -> None:
    async with replicated(settings) as found:
        for number in range(3):
            await litestream.synced(settings.database_path, 20)
            await put(found, sqlite_file.CHECKPOINT_PAGES // 2)
            await found.copy_to(settings.data / f"backup-{number}.db")
            await put(found, 3)
        await restored_is_whole(settings, found)


@pytest.mark.slow
async def test_what_was_written_while_no_litestream_ran_is_in_the_next_ones_replica(settings: Settings) -> None:
    async with serving._database(settings, Metrics(now=Clock(), backups=True)) as opened:
        await replicating(opened)
        found = opened.database
        await put(found, 200)
        await litestream.synced(settings.database_path, 20)
        own_litestream().kill()
        while opened.condition().state is not litestream.State.DEAD:
            await asyncio.sleep(0.01)
        await put(found, sqlite_file.CHECKPOINT_PAGES // 2 + 3)  # it empties the log by itself, and begins it anew
        await replicating(opened)

        await restored_is_whole(settings, found)


def test_a_log_that_was_emptied_begins_anew_before_a_litestream_reads_it(settings: Settings) -> None:
    """And its old end is gone, by which the next litestream would have known it."""
    settings.data.mkdir(parents=True)
    path = settings.database_path
    log = path.with_name(path.name + "-wal")
    with closing(sqlite_file.raw(path, read_only=False)) as writer:
        tx = SqliteTransaction(writer)

        def insert() -> None:
            tx.execute("insert into t values (randomblob(5000))")

        tx.execute("create table t (b)")
        sqlite_file.empty_log(tx)
        insert()
        size = path.stat().st_size
        while path.stat().st_size == size:
            insert()
        salts, frames = log.read_bytes()[16:24], log.stat().st_size // 4120
        assert frames >= sqlite_file.CHECKPOINT_PAGES  # emptied, and not yet begun anew

        tx.execute("begin immediate")
        sqlite_file.leave_log(tx)
        tx.execute("commit")
        sqlite_file.limit_log(tx)

        begun, emptied = log.read_bytes()[16:24], path.read_bytes()
        assert begun != salts
        assert log.stat().st_size // 4120 == 1
        for _ in range(sqlite_file.CHECKPOINT_PAGES):
            insert()
        assert (log.read_bytes()[16:24], path.read_bytes()) == (begun, emptied)  # left alone from then on


@pytest.mark.slow
async def test_litestream_alone_empties_the_log_from_before_it_runs_until_it_is_gone(settings: Settings) -> None:
    async def pages() -> int:
        found = await opened.database.write(lambda tx: tx.row("pragma wal_autocheckpoint"))
        return int(found[0]) if found else -1

    async with serving._database(settings, Metrics(now=Clock(), backups=True)) as opened:
        assert await pages() == 0
        await replicating(opened)
        assert await pages() == 0
        own_litestream().kill()
        while not await pages():
            await asyncio.sleep(0.01)
        assert opened.condition().state is litestream.State.DEAD
        await replicating(opened)
        assert await pages() == 0
