"""What a store consists of: the migrations that ship with the package, the schema they make, and what is not of it."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from importlib import resources
from typing import Any

from scrubjay.store import checksums
from scrubjay_io.sqlite import driver


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema, run in a transaction of its own."""

    version: int
    name: str
    sql: str


def migrations() -> tuple[Migration, ...]:
    """Return the migrations that ship with the package, in order, numbered from 1 without gaps."""
    found = []
    for entry in resources.files("scrubjay.store").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, entry.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda step: step.version))


def schema() -> str:
    """Return the schema that all migrations together make: a new file is made of it in a fifth of the time."""
    return resources.files("scrubjay.store").joinpath("schema.sql").read_text(encoding="utf-8")


@functools.cache
def definitions(version: int) -> frozenset[tuple[str, str, str, str | None]]:
    """Return (kind, name, table, SQL) of all that a store of a version consists of; nothing for one that never was."""
    listed = migrations()
    with contextlib.closing(driver.connect(":memory:", isolation_level=None)) as connection:
        if version == listed[-1].version:
            migrate(connection, Migration(version, "schema", schema()))
        for step in listed[:version] if version < listed[-1].version else ():
            migrate(connection, step)
        return frozenset(tuple(row) for row in connection.execute(_DEFINED))


_DEFINED = "select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite_stat%'"


def foreign(connection: Any) -> list[str]:
    """Return what a file has beyond what its version consists of, lacks or has otherwise, in words.

    A trigger or a view of somebody else's would run with every write: such a file is no store, whatever else it holds.
    """
    version = int(connection.execute("pragma user_version").fetchone()[0])
    if version > migrations()[-1].version:
        return []  # what a newer one consists of is not known here
    found, ours = frozenset(tuple(row) for row in connection.execute(_DEFINED)), definitions(version)
    known = {row[:2] for row in ours}
    return [
        f"{kind} {name}: its definition was changed" if (kind, name) in known else f"{kind} {name}: no scrubjay made it"
        for kind, name in sorted({(str(kind), str(name)) for kind, name, *_ in found ^ ours})
    ]


def migrate(connection: Any, step: Migration) -> None:
    """Run one step of the schema, and fill in the check sums that it left empty: all of it, or nothing."""
    connection.execute("begin immediate")
    try:
        for statement in _statements(step.sql):
            connection.execute(statement)
        checksums.fill(connection)
        connection.execute(f"pragma user_version = {step.version}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _statements(sql: str) -> list[str]:
    """Split a script where SQLite says a statement is complete; executescript would commit the transaction."""
    statements, current = [], ""
    for line in sql.splitlines(keepends=True):
        current += line
        if ";" in line and driver.complete_statement(current):
            statements.append(current)
            current = ""
    return [*statements, current]  # what is left is comments, or a statement that must fail here and not be passed over


def is_derived(wrong: str) -> bool:
    """Say whether something that `check` found is only in an index, which `scrubjay rebuild` makes again.

    >>> is_derived("row 4 missing from index event_ts"), is_derived("Tree 7 page 9: btreeInitPage() returns error code")
    (True, False)
    """
    return any(words in wrong.lower() for words in _OF_INDEXES)


_OF_INDEXES = (
    "missing from index",
    "wrong # of entries in index",
    "non-unique entry in index",
    "rowid not at end of record",
    "values differ from index",
    "fts5",
)
"""How SQLite words that an index, or the full text, does not agree with its table."""
