"""What a daemon runs on is taken from under it: its program by an upgrade, its store by whoever deletes the folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import scrubjay
import scrubjay_shared
from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.daemon.watch import Change, Watch
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings
from scrubjay.transports.client import Client, Running, discover, skew
from scrubjay_shared.errors import InvalidError, UnavailableError

PATIENT = DaemonPolicy(start_seconds=90)
OWN = scrubjay.__version__

SERVE = """
import os, sys
from dataclasses import replace
from scrubjay import settings
from scrubjay.daemon.process import run
from scrubjay.policy import DEFAULT
seconds = float(sys.argv[1])
run(settings.load(environ=os.environ), policy=replace(DEFAULT, daemon=replace(DEFAULT.daemon, watch_seconds=seconds)))
"""
"""The daemon in the foreground, with another patience between two looks."""


@pytest.fixture
def chosen(tmp_path: Path) -> Iterator[Settings]:
    loaded = settings_of(tmp_path / "home")
    yield loaded
    control.stop(loaded)


def settings_of(home: Path) -> Settings:
    return options.load(
        environ={
            "SCRUBJAY_HOME": str(home),
            "SCRUBJAY_PORT": "0",
            "SCRUBJAY_MODEL": "none",
            "SCRUBJAY_RERANKER": "none",
        }
    )


def installed(site: Path, version: str) -> Path:
    """Install a copy of this very code, of another version."""
    for package in (scrubjay, scrubjay_shared):
        assert package.__file__ is not None
        source = Path(package.__file__).parent
        shutil.copytree(source, site / source.name)
    upgraded(site, version)
    return site


def upgraded(site: Path, version: str) -> None:
    """Put another version in its place, as installers do: the old file goes, a moment later the new one comes."""
    path = site / "scrubjay" / "version.py"
    text = re.sub(r'^__version__ = ".*"$', f'__version__ = "{version}"', path.read_text(), flags=re.MULTILINE)
    path.unlink()
    time.sleep(0.3)
    path.write_text(text)


@contextmanager
def serving(chosen: Settings, seconds: float, site: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a daemon that looks every so many seconds, from an installation of its own."""
    environ = control._environment(chosen, os.environ)
    if site is not None:
        environ["PYTHONPATH"] = str(site)
    running = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(seconds)], env=environ, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    with running.stderr:
        try:
            until(lambda: (record := Running.of(chosen.data_dir)) is not None and record.pid == running.pid)
            yield running
        finally:
            running.kill()
            running.wait()


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def connected(chosen: Settings) -> Client:
    client = discover(chosen.data_dir)
    assert client is not None
    return client


def command(chosen: Settings, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scrubjay.cli", *words],
        env=control._environment(chosen, os.environ),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


# --- another version ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_older_daemon_is_named_by_every_command_and_replaced_by_restart(
    tmp_path: Path, chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(installed(tmp_path / "site", "0.0.9")))
        older = control.start(chosen, policy=PATIENT).daemon
    assert older.version == "0.0.9"
    words = f"scrubjay: the running daemon is scrubjay 0.0.9, this one is {OWN}; scrubjay daemon restart starts"

    listing = command(chosen, "list", "--json")
    quiet = command(chosen, "list", "--json", "--quiet")
    status = command(chosen, "daemon", "status", "--text")
    doctor = command(chosen, "doctor", "--text")
    again = command(chosen, "daemon", "start", "--text")
    with connected(chosen) as client:
        with pytest.raises(UnavailableError, match=f"scrubjay 0.0.9, this one is {OWN}.*'colour'") as field:
            client.call("POST", "/v1/recall", {"query": "cats", "colour": "blue"})
        with pytest.raises(UnavailableError, match=f"scrubjay 0.0.9, this one is {OWN}.*no such route"):
            client.call("POST", "/v1/dream", {})
    restarted = command(chosen, "daemon", "restart", "--text")

    assert listing.returncode == 0
    assert listing.stderr.startswith(words)
    assert listing.stderr.count("\n") == 1
    assert quiet.stderr == ""
    assert "scrubjay 0.0.9" in status.stdout
    assert status.stderr.startswith(words)
    assert "the running daemon is scrubjay 0.0.9" in doctor.stdout
    assert again.stdout.startswith(f"already running: process {older.pid}")
    assert again.stderr.startswith(words)
    assert field.value.hint.startswith("scrubjay daemon restart")
    assert restarted.returncode == 0
    assert restarted.stderr == ""
    with connected(chosen) as client:
        assert client.running is not None
        assert client.running.version == OWN
        with pytest.raises(InvalidError, match="no field 'colour'"):
            client.call("POST", "/v1/recall", {"query": "cats", "colour": "blue"})


@pytest.mark.parametrize(
    ("daemon", "own", "todo"),
    [
        ("0.9.0", "0.10.0", "restart"),
        ("0.10.0", "0.9.0", "upgrade it"),
        ("1.0.0", "1.0.0rc1", "upgrade it"),
        ("0.1.0", "0.2.0.dev0", "restart"),
        ("", "1.0.0", "restart"),
    ],
)
def test_the_newer_of_two_versions_is_known_by_its_numbers(daemon: str, own: str, todo: str) -> None:
    found = skew(daemon, own)

    assert found is not None
    assert todo in found[1]
    assert skew(own, own) is None


@pytest.mark.slow
def test_an_upgraded_daemon_starts_again_by_itself_as_the_new_version(tmp_path: Path, chosen: Settings) -> None:
    site = installed(tmp_path / "site", "0.0.8")
    with serving(chosen, 0.2, site) as running:
        with connected(chosen) as client:
            client.call("POST", "/v1/memories", {"content": "The cat is called Mog"})

        upgraded(site, "0.0.9")

        until(lambda: (record := Running.of(chosen.data_dir)) is not None and record.version == "0.0.9")
        with connected(chosen) as client:
            assert client.running is not None
            assert client.running.pid == running.pid  # who supervises it sees the same process
            assert client.call("GET", "/v1/stats")["memories"] == 1


@pytest.mark.slow
def test_an_uninstalled_daemon_ends_by_itself_and_says_why(tmp_path: Path, chosen: Settings) -> None:
    site = installed(tmp_path / "site", "0.0.8")
    with serving(chosen, 0.2, site) as running:
        (site / "scrubjay").rename(tmp_path / "removed")

        assert running.wait(60) == 0

    assert "because=scrubjay was uninstalled" in "\n".join(control.logs(chosen))
    assert Running.of(chosen.data_dir) is None


def test_a_file_that_is_absent_for_a_moment_is_not_an_uninstallation(tmp_path: Path) -> None:
    store, program = tmp_path / "memory.db", tmp_path / "__init__.py"
    store.touch()
    program.write_text('__version__ = "1"\n')
    watch = Watch(store, program, "1")

    program.unlink()
    absent = watch.look()
    program.write_text('__version__ = "1"\n# the same again\n')
    same = [watch.look() for _ in range(3)]
    program.write_text("")
    half = [watch.look() for _ in range(3)]
    program.write_text('__version__ = "2"\n')
    other = [watch.look() for _ in range(2)]

    assert absent is None
    assert same == [None] * 3
    assert half == [None] * 3
    assert other == [None, Change.PROGRAM_REPLACED]


# --- the store is gone ----------------------------------------------------------------------------------------------------


def deleted(folder: Path) -> None:
    """Delete the folder of a daemon that runs, and may write a line of its traces meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_daemon_whose_folder_is_deleted_refuses_writes_and_ends(chosen: Settings) -> None:
    with serving(chosen, 5) as running, connected(chosen) as client:
        assert client.call("POST", "/v1/memories", {"content": "The cat is called Mog"})
        deleted(chosen.data_dir)

        with pytest.raises(UnavailableError) as caught:
            client.call("POST", "/v1/memories", {"content": "The dog is called Rex"})
        assert running.stderr is not None
        said = running.stderr.read()
        code = running.wait(60)

    assert "not there any more" in caught.value.message
    assert caught.value.hint
    assert code == UnavailableError.exit_code
    assert f"scrubjay: {chosen.store_path} is not there any more" in said
    assert "Rex" not in said
    assert not chosen.data_dir.exists()


@pytest.mark.slow
def test_a_daemon_that_ends_so_leaves_its_successor_alone(chosen: Settings) -> None:
    with serving(chosen, 6) as running:
        deleted(chosen.data_dir)
        second = control.start(chosen, policy=PATIENT).daemon
        with connected(chosen) as client:
            client.call("POST", "/v1/memories", {"content": "The dog is called Rex"})

        assert running.wait(60) == UnavailableError.exit_code

        with connected(chosen) as client:
            assert client.running == second
            assert client.call("GET", "/v1/stats")["memories"] == 1
    assert chosen.store_path.with_name("memory.db-wal").exists()
    psutil.Process(second.pid).kill()  # its last commits stand in its log alone
    third = control.start(chosen, policy=PATIENT).daemon
    assert third.pid != second.pid
    with connected(chosen) as client:
        assert client.call("GET", "/v1/stats")["memories"] == 1


@pytest.mark.slow
def test_stop_reaches_a_daemon_whose_folder_is_deleted_and_no_other(tmp_path: Path, chosen: Settings) -> None:
    other = settings_of(tmp_path / "other")
    try:
        left, alone = (control.start(each, policy=PATIENT).daemon for each in (chosen, other))
        deleted(chosen.data_dir)

        stopped = control.stop(chosen)

        assert stopped.daemon is not None
        assert stopped.daemon.pid == left.pid
        assert not psutil.pid_exists(left.pid) or psutil.Process(left.pid).status() == psutil.STATUS_ZOMBIE
        assert control.stop(chosen).daemon is None
        assert control.status(other).daemon == alone
    finally:
        control.stop(other)
