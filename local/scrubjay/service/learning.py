"""Learning from a text on purpose: it is stored as something the person said, read at once, and every choice shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy
from scrubjay.service.events import Events
from scrubjay.service.threads import off_loop
from scrubjay.store import Store
from scrubjay.store.queries import Queries
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event, EventDraft, EventType

if TYPE_CHECKING:
    from scrubjay.distill.reading import Reader

SESSION = "learn"
"""The session of what is told on purpose."""

AGENT = "scrubjay"
"""The program that takes it down."""


class Learning:
    """Learns into one store. `distill` reads the rest of a session; `identity` returns who talks to whom."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        events: Events,
        distill: Callable[[str], Awaitable[int]],
        reader: Callable[[], Awaitable[Reader]],
        identity: Callable[[], Awaitable[Mapping[str, str]]],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._events = events
        self._distill = distill
        self._reader = reader
        self._identity = identity
        self._now = now

    async def learn(self, caller: Caller, request: api.LearnRequest) -> api.LearnResponse:
        """Return what is learned of a text, sentence by sentence; unless it is a dry run, it is stored and learned.

        Raises InvalidError for a text that cannot be an event.
        """
        draft = EventDraft(
            agent=AGENT, session_id=SESSION, type=EventType.USER_MESSAGE, text=request.text, project=request.project
        )
        if not request.text.strip():
            raise InvalidError("there is nothing to learn from: the text is empty", hint="scrubjay learn TEXT")
        [clean] = await off_loop(
            len(request.text), partial(self._events.cleaned, [draft], intake.source_of(caller), self._now())
        )
        if isinstance(clean, InvalidError):
            raise clean
        names = await self._identity()
        verdicts = await asyncio.to_thread(_verdicts, clean.event, names, self._policy, await self._reader())
        if request.dry_run or clean.reason:
            return api.LearnResponse(verdicts=verdicts, redactions=dict(clean.redactions), project=request.project)
        stored = await self._events.append([clean], learn=True)
        await self._distill(SESSION)
        learned = await self._store.read(partial(_learned, stored.ids[0]))
        return api.LearnResponse(
            verdicts=verdicts,
            learned=learned,
            event_id=stored.ids[0],
            redactions=stored.redactions,
            project=request.project,
        )


def _verdicts(event: Event, names: Mapping[str, str], policy: MemoryPolicy, reader: Reader) -> tuple[api.Verdict, ...]:
    from scrubjay.distill.explain import explained  # noqa: PLC0415  # the patterns are an eighth of the daemon's start

    return tuple(
        api.Verdict(
            start=verdict.start,
            end=verdict.end,
            sentence=event.text[verdict.start : verdict.end],
            memories=tuple(
                api.Learnable(content=thought.content, type=thought.type, confidence=thought.confidence)
                for thought in verdict.thoughts
            ),
            why=verdict.why,
            chance=verdict.chance,
        )
        for verdict in explained(event, names.get("human") or names.get("user"), policy.distill, reader)
    )


def _learned(event_id: str, queries: Queries) -> tuple[api.Entry, ...]:
    """Return the memories that rest on an event, in the order of its text."""
    grips = sorted(queries.grips.over(event_id, None), key=lambda grip: (grip.span_start, grip.id))
    ids = dict.fromkeys(grip.memory_id for grip in grips)
    return tuple(api.Entry(memory=queries.memories.get(id_)) for id_ in ids)
