"""`scrubjay restore`: put a backup in place of the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.cli import invocation, render
from scrubjay.cli.always_loaded import always_loaded
from scrubjay.cli.output import Output
from scrubjay.cli.reports import RestoreReport

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what to restore from."""
    parser.add_argument("file", metavar="FILE", help="a file that `scrubjay backup` wrote")


def run(line: Namespace) -> None:
    """Put a backup in place of the store; the old file is kept beside it."""
    from scrubjay.store import migrations  # noqa: PLC0415  # numpy and all: the other commands may find a daemon
    from scrubjay.store import restore as put_back  # noqa: PLC0415

    out = Output.of(line)
    target = invocation.settings_of(line).store_path
    source = Path(line.file).expanduser().absolute()
    kept = put_back(target, source, migrations())
    with invocation.store(line) as store:
        loaded = always_loaded(store)
    report = RestoreReport(
        file=str(target), source=str(source), kept=None if kept is None else str(kept), always_loaded=loaded
    )
    out.answer(report, lambda: render.transfer.restored(report))
