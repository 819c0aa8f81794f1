"""The SQLite driver, the files that it keeps beside a database, and a connection in a thread of its own."""

from __future__ import annotations

import importlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

driver: Any
try:
    driver = importlib.import_module("pysqlite3.dbapi2")
except ImportError:  # no wheel for this platform: the interpreter's own SQLite serves
    driver = sqlite3

T = TypeVar("T")


def _as_it_is(value: T) -> T:
    return value


# The driver binds what is bytes or None as it is, but first asks each such value for an adapter and for two methods
# that it has not: 1.2 µs a value, of 5 that a row of the log took. An adapter that does nothing is found at once.
driver.register_adapter(bytes, bytes)
driver.register_adapter(type(None), _as_it_is)

SAFE_VERSION = (3, 51, 3)
"""From here on SQLite cannot corrupt a WAL file that two connections checkpoint at once.

docs/decisions.md, "The store", says more.
"""

version: str = driver.sqlite_version
version_info: tuple[int, ...] = driver.sqlite_version_info

ERRORS: tuple[type[Exception], ...] = (driver.Error, sqlite3.Error)
"""What the driver raises; aiosqlite itself raises the interpreter's."""

SIDE_FILES = ("-wal", "-shm", "-journal")
"""What stands behind a database's name in the names of the files beside it: its log, the log's index, and its journal,
out of which a transaction that was interrupted is undone. They belong to that file: whoever moves it moves them, and
beside another file they destroy that."""
_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # sqlite.org/fileformat.html, "The Rollback Journal"
_UNLOCKED = "win32-none" if os.name == "nt" else "unix-none"


def side_files(path: Path) -> list[Path]:
    """Return the paths of the files that SQLite may keep beside a database."""
    return [path.with_name(path.name + suffix) for suffix in SIDE_FILES]


def is_interrupted(path: Path) -> bool:
    """Say whether a journal lies beside a database: a transaction is under way, or was interrupted."""
    try:
        with path.with_name(f"{path.name}-journal").open("rb") as file:
            return file.read(len(_JOURNAL)) == _JOURNAL
    except OSError:
        return False


def undo_interrupted(path: Path) -> None:
    """Undo what a process that died in a transaction left of it; nothing where none did. Raises the driver's errors.

    A reader cannot: until this is done it can read nothing. What another process has under way is left alone.
    """
    if is_interrupted(path):
        connection = driver.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
        try:
            connection.execute("select 1 from sqlite_schema").fetchone()
        finally:
            connection.close()


def reader(path: Path, *, timeout: float = 5.0) -> Any:
    """Return a connection that only reads a database, and that works where nothing can be written too.

    Not `query_only`: the last connection to close would still write the log of a crash into a file that we may refuse.
    What a crash left half written is undone before. Raises the driver's errors.
    """
    undo_interrupted(path)
    address = f"{path.absolute().as_uri()}?mode=ro"
    connection = driver.connect(address, uri=True, isolation_level=None, timeout=timeout)
    try:
        connection.execute("select 1 from sqlite_schema").fetchone()
    except driver.OperationalError:
        connection.close()
        if is_writable(path.parent):
            raise
        # A log needs an index beside it, for processes to share. Where no file can be made, nobody shares it either:
        # SQLite then keeps the index in memory, for a connection that has the file to itself.
        how = f"vfs={_UNLOCKED}" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
        connection = driver.connect(f"{address}&{how}", uri=True, isolation_level=None, timeout=timeout)
        connection.execute("pragma locking_mode = exclusive")
    except driver.DatabaseError:  # damage: what reads on says more of it
        pass
    return connection


def is_writable(folder: Path) -> bool:
    """Say whether files can be made in a folder: it may be closed to us, or on a file system that is only read."""
    return os.access(folder, os.W_OK | os.X_OK)


def is_mounted_read_only(folder: Path) -> bool:
    """Say whether the file system of a folder is only read, whatever the folder's permissions are."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except (OSError, AttributeError):  # Windows does not tell
        return False


class Connection(aiosqlite.Connection):
    """A connection in a thread of its own that can also run a whole function there.

    A hop between threads costs more than a statement does, so a transaction makes one instead of one a statement.
    """

    async def call(self, work: Callable[[Any], T]) -> T:
        """Run `work(connection)`, the driver's own connection, in the connection's thread."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]
        return result

    async def close(self) -> None:
        """Close it and wait for its thread: aiosqlite answers a moment before the thread has ended."""
        await super().close()
        self._thread.join()  # it has nothing left to do but return
