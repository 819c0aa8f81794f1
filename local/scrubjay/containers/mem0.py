"""mem0's history, of which the last word on each memory is what it remembers. Its vectors' store is not read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from scrubjay.containers.rows import encoded, has, objects

NEEDED = {"history": {"memory_id", "old_memory", "new_memory", "event", "created_at"}}


def is_mem0(database: sqlite3.Connection) -> bool:
    """Say whether a database is the history that mem0 keeps."""
    return has(database, NEEDED)


def parts(database: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield the history, whole: what became of a memory may stand anywhere after it."""
    rows = [each for some in objects(database, "history", "created_at, rowid") for each in some]
    yield "history", encoded({"history": rows})
