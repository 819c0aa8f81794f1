"""A query over the index becomes one ranked list of hits of all kinds, every score with its parts.

A score is the sum of its parts, and comparable only within one ranking. What needs no vector can be done before there
is one (`prepare`), while the question is being embedded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from scrubjay.index.documents import EVENT, MEMORY
from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval import adjustments, agent_work, plain_modes
from scrubjay.retrieval.assemble import Hit, assembled, newest
from scrubjay.retrieval.candidates import Candidates, CandidateSet
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.hybrid import Words, by_words, hybrid
from scrubjay.retrieval.kinds import KINDS
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.recency import asks_now, prefer_newer
from scrubjay_shared.errors import InvalidError

HYBRID, KEYWORD, WEIGHTED = "hybrid", "keyword", "weighted"
MODES = (HYBRID, KEYWORD, WEIGHTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The hits, best first; the mode that ranked them; and what the reader should know of how.

    `apart` says that the hits are the best of each kind, kind after kind, and not yet one order. `weights` are what the
    question's tokens weigh here, by their rarity; empty where no words took part. `work` says that the
    events are mostly an agent's and a tool's, and were weighed as such; then `near` is the mean cosine of what is
    nearest.
    """

    hits: tuple[Hit, ...]
    mode: str
    notes: tuple[str, ...] = ()
    apart: bool = False
    work: bool = False
    near: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the words of a question tell of an index of one version."""

    index: Index
    version: int
    candidates: Candidates
    words: Words


def prepare(index: Index, query: Query, filters: Filters, policy: RecallPolicy) -> Prepared:
    """Do the part of a hybrid `rank` that needs no vector. The query's vector need not be known yet."""
    with index.lock:
        candidates = _candidates(index, filters)
        return Prepared(index, index.version, candidates, by_words(index, candidates, query, policy))


def rank(
    index: Index,
    query: Query,
    filters: Filters,
    policy: RecallPolicy,
    *,
    limit: int,
    mode: str = HYBRID,
    neighbours: int = 0,
    before: int = 0,
    apart: bool = False,
    prepared: Prepared | None = None,
) -> Ranking:
    """Return the best `limit` hits for a query among what the filters let through, each with its parts.

    Modes: `hybrid`, the recipe; `keyword`, plain BM25 of the tokens; `weighted`, 0.8 cosine and 0.2 weighted token
    overlap within matching topics. An empty query gives the newest first. A query that matches nothing lexically, with
    no vectors to go by, gives no hits. `neighbours` asks for so many ids to each side of an event hit, `before` for so
    many before it; `apart` for the best `limit` of each kind, kind after kind. `prepared` is what `prepare` returned
    for the same question; it is used if nothing changed since.

    Raises InvalidError for an unknown mode, a negative limit, or a vector of another width than the index's.
    """
    if mode not in MODES:
        raise InvalidError(f"{mode!r} is not a mode of recall", hint=f"allowed: {', '.join(MODES)}")
    if limit < 0 or neighbours < 0:
        raise InvalidError(
            f"limit and neighbours must be 0 or more, got {limit} and {neighbours}", hint="ask for 1 hit or more"
        )
    with index.lock:
        if mode == HYBRID and prepared is not None and (prepared.index, prepared.version) == (index, index.version):
            candidates, words = prepared.candidates, prepared.words
        else:
            candidates, words = _candidates(index, filters), None
        asked = bool(query.tokens or query.named or query.dates or (query.vector is not None and query.text.strip()))
        if not asked:
            hits = newest(index, candidates, limit=limit, neighbours=neighbours)
            return Ranking(hits=hits, mode=mode, notes=("no words: newest first",))
        work = False
        if mode == HYBRID:
            words = words or by_words(index, candidates, query, policy)
            notes = hybrid(index, candidates, words, query, policy)
            work = agent_work.weighed(index, candidates, words.signals[EVENT.name], policy.agent_work)
        else:
            for kind, each in candidates.items():  # the plain modes count over what is asked for: no other takes part
                if kind not in filters.kinds:
                    each.exclude()
                each.pool = each.searched(each.seen)
            plain = plain_modes.keyword if mode == KEYWORD else plain_modes.weighted
            notes = plain(index, candidates, query, policy)
        if mode != KEYWORD:
            adjustments.promote(index, candidates, query, policy)
            if mode == HYBRID and asks_now(query.text):
                prefer_newer(candidates[MEMORY.name], policy)
        else:  # nothing but its tokens counts, but for what is called exactly so
            adjustments.promote_named(candidates, query, policy)
        adjustments.demote(candidates, query)
        hits = assembled(
            index, candidates, policy, limit=limit, neighbours=neighbours, before=before, apart=apart, work=work
        )
        tokens = dict.fromkeys(query.tokens)
        weights = dict.fromkeys(tokens, 1.0) if words is None else _weights(tokens, words)
        near = agent_work.nearest(candidates, policy.agent_work) if work else None
        return Ranking(hits=hits, mode=mode, notes=notes, apart=apart, work=work, near=near, weights=weights)


def _weights(tokens: Iterable[str], words: Words) -> dict[str, float]:
    return {token: word.idf for token, word in zip(tokens, words.words, strict=True)}


def _candidates(index: Index, filters: Filters) -> Candidates:
    candidates = {}
    for kind in KINDS:
        table, selection = index.tables[kind.name], kind.selection
        seen, wanted = selection.visible(index, filters), selection.wanted(index, filters)
        both = seen if wanted is None else wanted if seen is None else wanted & seen
        one = CandidateSet(
            kind=kind.name,
            table=table,
            selection=selection,
            seen=seen,
            wanted=both,
            count=len(table.rows) if seen is None else int(np.count_nonzero(seen)),
            as_of=filters.as_of,
        )
        # what is not asked for still lends its score
        one.pool = one.searched(both if kind.name in filters.kinds else seen)
        candidates[kind.name] = one
    return candidates
