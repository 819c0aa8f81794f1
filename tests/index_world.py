"""Documents and bounds for tests of the index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scrubjay.index import ids, postings
from scrubjay.index import index as index_module
from scrubjay.index import table as tables
from scrubjay.index import vectors as vector_blocks
from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis


def event(id_: str, tokens: str = "", *, session: str = "s", order: int = 0) -> EventDoc:
    return EventDoc(
        id=id_,
        session_id=session,
        agent="a",
        ts=Millis(order),
        order=order,
        speaker="Ann",
        type="user_message",
        tokens=tokens,
    )


def memory(id_: str, tokens: str = "", *, sources: tuple[str, ...] = ()) -> MemoryDoc:
    return MemoryDoc(
        id=id_,
        scope="user",
        type="fact",
        kind="observation",
        layer="archive",
        salience=0.5,
        created_at=Millis(0),
        updated_at=Millis(0),
        tokens=tokens,
        sources=sources,
    )


def vectors(n: int, d: int = 8) -> tuple[scoring.Rows, scoring.Floats]:
    rows = np.random.default_rng(n).standard_normal((n, d)).astype(np.float32)
    return scoring.quantise(np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32))


LOW = {
    postings: {"_TAIL": 4, "_SEGMENT": 40},
    vector_blocks: {"BLOCK": 4, "SIGN_BLOCK": 8, "EXACT": 8, "RESCORED": 4, "RESCORED_SHARE": 4},
    tables: {"_COMPACT_ROWS": 3},
    ids: {"_RECENT": 8},
    index_module: {"_CHUNK": 5},
}


def lower_bounds(patch: pytest.MonkeyPatch) -> None:
    """Lower the bounds of the index so far that a few documents pass through all its parts.

    The parts are tail, segments, blocks, compaction, and choosing by signs.
    """
    for module, values in LOW.items():
        for name, value in values.items():
            patch.setattr(module, name, value)


def nearest_first(index: Index, rows: Any, cosines: Any) -> list[int]:
    """Return the places of some rows: by cosine, among equals the newest, then the first ids."""
    events = index.events
    return sorted(range(len(rows)), key=lambda at: (-cosines[at], -events["ts"][rows[at]], events.ids[rows[at]]))


def linked(index: Index) -> set[tuple[str, str]]:
    memories, events = index.links["memory"].pairs()
    return {(index.memories.ids[m], index.events.ids[e]) for m, e in zip(memories, events, strict=True)}
