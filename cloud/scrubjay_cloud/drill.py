"""The restore drill: what a restore would bring back, brought back beside the service and checked. Leaves nothing."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scrubjay_cloud.backup import backups
from scrubjay_cloud.database import sqlite_file
from scrubjay_cloud.database.sqlite import SqliteTransaction
from scrubjay_cloud.restore import fetch
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.verify import Verified, verify
from scrubjay_shared.errors import InvalidError, NotFoundError, ScrubjayError


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """What one drill found. `error` is empty when everything held; else `verified` may be empty."""

    source: str
    restore_ms: int
    verify_ms: int
    verified: Verified
    error: str = ""

    @property
    def held(self) -> bool:
        """Whether a restore from here would have worked, and lost nothing that it holds."""
        return not self.error and self.verified.holds


def drill(settings: Settings) -> list[Drilled]:
    """Restore the replica and the newest backup, each into a folder of its own beside the database, and check them.

    Runs in the caller's thread, for seconds to minutes. Raises InvalidError where there is nothing to drill, and
    NotFoundError when there is neither a replica nor a backup yet; what fails to restore is returned, not raised.
    """
    if settings.database_url:
        raise InvalidError(
            "scrubjay-cloud does not back up PostgreSQL, so there is nothing to drill",
            hint="restore its backups with PostgreSQL's tools",
        )
    newest = backups(settings.backups)[-1:]
    sources: list[Path | None] = [*([None] if settings.replica else []), *(one.path for one in newest)]
    if not sources:
        raise NotFoundError(
            "there is no backup and no replica to restore", hint="scrubjay-cloud admin backup makes a backup"
        )
    for left in settings.data.glob("drill-*"):  # of one that was killed
        shutil.rmtree(left, ignore_errors=True)
    return [_one(settings, source) for source in sources]


def _one(settings: Settings, source: Path | None) -> Drilled:
    name = "replica" if source is None else source.name
    with tempfile.TemporaryDirectory(dir=settings.data, prefix="drill-") as folder:
        path = Path(folder) / settings.database_path.name
        began = time.monotonic()
        try:
            fetch(settings.replica, path, source=source)
            restored = time.monotonic()
            with sqlite_file.translated(path), contextlib.closing(sqlite_file.raw(path, read_only=True)) as connection:
                verified = verify(SqliteTransaction(connection))
        except ScrubjayError as error:
            spent = round((time.monotonic() - began) * 1000)
            return Drilled(source=name, restore_ms=spent, verify_ms=0, verified=Verified(), error=error.message)
        return Drilled(
            source=name,
            restore_ms=round((restored - began) * 1000),
            verify_ms=round((time.monotonic() - restored) * 1000),
            verified=verified,
            error="" if verified.holds else f"account {verified.findings[0].account}: {verified.findings[0].words}",
        )
