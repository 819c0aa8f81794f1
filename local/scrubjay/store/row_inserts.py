"""Inserting many rows with few statements: what a row costs beside its place in the tables is binding and stepping.

A statement for each row took four tenths more time than one for some thirty, which binds values that all rows have in
common once. SQLite keeps a journal for each statement of several rows that may break a constraint, to undo its first
rows: a copy of every page that it touches. That was a fifth of the time in a large store, and is of no use where the
transaction, or a savepoint in it, is rolled back anyway: `or fail` goes without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

_VALUES = 480
"""Of one statement: twice as many make it no faster, and SQLite binds 32,766."""


def insert(
    connection: Any, into: str, row: str, values: Sequence[Any], *, width: int, shared: Iterable[Any] = ()
) -> None:
    """Insert rows `into` a table and its columns, of which `row` is one as SQL.

    In that, `?1` and so on are those `shared` by all rows, in their order and before any others; each `?` is the next
    value of the row itself. `values` are these, `width` for each row, one row after the other.

    Where it raises, some of the rows may be there: the transaction, or a savepoint in it, must be rolled back.
    """
    common, step = tuple(shared), max(1, _VALUES // width) * width
    for at in range(0, len(values), step):
        count = min(step, len(values) - at) // width
        connection.execute(_statement(into, row, count), [*common, *values[at : at + step]])


@cache
def _statement(into: str, row: str, count: int) -> str:
    return f"insert or fail into {into} values {', '.join([row] * count)}"
