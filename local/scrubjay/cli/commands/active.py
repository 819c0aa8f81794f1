"""`scrubjay active`: what is active, and what is proposed; confirm or dismiss it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import here, invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, caller, shared, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

ALL = "all"


def configure(parser: Parser) -> None:
    """Take what to do about which proposals, and for whom."""
    caller(parser, by_place=True)
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=False)
    listed = add_subcommand(subcommands, "list", "show what is active, and what is proposed")
    confirm = add_subcommand(subcommands, "confirm", "have agents load these proposals at their start")
    dismiss = add_subcommand(subcommands, "dismiss", "propose these no more, or take them out of what is active")
    for subcommand in (confirm, dismiss):
        subcommand.add_argument(
            "refs", nargs="+", type=text, metavar="ID", help="an id or its beginning; or all that is proposed: all"
        )
    for subcommand in (listed, confirm, dismiss):
        caller(subcommand, below=True, by_place=True)
        shared(subcommand, top=False)


def run(line: Namespace) -> None:
    """Show what is active and proposed, after deciding what was asked for."""
    out = Output.of(line)
    project, session = here.project_of(line), line.session
    with invocation.store(line) as store:
        answer: api.ActiveResponse
        if line.subcommand in {"confirm", "dismiss"}:
            every = line.refs == [ALL]
            request = api.ProposalsRequest(
                refs=() if every else tuple(line.refs), every=every, project=project, session_id=session
            )
            answer = store.call(f"{line.subcommand}_active", request)
        else:
            answer = store.call("active", api.ActiveRequest(project=project, session_id=session))
        labels = invocation.labels(store, [answer.project])
    out.answer(answer, lambda: render.layers.active(answer))
    out.notes(answer.notes, labels)
    if not out.json:
        out.remark(here.told(line, answer.project, labels))
