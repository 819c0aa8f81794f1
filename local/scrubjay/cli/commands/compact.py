"""`scrubjay compact`: put the beginning of a session into an archive."""

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
    """Take which session, and how much of it."""
    parser.add_argument("of", type=text, metavar="SESSION", help="the session's id: scrubjay sessions lists them")
    parser.add_argument("--upto", type=text, metavar="EVENT", help="only up to this event, which is included")


def run(line: Namespace) -> None:
    """Put the beginning of a session into an archive."""
    out = Output.of(line)
    with invocation.store(line) as store:
        answer: api.CompactResponse = store.call("compact", api.CompactRequest(session_id=line.of, upto=line.upto))
    out.answer(answer, lambda: render.compaction.compacted(answer))
