"""`scrubjay projects`: which folders are of which project, and the person's word on those that only say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, project, shared
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace


def configure(parser: Parser) -> None:
    """Take the folder that is trusted or refused; without one, all are listed."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser)
    for name, summary in (
        ("trust", "it is what it says: what it stored by itself moves into the project"),
        ("refuse", "it is not: it stays a project of its own, and is not asked about again"),
    ):
        subcommand = add_subcommand(subcommands, name, summary)
        subcommand.add_argument("folder", type=project, metavar="FOLDER", help="the checkout, or a folder in it")
        shared(subcommand, top=False)


def run(line: Namespace) -> None:
    """List folders, or say that one is trusted or not."""
    out = Output.of(line)
    with invocation.store(line) as store:
        if line.subcommand is None:
            found: api.ProjectsResponse = store.call("projects", api.Nothing())
            out.answer(found, lambda: render.state.folders(found.folders))
            return
        request = api.TrustFolderRequest(folder=line.folder, trusted=line.subcommand == "trust")
        done: api.TrustFolderResponse = store.call("trust_folder", request)
        out.answer(done, lambda: render.state.folder_trusted(done))
        invocation.embedded(store)
