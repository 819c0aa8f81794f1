"""`scrubjay trace`: show the whole way of a memory or a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import count, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what to follow."""
    parser.add_argument(
        "ref",
        type=text,
        metavar="REF",
        help="a memory's id or name, or the id of an event, session, request or run",
    )
    parser.add_argument("-n", "--limit", type=count, default=100, help="at most this many steps, the last ones (100)")


def run(line: Namespace) -> None:
    """Show the whole way of a memory or a request."""
    out = Output.of(line)
    with invocation.store(line) as store:
        answer: api.TraceResponse = store.call("trace", api.TraceRequest(id=line.ref, limit=line.limit))
    out.answer(answer, lambda: render.state.trace(answer))
