"""The command line as a process: what it loads, pipes, signals, and others at the same time."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections import Counter

import psutil
import pytest

from cli_shell import EVENTS, ROOT, Shell, checks, environment


def test_help_loads_nothing_that_only_commands_need() -> None:
    heavy = ("numpy", "msgspec", "rich", "asyncio", "onnxruntime", "dataclasses", "sqlite3", "json", "starlette")
    program = f"import sys; from scrubjay.cli import main; main(['--help']); sys.exit(str([m for m in {heavy} if m in sys.modules]))"

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(ROOT), check=False
    )

    assert ended.stderr.strip() == "[]"


def test_importing_scrubjay_loads_nothing() -> None:
    program = "import sys; import scrubjay; sys.exit(str([m for m in sys.modules if m.startswith('scrubjay')]))"

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(ROOT), check=False
    )

    assert ended.stderr.strip() == "['scrubjay']"


def test_a_reader_that_has_enough_is_no_error(shell: Shell) -> None:
    for n in range(3):
        shell.json("add", f"note number {n}")

    ended = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m scrubjay.cli export | head -c 10"],
        capture_output=True,
        env=environment(shell.home),
        check=False,
        timeout=60,
    )

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert len(ended.stdout) == 10


def test_a_line_that_is_not_utf8_is_refused(shell: Shell) -> None:
    ended = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"scrubjay.cli", b"add", b"caf\xe9"],
        capture_output=True,
        env=environment(shell.home),
        check=False,
        timeout=60,
    )

    assert ended.returncode == 2
    assert "UTF-8" in json.loads(ended.stderr)["message"]


def test_ctrl_c_ends_quietly_with_130(shell: Shell) -> None:
    shell.json("init")
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay.cli", "ingest"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(shell.home),
    )
    assert process.stdin is not None
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()
    unread = array.array("i", [1])
    while unread[0] or psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:  # it waits for more
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)  # the input stays open, as that of a person who presses the keys does
    out, err = process.communicate()

    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.slow
def test_commands_at_the_same_time_wait_for_one_another(shell: Shell) -> None:
    shell.json("init")
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "scrubjay.cli", "add", f"note number {n}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(shell.home),
        )
        for n in range(4)
    ]
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in running]

    assert ended == [(b"", 0)] * 4
    assert shell.json("stats")["memories"] == 4


def test_commands_go_through_a_running_daemon(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", environment(shell.home)["PYTHONPATH"])
    assert shell.run("daemon", "status")[0] == 6
    started = shell.json("daemon", "start")
    try:
        again = shell.json("daemon", "start")
        added = shell.json("add", "We chose SQLite", "--name", "database")
        _, _, told = shell.run("--text", "ingest", stdin=EVENTS)
        shell.json("ingest", "--wait", stdin=EVENTS)

        assert "the daemon goes on learning from" in told
        assert (started["already"], again["already"], again["pid"]) == (False, True, started["pid"])
        assert shell.json("daemon", "status")["status"]["pid"] == started["pid"]
        assert shell.json("get", "database")["memory"] == added["memory"]
        assert shell.json("recall", "database")["hits"][0]["id"] == added["memory"]["id"]
        records = Counter(next(iter(json.loads(line))) for line in shell.run("export")[1].splitlines())
        assert (records["event"], records["memory"]) == (3, shell.json("stats")["memories"])
        assert shell.error("get", "nobody")[0] == 3
        assert shell.error("restore", str(shell.home / "data" / "memory.db"))[0] == 5
        assert shell.run("daemon", "logs", "-n", "5")[0] == 0
        assert checks(shell)[0] == 0
    finally:
        stopped = shell.json("daemon", "stop")
    assert (stopped["state"], stopped["pid"], stopped["killed"]) == ("stopped", started["pid"], False)
    assert shell.json("daemon", "stop")["already"] is True
    assert shell.json("get", "database")["memory"]["id"] == added["memory"]["id"]
