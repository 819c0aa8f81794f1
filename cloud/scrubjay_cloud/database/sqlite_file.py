"""The SQLite file: what is refused before it is opened, how a connection is set up, what its errors mean.

Refuses what could lose data: an SQLite that can corrupt its own log, a network file system, a second process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from scrubjay_cloud.database.port import Transaction
from scrubjay_io import private_files
from scrubjay_io.sqlite import ERRORS, SAFE_VERSION, Connection, driver, version_info
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, ScrubjayError, UnavailableError

APPLICATION_ID = 0x534A_434C  # "SJCL": how the service's file is told from any other
BUSY_TIMEOUT_MS = 5_000  # litestream's checkpoints hold the writer up for milliseconds
WAL_LIMIT_BYTES = 64 * 1024 * 1024  # the log is cut back to this after a checkpoint
CHECKPOINT_PAGES = 1000  # SQLite's own default: after so many the writer empties the log, unless litestream does
NETWORK_FILE_SYSTEMS = frozenset(
    {
        *(
            "9p",
            "afs",
            "beegfs",
            "ceph",
            "cifs",
            "gfs2",
            "glusterfs",
            "lustre",
            "ncpfs",
            "nfs",
            "nfs4",
            "ocfs2",
            "smb3",
        ),
        *("smbfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    }
)
MOUNTS = Path("/proc/self/mountinfo")


def refuse_old_sqlite(version: tuple[int, ...] | None = None) -> None:
    """Raise UnavailableError when SQLite is one that can corrupt its log."""
    used = version or version_info
    if tuple(used) < SAFE_VERSION:
        raise UnavailableError(
            f"SQLite {'.'.join(map(str, used))} can corrupt a database that several connections write "
            f"(fixed in {'.'.join(map(str, SAFE_VERSION))})",
            hint="install pysqlite3 0.6.1 or newer, or a Python with a newer SQLite, or use DATABASE_URL",
        )


def refuse_network(folder: Path, mounts: Path = MOUNTS) -> None:
    """Raise UnavailableError when a folder lies on a network file system, whose locks SQLite cannot rely on.

    Only where the system has a list of its mounts (Linux); elsewhere the folder's exclusive lock has to do.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    where, best, kind = str(folder.resolve()), "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) < 5 or not rest[0]:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t")
        if (where == point or where.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, rest[0]
    if kind in NETWORK_FILE_SYSTEMS:
        raise UnavailableError(
            f"{folder} lies on a network file system ({kind})",
            hint="put SCRUBJAY_CLOUD_DATA on a local disk, or use DATABASE_URL",
        )


def locked(folder: Path) -> FileLock:
    """Take the folder's lock. Raises ConflictError when another process has it. Never waits."""
    lock = FileLock(folder / "lock", timeout=0, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise ConflictError(
            f"{folder} is in use by another process", hint="stop the other scrubjay-cloud first; there can be one"
        ) from error
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be written: {error.strerror}", hint="check its permissions") from error
    return lock


def raw(path: Path, *, read_only: bool) -> Any:
    """Return a driver's connection, set up as every connection to this file is."""
    if not path.exists():
        os.close(private_files.opener(str(path), os.O_CREAT | os.O_WRONLY))
    connection = driver.connect(str(path), isolation_level=None, cached_statements=256, check_same_thread=False)
    try:
        connection.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")
        connection.execute("pragma trusted_schema = off")
        connection.execute("pragma cell_size_check = on")
        connection.execute("pragma mmap_size = 0")
        connection.execute("pragma secure_delete = on")
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma journal_size_limit = {WAL_LIMIT_BYTES}")
        # Nobody empties the log by the way: litestream may not have read it. `empty_log` and `leave_log` say who does.
        connection.execute("pragma wal_autocheckpoint = 0")
        if read_only:
            connection.execute("pragma query_only = on")
        else:
            if not connection.execute("pragma page_count").fetchone()[0]:
                # Heeded before the first table is made; later it would write, each time a connection is opened.
                connection.execute("pragma auto_vacuum = incremental")
            connection.execute("pragma journal_mode = wal")
    except BaseException:
        connection.close()
        raise
    return connection


def empty_log(tx: Transaction) -> None:
    """Have this writer empty the log from now on: no litestream runs.

    What was emptied is cut off when the log begins anew. If the old log's end stayed behind the new log's beginning,
    the next litestream would take the old end, which it knows, for a sign that it had read all in between.
    """
    tx.rows("pragma journal_size_limit = 0")
    tx.rows(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")


def leave_log(tx: Transaction) -> None:
    """Have this writer leave the log alone from now on: a litestream is about to run, or runs.

    It writes something: if all of the log has been emptied already, it begins anew, and is cut off, with this commit,
    and not at some moment when litestream reads it. `limit_log` belongs after that.
    """
    tx.rows("pragma wal_autocheckpoint = 0")
    tx.rows("pragma journal_size_limit = 0")
    tx.rows(f"pragma application_id = {APPLICATION_ID}")


def limit_log(tx: Transaction) -> None:
    """Keep the log's file at its usual size when it begins anew, instead of cutting it off."""
    tx.rows(f"pragma journal_size_limit = {WAL_LIMIT_BYTES}")


def connect(path: Path, *, read_only: bool) -> Connection:
    """Return a connection with a thread of its own, to be awaited."""
    return Connection(lambda: raw(path, read_only=read_only), 64)


def emptying_log(connection: Any) -> Any:
    """Return a writer's connection, which from now on empties the log by itself."""
    connection.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except ERRORS as error:
        raise translate(error, path) from error


def translate(error: Exception, path: Path) -> Exception:
    """Return our error for one of the driver's, any other as it is."""
    if not isinstance(error, ERRORS):
        return error
    text = str(error).lower()
    for words, kind, message, hint in _MEANINGS:
        if any(word in text for word in words):
            ours = kind(message.format(name=path.name), hint=hint)
            ours.__cause__ = error
            return ours
    ours = ScrubjayError(f"{path.name}: {type(error).__name__}", hint="scrubjay-cloud check looks for the cause")
    ours.__cause__ = error
    return ours


_MEANINGS: tuple[tuple[tuple[str, ...], type[ScrubjayError], str, str], ...] = (
    (("is full",), UnavailableError, "the server's disk is full", "its operator must free space; nothing was changed"),
    (
        ("readonly", "read-only", "disk i/o", "unable to open"),
        UnavailableError,
        "the server cannot read or write {name}",
        "its operator must check the disk and the permissions",
    ),
    (("malformed", "not a database"), CorruptError, "{name} is damaged", "scrubjay-cloud admin restore"),
    (("locked", "busy"), UnavailableError, "the server's database is busy", "try again in a moment"),
    (("too big", "too large"), InvalidError, "a value is larger than the database can hold", "send less"),
)
"""What the driver's words mean, the first that fits. Clients see it: no path, no value."""
