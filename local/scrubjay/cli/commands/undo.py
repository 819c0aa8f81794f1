"""`scrubjay undo`: take back what a run or a request wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what is to be taken back."""
    parser.add_argument(
        "cause", type=text, metavar="CAUSE", help="a run or request: its id, or the beginning of it (scrubjay history)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what that would change, and change nothing")


def run(line: Namespace) -> None:
    """Take back what a run or a request wrote."""
    out = Output.of(line)
    request = api.UndoRequest(cause=line.cause, dry_run=line.dry_run)
    with invocation.store(line) as store:
        answer: api.UndoResponse = store.call("undo", request)
        out.answer(answer, lambda: render.history.undone(answer, dry_run=line.dry_run))
        invocation.embedded(store)
