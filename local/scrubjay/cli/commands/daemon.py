"""`scrubjay daemon`: start, stop and watch the daemon, or be it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, count, shared
from scrubjay.cli.daemon_state import report_of
from scrubjay.cli.output import Output, write_bytes
from scrubjay.cli.reports import DaemonReport
from scrubjay.daemon import control
from scrubjay_shared.errors import (
    ConflictError,
    UnavailableError,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.daemon.control import Started
    from scrubjay.settings import Settings


FOLLOW_S = 0.5
"""Between two looks at a log that is followed: soon enough to read along, too seldom to be felt."""


def configure(parser: Parser) -> None:
    """Take what to do about the daemon."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=True)
    for name, summary in (
        ("start", "start it in the background; says so when it runs already"),
        ("stop", "let it finish what it is doing, and end"),
        ("restart", "stop it where it runs, and start it: with the version that is installed now"),
        ("status", "show whether it runs, its model and its jobs"),
        ("logs", "show the end of its log"),
        ("run", "run in the foreground, for a service supervisor"),
    ):
        subcommand = add_subcommand(subcommands, name, summary)
        if name == "logs":
            subcommand.add_argument("-n", "--lines", type=count, default=50, help="the last N lines (50)")
            subcommand.add_argument("-f", "--follow", action="store_true", help="go on showing what is added")
        shared(subcommand, top=False)


def run(line: Namespace) -> int:
    """Start, stop or watch the daemon."""
    chosen = invocation.settings_of(line)
    out = Output.of(line)
    match line.subcommand:
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
            return _in_foreground(chosen)


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
    out.answer(
        report, lambda: render.state.status(report.status) if report.status is not None else _absent(report, chosen)
    )
    if report.state == "running" and not out.quiet:
        invocation.say_version(health.daemon)
    return 0 if report.state == "running" else UnavailableError.exit_code


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
        sys.stdout.write(render.words.clean(each) + "\n")
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


def _in_foreground(chosen: Settings) -> int:
    from scrubjay.daemon.process import run  # noqa: PLC0415  # the web server; asking after a daemon needs none

    other = run(chosen, foreground=True)
    if other is not None:
        raise ConflictError(f"already running as process {other.pid}", hint="scrubjay daemon stop ends that one")
    return 0
