"""The orders that several phrasings of one question found become one order. Pure.

Theory of operation. Scores of different phrasings do not compare: each has words of its own. What compares is where a
hit stands, so each phrasing lends it the reciprocal of its place, and the sums make the order. A hit keeps the parts of
the phrasing that it fits best, and its score falls along the order as in any other ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scrubjay.index.documents import EVENT
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.fusion import falling
from scrubjay.retrieval.ranking import Ranking


def together(rankings: Sequence[Ranking], policy: RecallPolicy) -> Ranking:
    """Return the rankings of several phrasings, the question's own first, as one: each hit once, the best first."""
    worth: dict[str, float] = {}
    best: dict[str, Hit] = {}
    for ranking in rankings:
        for place, hit in enumerate(ranking.hits, 1):
            worth[hit.id] = worth.get(hit.id, 0.0) + 1 / (policy.phrasings + place)
            held = best.setdefault(hit.id, hit)
            if (hit.confidence or 0.0, hit.score) > (held.confidence or 0.0, held.score):
                best[hit.id] = hit
    order = _told_once(sorted(best.values(), key=lambda hit: -worth[hit.id]))  # of equals the one that was found first
    weights: dict[str, float] = {}
    for ranking in rankings:
        for token, weight in ranking.weights.items():
            weights[token] = max(weight, weights.get(token, 0.0))
    notes = dict.fromkeys(note for ranking in rankings for note in ranking.notes)
    return replace(rankings[0], hits=falling(order), weights=weights, notes=tuple(notes))


def _told_once(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits without what those above them tell: one phrasing may find a turn, another a memory read from it."""
    standing: set[str] = set()
    covered: set[str] = set()
    found: list[Hit] = []
    for hit in hits:
        told = hit.id in covered if hit.kind == EVENT.name else bool(hit.also) and standing.issuperset(hit.also)
        if not told:
            found.append(hit)
            standing.add(hit.id)
            covered.update(hit.also)
    return found
