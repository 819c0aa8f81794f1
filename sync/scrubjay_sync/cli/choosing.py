"""Which of a home's accounts a command means, where there are several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scrubjay import accounts
from scrubjay.accounts import MAIN
from scrubjay_shared.errors import InvalidError
from scrubjay_sync import profile
from scrubjay_sync.profile import Profile

if TYPE_CHECKING:
    from scrubjay.settings import Settings

TO_BE_NAMED = frozenset({"logout", "account"})
"""Commands that cannot be taken back: where several accounts are logged in, one of them must be named."""

OF_ALL = frozenset({("sync", "status"), ("sync", "accounts"), ("sync", "projects")})
"""Commands that speak of all accounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """An account of this home, by its name, and its login; None while it has none."""

    account: str
    profile: Profile | None

    @property
    def where(self) -> str:
        """Who is logged in where, in words."""
        if self.profile is None:
            return "not logged in"
        return f"{self.profile.username or 'a limited device'} at {self.profile.origin}"


def logins(chosen: Settings) -> tuple[Login, ...]:
    """Return the accounts of a home, the main one first. Raises CorruptError, UnavailableError."""
    return tuple(
        Login(account=name, profile=profile.load(accounts.folder_of(chosen.data_dir, name)))
        for name in accounts.load(chosen.data_dir).names
    )


def is_named(chosen: Settings) -> bool:
    """Say whether somebody said which account is meant: on the command line, in the environment, in the settings."""
    return "account" in chosen.origins


def of_command(chosen: Settings, command: str, subcommand: str = "") -> Settings:
    """Return the settings for the account that a command means.

    The one that is named; else the only one that is logged in; else the main one. Raises InvalidError where several
    are logged in, and main is not or the command is one that must be told which; NotFoundError for one that is not
    there.
    """
    if command == "login":  # what it names may be new
        return chosen
    if is_named(chosen):
        accounts.load(chosen.data_dir).require(chosen.account)
        return chosen
    found = [one for one in logins(chosen) if one.profile is not None]
    has_main = any(one.account == MAIN for one in found)
    if len(found) > 1 and (command in TO_BE_NAMED or not (has_main or (command, subcommand) in OF_ALL)):
        known = ", ".join(f"{one.account} ({one.where})" for one in found)
        raise InvalidError(
            f"several accounts are logged in here: {known}",
            hint=f"say which: scrubjay {command} --account {found[-1].account}",
        )
    return replace(chosen, account=MAIN if has_main or not found else found[0].account)


def said(chosen: Settings) -> str:
    """Return what to tell a person of the account that is meant, "" where the home has no other one."""
    known = logins(chosen)
    if len(known) == 1:
        return ""
    meant = next(one for one in known if one.account == chosen.account)
    others = ", ".join(one.account for one in known if one.account != chosen.account)
    return f"account {meant.account}, {meant.where} (--account chooses; others here: {others})"
