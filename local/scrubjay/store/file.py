"""The store as a file: making, checking, migrating, copying, putting back. Never overwrites what is not ours."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scrubjay.destination import also_at, leftovers, sync
from scrubjay.store import checksums
from scrubjay.store.definition import Migration as Migration  # noqa: PLC0414 - of this module's users, too
from scrubjay.store.definition import foreign, is_derived
from scrubjay.store.definition import migrate as migrate  # noqa: PLC0414
from scrubjay.store.definition import migrations as migrations  # noqa: PLC0414
from scrubjay.store.definition import schema as schema  # noqa: PLC0414
from scrubjay.store.lock import StoreLock
from scrubjay.store.log_file import Tail, read_log
from scrubjay.store.sqlite import translated, unwritable
from scrubjay_io import private_files
from scrubjay_io.sqlite import SIDE_FILES, driver, reader, side_files, undo_interrupted
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, CorruptError, NotFoundError, ScrubjayError, UnavailableError

_log = logging.getLogger(__name__)

APPLICATION_ID = 0x534A4159  # "SJAY": how a store is told from any other SQLite file
PROJECTED = "6"
"""Which projections the tables of a store hold (meta `projected`); one of an older version makes them again.

Raised too when a closed set gets another word: a row of an older version holds the default in its place."""
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
STAGED = ".restored"
QUICK_CHECK_BYTES = 64 * 1024 * 1024
"""Files up to this size are checked whole when opened (about 0.1 s); larger ones by `scrubjay doctor`."""

SPARE_PAGES = 256
"""Empty pages (1 MiB) that stay in the file, for what is written next: without them it would only grow again."""
SHRINK_PAGES = 256
"""Empty pages given back in one step: about 10 ms, in which writes wait."""

RESTORE_HINT = "scrubjay restore FILE brings back a backup; this file is untouched"
DEEPER_HINT = "scrubjay doctor --deep says what is damaged, and what brings it back; this file is untouched"
SALVAGE_HINT = "scrubjay salvage makes a new store of all that can be read; this file is kept"


def prepare(
    path: Path, steps: Iterable[Migration], seed: Callable[[], dict[str, str]], *, schema: str | None = None
) -> int:
    """Make the file ready to open: create it, check that it is ours and whole, migrate it. Returns its version.

    The caller holds the lock. `seed` gives the rows of `meta` for a new file, and `schema` is what all the steps
    together make; None runs them one by one. A new file appears complete or not at all. Before a migration the file is
    copied to `<name>.v<old version>.bak`.
    """
    steps = tuple(steps)
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        _refuse_orphan_log(path)
        whole = steps if schema is None else [Migration(steps[-1].version, "schema", schema)]
        create(path, whole, seed())
        return steps[-1].version
    _refuse_damaged_log(path)
    version = _refused_or_version(path, steps)
    pending = [step for step in steps if step.version > version]
    if pending:
        megabytes, newest = path.stat().st_size // 1_000_000, pending[-1].version
        _log.info(
            "upgrading %s from schema %d to %d mb=%d (minutes where it is large)", path.name, version, newest, megabytes
        )
        with translated(path), opened(path) as connection:
            connection.execute("pragma secure_delete = on")  # of a table that a step drops nothing may stay readable
            copy_to(connection, path, snapshot_path(path, version))
            for step in pending:
                migrate(connection, step)
                _log.info("upgraded %s to schema %d", path.name, step.version)
            _make_shrinkable(path, connection)
    return steps[-1].version


def refuse_unready(path: Path, steps: Sequence[Migration]) -> int:
    """Return the version of a store that is only read. Raises what `prepare` does, and where that would write."""
    version = _refused_or_version(path, steps)
    if version != steps[-1].version:
        raise UnavailableError(
            f"{path.name} is of an older version (schema {version}), and nothing can be written here to upgrade it",
            hint=unwritable(path) or f"check the permissions: ls -ld '{path.parent}'",
        )
    return version


def _refused_or_version(path: Path, steps: Sequence[Migration]) -> int:
    refuse_foreign(path)
    with translated(path), opened(path, read_only=True) as connection:
        version = int(connection.execute("pragma user_version").fetchone()[0])
        if version > steps[-1].version:
            raise ConflictError(
                f"{path.name} was written by a newer scrubjay (schema {version}, this one reads up to "
                f"{steps[-1].version})",
                hint="upgrade scrubjay; the file was not changed",
            )
        _refuse_damaged(path, connection)
    return version


def snapshot_path(path: Path, version: int) -> Path:
    """Return where the copy from before the migration away from `version` is kept."""
    return path.with_name(f"{path.name}.v{version}.bak")


_NIGHTLY = ".nightly"
_BLANKING = ".blanking"
_NAME_OF_NIGHT = re.compile(r"memory-\d{4}-\d\d-\d\dT\d{6}\.\d{3}Z\.db")


def automatic_copies(path: Path) -> list[Path]:
    """Return the whole copies beside the store that nobody asked for: of migrations and of nights, renamed ones too."""
    found = [*path.parent.glob(f"{path.name}.v*.bak"), *path.parent.glob(f"{path.name}{_NIGHTLY}/*")]
    return sorted(one for one in found if one.is_file() and not _is_part(one))


def unfinished(path: Path) -> list[Path]:
    """Return what was left beside the store of copies that were never finished, whoever makes them."""
    names = (".v*.bak.part", ".part", STAGED, f"{STAGED}.part", f"{_NIGHTLY}/*", f"{_NIGHTLY}/.*", f"{_BLANKING}/*")
    beside = (name + suffix for name in names for suffix in ("", *SIDE_FILES))
    found = {one for name in beside for one in path.parent.glob(path.name + name)}
    return sorted(one for one in found if one.is_file() and one not in automatic_copies(path))


def _is_part(path: Path) -> bool:
    return path.name.endswith((".part", *SIDE_FILES)) or path.name.startswith(".")


def nightly_copies(path: Path) -> list[Path]:
    """Return the copies of a store that the daemon made by itself, under the names that it gave them."""
    folder = path.with_name(path.name + _NIGHTLY)
    return sorted(one for one in folder.glob("memory-*.db") if _NAME_OF_NIGHT.fullmatch(one.name) and one.is_file())


def scratch_folder(path: Path) -> Path:
    """Return an empty folder beside the store, its owner's alone, in which a copy is blanked before it is put back."""
    folder = path.with_name(path.name + _BLANKING)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


def take_over(copy: Path, target: Path) -> None:
    """Put a scratch copy, which nobody has open, whole in the place of one that a store has beside it.

    It is written anew first, so that no page holds a word of what was erased in it. Raises CorruptError where the copy
    does not pass its check, UnavailableError where the disk is full.
    """
    with writing(target), translated(copy):
        with opened(copy) as connection:
            connection.execute("pragma secure_delete = on")
            connection.execute("pragma journal_mode = delete")
            connection.execute("vacuum")
        if wrong := check(copy):
            raise CorruptError(f"the blanked copy of {target.name} is damaged: {wrong[0]}", hint=RESTORE_HINT)
        sync(copy)
        for side in side_files(target):  # SQLite would play the log of the file before into this one
            side.unlink(missing_ok=True)
        copy.replace(target)
        sync(target.parent)


def next_nightly_copy(path: Path) -> Path:
    """Return where the daemon's next copy of a store goes, and make the folder, which is the owner's alone."""
    folder = path.with_name(path.name + _NIGHTLY)
    folder.mkdir(mode=0o700, exist_ok=True)
    now = time.time()
    return folder / f"memory-{time.strftime('%Y-%m-%dT%H%M%S', time.gmtime(now))}.{int(now % 1 * 1000):03}Z.db"


BACKUPS = "backups"
"""The folder beside a store where `scrubjay backup` writes unless told otherwise."""


def kept_copies(path: Path) -> list[Path]:
    """Return the copies of a store beside it that only the person deletes: backups, and what a restore put aside."""
    backups = path.with_name(BACKUPS)
    kept = [each for each in (backups.iterdir() if backups.is_dir() else ()) if each.is_file()]
    return sorted([*kept, *path.parent.glob(f"{path.name}.before-restore-*")])


def half_made(path: Path) -> list[Path]:
    """Return the copies of a store, in its own folders, whose process was killed while it made them."""
    folders = (path.parent, path.with_name(BACKUPS), path.with_name(path.name + _NIGHTLY))
    return [left for folder in folders if folder.is_dir() for left in leftovers(folder)]


def check(path: Path) -> list[str]:
    """Return what is wrong with a file as a store, in words; nothing when it is whole. Opens it for reading only.

    Raises UnavailableError where that cannot be told, because the system does not let it be read.
    """
    try:
        refuse_foreign(path)
        with translated(path), opened(path, read_only=True) as connection:
            wrong = [*dropped(path), *foreign(connection)]
            found = [row[0] for row in connection.execute("pragma integrity_check(20)").fetchall()]
            return wrong if found == ["ok"] else [*wrong, *found]
    except (CorruptError, NotFoundError) as error:
        return [error.message]


def meta_of(path: Path) -> dict[str, str]:
    """Return the settings that a store keeps in its file; none where there is no store that can be read.

    Opens it for reading only, also while another process has it.
    """
    try:
        refuse_foreign(path)
        with translated(path), opened(path, read_only=True) as connection:
            return {str(key): str(value) for key, value in connection.execute("select key, value from meta")}
    except ScrubjayError:  # whoever wants the reason asks `check`
        return {}


def refused_in(path: Path) -> int:
    """Return how many texts of a store its model refused; 0 where there is no store that can be read."""
    try:
        refuse_foreign(path)
        with translated(path), opened(path, read_only=True) as connection:
            if not connection.execute("select 1 from sqlite_schema where name = 'refused'").fetchone():
                return 0  # of an older schema
            return int(connection.execute("select count(*) from refused").fetchone()[0])
    except ScrubjayError:
        return 0


def last_events_in(path: Path) -> dict[str, int]:
    """Return when each agent's last event was, in UTC milliseconds; {} where there is no store that can be read."""
    try:
        refuse_foreign(path)
        with translated(path), opened(path, read_only=True) as connection:
            return dict(connection.execute("select agent, max(ts) from event where not forgotten group by agent"))
    except ScrubjayError:
        return {}


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise UnavailableError where the system will not let a copy be written."""
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"{target} cannot be written: {error.strerror}", hint=unwritable(target, error) or "choose another folder"
        ) from error


def copy_to(connection: Any, source: Path, target: Path) -> None:
    """Copy an open store to `target`, which appears complete, checked and 0600, or not at all."""
    part = target.with_name(target.name + ".part")
    try:
        with writing(target), translated(target):
            remove(part)
            private_files.create(part)
            copy = driver.connect(str(part), isolation_level=None)
            try:
                connection.backup(copy)
                copy.execute("pragma journal_mode = delete")
            finally:
                copy.close()
        if wrong := check(part):
            raise CorruptError(
                f"the copy of {source.name} is damaged: {wrong[0]}", hint="scrubjay doctor --deep looks for the cause"
            )
        with writing(target):
            sync(part)
            part.replace(target)
            sync(target.parent)
    finally:
        remove(part)


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


def digest(path: Path) -> tuple[int, str]:
    """Return a file's size in bytes and its SHA-256 in hex."""
    with path.open("rb") as stream:
        return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


# --- inside -----------------------------------------------------------------------------------------------------------


def opened(path: Path, *, read_only: bool = False) -> contextlib.closing[Any]:
    """Return a connection to a file, to be closed at the end of a `with`."""
    return contextlib.closing(reader(path) if read_only else driver.connect(str(path), isolation_level=None))


def remove(path: Path) -> None:
    """Delete a copy that is half made, with what SQLite left beside it."""
    for each in (path, *side_files(path)):
        each.unlink(missing_ok=True)


def create(path: Path, steps: Iterable[Migration], seed: dict[str, str]) -> None:
    """Build the file aside and rename it into place, so that a crash leaves no half-made store."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove(part)
        private_files.create(part)
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be created: {error.strerror}",
            hint=unwritable(path, error) or "choose another folder with --data-dir",
        ) from error
    with translated(path), opened(part) as connection:
        # What a crash leaves of the part is thrown away, and `sync` comes before its name: no step waits for the disk.
        connection.execute("pragma synchronous = off")
        connection.execute("pragma journal_mode = memory")
        connection.execute("pragma auto_vacuum = incremental")  # before anything is written: later it needs a vacuum
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute("pragma secure_delete = on")
        for step in steps:
            migrate(connection, step)
        connection.executemany("insert into meta (key, value) values (?, ?)", sorted(seed.items()))
        checksums.fill(connection)
        connection.execute(
            "insert into memory_fts (memory_fts, rank) values ('secure-delete', 1)"
        ) if fts_erases() else None
        connection.execute("pragma journal_mode = wal")  # for the first opening to change nothing in the file
    try:
        sync(part)
        part.replace(path)
        sync(path.parent)
    except OSError as error:
        raise UnavailableError(
            f"{path} cannot be created: {error.strerror}",
            hint=unwritable(path, error) or "check the disk with scrubjay doctor",
        ) from error


def fts_erases() -> bool:
    """Say whether this SQLite's FTS5 can erase deleted terms at once (3.42 and later)."""
    return bool(driver.sqlite_version_info >= (3, 42, 0))


def _make_shrinkable(path: Path, connection: Any) -> None:
    """Let a store of an older version give empty pages back: SQLite then writes the whole file anew, once.

    A disk without the room for that leaves the store as it was: whole, and of the size it has.
    """
    if connection.execute("pragma auto_vacuum").fetchone()[0]:
        return
    connection.execute("pragma auto_vacuum = incremental")
    try:
        connection.execute("vacuum")
    except driver.OperationalError as error:
        _log.warning("%s cannot be made smaller later: %s", path.name, error)


def _refuse_orphan_log(path: Path) -> None:
    for left, what in zip(side_files(path), ("write-ahead log", "", "journal"), strict=True):
        if what and left.exists() and left.stat().st_size:
            raise CorruptError(f"{path.name} is missing, but its {what} {left.name} is there", hint=RESTORE_HINT)


def refuse_foreign(path: Path) -> None:
    """Raise NotFoundError, CorruptError or UnavailableError where a file is no store that can be read."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # to open a pipe waits for whoever writes into it
        raise CorruptError(f"{path} is a device or a pipe, not a store", hint="move it away, or name another file")
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}", hint="scrubjay init makes a store") from error
    except IsADirectoryError as error:
        raise CorruptError(f"{path} is a folder, not a store", hint="name the file in it, as …/memory.db") from error
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise CorruptError(f"{path.name} is not a scrubjay store, or its beginning is damaged", hint=RESTORE_HINT)
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise CorruptError(
            f"{path.name} is a SQLite file, but not a scrubjay store",
            hint="choose another file; this one was not changed",
        )
    with translated(path):
        undo_interrupted(path)
    with path.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    log = path.with_name(path.name + "-wal")
    if not log.exists() or log.stat().st_size == 0:  # with a log, the missing pages may stand there
        page = int.from_bytes(header[16:18], "big")
        pages = int.from_bytes(header[28:32], "big")
        size = 65_536 if page == 1 else page
        if path.stat().st_size < pages * size:
            raise CorruptError(
                f"{path.name} is cut short: {pages * size - path.stat().st_size} bytes are missing", hint=RESTORE_HINT
            )


def dropped(path: Path) -> list[str]:
    """Return what SQLite would silently drop of a store's log, in words. Looks twice: the log may be written to."""
    log = read_log(path)
    if log is None or log.tail is not Tail.DAMAGED or log != read_log(path):
        return []
    return [f"{path.name}-wal fails its check sums, and {log.dropped} transactions in it would be lost"]


def _refuse_damaged_log(path: Path) -> None:
    """Raise CorruptError where opening a store would drop what was acknowledged. The caller holds the lock.

    Where that cannot be told from what a power failure leaves, keep a copy of the file and its log, and say so.
    """
    for words in dropped(path):
        raise CorruptError(words, hint=SALVAGE_HINT)
    log = read_log(path)
    if log is not None and log.tail is Tail.DOUBTFUL:
        kept = unused(path)
        for suffix in ("", "-wal"):
            copy = kept.with_name(kept.name + suffix)
            private_files.create(copy)
            shutil.copyfile(path.with_name(path.name + suffix), copy)
        _log.warning(
            "the last transaction in %s-wal fails its check sums, as after a power failure; kept as %s",
            *(path.name, kept.name),
        )


def _refuse_damaged(path: Path, connection: Any) -> None:
    if wrong := foreign(connection):
        raise CorruptError(f"{path.name} is not as scrubjay makes it: {wrong[0]}", hint=SALVAGE_HINT)
    if path.stat().st_size <= QUICK_CHECK_BYTES:
        found = [row[0] for row in connection.execute("pragma quick_check(20)").fetchall() if not is_derived(row[0])]
        if found not in ([], ["ok"]):
            raise CorruptError(f"{path.name} is damaged: {found[0]}", hint=DEEPER_HINT)


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


def unused(path: Path) -> Path:
    """Return a name of the time, at which nothing is yet, for a store that is put aside."""
    kept = stem = path.with_name(f"{path.name}.before-restore-{time.strftime('%Y%m%dT%H%M%S')}")
    again = 1
    while any(each.exists() for each in (kept, *side_files(kept))):
        again += 1
        kept = stem.with_name(f"{stem.name}-{again}")
    return kept


def created(now: Millis, store_id: str, device: str) -> dict[str, str]:
    """Return the rows of `meta` that a new store starts with."""
    return {"store_id": store_id, "device": device, "created": str(now), "projected": PROJECTED}
