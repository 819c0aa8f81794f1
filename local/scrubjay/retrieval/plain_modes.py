"""The modes that anyone can recompute: plain BM25, and cosine with token overlap."""

from __future__ import annotations

import numpy as np

from scrubjay.index.documents import MEMORY
from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.candidates import Candidates
from scrubjay.retrieval.hybrid import quantised
from scrubjay.retrieval.lexical import Word, bm25, matched, words_of
from scrubjay.retrieval.query import Query
from scrubjay_shared import scoring


def keyword(index: Index, candidates: Candidates, query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    """Score by plain BM25 of the tokens. Returns how."""
    words = words_of(index, candidates, query)
    counted = sum(each.count for each in candidates.values())
    lengths = sum(
        each.table.tokens if each.seen is None else int(each.table["length"][each.seen].sum())
        for each in candidates.values()
    )
    k1, b, mean = policy.keyword_k1, policy.keyword_b, lengths / max(counted, 1)
    for each in candidates.values():
        scores = bm25(each, words, k1=k1, b=b, mean=mean)
        each.rows = np.flatnonzero((scores[:-1] > 0) if each.pool is None else (scores[:-1] > 0) & each.pool)
        each.parts["bm25"] = scores[each.rows]
        each.found = np.ones(len(each.rows), np.bool_)
        each.matched = matched(each, words, lambda word: word.idf)
    return (f"bm25 with k1 {k1:g} and b {b:g}",)


def weighted(index: Index, candidates: Candidates, query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    """Score by 0.8 cosine and 0.2 weighted token overlap within matching topics. Returns notes on how."""
    vector, notes = quantised(index, candidates, query)
    words = words_of(index, candidates, query)
    counted = sum(each.count for each in candidates.values())

    def weight(word: Word) -> float:
        return scoring.overlap_idf(counted, word.holders)

    for each in candidates.values():
        each.rows = each.of(each.pool)
        embedded = np.zeros(len(each.rows), np.bool_)
        cosine = np.zeros(len(each.rows), np.float32)
        if vector is not None:
            embedded = each.table["embedded"][each.rows]
            each.cosine = cosine = each.table.cosines_of(each.rows, *vector)
        each.matched = matched(each, words, weight)
        each.found = embedded | (each.matched > 0)
        each.parts |= {"cosine": policy.cosine_weight * cosine, "tokens": policy.token_weight * each.matched}
    return notes + _within_topics(index, candidates, query, policy)


def _within_topics(index: Index, candidates: Candidates, query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    memories = candidates[MEMORY.name]
    if query.vector is None or not index.topic_vectors:
        return ()
    row, scale = scoring.quantise(query.vector[None, :])
    similarities = {
        topic: float(scoring.cosines(label[None, :], np.array([size], np.float32), row[0], float(scale[0]))[0])
        for topic, (label, size) in index.topic_vectors.items()
    }
    topics = memories.table["topic"][memories.rows]
    wanted = memories.wanted[memories.rows] if memories.wanted is not None else np.True_
    counts = {topic: int(((topics == topic) & wanted).sum()) for topic in similarities}
    chosen = scoring.topic_filter(
        similarities, counts, threshold=policy.topic_threshold, min_size=policy.min_topic_filter_size
    )
    if chosen is None:
        return ("no topic matches enough: all searched",)
    for each in candidates.values():  # an event has no topic
        each.found &= np.isin(topics, sorted(chosen)) if each is memories else np.False_
    return ("within topics: " + ", ".join(sorted(index.names.topics.strings[topic] for topic in chosen)),)
