"""`scrubjay alias`: give a memory one more name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import reference, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take a memory and one more name."""
    reference(parser)
    parser.add_argument("alias", type=text, metavar="NAME", help="one more name for it")
    parser.add_argument("--remove", action="store_true", help="take that name away instead")


def run(line: Namespace) -> None:
    """Give a memory one more name, or take it away."""
    out = Output.of(line)
    request = api.AliasRequest(ref=line.ref, alias=line.alias, remove=line.remove)
    with invocation.store(line) as store:
        entry: api.Entry = store.call("alias", request)
    out.answer(entry, lambda: render.memories.changed("alias removed from" if line.remove else "alias added to", entry))
