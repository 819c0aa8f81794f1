"""The job that distils: session by session, what was said and not yet read becomes memories.

It is called `learn` where people meet it (`status`, the table of jobs), as in the releases before. Where a Writer is
set, sessions are left to the observer (`scrubjay.jobs.observe`), which falls back to these patterns.
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

if TYPE_CHECKING:
    from scrubjay.distill.reading import Reader
    from scrubjay.jobs.distill_session import SessionDistiller


class Distill:
    """Distils the events that were not yet. `identity` returns the lines of the identity layer: who talks to whom."""

    name = "learn"

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, which find what a crash left."""
        return Trigger(seconds=self._policy.work.sweep_seconds)

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        identity: Callable[[], Awaitable[Mapping[str, str]]],
        on_memories: Callable[[], None],
        alike: Alike,
        locks: SessionLocks,
        reader: Callable[[], Awaitable[Reader]],
        is_observed: Callable[[], bool],
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._identity = identity
        self._on_memories = on_memories
        self._alike = alike
        self._locks = locks
        self._reader = reader
        self._is_observed = is_observed
        self._counted = (-1, 0)  # the store's commits when waiting events were last counted, and how many waited

    async def due(self) -> bool:
        """Say whether events wait to be distilled, and no observer reads them."""
        return not self._is_observed() and await self.pending() > 0

    async def pending(self) -> int:
        """Return how many events wait to be distilled. Looks only where something was written since the last time."""
        commits, waiting = self._counted
        if commits != self._store.commits:
            commits = self._store.commits
            waiting = sum(count for _, count in await self._store.read(lambda q: q.events.undistilled_sessions()))
            self._counted = (commits, waiting)
        return waiting

    async def run(self, session_id: str | None = None) -> int:
        """Distil every event that was not yet, of one session or of all. Returns how many memories are new.

        Where an observer reads the sessions, they wait for it: only one that is named is distilled.

        Who adds or forgets meanwhile does not wait: a step that was overtaken is done again.
        """
        if session_id is None and self._is_observed():
            return 0
        made = 0
        sessions = await asyncio.to_thread(self.sessions)
        names = await self._identity()
        cause = self._store.new_cause("distill")
        while not self._stopping.is_set() and (waiting := await self._waiting(session_id)):
            for one in waiting:
                if self._stopping.is_set():
                    break
                made += await sessions.distill(one, names, cause)
        if made:
            self._on_memories()
        return made

    async def _waiting(self, session_id: str | None) -> list[str]:
        found = await self._store.read(lambda q: q.events.undistilled_sessions())
        return [one for one, _ in found if session_id in {None, one}]

    def sessions(self) -> SessionDistiller:
        """Return what reads one session. Loads the patterns: called in a thread."""
        from scrubjay.jobs.distill_session import SessionDistiller  # noqa: PLC0415  # an eighth of the daemon's start

        return SessionDistiller(
            self._store, self._policy, self._stopping, self._alike, locks=self._locks, reader=self._reader
        )
