"""One session distilled by patterns: its next events are read, and what they say is stored in one transaction."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

from scrubjay.distill import distill
from scrubjay.distill.answer import Promoted
from scrubjay.distill.reading import Reader
from scrubjay.jobs.alike import Alike
from scrubjay.jobs.session_commit import Again, Reading, SessionCommit, Stored
from scrubjay.jobs.session_locks import SessionLocks
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, Store

log = logging.getLogger(__name__)

COUNTED = ("project_promoted_facts", "user_promoted_facts", "session_scoped_facts", "dropped_untagged_facts")
"""The counters of directives that agents wrote themselves, as the job shows them; `malformed_facts` beside them."""


class SessionDistiller:
    """Distils the sessions of one store. Between two memories it looks whether the process is `stopping`."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        alike: Alike,
        *,
        locks: SessionLocks,
        reader: Callable[[], Awaitable[Reader]],
    ) -> None:
        """`reader` returns what reads turns of work."""
        self._reader = reader
        self._store = store
        self._policy = policy
        self._commit = SessionCommit(store, policy, stopping, alike)
        self._locks = locks

    async def distill(self, session_id: str, names: Mapping[str, str], cause: Cause) -> int:
        """Distil the next events of one session and store what they say, in one transaction.

        Reading takes long and keeps nobody waiting: what was added or forgotten meanwhile is seen when it is written.
        """
        async with self._locks.of(session_id):
            stored = await self._distill(session_id, names, cause)
            return len(stored.new) if stored else 0

    async def again(self, session_id: str, names: Mapping[str, str], cause: Cause, again: Again) -> Stored | None:
        """Distil the next turns that are to be read once more; None where none is left, or nothing was written."""
        async with self._locks.of(session_id):
            return await self._distill(session_id, names, cause, again)

    async def _distill(
        self, session_id: str, names: Mapping[str, str], cause: Cause, again: Again | None = None
    ) -> Stored | None:
        began = time.perf_counter()
        work_policy = self._policy.work
        events, new, upto = await self._store.read(
            lambda q: q.events.undistilled(
                session_id,
                context=work_policy.learn_context,
                limit=work_policy.learn_events,
                chars=self._policy.limits.page_chars,
                after=again.after if again else 0,
                again=again.upto if again else None,
            )
        )
        if not events:
            return None
        found = await asyncio.to_thread(
            distill,
            events,
            new,
            policy=self._policy.distill,
            user_name=names.get("human") or names.get("user"),
            assistant_name=names.get("name"),
            reader=await self._reader(),
        )
        counted = asdict(found.counters)
        reading = Reading(
            session_id=session_id,
            events=events,
            upto=upto,
            job=again.job if again else "learn",
            promoted=tuple(Promoted(observation=one, source=one.source) for one in found.observations),
            counts={name: counted[name] for name in (*COUNTED, "malformed_facts") if counted[name]},
            taken_back=found.taken_back,
            again=again,
        )
        stored = await self._commit.store(reading, cause)
        if stored is None:
            return None
        log.info(
            "distilled events=%d memories=%d merged=%d ms=%d",
            len(new),
            len(stored.new),
            len(stored.confirmed),
            (time.perf_counter() - began) * 1000,
        )
        return stored
