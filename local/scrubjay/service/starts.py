"""What is worth telling at a session's start, and a project's brief: read from the store, weighed, and put in order.

What a statement is worth by its words never changes, so it is worked out once and kept in memory; the rest is read anew
each time. The brief is no text that is stored: it is chosen from the memories whenever it is asked for, so it is edited
by editing a memory (`update`, `supersede`, `forget`), and a line is kept in it by putting its memory into the layer
`surfaced`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller
from scrubjay.handing import start
from scrubjay.handing.start import Known
from scrubjay.intervals import dated
from scrubjay.lifecycle.consolidation import GUESSED, MAY_SUPERSEDE
from scrubjay.lifecycle.trust import may_hand
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval import handing
from scrubjay.service.references import References
from scrubjay.store import MemoryFilter, Store
from scrubjay.store.queries import Queries
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import ALWAYS_LOADED, Layer, Memory, MemoryType

KEPT_CHANCES = 20_000
"""Statements whose worth by their words is kept: those of all projects of a busy year."""

LAST_SESSIONS = 60
"""Sessions of a project in which it is counted how often something was told without use: thrice what it takes."""


@dataclass(frozen=True, slots=True)
class Best:
    """What is worth telling of a project, in order, and how many memories there were to choose from."""

    known: tuple[Known, ...] = ()
    among: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What the store says of a project's memories."""

    memories: Sequence[Memory]
    questioned: Mapping[str, str]
    uses: Mapping[str, int]
    unused: Mapping[str, int]
    vectors: Mapping[str, bytes]


class Starts:
    """What the starts of one store's sessions are made of."""

    def __init__(
        self, store: Store, policy: MemoryPolicy, *, references: References, now: Callable[[], Millis]
    ) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._now = now
        self._chances: dict[tuple[str, bool], float] = {}

    async def best(
        self,
        seen: View,
        project: str,
        *,
        layers: str = "",
        probable: Mapping[str, float] | None = None,
    ) -> Best:
        """Return what is worth telling of a project to a caller; what `layers` say already is left out.

        `probable` is how probably the next session will need some memories.
        """
        read = await self._store.read(lambda q: self._read(q, project))
        return await asyncio.to_thread(self._weighed, read, seen, layers, probable or {})

    def lines(self, known: Iterable[Known], *, max_tokens: int | None = None) -> list[api.ContextItem]:
        """Return memories as lines, as many as fit a budget one after the other."""
        policy, now = self._policy.handing, self._now()
        utc_offset = time.localtime(now / 1000).tm_gmtoff // 60
        kept: list[api.ContextItem] = []
        for one in known:
            item = handing.told(
                one.memory,
                one.section,
                policy,
                now=now,
                utc_offset=utc_offset,
                worth=one.worth,
                pinned=one.is_pinned,
                questioned_by=one.questioned_by,
            )
            if max_tokens is None or handing.usual_tokens(handing.page([*kept, item])) <= max_tokens:
                kept.append(replace(item, probability=one.probability))
        return kept

    async def brief(self, caller: Caller, request: api.BriefRequest) -> api.BriefResponse:
        """Return a project's brief; an empty one where no project is named and nothing was said in any."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        project = request.project if request.project is not None else caller.project
        notes = list(await self._references.notes_on(request.project))
        if project is None and not seen.is_bounded:
            project = await self._store.read(lambda q: q.layers.last_project())
            notes += [f"of {project}, where something was said last: --project names another"] if project else []
        budget = self._policy.handing.brief_tokens
        if project is None:
            notes.append("of no project: scrubjay brief --project ~/code/shop names one")
            return api.BriefResponse(
                project=None, items=(), text="", tokens=0, budget=budget, known=0, notes=tuple(notes)
            )
        best = await self.best(seen if seen.is_bounded else View(project=project, session_id=None), project)
        items = tuple(self.lines(start.brief(best.known, project), max_tokens=budget))
        return api.BriefResponse(
            project=project,
            items=items,
            text=handing.page(items),
            tokens=handing.usual_tokens(handing.page(items)),
            budget=budget,
            known=best.among,
            notes=tuple(notes),
        )

    def _read(self, q: Queries, project: str) -> _Read:
        policy, chars = self._policy.handing, self._policy.limits.page_chars

        def page(wanted: MemoryFilter) -> list[Memory]:
            return q.memories.page(wanted, after=None, limit=policy.looked_at, chars=chars)[0]

        found = {memory.id: memory for memory in page(MemoryFilter(project=project))}
        if len(found) >= policy.looked_at:  # rules and what is pinned hold however old they are
            rules = page(MemoryFilter(project=project, type=MemoryType.PREFERENCE.value))
            pinned = page(MemoryFilter(project=project, layer=Layer.SURFACED.value))
            found |= {memory.id: memory for memory in (*rules, *pinned)}
        questioned = q.conflicts.questioned(MAY_SUPERSEDE, list(found), self._now())
        withheld = q.conflicts.questioned(MAY_SUPERSEDE, list(questioned), self._now(), but=GUESSED)
        memories = [memory for ref, memory in found.items() if ref not in withheld]
        return _Read(
            memories=memories,
            questioned=questioned,
            uses=q.surfacing.use_counts(found),
            unused=q.handed.unused(project, sessions=LAST_SESSIONS, least=policy.unused_sessions),
            vectors=self._vectors(q, [one for one in memories if (one.content_hash, True) not in self._chances]),
        )

    def _vectors(self, q: Queries, memories: Sequence[Memory]) -> Mapping[str, bytes]:
        """Return the vectors of some memories in the space in which meanings were fitted; none without that model."""
        from scrubjay.handing.worth import fitted  # noqa: PLC0415  # numbers that only a start needs

        space = q.embed_queue.space_number(fitted().space)
        return {} if space is None else dict(q.documents.vectors_of(space, [memory.id for memory in memories]))

    def _weighed(self, read: _Read, seen: View, layers: str, probable: Mapping[str, float]) -> Best:
        policy, now, skew = self._policy.handing, self._now(), self._policy.limits.clock_skew_ms
        shown = [
            dated(memory, skew)
            for memory in read.memories
            if memory.layer not in ALWAYS_LOADED and seen.shows(memory) and handing.holds(memory, now)
        ]
        known = []
        for memory in shown:
            if start.is_spent(memory, read.unused.get(memory.id, 0), policy):
                continue
            weighed = start.worth(
                memory,
                self._chance(memory, read.vectors.get(memory.id)),
                policy,
                uses=read.uses.get(memory.id, 0),
                probability=probable.get(memory.id),
            )
            later = read.questioned.get(memory.id)
            known.append(Known(memory=memory, worth=weighed, probability=probable.get(memory.id), questioned_by=later))

        def may(memory: Memory) -> bool:
            return may_hand(memory, self._policy.review) and not handing.stands_in(memory.content, layers)

        return Best(known=tuple(start.ranked(known, policy, may)), among=len(shown))

    def _chance(self, memory: Memory, vector: bytes | None) -> float:
        """Return how likely a memory's words are worth telling; by their meaning too, once that is known."""
        from scrubjay.handing.worth import fitted  # noqa: PLC0415  # as above

        key = memory.content_hash, True
        if vector is None and key in self._chances:
            return self._chances[key]
        key = memory.content_hash, vector is not None
        if key not in self._chances:
            if len(self._chances) >= KEPT_CHANCES:
                self._chances.clear()
            meaning = None
            if vector is not None:
                row, scale = scoring.decode_vector(vector)
                meaning = row.astype(np.float32) * np.float32(scale)
            self._chances[key] = fitted().chance(memory.content, meaning)
        return self._chances[key]
