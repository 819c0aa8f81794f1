"""Small indexes and how tests ask them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from scrubjay.index.documents import EVENT, MEMORY, EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import HYBRID, Ranking, rank
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.text import analyse, query_tokens

POLICY = RecallPolicy()
EVENTS, MEMORIES = frozenset({EVENT.name}), frozenset({MEMORY.name})
EVERYTHING = Filters()
DIMENSIONS = 8


def event(
    id_: str, said: str = "", *, speaker: str = "user", order: int = 0, session: str = "s", **more: Any
) -> EventDoc:
    values: dict[str, Any] = {"agent": "claude", "ts": Millis(order), "type": "user_message"} | more
    tokens = " ".join(analyse(f"[{speaker}] {said}"))
    return EventDoc(id=id_, session_id=session, order=order, speaker=speaker, tokens=tokens, **values)


def memory(id_: str, content: str = "", **more: Any) -> MemoryDoc:
    values: dict[str, Any] = {
        "scope": "user",
        "type": "fact",
        "kind": "observation",
        "layer": "archive",
        "salience": 0.5,
        "created_at": Millis(0),
        "updated_at": Millis(0),
    }
    return MemoryDoc(id=id_, tokens=" ".join(analyse(content)), **(values | more))


def index_of(*docs: EventDoc | MemoryDoc, vectors: dict[str, list[float]] | None = None) -> Index:
    index = Index()
    index.add(doc for doc in docs if isinstance(doc, EventDoc))
    index.add(doc for doc in docs if isinstance(doc, MemoryDoc))
    if vectors:
        index.set_vectors(list(vectors), *scoring.quantise(np.array(list(vectors.values()), np.float32)))
    return index


def ask(
    index: Index, text: str, filters: Filters = EVERYTHING, *, limit: int = 10, mode: str = HYBRID, **more: Any
) -> Ranking:
    neighbours, apart = more.pop("neighbours", 0), more.pop("apart", False)
    query = Query(text=text, tokens=tuple(query_tokens(text)), **more)
    return rank(index, query, filters, POLICY, limit=limit, mode=mode, neighbours=neighbours, apart=apart)


def ids(ranking: Ranking) -> list[str]:
    return [hit.id for hit in ranking.hits]


def unit(*numbers: float) -> list[float]:
    row = np.array(numbers, np.float32)
    return [float(x) for x in row / np.linalg.norm(row)]


def crowd(count: int, seed: int = 1) -> tuple[list[EventDoc | MemoryDoc], dict[str, list[float]]]:
    """A store of talk over few words, in sessions of ten, every fourth turn with a memory read from it."""
    draw = random.Random(seed)
    words = [f"word{n}" for n in range(60)]
    docs: list[EventDoc | MemoryDoc] = []
    for n in range(count):
        said = " ".join(draw.choices(words, k=draw.randint(1, 9))) + draw.choice(["", "", " yesterday", " 3 times"])
        at = f"s{n // 10}"
        docs.append(event(f"e{n:05}", said, speaker=draw.choice(["Ann", "Bob"]), order=n, session=at, ts=Millis(n)))
        if n % 4 == 0:
            docs.append(memory(f"m{n:05}", said, session_id=at, sources=(f"e{n:05}",), updated_at=Millis(n)))
    rows = np.random.default_rng(seed).standard_normal((len(docs), DIMENSIONS))
    return docs, {doc.id: unit(*row) for doc, row in zip(docs, rows, strict=True)}
