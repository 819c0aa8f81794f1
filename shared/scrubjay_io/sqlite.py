"""The SQLite driver, and a connection in a thread of its own. Knows no file and no table."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable
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
