"""`scrubjay sync`: run a round, watch, or one of the subcommands."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.cli.arguments import Parser
from scrubjay_shared.errors import (
    UnavailableError,
)
from scrubjay_sync.cli.arguments import add_password_stdin, subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.projects import configure_accounts, configure_projects, list_accounts, route
from scrubjay_sync.cli.rounds import run_round, show_round, snapshot, watch
from scrubjay_sync.cli.scopes import configure_scopes, configure_search, scopes, search
from scrubjay_sync.cli.status import acknowledge, quiet, status
from scrubjay_sync.cli.verification import export_heads, inspect, list_log, verify
from scrubjay_sync.transport import connect


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay sync`."""
    parser.add_argument("--watch", action="store_true", help="keep syncing until Ctrl-C")
    add = subcommands(parser, "subcommand", default="")
    add("status", "show where sync stands, without asking the server")
    check = add("verify", "read everything again from the server and check it; show words to compare")
    check.add_argument(
        "--heads", metavar="FILE", help="instead, compare with the file that export-heads wrote on another device"
    )
    add("snapshot", "make a snapshot of what this device holds, with which a new machine has everything sooner")
    add("inspect", "fetch what the server holds and look in it for readable words of this store")
    add("export-heads", "write the ends of the account log and of every lane as JSON, to compare on another device")
    add("log", "list the account log: every change of devices, keys and scopes")
    add_password_stdin(add("acknowledge", "clear the alarms that you have read"))
    pace = add("quiet", "send once in a quarter of an hour only, so that the server learns less of when you work")
    pace.add_argument("state", choices=("on", "off"), help="on or off")
    configure_search(
        add("search", "search a searchable scope at the server (scrubjay recall searches on this machine only)")
    )
    configure_scopes(add("scopes", "list, make and delete scopes"))
    configure_accounts(add("accounts", "list the accounts of this home, begin one without a login, let go of one"))
    configure_projects(add("projects", "say which projects live in which account of this home"))


def run(command: Command) -> int:
    """Run a round, rounds until Ctrl-C, or a subcommand."""
    if command.line.subcommand not in LOCAL:
        command.require_login()
    if command.line.subcommand:
        return SUBCOMMANDS[command.line.subcommand](command) or 0
    with connect(command.chosen) as transport:
        if command.line.watch:
            return watch(command, transport)
        answer = run_round(command, transport)
        command.out.answer(answer, lambda: show_round(answer))
    return 0 if answer.synced and not answer.faults else UnavailableError.exit_code


SUBCOMMANDS: dict[str, Callable[[Command], int | None]] = {
    "status": status,
    "verify": verify,
    "inspect": inspect,
    "snapshot": snapshot,
    "export-heads": export_heads,
    "log": list_log,
    "acknowledge": acknowledge,
    "quiet": quiet,
    "scopes": scopes,
    "search": search,
    "accounts": list_accounts,
    "projects": route,
}

LOCAL = frozenset({"accounts", "projects"})
"""Subcommands that ask no account: they say which there are."""
