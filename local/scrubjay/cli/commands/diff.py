"""`scrubjay diff`: show what became of memories since a run or a time."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import paging, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser

CAUSE = re.compile(r"(?:[a-z_]+:)?[0-7][0-9A-Za-z]{5,25}")
"""A run or request: its kind and the beginning of a ULID, of which no time in words has the form."""


def configure(parser: Parser) -> None:
    """Take since when."""
    parser.add_argument(
        "--since",
        type=text,
        required=True,
        metavar="RUN|WHEN",
        help="a run or request (its id, or the beginning of it: scrubjay history), or a time",
    )
    paging(parser, 50, "memories")


def run(line: Namespace) -> None:
    """Show what became of memories."""
    out = Output.of(line)
    is_cause = CAUSE.fullmatch(line.since) is not None
    request = api.DiffRequest(
        cause=line.since if is_cause else None,
        since=None if is_cause else times.since(line.since, datetime.now().astimezone()),
        limit=line.limit,
        cursor=line.cursor,
    )
    with invocation.store(line) as store:
        answer: api.DiffResponse = store.call("diff", request)
    out.answer(answer, lambda: render.consolidation.compared(answer))
    out.more(answer.next)
