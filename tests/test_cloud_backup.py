"""Backups, restores and migrations of the cloud: real files, a real PostgreSQL."""

# ruff: noqa: ASYNC230, ASYNC240 - one test at a time: nothing else waits for the loop

from __future__ import annotations

import contextlib
import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_operations import ENTROPY, NOW, POLICY, clients, filled, heads_of, opened, settings_of
from quick_disk import quick_folder
from scrubjay_cloud.backup import Backup, back_up, backups, to_remove
from scrubjay_cloud.database import sqlite_file
from scrubjay_cloud.drill import drill
from scrubjay_cloud.migrate import LEFT_OUT, TABLES, migrate
from scrubjay_cloud.restore import fetch, restore
from scrubjay_cloud.verify import verify
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, NotFoundError

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where the system has one: these tests wait for many fsyncs."""
    with tempfile.TemporaryDirectory(prefix="sj-ops-", dir=quick_folder()) as name:
        yield Path(name)


# --- backups ----------------------------------------------------------------------------------------------------------


def test_a_month_of_nightly_backups_keeps_seven_days_and_four_weeks() -> None:
    start = datetime(2026, 11, 1, 3, tzinfo=UTC)
    kept: list[Backup] = []
    for day in range(60):
        at = start + timedelta(days=day)
        kept.append(Backup(path=Path(f"{day}"), at=at))
        gone = to_remove(kept, POLICY, now=at)
        kept = [one for one in kept if one not in gone]

    ages = [(at - one.at).days for one in kept]
    assert ages[-7:] == [6, 5, 4, 3, 2, 1, 0]
    assert len(kept) <= POLICY.keep_daily + POLICY.keep_weekly
    assert max(ages) < 7 * POLICY.keep_weekly


@given(st.lists(st.integers(min_value=0, max_value=24 * 90), max_size=40))
def test_the_newest_backup_is_always_kept_and_none_outlives_the_published_bound(hours: list[int]) -> None:
    now = datetime(2026, 11, 22, 3, tzinfo=UTC)
    found = [Backup(path=Path(f"{hour}"), at=now - timedelta(hours=hour)) for hour in sorted(set(hours), reverse=True)]

    gone = to_remove(found, POLICY, now=now)

    kept = [one for one in found if one not in gone]
    assert kept[-1:] == found[-1:]
    assert all((now - one.at).days <= 30 for one in kept[:-1])


async def test_a_backup_has_a_checksum_and_an_unfinished_one_is_cleared_away(folder: Path) -> None:
    settings = settings_of(folder)
    settings.backups.mkdir(parents=True)
    (settings.backups / "server-20260101T000000Z.db.part").write_bytes(b"half")

    async with opened(settings) as found:
        made = await back_up(found, settings.backups, POLICY, now=NOW())

    assert [one.path for one in backups(settings.backups)] == [Path(made.path)]
    assert sorted(path.suffix for path in settings.backups.iterdir()) == [".db", ".sha256"]
    assert Path(made.path).stat().st_mode & 0o077 == 0


# --- restore ----------------------------------------------------------------------------------------------------------


async def test_a_restored_backup_has_a_new_generation_and_clients_heal_what_it_lacks(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found, clients(found, settings) as client:
        first, second = await filled(client)
        await second.drain()
        made = await back_up(found, settings.backups, POLICY, now=NOW())
        after = [second.quick(500) for _ in range(6)]
        assert set(await second.statuses(*after)) == {"ok"}
        full = await heads_of(first)

    done = await restore(settings, source=Path(made.path), timestamp="", now=NOW, entropy=ENTROPY)

    assert (done.generation, done.verified.holds, done.verified.accounts) == (2, True, 1)
    assert (Path(done.kept) / "server.db").is_file()
    async with opened(settings) as found, clients(found, settings) as client:
        first.client.http = second.client.http = client.http
        assert await heads_of(first) != full
        assert set(await first.statuses(*after, path="/v1/heal")) == {"ok"}  # any device may, verbatim
        assert await heads_of(first) == full
        assert [one.data for one in await second.drain()] == [one.data for one in after]
        assert (await found.read(verify)).holds


async def test_a_restore_waits_for_no_running_service(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found:
        made = await back_up(found, settings.backups, POLICY, now=NOW())
        with pytest.raises(ConflictError, match="in use by another process"):
            await restore(settings, source=Path(made.path), timestamp="", now=NOW, entropy=ENTROPY)


def flip(path: Path, sql: str) -> None:
    """Damage a database as no fault of ours could, where SQLite's own checks see nothing."""
    with sqlite_file.translated(path), contextlib.closing(sqlite_file.raw(path, read_only=False)) as connection:
        assert connection.execute(sql).rowcount >= 1


DAMAGE = {
    "a flipped bit in a body": "update object set body = cast(substr(body, 1, 250) || x'ff' || substr(body, 252) as blob)"
    " where kind = 1 and n_from = 8",
    "a lost object": "delete from object where kind = 1 and n_from = 8",
    "a head that is behind": "update lane set n = 3, tip = zeroblob(32) where n > 8",
    "a head that is beyond": "update lane set n = n + 1, tip = zeroblob(32)",
    "a row that names another place": "update object set n_to = 99, n_from = 99 where kind = 1 and n_from = 8",
    "a wrong link": "update object set hash = zeroblob(32) where kind = 1 and n_from = 8",
    "a lane without a row": "delete from lane",
    "a place beyond the last": "update account set gseq = 1",
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_damaged_lane_is_cut_where_it_stops_holding_and_a_device_heals_it(folder: Path, name: str) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found, clients(found, settings) as client:
        first, second = await filled(client)
        full = await heads_of(first)
        made = await back_up(found, settings.backups, POLICY, now=NOW())
    flip(Path(made.path), DAMAGE[name])
    Path(made.path + ".sha256").unlink()

    done = await restore(settings, source=Path(made.path), timestamp="", now=NOW, entropy=ENTROPY)

    assert done.verified.findings
    assert not any(one.fatal for one in done.verified.findings)
    async with opened(settings) as found, clients(found, settings) as client:
        first.client.http = second.client.http = client.http
        assert (await found.read(verify)).holds
        for device in (first, second):
            for lane in device.lanes.values():
                n = (await heads_of(device)).get(lane[0].lane, (0, b""))[0]
                assert set(await device.statuses(*lane[n:], path="/v1/heal")) <= {"ok", "dup"} if lane[n:] else True
        assert await heads_of(first) == full
        counted = await found.read(lambda tx: tx.row("select bytes, objects from account"))
        summed = await found.read(
            lambda tx: tx.row("select sum(size), count(*) from object where superseded_at is null")
        )
        assert counted == summed


async def test_an_account_log_that_does_not_verify_is_not_restored_and_what_was_there_stays(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found, clients(found, settings) as client:
        first, _ = await filled(client)
        made = await back_up(found, settings.backups, POLICY, now=NOW())
        full = await heads_of(first)
    flip(Path(made.path), "update account_log set entry = cast(x'00' || substr(entry, 2) as blob) where seq = 2")
    Path(made.path + ".sha256").unlink()

    with pytest.raises(CorruptError, match="its log does not verify"):
        await restore(settings, source=Path(made.path), timestamp="", now=NOW, entropy=ENTROPY)

    assert not list(settings.data.glob("*restore-*"))
    async with opened(settings) as found, clients(found, settings) as client:
        first.client.http = client.http
        assert await heads_of(first) == full


async def test_a_backup_that_is_not_what_its_checksum_says_is_refused(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found:
        made = await back_up(found, settings.backups, POLICY, now=NOW())
    with Path(made.path).open("ab") as file:
        file.write(b"x")

    with pytest.raises(CorruptError, match="checksum"):
        await restore(settings, source=Path(made.path), timestamp="", now=NOW, entropy=ENTROPY)
    with pytest.raises(NotFoundError, match="there is no file"):
        await restore(settings, source=folder / "none.db", timestamp="", now=NOW, entropy=ENTROPY)
    with pytest.raises(InvalidError, match="needs a backup or a replica"):
        await restore(settings, source=None, timestamp="", now=NOW, entropy=ENTROPY)


async def test_a_file_damaged_page_by_page_is_refused_by_restore_and_told_by_the_drill(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found, clients(found, settings) as client:
        await filled(client, objects=60)
        made = await back_up(found, settings.backups, POLICY, now=NOW())
    assert all(one.held for one in drill(settings))
    rng = random.Random(4)
    with Path(made.path).open("r+b") as file:
        for page in range(4, Path(made.path).stat().st_size // 4096, 3):
            file.seek(page * 4096)
            file.write(rng.randbytes(64))

    [told] = drill(settings)
    assert not told.held
    assert "checksum" in told.error
    Path(made.path + ".sha256").write_text(sha256_line(Path(made.path)), encoding="ascii")

    [told] = drill(settings)
    assert not told.held
    with pytest.raises(CorruptError):
        await restore(settings, source=Path(made.path), timestamp="", now=NOW, entropy=ENTROPY)
    assert not list(settings.data.glob("drill-*"))


def sha256_line(path: Path) -> str:
    return subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout


async def test_on_postgres_a_restore_checks_in_place_and_raises_the_generation(folder: Path, postgres: str) -> None:
    settings = settings_of(folder, database_url=postgres)
    async with opened(settings) as found, clients(found, settings) as client:
        first, _ = await filled(client)
        full = await heads_of(first)
        await found.write(lambda tx: tx.execute("update lane set n = n - 1"))

    done = await restore(settings, source=None, timestamp="", now=NOW, entropy=ENTROPY)

    assert done.generation == 2
    assert len(done.verified.findings) == len(full)
    async with opened(settings) as found, clients(found, settings) as client:
        first.client.http = client.http
        assert await heads_of(first) == full
    with pytest.raises(InvalidError, match="PostgreSQL's tools"):
        await restore(settings, source=folder / "x.db", timestamp="", now=NOW, entropy=ENTROPY)


def test_a_restored_file_whose_index_lacks_rows_is_made_again_of_its_rows(folder: Path) -> None:
    source, target = folder / "backup.db", folder / "fetched.db"
    with closing(sqlite_file.raw(source, read_only=False)) as connection:
        connection.execute("create table t (a integer primary key, b text)")
        connection.execute("insert into t values (1, 'x'), (2, 'y')")
        connection.execute("create index t_b on t (b)")
        connection.execute("pragma writable_schema = on")
        connection.execute("update sqlite_schema set sql = 'CREATE INDEX t_b on t (b) where a > 1' where name = 't_b'")
    with closing(sqlite_file.raw(source, read_only=False)) as connection:
        connection.execute("insert into t values (0, 'z')")  # this index does not take it
        connection.execute("pragma writable_schema = on")
        connection.execute("update sqlite_schema set sql = 'CREATE INDEX t_b on t (b)' where name = 't_b'")
    with closing(sqlite_file.raw(source, read_only=False)) as connection:
        assert "in index t_b" in connection.execute("pragma integrity_check").fetchone()[0]

    fetch("", target, source=source)

    with closing(sqlite_file.raw(target, read_only=True)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("select b from t indexed by t_b order by b").fetchall() == [("x",), ("y",), ("z",)]


# --- migration --------------------------------------------------------------------------------------------------------


async def test_a_service_moves_to_postgres_and_back_and_clients_notice_nothing(folder: Path, postgres: str) -> None:
    settings, back = settings_of(folder), settings_of(folder / "back")
    async with opened(settings) as source, clients(source, settings) as client:
        first, second = await filled(client, "ann", objects=80)
        other, _ = await filled(client, "bob", objects=3)
        await second.drain()
        full = await heads_of(first)
        everything = [one.data for one in await other.drain()]

        async with opened(postgres) as target:
            moved = await migrate(source, target)
            assert moved.verified.holds
            assert moved.rows["account"] == 2

    async with opened(postgres) as source:
        async with clients(source, replace(settings, database_url=postgres)) as client:
            for device in (first, second, other):
                device.client.http = client.http  # the same token, the same cursor
            caps = await client.call("GET", "/v1/caps")
            assert caps.json()["generation"] == 1
            assert await heads_of(first) == full
            assert [one.data for one in await second.drain()] == []
            assert await first.statuses(first.quick(10)) == ["ok"]
            assert len(await second.drain()) == 1
        async with opened(back) as target:
            await migrate(source, target)
    async with opened(back) as found, clients(found, back) as client:
        other.client.http = first.client.http = client.http
        other.cursor = ""
        assert [one.data for one in await other.drain()] == everything
        assert await first.statuses(first.quick(10)) == ["ok"]


async def test_a_migration_refuses_a_target_in_use_and_a_damaged_source_and_clears_a_broken_copy(
    folder: Path, postgres: str
) -> None:
    settings = settings_of(folder)
    async with opened(settings) as source, clients(source, settings) as client, opened(postgres) as target:
        await filled(client, objects=9)
        await target.write(lambda tx: tx.execute("insert into lane values (?, ?, ?, 1, ?)", (b"a", b"b", b"c", b"d")))
        await source.write(lambda tx: tx.execute("update lane set n = n + 1"))
        with pytest.raises(CorruptError, match="its row says"):
            await migrate(source, target)
        await source.write(lambda tx: tx.execute("update lane set n = n - 1"))

        await migrate(source, target)

        assert (await target.read(verify)).holds
        with pytest.raises(ConflictError, match="has 1 accounts"):
            await migrate(source, target)


async def test_every_table_of_the_schema_is_migrated_or_left_out_on_purpose(cloud_store: Path | str) -> None:
    async with opened(cloud_store) as found:
        if found.dialect == "sqlite":
            rows = await found.read(lambda tx: tx.rows("select name from sqlite_master where type = 'table'"))
        else:
            rows = await found.read(
                lambda tx: tx.rows(
                    "select relname::text from pg_class where relnamespace = current_schema()::regnamespace"
                    " and relkind in ('r', 'p') and not relispartition"
                )
            )
    assert {row[0] for row in rows} - {"sqlite_sequence"} == set(TABLES) | LEFT_OUT
