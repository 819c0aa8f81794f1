"""Recall: a question becomes hits with their texts, within a budget of tokens. Writes nothing.

Theory of operation. A request becomes a plan. Then its stages follow, each timed in the answer: the question is
embedded while, in another thread, its words propose candidates; what meaning adds is fused with them into one ranking;
what only the store knows of the first hits (how sure a memory is, what kind of turn an event) makes of memories and
events one order, by how likely each answers; a reranking model reorders those that are worth its time; and the texts of
those that fit the budget are read in one snapshot, of long ones the passage that answers. Between the words and the
meaning the index may change; then the words are asked again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.index.documents import EVENT, FOREVER, MEMORY
from scrubjay.jobs.recall_counts import RecallCounts
from scrubjay.lifecycle.consolidation import MAY_SUPERSEDE
from scrubjay.lifecycle.succeeding import successors
from scrubjay.models.active_embedder import Asked
from scrubjay.models.ports import Reranker
from scrubjay.models.runtime import Models
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval import fusion, packing, relevance
from scrubjay.retrieval.assemble import Hit as Ranked
from scrubjay.retrieval.doubts import bearing, told_before
from scrubjay.retrieval.folding import Told, folded
from scrubjay.retrieval.pairs import pairs
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import Prepared, Ranking, prepare, rank
from scrubjay.retrieval.recency import asks_now
from scrubjay.retrieval.reranking import read_by_model, reranked
from scrubjay.service.index_maintainer import IndexMaintainer
from scrubjay.service.recall_hits import Wanted, read_hits, read_known, read_passages, read_put_away, read_texts
from scrubjay.service.recall_request import Plan, planned
from scrubjay.service.references import References
from scrubjay.store import Store
from scrubjay.store.queries import Queries
from scrubjay_shared.clock import Millis

READ_HITS = 16
"""Hits whose texts are read at a time: an answer of the usual size is read at once, and a budget soon spent ends it."""


@dataclass(slots=True)
class _Gathered:
    """What a question has gathered before it is ranked."""

    plan: Plan
    named: Sequence[str] = ()
    mentioned: Sequence[str] = ()
    asked: Asked | None = None
    reranker: Reranker | None = None
    query: Query | None = None
    prepared: Prepared | None = None
    notes: tuple[str, ...] = ()
    embedded_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """A ranking in its order, how sure it is that it answers (None: not said), and what a model is to read of it."""

    ranking: Ranking
    confidence: float | None = None
    read: tuple[int, ...] = ()


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

    async def recall(self, caller: Caller, request: api.RecallRequest, *, counted: bool = True) -> api.RecallResponse:
        """Return what answers a question, best first, within the budget of tokens. Writes nothing.

        Not `counted`: nobody asked, so nothing counts as recalled by it.
        """
        began = time.perf_counter()
        policy, now = self._policy(), self._now()
        plan = planned(
            request, access.view(caller, project=request.project, session_id=request.session_id), policy, now
        )
        stages = dict.fromkeys(("embed", "rank", "rerank", "read"), 0.0)
        notes = [*await self._references.notes_on(request.project)]
        gathered = await self._gather(plan, began)
        stages["embed"] = gathered.embedded_ms
        judged = await self._judged(gathered, await self._ranked(gathered))
        ranking = judged.ranking
        stages["rank"] = round(_lap(began) - gathered.embedded_ms, 3)
        notes += gathered.notes
        if judged.read:
            lap = time.perf_counter()
            ranking, note = await self._reranked(plan, judged)
            notes += [note] if note else []
            stages["rerank"] = _lap(lap)
        at = now if request.as_of is None else request.as_of
        replaced, doubted, put_away = await self._store.read(
            partial(_said_of, hits=ranking.hits, at=at, as_of=request.as_of)
        )
        questioned = replaced | doubted
        doubts = bearing(ranking.hits, doubted, policy.succeeding.likely)
        later = await self._succeeding(ranking, plan) | replaced | doubts
        hits = fusion.told_once(told_before(ranking.hits, later))
        ranking = replace(ranking, hits=folded(hits, put_away, limit=plan.limit))
        lap = time.perf_counter()
        kept, tokens, left_out = await self._packed(ranking, plan)
        kept = tuple(
            hit if hit.superseded_by is not None else replace(hit, questioned_by=questioned.get(hit.id)) for hit in kept
        )
        stages["read"] = _lap(lap)
        if counted:
            self._counts.add((hit.id for hit in kept if hit.kind == MEMORY.name), now)
        return api.RecallResponse(
            hits=kept,
            mode=ranking.mode if gathered.asked is not None or not plan.hybrid else "lexical",
            tokens=tokens,
            elapsed_ms=_lap(began),
            left_out=left_out,
            notes=tuple(dict.fromkeys([*notes, *ranking.notes])),
            stages_ms=stages,
            confidence=judged.confidence,
            known=judged.confidence is None or judged.confidence >= policy.recall.relevance.floor,
        )

    async def _gather(self, plan: Plan, began: float) -> _Gathered:
        """Embed the question while its words propose candidates, and wait for the models that it needs.

        The first question waits for both models: for one beside the other, not for one after the other. The vector,
        which takes longest, is begun first; and its thread does not go on to rank: on a busy machine a thread that has
        worked for 5 ms waits for the others, while a fresh one is let in at once.
        """
        gathered = _Gathered(plan)

        async def embed() -> None:
            if plan.embeds:
                gathered.asked, note = await self._embedded(plan.query.text)
                gathered.notes += (note,) if note else ()
            gathered.embedded_ms = _lap(began)

        async def words() -> None:
            await self._maintainer.indexed()
            if plan.hybrid and plan.embeds:
                work = partial(prepare, self._maintainer.index, plan.query, plan.filters, self._policy().recall)
                gathered.prepared = await asyncio.to_thread(work)

        async def named() -> None:
            if plan.name:
                found = await self._store.read(lambda q: q.names.holders([plan.name, *plan.mentions]))
                gathered.named = [id_ for name, id_ in found.items() if name == plan.name]
                gathered.mentioned = list(dict.fromkeys(id_ for id_ in found.values() if id_ not in gathered.named))

        async def load() -> None:
            if plan.reranks:
                slot = self._models.reranker.slot
                gathered.reranker = await slot.held()

        await asyncio.gather(embed(), words(), named(), load())
        error = self._models.reranker.slot.error
        if plan.reranks and gathered.reranker is None and error is not None:
            gathered.notes += (f"the hits were not reranked: {error.message}",)
        return gathered

    async def _ranked(self, gathered: _Gathered) -> Ranking:
        """Return the hits: of each kind apart if several are asked for, and enough for whatever reads them."""
        plan, asked, policy = gathered.plan, gathered.asked, self._policy().recall
        if plan.mode == api.Mode.WEIGHTED.value:
            await self._place_topics()
        query = replace(plan.query, named=tuple(gathered.named), mentioned=tuple(gathered.mentioned))
        if asked is not None:
            query = replace(query, vector=asked.vector, cosine_baseline=asked.spread)
        gathered.query = query
        reads = gathered.reranker is not None
        work = partial(
            rank,
            self._maintainer.index,
            query,
            plan.filters,
            policy,
            limit=max(plan.limit, policy.judged_hits) if plan.hybrid and plan.embeds else plan.limit,
            mode=plan.mode,
            neighbours=plan.neighbours,
            before=policy.window_turns if reads else 0,
            apart=plan.fuses,
            prepared=gathered.prepared,
        )
        await self._maintainer.indexed()
        return await asyncio.to_thread(work)

    async def _judged(self, gathered: _Gathered, ranking: Ranking) -> _Judged:
        """Return one order of hits with their confidence, and which of them a reranking model is to read."""
        plan, query, policy = gathered.plan, gathered.query, self._policy().recall
        if query is None or not plan.hybrid or not plan.embeds:
            return _Judged(ranking)
        known = await self._store.read(partial(read_known, ranked=ranking.hits))
        hits = fusion.weighed(ranking.hits, known, policy)
        hits = fusion.judged(hits, known, policy, cosine_baseline=query.cosine_baseline, work=ranking.work)
        confidence = relevance.of_answer(hits, policy, cosine_baseline=query.cosine_baseline, near=ranking.near)
        read: tuple[int, ...] = ()
        if ranking.apart:
            if ranking.work:
                hits = fusion.of_work(hits, policy.agent_work)
            else:
                events = [hit for hit in hits if hit.kind == EVENT.name]
                others = [hit for hit in hits if hit.kind != EVENT.name]
                hits = fusion.merged([*others, *events], policy.relevance, limit=len(hits))
        if gathered.reranker is not None:
            read = read_by_model(hits, known, policy)
        return _Judged(replace(ranking, hits=hits), confidence=confidence, read=read)

    async def _reranked(self, plan: Plan, judged: _Judged) -> tuple[Ranking, str]:
        """Return the hits as the reranking model orders those that it reads, or as they were and why."""
        policy, ranking = self._policy().recall, judged.ranking
        first = [ranking.hits[at] for at in judged.read]
        passages = await self._store.read(lambda q: read_passages(q, first, policy))
        logits, note = await self._models.reranker.rerank(plan.query.text, passages)
        if logits is None:
            return ranking, note
        return reranked(ranking, logits, policy, limit=len(ranking.hits), read=judged.read), note

    async def _succeeding(self, ranking: Ranking, plan: Plan) -> dict[str, str]:
        """Return which later hits may have taken the place of earlier ones, in work with agents: ids by ids."""
        if not ranking.work or not ranking.apart:
            return {}
        policy, hits = self._policy().succeeding, ranking.hits[: self._policy().succeeding.among]
        texts = await self._store.read(partial(read_texts, ranked=hits, chars=policy.chars))
        index, now = self._maintainer.index, asks_now(plan.query.text)

        def decide() -> dict[str, str]:
            return successors(hits, pairs(index, texts, policy), texts, policy, asks_now=now)

        return await asyncio.to_thread(decide)

    async def _packed(self, ranking: Ranking, plan: Plan) -> tuple[tuple[api.Hit, ...], int, int]:
        """Return the hits that fit a budget, what they cost, and how many did not; no more is read than can fit."""
        ranked, max_tokens = ranking.hits, plan.max_tokens
        wanted = Wanted(chars=plan.passage_chars, weights=ranking.weights, as_of=plan.filters.as_of)
        kept: list[api.Hit] = []
        spent = 0
        for at in range(0, len(ranked), READ_HITS):
            most = min(self._policy().limits.hit_chars, packing.chars_within(max_tokens - spent))
            page = ranked[at : at + READ_HITS]
            hits, (fitting, cost, left_out) = await self._store.read(
                partial(_read, page, most, wanted, max_tokens - spent)
            )
            kept += fitting
            spent += cost
            if left_out or (fitting and fitting[-1].text != hits[len(fitting) - 1].text):
                return tuple(kept), spent, left_out + len(ranked[at + READ_HITS :])
        return tuple(kept), spent, 0

    async def _embedded(self, text: str) -> tuple[Asked | None, str]:
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


def _read(
    ranked: Sequence[Ranked], most: int, wanted: Wanted, max_tokens: int, queries: Queries
) -> tuple[tuple[api.Hit, ...], tuple[tuple[api.Hit, ...], int, int]]:
    """Return hits with their texts, and what `packing.fit` says of them."""
    hits = read_hits(queries, ranked, most, wanted)
    return hits, packing.fit(hits, max_tokens)


def _said_of(
    queries: Queries, hits: Sequence[Ranked], at: Millis, as_of: Millis | None
) -> tuple[dict[str, str], dict[str, str], dict[str, Told | None]]:
    """Return what holds in the place of some hits at a time, what may, and by what those put away are told."""
    ids = [hit.id for hit in hits if hit.kind == MEMORY.name]
    turns = [hit.id for hit in hits if hit.kind == EVENT.name]
    before = FOREVER if as_of is None else as_of
    replaced = queries.conflicts.replaced_turns(turns, before) if turns else {}
    if not ids:
        return replaced, {}, {}
    if outdated := [hit.id for hit in hits if hit.kind == MEMORY.name and hit.superseded]:
        replaced |= queries.conflicts.replaced(outdated, before)
    return replaced, queries.conflicts.questioned(MAY_SUPERSEDE, ids, at), read_put_away(queries, ids, as_of)


def _lap(began: float) -> float:
    """Return the milliseconds since a moment."""
    return round((time.perf_counter() - began) * 1000, 3)
