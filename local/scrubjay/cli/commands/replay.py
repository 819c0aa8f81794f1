"""`scrubjay replay`: show a session from its latest compaction on."""

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
    """Take which session, and which part of it."""
    parser.add_argument("of", type=text, metavar="SESSION", help="the session's id: scrubjay sessions lists them")
    parser.add_argument("--archive", type=text, metavar="NAME", help="the events that this archive stands for")
    paging(parser, 100, "events")


def run(line: Namespace) -> None:
    """Show a session from its latest compaction on."""
    out = Output.of(line)
    request = api.ReplayRequest(session_id=line.of, archive=line.archive, limit=line.limit, cursor=line.cursor)
    with invocation.store(line) as store:
        answer: api.ReplayResponse = store.call("replay", request)
    out.answer(answer, lambda: render.compaction.replayed(answer))
    out.more(answer.next)
