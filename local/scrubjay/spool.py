"""The spool: what coding agents reported while the daemon was away, a file each, without secrets.

A file appears whole or not at all, under a name that sorts by time, and goes only after its events are stored. What
was stored and not yet removed when the daemon died is delivered again, and is seen to be there already.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from scrubjay.ingest import payloads
from scrubjay_io import private_files
from scrubjay_shared.errors import InvalidError, UnavailableError
from scrubjay_shared.records import Json

FOLDER_NAME = "spool"

MAX_REPORTS = 20_000
"""Files kept at most: two weeks of a person's use without a daemon."""

LEAST_FREE_BYTES = 256 * 1024 * 1024
"""On a disk with less space left, nothing more is kept: the store needs it first."""

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


def write(data_dir: str | Path, report: Report) -> Path:
    """Keep a report, without secrets. Raises InvalidError for one that is nested too deep, UnavailableError."""
    folder = Path(data_dir) / FOLDER_NAME
    kept = replace(report, payload=payloads.cleaned(report.payload))
    name = f"{report.sent:013d}-{os.getpid()}-{secrets.token_hex(4)}{_KEPT}"
    if len(waiting(data_dir)) >= MAX_REPORTS:
        raise UnavailableError(f"{folder} holds {MAX_REPORTS} events already", hint="scrubjay daemon start reads them")
    private_files.write(folder / name, json.dumps(asdict(kept)).encode())
    if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
        (folder / name).unlink()
        raise UnavailableError(f"there is little space left at {folder}", hint="make room on the disk")
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


def read(path: Path) -> Report:
    """Return the report in a file. Raises InvalidError where it is not one, OSError where it cannot be read."""
    try:
        # Not msgspec's own decoder: hosts write halves of characters, and numbers beyond 64 bits.
        return msgspec.convert(json.loads(path.read_bytes()), Report)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"{path} is not an event of the spool", hint="remove it") from error


def remove(path: Path) -> None:
    """Remove a file whose events are stored."""
    path.unlink(missing_ok=True)


def refuse(path: Path) -> None:
    """Put a file aside that cannot be stored, so that it is not tried again and nothing of it is lost."""
    path.replace(path.with_suffix(_REFUSED))
