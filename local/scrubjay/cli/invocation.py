"""From a command line to the store it means: its settings, its transport, and the texts and times it was given."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay import accounts, api, projects, settings
from scrubjay.checkouts import looked_up
from scrubjay.transports import client, local
from scrubjay.trusted_folders import FolderState
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence

WAIT_S = 30.0
"""How long a command waits for another one, or a daemon that starts: agents run several at a time."""

EMBED_MS = 15_000
"""How long embedding what one command wrote may take: a server that loads its model first needs some seconds, and a
person should not wait longer for one that never answers. The next command goes on with the rest."""

BOM = b"\xef\xbb\xbf"


def settings_of(line: Namespace) -> settings.Settings:
    """Return the settings in force for this command."""
    environ = dict(os.environ)
    if line.home is not None:
        environ["SCRUBJAY_HOME"] = str(Path(line.home).expanduser().absolute())
    return settings.load({"data_dir": line.data_dir, "account": line.account}, environ)


@contextmanager
def store(line: Namespace, *, background: bool = False) -> Iterator[local.Transport]:
    """Open the store for this command: through the daemon when it runs, else here, and closed after it."""
    chosen = settings_of(line)
    told = nothing if line.quiet else waiting
    opened = local.open_store(chosen.store_path, chosen, background=background, wait_s=WAIT_S, waiting=told)
    if isinstance(opened, local.DaemonTransport) and not line.quiet:
        say_version(opened.running)
    if not line.quiet and "account" not in chosen.origins and getattr(line, "project", None) is None:
        say_account(chosen)
    try:
        yield opened
    finally:
        opened.close()


def say(words: str) -> None:
    """Say something on stderr that is not the result, while it is true."""
    sys.stderr.write(f"scrubjay: {words}\n")
    sys.stderr.flush()


def waiting(words: str) -> None:
    """Say what a command waits for, where a person sees it."""
    if sys.stderr.isatty():
        say(words)


def nothing(_: str) -> None:
    """Say nothing."""


@cache
def say_version(running: client.Running | None) -> None:
    """Say once when the daemon is of another version than this command, and what to do about it."""
    apart = None if running is None else client.skew(running.version)
    if apart is not None:
        say(f"{apart[0]}; {apart[1]}")


def say_account(chosen: settings.Settings) -> None:
    """Say on a terminal when the folder that a command is run in belongs to another account than the one it means."""
    if not sys.stderr.isatty() or not accounts.record_path(chosen.data_dir).exists():
        return
    account = accounts.load(chosen.data_dir).of(looked_up(str(Path.cwd()))[0])
    if account != chosen.account:
        say(f"this folder belongs to the account {account}: with --account {account} a command means that one")


def other_accounts(line: Namespace) -> tuple[str, ...]:
    """Return the accounts of the home that this command did not mean; none where its project decides."""
    chosen = settings_of(line)
    if getattr(line, "project", None) is not None:
        return ()
    return tuple(name for name in accounts.load(chosen.data_dir).names if name != chosen.account)


def embedded(opened: local.Transport) -> None:
    """Embed what this command wrote, where no daemon does it: else it would never be found by its meaning."""
    if opened.through == "process":
        opened.call("settle", api.SettleRequest(timeout_ms=EMBED_MS))


def now() -> datetime:
    """Return this moment on this machine's clock and calendar."""
    return datetime.now(UTC).astimezone()


def labels(opened: local.Transport, shown: Iterable[str | None]) -> dict[str, str]:
    """Return how people are shown those of some projects whose names say nothing: with the name of a folder here."""
    if not any(project is not None and project.startswith(projects.FIRST_COMMIT) for project in shown):
        return {}
    found: api.ProjectsResponse = opened.call("projects", api.Nothing())
    return projects.labels((one.folder, one.project) for one in found.folders if one.state == FolderState.TRUSTED)


def words(given: Sequence[str], what: str) -> str:
    """Return the text given as arguments, or on stdin for `-`. Raises InvalidError when that is not UTF-8."""
    if list(given) != ["-"]:
        return " ".join(given)
    if sys.stdin.isatty():
        sys.stderr.write(f"{what}, ended by Ctrl-D:\n")
    return decoded(sys.stdin.buffer.read(), "stdin").removesuffix("\n")


def decoded(data: bytes, name: str) -> str:
    """Return UTF-8 bytes as text, without a byte-order mark. Never guesses: wrong words would be stored."""
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"{name} is not UTF-8 (byte 0x{data.removeprefix(BOM)[error.start]:02x} at {error.start})",
            hint="convert it first, for instance with: iconv -f WINDOWS-1252 -t UTF-8",
        ) from error
