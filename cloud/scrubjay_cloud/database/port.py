"""The small port that both databases serve: SQL in a transaction, and nothing else. Knows no table.

A unit of work is a plain function over a `Transaction`. It runs in a thread, away from the event loop: on SQLite in the
one writer's, where up to 64 of them share a commit and its fsync; on PostgreSQL in one of a pool. It may run twice
(when the group it was in could not be written, when PostgreSQL broke a deadlock), so it touches nothing but its
transaction and its result.

SQL is written once for both: lower case, `?` for a value, no literal `?` or `%`. Times are UTC milliseconds, flags are
0 or 1, ids and hashes are bytes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[Any]


class Transaction(Protocol):
    """One transaction, inside a unit of work."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgres`, for the statements that differ."""

    @property
    def for_update(self) -> str:
        """What a `select` of one table ends with to hold its rows until the transaction ends; begins with a space."""

    def execute(self, sql: str, params: Params = ()) -> int:
        """Run a statement; return how many rows it changed."""

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """Return the first row, or None when there is none."""

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Return all rows."""

    def many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of values."""

    def pipeline(self, *statements: tuple[str, Iterable[Params]]) -> None:
        """Run several statements one after another, each for each of its sets of values, in one round trip."""


class Channel(Protocol):
    """What processes that share a database tell each other."""

    async def announce(self, payload: str) -> None:
        """Tell all that hear, this process too; at most 7,900 bytes."""

    def heard(self) -> AsyncGenerator[str]:
        """Yield "" once nothing is missed any more, then what is announced, until that cannot be heard any more.

        Raises UnavailableError then, and ConflictError where it never can be.
        """


class Database(Protocol):
    """An open database, migrated to this version's schema."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgres`."""

    @property
    def channel(self) -> Channel | None:
        """What tells other processes that write to it, None where there are none."""

    @property
    def searches(self) -> bool:
        """Whether it can hold searchable scopes: PostgreSQL needs pgvector for them."""

    @property
    def meta(self) -> Mapping[str, str]:
        """What the table `meta` held when it was opened: `store_id`, `generation`, `secret` (hex)."""

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Return `work`'s result on one unchanging view of the database. Raises what it raised."""

    async def lookup(self, sql: str, key: bytes) -> Row | None:
        """Return the row, which begins with the key, that a statement finds by it; None without one.

        It is a `read` of the least cost. On PostgreSQL the statement takes an array, and those who wait ask together.
        """

    async def write(self, work: Callable[[Transaction], T], *, account: bytes | None = None) -> T:
        """Return `work`'s result once what it wrote is durable. Raises what it raised; then nothing was written.

        `account` says that the work holds this account's row before anything else, and no other's: on PostgreSQL, too,
        such works share a commit.
        """

    async def together(
        self, run: Callable[[Transaction, Sequence[Any]], Sequence[Any]], item: Any, *, account: bytes
    ) -> Any:
        """Return what `run` makes of an item, once that is durable; of `run`'s items at once it gets those that wait.

        `run` returns a result for each item, in their order, which is that of their accounts; it refuses one by its
        result, not by an error. It holds its items' accounts' rows in that order before anything else.
        """

    async def copy_to(self, target: Path) -> None:
        """Write a consistent copy to a new file (SQLite). Raises InvalidError where the database has its own tools."""

    async def shrink(self, pages: int) -> None:
        """Give back up to so many free pages to the disk; PostgreSQL does that by itself."""

    async def close(self) -> None:
        """Finish what was begun, then close every connection."""
