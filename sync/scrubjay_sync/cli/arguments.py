"""Arguments that several commands of sync share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrubjay.cli.arguments import Help, Parser, shared

if TYPE_CHECKING:
    import argparse


def subcommands(parser: Parser, dest: str, *, default: str | None = None) -> Callable[[str, str], Parser]:
    """Return what adds a subcommand by its name and summary; the chosen name is the argument `dest`.

    Without a `default` the subcommand must be named.
    """
    parser.set_defaults(**{dest: default})
    below = parser.add_subparsers(dest=dest, metavar="SUBCOMMAND", parser_class=Parser, required=default is None)

    def add(name: str, summary: str) -> Parser:
        made: Parser = below.add_parser(
            name, help=summary, description=summary, formatter_class=Help, allow_abbrev=False
        )
        shared(made, top=False)
        return made

    return add


def add_password_stdin(parser: argparse.ArgumentParser) -> None:
    """Add the option for machines without a person."""
    parser.add_argument(
        "--password-stdin",
        action="store_true",
        help="read passwords and codes from stdin, one a line, in the order they are asked for",
    )
