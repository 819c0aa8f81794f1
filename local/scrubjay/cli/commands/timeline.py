"""`scrubjay timeline`: what was talked of between two times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import LEVELS, caller, paging, period
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a period, and what to divide it into."""
    period(parser)
    parser.add_argument("--level", choices=LEVELS, help="what to divide it into (what fits the length of the period)")
    paging(parser, 100, "nodes")
    caller(parser)


def run(line: Namespace) -> None:
    """Show the nodes of a period."""
    out = Output.of(line)
    today = invocation.now()
    request = api.TimelineRequest(
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        level=line.level,
        project=line.project,
        session_id=line.session,
        limit=line.limit,
        cursor=line.cursor,
    )
    with invocation.store(line) as store:
        answer: api.TimelineResponse = store.call("timeline", request)
    out.answer(answer, lambda: render.toc.nodes(answer.nodes))
    out.notes((*answer.notes, *render.toc.building(answer.building)))
    out.more(answer.next)
