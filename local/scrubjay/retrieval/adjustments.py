"""What does not come from likeness: dates that the question speaks of, names, and what was superseded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scrubjay.index.documents import MEMORY
from scrubjay.index.index import Index
from scrubjay.policy import TYPE_SALIENCE, RecallPolicy
from scrubjay.retrieval.candidates import Candidates, CandidateSet
from scrubjay.retrieval.filters import Rows
from scrubjay.retrieval.query import Query
from scrubjay_shared.text import analyse


def promote(index: Index, candidates: Candidates, query: Query, policy: RecallPolicy) -> None:
    """Add the parts that do not come from likeness: dates, names and topics that the query speaks of."""
    if query.dates:
        for each in candidates.values():
            dated = np.zeros(len(each.rows), np.bool_)
            for start, end in query.dates:
                dated |= each.within(each.rows, start, end)
            each.parts["date"] = np.where(dated, np.float32(policy.date), np.float32(0))
            each.found |= dated
    memories = candidates[MEMORY.name]
    _mention(memories, query, policy)
    _of_topic(index, memories, query, policy)
    _favour(index, memories, policy)
    promote_named(candidates, query, policy)


def promote_named(candidates: Candidates, query: Query, policy: RecallPolicy) -> None:
    """Put the memories that the query is the name or an alias of above all others."""
    memories = candidates[MEMORY.name]
    named = _named_rows(memories, query.named)
    if len(named):
        memories.consider(named)
        places = np.searchsorted(memories.rows, named)
        memories.found[places] = True
        totals = [each.total()[each.shown] for each in candidates.values()]
        top = max((float(total.max()) for total in totals if len(total)), default=0.0)
        gap = top - float(memories.total()[places].min())
        memories.parts["name"] = np.zeros(len(memories.rows), np.float32)
        memories.parts["name"][places] = gap + policy.named


def _mention(memories: CandidateSet, query: Query, policy: RecallPolicy) -> None:
    rows = _named_rows(memories, query.mentioned)
    if len(rows):
        memories.consider(rows)
        places = np.searchsorted(memories.rows, rows)
        memories.found[places] = True
        memories.parts["mentioned"] = np.zeros(len(memories.rows), np.float32)
        memories.parts["mentioned"][places] = policy.mentioned


def _of_topic(index: Index, memories: CandidateSet, query: Query, policy: RecallPolicy) -> None:
    """Favour the memories of a topic all of whose words are in the query."""
    asked = frozenset(query.tokens)
    topics = [
        number
        for number, label in enumerate(index.names.topics.strings)
        if (tokens := frozenset(analyse(label))) and tokens <= asked
    ]
    if topics:
        of_topic = np.isin(memories.table["topic"][memories.rows], topics)
        memories.parts["topic"] = np.where(of_topic, np.float32(policy.topic), np.float32(0))


def _favour(index: Index, memories: CandidateSet, policy: RecallPolicy) -> None:
    """Favour a little what helped, and what somebody weighs more than others of its type; the other way about too."""
    usual = np.array([_USUAL.get(name, np.nan) for name in index.names.types.strings] or [np.nan], np.float32)
    rows = memories.rows
    apart = memories.table["salience"][rows] - usual[memories.table["type"][rows]]
    beyond = np.sign(apart) * np.clip(np.abs(apart) - np.float32(policy.salience_spread), 0, policy.salience_band)
    share = np.nan_to_num(beyond / np.float32(policy.salience_band)).astype(np.float32)
    if share.any():
        memories.parts["salience"] = np.float32(policy.salience) * share


_USUAL = {kind.value: salience for kind, salience in TYPE_SALIENCE.items()}


def _named_rows(memories: CandidateSet, ids: Sequence[str]) -> Rows:
    rows = [memories.table.rows.get(id_) for id_ in ids]
    wanted = memories.wanted
    return np.array(sorted(row for row in rows if row is not None and (wanted is None or wanted[row])), np.intp)


def demote(candidates: Candidates, query: Query) -> None:
    """Put superseded documents after every current one of their kind, but for those asked for by name; order stays."""
    for each in candidates.values():
        shown = each.shown
        old = shown & each.superseded
        current = shown & ~old
        old &= ~np.isin(each.rows, _named_rows(each, query.named))
        if old.any() and current.any():
            total = each.total()
            gap = float(total[old].max() - total[current].min())
            each.parts["superseded"] = np.where(old, np.float32(-max(gap, 0.0) - 1), np.float32(0))
