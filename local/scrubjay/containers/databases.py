"""Databases of other programs, as the files that importers read. Nothing is written in the folders where they lie.

SQLite writes files beside a database with a write-ahead log even to read it, and cannot read one where it may not. So
such a database is copied with its log to a folder of our own; one that has no log is read where it is, as unchanging.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from scrubjay.containers import claude_mem, mem0, opencode
from scrubjay.containers.files import require_file
from scrubjay_shared.errors import InvalidError

MAGIC = b"SQLite format 3\0"
LOGS = ("-wal", "-journal")
"""What holds a part of a database while its program runs, and after it was killed."""

LOG_HEAD = 32
"""Bytes of a log that change when it begins anew."""

COPIES = 5
"""Tries to copy a database that its program is writing to: it does so for moments."""

KNOWN = (
    ("opencode", opencode.is_opencode, opencode.sessions),
    ("claude-mem", claude_mem.is_claude_mem, claude_mem.parts),
    ("mem0", mem0.is_mem0, mem0.parts),
)
"""The format to read what a database gives in, how it is known, and what it gives."""


class Part(NamedTuple):
    """A part of a database: what to call it, its format, and its bytes."""

    name: str
    format: str
    data: bytes


def is_database(head: bytes) -> bool:
    """Say whether a file begins as an SQLite database does."""
    return head.startswith(MAGIC)


def parts(path: Path) -> Iterator[Part]:
    """Yield what a database holds, in parts that can be imported one by one.

    Raises InvalidError for a damaged database, one of an unknown program, and one that cannot be opened.
    """
    require_file(path)
    try:
        with _readable(path) as address, closing(sqlite3.connect(address, uri=True)) as database:
            database.execute("pragma query_only = on")
            for format_, is_one, read in KNOWN:
                if is_one(database):
                    for name, data in read(database):
                        yield Part(f"{path.name}/{name}", format_, data)
                    return
    except sqlite3.Error as e:
        raise InvalidError(
            f"{path.name} cannot be read as a database: {e}",
            hint="quit the program that it belongs to, and try a copy of the file with its -wal file beside it",
        ) from e
    raise InvalidError(
        f"{path.name} is a database, but of no program that scrubjay knows",
        hint="scrubjay reads those of OpenCode, claude-mem and mem0 (history.db)",
    )


@contextmanager
def _readable(path: Path) -> Iterator[str]:
    """Yield the address at which a database can be read as it is now. Raises InvalidError when it changes meanwhile."""
    logs = [log for log in LOGS if (beside := path.with_name(path.name + log)).is_file() and beside.stat().st_size]
    if not logs:
        before = _state(path)
        yield f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        if _state(path) != before:
            raise _changing(path)
        return
    with tempfile.TemporaryDirectory(prefix="scrubjay-") as folder:
        copy = Path(folder) / "copy.db"
        for _ in range(COPIES):
            before = _state(path)
            shutil.copyfile(path, copy)
            for log in logs:
                if (beside := path.with_name(path.name + log)).exists():
                    shutil.copyfile(beside, copy.with_name(copy.name + log))
            if _state(path) == before:
                break
        else:
            raise _changing(path)
        yield copy.as_uri()


def _state(path: Path) -> tuple[object, ...]:
    """Return what changes when a database does, other than by what is added to its log: that copies as it stood."""
    state: list[object] = [path.stat().st_size, path.stat().st_mtime_ns]
    for log in LOGS:
        beside = path.with_name(path.name + log)
        if beside.exists():
            with beside.open("rb") as file:
                state.append(file.read(LOG_HEAD))
    return tuple(state)


def _changing(path: Path) -> InvalidError:
    return InvalidError(
        f"{path.name} is being changed by its program", hint="quit the program that it belongs to, then try again"
    )
