"""`scrubjay history`: list what changed the memory, and what each run or request did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import paging, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take which run or request, or which page of all."""
    parser.add_argument(
        "cause",
        nargs="?",
        type=text,
        metavar="CAUSE",
        help="show what this one changed: its id, or the beginning of it",
    )
    paging(parser, 50, "runs and requests")
    parser.add_argument("--kind", type=text, help="only of this kind: import, distill, update, forget, undo, …")


def run(line: Namespace) -> None:
    """List runs and requests, or what one of them did."""
    out = Output.of(line)
    request = api.HistoryRequest(cause=line.cause, kind=line.kind, limit=line.limit, cursor=line.cursor)
    with invocation.store(line) as store:
        answer: api.HistoryResponse = store.call("history", request)
    out.answer(answer, lambda: render.history.history(answer, one=line.cause is not None))
    out.more(answer.next)
