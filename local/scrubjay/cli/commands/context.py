"""`scrubjay context`: show or set what an agent loads at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import here, invocation, render
from scrubjay.cli.arguments import caller, pair
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take lines to set before the context is shown."""
    parser.add_argument(
        "--identity",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="set a line about who you are; KEY= removes it",
    )
    parser.add_argument(
        "--active",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="set a line about what you are working on; KEY= removes it",
    )
    parser.add_argument(
        "--handed", action="store_true", help="show all that an agent is handed at the start of a session"
    )
    parser.add_argument("--prompt", metavar="TEXT", help="show what an agent is handed beside this prompt")
    caller(parser, by_place=True)


def run(line: Namespace) -> None:
    """Show what an agent loads at its start, after setting what was asked for."""
    out = Output.of(line)
    with invocation.store(line) as store:
        for operation, pairs in (("set_identity", line.identity), ("set_active", line.active)):
            for key, value in pairs:
                store.call(operation, api.SlotRequest(key=key, value=value))
        answer: api.ContextResponse = store.call(
            "context", api.ContextRequest(project=here.project_of(line), session_id=line.session, prompt=line.prompt)
        )
        labels = invocation.labels(store, [answer.project])
    handed = line.handed or line.prompt is not None
    out.answer(answer, lambda: (render.events.handed if handed else render.events.context)(answer))
    out.notes(answer.notes, labels)
    if not out.json:
        out.remark(here.told(line, answer.project, labels))
    if not out.json and not handed:
        out.remark(
            render.words.counted(answer.tokens, "token") + (f" · cut: {', '.join(answer.cut)}" if answer.cut else "")
        )
