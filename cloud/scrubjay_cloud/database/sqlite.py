"""SQLite behind the port: one writer that commits in groups, and a few readers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from scrubjay_cloud.database.migrations import Step, applied, latest, steps
from scrubjay_cloud.database.port import Params, Row, Transaction
from scrubjay_cloud.database.sqlite_file import (
    APPLICATION_ID,
    connect,
    emptying_log,
    locked,
    raw,
    refuse_network,
    refuse_old_sqlite,
    translate,
    translated,
)
from scrubjay_cloud.policy import DEFAULT
from scrubjay_io import private_files
from scrubjay_io.group_commit import GroupCommit, Owner, run_group
from scrubjay_io.sqlite import ERRORS, Connection, driver
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, CorruptError, UnavailableError

T = TypeVar("T")


class SqliteTransaction:
    """The port's transaction over a driver's connection."""

    dialect = "sqlite"
    for_update = ""  # whoever writes holds the whole file

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, params: Params = ()) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self._connection.execute(sql, _bound(params)).rowcount)

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """Return the first row. The statement runs to its end, so that what it changes is changed."""
        rows = self._connection.execute(sql, _bound(params)).fetchall()
        return rows[0] if rows else None

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Return all rows."""
        rows: list[Row] = self._connection.execute(sql, _bound(params)).fetchall()
        return rows

    def many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of values."""
        self._connection.executemany(sql, map(_bound, params))

    def pipeline(self, *statements: tuple[str, Iterable[Params]]) -> None:
        """Run several statements, each for each of its sets of values."""
        for sql, params in statements:
            self.many(sql, params)


def _bound(params: Params) -> list[Any]:
    """Return values as the driver binds them at once: it asks of every `bytes` how to adapt it, for 2.5 us each."""
    return [bytearray(value) if type(value) is bytes else value for value in params]


class SqliteDatabase:
    """The file, open: one writer's queue, readers that take turns."""

    dialect = "sqlite"
    channel = None
    searches = True

    def __init__(
        self,
        path: Path,
        lock: FileLock,
        *,
        writer: Connection,
        readers: list[Connection],
        lookups: Any,
        meta: Mapping[str, str],
    ) -> None:
        self.meta = meta
        self._path = path
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._lookups = lookups
        self._idle: asyncio.Queue[Connection] = asyncio.Queue()
        for reader in readers:
            self._idle.put_nowait(reader)
        self._closed = False
        self._group = GroupCommit(writer.call, _owner(path), limit=DEFAULT.group, name="cloud-writer")

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a read transaction of a reader that is free."""
        self._refuse_closed()
        reader = await self._idle.get()
        try:
            return await reader.call(lambda connection: _in_read(connection, work, self._path))
        finally:
            self._idle.put_nowait(reader)

    async def lookup(self, sql: str, key: bytes) -> Row | None:
        """Run it here: a few pages of the cache take a tenth of what the way to a reader and back does.

        It never waits for a lock; where there is one, a reader waits.
        """
        self._refuse_closed()
        with translated(self._path), contextlib.suppress(driver.OperationalError):
            return SqliteTransaction(self._lookups).row(sql, (key,))
        return await self.read(lambda tx: tx.row(sql, (key,)))

    async def write(self, work: Callable[[Transaction], T], *, account: bytes | None = None) -> T:  # noqa: ARG002 - all share
        """Run `work` in the writer's next transaction; return once it is durable."""
        return await self._group.submit(lambda connection: work(SqliteTransaction(connection)))

    async def together(
        self, run: Callable[[Transaction, Sequence[Any]], Sequence[Any]], item: Any, *, account: bytes
    ) -> Any:
        """Have `run` done for the item; what waits shares the writer's commit anyway."""
        return (await self.write(lambda tx: run(tx, [item]), account=account))[0]

    async def copy_to(self, target: Path) -> None:
        """Write a consistent, compact copy to a new file."""
        self._refuse_closed()
        connection = connect(self._path, read_only=False)
        await connection
        try:
            await connection.call(lambda raw: _copy(raw, self._path, target))
        finally:
            await connection.close()

    async def shrink(self, pages: int) -> None:
        """Give back free pages, between two transactions."""

        def work(tx: Transaction) -> None:
            tx.rows(f"pragma incremental_vacuum({int(pages)})")

        await self.write(work)

    async def close(self) -> None:
        """Finish what was submitted, then close every connection and give the folder back."""
        if self._closed:
            return
        self._closed = True
        await self._group.close()
        self._lookups.close()
        for connection in (*self._readers, self._writer):
            await connection.close()
        self._lock.release()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise _closed()


class InlineSqliteDatabase:
    """The file, open on one connection in the caller's own thread: the order of events is the caller's alone."""

    dialect = "sqlite"
    channel = None
    searches = True

    def __init__(self, path: Path, lock: FileLock, connection: Any, meta: Mapping[str, str]) -> None:
        self.meta = meta
        self._path = path
        self._lock = lock
        self._connection = connection

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` at once."""
        return _in_read(self._connection, work, self._path)

    async def lookup(self, sql: str, key: bytes) -> Row | None:
        """Run it at once."""
        return await self.read(lambda tx: tx.row(sql, (key,)))

    async def write(self, work: Callable[[Transaction], T], *, account: bytes | None = None) -> T:  # noqa: ARG002 - all share
        """Run `work` in a transaction of its own, at once."""
        outcomes, error = run_group(
            self._connection, [lambda connection: work(SqliteTransaction(connection))], _owner(self._path)
        )
        if error is not None:
            raise translate(error, self._path) from error
        result: T = outcomes[0][0]
        return result

    async def together(
        self, run: Callable[[Transaction, Sequence[Any]], Sequence[Any]], item: Any, *, account: bytes
    ) -> Any:
        """Have `run` done for the item; what waits shares the writer's commit anyway."""
        return (await self.write(lambda tx: run(tx, [item]), account=account))[0]

    async def copy_to(self, target: Path) -> None:
        """Write a consistent, compact copy to a new file."""
        _copy(self._connection, self._path, target)

    async def shrink(self, pages: int) -> None:
        """Give back free pages."""
        self._connection.execute(f"pragma incremental_vacuum({int(pages)})").fetchall()

    async def close(self) -> None:
        """Close the connection and give the folder back."""
        self._connection.close()
        self._lock.release()


async def open_sqlite(
    path: Path, *, seeded: Callable[[], dict[str, str]], now: Callable[[], Millis], inline: bool = False
) -> SqliteDatabase | InlineSqliteDatabase:
    """Open, and first make or migrate, the file. Errors as `database.open`."""
    refuse_old_sqlite()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    refuse_network(path.parent)
    lock = locked(path.parent)
    try:
        with translated(path), contextlib.closing(raw(path, read_only=False)) as connection:
            migrate(connection, path, seeded=seeded, now=now)
            meta = dict(connection.execute("select k, v from meta").fetchall())
        if inline:
            with translated(path):
                return InlineSqliteDatabase(path, lock, emptying_log(raw(path, read_only=False)), meta)
        opened: list[Connection] = []
        try:
            for number in range(1 + DEFAULT.readers):
                connection = connect(path, read_only=number > 0)
                await connection
                opened.append(connection)
            await opened[0].call(emptying_log)
            lookups = raw(path, read_only=True)
            lookups.execute("pragma busy_timeout = 0")
        except BaseException:
            for connection in opened:
                await connection.close()
            raise
        return SqliteDatabase(path, lock, writer=opened[0], readers=opened[1:], lookups=lookups, meta=meta)
    except BaseException as error:
        lock.release()
        if isinstance(error, ERRORS):
            raise translate(error, path) from error
        raise


def migrate(connection: Any, path: Path, *, seeded: Callable[[], dict[str, str]], now: Callable[[], Millis]) -> None:
    """Bring a file to this version's schema, each step in a transaction. Raises ConflictError for a newer one."""
    identity = connection.execute("pragma application_id").fetchone()[0]
    tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if tables and identity != APPLICATION_ID:
        raise CorruptError(f"{path} is not a database of this service", hint="choose another data folder")
    if not tables:
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute(
        "create table if not exists migration (version integer primary key, name text not null, at integer not null)"
        " strict"
    )
    version = connection.execute("select coalesce(max(version), 0) from migration").fetchone()[0]
    if version > latest("sqlite"):
        raise ConflictError(
            f"{path.name} was written by a newer version (schema {version}, this one knows {latest('sqlite')})",
            hint="update scrubjay; the file is untouched",
        )
    for step in steps("sqlite"):
        if step.version > version:
            _migrate(connection, step, seeded, now)


def _migrate(connection: Any, step: Step, seeded: Callable[[], dict[str, str]], now: Callable[[], Millis]) -> None:
    tx = SqliteTransaction(connection)
    connection.execute("begin immediate")
    try:
        applied(tx, step, now())
        if step.version == 1:
            tx.many("insert into meta (k, v) values (?, ?)", seeded().items())
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise


def _in_read(connection: Any, work: Callable[[Transaction], T], path: Path) -> T:
    with translated(path):
        connection.execute("begin")
        try:
            return work(SqliteTransaction(connection))
        finally:
            if connection.in_transaction:
                connection.execute("rollback")


def _owner(path: Path) -> Owner:
    return Owner(
        translate=lambda error: translate(error, path),
        closed=_closed,
        stopped=lambda error: UnavailableError(
            f"the server stopped writing {path.name} after its disk failed ({type(error).__name__})",
            hint="its operator must check the disk and start it again",
        ),
    )


def _closed() -> UnavailableError:
    return UnavailableError("the service is stopping", hint="try again in a moment")


def _copy(connection: Any, path: Path, target: Path) -> None:
    if target.exists():
        raise ConflictError(f"{target} is there already", hint="name a new file")
    private_files.create(target)
    with translated(path):
        connection.execute("vacuum into ?", (str(target),))
