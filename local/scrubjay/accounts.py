"""The accounts of one home, and which projects belong to which. It names and decides; it opens no store.

The main account has the store of the data folder itself, and every project that is routed nowhere. Each other account
has a folder of its own below `accounts/`, with a store, a login and keys of its own, so that nothing of one can be
sent, copied or found with another. Which projects live there stands in `accounts/accounts.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scrubjay.folders import ACCOUNTS
from scrubjay_io import private_files
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, NotFoundError, UnavailableError

MAIN = "main"
"""The name of the account that has the data folder's own store."""

RECORD_NAME = "accounts.json"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
"""A folder's name on every system, and a word on a command line."""

LOCK_S = 10.0
"""How long a change of the record waits for another one, which takes milliseconds."""

NAMES = "1 to 32 lower-case letters, digits and hyphens, not a hyphen first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The accounts of a home beside the main one, by name: the projects that live in each.

    A project stands for what is named below it too: `github.com/acme` for all repositories there, a folder for those
    in it. Case does not count.
    """

    projects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Every account's name, the main one first."""
        return (MAIN, *sorted(self.projects))

    def of(self, names: Iterable[str]) -> str:
        """Return the account of a project that has these names; the main one where none of them is routed.

        The longest routed name decides, so that one repository of many may live elsewhere.

        >>> work = Accounts(projects={"work": ("github.com/acme",)})
        >>> work.of(["github.com/Acme/shop", "/home/ana/shop"]), work.of(["github.com/acmeville/shop"])
        ('work', 'main')
        """
        folded = [name.casefold().rstrip("/") for name in names]
        found = [
            (len(project), account)
            for account, projects in self.projects.items()
            for project in projects
            if any(name == project or name.startswith(f"{project}/") for name in folded)
        ]
        return max(found)[1] if found else MAIN

    def require(self, account: str) -> None:
        """Raise NotFoundError where there is no account of this name."""
        if account != MAIN and account not in self.projects:
            raise NotFoundError(
                f"there is no account {account!r} here: there is {', '.join(self.names)}",
                hint=f"scrubjay login --account {account} begins one",
            )

    def with_account(self, account: str) -> Accounts:
        """Return them with an account of this name; the same ones where it is there already. Raises InvalidError."""
        checked_name(account)
        if account == MAIN or account in self.projects:
            return self
        return Accounts(projects={**self.projects, account: ()})

    def without_account(self, account: str) -> Accounts:
        """Return them without an account; its projects are main's then. Raises NotFoundError, InvalidError for main."""
        self.require(account)
        if account == MAIN:
            raise InvalidError(f"the account {MAIN} is always there", hint="scrubjay logout ends its login")
        return Accounts(projects={name: known for name, known in self.projects.items() if name != account})

    def with_project(self, project: str, account: str) -> Accounts:
        """Return them with a project routed to an account; to the main one is to route it nowhere else.

        Raises NotFoundError for an account that is not there, InvalidError for no project, ConflictError for one that
        lives elsewhere by this very name.
        """
        self.require(account)
        wanted = route_of(project)
        holder = next((name for name, known in self.projects.items() if wanted in known), MAIN)
        if holder == account:
            return self
        if holder != MAIN:
            raise ConflictError(
                f"the project {wanted} belongs to the account {holder}",
                hint=f"scrubjay sync projects remove {wanted} --account {holder} takes it from there",
            )
        return Accounts(projects={**self.projects, account: (*self.projects[account], wanted)})

    def without_project(self, project: str, account: str) -> Accounts:
        """Return them with a project routed nowhere. Raises NotFoundError where it is not routed to this account."""
        self.require(account)
        wanted = route_of(project)
        known = self.projects.get(account, ())
        if wanted not in known:
            raise NotFoundError(
                f"the account {account} has no project {wanted}", hint="scrubjay sync projects list shows them all"
            )
        return Accounts(projects={**self.projects, account: tuple(one for one in known if one != wanted)})


def checked_name(account: str) -> str:
    """Return the name of an account. Raises InvalidError for what is none."""
    if not _NAME.fullmatch(account):
        raise InvalidError(f"{account[:40]!r} is not the name of an account", hint=f"it has {NAMES}")
    return account


def route_of(project: str) -> str:
    """Return a project's name as it is compared with others; `/*` at its end says no more than it does without.

    Raises InvalidError where nothing is left, or the root folder, which would be everything.
    """
    found = project.strip().casefold().removesuffix("*").rstrip("/")
    if not found or "*" in found:
        raise InvalidError(
            f"{project[:60]!r} is not the name of a project",
            hint="name a folder, or a remote: github.com/acme/shop, or github.com/acme for all of its repositories",
        )
    return found


def folder_of(data_dir: Path, account: str) -> Path:
    """Return the folder of an account's store, login and keys."""
    return data_dir if account == MAIN else data_dir / ACCOUNTS / checked_name(account)


def record_path(data_dir: Path) -> Path:
    """Return the file that says which accounts there are beside the main one."""
    return data_dir / ACCOUNTS / RECORD_NAME


def load(data_dir: Path) -> Accounts:
    """Return the accounts of a data folder. Raises CorruptError, UnavailableError.

    A record that cannot be read is an error everywhere, never an empty one: nothing would be routed any more.
    """
    path = record_path(data_dir)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Accounts()
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read ({error.strerror})", hint="check its permissions") from error
    try:
        known = json.loads(data)["projects"]
        return Accounts(
            projects={
                checked_name(account): tuple(route_of(project) for project in known[account]) for account in known
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError, InvalidError) as error:
        raise CorruptError(
            f"{path} is damaged: it does not say which projects belong to which account",
            hint='mend it by hand, as {"projects": {"work": ["github.com/acme"]}}; nothing is stored until then',
        ) from error


def change(data_dir: Path, work: Callable[[Accounts], Accounts]) -> Accounts:
    """Change the accounts of a data folder, and return them as they are now.

    One process at a time: of two that route a project at once, neither takes the other's route away. Raises what `work`
    raises, and UnavailableError where another process holds the record for long, or it cannot be written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415  # every command loads this module, and few change anything

    path = record_path(data_dir)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=private_files.FOLDER_MODE)
        with FileLock(path.with_suffix(".lock"), timeout=LOCK_S, mode=private_files.MODE):
            before = load(data_dir)
            after = work(before)
            if after != before:
                written = {"projects": {name: list(routed) for name, routed in sorted(after.projects.items())}}
                private_files.write(path, json.dumps(written, indent=2).encode())
    except Timeout as error:
        raise UnavailableError(
            f"another command changes {path} and does not end", hint="try again when it has ended"
        ) from error
    except OSError as error:
        raise UnavailableError(f"{path} cannot be written ({error.strerror})", hint="check its folder") from error
    return after
