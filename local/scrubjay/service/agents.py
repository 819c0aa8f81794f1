"""Agents: who contributed to what the caller sees, and how much on which days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.policy import MemoryPolicy
from scrubjay.service.paging import check_times
from scrubjay.service.references import References
from scrubjay.store import EventFilter, Store
from scrubjay_shared.clock import DAY_MINUTES, Millis

EPOCH = date(1970, 1, 1).toordinal()
DAY_MS = DAY_MINUTES * 60_000


class Agents:
    """What each agent contributed to one store."""

    def __init__(
        self, store: Store, policy: MemoryPolicy, *, references: References, now: Callable[[], Millis]
    ) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._now = now

    async def agents(self, caller: Caller, request: api.AgentsRequest) -> api.AgentsResponse:
        """Return the agents whose events the caller sees, the one that was there last first."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        found = await self._store.read(lambda q: q.agents.counts(seen.project, seen.session_id))
        return api.AgentsResponse(
            agents=tuple(
                api.Agent(
                    name=one.name,
                    events=one.events,
                    sessions=one.sessions,
                    projects=one.projects,
                    first=one.first,
                    last=one.last,
                )
                for one in found
            ),
            notes=await self._references.notes_on(request.project),
        )

    async def activity(self, caller: Caller, request: api.ActivityRequest) -> api.ActivityResponse:
        """Return what agents did on each day or in each week, of the events that the caller sees."""
        check_times(request.since, request.until)
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        since = request.since
        if since is None:
            until = self._now() if request.until is None else request.until
            since = Millis(max(until - self._policy.work.activity_days * DAY_MS, 0))
        chosen = EventFilter(project=seen.project, own_session=seen.session_id, since=since, until=request.until)
        found = await self._store.read(
            lambda q: q.agents.activity(chosen, agent=request.agent, bucket=request.bucket.value)
        )
        notes = [*await self._references.notes_on(request.project)]
        if request.agent is not None and not found:
            everywhere = await self._store.read(lambda q: q.agents.counts(seen.project, seen.session_id))
            known = [one.name for one in everywhere]
            if request.agent not in known:
                notes.append(_unknown(request.agent, known))
        return api.ActivityResponse(
            activity=tuple(
                api.Activity(
                    day=date.fromordinal(one.day + EPOCH).isoformat(),
                    agent=one.agent,
                    events=one.events,
                    prompts=one.prompts,
                    sessions=one.sessions,
                    first=one.first,
                    last=one.last,
                )
                for one in found
            ),
            bucket=request.bucket,
            since=since,
            until=request.until,
            notes=tuple(notes),
        )


def _unknown(agent: str, known: list[str]) -> str:
    """Return what is to be said of an agent that nothing came from."""
    return f"nothing came from an agent {agent[:80]!r}; there are: {', '.join(known[:20]) or 'none'}"
