"""Reading tables whose columns differ from version to version of their program: by name, and what there is of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

ROWS = 500
"""Rows of one part: as many drafts are stored in one transaction."""


def columns_of(database: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the columns of a table; none where there is no such table."""
    return tuple(str(row[0]) for row in database.execute("select name from pragma_table_info(?)", (table,)))


def has(database: sqlite3.Connection, needed: dict[str, set[str]]) -> bool:
    """Say whether a database has these tables, each with these columns."""
    return all(columns <= set(columns_of(database, table)) for table, columns in needed.items())


def objects(database: sqlite3.Connection, table: str, order: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a table as objects by the names of the columns, some at a time."""
    cursor = database.execute(f"select * from {table} order by {order}")
    names = [str(column[0]) for column in cursor.description]
    while found := cursor.fetchmany(ROWS):
        yield [dict(zip(names, row, strict=True)) for row in found]


def encoded(value: Any) -> bytes:
    """Return JSON in UTF-8. A blob, which JSON cannot say, is left out."""
    return json.dumps(value, ensure_ascii=False, default=lambda _: None).encode("utf-8", "replace")
