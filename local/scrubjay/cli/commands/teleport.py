"""`scrubjay teleport`: jump to places in the table of contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import TELEPORTS, caller, count, period, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take what to look for, and how."""
    parser.add_argument("query", nargs="+", type=text, metavar="QUERY", help="what to look for; - reads it from stdin")
    parser.add_argument("-n", "--limit", type=count, default=10, help="at most this many places (10)")
    parser.add_argument("--mode", choices=TELEPORTS, default="hybrid", help="by words, by meaning, or by both (hybrid)")
    parser.add_argument("--agent", type=text, help="only what this agent said")
    period(parser)
    caller(parser)


def run(line: Namespace) -> None:
    """Jump to places in the table of contents."""
    out = Output.of(line)
    today = invocation.now()
    request = api.TeleportRequest(
        query=invocation.words(line.query, "what to look for"),
        mode=api.TeleportMode(line.mode),
        limit=line.limit,
        agent=line.agent,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        project=line.project,
        session_id=line.session,
    )
    with invocation.store(line) as store:
        answer: api.TeleportResponse = store.call("teleport", request)
    out.answer(answer, lambda: render.route.pointers(answer.pointers))
    out.notes(answer.notes)
