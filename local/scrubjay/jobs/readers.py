"""Who reads sessions: the observer where a Writer is set, patterns else and where it cannot; and who reads anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING

from scrubjay.jobs.alike import Alike
from scrubjay.jobs.distill import Distill
from scrubjay.jobs.observe import Observe
from scrubjay.jobs.relearn import Reads, Relearn
from scrubjay.jobs.session_locks import SessionLocks
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Store
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay_shared.clock import Millis

if TYPE_CHECKING:
    from scrubjay.distill.reading import Reader


class Readers:
    """The readers of one store. `identity` returns the lines of the identity layer: who talks to whom.

    `reader` returns what reads turns of work where no Writer is.
    """

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        writer: BudgetedWriter,
        identity: Callable[[], Awaitable[Mapping[str, str]]],
        on_memories: Callable[[], None],
        alike: Alike,
        reader: Callable[[], Awaitable[Reader]],
        quiet_seconds: Callable[[], float],
        told: Collection[str],
        now: Callable[[], Millis],
    ) -> None:
        locks = SessionLocks()
        self.distill = Distill(
            store,
            policy,
            stopping,
            identity=identity,
            on_memories=on_memories,
            alike=alike,
            locks=locks,
            reader=reader,
            is_observed=lambda: writer.is_on,
        )
        self.observe = Observe(
            store,
            policy,
            stopping,
            writer=writer,
            identity=identity,
            on_memories=on_memories,
            alike=alike,
            locks=locks,
            reader=reader,
            told=told,
            now=now,
        )
        self.relearn = Relearn(
            store,
            policy,
            stopping,
            writer=writer,
            reads=self._reads,
            reader=reader,
            identity=identity,
            on_memories=on_memories,
            quiet_seconds=quiet_seconds,
            told=told,
            now=now,
        )

    def _reads(self, by_writer: bool) -> Reads:  # noqa: FBT001  # as `Relearn` asks
        if by_writer:
            observer = self.observe.observer()
            return lambda session, names, cause, again, failures: observer.again(
                session, names, cause, again, halvings=failures
            )
        distiller = self.distill.sessions()
        return lambda session, names, cause, again, _: distiller.again(session, names, cause, again)
