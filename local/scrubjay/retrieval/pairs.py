"""Pairs of hits, an earlier and a later one: what the index knows of how alike they are. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scrubjay.index.documents import EVENT, MEMORY
from scrubjay.index.index import Index
from scrubjay.policy import SucceedingPolicy
from scrubjay_shared import scoring
from scrubjay_shared.text import analyse


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two texts, of which `new` was said later, by their ids.

    `contained` is the share of the one's words that the other has too, by their weight, of the one for which it is
    greater. `nearest` is whether no text said before `new` is more like it than `old`.
    """

    old: str
    new: str
    contained: float
    nearest: bool


@dataclass(frozen=True, slots=True)
class _Said:
    id: str
    at: int
    vector: scoring.Rows
    scale: float
    words: frozenset[str]


def pairs(index: Index, texts: Mapping[str, str], policy: SucceedingPolicy) -> list[Pair]:
    """Return the pairs of some texts that are about one thing and were said at different times, by the ids of hits.

    What is not embedded, or is gone from the index by now, is in no pair.
    """
    words = {id_: frozenset(analyse(text)) for id_, text in texts.items()}
    with index.lock:
        said = _said(index, words)
        total = sum(len(table.rows) for table in index.tables.values())
        weights = {word: _weight(index, word, total) for word in frozenset[str]().union(*(one.words for one in said))}
    whole = {one.id: sum(weights[word] for word in one.words) for one in said}
    found: list[Pair] = []
    for new in said:
        earlier = [one for one in said if one.at < new.at]
        if not earlier:
            continue
        rows, scales = np.vstack([one.vector for one in earlier]), np.array([one.scale for one in earlier], np.float32)
        alike = scoring.cosines(rows, scales, new.vector, new.scale)
        nearest = int(alike.argmax())
        found += [
            Pair(old=old.id, new=new.id, contained=_contained(old, new, weights, whole), nearest=at == nearest)
            for at, old in enumerate(earlier)
            if alike[at] >= policy.cosine
        ]
    return found


def _said(index: Index, words: Mapping[str, frozenset[str]]) -> list[_Said]:
    found = []
    for kind, time in ((MEMORY.name, "created"), (EVENT.name, "ts")):
        table = index.tables[kind]
        for id_, own in words.items():
            row = table.rows.get(id_)
            if row is not None and table["embedded"][row]:
                vector = table.vectors(np.array([row], np.intp))[0].copy()
                found.append(_Said(id_, int(table[time][row]), vector, float(table["scale"][row]), own))
    return found


def _weight(index: Index, word: str, total: int) -> float:
    term = index.vocabulary.get(word)
    held = 0 if term is None else sum(table.df(term) for table in index.tables.values())
    return scoring.bm25_idf(total, held)


def _contained(one: _Said, other: _Said, weights: Mapping[str, float], whole: Mapping[str, float]) -> float:
    shorter = min(whole[one.id], whole[other.id])
    return sum(weights[word] for word in one.words & other.words) / shorter if shorter else 0.0
