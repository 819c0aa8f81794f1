"""`scrubjay rename`: give a memory another name."""

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
    """Take a memory and its new name."""
    reference(parser)
    parser.add_argument("name", type=text, metavar="NAME", help="the new name; the old one goes on resolving to it")


def run(line: Namespace) -> None:
    """Give a memory another name."""
    out = Output.of(line)
    with invocation.store(line) as store:
        entry: api.Entry = store.call("rename", api.RenameRequest(ref=line.ref, name=line.name))
    out.answer(entry, lambda: render.memories.changed("renamed", entry))
