"""How a connection to the store is set up, and what the driver's errors mean. Knows no table."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from scrubjay_io.sqlite import ERRORS, Connection, driver, is_mounted_read_only, reader
from scrubjay_shared.errors import ConflictError, CorruptError, InvalidError, ScrubjayError, UnavailableError

Row = tuple[Any, ...]
Params = Sequence[Any]


class Fetch(Protocol):
    """Runs a query and returns its rows."""

    def __call__(self, sql: str, params: Params = ()) -> list[Row]: ...  # noqa: D102


def fetching(connection: Any) -> Fetch:
    """Return what runs a query on the driver's own connection, in its thread."""

    def fetch(sql: str, params: Params = ()) -> list[Row]:
        found: list[Row] = connection.execute(sql, params).fetchall()
        return found

    return fetch


BUSY_TIMEOUT_MS = 5_000  # readers never wait in WAL mode; this covers recovery of the log after a crash
CHECKPOINT_PAGES = 1_000  # of the log, 4 MB, after which SQLite puts it into the file: its own default
# The same while a machine reads all that an account holds: its pages are written again and again, and each time that
# the log is put into the file waits for the disk twice. 32 MB of log; twice as many pages save no more.
FIRST_READING_CHECKPOINT_PAGES = 8_000
NO_SPACE_BYTES = 1024 * 1024
"""With less room than this nothing can be written: a few pages, and what goes with them."""
WAL_LIMIT_BYTES = 64 * 1024 * 1024  # the log file is cut back to this after a checkpoint


def connect(path: Path, *, read_only: bool, fixed: bool = False) -> Connection:
    """Return a connection to an existing store, to be awaited. A reader can never write, whatever it is told.

    A `fixed` store lies where nothing can be written: whoever writes is told so.
    """

    def open_() -> Any:
        connection = reader(path) if fixed else driver.connect(str(path), isolation_level=None, cached_statements=256)
        try:
            connection.execute(f"pragma busy_timeout = {BUSY_TIMEOUT_MS}")
            connection.execute("pragma trusted_schema = off")
            connection.execute("pragma cell_size_check = on")
            connection.execute("pragma secure_delete = on")
            connection.execute("pragma synchronous = full")
            connection.execute(f"pragma journal_size_limit = {WAL_LIMIT_BYTES}")
            if read_only:
                connection.execute("pragma query_only = on")
            elif not fixed:
                connection.execute("pragma journal_mode = wal")
        except BaseException:
            connection.close()
            raise
        return connection

    return Connection(open_, 64)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into ours, with what to do about each."""
    try:
        yield
    except (driver.Error, sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error, path) from error


def translate(error: Exception, path: Path) -> ScrubjayError:
    """Return our error for one of the driver's. A driver that cannot even decode its own words names damaged tables."""
    text = "malformed database schema" if isinstance(error, UnicodeDecodeError) else str(error)
    for words, kind, message, hint in _MEANINGS:
        if any(word in text.lower() for word in words):
            why = unwritable(path) if kind is UnavailableError else ""
            return kind(message.format(name=path.name, text=text), hint=why or hint.format(path=path))
    return ScrubjayError(f"{path.name}: {text}", hint="scrubjay doctor looks for the cause")


def unwritable(path: Path, error: OSError | None = None) -> str:
    """Return what to do about a file that cannot be written where its disk, or the error, says why; else ""."""
    number = None if error is None else error.errno
    if number == errno.EROFS or is_mounted_read_only(path.parent):
        return (
            f"the file system of {path.parent} is read-only: mount it for writing, or use another folder (--data-dir)"
        )
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:
        free = NO_SPACE_BYTES
    if number in {errno.ENOSPC, errno.EDQUOT} or free < NO_SPACE_BYTES:
        return "the disk is full: free some space and try again"
    return ""


def stopped(error: Exception, path: Path) -> UnavailableError:
    """Return what everybody is told once the disk failed in a way that the writer cannot undo."""
    why = str(error) if isinstance(error, ERRORS) else type(error).__name__
    return UnavailableError(
        f"scrubjay stopped writing {path.name} after the disk failed ({why})",
        hint=f"check the disk that holds {path}, then run scrubjay daemon stop and scrubjay daemon start",
    )


_DEEPER = "scrubjay doctor --deep says what is damaged, and what brings it back"

_MEANINGS: tuple[tuple[tuple[str, ...], type[ScrubjayError], str, str], ...] = (
    (
        ("could not decode",),  # first: the driver's words quote the text
        CorruptError,
        "{name} is damaged: a text in it cannot be read",
        _DEEPER,
    ),
    (
        ("is full",),
        UnavailableError,
        "no space left to write {name}",
        "free some disk space and try again; nothing was changed",
    ),
    (("readonly", "read-only"), UnavailableError, "{name} cannot be written", "check the permissions of {path}"),
    (
        ("disk i/o", "unable to open"),
        UnavailableError,
        "{name} cannot be read or written: {text}",
        "check the disk and the permissions of {path}",
    ),
    (
        ("malformed", "not a database", "corrupt"),
        CorruptError,
        "{name} is damaged: {text}",
        "scrubjay restore FILE brings back a backup; the file is untouched",
    ),
    (
        ("fts5 file format", "vtable constructor failed", "no such table", "no such column", "no such index"),
        CorruptError,
        "{name} is damaged: {text}",
        "scrubjay restore FILE brings back a backup; the file is untouched",
    ),
    (
        ("constraint failed", "datatype mismatch"),
        CorruptError,
        "{name} contradicts itself: {text}",
        _DEEPER,
    ),
    (
        ("locked", "busy"),
        ConflictError,
        "{name} is locked by another program",
        "close what has it open and try again",
    ),
    (("append-only",), InvalidError, "events are append-only", "scrubjay forget ID is the only way to erase one"),
    (("too big", "too large"), InvalidError, "the text is larger than SQLite can hold", "split it"),
)
"""What the driver's words mean, the first that fits; {name}, {path} and {text} are filled in."""
