"""`scrubjay sync accounts | projects`: the accounts of this home, and which projects live in which."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from scrubjay import accounts, projects
from scrubjay.accounts import MAIN
from scrubjay.checkouts import looked_up
from scrubjay.cli import render
from scrubjay.cli.arguments import Parser, text
from scrubjay_shared.errors import ConflictError, InvalidError
from scrubjay_sync import profile
from scrubjay_sync.cli.arguments import subcommands
from scrubjay_sync.cli.choosing import is_named, logins
from scrubjay_sync.cli.command import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrubjay.accounts import Accounts
    from scrubjay_sync.cli.choosing import Login


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLine:
    """An account of this home: the projects that live there, its store, and its login, "" while it has none."""

    name: str
    username: str
    origin: str
    projects: tuple[str, ...]
    store: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsReport:
    """The accounts of this home, the main one first. Every project that is routed nowhere lives in the main one."""

    accounts: tuple[AccountLine, ...]


def configure_projects(parser: Parser) -> None:
    """Add the arguments of `scrubjay sync projects`."""
    add = subcommands(parser, "project_command", default="list")
    add("list", "list the accounts and the projects that live in each")
    into = add("add", "let a project live in an account of its own: give --account; what is there stays where it is")
    into.add_argument("project", type=text, metavar="PROJECT", help=PROJECT)
    out = add("remove", "let new things of a project go to the main account again")
    out.add_argument("project", type=text, metavar="PROJECT", help=PROJECT)


PROJECT = "a folder, a remote as github.com/acme/shop, or github.com/acme for all of its repositories"

STAYS = "what was stored of it before stays where it is"


def configure_accounts(parser: Parser) -> None:
    """Add the arguments of `scrubjay sync accounts`."""
    add = subcommands(parser, "account_command", default="list")
    add("list", "list the accounts, and the projects that live in each")
    begun = add("add", "begin an account without a login: what lives there stays on this machine")
    begun.add_argument("name", type=text, metavar="NAME", help=accounts.NAMES)
    ended = add("remove", "let go of an account that is logged out; its store stays where it is, and is said")
    ended.add_argument("name", type=text, metavar="NAME", help="its name here")


def list_accounts(command: Command) -> None:
    """List the accounts of this home, begin one without a login, or let go of one."""
    line, data_dir, words = command.line, command.chosen.data_dir, ""
    if line.account_command == "add":
        known = accounts.change(data_dir, lambda before: before.with_account(line.name))
        words = f"the account {line.name} is there; scrubjay sync projects add PROJECT --account {line.name} fills it"
    elif line.account_command == "remove":
        folder = accounts.folder_of(data_dir, line.name)
        if line.name != MAIN and profile.load(folder) is not None:
            raise ConflictError(
                f"the account {line.name} is logged in", hint=f"scrubjay logout --account {line.name} first"
            )
        known = accounts.change(data_dir, lambda before: before.without_account(line.name))
        words = f"the account {line.name} is let go of; its projects are main's now, and its store is in {folder}"
    else:
        known = accounts.load(data_dir)
    _answer(command, known, words)


PROJECT = "a folder, a remote as github.com/acme/shop, or github.com/acme for all of its repositories"

STAYS = "what was stored of it before stays where it is"


def route(command: Command) -> None:
    """List what is routed, route a project to an account, or no longer."""
    line, data_dir = command.line, command.chosen.data_dir
    if line.project_command not in {"add", "remove"}:
        _answer(command, accounts.load(data_dir), "")
        return
    project = named(line.project)
    shown = accounts.route_of(project)
    account = command.chosen.account
    if line.project_command == "add":
        if account == MAIN:
            raise InvalidError(
                "which account shall it live in? main has every project that is routed nowhere",
                hint=f"scrubjay sync projects add {shown} --account NAME; scrubjay sync accounts lists them",
            )
        known = accounts.change(data_dir, lambda before: before.with_project(project, account))
        words = f"{shown} lives in the account {account} from now on; {STAYS}"
    else:
        holder = account if is_named(command.chosen) else accounts.load(data_dir).of([project])
        known = accounts.change(data_dir, lambda before: before.without_project(project, holder))
        words = f"new things of {shown} go to the account {known.of([project])}; {STAYS}"
    _answer(command, known, words)


def named(project: str) -> str:
    """Return the name of a project that is named by its folder, by an address of its remote, or by its name."""
    if project.startswith(("~", ".", "/")):
        folder = Path(os.path.realpath(Path(project).expanduser()))
        # A folder inside of a checkout is the whole checkout; one that holds several stands for all of them.
        return looked_up(str(folder))[0][0]
    is_address = "://" in project or ("@" in project and ":" in project)
    return (projects.remote_name(project) if is_address else None) or project


def _answer(command: Command, known: Accounts, words: str) -> None:
    found = logins(command.chosen)
    report = AccountsReport(
        accounts=tuple(
            AccountLine(
                name=one.account,
                username="" if one.profile is None else one.profile.username,
                origin="" if one.profile is None else one.profile.origin,
                projects=known.projects.get(one.account, ()),
                store=str(accounts.folder_of(command.chosen.data_dir, one.account)),
            )
            for one in found
        )
    )
    if words:
        command.out.answer(report, lambda: words)
    else:
        command.out.answer(report, lambda: _table(found, known))


def _table(found: Sequence[Login], known: Accounts) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("account", "login", "projects"):
        table.add_column(column, overflow="fold")
    for one in found:
        routed = ", ".join(known.projects.get(one.account, ()))
        cells = (one.account, one.where, "everything else" if one.account == MAIN else routed or "-")
        table.add_row(*(Text(render.words.clean(cell)) for cell in cells))
    return table
