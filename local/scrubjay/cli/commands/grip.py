"""`scrubjay grip`: the passage behind a bullet or a memory, with what was said around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, caller, shared, text, whole
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace


def configure(parser: Parser) -> None:
    """Take a passage, and how much of what was said around it."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=True)
    expand = add_subcommand(subcommands, "expand", "show a passage, and what was said before and after it")
    expand.add_argument(
        "id",
        type=text,
        metavar="GRIP",
        help="the passage: grip:… of a bullet, a memory's grip, or an event",
    )
    expand.add_argument("--before", type=whole, default=2, metavar="N", help="events before it (2)")
    expand.add_argument("--after", type=whole, default=2, metavar="N", help="events after it (2)")
    caller(expand)
    shared(expand, top=False)


def run(line: Namespace) -> None:
    """Show a passage and what was said around it."""
    out = Output.of(line)
    request = api.GripRequest(
        id=line.id, before=line.before, after=line.after, project=line.project, session_id=line.session
    )
    with invocation.store(line) as store:
        answer: api.GripResponse = store.call("grip", request)
    out.answer(answer, lambda: render.toc.grip(answer))
