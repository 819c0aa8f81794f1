"""Reordering the first hits by what a reranking model says of each, and what it reads of an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from scrubjay.index.documents import EVENT
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval import relevance
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.fusion import Known, falling
from scrubjay.retrieval.query import Floats
from scrubjay.retrieval.ranking import Ranking
from scrubjay.retrieval.turns import TurnKind


def read_by_model(hits: Sequence[Hit], known: Mapping[str, Known], policy: RecallPolicy) -> tuple[int, ...]:
    """Return the places of the hits that are worth their time before a reranking model; none where nothing can change.

    Where people talk those are the first `rerank_hits`, unless the first leads by more than a model ever takes back.
    Of work with an agent, which is where at least half of the events are an agent's or a tool's, they are the first
    `rerank_memories` memories that are current; of those that were read from turns, whose sentences are out of their
    context, only the likely ones. A turn is long, which costs ten times the time, and reading its passage changed
    nothing.
    """
    turns = [known[hit.id].turn for hit in hits if hit.kind == EVENT.name and hit.id in known]
    if turns and 2 * sum(turn in _WORK for turn in turns) >= len(turns):
        memories = [at for at, hit in enumerate(hits) if hit.kind != EVENT.name and not hit.superseded]
        worth = [
            at for at in memories if hits[at].around is None or (hits[at].confidence or 0.0) >= policy.rerank_likely
        ]
        return tuple(worth[: policy.rerank_memories])
    if len(hits) < 2 or _own(hits[0]) - _own(hits[1]) > policy.rerank_reach:
        return ()
    return tuple(range(min(len(hits), policy.rerank_hits)))


def _own(hit: Hit) -> float:
    """Return the score of a hit without what it lost to those above it."""
    return hit.score - hit.parts.get("below", 0.0)


_WORK = frozenset({TurnKind.FINDING, TurnKind.NARRATION, TurnKind.OUTPUT})


def reranked(
    ranking: Ranking,
    logits: Floats,
    policy: RecallPolicy,
    *,
    limit: int,
    read: Sequence[int] | None = None,
    is_fused: bool = False,
) -> Ranking:
    """Return the best `limit` hits after those at the places `read` were reordered by what a model says of each.

    `read` are places in ascending order, by default the first `len(logits)`. The part of a hit is `rerank` times how
    far its logit is above the least of them; those that were read take the places that they had together, so no hit
    rises above one that was not read and stood before them all. Of work with agents all hits stand by how likely they
    answer, and what was read by how likely it does now; where several phrasings found them (`is_fused`), their fused
    order says more than how likely each phrasing made one, so there too only what was read changes places.
    """
    places = list(range(min(len(logits), len(ranking.hits)))) if read is None else list(read)
    gained = policy.rerank * (np.asarray(logits, np.float64) - min(map(float, logits), default=0.0))
    weighed = [
        replace(hit, score=0.0 + sum(parts.values()), parts=parts)
        for hit, gain in zip([ranking.hits[at] for at in places], gained.round(6).tolist(), strict=False)
        for parts in [hit.parts | ({"rerank": gain} if gain else {})]
    ]
    if ranking.work:
        weighed = [
            replace(hit, confidence=relevance.of_read(hit, logit, policy.agent_work))
            for hit, logit in zip(weighed, map(float, logits), strict=True)
        ]
        weighed.sort(key=lambda hit: -(hit.confidence or 0.0))
    else:
        weighed.sort(key=lambda hit: (-hit.score, -hit.ts, hit.id))
    hits = list(ranking.hits)
    for at, hit in zip(places, weighed, strict=True):
        hits[at] = hit
    if ranking.work and not is_fused:
        hits.sort(key=lambda hit: -(hit.confidence or 0.0))
    return replace(ranking, hits=falling(hits)[:limit])


def passage(speaker: str, said: str, before: Sequence[tuple[str, str]], policy: RecallPolicy) -> str:
    """Return an event as a reranking model reads it: "speaker: text", after some words of what was said before it.

    `before` are the speakers and texts of the turns before it, in order. A reranker that sees an answer without its
    question takes it for small talk. Its time is linear in the words, so a long event has fewer before.
    """
    parts = [f"{speaker}: {said}"]
    room = min(policy.rerank_before, policy.rerank_words - len(said.split()))
    for who, what in reversed(before):
        last = what.split()[-room:] if room > 0 else []
        if last:
            parts.append(f"{who}: {' '.join(last)}")
            room -= len(last)
    return ", ".join(reversed(parts))
