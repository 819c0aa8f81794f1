"""The commands of sync as people and scripts run them: real processes, a real server on loopback, and a terminal."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
import os
import pty
import re
import select
import shlex
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, replace
from pathlib import Path

import msgspec
import pytest
import uvicorn
import yaml

import scrubjay.cli
import scrubjay_cloud
import scrubjay_shared
import scrubjay_sync
from scrubjay.cli import notices
from scrubjay.cli.times import moment
from scrubjay_cloud import admin, database
from scrubjay_cloud.app import create_app
from scrubjay_cloud.policy import DEFAULT, Bucket
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_sync import cli, doctor, reference
from scrubjay_sync.api.registry import OPERATIONS
from scrubjay_sync.api.rounds import Fault, Renamed, StatusResponse
from scrubjay_sync.cli import prompts
from scrubjay_sync.keys import password
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.operations.dispatch import HANDLERS
from scrubjay_sync.policy import IDENTITY

ROOT = Path(__file__).parent.parent
PASSWORD = "four quiet words here"
CODE = re.compile(r"\b(?:[0-9A-Z]{6}-){5}[0-9A-Z]{6}\b")


def now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own thread, where anybody may sign up; returns its address."""
    with serving(Settings(data=tmp_path_factory.mktemp("cloud"), registration="open", pepper="p" * 32)) as origin:
        yield origin


@pytest.fixture(scope="module")
def invited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Settings]]:
    """A server where signing up needs an invitation: its address and its settings."""
    settings = Settings(data=tmp_path_factory.mktemp("invited"), registration="invite", pepper="p" * 32)
    with serving(settings) as origin:
        yield origin, settings


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    origin = f"http://127.0.0.1:{port}"
    started, holds = threading.Event(), {}

    async def serve() -> None:
        opened = await database.open(settings, now=now, entropy=os.urandom)
        try:
            often = Bucket(burst=100, rate=1)  # all tests come from one address
            rates = replace(DEFAULT.limits, register=often, login_address=often)
            policy = replace(DEFAULT, hash_memory_kib=64, hash_iterations=1, limits=rates)
            app = create_app(opened, settings, now=now, entropy=os.urandom, policy=policy)
            config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", ws="none")
            running = uvicorn.Server(config)
            holds["server"], holds["service"] = running, app.state.service
            started.set()
            await running.serve()
        finally:
            await opened.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(20)
    while not holds["server"].started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.02)
    yield origin
    holds["service"].stop()
    holds["server"].should_exit = True
    thread.join(20)
    assert not thread.is_alive()


@dataclass(frozen=True)
class Done:
    """What a command wrote, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Home:
    """One machine: a folder for everything of scrubjay's."""

    path: Path

    def run(self, *words: str, stdin: str = "", fails: bool = False) -> dict:
        done = self.raw(*words, stdin=stdin)
        assert (done.returncode != 0) == fails, done.stderr
        answer = json.loads((done.stderr if fails else done.stdout).splitlines()[-1])
        if not fails and words[0] in cli.COMMANDS:
            assert set(answer) in [{one.name for one in fields(record)} for record in reference.prints(words)]
        return answer

    def raw(self, *words: str, stdin: str = "") -> Done:
        """Run a command of the product in this process: starting Python takes longer than most of them."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            code = scrubjay.cli.main(["--home", str(self.path), *words])
        return Done(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@pytest.fixture(autouse=True)
def _headless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_KEYCHAIN", "file")
    least = replace(IDENTITY, kdf_memory_kib=IDENTITY.kdf_floor_memory_kib, kdf_iterations=2, kdf_lanes=1)
    monkeypatch.setattr(password, "IDENTITY", least)


@pytest.fixture
def home(tmp_path: Path) -> Callable[[str], Home]:
    return lambda name: Home(path=tmp_path / name)


def signed_up(home: Home, server: str, username: str) -> RecoveryCode:
    answer = home.run(
        "login", "--server", server, "--username", username, "--sign-up", "--password-stdin", stdin=f"{PASSWORD}\n"
    )
    return RecoveryCode.parse(answer["recovery_code"])


@pytest.mark.slow
def test_a_third_machine_begins_with_a_snapshot(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk, new = home("laptop"), home("desk"), home("new")
    laptop.run("add", "the garden gate is green", "--name", "gate")
    code = signed_up(laptop, server, "snap")
    log_in = ("login", "--server", server, "--username", "snap", "--recovery", "--password-stdin", "--device-name")
    stdin = f"{PASSWORD}\n{code.text}\n"
    desk.run(*log_in, "desk", stdin=stdin)
    desk.run("add", "the shed door is red")
    assert desk.run("sync")["synced"]

    made = desk.run("sync", "snapshot")
    again = desk.run("sync", "snapshot")
    laptop.run("update", "gate", "the garden gate is blue")
    assert laptop.run("sync")["synced"]
    new.run(*log_in, "new", stdin=stdin)

    assert (made["ops"] > 1, made["chunks"], made["sent"]) == (True, 2, 2)
    assert (again["ops"], again["sent"]) == (made["ops"], 0)
    assert "blue" in json.dumps(new.run("recall", "garden gate"))
    assert "red" in json.dumps(new.run("recall", "shed door"))
    assert "green" not in json.dumps(new.run("list"))
    assert new.run("sync")["synced"]
    with contextlib.closing(sqlite3.connect(next(new.path.rglob("memory.db")))) as store:
        assert store.execute("select snapshot from sync_state").fetchall() == [("loaded",)]
        assert store.execute("select count(*) from unconfirmed").fetchall() == [(0,)]
    assert new.run("sync", "status")["faults"] == []


def test_an_account_from_sign_up_to_deletion(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    laptop.run("add", "the garden gate is green")
    code = signed_up(laptop, server, "ann")

    status = laptop.run("sync", "status")
    assert (status["who"]["username"], status["who"]["origin"]) == ("ann", server)
    assert status["pending_ops"] == 0
    assert status["code_unverified"]
    checked = laptop.run("recovery", "verify", "--password-stdin", stdin=code.text.lower() + "\n")
    assert checked["valid"]
    assert not laptop.run("sync", "status")["code_unverified"]
    laptop.run("sync", "quiet", "on")
    assert laptop.run("sync", "status")["quiet"]
    laptop.run("sync", "quiet", "off")
    assert not laptop.run("sync", "status")["quiet"]

    joined = desk.run(
        *("login", "--server", server, "--username", "ann", "--recovery", "--device-name", "desk", "--password-stdin"),
        stdin=f"{PASSWORD}\n{code.text}\n",
    )
    assert joined["who"]["device_name"] == "desk"
    found = desk.run("recall", "garden gate")
    assert "green" in json.dumps(found)

    devices = laptop.run("devices", "list")["devices"]
    assert {one["name"] for one in devices} == {"desk", laptop.run("sync", "status")["who"]["device_name"]}
    assert desk.run("sync")["synced"]  # that somebody recalled it is something new, too
    assert laptop.run("sync")["synced"]
    words = [one.run("sync", "verify")["words"] for one in (laptop, desk)]
    assert words[0] == words[1]
    heads = laptop.raw("sync", "export-heads")
    (laptop.path / "heads.json").write_text(heads.stdout)
    assert desk.run("sync", "verify", "--heads", str(laptop.path / "heads.json"))["same"] > 1
    assert laptop.run("sync", "inspect")["blind"]

    gone = laptop.run("devices", "revoke", "desk", "--confirm", "desk")
    assert [one["revoked"] for one in gone["devices"] if one["name"] != "laptop"].count(True) == 1
    assert desk.run("sync", fails=True)["code"] == "revoked"
    assert "green" in json.dumps(desk.run("recall", "garden gate"))  # its memories stay
    assert desk.run("logout", "--force")["notified"] is False

    deleted = laptop.run("account", "delete", "--confirm", "ann", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert deleted["left"] == 0
    assert laptop.run("sync", fails=True)["code"] == "not_found"
    assert "green" in json.dumps(laptop.run("recall", "garden gate"))
    assert not list((laptop.path / "data").glob("sync.*"))


@pytest.mark.slow
def test_what_one_account_held_goes_to_another_only_when_that_is_said(server: str, home: Callable[[str], Home]) -> None:
    work, desk = home("work"), home("desk")
    work.run("add", "the merger is called bluebird")
    code = signed_up(work, server, "at-work")
    private = signed_up(desk, server, "private")
    work.run("logout")

    def login(username: str, code: RecoveryCode, *words: str, fails: bool = False) -> dict:
        return work.run(
            *("login", "--server", server, "--username", username, "--recovery", "--password-stdin", *words),
            stdin=f"{PASSWORD}\n{code.text}\n",
            fails=fails,
        )

    anew = ("login", "--server", server, "--username", "third", "--sign-up", "--password-stdin")
    for refused in (work.run(*anew, stdin=f"{PASSWORD}\n", fails=True), login("private", private, fails=True)):
        assert refused["code"] == "another_account"
        assert "--bring-all" in refused["hint"]
    assert "bluebird" not in json.dumps(desk.run("sync") and desk.run("recall", "merger"))

    login("at-work", code)  # back to where it was needs no asking
    work.run("logout")
    login("private", private, "--bring-all")
    assert "bluebird" in json.dumps(desk.run("sync") and desk.run("recall", "merger"))


def test_a_machine_without_a_person_is_a_limited_device(server: str, home: Callable[[str], Home]) -> None:
    laptop, runner = home("laptop"), home("runner")
    signed_up(laptop, server, "bob")
    scopes = laptop.run("sync", "scopes", "create", "ci", "--project", "proj_ci")
    assert [one["name"] for one in scopes["scopes"]] == ["home", "ci"]
    laptop.run("add", "the runner may know this", "--project", "proj_ci")
    laptop.run("add", "the runner may not know that")
    laptop.run("sync")

    bundle = laptop.run(
        "devices", "create", "runner", "--scope", "ci", "--read-only", "--password-stdin", stdin=f"{PASSWORD}\n"
    )["bundle"]
    assert runner.run("login", "--bundle", "--password-stdin", stdin=bundle)["who"]["account"]

    assert runner.run("sync")["synced"]
    found = json.dumps(runner.run("list"))
    assert "may know this" in found or "may know this" in json.dumps(runner.run("list", "--project", "proj_ci"))
    assert "may not know that" not in found
    assert runner.run("devices", "rename", "runner", "x", fails=True)["code"] == "denied"
    status = runner.run("sync", "status")
    assert (status["limited"], status["read_only"]) == (True, True)


def pipeline_steps(**values: str) -> list[tuple[str, list[str]]]:
    """Return the commands of ours in the pipeline of docs/sync.md, each with what is sent to it, `${{ }}` filled in."""
    text = (ROOT / "docs" / "sync.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(name: build.*?)```", text, re.DOTALL)
    found = []
    for step in yaml.safe_load(block)["jobs"]["test"]["steps"]:
        lines = re.sub(r"\$\{\{ (.*?) \}\}", lambda match: values[match[1]], step.get("run", "")).splitlines()
        for line in lines:
            sent, _, command = line.rpartition("| ") if "| " in line else ("", "", line)
            if command.startswith("scrubjay "):
                secret = values["secrets.SCRUBJAY_BUNDLE"] + "\n" if "$SCRUBJAY_BUNDLE" in sent else ""
                found.append((secret, shlex.split(command)[1:]))
    return found


@pytest.mark.slow
def test_the_pipeline_of_the_documentation_runs_as_it_stands(server: str, home: Callable[[str], Home]) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "una")
    laptop.run("sync", "scopes", "create", "ci")
    bundle = laptop.run("devices", "create", "runner", "--scope", "ci", "--password-stdin", stdin=f"{PASSWORD}\n")
    for shard in ("1", "2"):
        container, recalled = home(f"container{shard}"), ""
        values = {"secrets.SCRUBJAY_BUNDLE": bundle["bundle"], "matrix.shard": shard, "github.sha": "c0ffee"}
        steps = pipeline_steps(**values, **{"job.status": "success"})
        assert [words[0] for _, words in steps] == ["login", "sync", "recall", "add", "sync"]
        for stdin, words in steps:
            done = container.raw(*words, stdin=stdin)
            assert done.returncode == 0, (words, done.stderr)
            recalled += done.stdout if words[0] == "recall" else ""
        assert ("shard 1 of c0ffee" in recalled) == (shard == "2")  # it knows what the run before has learned

    assert laptop.run("sync")["synced"]
    told = json.dumps(laptop.run("list"))
    assert all(f"shard {shard} of c0ffee: success" in told for shard in "12")
    (runner,) = (one for one in laptop.run("devices", "list")["devices"] if one["limited"])
    assert (runner["name"], runner["seen"] is not None) == ("runner", True)
    laptop.run("devices", "revoke", "runner", "--confirm", "runner")
    assert (
        home("late").run("login", "--bundle", "--password-stdin", stdin=bundle["bundle"], fails=True)["code"]
        == "revoked"
    )


def test_what_a_thief_changed_is_undone_by_a_command_and_the_recovery_code(
    server: str, home: Callable[[str], Home]
) -> None:
    laptop = home("laptop")
    code = signed_up(laptop, server, "vic")
    start = len(laptop.run("sync", "log")["entries"])
    laptop.run("devices", "create", "evil", "--scope", "home", "--password-stdin", stdin=f"{PASSWORD}\n")

    asked = ("recovery", "void", "--from", str(start), "--password-stdin")
    assert laptop.run(*asked, stdin=f"{RecoveryCode(secret=b'n' * 20).text}\n", fails=True)["code"] == "credentials"
    assert laptop.run(*asked, stdin=f"{code.text}\n")["who"]["username"] == "vic"
    assert [one["this"] for one in laptop.run("devices", "list")["devices"]] == [True]
    assert laptop.run("sync")["synced"]
    assert laptop.run("recovery", "void", "--from", str(start), fails=True)["code"] == "invalid"  # nobody types it


@pytest.mark.slow
def test_a_password_is_changed_and_a_second_factor_asked_for(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    code = signed_up(laptop, server, "cat")
    laptop.run("account", "password", "--password-stdin", stdin=f"{PASSWORD}\nfive other words than before\n")

    asked = ("login", "--server", server, "--username", "cat", "--recovery", "--password-stdin")
    assert desk.run(*asked, stdin=f"{PASSWORD}\n{code.text}\n", fails=True)["code"] == "credentials"
    assert desk.run(*asked, stdin=f"five other words than before\n{code.text}\n")["who"]["username"] == "cat"

    wrong = laptop.run("account", "totp", "off", "--password-stdin", stdin="not it at all\n", fails=True)
    assert wrong["code"] == "credentials"
    new = laptop.run("recovery", "rotate", "--password-stdin", stdin=f"{code.text}\n")["recovery_code"]
    assert RecoveryCode.parse(new) != code
    assert laptop.run("recovery", "verify", "--password-stdin", stdin=f"{code.text}\n", fails=True)["code"] == "denied"
    laptop.run("account", "rotate")
    assert [one["what"] for one in laptop.run("sync", "log")["entries"]].count("root key replaced") == 2


def test_an_account_gets_another_name_and_every_device_takes_it_over(
    tmp_path: Path, home: Callable[[str], Home]
) -> None:
    with serving(Settings(data=tmp_path / "server", registration="open", pepper="p" * 32)) as server:
        laptop, desk, other = home("laptop"), home("desk"), home("other")
        code = signed_up(laptop, server, "dora")
        joins(desk, server, "dora", code)
        signed_up(other, server, "emma")
        rename = ("account", "rename", "--password-stdin")

        assert laptop.run(*rename, "dora.m", stdin="not it at all\n", fails=True)["code"] == "credentials"
        taken = laptop.run(*rename, "emma", stdin=f"{PASSWORD}\n", fails=True)["message"]
        assert taken.endswith('answers: "that user name is taken"')
        assert laptop.run(*rename, "Dora.M", stdin=f"{PASSWORD}\n")["who"]["username"] == "dora.m"

        desk.run("sync")
        status = desk.run("sync", "status")
        assert status["who"]["username"] == "dora.m"
        assert [one["message"] for one in status["faults"]][-1].startswith("the account dora is called dora.m now")
        assert not [one for one in laptop.run("sync", "status")["faults"] if "is called" in one["message"]]
        asked = ("login", "--server", server, "--recovery", "--password-stdin", "--username")
        old = home("old").run(*asked, "dora", stdin=f"{PASSWORD}\n{code.text}\n", fails=True)
        new = home("new").run(*asked, "dora.m", stdin=f"{PASSWORD}\n{code.text}\n")
        assert (old["code"], new["who"]["account"]) == ("credentials", status["who"]["account"])
        desk.run("account", "password", "--password-stdin", stdin=f"{PASSWORD}\nfive other words than before\n")


def test_an_invitation_is_checked_before_a_password_is_asked_for(
    invited: tuple[str, Settings], home: Callable[[str], Home]
) -> None:
    origin, settings = invited
    laptop, desk = home("laptop"), home("desk")
    code = invitation(settings)
    asked = ("login", "--server", origin, "--sign-up", "--password-stdin", "--username")

    # A wrong invitation is told of while stdin holds nothing else: no password was read, no code was made.
    refused = laptop.run(*asked, "ann", stdin="not-one\n", fails=True)["message"]
    assert refused.endswith('answers: "that invitation is not valid"')
    assert laptop.run(*asked, "ann", stdin=f"{code}\n{PASSWORD}\n")["recovery_code"]
    again = desk.run(*asked, "ann", stdin=f"{invitation(settings)}\n", fails=True)
    assert again["message"].endswith('answers: "that user name is taken"')


def invitation(settings: Settings) -> str:
    """Make an invitation beside the running server, as its operator does."""
    return asyncio.run(admin.invite(settings, admin.Ways(now=now, entropy=os.urandom))).code


@pytest.mark.slow
def test_what_was_mistyped_at_sign_up_is_asked_for_again(
    invited: tuple[str, Settings], home: Callable[[str], Home]
) -> None:
    origin, settings = invited
    terminal = Terminal(home("laptop"), "login", "--server", origin, "--username", "ben", "--sign-up")

    for typed, said in (("not-one", "that invitation is not valid"), (invitation(settings), "")):
        terminal.until("invitation: ")
        terminal.type(typed)
        terminal.until(said)
    for first, second, said in (
        ("short", None, "that one has 5"),
        (PASSWORD, "something else", "the two passwords are not the same"),
        (PASSWORD, PASSWORD, "Write it down now"),
    ):
        terminal.until("new password (10 characters or more): ")
        terminal.type(first)
        if second is not None:
            terminal.until("the same password again: ")
            terminal.type(second)
        terminal.until(said)
    terminal.process.send_signal(2)
    assert terminal.end() == 130


def test_nobody_is_asked_about_a_device_or_a_scope_that_does_not_exist(
    server: str, home: Callable[[str], Home]
) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "tessa")

    for words in (("devices", "revoke", "nosuch"), ("sync", "scopes", "delete", "nosuch")):
        done = laptop.raw(*words)
        assert json.loads(done.stderr)["code"] == "not_found"  # and nothing stands before it: nothing was asked
    name = laptop.run("sync", "status")["who"]["device_name"]
    assert laptop.run("devices", "revoke", name, fails=True)["message"] == "that is this device"


def test_what_will_be_done_is_not_told_as_done(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    code = signed_up(laptop, server, "jan")
    joins(desk, server, "jan", code)

    asked = laptop.raw("devices", "revoke", "desk").stderr + laptop.raw("account", "delete").stderr
    assert asked.count("This will") == 2
    for told in ("is shut out", "is deleted with", "is replaced"):
        assert told not in asked
    assert not any(one["revoked"] for one in laptop.run("devices", "list")["devices"])


def joins(machine: Home, server: str, username: str, code: RecoveryCode) -> None:
    """Log a machine in as the device that has its folder's name."""
    machine.run(
        *("login", "--server", server, "--username", username, "--recovery", "--password-stdin"),
        *("--device-name", machine.path.name),
        stdin=f"{PASSWORD}\n{code.text}\n",
    )


def test_a_revoked_device_keeps_its_name_and_is_told_what_becomes_of_its_changes(
    server: str, home: Callable[[str], Home]
) -> None:
    laptop, desk = home("laptop"), home("desk")
    code = signed_up(laptop, server, "kim")
    joins(desk, server, "kim", code)
    gone = laptop.run("devices", "revoke", "desk", "--confirm", "desk")["devices"]
    assert [one["name"] for one in gone if one["revoked"]] == ["desk"]
    again = laptop.run("devices", "revoke", "desk", "--confirm", "desk", fails=True)
    assert again["message"] == "desk is revoked already"

    desk.run("sync", fails=True)
    desk.run("add", "nobody else has read this")
    refused = desk.run("logout", fails=True)

    assert "this device was revoked" in refused["message"]
    assert "1 changes" not in refused["message"]
    assert "scrubjay sync sends" not in refused["hint"]  # it would not
    assert "--force" in refused["hint"]
    left = desk.run("logout", "--force")
    assert (left["revoked"], left["notified"]) == (True, False)


def test_a_login_that_fails_writes_one_record_for_programs(home: Callable[[str], Home]) -> None:
    done = home("machine").raw("login", "--json", "--server", "http://127.0.0.1:9", "--username", "ann")

    problem = json.loads(done.stderr)
    assert (done.stdout, problem["code"]) == ("", "unavailable")
    assert "tried again" not in problem["hint"]  # nobody tries


def test_six_words_may_be_given_in_quotes(server: str, home: Callable[[str], Home]) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "lea")

    for words in (["zoo"] * 6, ["zoo zoo zoo zoo zoo zoo"]):
        asked = laptop.run("devices", "approve", "--words", *words, "--password-stdin", stdin=PASSWORD, fails=True)
        assert asked["code"] == "not_found"  # nobody asks
    few = laptop.run("devices", "approve", "--words", "zoo zoo", fails=True)
    assert (few["code"], few["message"]) == ("invalid", "--words takes the 6 words that the machine shows, got 2")


def test_help_and_hints_name_what_an_installation_has() -> None:
    for name in cli.COMMANDS:
        assert "docs/" not in cli.parser_of(name).format_help(), name
    for package in (scrubjay_cloud, scrubjay_shared, scrubjay_sync):
        for path in Path(str(package.__file__)).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                hints = [one.value for one in getattr(node, "keywords", ()) if one.arg == "hint"]
                assert not [one for one in hints if "docs/" in ast.unparse(one)], path


def sync_checks(machine: Home) -> dict[str, tuple[str, str, str]]:
    """What doctor says of sync: the state, what was found and what to do, by the check's name."""
    report = json.loads(machine.raw("doctor").stdout)
    told = [one for one in report["checks"] if one["name"].startswith("sync")]
    return {one["name"]: (one["state"], one["found"], one["todo"]) for one in told}


@pytest.mark.slow
def test_doctor_tells_whether_sync_works(tmp_path: Path, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    laptop.run("add", "something to look at")
    assert sync_checks(laptop)["sync"] == ("ok", "off: this machine is not logged in", "")

    with serving(Settings(data=tmp_path / "cloud", registration="open", pepper="p" * 32)) as origin:
        code = signed_up(laptop, origin, "ann")
        joins(desk, origin, "ann", code)
        laptop.run("sync")
        told = sync_checks(laptop)
        assert {name for name, (state, _, _) in told.items() if state != "ok"} == {"sync account"}
        assert "a device was added to the account" in told["sync account"][1]
        laptop.run("sync", "acknowledge", "--password-stdin", stdin=f"{PASSWORD}\n")
        assert "sync account" not in sync_checks(laptop)
        assert f"logged in as ann at {origin}" in told["sync"][1]
        laptop.run("devices", "revoke", "desk", "--confirm", "desk")
        desk.run("sync", fails=True)
        assert sync_checks(desk)["sync device"][0] == "fail"
        assert desk.raw("doctor").returncode == 6

    laptop.run("add", "written while the server is away")
    laptop.run("sync", fails=True)
    told = sync_checks(laptop)
    assert told["sync server"][0] == told["sync round"][0] == told["sync waiting"][0] == "warn"
    assert "cannot be reached" in told["sync server"][1]
    assert "unavailable" in told["sync round"][1]
    assert told["sync waiting"][1].endswith("not sent yet")
    assert all(todo for state, _, todo in told.values() if state != "ok")


def test_doctor_names_alarms_clocks_and_what_cannot_be_read(server: str, home: Callable[[str], Home]) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "mia")
    status = msgspec.convert(laptop.run("sync", "status"), StatusResponse)
    alarm = Fault(code="split", message="the server shows two histories", hint="stop", at=1)
    renamed = Renamed(memory_id="m", name="wifi~2", claimed="wifi")

    found = {
        one.name: one
        for one in doctor.sync_checks(
            replace(
                status,
                faults=(alarm,),
                clock_off=True,
                clock_offset_ms=-3_600_000,
                quarantined=2,
                renamed=(renamed,),
                last_round=1,
            ),
            now(),
        )
    }

    assert found["sync alarm"].state == "fail"
    assert found["sync alarm"].found == f"{alarm.message} (split, since {moment(Millis(1))})"
    assert "60 minutes ahead of the server's" in found["sync clock"].found
    assert found["sync quarantined"].found.startswith("2 changes of other devices cannot be read")
    assert "scrubjay rename wifi~2 NEW" in found["sync names"].todo
    assert found["sync round"].state == "warn"
    assert found["sync recovery"].todo == "scrubjay recovery verify"


@pytest.mark.slow
def test_who_wrote_what_is_told_by_the_names_of_devices(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    code = signed_up(laptop, server, "nan")
    laptop.run("add", "the gate is green", "--name", "gate")
    laptop.run("sync")
    joins(desk, server, "nan", code)
    desk.run("update", "gate", "the gate is blue")
    laptop.run("update", "gate", "the gate is red")
    desk.run("add", "wifi of the cabin: rose", "--name", "wifi")
    laptop.run("add", "wifi at home: tulip", "--name", "wifi")
    desk.run("sync")
    arrived = laptop.run("sync")

    assert [(one["name"], one["claimed"]) for one in arrived["renamed"]] == [("wifi~2", "wifi")]
    assert laptop.run("sync")["renamed"] == []  # nothing new was received; the status goes on telling
    assert [one["name"] for one in laptop.run("sync", "status")["renamed"]] == ["wifi~2"]
    laptop.run("rename", "wifi~2", "wifi-home")
    assert laptop.run("sync", "status")["renamed"] == []
    shown = laptop.raw("--text", "conflicts").stdout
    assert "· desk ·" in shown
    devices = {one["name"]: one for one in laptop.run("devices", "list")["devices"]}
    assert devices["desk"]["seen"] is not None  # its newest change says so, a beacon only once a day


def test_no_secret_stands_in_a_command_line_an_error_or_a_log(server: str, home: Callable[[str], Home]) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "dan")
    mistyped = "ABCDEF-GHJKMN-PQRSTV-WXYZ01-234567-89ABCD"

    done = laptop.raw("recovery", "verify", "--password-stdin", stdin=mistyped + "\n")

    assert done.returncode == 2
    assert mistyped not in done.stdout + done.stderr
    files = [path for path in laptop.path.rglob("*") if path.is_file()]
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
    for words in cli.COMMANDS:
        text = cli.parser_of(words).format_help()
        assert "--password " not in text
        assert "--code" not in text


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("sync",), "not_found", 3),
        (("sync", "status"), "not_found", 3),
        (("devices", "list"), "not_found", 3),
        (("recovery", "show"), "not_found", 3),
        (("account", "rotate"), "not_found", 3),
        (("logout",), "not_found", 3),
        (("login",), "invalid", 2),
        (("login", "--server", "http://example.org", "--username", "ann"), "invalid", 2),
        (("login", "--bundle", "--password-stdin"), "invalid", 2),
        (("sync", "nonsense"), "invalid", 2),
        (("login", "--server", "http://127.0.0.1:9", "--username", "ann"), "unavailable", 6),
    ],
)
def test_what_cannot_be_done_is_one_error_with_its_exit_code(
    home: Callable[[str], Home], words: tuple[str, ...], code: str, exit_code: int
) -> None:
    done = home("machine").raw(*words)

    problem = json.loads(done.stderr.splitlines()[-1])
    assert (problem["code"], done.returncode) == (code, exit_code)
    assert problem["hint"]


CONTROLLING = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from scrubjay.cli import main
sys.exit(main())
"""
"""Makes the pseudo-terminal the one that passwords are asked at, then runs the command."""


class Terminal:
    """A command in a pseudo-terminal, read and typed into as a person would."""

    def __init__(self, home: Home, *words: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLING, "--home", str(home.path), *words],
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen, self.at = "", 0

    def until(self, words: str, seconds: float = 60) -> str:
        """Return what was written since the last time, up to some words. Escape sequences are left out."""
        deadline = time.monotonic() + seconds
        while words not in self.seen[self.at :]:
            left = deadline - time.monotonic()
            assert left > 0, f"no {words!r} in {self.seen!r}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    part = os.read(self.master, 65536)
                except OSError:
                    part = b""
                assert part, f"it ended without {words!r}: {self.seen!r}"
                self.seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen + part.decode())
        start, self.at = self.at, self.seen.index(words, self.at) + len(words)
        return self.seen[start : self.at]

    def type(self, text: str) -> None:
        os.write(self.master, f"{text}\n".encode())

    def end(self) -> int:
        with contextlib.suppress(OSError):
            while part := os.read(self.master, 65536):
                self.seen += part.decode()
        os.close(self.master)
        return self.process.wait(30)


def test_docs_sync_cli_md_is_what_the_parsers_and_the_records_say() -> None:
    page = Path(__file__).parent.parent / "docs" / "sync-cli.md"

    assert page.read_text(encoding="utf-8") == reference.document(), (
        "python -m scrubjay_sync.reference > docs/sync-cli.md"
    )


PROOF = re.compile(r"once you type there:  ([a-z]+ [a-z]+ [a-z]+)")


def answers(laptop: Home) -> Terminal:
    """A person begins to let in whoever asks, as soon as somebody does, up to where the words are typed."""
    deadline = time.monotonic() + 60
    while not laptop.run("devices", "list")["asking"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    terminal = Terminal(laptop, "devices", "approve")
    terminal.until("Type the 6 words that it shows: ")
    return terminal


def test_a_program_without_a_terminal_or_the_password_lets_nobody_in(
    server: str, home: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "ursula")
    monkeypatch.setattr(prompts, "TERMINAL", tmp_path / "no terminal")
    guarded = [
        ("devices", "create", "spy", "--scope", "home"),
        ("recovery", "rotate", "--lost"),
        ("sync", "scopes", "create", "spied", "--mode", "searchable", "--confirm", "spied"),
    ]
    for words in guarded:
        refused = laptop.run(*words, fails=True)
        assert (refused["code"], "nobody is at a terminal" in refused["message"]) == ("denied", True)
        wrong = laptop.run(*words, "--password-stdin", stdin="not the password\n", fails=True)
        assert (wrong["code"], "password is wrong" in wrong["message"]) == ("denied", True)
    assert len(laptop.run("devices", "list")["devices"]) == 1
    assert "bundle" in laptop.run(*guarded[0], "--password-stdin", stdin=f"{PASSWORD}\n")
    told = [one["message"] for one in laptop.run("sync", "status")["faults"]]
    assert any("a limited device was added" in one for one in told)  # on the very machine that did it
    for more, why in (((), "nobody is at a terminal"), (("--password-stdin",), "password is wrong")):
        refused = laptop.run("sync", "acknowledge", *more, stdin="not the password\n", fails=True)
        assert (refused["code"], why in refused["message"]) == ("denied", True)
    assert laptop.run("sync", "status")["faults"]  # who did it cannot take back that it is told
    laptop.run("sync", "acknowledge", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert not laptop.run("sync", "status")["faults"]


def test_a_revoke_asks_about_the_devices_that_were_let_in_and_the_next_command_tells_of_changes(
    server: str, home: Callable[[str], Home]
) -> None:
    laptop, desk = home("laptop"), home("desk")
    code = signed_up(laptop, server, "quinn")
    joins(desk, server, "quinn", code)
    desk.run("devices", "create", "spy", "--scope", "home", "--password-stdin", stdin=f"{PASSWORD}\n")
    laptop.run("sync")
    shown = {one["name"]: one for one in laptop.run("devices", "list")["devices"]}
    assert shown["spy"]["added_by"] == shown["desk"]["id"]
    (own,) = [one for one in shown.values() if one["this"]]
    assert (shown["desk"]["added_by"], own["added_by"]) == ("", own["id"])

    refused = laptop.run("devices", "revoke", "desk", "--confirm", "desk", fails=True)
    assert (refused["code"], "desk has let in spy" in refused["message"]) == ("conflict", True)
    assert "--also" in refused["hint"]
    told = notices.waiting(laptop.path / "memory.db") or notices.waiting(next(laptop.path.rglob("memory.db")))
    assert len(told) == 2
    assert any("a limited device was added" in message for message, _ in told)
    answer = laptop.run("devices", "revoke", "desk", "--confirm", "desk", "--also", "spy")
    assert {one["name"] for one in answer["devices"] if one["revoked"]} == {"desk", "spy"}
    laptop.run("sync", "acknowledge", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert notices.waiting(next(laptop.path.rglob("memory.db"))) == []
    assert notices.waiting(laptop.path / "none.db") == []


@pytest.mark.slow
def test_a_person_types_a_word_before_a_device_is_made(server: str, home: Callable[[str], Home]) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "wanda")
    for typed, code in (("wrong", 4), (None, 0)):
        terminal = Terminal(laptop, "devices", "create", "runner", "--scope", "home")
        terminal.until("To show that it is you, type ")
        word = terminal.until(": ").removesuffix(": ")
        terminal.type(typed or word)
        assert terminal.end() == code, terminal.seen


@pytest.mark.slow
def test_two_people_at_two_terminals_pair_by_six_words(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    terminal = Terminal(laptop, "login", "--server", server, "--username", "eve", "--sign-up")
    for prompt in ("new password (10 characters or more): ", "the same password again: "):
        terminal.until(prompt)
        terminal.type(PASSWORD)
    shown = terminal.until("of the code: ")
    (code,) = CODE.findall(shown)
    terminal.type("WRONG1")
    terminal.until("that is not group")
    for _ in range(2):
        number = int(terminal.until(" of the code: ").removesuffix(" of the code: ")[-1])
        terminal.type(code.split("-")[number - 1].lower())
    terminal.until("the account is made")
    assert terminal.end() == 0
    assert PASSWORD not in terminal.seen
    assert not laptop.run("sync", "status")["code_unverified"]

    asks = Terminal(desk, "login", "--server", server, "--username", "eve", "--device-name", "desk")
    asks.until("make a new account?")
    asks.type("n")
    asks.until("password: ")
    asks.type(PASSWORD)
    asks.until("Now run")
    lets_in = answers(laptop)
    asks.until("this machine's words:")
    words = asks.until("Type them").split()[:6]
    lets_in.type(" ".join(words[::-1]))
    lets_in.until("was not added")
    lets_in.until("Type the 6 words")
    lets_in.type(" ".join(words).upper())
    proof = lets_in.until("\r\n", 60) + lets_in.until("\r\n")
    lets_in.until("eve")
    assert lets_in.end() == 0
    asks.until("that the other device shows now: ")
    asks.type("zoo zoo zoo")
    asks.until("it is not logged in")
    asks.until("that the other device shows now: ")
    asks.type(" ".join(PROOF.findall(lets_in.seen + proof)[-1].split()))
    asks.until("logged in\r\n")
    assert asks.end() == 0
    assert "scrubjay daemon start keeps this machine in step" in asks.seen
    assert len(desk.run("devices")["devices"]) == 2


@pytest.mark.slow
def test_words_that_do_not_fit_let_nobody_in(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    signed_up(laptop, server, "fay")
    asks = Terminal(desk, "login", "--server", server, "--username", "fay")
    asks.until("make a new account?")
    asks.type("")
    asks.until("password: ")
    asks.type(PASSWORD)
    asks.until("Now run")

    lets_in = answers(laptop)
    for _ in range(3):
        lets_in.type("zoo zoo zoo zoo zoo zoo")
        lets_in.until("was not added")
    assert lets_in.end() == 4
    wrong = laptop.run("devices", "approve", "--words", *["zoo"] * 6, "--password-stdin", stdin=PASSWORD, fails=True)
    assert wrong["code"] == "denied"
    assert "words" in wrong["message"]
    stranger = laptop.run("devices", "approve", "--words", *["zoo"] * 6, "--password-stdin", stdin="no", fails=True)
    assert "password is wrong" in stranger["message"]
    asks.process.send_signal(2)
    assert asks.end() == 130
    assert len(laptop.run("devices", "list")["devices"]) == 1


def test_a_searchable_scope_is_made_only_by_somebody_who_has_read_what_it_means(
    server: str, home: Callable[[str], Home]
) -> None:
    laptop = home("laptop")
    signed_up(laptop, server, "gus")

    refused = laptop.raw("sync", "scopes", "create", "team", "--mode", "searchable")
    assert refused.returncode == 4
    assert "NOT encrypted" in refused.stderr
    guarded = ("sync", "scopes", "create", "team", "--mode", "searchable", "--confirm", "team", "--password-stdin")
    wrong = laptop.run(*guarded, stdin="not the password\n", fails=True)
    assert "password is wrong" in wrong["message"]
    made = laptop.run(*guarded, stdin=f"{PASSWORD}\n")
    assert [one["mode"] for one in made["scopes"]] == ["sealed", "searchable"]


def test_every_operation_has_its_records_and_a_handler_and_none_shows_a_secret() -> None:
    assert HANDLERS.keys() == OPERATIONS.keys()
    for name, (request, response) in OPERATIONS.items():
        assert HANDLERS[name].__doc__, name
        assert request.__doc__, name
        assert response.__doc__, name
        for field in ("auth_key", "new_auth_key", "code", "bundle", "old", "secret", "invite"):
            found = getattr(request, "__dataclass_fields__", {}).get(field)
            assert found is None or not found.repr, f"{name}.{field}"


@pytest.mark.slow
def test_commands_go_through_the_daemon_which_then_syncs_by_itself(server: str, home: Callable[[str], Home]) -> None:
    laptop, desk = home("laptop"), home("desk")
    laptop.run("daemon", "start")
    try:
        code = signed_up(laptop, server, "hal")
        laptop.run("add", "the daemon sent this")
        assert laptop.run("sync")["synced"]
        assert laptop.run("sync", "status")["pending_ops"] == 0
        desk.run(
            *("login", "--server", server, "--username", "hal", "--recovery", "--password-stdin"),
            stdin=f"{PASSWORD}\n{code.text}\n",
        )
        assert "daemon sent this" in json.dumps(desk.run("list"))
        desk.run("add", "the desk answered")
        desk.run("sync")
        deadline = time.monotonic() + 40
        while "desk answered" not in json.dumps(laptop.run("list")):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert "sync" in [job["name"] for job in laptop.run("jobs")["jobs"]]
        assert {ran.get("error") for ran in laptop.run("jobs", "history", "sync")["runs"]} == {None}
        assert laptop.run("logout")["notified"]
        assert laptop.run("sync", fails=True)["code"] == "not_found"
        assert "desk answered" in json.dumps(laptop.run("list"))
    finally:
        laptop.run("daemon", "stop")
