"""What a person must be told that no command was asked for: shown by the next command on a terminal.

Sync keeps such things as alarms in the store, and clears them when the person says that they know.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from scrubjay import accounts
from scrubjay.accounts import MAIN
from scrubjay.cli import invocation
from scrubjay.cli.render import words
from scrubjay.store import alarms
from scrubjay_shared.errors import ScrubjayError

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

CODES = ("account_changed", "team_changed")
"""Who is in the account, or in a team, was changed: the alarms that may be somebody else's doing."""
MOST = 5
"""Told at once; `scrubjay sync status` shows all."""


def tell(line: Namespace) -> None:
    """Write what is waiting to stderr, where a person reads it. The commands of sync tell it themselves."""
    if not sys.stderr.isatty() or getattr(line, "quiet", False) or line.command in {"sync", "completion"}:
        return
    chosen = invocation.settings_of(line)
    try:
        names = accounts.load(chosen.data_dir).names
    except ScrubjayError:  # the commands that need it say so, and doctor does
        names = (MAIN,)
    for account in names:
        of, to = ("", "") if account == MAIN else (f"account {account}: ", f" (with --account {account})")
        for message, hint in waiting(replace(chosen, account=account).store_path):
            sys.stderr.write(f"! {of}{words.clean(message)}\n  {words.clean(hint)}{to}\n")


def waiting(store: Path) -> list[tuple[str, str]]:
    """Return (message, what to do) of what nobody has acknowledged; nothing of a store that cannot be read."""
    return alarms.waiting(store, CODES, MOST)
