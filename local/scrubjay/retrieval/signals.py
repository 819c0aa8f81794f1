"""What the hybrid mode knows of one kind's candidates: words of every row, and how near any row is by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from scrubjay.index.arrays import Mask, floor_of_best
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.candidates import CandidateSet, distinct
from scrubjay.retrieval.filters import Rows
from scrubjay.retrieval.lexical import Word, bm25
from scrubjay.retrieval.query import Floats, Query
from scrubjay_shared import scoring

_LEAST = np.finfo(np.float32).smallest_subnormal  # above 0: a row that holds none of the words is not proposed

Quantised = tuple[scoring.Rows, float]


@dataclass(slots=True)
class Signals:
    """The signals of one kind. `proposed` are the rows with the best words, in each pool of `pools`.

    A pool is a mask over the table, None for every living row, and how many of it are proposed: all that may be, then
    those of each date that the question names. `dated` is what is of each date, which earns `policy.date`.
    """

    candidates: CandidateSet
    words: Sequence[Word]
    lexical: Floats  # [n + 1]
    scale: np.float32  # on BM25
    weights: tuple[float, float]  # of meaning and words in a document's own score
    chosen: int  # rows that get the whole sum
    pools: list[tuple[Mask | None, int]]
    dated: list[Mask]
    proposed: list[Rows]
    vector: Quantised | None = None
    baseline: tuple[float, float] = (0.0, 1.0)
    _cosines: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    _compared: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))

    def look(self, vector: Quantised | None, baseline: tuple[float, float]) -> None:
        """Compare with this vector from now on; `baseline` is the cosine of unrelated texts."""
        self.vector, self.baseline = vector, baseline
        if vector is not None:
            self._cosines = np.zeros(len(self.candidates.table), np.float32)
            self._compared = np.zeros(len(self.candidates.table), np.bool_)

    def cosine(self, rows: Rows) -> Floats:
        """Return the cosine of rows, 0 where there is none. A row is compared once."""
        if self.vector is None:
            return np.zeros(len(rows), np.float32)
        fresh = rows[~self._compared[rows]]
        self._learn(fresh, self.candidates.table.cosines_of(fresh, *self.vector))
        return self._cosines[rows]

    def _learn(self, rows: Rows, cosines: Floats) -> None:
        self._cosines[rows] = cosines
        self._compared[rows] = True

    def dense(self, rows: Rows, cosine: Floats) -> Floats:
        """Return the cosine in standard deviations of unrelated texts; 0, as an unrelated text has, for none."""
        if self.vector is None:
            return cosine
        mean, deviation = self.baseline
        embedded = self.candidates.table["embedded"][rows]
        return np.where(embedded, (cosine - np.float32(mean)) * np.float32(1 / deviation), np.float32(0))

    def own(self, rows: Rows, dense: Floats) -> Floats:
        """Return what documents are worth by themselves."""
        meaning, words = self.weights
        return np.float32(meaning) * dense + np.float32(words) * self.lexical[rows]

    def seeds(self, policy: RecallPolicy) -> Rows:
        """Return the rows worth looking at: all of a small pool, of a large one each signal's best by their own score.

        Two documents that score alike are told apart by time and id, so it does not matter in which order they came.
        """
        candidates, table = self.candidates, self.candidates.table
        if not self.pools:
            return candidates.of(candidates.pool)
        found = list(self.proposed)
        if self.vector is not None:
            for mask, count in self.pools:
                near, cosines = table.near(*self.vector, mask)
                self._learn(near, cosines)
                found.append(near[table.best(cosines, near, count)])
        rows = distinct(table, found)
        own = self.own(rows, self.dense(rows, self.cosine(rows)))
        for mask in self.dated:
            own += np.where(mask[rows], np.float32(policy.date), np.float32(0))
        return np.sort(rows[table.best(own, rows, self.chosen)])


def prepared(
    candidates: CandidateSet,
    words: Sequence[Word],
    query: Query,
    policy: RecallPolicy,
    *,
    weights: tuple[float, float],
    scale: np.float32,
    chosen: int,
) -> Signals:
    """Return what words alone can tell; `Signals.look` adds the meaning."""
    lexical = bm25(candidates, words, k1=policy.k1, b=0.0, mean=1.0, long=policy.long_tokens)
    lexical *= scale
    pool, pools, dated = candidates.pool, [], []
    if (candidates.count if pool is None else int(np.count_nonzero(pool))) > policy.exhaustive:
        dated = [candidates.within(None, start, end) for start, end in query.dates]
        pools = [(pool, policy.candidates)]
        pools += [(mask if pool is None else mask & pool, policy.seeds) for mask in dated]
    return Signals(
        candidates=candidates,
        words=words,
        lexical=lexical,
        scale=scale,
        weights=weights,
        chosen=chosen,
        pools=pools,
        dated=dated,
        proposed=_best_by_words(candidates, lexical, pools),
    )


def _best_by_words(candidates: CandidateSet, lexical: Floats, pools: Sequence[tuple[Mask | None, int]]) -> list[Rows]:
    """Return, for each pool, so many of its rows with the best words."""
    found = []
    for mask, count in pools:
        scores = lexical[:-1] if mask is None else np.where(mask, lexical[:-1], np.float32(0))
        rows = np.flatnonzero(scores >= max(floor_of_best(scores, count), _LEAST))
        found.append(rows[candidates.table.best(scores[rows], rows, count)])
    return found
