"""What commands take: types of arguments, groups of options that several share, and the parser that raises our errors.

Imports nothing but argparse: `scrubjay --help` must not wait for the libraries that only commands need. For the same
reason the closed sets are spelled out here; a test compares them with the enums they repeat.
"""

from __future__ import annotations

import argparse
import os

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from typing import Any, NoReturn

TYPES = (
    *("decision", "preference", "insight", "goal", "fact", "howto"),
    *("long_term", "daily", "belief", "self", "social"),
)
KINDS = ("note", "archive", "stored", "observation")
LAYERS = ("identity", "active", "surfaced", "archive")
SCOPES = ("session", "project", "user")
MODES = ("hybrid", "keyword", "weighted")
LEVELS = ("year", "month", "week", "day", "segment")
CANDIDATES = ("memory", "event")
INTENTS = ("explore", "answer", "locate", "time_boxed")
TELEPORTS = ("keyword", "vector", "hybrid")
BUCKETS = ("day", "week")
FORMATS = (
    "aider",
    "chatgpt",
    "claude-ai",
    "claude-code",
    "claude-mem",
    "codex",
    "copilot",
    "cursor",
    "gemini",
    "locomo",
    "markdown",
    "mcp-memory",
    "mem0",
    "opencode",
    "pam",
    "scrubjay",
    "specstory",
    "text",
)
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse would load the archive formats (through shutil) to find that out."""

    def __init__(self, prog: str, **options: Any) -> None:
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (ValueError, OSError):
            columns = 100
        super().__init__(prog, width=min(columns, 120) - 2, **options)


SAME = {"--explain": "--why", "--top": "--limit", "--count": "--limit", "--max": "--limit", "--tag": "--topic"}
"""Options that people type who know another command or program. Only a hint is made of it."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidError, where argparse would print the usage and end the process."""
        about, _, words = message.partition(": ")
        hint = ""
        if about == "unrecognized arguments" and words.startswith("-"):
            hint = self._likely(words.split()[0].partition("=")[0])
        elif about == "the following arguments are required":
            hint = self._wanted(words.partition(", ")[0])
        raise invalid(message, hint=hint or f"{self.prog} --help shows what it takes")

    def options(self) -> list[str]:
        """Return the long options of this parser and of those below it."""
        names: list[str] = []
        for action in self._actions:
            names += [name for name in action.option_strings if name.startswith("--")]
            below = action.choices.values() if isinstance(action.choices, dict) else ()
            names += [name for parser in below for name in parser.options()]
        return names

    def _likely(self, typed: str) -> str:
        """Return a hint for an option that the command does not take: the one that was probably meant, or ""."""
        from difflib import get_close_matches  # noqa: PLC0415  # a typing error is not the time to count milliseconds

        options = self.options()
        meant = SAME.get(typed, "")
        close = [meant] if meant in options else get_close_matches(typed, options, n=1, cutoff=0.7)
        return f"did you mean: {close[0]}" if close else ""

    def _wanted(self, name: str) -> str:
        """Return what an argument that is missing stands for; "" where nothing is said of it."""
        for action in self._actions:
            if name not in {action.metavar, action.dest, *action.option_strings}:
                continue
            if isinstance(action.choices, dict):
                return f"one of: {', '.join(action.choices)}"
            return f"{name} is {action.help}" if action.help else ""
        return ""


def invalid(message: str, *, hint: str) -> Exception:
    """Return the error for a command line that cannot be read."""
    from scrubjay_shared.errors import InvalidError  # noqa: PLC0415  # it needs `typing`: see TYPE_CHECKING

    return InvalidError(message, hint=hint)


# Argument types. argparse calls them by name in its messages, so they are named for what a person typed.


def text(value: str) -> str:
    """Return a text argument, refused when the terminal's bytes were not UTF-8 (they arrive as lone surrogates)."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"must be valid UTF-8, but its character {error.start + 1} is not") from error
    return value


def project(value: str) -> str:
    """Return the name of a project as imports store it: one that is written as a path becomes a whole path."""
    name = text(value).strip()
    if name.startswith(("~", "/", "./", "../")) or name in {".", ".."}:
        return os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111  # pathlib would cost a tenth of the start
    name = name.rstrip("/")
    if not name:
        raise argparse.ArgumentTypeError("the name of a project must not be empty")
    return name


def share(value: str) -> float:
    """Return a number from 0 to 1. NaN and infinities are refused."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {value!r}")
    return number


def count(value: str) -> int:
    """Return a whole number of at least 1 that SQLite can hold."""
    number = whole(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, got {value!r}")
    return number


def whole(value: str) -> int:
    """Return a whole number of at least 0 that SQLite can hold."""
    try:
        number = int(value) if len(value) < 20 else -1
    except ValueError:
        number = -1
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number of 0 or more, got {value!r}")
    return number


def pair(value: str) -> tuple[str, str]:
    """Return the two sides of KEY=VALUE."""
    key, equals, rest = text(value).partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"must be written as KEY=VALUE, got {value!r}")
    return key.strip(), rest


# Groups of arguments.


def shared(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Add the options that stand before or after the command. After it, an absent one must not undo one before."""
    default: Any = None if top else argparse.SUPPRESS
    off: Any = False if top else argparse.SUPPRESS
    group = parser.add_argument_group("options of every command")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        dest="form",
        action="store_const",
        const="json",
        default=default,
        help="write JSON (the default when the output is not a terminal)",
    )
    form.add_argument(
        "--text",
        dest="form",
        action="store_const",
        const="text",
        default=default,
        help="write for people, also into a pipe",
    )
    group.add_argument("--data-dir", metavar="DIR", default=default, help="the folder of the store (SCRUBJAY_DATA_DIR)")
    group.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="a folder for everything: store, settings, logs, models (SCRUBJAY_HOME)",
    )
    group.add_argument(
        "--account",
        metavar="NAME",
        default=default,
        help="whose store is meant, where a home has several accounts (SCRUBJAY_ACCOUNT)",
    )
    group.add_argument("-q", "--quiet", action="store_true", default=off, help="no progress, no remarks; errors only")


def caller(parser: argparse.ArgumentParser, *, below: bool = False, by_place: bool = False) -> None:
    """Add who is asking. `below` a command that takes it too, an absent option must not undo one before.

    `by_place` says that without a name the folder that the command is run in decides (`here.project_of`).
    """
    default: Any = argparse.SUPPRESS if below else None
    otherwise = " (those of the repository that you are in)" if by_place else ""
    parser.add_argument(
        "--project",
        type=project,
        metavar="ID",
        default=default,
        help=f"act for this project: see its memories{otherwise} and yours",
    )
    parser.add_argument(
        "--session", type=text, metavar="ID", default=default, help="act for this session of the project"
    )


def period(parser: Parser) -> None:
    """Add the bounds in time."""
    parser.add_argument(
        "--since",
        "--from",
        dest="since",
        type=text,
        metavar="WHEN",
        help='only from this time on: 2026-11-21, 2026-11-21T14:30, yesterday, "7 days ago"',
    )
    parser.add_argument(
        "--until",
        "--to",
        dest="until",
        type=text,
        metavar="WHEN",
        help="only up to this time, which is included; written in the same way",
    )


def paging(parser: Parser, limit: int, what: str) -> None:
    """Add the size of a page, and where it starts."""
    parser.add_argument("-n", "--limit", type=count, default=limit, help=f"at most this many {what} ({limit})")
    parser.add_argument("--cursor", type=text, help="where the page before ended: its `next`")


def reference(parser: Parser) -> None:
    """Add the memory that is meant."""
    parser.add_argument(
        "ref", type=text, metavar="REF", help="id, its first 6 or more characters or its last 6, name, or alias"
    )


def overwriting(parser: Parser) -> None:
    """Add what to do about a file that is there."""
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there; never a file of the store")


def add_subcommand(subcommands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    """Add a subcommand of a command, and return its parser."""
    added: argparse.ArgumentParser = subcommands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    return added
