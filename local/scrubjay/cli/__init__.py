"""The `scrubjay` command: reads the line, runs the command, and turns what goes wrong into two lines and an exit code.

Commands live in the modules beside this one and are loaded when called, because start-up is part of the interface.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys

from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

TYPE_CHECKING = False  # as type checkers know it, without importing `typing`
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 + SIGINT, as shells have it."""

_OF_ERRNO: dict[int, tuple[type[ScrubjayError], str]] = {
    errno.ENOENT: (NotFoundError, "check the path"),
    errno.ENOTDIR: (NotFoundError, "check the path"),
    errno.EISDIR: (InvalidError, "name a file, not a folder"),
    errno.ENAMETOOLONG: (InvalidError, "use a shorter path"),
    errno.EINVAL: (InvalidError, "check the path"),
    errno.EACCES: (DeniedError, "check who owns it, and its permissions"),
    errno.EPERM: (DeniedError, "check who owns it, and its permissions"),
    errno.EROFS: (DeniedError, "that disk is read-only; choose another place with --data-dir"),
    errno.EEXIST: (ConflictError, "name one that does not exist yet"),
    errno.ENOSPC: (UnavailableError, "free some disk space and try again"),
    errno.EDQUOT: (UnavailableError, "your disk quota is used up; free some space and try again"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Nothing expected leaves a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = _asks_for_json(arguments)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse printed the help
        code = stop.code if isinstance(stop.code, int) else 0
    except ScrubjayError as error:
        code = _report(error, as_json=as_json)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has enough. What is buffered must not be flushed into the broken pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        code = _report(of_os_error(error), as_json=as_json)
    except Exception as error:
        if os.environ.get("SCRUBJAY_DEBUG"):
            raise
        code = _report(_unexpected(error), as_json=as_json)
    return code


def of_os_error(error: OSError) -> ScrubjayError:
    """Return our error for one of the system's about a file that a person named."""
    kind, hint = _OF_ERRNO.get(error.errno or 0, (UnavailableError, "check the disk, and try again"))
    what = (error.strerror or type(error).__name__).lower()
    name = error.filename if isinstance(error.filename, str) else ""
    return kind(f"{name}: {what}" if name else what, hint=hint)


def _run(arguments: list[str]) -> int:
    from scrubjay.cli import parser  # noqa: PLC0415  # after `main` has its error handling in place

    line = parser.parse(arguments)
    if line.version:
        from scrubjay import __version__  # noqa: PLC0415

        sys.stdout.write(f"scrubjay {__version__}\n")
        return 0
    if line.command is None:
        parser.top().print_help()
        return 0
    return _command(line)


def _command(line: Namespace) -> int:
    from scrubjay.cli.parser import BY_NAME  # noqa: PLC0415

    module, _, function = BY_NAME[line.command].target.partition(":")
    run = getattr(importlib.import_module(f"scrubjay.{module}"), function)
    code = run(line)
    return code if isinstance(code, int) else 0


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Return how errors are to be written; decided before the line is parsed, because parsing may fail."""
    if "--text" in arguments:
        return False
    return "--json" in arguments or not sys.stdout.isatty()


def _report(error: ScrubjayError, *, as_json: bool) -> int:
    try:
        if as_json:
            import json  # noqa: PLC0415

            record = {"code": error.code, "message": error.message, "hint": error.hint}
            sys.stderr.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            sys.stderr.write(f"scrubjay: {_line(error.message)}\n")
            sys.stderr.write(f"      {_line(error.hint) or 'scrubjay doctor checks everything'}\n")
        sys.stderr.flush()
    except (BrokenPipeError, UnicodeEncodeError):
        pass  # nobody reads, or nobody can: the exit code still says it
    return error.exit_code


def _line(text: str) -> str:
    """Return the text on one line, without what would drive the terminal."""
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _unexpected(error: Exception) -> ScrubjayError:
    """Return the error for a bug of ours. Its own words are left out: they may hold a person's text."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {place.tb_frame.f_code.co_filename.rpartition(os.sep)[2]}:{place.tb_lineno}" if place else ""
    return ScrubjayError(
        f"unexpected {type(error).__name__}{where}", hint="SCRUBJAY_DEBUG=1 scrubjay … shows where; please report it"
    )
