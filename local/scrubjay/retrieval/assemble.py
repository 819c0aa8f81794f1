"""Candidates with their parts become one ranked list of hits: best first, what belongs together joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scrubjay.index.documents import EVENT
from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.agent_work import other_side
from scrubjay.retrieval.candidates import Candidates, CandidateSet, linked
from scrubjay.retrieval.filters import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One answer. `score` is exactly the sum of `parts`; `ts` the event's time or the memory's last change.

    `also` are the ids merged into it: of a memory, the event it was read from, or the other way about. `neighbours` are
    the ids around the event in its session, `before` those before it. `cosine` (None without vectors) and `matched`,
    the share 0 to 1 of the query's token weight found in it, are absolute: `confidence`, how sure it is that this
    answers, comes from them (`relevance`), None before it was judged. `around`, of a memory read from turns of work, is
    the cosine of the nearest turn around them. `archive` is what it was put away into. `beside`, of work with an agent,
    are the ids of the other sides of its exchanges.
    """

    id: str
    kind: str
    score: float
    parts: dict[str, float]
    ts: int
    also: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    superseded: bool = False
    cosine: float | None = None
    matched: float = 0.0
    around: float | None = None
    confidence: float | None = None
    archive: str | None = None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Scored:
    """A candidate with its score, the exact sum of `parts`, among the first."""

    score: float
    ts: int
    id: str
    candidates: CandidateSet
    at: int  # among the rows considered
    parts: dict[str, float]

    @property
    def order(self) -> tuple[float, int, str]:
        """The best first; among equals the newest, then the first id."""
        return -self.score, -self.ts, self.id


_Partners = dict[str, tuple[Rows, Rows]]
"""By kind, the links along which a document and an event become one hit: indices among the rows considered."""


def assembled(
    index: Index,
    candidates: Candidates,
    policy: RecallPolicy,
    *,
    limit: int,
    neighbours: int,
    before: int,
    apart: bool = False,
    work: bool = False,
) -> tuple[Hit, ...]:
    """Return the best `limit` hits, with so many ids to each side of them, and so many before them.

    With `apart`, the best `limit` of each kind instead, kind after kind; a memory and its event may then both be hits.
    With `work` too, an event goes along with every memory read from it, and not with the best alone.
    """
    partners = {kind: _joined(index, candidates, kind, policy) for kind in index.links}
    together = [(kind,) for kind in candidates] if apart else [tuple(candidates)]
    hits = [hit for kinds in together for hit in _best(candidates, kinds, partners, limit, shared=apart and work)]
    found = tuple(_hit(index, candidates, one, also, neighbours=neighbours, before=before) for one, also in hits)
    return tuple(replace(hit, beside=_beside(index, candidates, hit, policy)) for hit in found) if work else found


def _beside(index: Index, candidates: Candidates, hit: Hit, policy: RecallPolicy) -> tuple[str, ...]:
    """Return the ids of the other sides of the exchanges that a hit is of, each once, and none that it is itself of."""
    events = candidates[EVENT.name]
    own = ((hit.id,) if hit.kind == EVENT.name else hit.also)[: policy.merged_sources]
    rows = (other_side(index, events, events.table.rows[id_], policy.agent_work) for id_ in own)
    found = dict.fromkeys(events.table.ids[row] for row in rows if row >= 0)
    return tuple(id_ for id_ in found if id_ not in own)


def _best(
    candidates: Candidates, kinds: Sequence[str], partners: _Partners, limit: int, *, shared: bool
) -> list[tuple[_Scored, tuple[str, ...]]]:
    """Return the best `limit` of some kinds together, each with the ids merged into it."""
    shown = {kind: np.flatnonzero(candidates[kind].shown) for kind in kinds}
    totals = {kind: candidates[kind].total() for kind in kinds}
    count = limit + 16  # merging takes some away; if it takes too many, look again further down
    while True:
        scored: list[_Scored] = []
        for kind in kinds:
            each = candidates[kind]
            best = shown[kind][each.table.best(totals[kind][shown[kind]], each.rows[shown[kind]], count)]
            scored += _scored(each, best)
        scored.sort(key=lambda one: one.order)
        hits = _merged(candidates, scored, partners, limit, shared=shared)
        if len(hits) >= limit or all(count >= len(places) for places in shown.values()):
            return hits
        count *= 4


def newest(index: Index, candidates: Candidates, *, limit: int, neighbours: int) -> tuple[Hit, ...]:
    """Return the newest that are wanted."""
    found: list[tuple[int, str, CandidateSet]] = []
    for each in candidates.values():
        each.rows = each.of(each.standing(each.wanted))
        ts = each.table["ts"][each.rows]
        each.rows = each.rows[each.table.best(ts, each.rows, limit)]
        found += [(-int(each.table["ts"][row]), each.table.ids[row], each) for row in each.rows.tolist()]
    found.sort(key=lambda entry: entry[:2])
    return tuple(
        Hit(
            id=id_,
            kind=each.kind,
            score=1 / (1 + at),
            parts={"recency": 1 / (1 + at)},
            ts=-before,
            neighbours=_around(index, candidates, id_, neighbours, neighbours),
            superseded=bool(each.superseded[each.rows == each.table.rows[id_]][0]),
        )
        for at, (before, id_, each) in enumerate(found[:limit])
    )


def _joined(index: Index, candidates: Candidates, kind: str, policy: RecallPolicy) -> tuple[Rows, Rows]:
    """Return the links along which a document and its event are one: not those of a summary, or of what is outdated."""
    document, event = linked(index, candidates, kind)
    sources = np.bincount(document, minlength=len(candidates[kind].rows))
    joined = (sources[document] <= policy.merged_sources) & ~candidates[kind].superseded[document]
    return document[joined], event[joined]


def _scored(candidates: CandidateSet, best: Rows) -> list[_Scored]:
    """Return some candidates with their scores."""
    table = candidates.table
    names = list(candidates.parts)
    columns = np.array([candidates.parts[name][best] for name in names], np.float64).reshape(len(names), len(best))
    rows = candidates.rows[best]
    lists = columns.round(6).tolist()
    scored = []
    for at, row, ts, *values in zip(best.tolist(), rows.tolist(), table["ts"][rows].tolist(), *lists, strict=True):
        parts = {name: value for name, value in zip(names, values, strict=True) if value}
        # 0.0 + makes 0.0 of the -0.0 that an empty sum could be
        scored.append(_Scored(0.0 + sum(parts.values()), ts, table.ids[row], candidates, at, parts))
    return scored


def _merged(
    candidates: Candidates, scored: Sequence[_Scored], partners: _Partners, limit: int, *, shared: bool
) -> list[tuple[_Scored, tuple[str, ...]]]:
    """Join a document and the events it was read from: the better one is the hit, the other ones go along.

    They go along with one hit; `shared`, which is for documents of one kind, with each that was read from them.
    """
    shown = {kind: each.shown for kind, each in candidates.items()}
    gone: set[str] = set()
    hits: list[tuple[_Scored, tuple[str, ...]]] = []
    for one in scored:
        if len(hits) == limit:
            break
        if one.id in gone:
            continue
        beside: list[str] = []
        for kind, (document, event) in partners.items():
            if one.candidates.kind == EVENT.name:
                others, places = candidates[kind], document[event == one.at]
            elif one.candidates.kind == kind:
                others, places = candidates[EVENT.name], event[document == one.at]
            else:
                continue
            beside += [others.table.ids[others.rows[at]] for at in places.tolist() if shown[others.kind][at]]
        also = tuple(sorted(partner for partner in beside if shared or partner not in gone))
        gone.update((one.id,) if shared else (one.id, *also))
        hits.append((one, also))
    return hits


def _hit(
    index: Index, candidates: Candidates, one: _Scored, also: tuple[str, ...], *, neighbours: int, before: int
) -> Hit:
    each, row = one.candidates, one.candidates.rows[one.at]
    return Hit(
        id=one.id,
        kind=each.kind,
        score=one.score,
        parts=one.parts,
        ts=one.ts,
        also=also,
        neighbours=_around(index, candidates, one.id, neighbours, neighbours),
        before=_around(index, candidates, one.id, before, 0),
        superseded=bool(each.superseded[one.at]),
        cosine=None if each.cosine is None or not each.table["embedded"][row] else float(each.cosine[one.at]),
        matched=min(float(each.matched[one.at]), 1.0),
        around=None if each.around is None or np.isnan(each.around[one.at]) else float(each.around[one.at]),
    )


def _around(index: Index, candidates: Candidates, id_: str, before: int, after: int) -> tuple[str, ...]:
    beside = index.neighbours(id_, before=before, after=after) if before or after else ()
    events = candidates[EVENT.name]
    return tuple(other for other in beside if events.seen is None or events.seen[events.table.rows[other]])
