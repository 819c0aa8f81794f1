"""`scrubjay daemon`: starts, stops and watches the daemon, or is it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from scrubjay import api
from scrubjay.cli import invocation
from scrubjay.cli.lazy import Later
from scrubjay.cli.output import Output, write_bytes
from scrubjay.daemon import control
from scrubjay_shared.errors import ConflictError, UnavailableError

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli import render
    from scrubjay.daemon.control import Health, Started
    from scrubjay.settings import Settings
else:
    render = Later("scrubjay.cli.render")

FOLLOW_S = 0.5
"""Between two looks at a log that is followed: soon enough to read along, too seldom to be felt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonReport:
    """How the daemon is: running, stopped, stale (it was killed or crashed) or silent (it runs and does not answer).

    `already` is true when the state asked for held before; `killed` when stopping had to be forced. `status` is what
    the daemon says of itself while it runs.
    """

    state: str
    pid: int | None = None
    address: str | None = None
    socket: str | None = None
    already: bool = False
    killed: bool = False
    status: api.StatusAnswer | None = None


def daemon(line: Namespace) -> int:
    """Start, stop or watch the daemon."""
    chosen = invocation.settings_of(line)
    out = Output.of(line)
    match line.verb:
        case "start":
            return _started(control.start(chosen), out)
        case "restart":
            return _started(control.restart(chosen), out)
        case "stop":
            return _stop(chosen, out)
        case "status":
            return _status(chosen, out)
        case "logs":
            return _logs(chosen, line)
        case _:
            return _run(chosen)


def _started(started: Started, out: Output) -> int:
    running = started.daemon
    report = DaemonReport(
        state="running",
        pid=running.pid,
        address=f"http://{running.host}:{running.port}",
        socket=running.socket,
        already=started.already,
    )
    word = "already running" if started.already else "started"
    out.answer(report, lambda: f"{word}: process {running.pid} on {report.address}")
    for warning in running.warnings:
        out.remark(warning)
    if not out.quiet:
        invocation.say_version(running)
    return 0


def _stop(chosen: Settings, out: Output) -> int:
    stopped = control.stop(chosen)
    pid = None if stopped.daemon is None else stopped.daemon.pid
    report = DaemonReport(state="stopped", pid=pid, already=pid is None, killed=stopped.killed)
    word = "not running" if pid is None else f"stopped: process {pid}"
    out.answer(report, lambda: word + (" (it had to be killed)" if stopped.killed else ""))
    return 0


def _status(chosen: Settings, out: Output) -> int:
    """Show how the daemon is; the exit code says it too: 0 when it serves, 6 when it does not."""
    health = control.status(chosen)
    report = report_of(health)
    out.answer(report, lambda: render.status(report.status) if report.status is not None else _absent(report, chosen))
    if report.state == "running" and not out.quiet:
        invocation.say_version(health.daemon)
    return 0 if report.state == "running" else UnavailableError.exit_code


def report_of(health: Health) -> DaemonReport:
    """Return what is known of a daemon from outside, in the words of the command line."""
    running = health.daemon
    return DaemonReport(
        state=health.state.value,
        pid=None if running is None else running.pid,
        address=None if running is None else f"http://{running.host}:{running.port}",
        socket=None if running is None else running.socket,
        status=None if health.answer is None else msgspec.convert(health.answer, api.StatusAnswer),
    )


def _absent(report: DaemonReport, chosen: Settings) -> str:
    words = {
        "stopped": "not running; commands open the store themselves. scrubjay daemon start starts it",
        "stale": f"not running: process {report.pid} was killed or crashed. scrubjay daemon start starts another",
        "silent": f"process {report.pid} runs but does not answer. scrubjay daemon logs may say why",
    }
    return f"{words[report.state]}\nlog: {chosen.log_path}"


def _logs(chosen: Settings, line: Namespace) -> int:
    """Show the log's last lines; they are text for people and programs alike, so `--json` changes nothing here."""
    for each in control.logs(chosen, line.lines):
        sys.stdout.write(render.clean(each) + "\n")
    sys.stdout.flush()
    if line.follow:
        _follow(chosen.log_path)
    return 0


def _follow(path: Path) -> None:
    position = path.stat().st_size if path.exists() else 0
    while True:
        time.sleep(FOLLOW_S)
        size = path.stat().st_size if path.exists() else 0
        if size < position:  # it was rotated
            position = 0
        if size > position:
            with path.open("rb") as file:
                file.seek(position)
                write_bytes(file.read(size - position))
            position = size


def _run(chosen: Settings) -> int:
    from scrubjay.daemon.process import run  # noqa: PLC0415  # the web server; asking after a daemon needs none

    other = run(chosen, foreground=True)
    if other is not None:
        raise ConflictError(f"already running as process {other.pid}", hint="scrubjay daemon stop ends that one")
    return 0
