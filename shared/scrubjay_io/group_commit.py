"""Group commit on SQLite: many small writes share one transaction and one fsync, and are answered after it.

Each write runs in a savepoint of its own, so that one that fails takes nobody else's with it. Writes of one kind
(`Joined`) that wait side by side are one call, which costs less than one each; where that fails, each is tried alone.
Nothing is acknowledged before the commit that holds it is durable.

When the disk fails so badly that a transaction can be neither committed nor rolled back, nobody knows any more what the
connection holds. The writer then stops for good: what waits fails, and so does every later write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, Protocol, TypeVar

from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)

T = TypeVar("T")
G = TypeVar("G")

Write = Callable[[Any], Any]
"""A unit of work: a plain function of the driver's connection."""


@dataclass(frozen=True, slots=True)
class Joined(Generic[G, T]):
    """A write that is done in one call with those that wait beside it, where they have the very same `work`.

    `work(connection, given)` returns a result for each of what was given, in the same order. It may run again: for each
    alone, where the call for all of them failed.
    """

    work: Callable[[Any, Sequence[G]], Sequence[T]]
    given: G

    def __call__(self, connection: Any) -> T:
        """Do this one alone."""
        return self.work(connection, [self.given])[0]


class Call(Protocol):
    """How a function of the driver's connection is run in the connection's thread."""

    def __call__(self, work: Callable[[Any], T], /) -> Awaitable[T]:
        """Return what `work(connection)` returned, or raise what it raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """What the owner of the file has to say: the words of its errors, and what it keeps in memory about the file."""

    translate: Callable[[Exception], Exception]
    """Returns what a submitter is told when its write, or the commit, raised an exception."""
    closed: Callable[[], ScrubjayError]
    """Returns what whoever writes after the end is told."""
    stopped: Callable[[Exception], ScrubjayError]
    """Returns what everybody is told once the disk failed in a way that cannot be undone."""
    save: Callable[[], Any] = lambda: None
    """Returns what is kept in memory and follows the transaction, for `restore`."""
    restore: Callable[[Any], None] = lambda _: None
    """Brings that back: what was written since `save` has been rolled back."""
    committed: Callable[[list[Any]], None] = lambda _: None
    """Is given what the writes of a group returned, in their order, once they are durable."""
    confirm: Callable[[], None] = lambda: None
    """Runs after a commit, in the connection's thread. What it raises, all of the group are told in place of results:
    the transaction is durable, but nobody may rely on it."""


@dataclass(slots=True)
class _Pending(Generic[T]):
    work: Callable[[Any], T]
    done: asyncio.Future[T]
    alone: bool = False  # outside any transaction, between two groups
    regained: bool = False  # what it writes is somewhere else too, and is read again where it is lost


class GroupCommit:
    """Runs writes one after another on the one connection that may write."""

    def __init__(self, call: Call, owner: Owner, *, limit: int, name: str) -> None:
        """At most `limit` writes share a transaction; `name` is the task's."""
        self._call = call
        self._owner = owner
        self._limit = limit
        self._queue: asyncio.Queue[_Pending[Any] | None] = asyncio.Queue()
        self._running: list[_Pending[Any]] = []
        self._closed = False
        self.failure: ScrubjayError | None = None
        """Why the writer stopped by itself; None while it works, and after `close`."""
        self._task = asyncio.create_task(self._run(), name=name)

    async def submit(self, work: Callable[[Any], T], *, regained: bool = False) -> T:
        """Run `work(connection)` in the next transaction, in the connection's thread; return its result once durable.

        Raises what `work` raised; then nothing of it was written. Raises the owner's `closed` after `close`, and its
        `stopped` after the disk failed: what was under way then was not confirmed, and may or may not be there after
        the next start. `work` may run twice: alone, when the group that it was in could not be written.

        What is `regained` does not wait for the disk: a power failure may take it, and all that was written since the
        last write that waited, and leaves the file whole.
        """
        return await self._submitted(_Pending(work, asyncio.get_running_loop().create_future(), regained=regained))

    async def outside(self, sql: str) -> list[Any]:
        """Run a statement that may not stand in a transaction, between two groups, and return its rows."""
        return await self.alone(lambda connection: connection.execute(sql).fetchall())

    async def alone(self, work: Callable[[Any], T]) -> T:
        """Return what `work(connection)` returns, run between two groups: transactions are its own affair."""
        return await self._submitted(_Pending(work, asyncio.get_running_loop().create_future(), alone=True))

    async def close(self) -> None:
        """Finish what was submitted, then stop."""
        if not self._closed:
            self._closed = True
            self._queue.put_nowait(None)
        await self._task

    async def _submitted(self, pending: _Pending[T]) -> T:
        if self.failure is not None:
            raise _again(self.failure)
        if self._closed:
            raise self._owner.closed()
        self._queue.put_nowait(pending)
        # A caller that goes away takes its future with it, not its write: the transaction may already hold that.
        return await pending.done

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception as error:
            log.exception("the writer stopped")
            self.failure = self._owner.stopped(error)
        finally:
            self._closed = True
            ended = self.failure or self._owner.closed()
            while not self._queue.empty():
                if (pending := self._queue.get_nowait()) is not None:
                    self._running.append(pending)
            for pending in self._running:
                _fail(pending, _again(ended))

    async def _serve(self) -> None:
        open_ = True
        while open_:
            group = self._running = []
            first = await self._queue.get()
            if first is None:
                return
            group.append(first)
            if first.alone:
                await self._alone(first)
                continue
            await asyncio.sleep(0)  # those who ask in the same moment come along
            alone = None
            while len(group) < self._limit and alone is None and not self._queue.empty():
                more = self._queue.get_nowait()
                if more is None:
                    open_ = False
                    break
                if more.alone:
                    alone = more
                else:
                    group.append(more)
            self._running = group if alone is None else [*group, alone]
            await self._commit(group)
            if alone is not None:
                await self._alone(alone)

    async def _alone(self, pending: _Pending[Any]) -> None:
        try:
            result = await self._call(pending.work)
        except Exception as error:  # noqa: BLE001 - it is the submitter's, and is raised there
            _fail(pending, self._owner.translate(error))
        else:
            _succeed(pending, result)

    async def _commit(self, group: list[_Pending[Any]]) -> None:
        works = [pending.work for pending in group]
        waits = not all(pending.regained for pending in group)
        outcomes, error, unconfirmed = await self._call(
            lambda connection: _confirmed(connection, works, self._owner, waits=waits)
        )
        if error is not None and len(group) > 1:
            # Nothing of the group was written. One write may be to blame (too large for the disk): the others go on.
            for pending in group:
                await self._commit([pending])
            return
        if error is not None:
            _fail(group[0], self._owner.translate(error))
            return
        try:
            self._owner.committed([result for result, failure in outcomes if failure is None])
        except Exception:  # it is durable: whoever waits for it must hear so, and the next write must go on
            log.exception("a copy in memory could not follow a commit")
        for pending, (result, failure) in zip(group, outcomes, strict=True):
            if unconfirmed is not None:
                _fail(pending, _again(unconfirmed))
            elif failure is not None:
                _fail(pending, self._owner.translate(failure))
            else:
                _succeed(pending, result)


Outcome = tuple[Any, Exception | None]
"""What a write returned, or what it raised."""


def _confirmed(
    connection: Any, works: Sequence[Write], owner: Owner, *, waits: bool
) -> tuple[list[Outcome], Exception | None, ScrubjayError | None]:
    """Do what `run_group` does, and return with it what `Owner.confirm` raised. `waits`: until the disk has it."""
    if waits:
        outcomes, error = run_group(connection, works, owner)
    else:
        connection.execute("pragma synchronous = normal")
        try:
            outcomes, error = run_group(connection, works, owner)
        finally:
            connection.execute("pragma synchronous = full")
    if error is None:
        try:
            owner.confirm()
        except ScrubjayError as unconfirmed:
            return outcomes, None, unconfirmed
    return outcomes, error, None


def run_group(connection: Any, works: Sequence[Write], owner: Owner) -> tuple[list[Outcome], Exception | None]:
    """Run writes in the connection's thread: each in a savepoint, all in one transaction.

    Returns each one's outcome, or no outcomes and why nothing was written. A single call needs no savepoint: what it
    raises ends the transaction. Raises only when the transaction could be neither committed nor rolled back.
    """
    outcomes: list[Outcome] = []
    before = owner.save()
    try:
        connection.execute("begin immediate")
        calls = list(_calls(works))
        if len(calls) == 1:
            outcomes.extend((result, None) for result in _results(connection, calls[0]))
        else:
            for call in calls:
                outcomes.extend(_in_savepoint(connection, call, owner))
        connection.execute("commit")
    except Exception as error:  # noqa: BLE001 - every waiting writer is told
        owner.restore(before)
        if connection.in_transaction:
            connection.execute("rollback")
        return [], error
    return outcomes, None


def _calls(works: Sequence[Write]) -> Iterator[list[Write]]:
    """Yield the writes, those that are to be joined together."""
    for shared, side_by_side in groupby(works, key=lambda work: work.work if isinstance(work, Joined) else None):
        if shared is None:
            yield from ([work] for work in side_by_side)
        else:
            yield list(side_by_side)


def _results(connection: Any, call: Sequence[Write]) -> Sequence[Any]:
    first = call[0]
    if not isinstance(first, Joined):
        return [first(connection)]
    results = first.work(connection, [work.given for work in call if isinstance(work, Joined)])
    if len(results) != len(call):
        raise RuntimeError(f"{len(results)} results of {len(call)} writes")
    return results


def _in_savepoint(connection: Any, call: Sequence[Write], owner: Owner) -> list[Outcome]:
    saved = owner.save()
    connection.execute("savepoint work")
    try:
        results = _results(connection, call)
    except Exception as error:
        owner.restore(saved)
        if not connection.in_transaction:  # on a full disk SQLite has rolled all of it back by itself
            raise
        connection.execute("rollback to work")
        connection.execute("release work")
        if len(call) > 1:
            return [outcome for work in call for outcome in _in_savepoint(connection, [work], owner)]
        return [(None, error)]
    connection.execute("release work")
    return [(result, None) for result in results]


def _again(error: ScrubjayError) -> ScrubjayError:
    """Return an error of the same words: one raised in many places at once would mix up their tracebacks."""
    return type(error)(error.message, hint=error.hint)


def _succeed(pending: _Pending[Any], result: Any) -> None:
    if not pending.done.done():
        pending.done.set_result(result)


def _fail(pending: _Pending[Any], error: Exception) -> None:
    if not pending.done.done():
        pending.done.set_exception(error)
