"""Searchable scopes that have something new are read one batch each in turn, beside the requests and never inside one.

A push only says which scope it went to. What a batch holds is folded in a process of its own: a few kilobytes can hold
ops by the ten thousand, and folding them in this one would hold every other account up. Who has much waits behind who
has little.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scrubjay_cloud import materialise
from scrubjay_cloud.database.port import Database
from scrubjay_cloud.materialise import Batch, Offload
from scrubjay_cloud.policy import SearchPolicy
from scrubjay_shared.account import AccountState
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import ScrubjayError, UnavailableError

log = logging.getLogger(__name__)

Scope = tuple[bytes, bytes]
"""An account and one of its scopes."""


@dataclass(slots=True)
class _Turn:
    """What is known of a scope that waits: devices whose next op is not whole, and who waits for its end."""

    waiting: set[bytes] = field(default_factory=set)
    done: list[asyncio.Future[None]] = field(default_factory=list)


class MaterialiseQueue:
    """The scopes that wait to be read. `close` when the service stops."""

    def __init__(self, database: Database, policy: SearchPolicy, *, offload: Offload) -> None:
        self._database = database
        self._policy = policy
        self._offload = offload
        self._turns: OrderedDict[Scope, _Turn] = OrderedDict()
        self._worker: asyncio.Task[None] | None = None
        self._process: ProcessPoolExecutor | None = None
        self._closed = False

    def submit(self, account: bytes, scopes: Iterable[bytes], state: AccountState) -> None:
        """Have those of some scopes read on that the server may read."""
        for scope in sorted(set(scopes)):
            known = state.scopes.get(scope)
            if known is not None and known.suite == Suite.OPEN and not known.deleted:
                self._turn((account, scope)).waiting.clear()  # what had not come whole may be whole now

    async def caught_up(self, account: bytes, scope: bytes) -> None:
        """Wait until a scope is read to its end, but no longer than `policy.catch_up_s`: then what is read is there."""
        done = asyncio.get_running_loop().create_future()
        turn = self._turn((account, scope))
        turn.waiting.clear()
        turn.done.append(done)
        try:
            async with asyncio.timeout(self._policy.catch_up_s):
                await done
        except TimeoutError:
            log.info("search answers from what is read account=%s scope=%s", account.hex()[:8], scope.hex()[:8])

    async def idle(self) -> None:
        """Wait until nothing waits to be read."""
        while self._worker is not None and not self._worker.done():
            await asyncio.shield(self._worker)

    def close(self) -> None:
        """Read no more; what was not read is found by the job `search`, or by the next question."""
        self._closed = True
        if self._worker is not None:
            self._worker.cancel()
        if self._process is not None:
            self._process.shutdown(wait=False, cancel_futures=True)

    def _turn(self, scope: Scope) -> _Turn:
        turn = self._turns.setdefault(scope, _Turn())
        if self._closed:
            raise UnavailableError("the service is stopping", hint="try again in a moment")
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="cloud-materialise")
        return turn

    async def _work(self) -> None:
        while self._turns:
            (account, scope), turn = self._turns.popitem(last=False)
            asked, turn.done = turn.done, []
            try:
                more = await materialise.step(
                    self._database, account, scope, turn.waiting, policy=self._policy, offload=self._fold
                )
            except ScrubjayError as error:
                log.error(  # noqa: TRY400 - the job `search` tries again
                    "search fell behind account=%s scope=%s code=%s", account.hex()[:8], scope.hex()[:8], error.code
                )
                _answer(asked, error)
                continue
            if more:
                self._turns.setdefault((account, scope), turn).done += asked
            else:
                _answer(asked, None)

    async def _fold(self, work: Callable[[], Any]) -> Any:
        """Fold a batch: a small one here, away from the loop, another in the process that is there for it."""
        batch = work.args[0] if isinstance(work, partial) else None
        if isinstance(batch, Batch) and sum(map(len, batch.bodies)) <= self._policy.small_bytes:
            return await self._offload(work)
        if self._process is None:
            self._process = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._process, work)
        except BrokenProcessPool as error:
            self._process = None  # it was killed, for its memory perhaps: the next batch gets another
            raise UnavailableError(
                "the process that reads searchable scopes ended", hint="the server starts another"
            ) from error


def _answer(asked: Iterable[asyncio.Future[None]], error: ScrubjayError | None) -> None:
    for done in asked:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
