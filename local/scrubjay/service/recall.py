"""Recall: a question becomes hits with their texts, within a budget of tokens. Writes nothing.

Theory of operation. A request becomes a plan. Then its stages follow, each timed in the answer: the question is
embedded while, in another thread, its words propose candidates; what meaning adds is fused with them into one ranking;
what only the store knows of the first hits (how sure a memory is, what kind of turn an event) makes of memories and
events one order, by how likely each answers; a reranking model reorders those that are worth its time; and the texts of
those that fit the budget are read in one snapshot, of long ones the passage that answers. Between the words and the
meaning the index may change; then the words are asked again. Of several phrasings each is ranked so, and their orders
become one before the reranking model reads it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller
from scrubjay.index.documents import EVENT, FOREVER, MEMORY
from scrubjay.jobs.recall_counts import RecallCounts
from scrubjay.lifecycle.consolidation import GUESSED, MAY_SUPERSEDE
from scrubjay.lifecycle.succeeding import successors
from scrubjay.models.active_embedder import Asked
from scrubjay.models.ports import Reranker
from scrubjay.models.runtime import Models
from scrubjay.policy import MemoryPolicy, RecallPolicy
from scrubjay.retrieval import fusion, packing, relevance
from scrubjay.retrieval.assemble import Hit as Ranked
from scrubjay.retrieval.doubts import bearing, told_before
from scrubjay.retrieval.folding import Told, folded
from scrubjay.retrieval.fusion import Known
from scrubjay.retrieval.pairs import pairs
from scrubjay.retrieval.phrasings import together
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import Prepared, Ranking, prepare, rank
from scrubjay.retrieval.recency import asks_now
from scrubjay.retrieval.reranking import read_by_model, reranked
from scrubjay.service.index_maintainer import IndexMaintainer
from scrubjay.service.recall_hits import Wanted, read_hits, read_known, read_passages, read_put_away, read_texts
from scrubjay.service.recall_request import Phrasing, Plan, planned
from scrubjay.service.references import References
from scrubjay.store import Store
from scrubjay.store.queries import Queries
from scrubjay_shared.clock import Millis


@dataclass(slots=True)
class _Gathered:
    """What a phrasing of a question has gathered before it is ranked."""

    plan: Plan
    phrasing: Phrasing
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
    """A ranking in its order, how sure it is that it answers (None: not said), and what is known of its hits."""

    ranking: Ranking
    confidence: float | None = None
    known: Mapping[str, Known] = field(default_factory=dict)


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
        gathered = await asyncio.gather(*(self._gather(plan, phrasing, began) for phrasing in plan.phrasings))
        stages["embed"] = max(one.embedded_ms for one in gathered)
        judged = _together([await self._judged(one, await self._ranked(one)) for one in gathered], policy.recall)
        ranking = judged.ranking
        stages["rank"] = round(_lap(began) - stages["embed"], 3)
        notes += [note for one in gathered for note in one.notes]
        read = read_by_model(ranking.hits, judged.known, policy.recall) if gathered[0].reranker is not None else ()
        if read:
            lap = time.perf_counter()
            ranking, note = await self._reranked(plan, ranking, read)
            notes += [note] if note else []
            stages["rerank"] = _lap(lap)
        at = now if request.as_of is None else request.as_of
        replaced, guessed, doubted, put_away = await self._store.read(
            partial(_said_of, hits=ranking.hits, at=at, as_of=request.as_of)
        )
        questioned = replaced | guessed | doubted
        doubts = bearing(ranking.hits, doubted, policy.succeeding.likely) if ranking.work else doubted
        later = await self._succeeding(ranking, plan) | replaced | doubts
        hits = fusion.told_once(told_before(ranking.hits, later))
        ranking = replace(ranking, hits=folded(hits, put_away, limit=plan.limit))
        lap = time.perf_counter()
        kept, tokens, left_out = await self._packed(ranking, plan)
        kept = tuple(
            replace(hit, questioned_by=questioned[hit.id])
            if hit.id in questioned and hit.superseded_by is None
            else hit
            for hit in kept
        )
        stages["read"] = _lap(lap)
        if counted:
            self._counts.add((hit.id for hit in kept if hit.kind == MEMORY.name), now)
        return api.RecallResponse(
            hits=kept,
            mode=ranking.mode if gathered[0].asked is not None or not plan.hybrid else "lexical",
            tokens=tokens,
            elapsed_ms=_lap(began),
            left_out=left_out,
            notes=tuple(dict.fromkeys([*notes, *ranking.notes])),
            stages_ms=stages,
            confidence=judged.confidence,
        )

    async def _gather(self, plan: Plan, phrasing: Phrasing, began: float) -> _Gathered:
        """Embed a phrasing while its words propose candidates, and wait for the models that it needs.

        The first question waits for both models: for one beside the other, not for one after the other. The vector,
        which takes longest, is begun first; and its thread does not go on to rank: on a busy machine a thread that has
        worked for 5 ms waits for the others, while a fresh one is let in at once.
        """
        gathered = _Gathered(plan, phrasing)

        async def embed() -> None:
            if plan.embeds:
                gathered.asked, note = await self._embedded(phrasing.query.text)
                gathered.notes += (note,) if note else ()
            gathered.embedded_ms = _lap(began)

        async def words() -> None:
            await self._maintainer.indexed()
            if plan.hybrid and plan.embeds:
                work = partial(prepare, self._maintainer.index, phrasing.query, plan.filters, self._policy().recall)
                gathered.prepared = await asyncio.to_thread(work)

        async def named() -> None:
            if name := phrasing.name:
                found = await self._store.read(lambda q: q.names.holders([name, *phrasing.mentions]))
                gathered.named = [id_ for held, id_ in found.items() if held == name]
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
        query = replace(gathered.phrasing.query, named=tuple(gathered.named), mentioned=tuple(gathered.mentioned))
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
        """Return one order of hits with their confidence."""
        plan, query, policy = gathered.plan, gathered.query, self._policy().recall
        if query is None or not plan.hybrid or not plan.embeds:
            return _Judged(ranking)
        known = await self._store.read(partial(read_known, ranked=ranking.hits))
        hits = fusion.weighed(ranking.hits, known, policy)
        hits = fusion.judged(hits, known, policy, cosine_baseline=query.cosine_baseline, work=ranking.work)
        confidence = relevance.of_answer(hits, policy, cosine_baseline=query.cosine_baseline, near=ranking.near)
        if ranking.apart:
            if ranking.work:
                hits = fusion.of_work(hits, policy.agent_work)
            else:
                events = [hit for hit in hits if hit.kind == EVENT.name]
                others = [hit for hit in hits if hit.kind != EVENT.name]
                hits = fusion.merged([*others, *events], policy.relevance, limit=len(hits))
        return _Judged(replace(ranking, hits=hits), confidence=confidence, known=known)

    async def _reranked(self, plan: Plan, ranking: Ranking, read: Sequence[int]) -> tuple[Ranking, str]:
        """Return the hits as the reranking model orders those at some places, or as they were and why."""
        policy = self._policy().recall
        first = [ranking.hits[at] for at in read]
        passages = await self._store.read(lambda q: read_passages(q, first, policy))
        logits, note = await self._models.reranker.rerank(plan.phrasings[0].query.text, passages)
        if logits is None:
            return ranking, note
        is_fused = len(plan.phrasings) > 1
        return reranked(ranking, logits, policy, limit=len(ranking.hits), read=read, is_fused=is_fused), note

    async def _succeeding(self, ranking: Ranking, plan: Plan) -> dict[str, str]:
        """Return which later hits may have taken the place of earlier ones, in work with agents: ids by ids."""
        if not ranking.work or not ranking.apart:
            return {}
        policy, hits = self._policy().succeeding, ranking.hits[: self._policy().succeeding.among]
        texts = await self._store.read(partial(read_texts, ranked=hits, chars=policy.chars))
        index, now = self._maintainer.index, asks_now(plan.phrasings[0].query.text)

        def decide() -> dict[str, str]:
            return successors(hits, pairs(index, texts, policy), texts, policy, asks_now=now)

        return await asyncio.to_thread(decide)

    async def _packed(self, ranking: Ranking, plan: Plan) -> tuple[tuple[api.Hit, ...], int, int]:
        """Return the hits that fit a budget, what they cost, and how many did not; no more is read than can fit."""
        policy = self._policy()
        wanted = Wanted(
            tokens=plan.max_tokens,
            most=min(policy.limits.hit_chars, packing.chars_within(plan.max_tokens)),
            weights=ranking.weights,
            policy=policy.recall.showing,
            seen=View(project=plan.filters.caller_project, session_id=plan.filters.caller_session),
            as_of=plan.filters.as_of,
        )

        def fitting(queries: Queries) -> tuple[tuple[api.Hit, ...], int, int]:
            return packing.fit(read_hits(queries, ranking.hits, wanted), plan.max_tokens)

        kept, spent, _ = await self._store.read(fitting)  # not in the loop: large texts take a second to be measured
        return kept, spent, len(ranking.hits) - len(kept)

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


def _together(judged: Sequence[_Judged], policy: RecallPolicy) -> _Judged:
    """Return the answers to several phrasings as one: known is what any of them is sure of."""
    if len(judged) == 1:
        return judged[0]
    sure = [one.confidence for one in judged if one.confidence is not None]
    return _Judged(
        together([one.ranking for one in judged], policy),
        confidence=max(sure, default=None),
        known={id_: known for one in judged for id_, known in one.known.items()},
    )


def _said_of(
    queries: Queries, hits: Sequence[Ranked], at: Millis, as_of: Millis | None
) -> tuple[dict[str, str], dict[str, str], dict[str, str], dict[str, Told | None]]:
    """Return what holds in the place of some hits at a time, what may, and by what those put away are told.

    What may by a guess comes before what may by a rule: a guess is told beside a hit, and moves none.
    """
    ids = [hit.id for hit in hits if hit.kind == MEMORY.name]
    turns = [hit.id for hit in hits if hit.kind == EVENT.name]
    before = FOREVER if as_of is None else as_of
    replaced = queries.conflicts.replaced_turns(turns, before) if turns else {}
    if not ids:
        return replaced, {}, {}, {}
    if outdated := [hit.id for hit in hits if hit.kind == MEMORY.name and hit.superseded]:
        replaced |= queries.conflicts.replaced(outdated, before)
    guessed = queries.conflicts.questioned(MAY_SUPERSEDE, ids, at)
    doubted = queries.conflicts.questioned(MAY_SUPERSEDE, list(guessed), at, but=GUESSED)
    return replaced, guessed, doubted, read_put_away(queries, ids, as_of)


def _lap(began: float) -> float:
    """Return the milliseconds since a moment."""
    return round((time.perf_counter() - began) * 1000, 3)
