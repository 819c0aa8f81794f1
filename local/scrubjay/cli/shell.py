"""`scrubjay completion`, and where other packages' commands come in."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import shtab

from scrubjay.cli import parser
from scrubjay_shared.errors import InvalidError, UnavailableError
from scrubjay_shared.extras import install_command

if TYPE_CHECKING:
    import argparse
    from argparse import Namespace

EXTENSIONS = "scrubjay.commands"
"""The entry point group in which other packages announce commands: functions from words to an exit code."""

PARSERS = "scrubjay.parsers"
"""The entry point group in which they announce what those commands take: functions from a command to its parser."""


def completion(line: Namespace) -> None:
    """Print a completion script, with the commands of the packages that are installed."""
    whole = parser.tree()
    commands = next(action.choices for action in whole._actions if isinstance(action.choices, dict))  # noqa: SLF001
    for name, package in parser.EXTENSIONS.items():
        for found in importlib.metadata.entry_points(group=PARSERS, name=package):
            try:
                commands[name] = found.load()(name)
            except ImportError as error:  # its libraries are an extra: then the command completes without its words
                sys.stderr.write(f"scrubjay: {name} is completed without its verbs: {error}\n")
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


def extension(line: Namespace) -> int:
    """Hand over to the package that brings a command: it gets the command's name and all that was typed beside it."""
    name = parser.EXTENSIONS[line.command]
    found = importlib.metadata.entry_points(group=EXTENSIONS, name=name)
    if not found:
        raise UnavailableError(
            f"this installation of scrubjay has no command {line.command}: it is older than the command",
            hint=f"install it again: {_adds(name)}",
        )
    try:
        run = next(iter(found)).load()
    except ImportError as error:
        from scrubjay.plugins import unloadable  # noqa: PLC0415  # the web server, and only for its words

        raise unloadable(f"scrubjay {line.command}", name, error) from error
    code = run(line.rest)
    if not isinstance(code, int | None):
        raise InvalidError(f"{line.command} ended with {code!r}", hint=f"see scrubjay {line.command} --help")
    return code or 0


def _adds(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    return install_command(extra, importlib.metadata.distribution("scrubjay"), Path(sys.prefix))
