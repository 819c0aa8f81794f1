"""Memories whose place a later one may take: told right after it, whatever else they match. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from scrubjay.retrieval.assemble import Hit

T = TypeVar("T")

BEFORE = 1e-6
"""By how much a later memory scores above the one that it stands before."""


def told_before(hits: Sequence[Hit], questioned: Mapping[str, str]) -> tuple[Hit, ...]:
    """Return hits in an order in which none that is `questioned` stands before the later one that questions it.

    The later one comes up to it: the earlier one may hold still, and is not to sink for a doubt. What moves says so in
    its parts, and its score is still their sum. A later one that is no hit cannot be told.
    """
    by_id = {hit.id: hit for hit in hits}
    found: dict[str, Hit] = {}
    for hit in hits:
        chain = [hit]  # what is to be told before this one, the last first
        while (later := by_id.get(questioned.get(chain[-1].id, ""))) is not None:
            if later.id in found or later in chain:
                break
            chain.append(later)
        for above, one in reversed(list(enumerate(chain))):
            score = hit.score + above * BEFORE
            moved = replace(one, score=score, parts={**one.parts, "questions": score - one.score}) if above else one
            found.setdefault(one.id, moved)
    return tuple(found.values())


def later_first(things: Sequence[T], questioned: Mapping[str, str], id_of: Callable[[T], str]) -> list[T]:
    """Return things in an order in which none stands before the one that questions it, which comes up to it.

    >>> later_first(["old", "other", "new"], {"old": "new"}, str)
    ['new', 'old', 'other']
    """
    by_id = {id_of(one): one for one in things}
    found: dict[str, T] = {}
    for one in by_id:
        chain = [one]
        while (later := questioned.get(chain[-1], "")) in by_id and later not in chain:
            chain.append(later)
        for each in reversed(chain):
            found.setdefault(each, by_id[each])
    return list(found.values())


def bearing(hits: Sequence[Hit], doubted: Mapping[str, str], likely: float) -> dict[str, str]:
    """Return the doubts that bear on the question: of `doubted`, where the later one is nearly as likely to answer.

    That is `likely` times as much as the earlier one. What is no hit, or was not judged, is told by its doubt. Of work
    with agents only: where people talk, who says that something changed means it.
    """
    sure = {hit.id: hit.confidence for hit in hits}
    return {
        old: new
        for old, new in doubted.items()
        if (later := sure.get(new)) is None or (earlier := sure.get(old)) is None or later >= likely * earlier
    }
