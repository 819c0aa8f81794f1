"""Starts, stops and watches the daemon from another process. Asked for a state that already holds, it says so.

A daemon is told from a stranger by what it wrote about itself: its process id together with that process's start time,
and the nonce that /healthz answers with. Only what matches is stopped; a process id alone proves nothing, for ids are
given out again. Who may write is settled by the store's lock and by nothing here.

A daemon takes a while to start and can be overtaken by a stop. So each stop leaves a new mark in the data directory, a
start hands the mark it found to its process, and a process that finds another one when it is ready to serve ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import psutil

from scrubjay import settings as options
from scrubjay.model_choice import Origin
from scrubjay.policy import DEFAULT, DaemonPolicy
from scrubjay.spawning import NO_WINDOW
from scrubjay.transports.client import STOP_NAME, STOP_PATH, Client, Running, discover, greeting
from scrubjay.transports.one_request import HANDSHAKE_SECONDS
from scrubjay_io import private_files
from scrubjay_shared.errors import DeniedError, ScrubjayError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scrubjay.settings import Settings

MODULE = "scrubjay.daemon"
"""What `python -m` runs as the daemon."""

CLOCK_SLACK_SECONDS = 0.02
"""Two readings of one process's start differ by less: the system counts in ticks of 10 ms."""


class State(StrEnum):
    """How a daemon is. `stale`: it died without a word. `silent`: its process lives and does not answer."""

    RUNNING = "running"
    STOPPED = "stopped"
    STALE = "stale"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is known of the daemon from outside. `answer` is its own `status` (`api.StatusResponse`) while it runs.

    A daemon that runs and still has no answer fails at that question: its log says why.
    """

    state: State
    daemon: Running | None = None
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The daemon that runs now; `already` when it did before."""

    daemon: Running
    already: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The daemon that ran, None when none did; `killed` when it had to be forced."""

    daemon: Running | None
    killed: bool = False


def start(settings: Settings, *, policy: DaemonPolicy = DEFAULT.daemon) -> Started:
    """Start the daemon in the background and return when it serves.

    Raises the error the daemon ended with, or UnavailableError with its last log lines when it does not serve within
    `policy.start_seconds`; then it is left to go on, for it may be migrating a large store.
    """
    if (found := _serving(settings)) is not None:
        return Started(daemon=found, already=True)
    options.ensure_dirs(settings)
    size_before = settings.log_path.stat().st_size if settings.log_path.exists() else 0
    deadline = time.monotonic() + policy.start_seconds
    mark = stop_mark(settings.data_dir)
    process = _spawned(settings, mark)
    while time.monotonic() < deadline:
        ended = process.poll()
        if (found := _serving(settings)) is not None:
            # Where another start was faster, ours ends by itself: it finds the lock taken, and whose it is.
            _await_end(process)
            return Started(daemon=found, already=found.pid != process.pid)
        if ended == 0:  # it gave way to a daemon that has died since, or it was told to stop
            if stop_mark(settings.data_dir) != mark:
                raise UnavailableError(
                    "the daemon was told to stop while it started", hint="scrubjay daemon start starts it again"
                )
            process = _spawned(settings, mark)
        elif ended is not None:
            raise _start_error(ended, _written_since(settings.log_path, size_before))
        time.sleep(policy.poll_seconds)
    _await_end(process)
    lines = _written_since(settings.log_path, size_before)
    raise UnavailableError(
        f"the daemon (process {process.pid}) has not begun to serve within {policy.start_seconds:.0f} s; "
        f"its log ends: {' | '.join(lines[-5:]) or 'empty'}",
        hint="it goes on starting: scrubjay daemon status says when it serves, scrubjay daemon logs what it does",
    )


def stop(settings: Settings, *, policy: DaemonPolicy = DEFAULT.daemon) -> Stopped:
    """Ask the daemon to stop and wait until it has; kill it when it takes longer than `policy.stop_seconds`.

    Nothing it has acknowledged is lost either way. No daemon is a success; one that is still starting ends by itself.
    """
    _leave_mark(settings.data_dir)
    record = Running.of(settings.data_dir)
    process = None if record is None else _process_of(record)
    if record is None or process is None:
        record = _unrecorded(settings)
        process = None if record is None else _process_of(record)
    if record is None or process is None:
        return Stopped(daemon=None)
    try:
        if not _asked_to_stop(settings, record):
            process.terminate()
        if _gone(process, policy.stop_seconds, policy.poll_seconds):
            return Stopped(daemon=record)
        process.kill()
    except psutil.NoSuchProcess:
        return Stopped(daemon=record)
    except psutil.AccessDenied as error:
        raise DeniedError(
            f"process {record.pid} belongs to another user", hint="stop it as the user who started it"
        ) from error
    if not _gone(process, policy.stop_seconds, policy.poll_seconds):
        raise UnavailableError(
            f"process {record.pid} does not end, not even when killed", hint="its disk may hang; try again later"
        )
    return Stopped(daemon=record, killed=True)


def _asked_to_stop(settings: Settings, record: Running) -> bool:
    """Ask a daemon to end itself, and say whether it does.

    On Windows that is the only way by which it puts in order what it leaves behind: there, a signal ends it at once.
    """
    try:
        client = discover(settings.data_dir)
        if client is None:
            return False
        with client:
            same = client.running is not None and client.running.instance == record.instance
            return same and bool(client.call("POST", STOP_PATH, {}, timeout=HANDSHAKE_SECONDS).get("stopping"))
    except ScrubjayError:  # it is silent, or of a version that knows of no such request
        return False


def restart(settings: Settings, *, policy: DaemonPolicy = DEFAULT.daemon) -> Started:
    """Stop the daemon, where one runs, and start it with the code that is installed now."""
    stop(settings, policy=policy)
    return start(settings, policy=policy)


def status(settings: Settings) -> Health:
    """Return how the daemon is, asking it when it runs."""
    try:
        client = discover(settings.data_dir)
        if client is not None:
            with client:
                return Health(state=State.RUNNING, daemon=client.running, answer=_own_word(client))
    except UnavailableError:
        return Health(state=State.SILENT, daemon=Running.of(settings.data_dir))
    record = Running.of(settings.data_dir)
    if record is None:
        return Health(state=State.STOPPED)
    return Health(state=State.STALE if _process_of(record) is None else State.SILENT, daemon=record)


def logs(settings: Settings, lines: int = DEFAULT.daemon.log_lines) -> list[str]:
    """Return the last lines of the daemon's log, oldest first; none when there is no log yet."""
    return _written_since(settings.log_path, 0)[-lines:] if lines > 0 else []


def stop_mark(data_dir: Path) -> str:
    """Return the mark of the last stop, "" before the first."""
    try:
        return (data_dir / STOP_NAME).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def _leave_mark(data_dir: Path) -> None:
    with contextlib.suppress(OSError):  # no directory: nothing to stop; no space: stopping must work all the same
        descriptor = private_files.opener(str(data_dir / STOP_NAME), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(8))


def _await_end(process: subprocess.Popen[bytes]) -> None:
    """Have somebody wait for our child: otherwise it would stay a zombie for as long as we live."""
    threading.Thread(target=process.wait, name="scrubjay-daemon-end", daemon=True).start()


def _serving(settings: Settings) -> Running | None:
    """Return the daemon that serves this data directory now: the one that answered, not one read of beside it."""
    try:
        client = discover(settings.data_dir)
        if client is None:
            return None
        with client:
            answer = client.call("GET", "/readyz")
    except ScrubjayError:
        return None
    running = client.running
    # A daemon that was killed since the greeting leaves its socket to the next, which would answer in its place.
    same = running is not None and answer.get("instance", running.instance) == running.instance
    return running if same and answer.get("ready") else None


def _own_word(client: Client) -> dict[str, Any] | None:
    """Return what a daemon says of itself; None when that very question fails in it."""
    try:
        return client.call("GET", "/v1/status")
    except UnavailableError:
        raise
    except ScrubjayError:
        return None


def _process_of(record: Running) -> psutil.Process | None:
    """Return the daemon's own process while it lives, never one that merely got its number."""
    try:
        process = psutil.Process(record.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        if abs(process.create_time() - record.create_time) <= CLOCK_SLACK_SECONDS:
            return process
        # The start time is derived from the wall clock and moves when that is set: then its own word counts.
        answer = greeting(record)
        return process if answer is not None and answer.get("pid") == record.pid else None
    except (psutil.NoSuchProcess, psutil.AccessDenied, UnavailableError):
        return None


def _unrecorded(settings: Settings) -> Running | None:
    """Return a daemon that serves this data directory and whose record is lost, because the directory was deleted.

    It must be this user's, run our module with this data directory in its environment, and listen: one that does not
    listen yet is on its way in, and ends by itself at the mark of the stop.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            line = process.cmdline()
            if (
                MODULE in line
                and process.username() == psutil.Process().username()
                and process.environ().get(options.OPTIONS["data_dir"].variable) == str(settings.data_dir)
                and (
                    listening := [each for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
                )
            ):
                return Running(
                    pid=process.pid,
                    create_time=process.create_time(),
                    host=listening[0].laddr.ip,
                    port=listening[0].laddr.port,
                    socket=None,
                    version="",
                    instance="",
                    started=int(process.create_time() * 1000),
                )
    return None


def _gone(process: psutil.Process, seconds: float, poll_seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(poll_seconds)
    return False


def _spawned(settings: Settings, mark: str) -> subprocess.Popen[bytes]:
    """Start the process, detached: its own session, no terminal, its output in the log. `mark`: see `stop_mark`."""
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    descriptor = private_files.opener(str(settings.log_path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        return subprocess.Popen(  # noqa: S603  # our own interpreter and module
            # -P: the folder somebody stands in must not be able to replace our modules
            [sys.executable, "-P", "-m", MODULE, mark],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            cwd=settings.data_dir,
            env=_environment(settings, os.environ),
            **detached,
        )
    finally:
        os.close(descriptor)


_CHOSEN_ELSEWHERE = frozenset(("model", "reranker", *options.WRITER_DEFAULTS))
"""Settings that the store or the file may change while it runs, unless a person gave them for this one process."""


def _environment(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the child reads these very settings, from another working folder."""
    child = dict(environ)
    for option in options.OPTIONS.values():
        value = getattr(settings, option.key)
        child[option.variable] = "" if value is None else str(value)
        if option.key in _CHOSEN_ELSEWHERE and settings.origins.get(option.key) not in {
            Origin.FLAG,
            Origin.ENVIRONMENT,
        }:
            child[option.variable] = ""  # the child reads the settings file itself
    child["SCRUBJAY_CONFIG"] = str(settings.config_path) if settings.config_path.exists() else ""
    if not child["SCRUBJAY_CONFIG"]:  # the child looks where one would be made, and never into another home's
        child["SCRUBJAY_HOME"] = str(settings.config_path.parent)
    if child.get("PYTHONPATH"):
        child["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in child["PYTHONPATH"].split(os.pathsep))  # noqa: PTH100
    return child


def _start_error(exit_code: int, lines: list[str]) -> ScrubjayError:
    """Return the error a daemon ended with, out of its exit code and the two lines it leaves in the log."""
    if exit_code < 0:
        return UnavailableError(
            f"the daemon was ended by signal {-exit_code} while it started",
            hint="scrubjay daemon start starts it again",
        )
    kind = {kind.exit_code: kind for kind in ScrubjayError.__subclasses__()}.get(exit_code, UnavailableError)
    for place in range(len(lines) - 1, -1, -1):
        if lines[place].startswith("scrubjay: "):
            hint = lines[place + 1].strip() if place + 1 < len(lines) else ""
            return kind(lines[place].removeprefix("scrubjay: "), hint=hint)
    return UnavailableError(
        f"the daemon ended while it started (exit code {exit_code}); its log ends: {' | '.join(lines[-5:]) or 'empty'}",
        hint="scrubjay daemon run shows all of it",
    )


def _written_since(path: Path, size_before: int) -> list[str]:
    """Return the log's lines from an offset on, at most the last megabyte of them."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = size_before if size_before <= size else 0  # it was rotated meanwhile
            file.seek(max(start, size - 1_048_576))
            return file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
