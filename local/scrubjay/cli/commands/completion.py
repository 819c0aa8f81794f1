"""`scrubjay completion`: print a completion script for a shell."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import shtab

from scrubjay.cli import extensions, parser
from scrubjay.cli.arguments import SHELLS
from scrubjay_shared.errors import (
    ScrubjayError,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


def configure(parser: Parser) -> None:
    """Take the shell."""
    parser.add_argument("shell", choices=SHELLS, help="for which shell the script is")


def run(line: Namespace) -> None:
    """Print a completion script, with the commands of the packages that are installed."""
    whole = parser.tree()
    commands = next(action.choices for action in whole._actions if isinstance(action.choices, dict))  # noqa: SLF001
    for name in extensions.names():
        try:
            commands[name] = extensions.parser_of(name) or commands[name]
        except ModuleNotFoundError:
            # The libraries of its extra are not installed. Shells run this at each start: no word of it there.
            continue
        except (ImportError, ScrubjayError) as error:
            sys.stderr.write(f"scrubjay: {name} is completed without its subcommands: {error}\n")
    _mark_files(whole)
    sys.stdout.write(shtab.complete(whole, shell=line.shell) + "\n")


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Say which arguments are files, so that shells complete them as such."""
    for action in parser._actions:  # noqa: SLF001  # argparse offers no other way to walk a parser; shtab does the same
        if action.dest in {"paths", "file", "locomo", "source"}:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in {"data_dir", "home"}:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        for below in action.choices.values() if isinstance(action.choices, dict) else ():
            _mark_files(below)
