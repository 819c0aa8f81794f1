"""The SQLite file: opened once, read by many, written by one. All SQL of the product is in this package.

Theory of operation. `Store.write` runs a plain function over a `Transaction` inside the writer's next group commit. A
transaction appends an op for every change to what is not derived, and makes the projections of what it touched again
from the ops of that one entity (`ops.fold`), so that the tables never say anything that the log does not. What the
in-memory index must learn is handed to `on_change` after the commit, in the order of the commits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from scrubjay import destination
from scrubjay.store import checksums, file, sqlite
from scrubjay.store.causes import Cause, new_cause
from scrubjay.store.changes import Changes
from scrubjay.store.index_file import drop_index
from scrubjay.store.lock import StoreLock
from scrubjay.store.queries import Queries
from scrubjay.store.queries.op_log import Position
from scrubjay.store.snapshot import Snapshot
from scrubjay.store.transaction import Transaction
from scrubjay.store.write_context import LogHead, WriteContext
from scrubjay.store.writes.memories import ForgottenWordsError
from scrubjay_io.group_commit import GroupCommit, Joined, Owner
from scrubjay_io.sqlite import ERRORS, Connection, is_writable
from scrubjay_shared import clock
from scrubjay_shared.clock import Hlc, Millis, millis_of, uuid7_millis
from scrubjay_shared.errors import CorruptError, ScrubjayError, UnavailableError

# aiosqlite logs statements with their parameters at DEBUG; memory text never goes to a log.
logging.getLogger("aiosqlite").setLevel(logging.WARNING)

log = logging.getLogger(__name__)

T = TypeVar("T")
G = TypeVar("G")
K = TypeVar("K", int, str)
MAX_GROUP = 128
"""Writes in one transaction: enough to share an fsync among all waiting clients, few enough to keep p99 low."""
STALLED_SECONDS = 30.0
"""How long an export may stand still once something in it was forgotten: a pipe that is read goes on in a moment."""
READERS = 3
"""Read connections: two cores' worth of queries and one long export beside them."""


class Store:
    """An open store. Made by `Store.open`; every method may raise the kinds that `sqlite.translate` names."""

    def __init__(self, path: Path, lock: StoreLock, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> None:
        self.path = path
        self.schema_version = 0
        self.is_fixed = False
        """Whether it lies where nothing can be written, and is only read."""
        self.store_id = ""
        self.commits = 0
        """How often something was written: while it stays, nothing that was looked for can have come."""
        self.on_change: Callable[[Changes], None] = lambda _: None
        self.on_caused: Callable[[Cause, Sequence[str], float], None] = lambda *_: None
        """Told, after the commit, what was written for a cause: memories and events, and how many seconds it took."""
        self._lock = lock
        self._now = now
        self.entropy = entropy
        """Gives so many random bytes."""
        self._writer: GroupCommit
        self._connection: Connection
        self._queries: Queries
        self._head = LogHead()
        self._readers: asyncio.Queue[tuple[Connection, Queries]] = asyncio.Queue()
        self._open: list[Connection] = []
        self._closed = False
        self._snapshots: set[Snapshot] = set()
        self._cut_back = False
        """Whether something was erased while a snapshot held the log: the log is cut back when that ends."""
        self._giving_up: asyncio.Task[None] | None = None
        self.erasures = 0
        """How often something was erased that the copies beside the store are not to hold either."""

    @classmethod
    async def open(cls, path: Path, *, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> Store:
        """Open the store at `path`, making it when there is none. `entropy(n)` gives n random bytes.

        Raises ConflictError when another process has it or wrote a newer schema, CorruptError when the file is damaged
        or not ours, UnavailableError when it cannot be read or written. The file is untouched by a refusal.
        """
        if await asyncio.to_thread(lambda: path.exists() and not is_writable(path.parent)):
            return await cls._fixed(path, now, entropy)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UnavailableError(
                f"the folder {path.parent} cannot be created: {error.strerror}",
                hint=sqlite.unwritable(path.parent, error) or "choose another folder with --data-dir",
            ) from error
        lock = StoreLock(path)
        try:
            lock.acquire()
        except OSError as error:
            raise UnavailableError(
                f"scrubjay cannot write to the folder {path.parent}: {error.strerror}",
                hint=sqlite.unwritable(path, error) or f"check its permissions: ls -ld '{path.parent}'",
            ) from error
        store = cls(path, lock, now, entropy)
        try:
            seed = file.created(now(), entropy(16).hex(), entropy(16).hex())
            prepare = partial(file.prepare, path, file.migrations(), lambda: seed, schema=file.schema())
            store.schema_version = await asyncio.to_thread(prepare)
            await store._connect()
            lock.opened()
        except BaseException:
            await store._disconnect()
            lock.release()
            raise
        return store

    @classmethod
    async def _fixed(cls, path: Path, now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> Store:
        """Open a store in a folder where nothing can be written. It is read; whoever writes is told so.

        There is no lock, which is a file: where none can be made, nobody of this user writes either.
        """
        store = cls(path, StoreLock(path), now, entropy)
        store.is_fixed = True
        try:
            store.schema_version = await asyncio.to_thread(file.refuse_unready, path, file.migrations())
            await store._connect()
        except BaseException:
            await store._disconnect()
            raise
        return store

    async def _connect(self) -> None:
        with sqlite.translated(self.path):
            self._connection = await self._attach(read_only=False)
            await self._connection.call(checksums.install)
            self._queries = await self._connection.call(Queries)
            for _ in range(READERS):
                reader = await self._attach(read_only=True)
                self._readers.put_nowait((reader, await reader.call(Queries)))
            meta = {}
            for key, value, crc in await self._connection.execute_fetchall("select key, value, crc from meta"):
                if checksums.checksum(key, value) != crc:  # on a wrong device id a log would fork
                    raise CorruptError(
                        f"{self.path.name} is damaged: one of its own settings fails its check sum",
                        hint=file.RESTORE_HINT,
                    )
                meta[key] = value
            self.store_id = str(meta["store_id"])
            ends = await self._connection.call(lambda _: self._queries.ops.ends())
        device = str(meta["device"])
        self._head = LogHead(device, ends[device][0] if device in ends else 0, self._clock_of(device, ends))
        self._writer = GroupCommit(self._connection.call, self._owner(), limit=MAX_GROUP, name="store-writer")
        if self.is_fixed:
            return
        if meta.get("projected") != file.PROJECTED:
            log.info("making the tables of %s again for this version", self.path.name)
            await self.write(lambda tx: tx.projections.project_all(tell=False))
            await self.write(lambda tx: tx.ingest.number_causes())
        await self.write(lambda tx: tx.ingest.retry_quarantined())

    def _clock_of(self, device: str, ends: dict[str, tuple[int, bytes, Hlc]]) -> Hlc:
        """Return where the clock of this device stood: at its last op, or at what it then received of others.

        The time of its own op is in the op's id: the stamp may stand above that of a device whose clock is ahead.
        """
        own = ends.get(device)
        last = clock.latest(uuid7_millis(own[1])) if own is not None else Hlc(0)
        for _, _, hlc in ends.values():
            last = clock.receive(last, hlc, self._now())
        return last

    async def _attach(self, *, read_only: bool) -> Connection:
        connection = sqlite.connect(self.path, read_only=read_only, fixed=self.is_fixed)
        await connection
        self._open.append(connection)
        return connection

    def _owner(self) -> Owner:
        return Owner(
            translate=lambda error: sqlite.translate(error, self.path) if isinstance(error, ERRORS) else error,
            closed=lambda: UnavailableError("the store is closed", hint="open it again"),
            stopped=lambda error: sqlite.stopped(error, self.path),
            save=self._head.copy,
            restore=self._head.set,
            committed=self._tell,
            confirm=self._lock.confirm,
        )

    def _tell(self, group: list[tuple[Any, Changes | None]]) -> None:
        """Hand what a group of writes changed to whoever follows, as one: an index takes many at the price of one."""
        self.commits += 1
        changes = [each for _, each in group if each is not None]
        if changes:
            first, *rest = changes
            for later in rest:
                first.follow(later)
            self.on_change(first)

    @property
    def device(self) -> str:
        """The id (hex) under which this store writes its part of the log."""
        return self._head.device

    @property
    def last_seq(self) -> int:
        """The place of the last op of this device, 0 when there is none."""
        return self._head.seq

    @property
    def last_hlc(self) -> Hlc:
        """The last stamp of this device's clock."""
        return self._head.hlc

    async def close(self) -> None:
        """Finish the writes under way, put the log into the file, and give the lock back. A second close does nothing.

        The lock is given back even when the disk fails meanwhile.
        """
        if self._closed:
            return
        self._closed = True
        if self._giving_up is not None:
            self._giving_up.cancel()
        try:
            await self._writer.close()
        finally:
            await self._disconnect()
            self._lock.release()

    @property
    def failure(self) -> ScrubjayError | None:
        """Why nothing can be written any more until the store is opened again; None while all is well."""
        return self._writer.failure

    async def _disconnect(self) -> None:
        """Close every connection. One that fails to close is logged: what was acknowledged is durable already."""
        for connection in reversed(self._open):
            try:
                await connection.close()
            except Exception:
                log.exception("a connection to the store could not be closed")
        self._open.clear()

    def new_cause(self, kind: str, *, label: str = "") -> Cause:
        """Return a cause to write for: a run, a request or a plan. `label` says what it is about, on this device."""
        return new_cause(kind, self._now(), self.entropy, label=label)

    async def write(self, work: Callable[[Transaction], T], *, cause: Cause | None = None, regained: bool = False) -> T:
        """Run `work` in a transaction; when this returns, what it wrote is durable. If it raises, nothing was written.

        What is `regained`, as it is read again from where it came, is durable only with the next write that is not.

        Raises UnavailableError when the file was deleted or moved meanwhile: nobody would see what was written there.

        `cause` is named by every op that is appended.

        `work` runs in the writer's thread: it may use the transaction and its own arguments, and must not wait.
        """
        began = time.perf_counter()
        ids: list[str] = []

        def run(connection: Any) -> tuple[T, Changes]:
            context = WriteContext(connection, self._queries, self._head, self._now(), self.entropy, cause)
            result = work(Transaction(context))
            if cause is not None:
                ids[:] = context.changes.ids()  # now: the group that it is committed with adds to these changes
            return result, context.changes

        try:
            result, _ = await self._writer.submit(run, regained=regained)
        except ForgottenWordsError as refused:  # nothing was written; that it came again is to be known all the same
            said = refused.said
            await self.write(lambda tx: tx.forget.left_of(said))
            raise
        if cause is not None and ids:
            self.on_caused(cause, ids, time.perf_counter() - began)
        return result

    async def rehearse(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction that is rolled back, and return what it returned: no byte of the file changes.

        Nobody is told of it, and the next write has the place in the log that this one had.
        """

        def run(connection: Any) -> T:
            before = self._head.copy()
            connection.execute("begin immediate")
            try:
                return work(Transaction(WriteContext(connection, self._queries, self._head, self._now(), self.entropy)))
            finally:
                self._head.set(before)
                if connection.in_transaction:
                    connection.execute("rollback")

        return await self._writer.alone(run)

    def joined(self, work: Callable[[Transaction, Sequence[G]], Sequence[T]]) -> Callable[[G], Awaitable[T]]:
        """Return what does `work` for one thing, as `write` does, in one transaction with the others that wait.

        `work` is given all of them, in the order in which they came, and returns a result for each. Where it raises, it
        runs again for each alone, and only those are told for which it raises again.
        """

        def run(connection: Any, given: Sequence[G]) -> list[tuple[T, Changes | None]]:
            context = WriteContext(connection, self._queries, self._head, self._now(), self.entropy)
            first, *others = work(Transaction(context), given)
            return [(first, context.changes), *((result, None) for result in others)]

        async def write(given: G) -> T:
            result, _ = await self._writer.submit(Joined(run, given))
            return result

        return write

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[tuple[Connection, Queries]]:
        if self._closed:
            raise UnavailableError("the store is closed", hint="open it again")
        reader = await self._readers.get()
        try:
            with sqlite.translated(self.path):
                yield reader
        finally:
            self._readers.put_nowait(reader)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Read the store as it is at this moment, for as long as it takes. Readers and writers go on."""
        if self._closed:
            raise UnavailableError("the store is closed", hint="open it again")
        with sqlite.translated(self.path):
            connection = await self._attach(read_only=True)
            snapshot = Snapshot(connection)
            self._snapshots.add(snapshot)
            try:
                await connection.execute("begin")
                await connection.execute_fetchall("select 1 from meta")  # SQLite takes the snapshot at the first read
                yield snapshot
            finally:
                self._snapshots.discard(snapshot)
                if connection in self._open:
                    self._open.remove(connection)
                    await connection.close()
                if self._cut_back and not self._snapshots and not self._closed:
                    self._cut_back = False
                    await self.checkpoint(truncate=True)

    async def read(self, work: Callable[[Queries], T]) -> T:
        """Run reads in one snapshot: they see every commit before their first, and none after.

        `work` runs in the thread of a connection that cannot write: it must not wait.
        """
        async with self._reading() as (connection, queries):

            def run(raw: Any) -> T:
                raw.execute("begin")
                try:
                    return work(queries)
                finally:
                    if raw.in_transaction:
                        raw.execute("rollback")

            return await connection.call(run)

    async def pages(
        self, read: Callable[[Queries, K | None], tuple[list[T], K | None]], after: K | None = None
    ) -> AsyncIterator[list[T]]:
        """Yield what `read` returns, page by page, each of a snapshot of its own: no read holds the log for long.

        `read` is given the key that it returned with the page before (first `after`), and None ends it.
        """
        while True:
            page, after = await self.read(partial(_page, read, after))
            if after is None:
                return
            yield page

    async def position(self) -> Position:
        """Return where the log ends. Whoever follows `on_change` has been told of everything before it."""
        return await self.write(lambda tx: tx.queries.ops.position())

    # --- the file -----------------------------------------------------------------------------------------------------

    async def backup(self, target: Path, *, force: bool = False) -> tuple[int, str]:
        """Write a checked copy of the store to `target`. Returns its size and SHA-256. Readers and writers go on.

        Raises ConflictError when something is there, unless `force`.
        """

        def copy() -> tuple[int, str]:
            with (
                file.writing(target),
                destination.written(target, force=force) as part,
                file.opened(self.path, read_only=True) as connection,
            ):
                file.copy_to(connection, self.path, part)
            return file.digest(target)

        return await asyncio.to_thread(copy)

    async def drop_traces(self) -> bool:
        """Leave nothing of what was erased in the saved index and in the log of the file.

        Returns whether the log could be cut back: a long read may hold it, and then `checkpoint` does it later.
        """
        await asyncio.to_thread(drop_index, self.path)
        for wait_ms in (0, 10, 50, 100, 200, 400, 800):
            await asyncio.sleep(wait_ms / 1000)
            if await self.checkpoint(truncate=True):
                return True
            if self._snapshots:
                break
        return False

    async def drop_half_made(self) -> None:
        """Delete unfinished copies beside the store; who makes one sees by `erasures` that it must begin anew."""
        self.erasures += 1
        for path in await asyncio.to_thread(file.unfinished, self.path):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def checkpoint(self, *, truncate: bool = False) -> bool:
        """Put the log into the file; with `truncate`, leave nothing in the log. Only the writer ever does this.

        Returns whether all of it was done: a reader in the middle of a scan keeps what it still needs.
        """
        if truncate and self._snapshots:  # to wait for a long read would keep every writer waiting
            if not self._cut_back:
                self._giving_up = asyncio.get_running_loop().create_task(self._give_up_stalled(), name="stalled-reads")
            self._cut_back, truncate = True, False
        rows_ = await self._writer.outside(f"pragma wal_checkpoint({'truncate' if truncate else 'passive'})")
        busy, log, done = rows_[0]
        return not busy and log == done and not self._cut_back

    async def _give_up_stalled(self) -> None:
        """End long reads that stand still, one by one, while the log waits for their end to be cut back."""
        while self._snapshots and not self._closed:
            stalled = [one for one in self._snapshots if one.idle_seconds >= STALLED_SECONDS]
            for snapshot in stalled:
                log.warning("a long read stood still while something was forgotten: it was ended")
                self._snapshots.discard(snapshot)
                await snapshot.give_up()
            if stalled and not self._snapshots:
                self._cut_back = False
                await self.checkpoint(truncate=True)
                return
            await asyncio.sleep(STALLED_SECONDS / 10)

    @asynccontextmanager
    async def taking_in(self) -> AsyncIterator[None]:
        """Put the log into the file less often until this ends: much is about to be written."""
        await self._writer.outside(f"pragma wal_autocheckpoint = {sqlite.FIRST_READING_CHECKPOINT_PAGES}")
        try:
            yield
        finally:
            with suppress(ScrubjayError):  # a store that was closed, or failed, has no log to put anywhere
                await self._writer.outside(f"pragma wal_autocheckpoint = {sqlite.CHECKPOINT_PAGES}")

    async def shrink(self, stop: Callable[[], bool]) -> int:
        """Give pages that hold nothing back to the disk, some at a time, so that a write waits for one step at most.

        Returns how many. The file gets smaller with the next checkpoint. A store of a file made without `auto_vacuum`
        keeps them.
        """
        given = 0
        while not stop():
            free = int((await self._writer.outside("pragma freelist_count"))[0][0])
            step = min(free - file.SPARE_PAGES, file.SHRINK_PAGES)
            if step <= 0:
                break
            await self._writer.outside(f"pragma incremental_vacuum({step})")
            left = int((await self._writer.outside("pragma freelist_count"))[0][0])
            if left >= free:
                break
            given += free - left
        return given

    def clock(self) -> Millis:
        """Return the time that the store goes by, in UTC milliseconds."""
        return max(self._now(), millis_of(self.last_hlc))


def _page(
    read: Callable[[Queries, K | None], tuple[list[T], K | None]], after: K | None, queries: Queries
) -> tuple[list[T], K | None]:
    return read(queries, after)
