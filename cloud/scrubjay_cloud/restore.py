"""Bringing a database back: built aside, checked whole, its generation raised, then swapped in. Nothing is overwritten.

The restored state may lack what was acknowledged last. So the generation is raised: every client then compares, and
sends again what the server does not have. The file that was there is kept beside, with its log.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from scrubjay_cloud import database, litestream
from scrubjay_cloud.bodies import open_store
from scrubjay_cloud.database import sqlite_file
from scrubjay_cloud.policy import OPERATIONS
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.verify import Verified, repair, repair_each
from scrubjay_io.sqlite import driver, side_files
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, NotFoundError, UnavailableError

CHECKSUM = ".sha256"
"""What is added to a backup's name for the file that holds its SHA-256."""
ASIDE = "restore-"
"""How the folder in which a restore is built begins."""
KEPT = "before-restore-"
"""How the folders begin that keep what was there before. Nothing deletes them: their operator does."""
_MENDABLE = re.compile(
    r"^(row \d+ missing from index|wrong # of entries in index|non-unique entry in index)"
    r"|^(Page \d+: never used|\*\*\* in )"
)
"""What SQLite says of an index that is not what its table says, and of pages that nothing uses: no row is in doubt."""
_FREE_FACTOR = 1.2
"""Room that a restore needs, in sizes of the file that it restores: its log while it is checked."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did. `kept` is the folder with what was there before, empty where nothing was."""

    source: str
    generation: int
    verified: Verified
    kept: str
    fetch_ms: int
    verify_ms: int


async def restore(
    settings: Settings,
    *,
    source: Path | None,
    timestamp: str,
    now: Callable[[], Millis],
    entropy: Callable[[int], bytes],
) -> Restored:
    """Replace the SQLite database by a backup (`source`), or by the replica's newest state or that at `timestamp`.

    On PostgreSQL, where restoring is PostgreSQL's, checks what is there, mends heads, raises the generation: account
    by account, so that what was mended before a log that does not verify stays so. Bodies that the store lacks cut
    their lanes; while it does not answer, nothing is taken for missing.

    Raises ConflictError while a service runs, NotFoundError when there is nothing to restore, CorruptError when what
    there is does not hold; then the database in place is untouched.
    """
    if settings.database_url:
        if source is not None or timestamp:
            raise InvalidError(
                "a PostgreSQL database is restored with PostgreSQL's tools",
                hint="restore it, then run scrubjay-cloud admin restore without --from",
            )
        return await _in_place(settings, now=now, entropy=entropy)
    if source is None and not settings.replica:
        raise InvalidError(
            "restoring needs a backup or a replica, and neither is named", hint="give --from FILE, or --replica URL"
        )
    sqlite_file.refuse_old_sqlite()
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    sqlite_file.refuse_network(settings.data)
    lock = sqlite_file.locked(settings.data)
    try:
        if await litestream.serves(settings.database_path, OPERATIONS.litestream.answer_s):
            raise ConflictError("litestream still runs on this database", hint="stop it, then restore")
        for left in settings.data.glob(f"{ASIDE}*"):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now() / 1000))
        aside = settings.data / f"{ASIDE}{stamp}"
        aside.mkdir(mode=0o700)
        try:
            began = time.monotonic()
            fetched = aside / settings.database_path.name
            fetch(settings.replica, fetched, source=source, timestamp=timestamp)
            fetch_ms = _ms(began)
            began = time.monotonic()
            generation, verified = await _made_good(fetched, now=now, entropy=entropy)
            kept = _swapped(fetched, settings.database_path, settings.data / f"{KEPT}{stamp}")
            return Restored(
                source=str(source) if source is not None else settings.replica,
                generation=generation,
                verified=verified,
                kept=kept,
                fetch_ms=fetch_ms,
                verify_ms=_ms(began),
            )
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    finally:
        lock.release()


def fetch(replica: str, target: Path, *, source: Path | None, timestamp: str = "") -> None:
    """Write a backup, or what a replica holds, to a new file, and check the file as such.

    Raises NotFoundError, CorruptError, or UnavailableError when the disk has no room for it.
    """
    if source is None:
        litestream.restore(replica, target, timestamp=timestamp, timeout_s=OPERATIONS.restore_s)
    else:
        _copied(source, target)
    with sqlite_file.translated(target), contextlib.closing(sqlite_file.raw(target, read_only=False)) as connection:
        words = _checked(connection)
        if all(_MENDABLE.search(one) for one in words):
            # Such a file comes of a log that somebody emptied before litestream had read it. Rows are what counts:
            # indexes are made of them, and whether they are all there and right is what following every chain shows.
            log.warning(
                "restored file had %d faults in indexes and unused pages; it is made again of its rows", len(words)
            )
            connection.execute("reindex")
            connection.execute("vacuum")
            words = _checked(connection)
    if words != ["ok"]:
        raise CorruptError(
            f"the restored file is damaged: {words[0]}", hint="restore an older one: --timestamp, or another --from"
        )


def _checked(connection: Any) -> list[str]:
    """Return what is wrong, a line each; ["ok"] when nothing is."""
    return [line for row in connection.execute("pragma integrity_check") for line in str(row[0]).splitlines()]


def _copied(source: Path, target: Path) -> None:
    if not source.is_file():
        raise NotFoundError(f"there is no file {source}", hint="name a file that scrubjay-cloud admin backup wrote")
    checksum = source.with_name(source.name + CHECKSUM)
    if checksum.is_file() and checksum.read_text(encoding="ascii").split(" ")[0] != digest(source):
        raise CorruptError(f"{source.name} is damaged: its checksum is another one", hint="restore another backup")
    free = shutil.disk_usage(target.parent).free
    if free < source.stat().st_size * _FREE_FACTOR:
        raise UnavailableError(
            f"the disk has {free >> 20} MiB free, too little to restore {source.name}", hint="free some space"
        )
    shutil.copyfile(source, target)
    for beside, copy in zip(side_files(source), side_files(target), strict=True):
        if beside.is_file() and not beside.name.endswith("-shm"):
            shutil.copyfile(beside, copy)  # of a database that was in use: its log, or its journal, belongs to it
    target.chmod(0o600)


def digest(path: Path) -> str:
    """Return a file's SHA-256 in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


async def _made_good(path: Path, *, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> tuple[int, Verified]:
    """Check and mend the file that was built aside, and raise its generation, all in one transaction."""
    opened = await database.open(path, now=now, entropy=entropy)
    try:
        return await opened.write(lambda tx: (_repaired(tx), database.raise_generation(tx))[::-1])
    finally:
        await opened.close()


def _repaired(tx: database.Transaction) -> Verified:
    return _refuse_fatal(repair(tx))


def _refuse_fatal(verified: Verified) -> Verified:
    if fatal := [finding for finding in verified.findings if finding.fatal]:
        raise CorruptError(
            f"account {fatal[0].account}: {fatal[0].words}",
            hint="restore an older state: --timestamp, or another --from",
        )
    return verified


async def _in_place(settings: Settings, *, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> Restored:
    opened = await database.open(settings, now=now, entropy=entropy)
    try:
        began = time.monotonic()
        verified = _refuse_fatal(await repair_each(opened, open_store(settings)))
        generation = await opened.write(database.raise_generation)
        return Restored(
            source="the database itself",
            generation=generation,
            verified=verified,
            kept="",
            fetch_ms=0,
            verify_ms=_ms(began),
        )
    finally:
        await opened.close()


def _swapped(fetched: Path, target: Path, kept: Path) -> str:
    """Put the new file where the service looks, atomically; return the folder that keeps the old one.

    The old file's log goes first: SQLite would read it into the new file. So that a crash in between costs nothing, the
    log is emptied into the old file before, where that can still be opened.
    """
    beside = [path for path in _side_files(target) if path.exists()]
    if target.exists() or beside:
        kept.mkdir(mode=0o700)
        if target.exists():
            _emptied(target)
            os.link(target, kept / target.name)
        for path in beside:
            if path.exists():
                path.rename(kept / path.name)
    fetched.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return str(kept) if kept.exists() else ""


def _side_files(path: Path) -> list[Path]:
    """Return what belongs to a database file: what SQLite keeps beside it, and litestream's notes of how far it was."""
    return [
        *side_files(path),
        path.with_name(f".{path.name}-litestream"),
    ]


def _emptied(path: Path) -> None:
    # a damaged file is kept as it is, log and all
    with (
        contextlib.suppress(driver.Error, OSError),
        contextlib.closing(sqlite_file.raw(path, read_only=False)) as connection,
    ):
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
