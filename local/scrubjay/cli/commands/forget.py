"""`scrubjay forget`: erase a memory, and the words it was read from."""

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
    """Take what is to be erased."""
    parser.add_argument("ref", type=text, metavar="REF", help="a memory's id, name or alias, or an event's id")
    parser.add_argument("--keep-sources", action="store_true", help="leave the words it was read from in the events")
    parser.add_argument("--once", action="store_true", help="do not refuse the same words when they come again")


def run(line: Namespace) -> None:
    """Erase a memory, and the words it was read from."""
    out = Output.of(line)
    request = api.ForgetRequest(ref=line.ref, keep_sources=line.keep_sources, for_good=not line.once)
    with invocation.store(line) as store:
        answer: api.ForgetResponse = store.call("forget", request)
    out.answer(answer, lambda: render.memories.forgotten(answer))
