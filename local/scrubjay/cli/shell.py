"""`scrubjay completion` and `scrubjay bench`: what the shell completes, and where other packages' commands come in."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING

import shtab

from scrubjay.cli import parser
from scrubjay_shared.errors import InvalidError, UnavailableError

if TYPE_CHECKING:
    import argparse
    from argparse import Namespace

EXTENSIONS = "scrubjay.commands"
"""The entry point group in which other packages announce commands: functions from arguments to an exit code."""


def completion(line: Namespace) -> None:
    """Print a completion script."""
    whole = parser.tree()
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


def bench(line: Namespace) -> int:
    """Hand over to the benchmarks, which are a package of their own."""
    found = importlib.metadata.entry_points(group=EXTENSIONS, name="bench")
    if not found:
        raise UnavailableError("the benchmarks are not installed", hint="pip install 'scrubjay[bench]'")
    code = next(iter(found)).load()(line.rest)
    if not isinstance(code, int | None):
        raise InvalidError(f"the benchmarks ended with {code!r}", hint="see scrubjay bench --help")
    return code or 0
