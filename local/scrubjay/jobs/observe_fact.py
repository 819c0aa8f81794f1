"""One fact that an agent noted itself: looked for in the session's last turns, as what the Writer says is.

No model is asked, and how far the session was read stays as it is: whoever reads these turns in turn still does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from scrubjay.distill.answer import Promoted, Within, promoted, turns_of
from scrubjay.distill.directives import Directive
from scrubjay.distill.observe import PROMOTED
from scrubjay.distill.observer_prompt import fitting, is_turn
from scrubjay.jobs.alike import Alike
from scrubjay.jobs.observe import JOB
from scrubjay.jobs.session_commit import Reading, SessionCommit, Stored
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, Store
from scrubjay_shared.records import Event, Scope


class FactObserver:
    """Takes the facts that agents note into one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, stopping: asyncio.Event, alike: Alike) -> None:
        self._store = store
        self._policy = policy
        self._commit = SessionCommit(store, policy, stopping, alike)

    async def turns(self, session_id: str) -> list[Event]:
        """Return the last turns of a session: as many as the observer's question would show, in their order."""
        policy = self._policy
        events = await self._store.read(
            lambda q: q.events.latest(session_id, policy.observer.new_events, policy.limits.page_chars)
        )
        newest = [event for event in reversed(events) if is_turn(event)]
        return newest[: fitting(newest, policy.observer)][::-1]

    async def supported(
        self, content: str, scope: Scope, topic: str | None, events: Sequence[Event], within: Within
    ) -> Promoted | None:
        """Return a fact with the places that say it; None, and counted, where no turn does."""

        def look() -> Promoted | None:
            directive = Directive(scope=scope, content=content, topic=topic, span_start=0, span_end=len(content))
            turns = turns_of(events, range(len(events)), self._policy.observer)
            return promoted(directive, turns, events, self._policy.distill, within=within)

        found = await asyncio.to_thread(look)
        if found is None:
            await self._store.write(lambda tx: tx.jobs.count(JOB, {"unsupported_facts": 1}))
        return found

    async def store(self, session_id: str, fact: Promoted, events: Sequence[Event], cause: Cause) -> Stored | None:
        """Store a fact; None where the process stops, or words of the turns were forgotten meanwhile."""
        reading = Reading(
            session_id=session_id,
            events=events,
            upto=None,
            job=JOB,
            promoted=(fact,),
            counts={PROMOTED[fact.observation.scope]: 1},
        )
        return await self._commit.store_at_last(reading, cause)
