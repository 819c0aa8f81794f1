"""Operating the cloud: backups, restores, drills, migrations, leases, metrics, litestream, and what bad luck does.

Real files, real processes, a real PostgreSQL, a real litestream.
"""

# ruff: noqa: ASYNC110, ASYNC220, ASYNC221, ASYNC230, ASYNC240 - one test at a time: nothing else waits for the loop

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_client import Account, Client, Clock, Device, Entropy, RefusedError, second_device, signed_up
from cloud_drill import Deployment, client_of, litestream_of, rounds
from quick_disk import quick_folder
from scrubjay_cloud import check, cli, database, litestream, serving
from scrubjay_cloud.app import create_app
from scrubjay_cloud.backup import Backup, back_up, backups, to_remove
from scrubjay_cloud.cli import main
from scrubjay_cloud.database import Database, sqlite_file
from scrubjay_cloud.drill import drill
from scrubjay_cloud.jobs import Jobs, take
from scrubjay_cloud.metrics import Metrics, _Objects
from scrubjay_cloud.migrate import LEFT_OUT, TABLES, migrate
from scrubjay_cloud.policy import OPERATIONS, OperationsPolicy
from scrubjay_cloud.restore import fetch, restore
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.verify import verify
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, NotFoundError, UnavailableError

pytestmark = pytest.mark.anyio

NOW = Clock()
ENTROPY = Entropy("ops")
POLICY = OperationsPolicy()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where the system has one: these tests wait for many fsyncs."""
    with tempfile.TemporaryDirectory(prefix="sj-ops-", dir=quick_folder()) as name:
        yield Path(name)


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
        assert (await found.read(lambda tx: verify(tx, NOW()))).holds


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
        assert (await found.read(lambda tx: verify(tx, NOW()))).holds
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
    assert all(one.held for one in drill(settings, now=NOW))
    rng = random.Random(4)
    with Path(made.path).open("r+b") as file:
        for page in range(4, Path(made.path).stat().st_size // 4096, 3):
            file.seek(page * 4096)
            file.write(rng.randbytes(64))

    [told] = drill(settings, now=NOW)
    assert not told.held
    assert "checksum" in told.error
    Path(made.path + ".sha256").write_text(sha256_line(Path(made.path)), encoding="ascii")

    [told] = drill(settings, now=NOW)
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
            moved = await migrate(source, target, now=NOW)
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
            await migrate(source, target, now=NOW)
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
            await migrate(source, target, now=NOW)
        await source.write(lambda tx: tx.execute("update lane set n = n - 1"))

        await migrate(source, target, now=NOW)

        assert (await target.read(lambda tx: verify(tx, NOW()))).holds
        with pytest.raises(ConflictError, match="has 1 accounts"):
            await migrate(source, target, now=NOW)


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


# --- jobs -------------------------------------------------------------------------------------------------------------


async def test_of_two_instances_one_runs_a_job_until_it_is_due_again(folder: Path, cloud_store: Path | str) -> None:
    clock = Clock()
    url = cloud_store if isinstance(cloud_store, str) else ""
    settings = settings_of(folder, database_url=url)
    async with opened(cloud_store) as found, contextlib.AsyncExitStack() as stack:
        # On PostgreSQL two processes' worth of connections; a file belongs to one.
        other = await stack.enter_async_context(opened(cloud_store)) if url else found
        two = [
            Jobs(one, settings, Metrics(now=clock, backups=not url), holder=f"instance {place}", now=clock)
            for place, one in enumerate((found, other))
        ]
        assert sorted(await asyncio.gather(*(one.run("sweep") for one in two))) == [False, True]
        assert [await one.run("sweep") for one in two] == [False, False]
        clock.pass_(OPERATIONS.sweep_s + 1)
        assert sorted(await asyncio.gather(*(one.run("sweep") for one in two))) == [False, True]


async def test_a_job_whose_process_died_is_taken_over_when_its_lease_has_run_out(cloud_store: Path | str) -> None:
    async with opened(cloud_store) as found:
        assert await found.write(lambda tx: take(tx, "backup", "dead", NOW(), 60))
        assert not await found.write(lambda tx: take(tx, "backup", "other", NOW() + 59_000, 60))
        assert await found.write(lambda tx: take(tx, "backup", "other", NOW() + 61_000, 60))


async def test_a_failed_backup_is_counted_and_tried_again_soon(folder: Path) -> None:
    clock = Clock()
    settings = settings_of(folder, backup_folder=folder / "file" / "backups")
    (folder / "file").write_text("no folder")
    metrics = Metrics(now=clock, backups=True)
    async with opened(settings) as found:
        jobs = Jobs(found, settings, metrics, holder="one", now=clock)
        assert await jobs.run("backup")
        assert metrics.registry.get_sample_value(
            "scrubjay_job_runs_total", {"job": "backup", "result": "failed"}
        ) == pytest.approx(1)
        (folder / "file").unlink()
        clock.pass_(OPERATIONS.look_s + 1)
        assert await jobs.run("backup")
        assert len(backups(settings.backups)) == 1
        clock.pass_(3600)
        await jobs.measure()
        assert metrics.registry.get_sample_value("scrubjay_backup_age_seconds") == pytest.approx(3600)
        assert metrics.registry.get_sample_value("scrubjay_restore_drill_age_seconds") == float("inf")
        assert await jobs.run("drill")
        assert metrics.registry.get_sample_value("scrubjay_restore_drill_age_seconds") == pytest.approx(0)


# --- bad luck ---------------------------------------------------------------------------------------------------------


async def test_a_full_disk_is_named_and_leaves_nothing_half_written(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found, clients(found, settings) as client:
        first, second = await filled(client)
        before = await heads_of(first)
        pages = await found.write(lambda tx: tx.rows("pragma page_count"))
        await found.write(lambda tx: tx.rows(f"pragma max_page_count = {pages[0][0] + 2}"))
        made = [first.quick(100_000) for _ in range(4)]

        with pytest.raises(RefusedError) as refused:
            await first.push(*made)

        assert (refused.value.problem.status, refused.value.code) == (503, "unavailable")
        assert "disk is full" in refused.value.problem.detail
        assert await heads_of(first) == before
        assert (await found.read(lambda tx: verify(tx, NOW()))).holds
        assert len(await second.drain()) > 0  # reading goes on
        await found.write(lambda tx: tx.rows("pragma max_page_count = 1000000"))
        assert set(await first.statuses(*made)) == {"ok"}


async def test_a_backup_onto_a_full_disk_fails_with_a_name_and_leaves_nothing(folder: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk")
    settings = settings_of(folder)
    small = folder / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this system lets nobody mount")
    try:
        async with opened(settings) as found, clients(found, settings) as client:
            await filled(client, objects=40)
            with pytest.raises(UnavailableError, match="disk is full"):
                await back_up(found, small / "backups", POLICY, now=NOW())
        assert list((small / "backups").iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


async def test_a_locked_database_is_named_and_the_same_push_succeeds_later(folder: Path) -> None:
    settings = settings_of(folder)
    async with opened(settings) as found, clients(found, settings) as client:
        first, _ = await filled(client)
        await found.write(lambda tx: tx.rows("pragma busy_timeout = 50"))
        made = first.quick(50)
        with contextlib.closing(sqlite_file.raw(settings.database_path, read_only=False)) as other:
            other.execute("begin immediate")
            with pytest.raises(RefusedError) as refused:
                await first.push(made)
            other.execute("rollback")
        assert (refused.value.problem.status, refused.value.problem.detail) == (503, "the server's database is busy")
        assert await first.statuses(made) == ["ok"]


def test_an_old_sqlite_is_refused_and_check_names_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnavailableError, match=r"SQLite 3\.51\.2 can corrupt"):
        sqlite_file.refuse_old_sqlite((3, 51, 2))
    monkeypatch.setattr(sqlite_file, "version_info", (3, 40, 1))

    lines = list(check.checked(settings_of(folder), now=NOW))

    assert ("sqlite", check.Level.FAIL) in {(line.name, line.level) for line in lines}
    assert main(["serve", "--data", str(folder / "data"), "--port", "0", "--metrics-port", "0"]) == 6
    assert "pysqlite3" in capsys.readouterr().err


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["admin", "users", "--data", "{}/none"], 3, "there is no database"),
        (["admin", "restore", "--data", "{}/data"], 2, "needs a backup or a replica"),
        (["admin", "restore", "--data", "{}/data", "--from", "{}/none.db"], 3, "there is no file"),
        (["admin", "restore", "--data", "{}/data", "--replica", "{}/none"], 3, "holds nothing to restore"),
        (["admin", "migrate", "--data", "{}/data"], 2, "needs the address of PostgreSQL"),
        (["admin", "drill", "--data", "{}/data"], 3, "there is no database"),
        (["check", "--ready", "--data", "{}/data", "--port", "1"], 6, "nothing answers"),
        (["serve", "--data", "{}/data", "--port", "99999"], 2, "the port to listen on"),
        (["serve", "--data", "{}/data", "--host", "203.0.113.7"], 2, "not a loopback address"),
    ],
)
def test_what_cannot_be_done_is_said_in_two_lines(  # noqa: PLR0917 - a table's columns
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    said: str,
) -> None:
    for name in list(os.environ):
        if name.startswith(("SCRUBJAY_CLOUD", "DATABASE_URL")):
            monkeypatch.delenv(name)
    (folder / "data").mkdir(mode=0o700)

    assert main([word.format(folder) for word in words]) == code

    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()
    assert first.startswith("scrubjay-cloud: ")
    assert said in first
    assert second.strip()


def test_without_a_data_folder_the_data_is_where_programs_of_the_user_keep_theirs(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_CLOUD_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr(cli, "run", lambda _: None)

    assert main(["serve"]) == 0

    said = capsys.readouterr().err
    [data] = re.findall(r"data folder (\S+)", said)
    assert Path(data).is_relative_to(folder)
    assert Path(data).name == "scrubjay-cloud"
    assert "scrubjay-cloud admin create-invite" in said


def test_check_says_what_to_do_about_every_line_that_is_not_ok(folder: Path, postgres: str) -> None:
    (folder / "open").mkdir(mode=0o755)
    for settings in (
        settings_of(folder),
        replace(settings_of(folder), data=folder / "open"),
        settings_of(folder, database_url=postgres),
        settings_of(folder, database_url="postgres://nobody@127.0.0.1:1/none"),
        settings_of(folder, replica=str(folder / "replica"), origin="https://sync.example.org", pepper="x"),
    ):
        lines = list(check.checked(settings, now=NOW))
        assert all(bool(line.todo) == (line.level is not check.Level.OK) for line in lines)
        assert "nobody" not in str(lines)
    assert not [path for path in folder.iterdir() if path.name != "open"]


# --- metrics ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(min_value=0, max_value=2_000), min_size=1, max_size=6), st.integers(1, 700))
def test_objects_are_counted_however_the_bytes_are_cut(sizes: list[int], step: int) -> None:
    account = Account.make()
    device = account.device(Client(None))  # type: ignore[arg-type] - nothing is sent
    data = b"".join(device.quick(size).data for size in sizes)
    counted = _Objects()

    for start in range(0, len(data), step):
        counted.feed(data[start : start + step])

    assert (counted.objects, counted.bytes) == (len(sizes), len(data))


# --- real processes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def deployment(folder: Path) -> Deployment:
    return Deployment(root=folder)


async def test_a_scrape_counts_what_happened_and_names_nobody(deployment: Deployment) -> None:
    with deployment.serving():
        async with client_of(deployment) as client:
            account = Account.make("ann", origin=deployment.origin)
            first = account.device(Client(client.http))
            await account.register(client)
            await first.authenticate()
            assert set(await first.statuses(*[first.quick(100) for _ in range(5)])) == {"ok"}
            assert len(await first.drain()) == 5
            invitation = deployment.json("admin", "create-invite")
            users = deployment.json("admin", "users")["users"]
            waiting = asyncio.create_task(first.pull(wait=20))
            while deployment.metrics()['scrubjay_waiting{kind="poll"}'] < 1:
                await asyncio.sleep(0.02)
            found = deployment.metrics()
            text = httpx.get(f"http://127.0.0.1:{deployment.metrics_port}/metrics").text
            lost = httpx.get(f"{deployment.origin}/metrics")
            waiting.cancel()

    assert found["scrubjay_pushed_objects_total"] == found["scrubjay_pulled_objects_total"] == 5
    assert found["scrubjay_pushed_bytes_total"] == found["scrubjay_pulled_bytes_total"] > 1_800
    assert found['scrubjay_requests_total{method="POST",route="/v1/push",status="200"}'] == 1
    assert found["scrubjay_generation"] == 1
    assert lost.status_code == 404
    for secret in (account.id.hex(), first.id.hex(), account.name + '"', first.client.token):
        assert secret not in text
    assert invitation["code"] not in deployment.log()
    assert [(user["name"], user["devices"], user["objects"]) for user in users] == [("ann", 1, 5)]
    assert account.auth_key.hex() not in deployment.log()


async def test_a_stop_answers_whoever_waits_at_once(deployment: Deployment) -> None:
    with deployment.serving() as process:
        async with client_of(deployment) as client:
            account = Account.make("ann", origin=deployment.origin)
            first = account.device(Client(client.http))
            await account.register(client)
            await first.authenticate()
            waiting = asyncio.create_task(first.pull(wait=25))
            while deployment.metrics()['scrubjay_waiting{kind="poll"}'] < 1:
                await asyncio.sleep(0.02)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            page = await waiting
            await asyncio.to_thread(process.wait, 10)
    assert page.objects == []
    assert time.monotonic() - began < 8


def gone(process: psutil.Process) -> bool:
    """Whether a process has ended; nobody may have asked for its exit code yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_a_dead_litestream_is_named_and_started_again_and_dies_with_the_service(deployment: Deployment) -> None:
    deployment.more["SCRUBJAY_CLOUD_REPLICA"] = str(deployment.root / "replica")
    with deployment.serving() as process:
        deployment.wait(lambda: deployment.ready()["replica"]["state"] == "replicating", "litestream replicates")
        assert deployment.metrics()["scrubjay_replica_lag_seconds"] < 10
        first = litestream_of(process)
        assert first is not None
        first.kill()
        told = deployment.wait(lambda: (found := deployment.ready()["replica"])["degraded"] and found, "it is noticed")
        assert "died with exit code -9" in told["words"]
        assert deployment.metrics()["scrubjay_replica_up"] == 0
        deployment.wait(lambda: deployment.ready()["replica"]["state"] == "replicating", "it is started again")
        assert deployment.metrics()["scrubjay_replica_restarts"] == 1
        second = litestream_of(process)
        assert second is not None
        process.kill()
        deployment.wait(lambda: gone(second), "it ends with the service")
    assert "replication failed state=dead" in deployment.log()


@pytest.mark.slow
async def test_what_was_written_last_is_in_the_replica_after_an_orderly_stop(deployment: Deployment) -> None:
    deployment.more["SCRUBJAY_CLOUD_REPLICA"] = str(deployment.root / "replica")
    with deployment.serving():
        async with client_of(deployment) as client:
            account = Account.make("ann", origin=deployment.origin)
            first = account.device(Client(client.http))
            await account.register(client)
            await first.authenticate()
            deployment.wait(lambda: deployment.ready()["replica"]["state"] == "replicating", "litestream replicates")
            assert set(await first.statuses(*[first.quick(1000) for _ in range(40)])) == {"ok"}
    shutil.rmtree(deployment.data)

    restored = deployment.json("admin", "restore")

    assert (restored["verified"]["objects"], restored["verified"]["findings"]) == (40, [])


@pytest.mark.slow
async def test_a_litestream_that_runs_already_is_watched_and_not_doubled(deployment: Deployment) -> None:
    deployment.more["SCRUBJAY_CLOUD_REPLICA"] = str(deployment.root / "replica")
    deployment.data.mkdir(parents=True, mode=0o700)
    config = deployment.root / "litestream.yml"
    config.write_bytes(
        litestream.configuration(deployment.database, str(deployment.root / "replica"), OPERATIONS.litestream)
    )
    beside = subprocess.Popen(
        [litestream.program(), "replicate", "-config", config, "-no-expand-env"],
        env=litestream.environment(),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        deployment.wait((deployment.data / "litestream.sock").exists, "litestream listens")
        with deployment.serving() as process:
            deployment.wait(lambda: deployment.ready()["replica"]["state"] == "replicating", "it is watched")
            assert litestream_of(process) is None
    finally:
        beside.terminate()
        beside.wait(10)


async def test_a_replica_that_takes_nothing_is_named_though_litestream_lives(folder: Path) -> None:
    settings, told = settings_of(folder), []
    (folder / "replica").write_text("a file where a folder must be", encoding="ascii")

    async def taken_over(by_litestream: bool) -> None:  # noqa: FBT001 - the callback's one word
        told.append(by_litestream)

    policy = replace(OPERATIONS.litestream, lag_alarm_s=1.5, watch_s=0.2, answer_s=1.0)
    async with opened(settings):
        kept = litestream.Replication(
            settings.database_path,
            str(folder / "replica"),
            policy,
            monotonic=time.monotonic,
            replicating=taken_over,
        )
        await kept.start()
        try:
            while kept.condition.healthy:
                await asyncio.sleep(0.05)
            assert kept.condition.state is litestream.State.FAILING
            assert litestream.as_record(kept.condition)["degraded"] is True
            (folder / "replica").unlink()
            while not kept.condition.healthy:
                await asyncio.sleep(0.05)
            assert told == [True]
        finally:
            await kept.stop()


async def test_only_litestream_checkpoints_while_it_runs(folder: Path) -> None:
    settings = settings_of(folder, replica=str(folder / "replica"))

    async def pages() -> int:
        return (await store.database.write(lambda tx: tx.rows("pragma wal_autocheckpoint")))[0][0]

    async with serving._database(settings, Metrics(now=NOW, backups=True)) as store:
        while await pages():
            await asyncio.sleep(0.05)
        for child in psutil.Process().children():
            if child.name() == "litestream":
                child.kill()
        while not await pages():
            await asyncio.sleep(0.02)


async def test_a_litestream_that_was_stopped_first_is_made_to_send_the_last_writes(folder: Path) -> None:
    settings = settings_of(folder, replica=str(folder / "replica"))

    async def taken_over(by_litestream: bool) -> None:  # noqa: FBT001 - the callback's one word
        pass

    async with opened(settings) as found:
        kept = litestream.Replication(
            settings.database_path,
            settings.replica,
            OPERATIONS.litestream,
            monotonic=time.monotonic,
            replicating=taken_over,
        )
        await kept.start()
        while kept.condition.state is not litestream.State.REPLICATING:
            await asyncio.sleep(0.05)
        for child in psutil.Process().children():
            if child.name() == "litestream":
                child.terminate()  # as a service manager does that stops the whole group
                child.wait(10)
        await found.write(lambda tx: tx.execute("insert into meta (k, v) values ('last', 'words')"))
    await kept.stop()

    litestream.restore(settings.replica, folder / "out.db", timeout_s=60)

    with contextlib.closing(sqlite_file.raw(folder / "out.db", read_only=True)) as connection:
        assert connection.execute("select v from meta where k = 'last'").fetchone() == ("words",)


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


@pytest.mark.slow
async def test_three_lost_machines_cost_nothing_that_a_device_still_has(folder: Path) -> None:
    found = await rounds(folder, 3)

    assert [one.generation for one in found] == [2, 3, 4]
    assert [one.lost_after_heal for one in found] == [0, 0, 0]
    assert [one.findings for one in found] == [0, 0, 0]
    assert all(one.acknowledged for one in found)
