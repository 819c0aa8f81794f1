"""A check sum in every row that cannot be derived again, so that a bit that flips on the disk does not go unseen.

SQLite checks its own structure, not what stands in it. So each row of `tables.CHECKSUMMED` carries the CRC-32 of its
other columns, four bytes, in `crc`. Triggers of the one connection that may write compute it: no statement can forget
to. A statement that inserts many rows may bring it along (`summed`), which spares the second write of each row, and
with `brought_along` the journal that SQLite keeps for each statement that has a trigger.
`damage.py` compares. A migration that gives one of these tables another column must set `crc` to null in its rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from scrubjay.store.tables import CHECKSUMMED

_ENCODER = msgspec.msgpack.Encoder()


def checksum(*values: Any) -> int:
    """Return the check sum of the values of a row: a CRC-32 that SQLite stores in four bytes.

    >>> checksum("a", 1) == checksum("a", 1), checksum("a", 1) == checksum("a", 2)
    (True, False)
    """
    return checksum_of(values)


def checksum_of(row: tuple[Any, ...]) -> int:
    """Return what `checksum` does of the values in a tuple."""
    return zlib.crc32(_ENCODER.encode(row)) - (1 << 31)


def summed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row, whose values stand in the order of the table's columns and are what SQLite stores, with its sum."""
    return (*row, checksum_of(row))


def all_summed(values: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return what `summed` does of each of some rows: a million of them when a device joins."""
    encode, crc32 = _ENCODER.encode, zlib.crc32
    return [(*row, crc32(encode(row)) - (1 << 31)) for row in values]


def sums(rows: Iterable[tuple[Any, ...]]) -> list[int]:
    """Return what `checksum_of` does of each of some rows."""
    return [zlib.crc32(data) - (1 << 31) for data in map(_ENCODER.encode, rows)]


def numbers_summed(numbers: Iterable[int]) -> list[int]:
    """Return some numbers, each a whole row, with the check sum of that row behind each."""
    encode, crc32 = _ENCODER.encode, zlib.crc32
    return [value for n in numbers for value in (n, crc32(encode((n,))) - (1 << 31))]


def columns_of(connection: Any, table: str) -> tuple[str, ...]:
    """Return the columns that the check sum of a table's rows covers, in order."""
    found = connection.execute("select name from pragma_table_info(?, 'main')", (table,)).fetchall()
    return tuple(row[0] for row in found if row[0] != "crc")


def key_of(connection: Any, table: str) -> tuple[str, ...]:
    """Return the columns that tell the rows of a table apart."""
    found = connection.execute(
        "select name from pragma_table_info(?, 'main') where pk > 0 order by pk", (table,)
    ).fetchall()
    return tuple(row[0] for row in found)


def install(connection: Any) -> None:
    """Have a connection add a check sum to every row that it writes from now on."""
    _teach(connection)
    for table in CHECKSUMMED:
        _watch_inserts(connection, table)
        columns = columns_of(connection, table)
        connection.execute(
            f"create temp trigger checksum_again_{table} after update of {', '.join(columns)} on main.{table}"
            f" {_update(connection, table)}"
        )


@contextmanager
def brought_along(connection: Any, tables: Iterable[str]) -> Iterator[None]:
    """Insert rows into some tables, in a transaction, that all bring their check sums along.

    Without their triggers that takes a third of the time. Where it raises, the transaction or a savepoint in it must be
    rolled back, which brings the triggers back too.
    """
    for table in tables:
        connection.execute(f"drop trigger temp.checksum_{table}")
    yield
    for table in tables:
        _watch_inserts(connection, table)


def _watch_inserts(connection: Any, table: str) -> None:
    connection.execute(
        f"create temp trigger checksum_{table} after insert on main.{table} when new.crc is null"
        f" {_update(connection, table)}"
    )


def _update(connection: Any, table: str) -> str:
    columns, key = columns_of(connection, table), key_of(connection, table)
    return (
        f"begin update {table} set crc = checksum({_of('new', columns)})"
        f" where {' and '.join(f'{column} = new.{column}' for column in key)}; end"
    )


def fill(connection: Any) -> None:
    """Fill in the check sums that a migration left empty. Does nothing in a file of an older schema."""
    _teach(connection)
    for table in CHECKSUMMED:
        if connection.execute("select 1 from pragma_table_info(?) where name = 'crc'", (table,)).fetchone():
            columns = columns_of(connection, table)
            connection.execute(f"update {table} set crc = checksum({', '.join(columns)}) where crc is null")


def _teach(connection: Any) -> None:
    connection.create_function("checksum", -1, checksum, deterministic=True)


def _of(row: str, columns: Iterable[str]) -> str:
    return ", ".join(f"{row}.{column}" for column in columns)
