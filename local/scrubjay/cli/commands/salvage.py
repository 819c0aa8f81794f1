"""`scrubjay salvage`: make a new store of what a damaged one still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.cli import render
from scrubjay.cli.output import Output
from scrubjay.cli.salvaging import salvaged

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what to read."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="the file of a damaged store (the store itself)")


def run(line: Namespace) -> None:
    """Make a new store of the events and ops of a damaged one, which is kept beside it."""
    report, _ = salvaged(line, losing=True)
    Output.of(line).answer(report, lambda: render.transfer.salvaged(report))
