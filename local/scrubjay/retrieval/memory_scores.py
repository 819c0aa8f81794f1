"""The parts of a memory's score: itself, its session, and the event that it was read from, with credit both ways."""

from __future__ import annotations

import numpy as np

from scrubjay.index.documents import FOREVER
from scrubjay.retrieval.candidates import linked
from scrubjay.retrieval.query import asks_when
from scrubjay.retrieval.recipe import Recipe, best_of_session


def score_memories(recipe: Recipe) -> None:
    """Give the memories considered their parts. The events have theirs by then, and get one more."""
    policy, signals, events = recipe.policy, recipe.signals["memory"], recipe.candidates["event"]
    candidates, table = signals.candidates, signals.candidates.table
    rows = candidates.rows
    cosine = signals.cosine(rows)
    dense, lexical = signals.dense(rows, cosine), signals.lexical[rows]
    own = np.float32(policy.memory_dense) * dense + np.float32(policy.memory_bm25) * lexical
    candidates.parts |= {
        "dense": np.float32(policy.memory_dense) * dense,
        "bm25": np.float32(policy.memory_bm25) * lexical,
        "session": np.float32(policy.memory_session) * best_of_session(own, table["session"][rows]),
    }
    candidates.cosine = None if signals.vector is None else cosine
    embedded = table["embedded"][rows] if signals.vector is not None else np.zeros(len(rows), np.bool_)
    candidates.found = embedded | (lexical > 0)
    memory, event = linked(recipe.index, recipe.candidates, candidates.kind)
    if len(memory):
        source = events.total()
        given = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(given, memory, source[event])
        has = given > -np.inf
        candidates.parts["source"] = np.where(has, np.float32(policy.memory_source) * given, np.float32(0))
        share = np.where(has, np.float32(policy.memory_sourced), np.float32(1))
        candidates.parts = {name: part * share for name, part in candidates.parts.items()}
        credit = np.full(len(events.rows), -np.inf, np.float32)
        np.maximum.at(credit, event, own[memory])
        credit[credit < 0] = 0  # a memory that has nothing to say of the query is no reason against its source
        events.parts["memory"] = np.float32(policy.event_credit) * credit
        has_source = candidates.found.copy()
        has_source[memory[events.found[event]]] = True
        events.found[event[candidates.found[memory]]] = True
        candidates.found = has_source
    if asks_when(recipe.query.text):
        dated = table["valid_from"][rows] > -FOREVER
        candidates.parts["when"] = np.where(dated, np.float32(policy.memory_when), np.float32(0))
