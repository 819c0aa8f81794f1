"""`scrubjay events`: page through what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import paging, period, project, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take which events, and which page of them."""
    paging(parser, 100, "events")
    parser.add_argument("--in-session", dest="of", type=text, metavar="ID", help="only of this session")
    parser.add_argument("--project", type=project, metavar="ID", help="only of this project")
    period(parser)


def run(line: Namespace) -> None:
    """Page through what was said."""
    out = Output.of(line)
    today = invocation.now()
    request = api.EventsRequest(
        session_id=line.of,
        project=line.project,
        since=times.since(line.since, today),
        until=times.until(line.until, today),
        limit=line.limit,
        cursor=line.cursor,
    )
    with invocation.store(line) as store:
        answer: api.EventsResponse = store.call("events", request)
    out.answer(answer, lambda: render.events.events(answer.events))
    out.notes(answer.notes)
    out.more(answer.next)
