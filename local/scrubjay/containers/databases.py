"""Databases of other programs, as the files that importers read. They are opened for reading alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from scrubjay.containers import claude_mem, mem0, opencode
from scrubjay_shared.errors import InvalidError

MAGIC = b"SQLite format 3\0"
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
    address = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
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
