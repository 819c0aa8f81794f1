"""`scrubjay doctor`: look at everything, change nothing, and say what to do about what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import Progress

from scrubjay.cli import invocation, render
from scrubjay.cli.check import State
from scrubjay.cli.checks import examined
from scrubjay.cli.output import Output
from scrubjay.cli.reports import DoctorReport
from scrubjay.store.damage import Watch

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take how closely to look."""
    parser.add_argument(
        "--deep", action="store_true", help="check every row of the store too (about 10 s for 100,000 events)"
    )


def run(line: Namespace) -> int:
    """Check everything. Exits 0 when nothing failed, 7 when the store is damaged, 6 for anything else."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    with out.progress() as bar:
        checks = tuple(examined(chosen, watching(bar) if line.deep else None))
    failed = [check for check in checks if check.state is State.FAIL]
    report = DoctorReport(healthy=not failed, checks=checks)
    out.answer(report, lambda: render.state.examined(report))
    return max((check.code for check in failed), default=0)


def watching(bar: Progress) -> Watch:
    """Return what shows on a progress bar how far `contents` is."""
    task = bar.add_task("checking", total=None)

    def watch(what: str, done: int, total: int) -> None:
        bar.update(task, description=f"checking {what}", completed=done, total=total or None)

    return watch
