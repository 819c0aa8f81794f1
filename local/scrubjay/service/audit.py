"""The audit: how much of what is remembered is junk, an echo, a repetition, or stands where it should not.

It reads page by page, each in a snapshot of its own and looked at in a thread, so that nobody waits for it; what
changes meanwhile may be counted or not. It says ids and numbers, never words, and changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from scrubjay import api, redaction
from scrubjay.api.caller import Caller
from scrubjay.distill.restated import restates, told
from scrubjay.lifecycle.junk import Junk, junk
from scrubjay.lifecycle.repetition import Repetitions
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Store
from scrubjay_shared.records import Memory, Trust

LOOKED_CHARS = 20_000
"""Of a memory or an event: secrets and repetitions further on are rare, and a page must not take long."""

HANDED_CHARS = 4_000
"""Of a thing that was handed over: a turn, of which some sentences were shown."""


class Audit:
    """Looks through one store. `surfacing` says what became of what was surfaced."""

    def __init__(
        self, store: Store, policy: MemoryPolicy, *, surfacing: Callable[[], Awaitable[api.SurfacingStats]]
    ) -> None:
        self._store = store
        self._policy = policy
        self._surfacing = surfacing

    async def audit(self, _: Caller, __: api.Nothing) -> api.AuditResponse:
        """Return what was found."""
        looked = _Looked(Repetitions(self._policy.audit), self._policy)
        await self._memories(looked)
        events, secrets = await self._events()
        sessions, echoes = await self._echoes()
        total = await self._store.read(lambda q: q.audit.count())
        latest = self._store.clock() + self._policy.limits.clock_skew_ms
        later = await self._store.read(lambda q: q.audit.later(latest, self._policy.audit.shown))
        places = {place: count for place, count in looked.repetitions.counts.items() if count}
        exact, near = looked.repetitions.exact, looked.repetitions.near
        return api.AuditResponse(
            findings=(
                self._finding("exact_duplicate", [one for ids in exact.values() for one in ids], looked.read),
                self._finding("near_duplicate", [one for ids in near.values() for one in ids], looked.read),
                *echoes,
                *await self._contamination(total),
                self._finding("secret", looked.secrets, looked.read),
                self._finding("secret_event", secrets, events),
                *(self._finding(f"junk_{kind}", looked.junk[kind], looked.read) for kind in Junk),
                *(api.Finding(kind=kind, count=count, of=0, ids=tuple(ids)) for kind, (count, ids) in later.items()),
            ),
            scopes=tuple(
                api.ScopeAudit(
                    scope=scope,
                    resource_id=resource,
                    memories=count,
                    exact=len(exact.get((scope, resource), ())),
                    near=len(near.get((scope, resource), ())),
                )
                for (scope, resource), count in sorted(places.items(), key=lambda one: (-one[1], str(one[0])))
            ),
            memories=total,
            memories_read=looked.read,
            events_read=events,
            sessions_read=sessions,
            feedback=await self._store.read(lambda q: q.feedback.totals()),
            review=await self._store.read(lambda q: q.review.counts()),
            surfacing=await self._surfacing(),
            state=await self._state(),
        )

    async def _state(self) -> str:
        """Return the digest of all that holds. What is written while it is read may be in it or not."""
        total, after = hashlib.sha256(), ""
        while True:
            page, more = await self._store.read(
                lambda q, at=after: q.digests.held(at, self._policy.audit.at_once)  # type: ignore[misc]
            )
            total.update(page)
            if more is None:
                return total.hexdigest()
            after = more

    def _finding(self, kind: str, ids: Sequence[str], of: int) -> api.Finding:
        return api.Finding(kind=kind, count=len(ids), of=of, ids=tuple(ids[: self._policy.audit.shown]))

    async def _memories(self, looked: _Looked) -> None:
        policy = self._policy.audit
        before: int | None = None
        while looked.read < policy.memories:
            page, before = await self._store.read(
                lambda q, at=before: q.audit.memories(at, policy.at_once, chars=LOOKED_CHARS)  # type: ignore[misc]
            )
            await asyncio.to_thread(looked.look, page)
            if before is None:
                return

    async def _events(self) -> tuple[int, list[str]]:
        """Return how many events were looked at, and which hold what looks like a secret by today's rules."""
        policy = self._policy.audit
        read, found, before = 0, list[str](), None
        while read < policy.events:
            page, before = await self._store.read(
                lambda q, at=before: q.audit.texts(at, policy.at_once, chars=LOOKED_CHARS)  # type: ignore[misc]
            )
            found += await asyncio.to_thread(
                lambda texts=page: [one for one, text in texts if self._holds_secret(text)]  # type: ignore[misc]
            )
            read += len(page)
            if before is None:
                break
        return read, found

    def _holds_secret(self, text: str) -> bool:
        return bool(redaction.clean(text, self._policy.redact).redactions)

    async def _echoes(self) -> tuple[int, list[api.Finding]]:
        """Return how many sessions were looked at, and what in them only tells back what they were handed."""
        policy = self._policy.audit
        sessions = await self._store.read(lambda q: q.audit.sessions_handed(policy.sessions))
        echoes: list[str] = []
        sources: list[str] = []
        learned = grips = 0
        for session_id in sessions:
            texts, found, (echoed, all_) = await self._store.read(
                lambda q, one=session_id: (  # type: ignore[misc]
                    q.handed.texts(one, chars=HANDED_CHARS),
                    q.audit.learned_from(one),
                    q.audit.echoed_sources(one),
                )
            )
            learned, grips = learned + len(found), grips + all_
            sources += echoed
            echoes += await asyncio.to_thread(self._restating, texts, found)
        return len(sessions), [
            self._finding("echo", list(dict.fromkeys(echoes)), learned),
            self._finding("echoed_source", sources, grips),
        ]

    def _restating(self, texts: Sequence[str], found: Sequence[tuple[str, str, str]]) -> list[str]:
        handed = told(texts)
        return [
            memory_id
            for memory_id, content, trust in found
            if trust != Trust.USER.value and restates(content, handed, self._policy.distill)
        ]

    async def _contamination(self, total: int) -> list[api.Finding]:
        """Return what was handed over and is not believed, or waits by now, and what belongs to another project."""
        untrusted, waiting, elsewhere, handed = await self._store.read(
            lambda q: (
                q.audit.handed_though("m.trust in ('untrusted', 'import')"),
                q.audit.handed_though("m.review like 'waiting%' or m.review like 'rejected%'"),
                q.audit.elsewhere(),
                q.audit.handed_memories(),
            )
        )
        return [
            self._finding("untrusted_handed", untrusted, handed),
            self._finding("held_back_handed", waiting, handed),
            self._finding("other_project", elsewhere, total),
        ]


class _Looked:
    """What was seen of the memories so far."""

    def __init__(self, repetitions: Repetitions, policy: MemoryPolicy) -> None:
        self.repetitions = repetitions
        self.read = 0
        self.secrets: list[str] = []
        self.junk: dict[Junk, list[str]] = defaultdict(list)
        self._policy = policy

    def look(self, memories: Sequence[Memory]) -> None:
        """Look at one more page."""
        for memory in memories:
            self.read += 1
            self.repetitions.tell(memory)
            if redaction.clean(memory.content, self._policy.redact).redactions:
                self.secrets.append(memory.id)
            if (kind := junk(memory.content)) is not None:
                self.junk[kind].append(memory.id)
