"""From a command line to the command it names and what it was given. Builds the parser of that command alone."""

from __future__ import annotations

from importlib import import_module

from scrubjay.cli import extensions
from scrubjay.cli.arguments import Help, Parser, invalid, shared
from scrubjay.cli.table import COMMANDS

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from scrubjay.cli.table import Command

DESCRIPTION = "Memory for AI agents that lives on this machine, and can show where it read what it remembers."
EPILOG = """\
first steps:
  scrubjay demo                          see it work, on a throwaway store
  scrubjay init                          make the folders, fetch the models
  scrubjay daemon start                  learn in the background, answer in milliseconds
  scrubjay import ~/.claude/projects     learn from the transcripts that are already there
  scrubjay setup                         let your agents remember from now on
  scrubjay recall "why did we drop X?"   ask

scrubjay COMMAND --help shows what a command takes. To read more: scrubjay docs.
Output that is not a terminal's is JSON.
Exit codes: 0 ok, 1 internal, 2 invalid, 3 not found, 4 denied, 5 conflict, 6 unavailable, 7 corrupt, 130 interrupted.
"""
WITH_VALUE = ("--data-dir", "--home", "--account")
"""The options of every command that take a value: what follows one of them is not the command."""

ALIASES = {
    "search": "recall",
    "find": "recall",
    "remember": "add",
    "delete": "forget",
    "remove": "forget",
    "show": "get",
    "status": "daemon status",
}
"""What people type who know other programs; only a hint is made of it, so that there is one word for each thing."""


def split(argv: Sequence[str]) -> tuple[list[str], str | None, list[str]]:
    """Return what stands before the command, the command, and what stands after it.

    >>> split(["--home", "/x", "recall", "why", "--json"])
    (['--home', '/x'], 'recall', ['why', '--json'])
    """
    index = 0
    while index < len(argv) and argv[index].startswith("-"):
        index += 2 if argv[index] in WITH_VALUE else 1
    return list(argv[:index]), (argv[index] if index < len(argv) else None), list(argv[index + 1 :])


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line. Raises InvalidError when it is not one; `--help` prints and leaves the process.

    Only the command that is called gets its parser: building all of them would take as long as starting Python. The
    words of a command of another package stay unread, in `rest`.
    """
    before, name, after = split(argv)
    line = top().parse_args(before)
    line.command = name
    if name is None:
        return line
    if name in COMMANDS:
        return of_command(COMMANDS[name]).parse_args(after, line)
    if name not in extensions.names():
        raise invalid(f"there is no command {printable(name)!r}", hint=likely(name))
    line.rest = [name, *before, *after]
    return line


def printable(word: str) -> str:
    """Return a word as it can be shown."""
    return word[:80].encode(errors="replace").decode()


def likely(word: str) -> str:
    """Return a hint for a command that does not exist."""
    from difflib import get_close_matches  # noqa: PLC0415  # a typing error is not the time to count milliseconds

    close = get_close_matches(word, ALIASES | dict.fromkeys([*COMMANDS, *extensions.names()], ""), n=1)
    if close:
        return f"did you mean: scrubjay {ALIASES.get(close[0], close[0])}"
    return "scrubjay --help lists the commands"


class Top(Parser):
    """The parser of what stands before the command. Its help lists the commands, which are looked up for it alone."""

    def format_help(self) -> str:
        """Return the help."""
        listed = "\n".join(f"  {name:<12} {summary}" for name, summary in summaries())
        self.description = f"{DESCRIPTION}\n\ncommands:\n{listed}"
        return super().format_help()


def top() -> Parser:
    """Return the parser of what stands before the command."""
    parser = Top(
        prog="scrubjay",
        usage="scrubjay [options] COMMAND ...",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    shared(parser, top=True)
    return parser


def summaries() -> Iterator[tuple[str, str]]:
    """Yield each command's name, and what it does: those of this package, then those of others."""
    for command in COMMANDS.values():
        yield command.name, command.summary
    for name in extensions.names():
        yield name, extensions.summary(name)


def of_command(command: Command) -> Parser:
    """Return the parser of what stands after one command."""
    parser = Parser(
        prog=f"scrubjay {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"example:\n  {command.example}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    import_module(command.module).configure(parser)
    shared(parser, top=False)
    return parser


def tree() -> Parser:
    """Return all of it as one parser, for what walks over it: completion scripts."""
    parser = top()
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS.values():
        below = commands.add_parser(command.name, help=command.summary, allow_abbrev=False)
        import_module(command.module).configure(below)
        shared(below, top=False)
    for name in extensions.names():
        commands.add_parser(name, help=extensions.summary(name), allow_abbrev=False)
    return parser
