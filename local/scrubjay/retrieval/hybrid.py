"""The hybrid mode: meaning and words, and what stands around an event.

Theory of operation. The filter comes first: what the caller may not see takes no part in any statistic below. A score
is a plain sum. Meaning counts in standard deviations by which a cosine exceeds that of unrelated texts, a constant of
the embedding model; words count by BM25, divided by what the rarest word could weigh in a store of this size. So a
document's score hardly depends on what else is in the store: adding an unrelated one moves the rarity of the words by
a hair and nothing more. What stands around an event adds to it: the words said just before, the turns beside it, the
best of its session. Grips carry score both ways, and a memory and the event it was read from become one hit.

Of a small store every row is scored. Of a large one the nearest rows, those with the rarest words, and those of a date
that the question names are proposed; the best of them by their own score, with their surroundings, get the whole sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay.index.documents import EVENT
from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.candidates import Candidates, distinct, marked
from scrubjay.retrieval.kinds import KINDS
from scrubjay.retrieval.lexical import Word, matched, words_of
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.recipe import Recipe
from scrubjay.retrieval.signals import Quantised, Signals, prepared
from scrubjay_shared import scoring
from scrubjay_shared.records import EventType


@dataclass(frozen=True, slots=True)
class Words:
    """What the words of a question tell, before its vector is known."""

    words: Sequence[Word]
    signals: dict[str, Signals]


def by_words(index: Index, candidates: Candidates, query: Query, policy: RecallPolicy) -> Words:
    """Return the part of the work that needs no vector."""
    words = words_of(index, candidates, query)
    # The rarest token weighs ln(1 + 2N) in a store of N documents: dividing by it keeps the balance with meaning.
    counted = sum(each.count for each in candidates.values())
    scale = np.float32(policy.lexical / math.log1p(2 * max(counted, 1)))
    chosen = max(policy.seeds, counted // policy.seeds_share)
    signals = {
        kind.name: prepared(
            candidates[kind.name], words, query, policy, weights=kind.own(policy), scale=scale, chosen=chosen
        )
        for kind in KINDS
    }
    return Words(words, signals)


def hybrid(index: Index, candidates: Candidates, words: Words, query: Query, policy: RecallPolicy) -> tuple[str, ...]:
    """Choose candidates and give them their parts. Returns notes on how."""
    vector, notes = quantised(index, candidates, query)
    for signals in words.signals.values():
        signals.look(vector, query.cosine_baseline)
    for name, each in candidates.items():
        each.rows = words.signals[name].seeds(policy)
    _link(index, candidates)
    recipe = Recipe(index=index, query=query, policy=policy, candidates=candidates, signals=words.signals)
    for kind in KINDS:
        kind.score(recipe)
    for each in candidates.values():
        each.matched = matched(each, words.words, lambda word: word.idf)
    return notes


def quantised(index: Index, candidates: Candidates, query: Query) -> tuple[Quantised | None, tuple[str, ...]]:
    """Return the query's quantised vector if anything can be compared with it, and what to say about what cannot."""
    have, seen = 0, 0
    # Tool output never gets a vector, so it is not what is missing.
    bare = index.names.types.find(EventType.TOOL_RESULT.value)
    for each in candidates.values():
        table = each.table
        if each.seen is None:
            have += table.embedded
            seen += each.count - (table.count_of("type", bare) if each.kind == EVENT.name else 0)
        else:
            have += int(np.count_nonzero(each.seen & table["embedded"]))
            seen += int(np.count_nonzero(each.seen & (table["type"] != bare)))
    if query.vector is None:  # whoever asks knows why, and says so
        return None, ()
    if not have:
        return None, ("nothing embedded yet: lexical only",)
    index.check_width(len(query.vector))
    row, scale = scoring.quantise(query.vector[None, :])
    part = f"partly embedded: {100 * have // max(seen, 1)}% of {seen} documents have a vector"
    return (row[0], float(scale[0])), () if have >= seen else (part,)


def _link(index: Index, candidates: Candidates) -> None:
    """Add the events that chosen documents were read from, and the documents read from chosen events, if seen."""
    events = candidates[EVENT.name]
    chosen = marked(events.table, events.rows)
    for kind, links in index.links.items():
        others = candidates[kind]
        document, event = links.pairs()
        if len(document):
            sources = event[marked(others.table, others.rows)[document]]
            read = document[chosen[event]]
            events.rows = distinct(events.table, [events.rows, sources[events.visible(sources)]])
            others.rows = distinct(others.table, [others.rows, read[others.visible(read)]])
