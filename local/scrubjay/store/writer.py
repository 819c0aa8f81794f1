"""One writer, group commit: many small writes share one transaction and one fsync, and are answered after it.

Each write runs in a savepoint of its own, so that one that fails takes nobody else's with it. Nothing is acknowledged
before the commit that holds it is durable.

When the disk fails so badly that a transaction can be neither committed nor rolled back, nobody knows any more what the
connection holds. The writer then stops for good: what waits fails, and so does every later write.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from scrubjay.store.sqlite import Connection, driver, translate
from scrubjay_shared.errors import ScrubjayError, UnavailableError

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_GROUP = 128
"""Writes in one transaction: enough to share an fsync among all waiting clients, few enough to keep p99 low."""


@dataclass(slots=True)
class _Pending(Generic[T]):
    work: Callable[[Any], T]
    done: asyncio.Future[T]
    alone: bool = False  # outside any transaction, between two groups


class Writer:
    """Runs writes one after another on the one connection that may write."""

    def __init__(
        self,
        connection: Connection,
        path: Path,
        *,
        save: Callable[[], Any],
        restore: Callable[[Any], None],
        committed: Callable[[list[Any]], None],
    ) -> None:
        """`save`/`restore` carry what the owner keeps in memory about the file across a rollback.

        `committed` is called after each group that became durable, with what `after_commit` was given, in order.
        """
        self._connection = connection
        self._path = path
        self._save = save
        self._restore = restore
        self._committed = committed
        self._queue: asyncio.Queue[_Pending[Any] | None] = asyncio.Queue()
        self._taken: list[_Pending[Any]] = []
        self._closed = False
        self.failure: ScrubjayError | None = None
        self._after: list[Any] = []
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def submit(self, work: Callable[[Any], T]) -> T:
        """Run `work(connection)` in the next transaction, in the connection's thread; return its result once durable.

        Raises what `work` raised; then nothing of it was written. Raises UnavailableError after `close`, and after the
        disk failed: what was under way then was not confirmed, and may or may not be there after the next start.
        """
        self._refuse_stopped()
        pending = _Pending(work, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(pending)
        # A caller that goes away does not take its write back: the transaction may already hold it.
        return await asyncio.shield(pending.done)

    async def outside(self, sql: str) -> list[Any]:
        """Run a statement that may not stand in a transaction, between two groups, and return its rows."""
        self._refuse_stopped()
        pending = _Pending(
            lambda connection: connection.execute(sql).fetchall(),
            asyncio.get_running_loop().create_future(),
            alone=True,
        )
        self._queue.put_nowait(pending)
        found: list[Any] = await asyncio.shield(pending.done)
        return found

    def after_commit(self, told: Any) -> None:
        """Have `committed` told of something once the transaction under way is durable; never if it failed."""
        self._after.append(told)

    async def close(self) -> None:
        """Finish what was submitted, then stop."""
        if not self._closed:
            self._closed = True
            self._queue.put_nowait(None)
        await self._task

    def _refuse_stopped(self) -> None:
        if self.failure is not None:
            raise _again(self.failure)
        if self._closed:
            raise UnavailableError("the store is closed", hint="open it again")

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception as error:
            log.exception("the store stopped writing")
            self.failure = _stopped(self._path, error)
        finally:
            self._closed = True
            ended = self.failure or UnavailableError("the store is closed", hint="open it again")
            while not self._queue.empty():
                if (pending := self._queue.get_nowait()) is not None:
                    self._taken.append(pending)
            for pending in self._taken:
                _fail(pending, _again(ended))

    async def _serve(self) -> None:
        open_ = True
        while open_:
            group = self._taken = []
            first = await self._queue.get()
            if first is None:
                return
            group.append(first)
            if first.alone:
                await self._alone(first)
                continue
            alone = None
            while len(group) < MAX_GROUP and alone is None and not self._queue.empty():
                more = self._queue.get_nowait()
                if more is None:
                    open_ = False
                    break
                if more.alone:
                    alone = more
                else:
                    group.append(more)
            self._taken = group if alone is None else [*group, alone]
            await self._commit(group)
            if alone is not None:
                await self._alone(alone)

    async def _alone(self, pending: _Pending[Any]) -> None:
        try:
            result = await self._connection.call(pending.work)
        except Exception as error:  # noqa: BLE001 - it is the submitter's, and is raised there
            _fail(pending, self._ours(error))
        else:
            pending.done.set_result(result)

    async def _commit(self, group: list[_Pending[Any]]) -> None:
        outcomes, told, error = await self._connection.call(lambda connection: self._run_group(connection, group))
        if error is not None and len(group) > 1:
            # Nothing of the group was written. One write may be to blame (too large for the disk): the others go on.
            for pending in group:
                await self._commit([pending])
            return
        if error is not None:
            _fail(group[0], self._ours(error))
            return
        try:
            self._committed(told)
        except Exception:  # it is durable: whoever waits for it must hear so, and the next write must go on
            log.exception("a copy in memory could not follow a commit")
        for pending, result, failure in outcomes:
            if failure is not None:
                _fail(pending, self._ours(failure))
            elif not pending.done.done():
                pending.done.set_result(result)

    def _run_group(
        self, connection: Any, group: list[_Pending[Any]]
    ) -> tuple[list[tuple[_Pending[Any], Any, Exception | None]], list[Any], Exception | None]:
        """Run a group in the connection's thread: each work in a savepoint, all in one transaction.

        Raises only when the transaction could be neither committed nor rolled back.
        """
        outcomes: list[tuple[_Pending[Any], Any, Exception | None]] = []
        told: list[Any] = []
        before = self._save()
        try:
            connection.execute("begin immediate")
            for pending in group:
                held = self._save()
                self._after = []
                connection.execute("savepoint work")
                try:
                    result = pending.work(connection)
                except Exception as error:
                    self._restore(held)
                    if not connection.in_transaction:  # on a full disk SQLite has rolled all of it back by itself
                        raise
                    connection.execute("rollback to work")
                    connection.execute("release work")
                    outcomes.append((pending, None, error))
                else:
                    connection.execute("release work")
                    told.extend(self._after)
                    outcomes.append((pending, result, None))
            connection.execute("commit")
        except Exception as error:  # noqa: BLE001 - every waiting writer is told
            self._restore(before)
            if connection.in_transaction:
                connection.execute("rollback")
            return [], [], error
        return outcomes, told, None

    def _ours(self, error: Exception) -> Exception:
        return translate(error, self._path) if isinstance(error, driver.Error | sqlite3.Error) else error


def _stopped(path: Path, error: Exception) -> UnavailableError:
    """Return what everybody is told once the disk failed in a way that the writer cannot undo."""
    why = str(error) if isinstance(error, driver.Error | sqlite3.Error) else type(error).__name__
    return UnavailableError(
        f"scrubjay stopped writing {path.name} after the disk failed ({why})",
        hint=f"check the disk that holds {path}, then run scrubjay daemon stop and scrubjay daemon start",
    )


def _again(error: ScrubjayError) -> ScrubjayError:
    """Return an error of the same words: one raised in many places at once would mix up their tracebacks."""
    return type(error)(error.message, hint=error.hint)


def _fail(pending: _Pending[Any], error: Exception) -> None:
    if not pending.done.done():
        pending.done.set_exception(error)
