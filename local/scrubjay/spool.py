"""The spool: what coding agents reported while the daemon was away, a file each, without secrets.

A file appears whole or not at all, under a name that sorts by time, and goes only after its events are stored. What
was stored and not yet removed when the daemon died is delivered again, and is seen to be there already.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from scrubjay.ingest import payloads
from scrubjay.ingest.payloads import UnreadableError
from scrubjay_io import private_files
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.records import Json

FOLDER_NAME = "spool"

MAX_REPORTS = 20_000
"""Files kept at most: two weeks of a person's use without a daemon."""

LEAST_FREE_BYTES = 256 * 1024 * 1024
"""On a disk with less space left, nothing more is kept: the store needs it first."""

MOST_BYTES = 256 * 1024 * 1024
"""Of one file: eight times the largest payload, for JSON writes some characters as six bytes."""

_LATER = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR)
"""Errors of the process and not of the file."""

_KEPT, _REFUSED = ".json", ".refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a host reported: its payload, by which event, when (UTC milliseconds), and in which folder the hook ran.

    With `use_memory` false it tells that memory is off in its session, and the payload names the session alone.
    """

    host: str
    event: str
    sent: int
    project: str
    payload: Json
    use_memory: bool = True


class NotKeptError(UnavailableError):
    """The spool takes nothing more. `reason` says why, in one word."""

    def __init__(self, message: str, *, hint: str, reason: str) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


def write(data_dir: str | Path, report: Report) -> Path:
    """Keep a report, without secrets. Raises InvalidError for one that is nested too deep, UnavailableError."""
    folder = Path(data_dir) / FOLDER_NAME
    kept = replace(report, payload=payloads.cleaned(report.payload))
    name = f"{report.sent:013d}-{os.getpid()}-{secrets.token_hex(4)}{_KEPT}"
    if len(waiting(data_dir)) >= MAX_REPORTS:
        raise NotKeptError(
            f"{folder} holds {MAX_REPORTS} events already", hint="scrubjay daemon start reads them", reason="spool_full"
        )
    private_files.write(folder / name, json.dumps(asdict(kept)).encode())
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        (folder / name).unlink()
        raise NotKeptError(
            f"there is little space left at {folder}", hint="free some space on the disk", reason="little_space"
        )
    return folder / name


def waiting(data_dir: str | Path) -> list[Path]:
    """Return the files that wait, oldest first."""
    folder = Path(data_dir) / FOLDER_NAME
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_KEPT) and not name.startswith("."))  # noqa: PTH208  # names are enough, and are looked for every few seconds
    except FileNotFoundError:
        return []
    return [folder / name for name in names]


def has_waiting(data_dir: str | Path) -> bool:
    """Say whether a file waits, without listing all."""
    try:
        with os.scandir(Path(data_dir) / FOLDER_NAME) as entries:
            return any(entry.name.endswith(_KEPT) and not entry.name.startswith(".") for entry in entries)
    except FileNotFoundError:
        return False


def read(path: Path, *, now: int) -> Report:
    """Return the report in a file.

    Raises UnreadableError where it holds none or cannot be read, UnavailableError where the process cannot read now,
    FileNotFoundError.
    """
    try:
        # Not msgspec's own decoder: hosts write halves of characters, and numbers beyond 64 bits.
        told = json.loads(_content(path))
        if isinstance(told, dict) and isinstance(told.get("sent"), int | float):
            told["sent"] = Millis(int(max(0, min(told["sent"], now))))  # a time that cannot be costs no report
        return msgspec.convert(told, Report)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _LATER:
            raise UnavailableError(f"{path} cannot be read now ({error.strerror})") from error
        raise UnreadableError(f"{path} cannot be read ({error.strerror})", reason="unreadable_file") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path} is not an event of the spool", reason="unreadable_file") from error


def _content(path: Path) -> bytes:
    """Return what a regular file holds. A pipe or a device would be waited for, and a link leads to another's file."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise ValueError("not a regular file, or too large")
        return file.read()


def remove(path: Path) -> None:
    """Remove a file whose events are stored."""
    path.unlink(missing_ok=True)


def refuse(path: Path) -> None:
    """Put a file aside that cannot be stored, so that it is not tried again and nothing of it is lost."""
    aside = path.with_suffix(_REFUSED)
    if os.path.lexists(aside):  # a link that leads nowhere, too
        aside = path.with_suffix(f".{secrets.token_hex(4)}{_REFUSED}")
    path.replace(aside)
