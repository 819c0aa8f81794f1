"""Which events a question's words or its meaning lead to, best first: ids and scores, no texts."""

from __future__ import annotations

import numpy as np

from scrubjay.index.documents import EVENT
from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.filters import Filters, visible_events, wanted_events
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import HYBRID, KEYWORD, rank
from scrubjay_shared import scoring

Found = list[tuple[str, float]]


def by_words(index: Index, query: Query, filters: Filters, policy: RecallPolicy, *, limit: int) -> Found:
    """Return the best events by plain BM25 of the question's words."""
    hits = rank(index, query, filters, policy, limit=limit, mode=KEYWORD).hits
    return [(hit.id, hit.score) for hit in hits if hit.kind == EVENT.name]


def by_both(index: Index, query: Query, filters: Filters, policy: RecallPolicy, *, limit: int) -> Found:
    """Return the best events by words, meaning and what was said around them; by words where there is no vector."""
    hits = rank(index, query, filters, policy, limit=limit, mode=HYBRID, apart=True).hits
    return [(hit.id, hit.score) for hit in hits if hit.kind == EVENT.name]


def by_meaning(index: Index, query: Query, filters: Filters, *, limit: int) -> Found:
    """Return the events nearest to the question's vector, by cosine; none without a vector to compare."""
    if query.vector is None:
        return []
    with index.lock:
        table = index.tables[EVENT.name]
        seen, wanted = visible_events(index, filters), wanted_events(index, filters)
        mask = np.asarray(table["embedded"] & table["alive"], np.bool_)
        for more in (seen, wanted):
            if more is not None:
                mask = mask & more
        if not mask.any():
            return []
        index.check_width(len(query.vector))
        row, scale = scoring.quantise(query.vector[None, :])
        rows, cosines = table.nearest(row[0], float(scale[0]), mask, limit)
        order = np.argsort(-cosines, kind="stable")
        return [(table.ids[int(rows[at])], float(cosines[at])) for at in order]
