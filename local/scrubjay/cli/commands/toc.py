"""`scrubjay toc`: walk through what was said by time, from years down to segments of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import caller, paging, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a node, and who asks."""
    parser.add_argument(
        "node",
        nargs="?",
        type=text,
        metavar="NODE",
        help='a node\'s id, or the time that it is: 2026, 2026-11, 2026-W47, 2026-11-21, yesterday, "last week"',
    )
    paging(parser, 100, "children")
    caller(parser)


def run(line: Namespace) -> None:
    """Show a node of the table of contents with its children."""
    out = Output.of(line)
    request = api.TocRequest(
        id=None if line.node is None else times.node(line.node, invocation.now()),
        project=line.project,
        session_id=line.session,
        limit=line.limit,
        cursor=line.cursor,
    )
    with invocation.store(line) as store:
        answer: api.TocResponse = store.call("toc", request)
        labels = invocation.labels(store, [answer.project])
    out.answer(answer, lambda: render.toc.node(answer, labels))
    out.notes((*answer.notes, *render.toc.building(answer.building)))
    out.more(answer.next)
