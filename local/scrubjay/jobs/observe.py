"""The job of the observer: where a Writer is set, sessions that have become quiet are read by it.

A session is read a while after a request of its agent ended, or after its own end; one whose agent crashed, after
longer. Where the Writer is over its budget, fails, or answers without directives, patterns read that step instead, as
they do where none is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from scrubjay.jobs.alike import Alike
from scrubjay.jobs.registry import Trigger
from scrubjay.jobs.session_locks import SessionLocks
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Store
from scrubjay.store.queries.events import SessionEnd
from scrubjay.writer.budget import Asked, asked
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import Prompt
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType

if TYPE_CHECKING:
    from scrubjay.jobs.observe_session import SessionObserver

JOB = "observe"
ENDS = frozenset((EventType.ASSISTANT_STOP, EventType.SESSION_END, EventType.COMPACTION))
"""The events after which a request of an agent, or its session, has come to an end."""

STREAK = "malformed_reject_streak"


class Observe:
    """Has the Writer read what was said. Without one it is not listed, and nothing is asked."""

    name = JOB

    @property
    def trigger(self) -> Trigger:
        """Often, because a look at a quiet store costs nothing; without a Writer at the pace of the sweeps."""
        look, sweep = self._policy.observer.look_seconds, self._policy.work.sweep_seconds
        return Trigger(seconds=look if self.is_on() else sweep)

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
        locks: SessionLocks,
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._writer = writer
        self._identity = identity
        self._on_memories = on_memories
        self._alike = alike
        self._locks = locks
        self._now = now
        self._seen: tuple[int, list[SessionEnd]] = (-1, [])  # the store's commits at the last look, and what waited

    def is_on(self) -> bool:
        """Say whether a Writer is set."""
        return self._writer.is_on

    async def due(self) -> bool:
        """Say whether a session is to be read now."""
        return self.is_on() and bool(await self._ready())

    async def pending(self) -> int | None:
        """Return how many events wait to be read; None where no Writer is set."""
        return sum(end.waiting for end in await self._waiting()) if self.is_on() else None

    async def run(self) -> int:
        """Read the sessions that are quiet. Returns how many memories are new."""
        return await self._read(await self._ready()) if self.is_on() else 0

    async def finish(self) -> int:
        """Read all that waits, quiet or not. Returns how many memories are new."""
        return await self._read([end.session_id for end in await self._waiting()]) if self.is_on() else 0

    async def asks(self) -> Asked:
        """Return what a run would ask now if it read all that waits, quiet or not."""
        most = self._policy.observer.estimated_calls
        found: list[Prompt] = []
        observer = await asyncio.to_thread(self._observer)
        for end in await self._waiting() if self.is_on() else ():
            found += await observer.prompts(end.session_id, most + 1 - len(found))
            if len(found) > most:
                break
        return asked(found[:most], whole=len(found) <= most)

    async def warnings(self) -> tuple[str, ...]:
        """Return what `status` is to say: that a Writer's answers are malformed again and again."""
        statistics = (await self._store.read(lambda q: q.stats.jobs())).get(JOB)
        streak = 0 if statistics is None else statistics.counts.get(STREAK, 0)
        if not self.is_on() or streak < self._policy.observer.streak:
            return ()
        told = f"the Writer's answers held malformed directives {streak} times in a row ({STREAK})"
        return (f"{told}: another model may do better (writer_model)",)

    async def _ready(self) -> list[str]:
        now, policy = self._now(), self._policy.observer
        ready = []
        for end in await self._waiting():
            quiet_ms = now - end.last
            limit = policy.quiet_seconds if end.last_type in ENDS else policy.wait_seconds
            # A clock that was ahead must not keep a session waiting for good.
            if not 0 <= quiet_ms < limit * 1000 or end.waiting >= policy.new_events:
                ready.append(end.session_id)
        return ready

    async def _waiting(self) -> list[SessionEnd]:
        commits, waiting = self._seen
        if commits != self._store.commits:
            commits = self._store.commits
            waiting = await self._store.read(lambda q: q.events.ends_of_undistilled())
            self._seen = (commits, waiting)
        return waiting

    async def _read(self, session_ids: list[str]) -> int:
        made = 0
        if session_ids:
            observer = await asyncio.to_thread(self._observer)
            names = await self._identity()
            cause = self._store.new_cause(JOB)
            for session_id in session_ids:
                while not self._stopping.is_set():
                    step = await observer.observe(session_id, names, cause)
                    if step is None:
                        break
                    made += step
        if made:
            self._on_memories()
        return made

    def _observer(self) -> SessionObserver:
        from scrubjay.jobs.observe_session import SessionObserver  # noqa: PLC0415  # see `Distill`

        return SessionObserver(
            self._store, self._policy, self._stopping, writer=self._writer, alike=self._alike, locks=self._locks
        )
