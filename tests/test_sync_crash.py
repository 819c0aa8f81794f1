"""Sync over real processes that are killed, hang, lose their disk or have a wrong clock; and what such runs have found.

`make kill-rounds` plays a hundred rounds; here are a few, and the cases that a round does not make.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kill_rounds
from fault_proxy import Passing, Stage
from kill_rounds import CANARY, PASSWORD, USERNAME, Kind, Machine, story
from scrubjay.daemon import control
from scrubjay.store import check
from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import ScrubjayError, UnauthenticatedError, UnavailableError
from scrubjay_sync.account import account_scopes
from scrubjay_sync.api.devices import AnswerRequest, ApproveRequest
from scrubjay_sync.policy import SYNC
from sync_devices import World, world_at

MIB = 1024 * 1024
TEN_DAYS_S = 10 * 86_400


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_9_of_anything() -> None:
    kinds = (Kind.PUSHING, Kind.COMMITTING, Kind.DISK, Kind.CLONED)
    found = kill_rounds.play(4, 7, kinds=kinds, names=kill_rounds.NAMES[:2], say=print_line)

    assert found.acknowledged > 40
    assert found.reincarnations >= 1
    assert found.generations == 1


@pytest.mark.slow
def test_what_was_acknowledged_survives_25_rounds_of_kill_9() -> None:
    print_line(kill_rounds.play(25, 3, say=print_line).text())


# --- what a restored service has lost of the account ------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


@pytest.mark.anyio
@pytest.mark.parametrize("healer", [0, 1], ids=["the device that made it", "another device"])
async def test_a_scope_made_after_the_backup_comes_back_from_a_device(world: World, healer: int) -> None:
    one, _ = await world.device(), await world.device()
    await world.back_up()
    scope = await account_scopes.create_scope(one.member, one.machine, name="work", suite=Suite.SEALED, projects=("w",))
    await one.say("a word of work", project="w")
    await world.settle()
    await world.restore()

    await world.devices[healer].sync()
    third = await world.device()  # it has only what the server says
    await world.settle()

    assert scope in third.member.scopes.ids
    assert third.member.scopes.projects == {"w": scope}
    assert (await third.store.read(lambda q: q.replication.lanes())).keys() >= {(scope, one.machine.device)}
    assert len({await device.digest() for device in world.devices}) == 1


@pytest.mark.anyio
async def test_a_change_of_the_account_right_after_a_restore_does_not_undo_what_it_lost(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.back_up()
    first = await account_scopes.create_scope(one.member, one.machine, name="a", suite=Suite.SEALED)
    await world.settle()
    await world.restore()

    with pytest.raises(ScrubjayError, match="has shown entry"):  # it is print_line, before anything is written over
        await account_scopes.create_scope(two.member, two.machine, name="b", suite=Suite.SEALED)
    await two.sync()
    second = await account_scopes.create_scope(two.member, two.machine, name="b", suite=Suite.SEALED)
    await world.settle()

    assert {first, second} <= set(one.member.scopes.ids)
    assert await one.log() == await two.log()


@pytest.mark.slow
def test_a_device_that_a_restored_service_does_not_know_goes_on_when_another_gives_it_back() -> None:
    with story(1, names=("laptop", "desktop")) as tale:
        laptop, desktop = tale.machines
        backup = Path(shutil.copy(tale.place.json("admin", "backup")["path"], tale.root))
        phone = Machine("phone", tale.root / "phone")
        tale.machines.append(phone)
        phone.start()
        tale.let_in(phone)
        tale.settle(tale.machines)
        for machine in (laptop, desktop):
            machine.kill()  # they are away: nobody but the phone knows of the phone
        tale.lose_disk()
        tale.place.json("admin", "restore", "--from", str(backup))
        tale.start_service()
        with phone.client() as client:
            wrote = client.call("POST", "/v1/memories", {"content": f"from the phone, about {CANARY}"})
            with pytest.raises(UnauthenticatedError, match="does not know this device"):
                phone.ask(client, "sync")
            assert wrote["memory"]["id"] in client.call("GET", path(wrote))["memory"]["id"]

        tale.start([laptop, desktop])  # their first rounds give back what they hold of the account
        with desktop.client() as client:
            tale.place.wait(lambda: has(client, wrote), "the phone's own rounds go on", 180)
        tale.settle(tale.machines)
        tale.check(tale.machines)


def path(wrote: dict[str, Any]) -> str:
    return f"/v1/memories/{wrote['memory']['id']}"


def has(client: Any, wrote: dict[str, Any]) -> bool:
    try:
        client.call("GET", path(wrote))
    except ScrubjayError:
        return False
    return True


# --- a server that hangs, a disk that is full, a clock that is wrong --------------------------------------------------


@pytest.mark.slow
def test_a_server_that_takes_requests_and_never_answers_holds_up_nothing_here() -> None:
    with story(2, names=("laptop",)) as tale:
        (laptop,) = tale.machines
        tale.proxy.hanging = True
        with laptop.client() as client:
            waiting = threading.Thread(target=never_ends, args=(laptop,))
            waiting.start()
            slowest = 0.0
            for number in range(30):
                began = time.monotonic()
                wrote = client.call("POST", "/v1/memories", {"content": f"walnut {number}, {CANARY}"})
                found = client.call("POST", "/v1/recall", {"query": f"walnut {number}"})
                slowest = max(slowest, time.monotonic() - began)
                assert has(client, wrote)
                assert found["hits"]
            assert slowest < SYNC.exit_s  # no request waited for a server that never answers
        stopping = time.monotonic()
        stopped = control.stop(laptop.settings)
        took = time.monotonic() - stopping
        waiting.join(20)

        assert not stopped.killed
        assert took < 2 * SYNC.exit_s  # one last short try, and no more
        assert not waiting.is_alive()
        tale.proxy.hanging = False
        laptop.start()
        tale.settle(tale.machines)


def never_ends(machine: Machine) -> None:
    with machine.client() as client, pytest.raises(UnavailableError):
        machine.ask(client, "sync")


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    folder.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("no mount here")
    if mounted.returncode:
        pytest.skip("only root can make a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_in_the_middle_of_a_pull_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    with small_disk(disk, SYNC.free_bytes + 64 * MIB), story(3, names=("laptop",)) as tale:
        (laptop,) = tale.machines
        desktop = Machine("desktop", disk / "home")
        tale.machines.append(desktop)
        try:
            desktop.start()
            tale.let_in(desktop)
            tale.settle(tale.machines)
            with laptop.client() as client:
                for number in range(40):
                    client.call("POST", "/v1/memories", {"content": f"{number} {CANARY} " + os.urandom(15_000).hex()})
            ballast = disk / "ballast"

            def fill(passing: Passing) -> None:
                if passing.stage is Stage.ANSWERED and passing.path.startswith("/v1/pull") and passing.answer_bytes:
                    with ballast.open("wb") as file:
                        os.posix_fallocate(file.fileno(), 0, os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize)

            tale.proxy.on_stage = fill
            with laptop.client() as client:
                laptop.ask(client, "sync")
            tale.place.wait(ballast.exists, "the other device pulls", 60)
            with desktop.client() as client:
                with pytest.raises(UnavailableError):
                    desktop.ask(client, "sync")
                tale.proxy.on_stage = None
                assert client.call("POST", "/v1/recall", {"query": "walnut"})["hits"] is not None  # reading goes on
                ballast.unlink()
                assert not check(desktop.settings.store_path)
            tale.settle(tale.machines)
            tale.check(tale.machines)
            with desktop.client() as client:
                client.call("POST", "/v1/memories", {"content": f"there is room again for {CANARY}"})
        finally:
            desktop.kill()


@pytest.mark.slow
@pytest.mark.parametrize("off_s", [TEN_DAYS_S, -TEN_DAYS_S], ids=["ahead", "behind"])
def test_a_machine_whose_clock_is_ten_days_off_logs_in_and_syncs(off_s: int) -> None:
    with story(4, names=("laptop",)) as tale:
        (laptop,) = tale.machines
        desktop = Machine("desktop", tale.root / "desktop")
        with laptop.client() as client:
            wrote = client.call("POST", "/v1/memories", {"content": f"of the right time, {CANARY}", "name": "right"})
            laptop.ask(client, "sync")
            login = run_off(
                desktop, off_s, "login", "--server", tale.origin, "--username", USERNAME, "--password-stdin"
            )
            assert login.stdin is not None
            login.stdin.write(f"{PASSWORD}\n")
            login.stdin.flush()
            until = time.monotonic() + 60
            while not laptop.ask(client, "devices")["asking"]:
                assert time.monotonic() < until
                time.sleep(0.2)
            laptop.ask(client, "answer", AnswerRequest())
            proof = laptop.ask(client, "approve", ApproveRequest(words=words_of(login)))["proof"]
            out, errors = login.communicate(f"{' '.join(proof)}\n", timeout=60)
            assert login.returncode == 0, f"{out}\n{errors}"

            said(run_off(desktop, off_s, "add", f"of a wrong time, {CANARY}"))
            said(run_off(desktop, off_s, "update", "right", f"seen and changed, {CANARY}"))
            said(run_off(desktop, off_s, "sync"))
            assert "clock" in said(run_off(desktop, off_s, "sync", "status"))
            laptop.ask(client, "sync")

            assert client.call("GET", path(wrote))["memory"]["content"] == f"seen and changed, {CANARY}"
            client.call("PATCH", path(wrote), {"content": f"and changed back, {CANARY}"})
            laptop.ask(client, "sync")
        said(run_off(desktop, off_s, "sync"))
        assert "and changed back" in said(run_off(desktop, off_s, "get", "right"))
        tale.check(tale.machines)


OFF = """
import sys, time
off = int(sys.argv.pop(1))
real, real_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: real() + off, lambda: real_ns() + off * 10**9
from scrubjay.cli import main
sys.exit(main())
"""


def run_off(machine: Machine, off_s: int, *words: str) -> subprocess.Popen[str]:
    """Run a command on a machine without a daemon, in a process whose clock is off."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    return subprocess.Popen(
        [sys.executable, "-c", OFF, str(off_s), *words],
        env=kept
        | {
            "SCRUBJAY_HOME": str(machine.home),
            "SCRUBJAY_MODEL": "none",
            "SCRUBJAY_KEYCHAIN": "file",
            "SCRUBJAY_PORT": "0",
            "COLUMNS": "200",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, f"{out}\n{errors}"
    return out + errors


def words_of(login: subprocess.Popen[str]) -> tuple[str, ...]:
    assert login.stderr is not None
    for line in login.stderr:
        if found := re.search(r"this machine's words:\s+((?:[a-z]+ ?){6})", line):
            return tuple(found.group(1).split())
    raise AssertionError(f"it showed no words: {login.communicate()}")


# --- found by rounds --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_write_in_the_middle_of_a_new_incarnation_is_no_write_of_the_other_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await world.device(), await world.device()
    (world.path / "copy").mkdir()
    copy = await world.copied(one, world.path / "copy")
    await one.note("only the original has it")
    await one.sync()
    asked, op_ids, read = [], OpLogQueries.op_ids, copy.store.read

    def noted(self: OpLogQueries, device: str) -> dict[int, bytes]:
        asked.append(self)
        return op_ids(self, device)

    async def while_it_is_written(work: Any) -> Any:
        before = len(asked)
        found = await read(work)
        if len(asked) > before:
            await copy.note("written while the copy finds out")
        return found

    monkeypatch.setattr(OpLogQueries, "op_ids", noted)
    monkeypatch.setattr(copy.store, "read", while_it_is_written)
    assert (await copy.sync()).new_incarnation
    monkeypatch.undo()
    await world.settle()

    assert len({await device.digest() for device in world.devices}) == 1
    assert await two.contents() == ["only the original has it", "written while the copy finds out"]
