"""Operating the cloud: drills, leases, metrics, litestream, the command, and what bad luck does.

Real files, real processes, a real PostgreSQL, a real litestream.
"""

# ruff: noqa: ASYNC110, ASYNC220, ASYNC221 - one test at a time: nothing else waits for the loop

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_client import ORIGIN, Account, Client, Clock, RefusedError
from cloud_drill import Deployment, client_of, litestream_of, rounds
from cloud_operations import NOW, POLICY, clients, filled, heads_of, opened, settings_of
from quick_disk import quick_folder
from scrubjay_cloud import check, cli, litestream, serving
from scrubjay_cloud import database as port
from scrubjay_cloud.app import create_app
from scrubjay_cloud.backup import back_up, backups
from scrubjay_cloud.cli import main
from scrubjay_cloud.database import sqlite_file
from scrubjay_cloud.jobs import Jobs, take
from scrubjay_cloud.metrics import Metrics, _Objects
from scrubjay_cloud.policy import OPERATIONS, OperationsPolicy
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.verify import verify
from scrubjay_shared.errors import UnavailableError

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where the system has one: these tests wait for many fsyncs."""
    with tempfile.TemporaryDirectory(prefix="sj-ops-", dir=quick_folder()) as name:
        yield Path(name)


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
        assert (await found.read(verify)).holds
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_three_lost_machines_cost_nothing_that_a_device_still_has(folder: Path) -> None:
    found = await rounds(folder, 3)

    assert [one.generation for one in found] == [2, 3, 4]
    assert [one.lost_after_heal for one in found] == [0, 0, 0]
    assert [one.findings for one in found] == [0, 0, 0]
    assert all(one.acknowledged for one in found)


async def test_a_service_that_cannot_write_is_not_ready_and_says_why(cloud_store: str | Path, tmp_path: Path) -> None:
    """A disk without room answered reads, and the service said that it was ready."""
    url = cloud_store if isinstance(cloud_store, str) else ""
    folder = tmp_path if url else Path(cloud_store).parent
    settings, metrics, clock = Settings(data=folder, database_url=url), Metrics(now=Clock(), backups=not url), Clock()
    found = await port.open(settings if url else settings.database_path, now=clock, entropy=os.urandom)

    async def asked(operations: OperationsPolicy) -> tuple[int, dict[str, Any], float | None]:
        jobs = Jobs(found, settings, metrics, holder="one", now=clock, operations=operations)
        await jobs.measure()
        app = create_app(found, settings, now=clock, entropy=os.urandom, problem_now=lambda: jobs.problem)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=ORIGIN) as http:
            answer = await http.get("/readyz")
        return answer.status_code, answer.json(), metrics.registry.get_sample_value("scrubjay_writable")

    full = replace(OPERATIONS, full_bytes=1 << 60)
    before, crowded = await asked(OPERATIONS), await asked(full)
    await found.close()  # as good as a disk that failed
    broken = Jobs(found, settings, metrics, holder="one", now=clock)
    await broken._measured()

    assert before == (200, {"ready": True}, 1)
    if not url:
        assert crowded[::2] == (503, 0)
        assert re.fullmatch("only [0-9]+ MiB of the database's disk are free", crowded[1]["problem"])
    assert broken.problem
    assert metrics.registry.get_sample_value("scrubjay_writable") == 0
