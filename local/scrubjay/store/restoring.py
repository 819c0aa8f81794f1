"""Putting another file in a store's place: at every moment a whole store lies there, the old or the new one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from scrubjay.destination import also_at, sync
from scrubjay.store.file import STAGED, Migration, check, copy_to, dropped, opened, remove, unused
from scrubjay.store.lock import StoreLock
from scrubjay.store.sqlite import translated, unwritable
from scrubjay_io.sqlite import SIDE_FILES, driver, side_files
from scrubjay_shared.errors import ConflictError, CorruptError, NotFoundError, UnavailableError


def restore(path: Path, source: Path, steps: Iterable[Migration]) -> Path | None:
    """Put a backup in the store's place. Returns where the old file was kept, None when there was none.

    Raises ConflictError while another process has the store open, CorruptError when the backup does not check out.
    """
    if not source.is_file():
        raise NotFoundError(f"there is no file {source}", hint="scrubjay backup FILE writes a backup")
    if source.resolve() == path.resolve():
        raise ConflictError(
            f"{source} is the store itself, not a backup of it", hint="name a file that scrubjay backup wrote"
        )
    if wrong := check(source):
        raise CorruptError(f"{source.name} cannot be restored: {wrong[0]}", hint="try an older backup")
    newest = max(step.version for step in steps)
    lock = StoreLock(path)
    copy = staged(path)
    try:
        with translated(source), opened(source, read_only=True) as connection:
            version = int(connection.execute("pragma user_version").fetchone()[0])
            if version > newest:
                raise ConflictError(
                    f"{source.name} was written by a newer scrubjay (schema {version}, this one reads up to {newest})",
                    hint="upgrade scrubjay, then restore it again",
                )
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock.acquire()
            remove(copy)
            copy_to(connection, source, copy)  # not the bytes of the file: part of them may stand in its log
        kept = put_in_place(copy, path)
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be written: {error.strerror}",
            hint=unwritable(path, error) or f"check the permissions: ls -ld '{path.parent}'",
        ) from error
    finally:
        if lock.held:
            remove(copy)
        lock.release()
    return kept


def staged(path: Path) -> Path:
    """Return where what is to take a store's place is made."""
    return path.with_name(path.name + STAGED)


def put_in_place(copy: Path, path: Path) -> Path | None:
    """Put a whole copy in a store's place. Returns where the old file was kept, None when there was none.

    The caller holds the lock. Whenever this ends, a store lies at the path, the old or the new one, with what belongs
    to it and nothing else. Raises OSError.
    """
    with translated(copy), opened(copy) as connection:
        # Here, not at the first opening: that would write the new mode into a file that is the person's only one.
        connection.execute("pragma journal_mode = wal")
    sync(copy)
    kept = _kept(path)
    copy.replace(path)
    sync(path.parent)
    return kept


def _kept(path: Path) -> Path | None:
    """Keep a store under a name of the time too, and leave nothing but it under its own. Returns the new name.

    What lies beside it would be played into the file that takes its place. Its log is put into it before; where it
    cannot be opened, the log and the journal are kept beside the new name, as are those of a store that is gone.
    """
    existed = path.exists()
    if existed and not dropped(path):
        with contextlib.suppress(driver.Error, UnicodeDecodeError), opened(path) as connection:
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    kept = unused(path)
    for suffix in ("", *SIDE_FILES):
        if path.with_name(path.name + suffix).exists():
            also_at(path.with_name(path.name + suffix), kept.with_name(kept.name + suffix))
    for each in side_files(path):
        each.unlink(missing_ok=True)
    return kept if existed else None
