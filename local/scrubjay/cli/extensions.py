"""Commands of other packages, under the entry point group `scrubjay.commands`.

An entry point bears the name of a command and leads to an `Extension`, in a module that imports no library of the
package's extra: help reads it in every installation.
"""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from scrubjay.cli.arguments import Parser

GROUP = "scrubjay.commands"


class Extension(namedtuple("Extension", ("summary", "run", "parser", "extra", "page"))):  # noqa: PYI024  # as for TYPE_CHECKING
    """A command that another package brings.

    `run` is "module:function" from the command's words, its own name first, to an exit code; `parser` is one from the
    command's name to its parser, "" for a command that is completed without its words. `extra` brings what the two
    import, and `page` is the document that describes the command.
    """

    __slots__ = ()


_announced: dict[str, str] = {}


def names() -> tuple[str, ...]:
    """Return the names of the commands that other packages bring."""
    if not _announced:
        _announced.update(_read())
    return tuple(_announced)


def _read() -> dict[str, str]:
    """Return each entry point of the group and where it leads; the first on `sys.path` wins.

    The files are those that importlib.metadata reads. Importing that would take as long as starting Python.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            installed = [entry.path for entry in os.scandir(folder or ".") if entry.name.endswith(".dist-info")]
        except OSError:
            continue
        for path in sorted(installed):
            try:
                with open(os.path.join(path, "entry_points.txt"), encoding="utf-8") as file:  # noqa: PTH118, PTH123  # pathlib costs as much
                    text = file.read()
            except OSError:
                continue
            found = {**_entries(text), **found}
    return found


def _entries(text: str) -> dict[str, str]:
    r"""Return the group's entries in the text of an `entry_points.txt`.

    >>> _entries("[console_scripts]\na = b:c\n\n[scrubjay.commands]\nsync = package.module:SYNC\n")
    {'sync': 'package.module:SYNC'}
    """
    entries: dict[str, str] = {}
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]")
        elif group == GROUP and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            entries[name.strip()] = target.strip()
    return entries


def of(name: str) -> Extension:
    """Return the command of that name. Raises UnavailableError when its package cannot be imported."""
    names()
    try:
        found: Extension = _load(_announced[name])
    except ImportError as error:
        raise _unloadable(name, name, error) from error
    return found


def summary(name: str) -> str:
    """Return what the command does, or that its package is broken: help is shown all the same."""
    try:
        return str(_load(_announced[name]).summary)
    except (ImportError, AttributeError):
        return "(cannot be loaded: run it to see why)"


def parser_of(name: str) -> Parser | None:
    """Return the parser of a command, None when it has none. Raises ImportError without the libraries of its extra."""
    extension = of(name)
    parser: Parser | None = _load(extension.parser)(name) if extension.parser else None
    return parser


def run(line: Namespace) -> int:
    """Hand the words over to the package that brings the command. Raises UnavailableError when that does not load."""
    extension = of(line.command)
    try:
        function = _load(extension.run)
    except ImportError as error:
        raise _unloadable(line.command, extension.extra, error) from error
    code = function(line.rest)
    return code if isinstance(code, int) else 0


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _unloadable(name: str, extra: str, error: ImportError) -> Exception:
    from scrubjay.plugins import unloadable  # noqa: PLC0415  # the daemon's libraries, and only for the words of an error

    return unloadable(f"scrubjay {name}", extra, error)
