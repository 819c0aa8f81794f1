"""Recall: a question becomes hits with their texts, within a budget of tokens. Writes nothing.

The stages, each timed in the answer: embedding the question, ranking the index, reranking the first hits, and reading
the texts of those that fit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller
from scrubjay.dates import find_dates
from scrubjay.ingest import intake
from scrubjay.jobs.recall_counts import RecallCounts
from scrubjay.models.active_embedder import Asked
from scrubjay.models.ports import Reranker
from scrubjay.models.runtime import Models
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval import budget
from scrubjay.retrieval.recall import CUT, Filters, Query, Ranking, passage, rank, reranked
from scrubjay.retrieval.recall import Hit as Ranked
from scrubjay.service.index_maintainer import IndexMaintainer
from scrubjay.service.paging import check_times
from scrubjay.service.references import References
from scrubjay.service.threads import off_loop
from scrubjay.store import Store
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.records import Event, EventType, Grip, Memory
from scrubjay_shared.text import query_tokens

RERANKED_CHARS = 8_000
"""Of a text given to the reranking model, whose window is 512 tokens: more words than it reads."""

READ_HITS = 16
"""Hits whose texts are read at a time: an answer of the usual size is read at once, and a budget soon spent ends it."""


class Recall:
    """Answers questions from one store and its index. `policy` returns the policy to go by."""

    def __init__(
        self,
        store: Store,
        policy: Callable[[], MemoryPolicy],
        *,
        maintainer: IndexMaintainer,
        models: Models,
        references: References,
        counts: RecallCounts,
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._maintainer = maintainer
        self._models = models
        self._references = references
        self._counts = counts
        self._now = now

    async def recall(self, caller: Caller, request: api.RecallRequest) -> api.RecallAnswer:
        """Return what answers a question, best first, within the budget of tokens. Writes nothing."""
        began = time.perf_counter()
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        text = self._check_recall(request, seen)
        hybrid = request.mode is api.Mode.HYBRID
        stages = dict.fromkeys(("embed", "rank", "rerank", "read"), 0.0)
        notes: list[str] = [*await self._references.notes_on(request.project)]
        asked: Asked | None = None
        reranks = hybrid and request.rerank and bool(text.strip())
        reranker: Reranker | None = None
        if request.mode is not api.Mode.KEYWORD and text.strip():
            # The first question waits for both models: for one beside the other, not for one after the other.
            (asked, note), named, reranker = await asyncio.gather(
                self._embed_query(text), self._named(text), self._reranker(wanted=reranks)
            )
            notes += [note] if note else []
            if reranks and reranker is None and self._models.reranker.slot.error is not None:
                notes.append(f"the hits were not reranked: {self._models.reranker.slot.error.message}")
        else:
            named = await self._named(text)
        stages["embed"] = _lap(began)
        now = self._now()
        query = Query(
            text=text,
            tokens=tuple(query_tokens(text)),
            vector=None if asked is None else asked.vector,
            named=tuple(named),
            dates=tuple((found.start, found.end) for found in find_dates(text, now, _local_offset(now))),
            spread=(0.0, 1.0) if asked is None else asked.spread,
        )
        filters = Filters(
            caller_project=seen.project,
            caller_session=seen.session_id,
            kinds=frozenset(request.kinds),
            types=frozenset(kind.value for kind in request.types) or None,
            min_salience=request.min_salience,
            agent=request.agent,
            scope=None if request.scope is None else request.scope.value,
            resource_id=request.resource_id,
            since=request.since,
            until=request.until,
        )
        policy = self._policy().recall

        def ranked() -> Ranking:
            return rank(
                self._maintainer.index,
                query,
                filters,
                policy,
                limit=request.limit if reranker is None else max(request.limit, policy.rerank_hits),
                mode=request.mode.value,
                neighbours=request.neighbours,
                before=0 if reranker is None else policy.window_turns,
            )

        if request.mode is api.Mode.WEIGHTED:
            await self._place_topics()
        lap = time.perf_counter()
        await self._maintainer.indexed()
        ranking = await asyncio.to_thread(ranked)
        stages["rank"] = _lap(lap)
        if reranker is not None:
            lap = time.perf_counter()
            ranking, note = await self._rerank(text, ranking, request.limit)
            notes += [note] if note else []
            stages["rerank"] = _lap(lap)
        lap = time.perf_counter()
        max_tokens = self._policy().limits.recall_tokens if request.max_tokens is None else request.max_tokens
        kept, tokens, left_out = await self._packed(ranking.hits, max_tokens)
        stages["read"] = _lap(lap)
        self._counts.add((hit.id for hit in kept if hit.kind == "memory"), now)
        return api.RecallAnswer(
            hits=kept,
            mode=ranking.mode if asked is not None or not hybrid else "lexical",
            tokens=tokens,
            elapsed_ms=_lap(began),
            left_out=left_out,
            notes=tuple(dict.fromkeys([*notes, *ranking.notes])),
            stages_ms=stages,
        )

    async def _rerank(self, text: str, ranking: Ranking, limit: int) -> tuple[Ranking, str]:
        """Return the best `limit` hits as the reranking model orders the first of them, or as they were and why."""
        policy = self._policy().recall
        first = ranking.hits[: policy.rerank_hits]
        if len(first) < 2:
            return replace(ranking, hits=ranking.hits[:limit]), ""
        asked = [hit for hit in first if hit.kind == "event"]
        memories, events, before = await asyncio.gather(
            self._store.read(
                lambda q: q.memories.by_id([hit.id for hit in first if hit.kind == "memory"], chars=RERANKED_CHARS)
            ),
            self._store.read(lambda q: q.events.by_id([hit.id for hit in asked], chars=RERANKED_CHARS)),
            self._store.read(
                lambda q: q.events.by_id([id_ for hit in asked for id_ in hit.before], chars=-RERANKED_CHARS)
            ),
        )
        passages = [
            memories[hit.id].content
            if hit.id in memories
            else passage(
                events[hit.id].speaker,
                events[hit.id].text,
                [(before[id_].speaker, before[id_].text) for id_ in hit.before if id_ in before],
                policy,
            )
            if hit.id in events
            else ""  # forgotten since it was ranked: it is left out when the hits are read
            for hit in first
        ]
        logits, note = await self._models.reranker.rerank(text, passages)
        if logits is None:
            return replace(ranking, hits=ranking.hits[:limit]), note
        return reranked(ranking, logits, policy, limit=limit), note

    def _check_recall(self, request: api.RecallRequest, seen: View) -> str:
        work = self._policy().work
        if not 1 <= request.limit <= work.recalled_hits:
            raise InvalidError(
                f"limit must be between 1 and {work.recalled_hits}, got {request.limit}",
                hint="ask for fewer hits, or leave the limit out",
            )
        if not 0 <= request.neighbours <= work.neighbours:
            raise InvalidError(
                f"neighbours must be between 0 and {work.neighbours}, got {request.neighbours}",
                hint="0, the default, gives the hits alone",
            )
        intake.check_salience(request.min_salience)
        check_times(request.since, request.until)
        if request.max_tokens is not None and request.max_tokens < 1:
            raise InvalidError(
                f"max_tokens must be 1 or more, got {request.max_tokens}", hint="leave it out for the usual budget"
            )
        if len(request.query) > self._policy().limits.max_query_chars:
            raise TooLargeError(
                f"a question must have at most {self._policy().limits.max_query_chars} characters, "
                f"got {len(request.query)}",
                hint="ask for what you want to know in a few sentences",
            )
        if not request.kinds or not set(request.kinds) <= {"memory", "event"}:
            raise InvalidError(
                f"kinds must be memory, event or both, got {', '.join(request.kinds)[:80] or 'an empty list'}",
                hint="leave it out to search both",
            )
        access.check_resource(seen, request.resource_id)
        return intake.valid(request.query)

    async def _named(self, text: str) -> Sequence[str]:
        name = " ".join(text.split())
        if not name or len(name) > self._policy().limits.max_name_chars:
            return []
        return list((await self._store.read(lambda q: q.names.holders([name]))).values())

    async def _packed(self, ranked: Sequence[Ranked], max_tokens: int) -> tuple[tuple[api.Hit, ...], int, int]:
        """Return the hits that fit a budget, what they cost, and how many did not; no more is read than can fit."""
        kept: list[api.Hit] = []
        spent = 0
        for at in range(0, len(ranked), READ_HITS):
            most = min(self._policy().limits.hit_chars, budget.chars_within(max_tokens - spent))
            hits = await self._hits(ranked[at : at + READ_HITS], most)
            chars = sum(len(hit.text) + sum(len(quote.text) for quote in hit.neighbours) for hit in hits)
            fitting, cost, left_out = await off_loop(chars, partial(budget.fit, hits, max_tokens - spent))
            kept += fitting
            spent += cost
            if left_out or (fitting and fitting[-1].text != hits[len(fitting) - 1].text):
                return tuple(kept), spent, left_out + len(ranked[at + READ_HITS :])
        return tuple(kept), spent, 0

    async def _hits(self, ranked: Sequence[Ranked], most: int) -> tuple[api.Hit, ...]:
        """Return ranked hits with their texts, of which none has more than about `most` characters.

        A longer one is cut and marked, so that it does not look whole; of a cut text, at least as many are left as can
        matter to a budget that gave `most`.
        """
        memory_ids = [hit.id for hit in ranked if hit.kind == "memory"]
        event_ids = {hit.id for hit in ranked if hit.kind == "event"}
        around = {event_id for hit in ranked for event_id in hit.neighbours}
        memories, grips, events = await asyncio.gather(
            self._store.read(lambda q: q.memories.by_id(memory_ids, chars=most + 1)),
            self._store.read(lambda q: q.grips.of_memories(memory_ids)),
            self._store.read(lambda q: q.events.by_id([*event_ids, *around], chars=most + 1)),
        )
        ends = {grip.event_id_start for found in grips.values() for grip in found} - events.keys()
        events |= await self._store.read(
            lambda q: q.events.by_id([*ends], chars=0)
        )  # only who said it and when: the grip has the words
        found: list[api.Hit] = []
        for hit in ranked:
            neighbours = tuple(_quote(events[at]) for at in hit.neighbours if at in events)
            if hit.kind == "event" and hit.id in events:
                event = events[hit.id]
                found.append(
                    api.Hit(
                        id=hit.id,
                        kind="event",
                        text=event.text or str(event.metadata.get("caption", "")),
                        score=hit.score,
                        ts=event.ts,
                        type=event.type.value,
                        parts=hit.parts,
                        trust=event.trust.value,
                        sources=(replace(_quote(event), text=""),),
                        neighbours=neighbours,
                    )
                )
            elif hit.kind == "memory" and hit.id in memories:
                found.append(_memory_hit(hit, memories[hit.id], grips.get(hit.id, ()), events, neighbours))
        return tuple(_cut(hit, most) for hit in found)

    async def _reranker(self, *, wanted: bool) -> Reranker | None:
        return await self._models.reranker.slot.held() if wanted else None

    async def _embed_query(self, text: str) -> tuple[Asked | None, str]:
        asked, note = await self._models.embedder.ask(text)
        if asked is not None and asked.space != self._maintainer.space:
            return None, "the model was changed meanwhile: lexical only"  # the index holds vectors of another by now
        return asked, note

    async def _place_topics(self) -> None:
        """Give the index the vectors of topic labels that it has none of; only the weighted mode reads them."""
        index, space = self._maintainer.index, self._maintainer.space
        labels = await asyncio.to_thread(index.topics_without_vector)
        found = await self._models.embedder.vectors_of(labels) if labels else None
        if found is not None and (found[0], self._maintainer.space, self._maintainer.index) == (space, space, index):
            await asyncio.to_thread(index.set_topics, labels, *found[1])


def _quote(event: Event, text: str | None = None) -> api.Quote:
    return api.Quote(
        event_id=event.id,
        session_id=event.session_id,
        ts=event.ts,
        utc_offset=event.utc_offset,
        speaker=_who(event),
        text=event.text if text is None else text,
    )


def _who(event: Event) -> str:
    """Return who said something: the speaker, or the file that a paragraph stands in."""
    source = event.metadata.get("source")
    return source if event.type is EventType.NOTE and isinstance(source, str) and source else event.speaker


def _cut(hit: api.Hit, most: int) -> api.Hit:
    """Return a hit whose texts end after `most` characters and say so."""
    if len(hit.text) <= most and all(len(quote.text) <= most for quote in (*hit.sources, *hit.neighbours)):
        return hit

    def quotes(given: Sequence[api.Quote]) -> tuple[api.Quote, ...]:
        return tuple(
            replace(quote, text=quote.text[:most] + CUT) if len(quote.text) > most else quote for quote in given
        )

    cut = len(hit.text) > most
    return replace(
        hit,
        text=hit.text[:most] + CUT if cut else hit.text,
        truncated=cut,
        sources=quotes(hit.sources),
        neighbours=quotes(hit.neighbours),
    )


def _memory_hit(
    hit: Ranked,
    memory: Memory,
    grips: Sequence[Grip],
    events: Mapping[str, Event],
    neighbours: tuple[api.Quote, ...],
) -> api.Hit:
    return api.Hit(
        id=memory.id,
        kind="memory",
        text=memory.content,
        score=hit.score,
        ts=memory.created_at,
        type=memory.type.value,
        parts=hit.parts,
        name=memory.name,
        scope=memory.scope.value,
        resource_id=memory.resource_id,
        salience=memory.salience,
        trust=memory.trust.value,
        superseded_by=memory.superseded_by,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        sources=tuple(
            _quote(events[grip.event_id_start], grip.excerpt) for grip in grips if grip.event_id_start in events
        ),
        neighbours=neighbours,
    )


def _lap(began: float) -> float:
    """Return the milliseconds since a moment."""
    return round((time.perf_counter() - began) * 1000, 3)


def _local_offset(now: Millis) -> int:
    """Return this machine's minutes east of UTC: "yesterday" in a question is the person's."""
    return time.localtime(now / 1000).tm_gmtoff // 60
