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
from scrubjay.cli.times import moment
from scrubjay.store import alarms
from scrubjay_shared.errors import ScrubjayError

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from scrubjay_shared.clock import Millis

CHANGES = ("account_changed", "team_changed")
"""Who is in or reads what is written was changed: the alarms that may be somebody else's doing."""
LIES = ("split", "rolled_back", "withheld", "bad_signature", "broken_chain", "wrong_key")
"""The server, or somebody who has a device's keys, broke a law of the protocol. Local work goes on all the same."""
MOST = 5
"""Of each kind, told at once; `scrubjay sync status` shows all."""


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
    """Return (what happened and since when, what to do) of what nobody has acknowledged; changes first.

    Nothing of a store that cannot be read.
    """
    # Apart: a server must not be able to hide a change behind lies of its own.
    found = (*alarms.waiting(store, CHANGES, MOST), *alarms.waiting(store, LIES, MOST))
    return [(dated(one.message, one.code, one.at), one.hint) for one in found]


def dated(message: str, code: str, at: Millis) -> str:
    """Return what an alarm says with the time at which it was raised; of a broken law, with the law's name."""
    return f"{message} ({code}, since {moment(at)})" if code in LIES else f"{message} ({moment(at)})"
