"""What a person must be told that no command was asked for: shown by the next command on a terminal.

Sync keeps such things as alarms in the store, and clears them when the person says that they know.
"""

from __future__ import annotations

import os
import sys

from scrubjay.folders import ACCOUNTS, STORE_NAME, data_folder

TYPE_CHECKING = False  # as type checkers know it, without importing `typing`: most commands have nothing to be told
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from pathlib import Path

    from scrubjay_shared.clock import Millis

CHANGES = ("account_changed", "team_changed")
"""Who is in or reads what is written was changed: the alarms that may be somebody else's doing."""
LIES = ("split", "rolled_back", "withheld", "bad_signature", "broken_chain", "wrong_key")
"""The server, or somebody who has a device's keys, broke a law of the protocol. Local work goes on all the same."""
MOST = 5
"""Of each kind, told at once; `scrubjay sync status` shows all."""


SYNCED = ("sync.json", "sync.keys")
"""Files beside a store that was logged in anywhere. Without one there are no alarms."""


def tell(line: Namespace) -> None:
    """Write what is waiting to stderr, where a person reads it. The commands of sync tell it themselves."""
    if not sys.stderr.isatty() or getattr(line, "quiet", False) or line.command in {"sync", "completion"}:
        return
    for account, folder in _synced(_data_folder(line)):
        from pathlib import Path  # noqa: PLC0415  # where sync was set up

        of, to = ("", "") if account is None else (f"account {account}: ", f" (with --account {account})")
        for message, hint in waiting(Path(folder, STORE_NAME)):
            from scrubjay.cli.render import words  # noqa: PLC0415  # where there is something to be told

            sys.stderr.write(f"! {of}{words.clean(message)}\n  {words.clean(hint)}{to}\n")


def _data_folder(line: Namespace) -> str:
    found = data_folder(line.data_dir, line.home, os.environ)
    if found is None:
        from scrubjay.cli import invocation  # noqa: PLC0415  # where only the settings can tell

        found = str(invocation.settings_of(line).data_dir)
    return found


def _synced(folder: str) -> Iterator[tuple[str | None, str]]:
    """Yield the accounts whose stores were logged in anywhere, the main one first as None, with their folders."""
    places: list[tuple[str | None, str]] = [(None, folder)]
    beside = f"{folder}/{ACCOUNTS}"
    if os.path.isdir(beside):  # noqa: PTH112  # as the first lines say
        places += [(name, f"{beside}/{name}") for name in sorted(os.listdir(beside))]  # noqa: PTH208
    for account, place in places:
        if any(os.path.exists(f"{place}/{name}") for name in SYNCED):  # noqa: PTH110
            yield account, place


def waiting(store: Path) -> list[tuple[str, str]]:
    """Return (what happened and since when, what to do) of what nobody has acknowledged; changes first.

    Nothing of a store that cannot be read.
    """
    from scrubjay.store import alarms  # noqa: PLC0415  # where sync was set up

    # Apart: a server must not be able to hide a change behind lies of its own.
    found = (*alarms.waiting(store, CHANGES, MOST), *alarms.waiting(store, LIES, MOST))
    return [(dated(one.message, one.code, one.at), one.hint) for one in found]


def dated(message: str, code: str, at: Millis) -> str:
    """Return what an alarm says with the time at which it was raised; of a broken law, with the law's name."""
    from scrubjay.cli.times import moment  # noqa: PLC0415  # where there is something to be told

    return f"{message} ({code}, since {moment(at)})" if code in LIES else f"{message} ({moment(at)})"
