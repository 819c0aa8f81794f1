"""A fact that an agent notes itself: stored with the places that say it, and not at all where no turn does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller, Principal
from scrubjay.ingest import intake
from scrubjay.jobs.alike import Alike
from scrubjay.jobs.observe import JOB
from scrubjay.policy import MemoryPolicy
from scrubjay.service import refusals
from scrubjay.service.references import References
from scrubjay.service.threads import off_loop
from scrubjay.store import Store
from scrubjay.store.writes.memories import ForgottenWordsError
from scrubjay_shared.errors import ConflictError, TooLargeError

if TYPE_CHECKING:
    from scrubjay.distill.answer import Within
    from scrubjay.jobs.observe_fact import FactObserver
    from scrubjay.jobs.session_commit import Stored

ON_OWN_WORD = "memory-add stores it, or the operation add: on the word of who adds it, without a passage"


class Observing:
    """Takes in what agents observe. `on_memories` is told that there is something new."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        references: References,
        on_memories: Callable[[], None],
        alike: Alike,
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._references = references
        self._on_memories = on_memories
        self._alike = alike

    async def observe(self, caller: Caller, request: api.ObserveRequest) -> api.ObserveResponse:
        """Store a fact where the last turns of the caller's session say it; one that is known gets places more.

        Raises ConflictError where no turn says it, no session is known or stored, or the session was handed these words
        from memory; DeniedError for what the person rejected or forgot.
        """
        content, topic = await off_loop(len(request.content), lambda: self._cleaned(request))
        session_id = await self._session(caller, request)
        observer = await asyncio.to_thread(self._observer)
        seen = access.view(caller)
        events = [event for event in await observer.turns(session_id) if seen.shows_event(event)]
        if not events:
            raise ConflictError(
                "no turn of this session is stored, so none supports the fact: nothing was stored", hint=ON_OWN_WORD
            )
        fact = await observer.supported(content, request.scope, topic, events, _within(caller))
        if fact is None:
            raise ConflictError(
                f"none of the last {len(events)} turns of this session says this: nothing was stored",
                hint=f"word it as it was said, with its numbers and names as they were said; {ON_OWN_WORD}",
            )
        stored = await observer.store(session_id, fact, events, self._store.new_cause(JOB))
        memory_ids = () if stored is None else (*stored.new, *stored.confirmed)
        if not memory_ids:
            _refuse(stored)
        self._on_memories()
        entry = await self._references.entry(memory_ids[0], created=bool(stored and stored.new))
        shown = {event.id for event in events}
        grips = await self._store.read(lambda q: q.grips.of_memory(memory_ids[0]))
        return api.ObserveResponse(
            entry=entry, grips=tuple(grip for grip in grips if {grip.event_id_start, grip.event_id_end} <= shown)
        )

    def _cleaned(self, request: api.ObserveRequest) -> tuple[str, str | None]:
        most = self._policy.observer.fact_chars
        content = intake.content(self._policy, request.content)
        if len(content) > most:
            raise TooLargeError(
                f"one fact must have at most {most} characters, got {len(content)}",
                hint="note one fact in one sentence, and call once for each",
            )
        return content, None if request.topic is None else intake.topic(self._policy, request.topic)

    async def _session(self, caller: Caller, request: api.ObserveRequest) -> str:
        """Return the session whose turns are to support a fact. Raises ConflictError where none is known."""
        access.view(caller, project=request.project, session_id=request.session_id)
        if session_id := request.session_id or caller.session_id:
            return session_id
        project = request.project or caller.project
        if not project:
            raise ConflictError(
                "neither a session nor a project is known for this connection, so no turn supports the fact:"
                " nothing was stored",
                hint=ON_OWN_WORD,
            )
        found = await self._store.read(lambda q: q.events.last_session(project, caller.agent))
        if found is None:
            raise ConflictError(
                "no session of this project is stored, so no turn supports the fact: nothing was stored",
                hint=ON_OWN_WORD,
            )
        return found

    def _observer(self) -> FactObserver:
        from scrubjay.jobs.observe_fact import FactObserver  # noqa: PLC0415  # an eighth of the daemon's start

        return FactObserver(self._store, self._policy, self._stopping, self._alike)


def _within(caller: Caller) -> Within:
    """Return what a caller may write: who is no person is never believed as one, whatever turn says the same."""
    from scrubjay.distill.answer import ANYBODY, Within  # noqa: PLC0415  # see `Observing`

    if caller.principal is not Principal.AGENT:
        return ANYBODY
    projects = frozenset({caller.project} if caller.project else ())
    return Within(trust=access.TRUST_CEILING[caller.principal], projects=projects)


def _refuse(stored: Stored | None) -> NoReturn:
    """Say why a fact that the turns support was not stored."""
    from scrubjay.jobs.session_commit import Refused  # noqa: PLC0415  # see `Observing`

    if stored is None:
        raise ConflictError(
            "words of these turns were forgotten meanwhile, or scrubjay is stopping: nothing was stored",
            hint="call it again",
        )
    if Refused.REJECTED in stored.refused:
        raise refusals.rejected()
    if Refused.FORGOTTEN in stored.refused:
        raise ForgottenWordsError(())
    raise ConflictError(
        "this session was handed these words from memory: they are known, and nothing was stored",
        hint="note only what is new",
    )
