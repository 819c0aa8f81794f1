"""The parts of an event's score: itself, what was said around it, its session, and what kind of turn it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.candidates import CandidateSet, distinct
from scrubjay.retrieval.filters import Rows
from scrubjay.retrieval.lexical import Word
from scrubjay.retrieval.query import Floats, Query, asks_how_many, asks_when
from scrubjay.retrieval.recipe import Recipe, best_of_session
from scrubjay_shared import scoring, text
from scrubjay_shared.records import Role


def steps(candidates: CandidateSet, column: str, rows: Rows, count: int) -> Iterator[Rows]:
    """Yield the row before (or after) each row in its session, then the one before that; -1 once there is none seen."""
    links = candidates.table[column]
    for _ in range(count):
        rows = np.where(rows >= 0, links[rows], -1) if len(rows) else rows
        if candidates.seen is not None:
            rows = np.where(candidates.visible(rows), rows, -1)
        yield rows


def _window(
    candidates: CandidateSet, column: str, rows: Rows, policy: RecallPolicy
) -> Iterator[tuple[Rows, npt.NDArray[np.int64]]]:
    """Yield the rows before (or after) each row as far as a window reaches, step by step, and how long they are."""
    length = candidates.table["length"]
    room = np.full(len(rows), policy.window_tokens, np.int64)
    for step in steps(candidates, column, rows, policy.window_turns):
        taken = np.where(room > 0, step, -1)
        if not (taken >= 0).any():
            return
        tokens = np.where(taken >= 0, length[taken], 0)
        yield taken, tokens
        room -= tokens


def score_events(recipe: Recipe) -> None:
    """Give the events considered their parts, after what stands around them in their sessions was considered too."""
    query, policy, signals = recipe.query, recipe.policy, recipe.signals["event"]
    candidates, table = signals.candidates, signals.candidates.table
    reach = len(policy.beside)
    if len(candidates.rows) < candidates.count:  # what stands around a seed may be the answer to it
        following = [rows for rows, _ in _window(candidates, "next", candidates.rows, policy)]
        preceding = steps(candidates, "prev", candidates.rows, reach)
        candidates.rows = distinct(table, [candidates.rows, *preceding, *following])
    rows = candidates.rows
    before, after = (list(steps(candidates, column, rows, reach)) for column in ("prev", "next"))
    needed = distinct(table, [rows, *before, *after])
    own = np.zeros(len(table) + 1, np.float32)  # by row; the last is row -1, which is none
    cosine = signals.cosine(needed)
    dense = signals.dense(needed, cosine)
    own[needed] = signals.own(needed, dense)
    at = np.searchsorted(needed, rows)
    cosine, dense, pairs = cosine[at], dense[at], _windowed(candidates, rows, signals.words, policy) * signals.scale
    tokens = np.minimum(table["length"][rows], np.float32(policy.long_tokens))
    candidates.parts |= {
        "dense": np.float32(policy.event_dense) * dense,
        "bm25": np.float32(policy.event_bm25) * signals.lexical[rows],
        "bm25_before": np.float32(policy.event_bm25_before) * pairs,
        "before": np.float32(policy.event_before) * _mixed(own, before, policy.beside),
        "after": np.float32(policy.event_after) * _mixed(own, after, policy.beside),
        "session": np.float32(policy.event_session) * best_of_session(own[rows], table["session"][rows]),
        "length": np.float32(policy.event_length) * np.log((1 + tokens) / np.float32(1 + policy.usual_tokens)),
    }
    if policy.event_answers and before:
        asked = (before[0] >= 0) & ((table["marks"][before[0]] & text.Mark.ASKS) > 0)
        candidates.parts["answers"] = np.float32(policy.event_answers) * np.where(asked, own[before[0]], np.float32(0))
    marks = table["marks"][rows]
    for name, mark, applies, weight in (
        ("asks", text.Mark.ASKS, True, -policy.event_asks),
        ("when", text.Mark.TIMED, asks_when(query.text), policy.event_when),
        ("count", text.Mark.COUNTED, asks_how_many(query.text), policy.event_count),
    ):
        if applies:
            candidates.parts[name] = np.where(marks & mark, np.float32(weight), np.float32(0))
    speaker = _named_speaker(recipe.index, candidates, query)
    if speaker is not None:
        worth = np.float32(policy.event_speaker)
        candidates.parts["speaker"] = np.where(table["speaker"][rows] == speaker, worth, -worth)
    candidates.cosine = None if signals.vector is None else cosine
    embedded = table["embedded"][rows] if signals.vector is not None else np.zeros(len(rows), np.bool_)
    candidates.found = embedded | (signals.lexical[rows] > 0) | (pairs > 0)


def _mixed(own: Floats, steps: Sequence[Rows], weights: Sequence[float]) -> Floats:
    """Return the weighted sum of the scores of the rows at each step."""
    mixed = np.zeros(len(steps[0]) if steps else 0, np.float32)
    for rows, weight in zip(steps, weights, strict=True):
        mixed += np.float32(weight) * own[rows]
    return mixed


def _windowed(candidates: CandidateSet, rows: Rows, words: Sequence[Word], policy: RecallPolicy) -> Floats:
    """Return BM25 of events read together with what was said just before them: an answer seldom repeats the question.

    The window goes back until it holds `window_tokens`, so that it is two turns of a talk and six of a chat.
    """
    table = candidates.table
    windows, held = [rows], table["length"][rows].astype(np.float32)
    for taken, tokens in _window(candidates, "prev", rows, policy):
        windows.append(taken)
        held += tokens
    tfs = np.zeros(len(table) + 1, np.float32)
    found = np.zeros(len(rows), np.float32)
    for word in words:
        at, tf = word.held[candidates.kind]
        tfs[at] = tf
        together = tfs[windows[0]]
        for window in windows[1:]:
            together += tfs[window]
        found += scoring.bm25_part(together, held, 1.0, idf=word.idf, k1=policy.k1, b=0.0, long=policy.long_tokens)
        tfs[at] = 0
    return found


def _named_speaker(index: Index, candidates: CandidateSet, query: Query) -> int | None:
    """Return the one visible speaker whose name is in the query. Roles are not names; two named are no one's turn."""
    named = [
        number
        for number in index.names.speakers.named_by(query.tokens)
        if index.names.speakers.strings[number] not in _ROLES and _speaks(candidates, number)
    ]
    return named[0] if len(named) == 1 else None


def _speaks(candidates: CandidateSet, code: int) -> bool:
    if candidates.seen is None:
        return candidates.table.count_of("speaker", code) > 0
    return bool(((candidates.table["speaker"] == code) & candidates.seen).any())


_ROLES = frozenset(role.value for role in Role)
