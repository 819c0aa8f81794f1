"""The `scrubjay` command: reads the line, runs the command, and turns what goes wrong into two lines and an exit code.

A command is a module of `scrubjay.cli.commands`, loaded when it is called, because start-up is part of the interface.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it, without importing `typing`
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 + SIGINT, as shells have it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Nothing expected leaves a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = _asks_for_json(arguments)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse printed the help
        code = stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has enough. What is buffered must not be flushed into the broken pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        from scrubjay.cli.errors import of, report  # noqa: PLC0415  # nothing has gone wrong yet when `main` is loaded

        failed = of(error)
        if failed.code == "internal" and os.environ.get("SCRUBJAY_DEBUG"):
            raise
        code = report(failed, as_json=as_json)
    return code


def _run(arguments: list[str]) -> int:
    from scrubjay.cli import parser  # noqa: PLC0415  # after `main` has its error handling in place

    line = parser.parse(arguments)
    if line.version:
        from scrubjay.version import __version__  # noqa: PLC0415

        sys.stdout.write(f"scrubjay {__version__}\n")
        return 0
    if line.command is None:
        parser.top().print_help()
        return 0
    return _command(line)


def _command(line: Namespace) -> int:
    from scrubjay.cli.table import COMMANDS  # noqa: PLC0415  # as above

    if line.command in COMMANDS:
        run = import_module(COMMANDS[line.command].module).run
    else:
        from scrubjay.cli.extensions import run  # noqa: PLC0415  # as above
    code = run(line)
    if sys.stderr.isatty():
        from scrubjay.cli import notices  # noqa: PLC0415  # for people only

        notices.tell(line)
    return code if isinstance(code, int) else 0


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Return how errors are to be written; decided before the line is parsed, because parsing may fail."""
    if "--text" in arguments:
        return False
    return "--json" in arguments or not sys.stdout.isatty()
