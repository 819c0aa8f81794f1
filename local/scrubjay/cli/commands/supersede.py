"""`scrubjay supersede`: let another memory take one's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import caller, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take the memory that ends, and what takes its place."""
    parser.add_argument("old", type=text, metavar="OLD", help="the memory that holds no longer: id, prefix or name")
    parser.add_argument(
        "new",
        nargs="+",
        type=text,
        metavar="NEW|TEXT",
        help="what takes its place: a memory's id, prefix or name, or several words; - reads them from stdin",
    )
    caller(parser)


def run(line: Namespace) -> None:
    """Let another memory take one's place. A single word is a reference, more are a text."""
    out = Output.of(line)
    is_text = line.new == ["-"] or len(" ".join(line.new).split()) > 1
    request = api.SupersedeRequest(
        ref=line.old,
        by=None if is_text else line.new[0],
        content=invocation.words(line.new, "the new words") if is_text else None,
        project=line.project,
        session_id=line.session,
    )
    with invocation.store(line) as store:
        answer: api.SupersedeResponse = store.call("supersede", request)
        out.answer(answer, lambda: render.memories.superseded(answer))
        invocation.embedded(store)
