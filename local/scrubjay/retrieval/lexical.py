"""Words: what the question's tokens weigh, and BM25 of every row that holds any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.index.documents import FOREVER
from scrubjay.index.index import Index
from scrubjay.policy import WorkPolicy
from scrubjay.retrieval.candidates import Candidates, CandidateSet
from scrubjay.retrieval.filters import Rows
from scrubjay.retrieval.query import Floats, Query
from scrubjay_shared import scoring

NEAR_K1, NEAR_B = 1.2, 0.75
"""BM25's customary values: of memories that share the same words with a text, the shorter is more like it."""


@dataclass(frozen=True, slots=True)
class Word:
    """A token of the query: its weight, and by kind who of the seen holds it how often, side by side."""

    idf: float
    held: Mapping[str, tuple[Rows, Floats]]

    @property
    def holders(self) -> int:
        """How many of the seen hold it."""
        return sum(len(rows) for rows, _ in self.held.values())


def words_of(index: Index, candidates: Candidates, query: Query) -> list[Word]:
    """Return what the query's tokens weigh among all that is seen, of all kinds together."""
    counted = sum(each.count for each in candidates.values())
    words = []
    for token in dict.fromkeys(query.tokens):
        term = index.vocabulary.get(token)
        held = {kind: _holders(each, term) for kind, each in candidates.items()}
        words.append(Word(scoring.bm25_idf(counted, sum(len(rows) for rows, _ in held.values())), held))
    return words


def _holders(candidates: CandidateSet, term: int | None) -> tuple[Rows, Floats]:
    if term is None:
        return np.zeros(0, np.intp), np.zeros(0, np.float32)
    rows, tf = candidates.table.holders(term)
    if candidates.seen is not None:
        seen = candidates.seen[rows]
        rows, tf = rows[seen], tf[seen]
    return rows.astype(np.intp, copy=False), tf.astype(np.float32)


def bm25(
    candidates: CandidateSet, words: Sequence[Word], *, k1: float, b: float, mean: float, long: float = math.inf
) -> Floats:
    """Return BM25 of every row of the table, with one 0 more at the end: the score of the row -1, which is no row."""
    table = candidates.table
    lengths = table["length"]
    scores = np.zeros(len(table) + 1, np.float32)
    is_long = bool(b) or int(lengths.max(initial=0)) > long
    for word in words:
        rows, tf = word.held[candidates.kind]
        if is_long:
            scores[rows] += scoring.bm25_part(tf, lengths[rows], mean, idf=word.idf, k1=k1, b=b, long=long)
        else:  # then it depends on how often alone, and equal ones need not be computed again and again
            most = int(tf.max(initial=0))
            each = np.arange(most + 1)
            parts = scoring.bm25_part(each, np.ones_like(each), mean, idf=word.idf, k1=k1, b=b, long=long)
            scores[rows] += parts[1] if most == 1 else parts[tf.astype(np.intp)]
    return scores


def matched(candidates: CandidateSet, words: Sequence[Word], weight: Callable[[Word], float]) -> Floats:
    """Return of each row considered which share of the query's weight it holds."""
    table, rows = candidates.table, candidates.rows
    found, total = np.zeros(len(rows), np.float32), sum(map(weight, words))
    if len(rows):
        at = np.full(len(table), -1, np.int32)
        at[rows] = np.arange(len(rows), dtype=np.int32)
        for word in words:
            held = at[word.held[candidates.kind][0]]
            found[held[held >= 0]] += weight(word)
    return found / np.float32(total or 1)


def sharing_words(index: Index, tokens: Sequence[str], *, policy: WorkPolicy, count: int, longest: int) -> list[str]:
    """Return the ids of the memories that share most words with a text, best first; none that was put away.

    Rare words come first: one that so many hold already as `policy.near_rows` is left out, so that this costs the same
    however many memories begin with "The user". One of more than `longest` characters may be left out.
    """
    with index.lock:
        table = index.memories
        terms = {term: token for token in tokens if (term := index.vocabulary.get(token)) is not None}
        rare = sorted((df, token, term) for term, token in terms.items() if (df := table.df(term)))
        held: list[tuple[Rows, Rows]] = []
        weights: list[float] = []
        left = policy.near_rows
        for df, _, term in rare[: policy.near_tokens]:
            if held and df > left:
                break
            left -= df
            holders, times = table.holders(term)
            held.append((holders.astype(np.intp), times.astype(np.intp)))
            weights.append(scoring.bm25_idf(len(table.rows), df))
        if not held:
            return []
        rows, tf = map(np.concatenate, zip(*held, strict=True))
        lengths, mean = table["length"], table.tokens / len(table.rows)
        parts = scoring.bm25_part(tf, lengths[rows], mean, idf=1.0, k1=NEAR_K1, b=NEAR_B)
        parts *= np.repeat(np.array(weights, np.float32), [len(holders) for holders, _ in held])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        among, scores = rows[starts], np.add.reduceat(parts[order], starts)
        # No character gives more than two tokens.
        may_be = (table["archived"][among] == FOREVER) & (lengths[among] <= 2 * longest)
        among, scores = among[may_be], scores[may_be]
        best = table.best(scores, among, count)
        among, scores = among[best], scores[best]
        first = table.rows.order(among)
        return [table.ids[int(row)] for row in among[first[np.argsort(-scores[first], kind="stable")]]]
