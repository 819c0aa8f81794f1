"""PostgreSQL behind the port: a pool of connections, each used by one thread at a time. Knows no table.

Nothing of the pool needs a session: no LISTEN, no session locks, and statements are prepared only where each session
is our own or the pooler keeps track of them; so a pooler in transaction mode may stand in between. What listens has a
connection of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel, errors
from psycopg_pool import ConnectionPool, PoolTimeout

from scrubjay_cloud.database.announcements import PostgresChannel, notify
from scrubjay_cloud.database.migrations import applied, latest, steps
from scrubjay_cloud.database.pooler import Way, way
from scrubjay_cloud.database.port import Channel, Params, Row, Transaction
from scrubjay_cloud.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, ScrubjayError, UnavailableError

T = TypeVar("T")

log = logging.getLogger(__name__)

MIGRATION_LOCK = 0x534A_434C  # two instances that start at once migrate one after the other
CONNECT_TIMEOUT_S = 10  # a server that does not answer by then is down
STATEMENT_TIMEOUT_MS = 60_000  # nothing here takes seconds; a stuck statement must not hold an account's row for ever
PGVECTOR_VERSION = (0, 8)  # the first that goes on looking when a filter has left too few
BATCHES = 2  # of a kind at once: one is made while the server works at the other
RETRIES = 3  # a broken deadlock or a failed-over connection: the same work again
_SET_HERE = (
    f"select set_config('statement_timeout', '{STATEMENT_TIMEOUT_MS}', true),"
    " set_config('synchronous_commit', 'on', true)"
)
_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure)
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)


class PostgresTransaction:
    """The port's transaction over a cursor."""

    dialect = "postgres"
    for_update = " for update"

    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        self._cursor = cursor

    def execute(self, sql: str, params: Params = ()) -> int:
        """Run a statement; return how many rows it changed."""
        return self._run(sql, params).rowcount

    def row(self, sql: str, params: Params = ()) -> Row | None:
        """Return the first row."""
        return self._run(sql, params).fetchone()

    def rows(self, sql: str, params: Params = ()) -> list[Row]:
        """Return all rows."""
        return self._run(sql, params).fetchall()

    def many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of values, in one round trip."""
        self._cursor.executemany(_marked(sql), list(params))

    def pipeline(self, *statements: tuple[str, Iterable[Params]]) -> None:
        """Run several statements, each for each of its sets of values, in one round trip."""
        with self._cursor.connection.pipeline():
            for sql, params in statements:
                for values in params:
                    self._cursor.execute(_marked(sql), values, binary=True)

    def _run(self, sql: str, params: Params) -> psycopg.Cursor[Row]:
        return self._cursor.execute(_marked(sql), params, binary=True) if params else self._cursor.execute(_plain(sql))


@lru_cache(maxsize=1_024)
def _marked(sql: str) -> bytes:
    return sql.replace("?", "%b").encode()


@lru_cache(maxsize=1_024)
def _plain(sql: str) -> bytes:
    return sql.encode()


@dataclass(slots=True, eq=False)
class _Pending:
    key: bytes
    item: Any
    done: asyncio.Future[Any]


class _Batches:
    """Gathers what waits and has up to 64 of it done at a time: what is asked of the server in one go costs it less.

    `run` does a batch, in the order of its keys, or fails as a whole; then each is done alone. Of each key, if it is
    not "", there is never more than one batch under way.
    """

    def __init__(self, run: Callable[[list[Any]], Awaitable[list[Any]]]) -> None:
        self._run = run
        self._waiting: list[_Pending] = []
        self._busy: set[bytes] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def done(self, item: Any, key: bytes = b"") -> Any:
        """Return what `run` returns for an item. Raises what it raised for it alone."""
        loop = asyncio.get_running_loop()
        pending = _Pending(key, item, loop.create_future())
        self._waiting.append(pending)
        loop.call_soon(self._begin)  # those whose requests came in the same moment come along
        # A caller that goes away does not take its write back: the transaction may already hold it.
        return await asyncio.shield(pending.done)

    async def finished(self) -> None:
        """Wait until nothing waits."""
        while self._waiting or self._tasks:
            self._begin()
            await asyncio.gather(*self._tasks)

    def _begin(self) -> None:
        while self._waiting and len(self._tasks) < BATCHES:
            batch = [one for one in self._waiting if one.key not in self._busy][: DEFAULT.group]
            if not batch:
                return
            taken = set(map(id, batch))
            self._waiting = [one for one in self._waiting if id(one) not in taken]
            batch.sort(key=lambda one: one.key)
            self._busy.update(one.key for one in batch if one.key)
            task = asyncio.create_task(self._do(batch), name="cloud-batch")
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, batch))

    def _ended(self, batch: list[_Pending], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._busy.difference_update(one.key for one in batch)
        self._begin()

    async def _do(self, batch: list[_Pending]) -> None:
        try:
            results = await self._run([one.item for one in batch])
        except Exception as error:  # noqa: BLE001 - everyone who waits is told
            if len(batch) > 1:  # one may be to blame, and the others go on
                for one in batch:
                    await self._do([one])
            elif not batch[0].done.done():
                batch[0].done.set_exception(error)
            return
        for one, result in zip(batch, results, strict=True):
            if not one.done.done():
                one.done.set_result(result)


class PostgresDatabase:
    """A pool, open, and the threads that use it.

    Works that name their account share a transaction with those that wait at the same time: what a commit costs is
    mostly the same for one and for many. They take their accounts' rows in the order of the accounts' ids, in this
    process and in every other, so that no two transactions wait for each other; an account is in one of them at a
    time, so that none holds the others' rows while it waits for one of ours.
    """

    dialect = "postgres"

    def __init__(
        self,
        pool: ConnectionPool[psycopg.Connection[Row]],
        meta: Mapping[str, str],
        *,
        searches: bool,
        listen: str,
        way: Way,
    ) -> None:
        """`listen` is PostgreSQL's own address, without a pooler in between; `way` is that of the pool."""
        self._way = way
        self.meta = meta
        self._channel = PostgresChannel(listen, self._announce)
        self.searches = searches
        self._pool = pool
        self._threads = ThreadPoolExecutor(DEFAULT.pool, thread_name_prefix="cloud-database")
        self._closed = False
        self._lookups = _Batches(self._looked_up)
        self._writes = _Batches(self._written)
        self._together: dict[Callable[..., Any], _Batches] = {}

    @property
    def channel(self) -> Channel:
        """LISTEN and NOTIFY."""
        return self._channel

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one snapshot."""
        self._refuse_closed()
        return await self._in_thread(lambda: self._attempt(partial(_transact, self._way, work=work, snapshot=True)))

    async def lookup(self, sql: str, key: bytes) -> Row | None:
        """Ask for it outside of any transaction, with all who wait: of ten together each costs a sixth of one alone."""
        self._refuse_closed()
        row: Row | None = await self._lookups.done((sql, key))
        return row

    async def write(self, work: Callable[[Transaction], T], *, account: bytes | None = None) -> T:
        """Run `work` in a transaction; again when PostgreSQL broke it off, or when another that shares it failed."""
        self._refuse_closed()
        if account is None:
            return await self._in_thread(
                lambda: self._attempt(partial(_transact, self._way, work=work, snapshot=False))
            )
        result: T = await self._writes.done(work, account)
        return result

    async def together(
        self, run: Callable[[Transaction, Sequence[Any]], Sequence[Any]], item: Any, *, account: bytes
    ) -> Any:
        """Have `run` done for the items that wait, in a transaction of theirs."""
        self._refuse_closed()
        batches = self._together.get(run)
        if batches is None:
            batches = self._together[run] = _Batches(partial(self._run_together, run))
        return await batches.done(item, account)

    async def _run_together(
        self, run: Callable[[Transaction, Sequence[Any]], Sequence[Any]], items: list[Any]
    ) -> list[Any]:
        def all_of_them(tx: Transaction) -> list[Any]:
            return list(run(tx, items))

        return await self._in_thread(
            lambda: self._attempt(partial(_transact, self._way, work=all_of_them, snapshot=False))
        )

    async def _looked_up(self, lookups: list[tuple[str, bytes]]) -> list[Row | None]:
        return await self._in_thread(lambda: self._attempt(partial(_rows, lookups)))

    async def _written(self, works: list[Callable[[Transaction], Any]]) -> list[Any]:
        def all_of_them(tx: Transaction) -> list[Any]:
            return [work(tx) for work in works]

        return await self._in_thread(
            lambda: self._attempt(partial(_transact, self._way, work=all_of_them, snapshot=False))
        )

    async def copy_to(self, target: Path) -> None:
        """Raise InvalidError: PostgreSQL has its own tools."""
        raise InvalidError(f"{target.name}: a PostgreSQL database is not one file", hint="use pg_dump or its archive")

    async def shrink(self, pages: int) -> None:
        """Do nothing: autovacuum does it."""

    async def close(self) -> None:
        """Wait for what runs, then close every connection."""
        if self._closed:
            return
        self._closed = True
        await self._lookups.finished()
        await self._writes.finished()
        for batches in self._together.values():
            await batches.finished()
        await self._channel.close()
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self._pool.close)

    async def _announce(self, payload: str) -> None:
        self._refuse_closed()
        await self._in_thread(lambda: self._attempt(partial(notify, payload)))

    def _refuse_closed(self) -> None:
        if self._closed:
            raise UnavailableError("the service is stopping", hint="try again in a moment")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _attempt(self, attempt: Callable[[psycopg.Connection[Row]], T]) -> T:
        left = RETRIES
        while True:
            try:
                with self._pool.connection() as connection, _planned(connection):
                    return attempt(connection)
            except _NotBegunError as error:
                if not left:
                    raise _ours(error.lost) from error
                self._pool.check()  # the server was restarted, perhaps: the others are gone as well
            except _AGAIN as error:
                if not left:
                    raise _ours(error) from error
            except _PlanChangedError as error:
                if not left:
                    raise _ours(error.refused) from error
            except (psycopg.Error, PoolTimeout) as error:
                raise _ours(error) from error
            left -= 1


class _NotBegunError(Exception):
    """A pooled connection turned out to be dead before anything was asked of it."""

    def __init__(self, lost: psycopg.Error) -> None:
        super().__init__()
        self.lost = lost


class _PlanChangedError(Exception):
    """A statement was prepared before another instance changed the schema."""

    def __init__(self, refused: psycopg.Error) -> None:
        super().__init__()
        self.refused = refused


@contextmanager
def _planned(connection: psycopg.Connection[Row]) -> Iterator[None]:
    """Let go of a connection whose prepared statements fit the schema no more; nothing was done then."""
    try:
        yield
    except errors.FeatureNotSupported as error:
        connection.close()
        raise _PlanChangedError(error) from error


def _transact(way: Way, connection: psycopg.Connection[Row], work: Callable[[Transaction], T], *, snapshot: bool) -> T:
    level = IsolationLevel.REPEATABLE_READ if snapshot else IsolationLevel.READ_COMMITTED
    if connection.isolation_level is not level:
        connection.isolation_level = level
        connection.read_only = snapshot
    with ExitStack() as stack:
        try:
            stack.enter_context(connection.transaction())
        except psycopg.OperationalError as error:
            raise _NotBegunError(error) from error
        if way.pooled:  # what was set for the session was set for another one
            connection.execute(_SET_HERE)
        return work(PostgresTransaction(stack.enter_context(connection.cursor(binary=True))))


def _rows(lookups: list[tuple[str, bytes]], connection: psycopg.Connection[Row]) -> list[Row | None]:
    """Return the row of each of some keys, asked of each statement in one go."""
    keys: dict[str, list[bytes]] = {}
    for sql, key in lookups:
        keys.setdefault(sql, []).append(key)
    try:
        transaction = PostgresTransaction(connection.cursor(binary=True))
        found = {sql: {row[0]: row for row in transaction.rows(sql, (some,))} for sql, some in keys.items()}
    except psycopg.OperationalError as error:
        if not connection.closed:
            raise
        raise _NotBegunError(error) from error  # they read: nothing is done twice
    return [found[sql].get(key) for sql, key in lookups]


async def open_postgres(
    address: str, *, seeded: Callable[[], dict[str, str]], now: Callable[[], Millis], listen: str = ""
) -> PostgresDatabase:
    """Connect, and first make or migrate the schema. Errors as `database.open`.

    `listen` is the address to listen at, `address` unless given.
    """
    return await asyncio.to_thread(_open, address, listen or address, seeded, now)


def _open(
    address: str, listen: str, seeded: Callable[[], dict[str, str]], now: Callable[[], Millis]
) -> PostgresDatabase:
    options: dict[str, Any] = {
        "autocommit": True,  # a transaction is begun where one is wanted
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "scrubjay-cloud",
    }
    try:
        # Not by the pool, which goes on trying until its time is over: who starts wants to know at once.
        with psycopg.connect(address, **options) as connection:
            _configured(connection)
            found = way(connection)
            if not found.prepares:
                connection.prepare_threshold = options["prepare_threshold"] = None
            meta = _transact(found, connection, lambda tx: _migrate(tx, seeded, now), snapshot=False)
            searches = _searches(found, connection)
    except _NotBegunError as error:
        raise _ours(error.lost) from error
    except psycopg.Error as error:
        raise _ours(error) from error
    pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
        address,
        min_size=1,
        max_size=DEFAULT.pool,
        open=True,
        timeout=CONNECT_TIMEOUT_S,
        kwargs=options,
        configure=_configured,
    )
    return PostgresDatabase(pool, meta, searches=searches, listen=listen, way=found)


def _configured(connection: psycopg.Connection[Any]) -> None:
    connection.execute("set synchronous_commit = on")
    connection.execute(f"set statement_timeout = {STATEMENT_TIMEOUT_MS}")


def _migrate(tx: Transaction, seeded: Callable[[], dict[str, str]], now: Callable[[], Millis]) -> dict[str, str]:
    tx.rows("select pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
    tx.execute(
        "create table if not exists migration (version integer primary key, name text not null, at bigint not null)"
    )
    applied_row = tx.row("select coalesce(max(version), 0) from migration")
    version = int(applied_row[0]) if applied_row else 0
    if version > latest("postgres"):
        raise ConflictError(
            f"the database was written by a newer version (schema {version}, this one knows {latest('postgres')})",
            hint="update scrubjay; nothing was changed",
        )
    for step in steps("postgres"):
        if step.version > version:
            applied(tx, step, now())
            if step.version == 1:
                tx.many("insert into meta (k, v) values (?, ?)", list(seeded().items()))
    return dict(tx.rows("select k, v from meta"))


def _searches(way: Way, connection: psycopg.Connection[Row]) -> bool:
    """Say whether vectors can be kept as pgvector's, and see to it where that only has to be said."""
    try:
        return _transact(way, connection, _take_vectors, snapshot=False)
    except errors.InsufficientPrivilege:
        log.warning("pgvector is there and not in this database: searchable scopes are refused")
        return False


def _take_vectors(tx: Transaction) -> bool:
    tx.rows("select pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
    kept = tx.row(
        "select format_type(atttypid, null) from pg_attribute"
        " where attrelid = 'mem_embedding'::regclass and attname = 'vec'"
    )
    if kept == ("vector",):
        return True
    offered = tx.row("select default_version::text from pg_available_extensions where name = 'vector'")
    if offered is None or tuple(map(int, offered[0].split("."))) < PGVECTOR_VERSION:
        return False
    tx.execute("create extension if not exists vector")
    tx.execute("alter table mem_embedding alter column vec type vector using null::vector")
    return True


def _ours(error: Exception) -> ScrubjayError:
    """Return our error for one of the driver's, whose own words may hold values or the address."""
    if isinstance(error, errors.DiskFull):
        return UnavailableError("the server's disk is full", hint="its operator must free space; nothing was changed")
    if isinstance(error, PoolTimeout | errors.QueryCanceled | errors.LockNotAvailable):
        return UnavailableError("the server's database is busy", hint="try again in a moment")
    if isinstance(error, _AGAIN):
        return UnavailableError("the server's database broke a deadlock", hint="try again in a moment")
    if isinstance(error, _LOST):
        return UnavailableError("the server cannot reach its database", hint="its operator must check DATABASE_URL")
    return ScrubjayError(f"the database refused: {type(error).__name__}", hint="scrubjay-cloud check looks for it")
