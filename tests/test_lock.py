"""One process has the store: what everybody else is told, how soon, and that it is true."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.memory import Memory
from scrubjay.settings import Settings
from scrubjay.store import Holder, StoreInUseError
from scrubjay.store.lock import StoreLock, holder, program
from scrubjay.transports import local
from scrubjay_shared.errors import ConflictError, UnavailableError

KEEPS_OPEN = """
import sys
from scrubjay import Memory
with Memory() as memory:
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def chosen(tmp_path: Path) -> Iterator[Settings]:
    loaded = options.load(environ=environ(tmp_path))
    yield loaded
    control.stop(loaded)


def environ(folder: Path) -> dict[str, str]:
    return {"SCRUBJAY_HOME": str(folder / "home"), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"}


@contextmanager
def script(folder: Path, name: str = "my_script.py") -> Iterator[subprocess.Popen[str]]:
    """Run a person's script that keeps the store of this machine open."""
    path = folder / name
    path.write_text(KEEPS_OPEN)
    running = subprocess.Popen(
        [sys.executable, str(path), "an argument that may be a secret"],
        env=os.environ | environ(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    with running.stdin, running.stdout:
        assert running.stdout.readline() == "open\n"
        yield running
        running.kill()
        running.wait()


def command(folder: Path, *words: str) -> tuple[int, str, float]:
    """Run a command; return its exit code, what it said on stderr, and how many seconds it took."""
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "scrubjay.cli", *words, "--text"],
        env=os.environ | environ(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr, time.monotonic() - began


@pytest.mark.slow
def test_a_command_says_within_seconds_which_script_has_the_store(tmp_path: Path) -> None:
    with script(tmp_path) as running:
        code, said, seconds = command(tmp_path, "stats")

    assert code == ConflictError.exit_code
    assert f"is open in process {running.pid} (" in said
    assert "my_script.py) since" in said
    assert "secret" not in said
    assert "close the Memory there" in said
    assert seconds < 20  # two of them are spent waiting; the rest is a busy machine


@pytest.mark.slow
def test_a_start_of_the_daemon_says_at_once_which_script_has_the_store(tmp_path: Path) -> None:
    with script(tmp_path) as running:
        code, said, seconds = command(tmp_path, "daemon", "start")

    assert code == ConflictError.exit_code
    assert f"process {running.pid}" in said
    assert "my_script.py" in said
    assert seconds < 20


def test_a_script_that_ends_soon_is_waited_for(tmp_path: Path, chosen: Settings) -> None:
    with script(tmp_path) as running:
        said: list[str] = []

        def attempt() -> local.Transport:
            if said and running.poll() is None:
                running.kill()
                running.wait()
            return local.LocalTransport(chosen.store_path, chosen)

        opened = local.in_turn(attempt, wait_s=30, waiting=said.append)
        opened.close()

    assert len(said) == 1
    assert f"process {running.pid}" in said[0]
    assert "waiting up to 2 s" in said[0]


@pytest.mark.slow
def test_a_person_at_a_terminal_reads_what_is_waited_for(tmp_path: Path) -> None:
    with script(tmp_path) as running:
        ours, theirs = pty.openpty()
        waiting = subprocess.Popen(
            [sys.executable, "-m", "scrubjay.cli", "stats"],
            env=os.environ | environ(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        waiting.wait(60)
        said = os.read(ours, 10_000).decode()
        os.close(ours)
        os.close(theirs)

    first, *_ = said.splitlines()
    assert f"process {running.pid}" in first
    assert "waiting up to 2 s for it" in first


@pytest.mark.parametrize(
    "age",
    [
        "dead",
        pytest.param("younger than what it says it wrote", marks=pytest.mark.slow),
        pytest.param("unreadable", marks=pytest.mark.slow),
        pytest.param("of an older version", marks=pytest.mark.slow),
    ],
)
def test_what_a_killed_process_left_behind_names_nobody(tmp_path: Path, chosen: Settings, age: str) -> None:
    with script(tmp_path):
        left = {"pid": 999_999, "kind": "daemon", "name": "scrubjay daemon", "since": time.time()}
        if age.startswith("younger"):
            left |= {"pid": os.getpid(), "since": psutil.Process().create_time() - 60}
        written = {"unreadable": "{", "of an older version": "999999"}.get(age, json.dumps(left))
        chosen.store_path.with_name("memory.db.pid").write_text(written)

        with pytest.raises(StoreInUseError) as caught:
            StoreLock(chosen.store_path).acquire()

    assert caught.value.held is None
    assert "is open in another process" in caught.value.message


@pytest.mark.slow
def test_after_a_kill_the_next_holder_is_named_and_not_the_dead_one(tmp_path: Path, chosen: Settings) -> None:
    with script(tmp_path, "first.py") as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert holder(chosen.store_path) is None

        with script(tmp_path, "second.py") as second:
            found = holder(chosen.store_path)

    assert found is not None
    assert (found.pid, found.kind) == (second.pid, Holder.SCRIPT)
    assert found.name.endswith("second.py")


def test_a_second_memory_in_the_same_process_is_told_so_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path):
        began = time.monotonic()
        with pytest.raises(ConflictError, match=f"open in this process \\({os.getpid()}\\) already"):
            Memory(path)

    assert time.monotonic() - began < 1


@pytest.mark.slow
def test_restore_beside_a_running_daemon_says_to_stop_it(tmp_path: Path, chosen: Settings) -> None:
    control.start(chosen)
    assert command(tmp_path, "backup", str(tmp_path / "copy.db"))[0] == 0

    code, said, _ = command(tmp_path, "restore", str(tmp_path / "copy.db"))

    assert code == ConflictError.exit_code
    assert "(scrubjay daemon) since" in said
    assert "scrubjay daemon stop" in said


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        (["/usr/bin/python3.11", "-P", "-m", "scrubjay.daemon", "41f3"], Holder.DAEMON, "scrubjay daemon"),
        (["python", "/usr/bin/scrubjay", "daemon", "run"], Holder.DAEMON, "scrubjay daemon"),
        (["python", "/usr/bin/scrubjay", "add", "my secret"], Holder.COMMAND, "scrubjay add"),
        (["python", "/usr/bin/scrubjay", "--home", "/x", "add", "my secret"], Holder.COMMAND, "scrubjay"),
        (["python", "-m", "scrubjay.cli", "import", "x"], Holder.COMMAND, "scrubjay import"),
        (["C:\\Python\\python.exe", "C:\\Python\\Scripts\\scrubjay.exe", "list"], Holder.COMMAND, "scrubjay list"),
        (["python", "work/agent.py", "my secret"], Holder.SCRIPT, "python agent.py"),
        (["python", "-X", "dev", "-W", "error", "agent.py"], Holder.SCRIPT, "python agent.py"),
        (["python", "-c", "Memory().add('my secret')"], Holder.SCRIPT, "python -c …"),
        (["python", "-m", "ipykernel_launcher", "-f", "x"], Holder.SCRIPT, "python -m ipykernel_launcher"),
        (["python", "-"], Holder.SCRIPT, "python"),
        (["python"], Holder.SCRIPT, "python"),
        (["python", "-m"], Holder.SCRIPT, "python"),
        ([], Holder.SCRIPT, "python"),
        (["python", "x\x1b[2J.py"], Holder.SCRIPT, "python x?[2J.py"),
    ],
)
def test_a_program_is_named_without_its_arguments(line: list[str], kind: Holder, name: str) -> None:
    assert (kind, name) == program(line)


# --- the file under the lock ---------------------------------------------------------------------------------------------


def deleted(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced(path: Path) -> None:
    path.with_name("new").write_bytes(b"")
    path.with_name("new").replace(path)


@pytest.mark.parametrize("take", [deleted, moved, replaced])
def test_a_write_into_a_store_that_is_gone_is_refused(tmp_path: Path, take: Callable[[Path], None]) -> None:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.add("The cat is called Mog")
        take(path)

        with pytest.raises(UnavailableError, match="not there any more"):
            memory.add("The dog is called Rex")


def test_a_store_that_was_moved_back_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.add("The cat is called Mog")
        moved(path)
        path.with_name("elsewhere.db").rename(path)

        memory.add("The dog is called Rex")

    with Memory(path) as memory:
        assert memory.stats()["memories"] == 2
