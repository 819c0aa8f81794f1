"""`scrubjay relearn`: have the sessions of which a lesser reader learned something read anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.agreeing import agree, can_ask
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take the consent to it."""
    parser.add_argument(
        "--yes", action="store_true", help="begin it; without, and with nobody to ask, it is only shown"
    )


def run(line: Namespace) -> None:
    """Say what would be read, ended and kept, and begin it after a yes."""
    out = Output.of(line)
    with invocation.store(line) as store:
        found: api.RelearnResponse = store.call("relearn", api.RelearnRequest(dry_run=not line.yes))
        runs = store.through == "daemon"
        if not line.yes and not out.json and found.cause is None and found.sessions and can_ask():
            out.answer(found, lambda: render.learning.preview(found))
            agree("Read these sessions anew?", refusal="", hint="scrubjay relearn shows this again")
            found = store.call("relearn", api.RelearnRequest())
            out.answer(found, lambda: render.learning.under_way(found, runs=runs))
            return
    out.answer(found, lambda: render.learning.relearning(found, runs=runs))
