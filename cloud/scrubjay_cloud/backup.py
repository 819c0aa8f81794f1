"""Backups that share no code with litestream: a copy of the database by SQLite itself, its SHA-256, and which to keep.

For PostgreSQL there are none: base backups, archives and `pg_dump` are its own, and better. `check` says so.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scrubjay_cloud.database.port import Database
from scrubjay_cloud.policy import OperationsPolicy
from scrubjay_cloud.restore import CHECKSUM, digest
from scrubjay_io.sqlite import side_files
from scrubjay_shared.clock import Millis

_NAME = re.compile(r"server-(\d{8}T\d{6}Z)\.db")
_STAMP = "%Y%m%dT%H%M%SZ"
_UNFINISHED = ".part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """One backup. `at` is when it was begun; what was committed before is in it."""

    path: Path
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """What a backup made, and which older ones it took away."""

    path: str
    bytes: int
    sha256: str
    ms: int
    removed: tuple[str, ...]


async def back_up(database: Database, folder: Path, policy: OperationsPolicy, *, now: Millis) -> BackedUp:
    """Write a backup into a folder, then remove those that are not to be kept.

    The checksum is written last: a backup without one is unfinished. Raises UnavailableError when the disk is full, and
    InvalidError for PostgreSQL; then nothing is left behind and nothing was removed.
    """
    began = time.monotonic()
    at = datetime.fromtimestamp(now / 1000, UTC)
    path = folder / f"server-{at.strftime(_STAMP)}.db"
    part = path.with_name(path.name + _UNFINISHED)
    await asyncio.to_thread(_prepared, folder)
    try:
        await database.copy_to(part)
        sha256 = await asyncio.to_thread(_finished, part, path)
    except BaseException:
        for left in (part, *side_files(part)):
            left.unlink(missing_ok=True)
        raise
    removed = await asyncio.to_thread(_thinned, folder, policy, at)
    return BackedUp(
        path=str(path),
        bytes=path.stat().st_size,
        sha256=sha256,
        ms=round((time.monotonic() - began) * 1000),
        removed=tuple(one.path.name for one in removed),
    )


def _prepared(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left in folder.glob(f"server-*.db{_UNFINISHED}*"):  # by one that was killed
        left.unlink(missing_ok=True)


def _finished(part: Path, path: Path) -> str:
    """Give a complete copy its name and its checksum, durably; return the checksum."""
    part.chmod(0o600)
    sha256 = digest(part)
    _flushed(part)
    part.rename(path)
    checksum = path.with_name(path.name + CHECKSUM)
    checksum.write_text(f"{sha256}  {path.name}\n", encoding="ascii")
    _flushed(checksum)
    _flushed(path.parent)
    return sha256


def _thinned(folder: Path, policy: OperationsPolicy, at: datetime) -> list[Backup]:
    removed = to_remove(backups(folder), policy, now=at)
    for one in removed:
        one.path.unlink(missing_ok=True)
        one.path.with_name(one.path.name + CHECKSUM).unlink(missing_ok=True)
    return removed


def backups(folder: Path) -> list[Backup]:
    """Return the finished backups of a folder, oldest first."""
    dated = []
    for path in folder.glob("server-*.db"):
        match = _NAME.fullmatch(path.name)
        if match and path.with_name(path.name + CHECKSUM).is_file():
            dated.append(Backup(path=path, at=datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)))
    return sorted(dated, key=lambda one: one.at)


def to_remove(found: Sequence[Backup], policy: OperationsPolicy, *, now: datetime) -> list[Backup]:
    """Return the backups that go: all but the newest of each of the last days, and of each of the last weeks.

    What is older than the weeks goes whatever it is: deleted data has to be gone from backups too. The newest stays.
    """
    today, this_week = now.date(), _week(now)
    keep = set(found[-1:])
    for one in found:
        days = (today - one.at.date()).days
        weeks = (this_week - _week(one.at)).days // 7
        same_day = [other for other in found if other.at.date() == one.at.date()]
        same_week = [other for other in found if _week(other.at) == _week(one.at)]
        if (days < policy.keep_daily and one is same_day[-1]) or (weeks < policy.keep_weekly and one is same_week[-1]):
            keep.add(one)
    return [one for one in found if one not in keep]


def _week(at: datetime) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())


def _flushed(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
