"""Words: what the question's tokens weigh, and BM25 of every row that holds any of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.index.documents import FOREVER
from scrubjay.index.index import Index
from scrubjay.index.table import Table
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


def sharing_words(
    index: Index, texts: Sequence[Sequence[str]], *, policy: WorkPolicy, count: int, longest: int
) -> list[list[str]]:
    """Return for each text's tokens the memories that share most words with it, best first; none that was put away.

    Rare words come first: one that so many hold already as `policy.near_rows` is left out, so that this costs the same
    however many memories begin with "The user". One of more than `longest` characters may be left out. Texts of one
    batch share words, and what a word finds is worked out once.
    """
    found = []
    kept: dict[int, tuple[Rows, Floats]] = {}
    version, total = -1, np.zeros(0, np.float32)
    for at in range(0, len(texts), _AT_ONCE):
        with index.lock:
            if version != index.version:
                kept.clear()
                version, total = index.version, np.zeros(len(index.memories), np.float32)
            terms = [_rarest(index, tokens, policy) for tokens in texts[at : at + _AT_ONCE]]
            kept |= _sharing(index.memories, {term for each in terms for term in each} - kept.keys(), longest)
            found += [_best_sharing(index.memories, [kept[term] for term in each], total, count) for each in terms]
    return found


_AT_ONCE = 16
"""Texts looked up while the index is locked: some milliseconds, for which a question may have to wait."""


def _rarest(index: Index, tokens: Sequence[str], policy: WorkPolicy) -> list[int]:
    terms = {term: token for token in tokens if (term := index.vocabulary.get(token)) is not None}
    rare = sorted((df, token, term) for term, token in terms.items() if (df := index.memories.df(term)))
    chosen: list[int] = []
    left = policy.near_rows
    for df, _, term in rare[: policy.near_tokens]:
        if chosen and df > left:
            break
        left -= df
        chosen.append(term)
    return chosen


def _sharing(table: Table, terms: Collection[int], longest: int) -> dict[int, tuple[Rows, Floats]]:
    """Return the rows that may be compared with and hold each of some tokens, and what it adds to each of them."""
    if not terms:
        return {}
    rows, tf = map(np.concatenate, zip(*(held := [table.holders(term) for term in terms]), strict=True))
    ends = np.cumsum([len(each) for each, _ in held])
    weights = np.array([scoring.bm25_idf(len(table.rows), len(each)) for each, _ in held], np.float32)
    lengths = table["length"][rows]
    parts = scoring.bm25_part(tf, lengths, table.tokens / len(table.rows), idf=1.0, k1=NEAR_K1, b=NEAR_B)
    parts *= np.repeat(weights, np.diff(ends, prepend=0))
    # No character gives more than two tokens.
    may_be = (table["archived"][rows] == FOREVER) & (lengths <= 2 * longest)
    ends = np.cumsum(may_be)[ends - 1].tolist()
    rows, parts = rows[may_be].astype(np.intp), parts[may_be]
    starts = [0, *ends[:-1]]
    return {term: (rows[at:end], parts[at:end]) for term, at, end in zip(terms, starts, ends, strict=True)}


def _best_sharing(table: Table, held: Sequence[tuple[Rows, Floats]], total: Floats, count: int) -> list[str]:
    """Return the best ids of those that hold some words. `total` is 0 for every row, before and after."""
    new = []
    for rows, parts in held:
        before = total[rows]
        new.append(rows[before == 0])
        total[rows] = before + parts
    if not new:
        return []
    among = np.concatenate(new)
    scores = total[among]
    total[among] = 0
    best = table.best(scores, among, count)
    ids = table.rows.of_all(among[best])
    return [id_ for _, id_ in sorted(zip((-scores[best]).tolist(), ids, strict=True))]
