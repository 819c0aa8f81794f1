"""Reordering the first hits by what a reranking model says of each, and what it reads of an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.query import Floats
from scrubjay.retrieval.ranking import Ranking


def reranked(ranking: Ranking, logits: Floats, policy: RecallPolicy, *, limit: int) -> Ranking:
    """Return the best `limit` hits after the first `len(logits)` were reordered by what a reranking model says of each.

    Its part is `rerank` times how far a logit is above the least of them, so no hit falls below those it did not read.
    """
    read, rest = ranking.hits[: len(logits)], ranking.hits[len(logits) :]
    gained = policy.rerank * (np.asarray(logits, np.float64) - min(map(float, logits), default=0.0))
    hits = [
        replace(hit, score=sum(parts.values()), parts=parts)
        for hit, gain in zip(read, gained.round(6).tolist(), strict=True)
        for parts in [hit.parts | ({"rerank": gain} if gain else {})]
    ]
    hits.sort(key=lambda hit: (-hit.score, -hit.ts, hit.id))
    return replace(ranking, hits=(*hits, *rest)[:limit])


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
