"""The arithmetic of retrieval: recall, NDCG, their means, and how far a mean may be from what it estimates."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay_bench.figures import percentile

RECALL_AT = (1, 3, 5, 10, 20, 50)
NDCG_AT = (5, 10)
DRAWS = 2_000
SEED = 0
TAIL = 2.5  # percent cut off on either side: a 95% interval
DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One question's figures by k."""

    conversation: str
    category: str
    recall: Mapping[int, float]
    ndcg: Mapping[int, float]


def recall_at(k: int, found: Sequence[str], relevant: Collection[str]) -> float:
    """Return |first k found ∩ relevant| / |relevant|. `found` holds each thing once."""
    return sum(one in relevant for one in found[:k]) / len(relevant)


def ndcg_at(k: int, found: Sequence[str], relevant: Collection[str]) -> float:
    """Return binary NDCG: the sum of 1 / log2(rank + 1) over what is right among the first k, by the best possible."""
    gained = sum(1 / math.log2(place + 2) for place, one in enumerate(found[:k]) if one in relevant)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(k, len(relevant))))


def score(conversation: str, category: str, found: Sequence[str], relevant: Collection[str], k: int) -> Score:
    """Return one question's figures at the usual k, and at the one asked for."""
    return Score(
        conversation=conversation,
        category=category,
        recall={at: recall_at(at, found, relevant) for at in sorted({*RECALL_AT, k})},
        ndcg={at: ndcg_at(at, found, relevant) for at in sorted({*NDCG_AT, k})},
    )


def summary(scores: Sequence[Score], k: int, *, macro: bool) -> dict[str, Any]:
    """Return means, means by category, and the interval at k, as they stand in JSON (docs/retrieval-format.md).

    With `macro` a mean is the unweighted mean over the categories' means.
    """
    categories = sorted({one.category for one in scores})
    of_category = {category: [one for one in scores if one.category == category] for category in categories}
    by_category = {
        category: {"questions": len(ones)} | _means(ones, macro=False) for category, ones in of_category.items()
    }
    return {
        "questions": len(scores),
        **_means(scores, macro=macro),
        "by_category": by_category,
        "interval": {
            "recall": {str(k): interval([(one, one.recall[k]) for one in scores], macro=macro)},
            "ndcg": {str(k): interval([(one, one.ndcg[k]) for one in scores], macro=macro)},
        },
    }


def _means(scores: Sequence[Score], *, macro: bool) -> dict[str, dict[str, float]]:
    return {
        "recall": {str(k): _mean([(one, one.recall[k]) for one in scores], macro=macro) for k in scores[0].recall},
        "ndcg": {str(k): _mean([(one, one.ndcg[k]) for one in scores], macro=macro) for k in scores[0].ndcg},
    }


def _mean(values: Sequence[tuple[Score, float]], *, macro: bool) -> float:
    sums, sizes = _table(values)
    return round(float(_statistic(sums.sum(axis=0), sizes.sum(axis=0), macro=macro)), DIGITS)


def interval(values: Sequence[tuple[Score, float]], *, macro: bool) -> list[float] | None:
    """Return the 95% interval of the mean by bootstrap; None with one conversation, of which nothing can be drawn.

    Whole conversations are drawn, because the questions about one are not independent.
    """
    sums, sizes = _table(values)
    if len(sums) < 2:
        return None
    picks = np.random.default_rng(SEED).integers(0, len(sums), (DRAWS, len(sums)))
    means = _statistic(sums[picks].sum(axis=1), sizes[picks].sum(axis=1), macro=macro)
    return [round(float(np.percentile(means, at)), DIGITS) for at in (TAIL, 100 - TAIL)]


def _table(values: Sequence[tuple[Score, float]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return sums and counts, both [conversations, categories]."""
    rows = {name: at for at, name in enumerate(dict.fromkeys(one.conversation for one, _ in values))}
    columns = {name: at for at, name in enumerate(dict.fromkeys(one.category for one, _ in values))}
    sums, sizes = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for one, value in values:
        sums[rows[one.conversation], columns[one.category]] += value
        sizes[rows[one.conversation], columns[one.category]] += 1
    return sums, sizes


def _statistic(
    sums: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], *, macro: bool
) -> npt.NDArray[np.float64]:
    """Return the mean over the last axis: of all values, or (macro) of the categories that have any."""
    if not macro:
        return np.asarray(sums.sum(axis=-1) / np.maximum(sizes.sum(axis=-1), 1))
    present = sizes > 0
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=present)
    return np.asarray(means.sum(axis=-1) / np.maximum(present.sum(axis=-1), 1))


def latency(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile of some milliseconds."""
    return {f"p{at}": round(percentile(values, at), 3) for at in (50, 95)}
