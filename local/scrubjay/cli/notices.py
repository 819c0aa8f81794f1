"""What a person must be told that no command was asked for: shown by the next command on a terminal.

Sync keeps such things as alarms in the store, and clears them when the person says that they know.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scrubjay.cli import invocation
from scrubjay.cli.render import words
from scrubjay.store import alarms

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

CODE = "account_changed"
"""Who is in the account was changed: the one alarm that may be somebody else's doing on this very machine."""
MOST = 5
"""Told at once; `scrubjay sync status` shows all."""


def tell(line: Namespace) -> None:
    """Write what is waiting to stderr, where a person reads it. The commands of sync tell it themselves."""
    if not sys.stderr.isatty() or getattr(line, "quiet", False) or line.command in {"sync", "completion"}:
        return
    for message, hint in waiting(invocation.settings_of(line).store_path):
        sys.stderr.write(f"! {words.clean(message)}\n  {words.clean(hint)}\n")


def waiting(store: Path) -> list[tuple[str, str]]:
    """Return (message, what to do) of what nobody has acknowledged; nothing of a store that cannot be read."""
    return alarms.waiting(store, CODE, MOST)
