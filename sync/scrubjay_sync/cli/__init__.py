"""The commands of sync: login, logout, sync, devices, teams, recovery, account. To operations, and back.

A password is turned into a key in the command's own process, and a recovery code is made there. Neither stands in a
command line, a log or an error. Each command is a module of this package, imported when it is run; what needs the store
or cryptography is imported when it is used. So that a missing extra is still told first, this package does not import
without the libraries of the extra `sync`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from scrubjay.cli import invocation
from scrubjay.cli.arguments import Help, Parser, shared
from scrubjay.cli.output import Output
from scrubjay_sync.cli import choosing
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.prompts import Prompts
from scrubjay_sync.cli.rendering import BETA

MORE = "scrubjay sync inspect shows what the server holds; scrubjay logout leaves, and the memories stay here."
LIBRARIES = ("cryptography", "httpx2", "keyring", "zstandard")
"""What the extra `sync` installs."""

for _library in LIBRARIES:
    if find_spec(_library) is None:
        raise ModuleNotFoundError(f"No module named {_library!r}", name=_library)


class Summary(NamedTuple):
    """What help says of a command; the module of the same name has its `configure` and `run`."""

    text: str
    example: str


COMMANDS: dict[str, Summary] = {
    "login": Summary(
        "Sign up for sync, or add this machine to an account.", "scrubjay login --server sync.example.org"
    ),
    "logout": Summary("Stop syncing; the memories stay here.", "scrubjay logout"),
    "sync": Summary("Sync now, watch, check what the server holds.", "scrubjay sync status"),
    "devices": Summary("List the devices of the account, add them, shut them out.", "scrubjay devices approve"),
    "teams": Summary("Share memories with other people, end-to-end encrypted.", "scrubjay teams create core"),
    "recovery": Summary("Check or replace the recovery code.", "scrubjay recovery verify"),
    "account": Summary(
        "Change the name, the password, the second factor or the keys; delete the account.", "scrubjay account password"
    ),
}


def main(argv: Sequence[str]) -> int:
    """Run one command; `argv` begins with its name. Returns the exit code.

    Raises UnavailableError when a library is installed and does not load.
    """
    name, *rest = argv
    try:
        return _run(name, rest)
    except ImportError as error:
        failure: Exception = import_module("scrubjay.plugins").unloadable(f"scrubjay {name}", "sync", error)
        raise failure from error


def _run(name: str, rest: Sequence[str]) -> int:
    line = parser_of(name).parse_args(rest)
    command = Command(
        line=line,
        out=Output.of(line),
        prompts=Prompts(lines=getattr(line, "password_stdin", False)),
        chosen=choosing.of_command(invocation.settings_of(line), name, getattr(line, "subcommand", "")),
    )
    of_one = name != "login" and (name, getattr(line, "subcommand", "")) not in choosing.OF_ALL
    if of_one and not command.out.json and (words := choosing.said(command.chosen)):
        command.out.remark(words)
    code: int | None = _module(name).run(command)
    return code or 0


def parser_of(name: str) -> Parser:
    """Return the parser of one command."""
    summary = COMMANDS[name]
    parser = Parser(
        prog=f"scrubjay {name}",
        description=f"{summary.text} {BETA}",
        epilog=f"example:\n  {summary.example}\n\n{MORE}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    _module(name).configure(parser)
    shared(parser, top=True)
    return parser


def _module(name: str) -> Any:
    return import_module(f"scrubjay_sync.cli.{name}")
