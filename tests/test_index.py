"""The index holds what was put in, in any order of arrival, and nothing of what was taken out."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index_world import LOW, event, linked, memory, nearest_first, vectors
from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay.index.table import Table
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import rank
from scrubjay_shared import scoring

WORDS = [f"w{n}" for n in range(40)]


def held(table: Table, term: int) -> dict[str, int]:
    rows, tfs = table.holders(term)
    living = table["alive"][rows]
    assert (np.diff(rows) > 0).all()
    return dict(zip((table.ids[row] for row in rows[living].tolist()), tfs[living].tolist(), strict=True))


def spoken(index: Index, session: str) -> list[str]:
    """The ids of a session by walking its list, checked both ways."""
    events = index.events
    rows = [row for row in events.rows.values() if events["session"][row] == index.names.sessions.find(session)]
    firsts = [row for row in rows if events["prev"][row] < 0]
    if not rows:
        return []
    assert len(firsts) == 1
    ids = [events.ids[firsts[0]], *index.neighbours(events.ids[firsts[0]], before=0, after=len(rows))]
    assert [*index.neighbours(ids[-1], before=len(rows), after=0), ids[-1]] == ids
    return ids


def contents(index: Index) -> dict[str, Any]:
    """All that an index says, by ids and words: equal for two that hold the same, whatever their rows."""
    names = {
        "session": index.names.sessions, "project": index.names.projects, "agent": index.names.agents, "speaker": index.names.speakers,
        "type": index.names.types, "scope": index.names.scopes, "resource": index.names.resources, "kind": index.names.kinds,
        "layer": index.names.layers, "topic": index.names.topics,
    }  # fmt: skip
    said: dict[str, Any] = {"links": linked(index), "words": {}, "df": {}}
    for kind, table in (("event", index.events), ("memory", index.memories)):
        assert len(table.rows) == table["alive"].sum()
        assert table.embedded == (table["alive"] & table["embedded"]).sum()
        assert table.tokens == table["length"][table["alive"]].sum()
        said["words"][kind] = {token: held(table, term) for token, term in index.vocabulary.items()}
        said["df"][kind] = {token: table.df(term) for token, term in index.vocabulary.items()}
        assert said["df"][kind] == {token: len(rows) for token, rows in said["words"][kind].items()}
        columns = [name for name in table._columns._arrays if name not in {"alive", "prev", "next"}]
        for id_, row in table.rows.items():
            assert table.ids[row] == id_
            values = {
                name: [None, *names[name].strings][int(table[name][row]) + 1] if name in names else table[name][row]
                for name in columns
            }
            values["scale"] *= values["embedded"]
            vector = table.vectors(np.array([row]))[0].tolist() if values["embedded"] else []
            said[kind, id_] = (values, vector)
        for column in ("type", "speaker"):
            if column in columns:
                counted = Counter(table[column][table["alive"]].tolist())
                assert all(table.count_of(column, n) == counted[n] for n in range(len(names[column].strings)))
    said["sessions"] = {name: spoken(index, name) for name in index.names.sessions.strings}
    said["sessions"] = {name: ids for name, ids in said["sessions"].items() if ids}
    return said


def loaded(events: list[EventDoc], memories: list[MemoryDoc]) -> Index:
    """An index filled as when a store is opened."""
    index = Index()
    for at in range(0, len(events), 7):
        index.load(events[at : at + 7])
    for at in range(0, len(memories), 7):
        index.load(memories[at : at + 7])
    index.loaded()
    return index


def unpacked(index: Index) -> Index:
    rest, arrays = index.packed()
    return Index.unpacked(msgspec.json.decode(msgspec.json.encode(rest)), {n: a.copy() for n, a in arrays.items()})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "remove"]),
        st.integers(0, 30),
        st.lists(st.sampled_from(WORDS[:8]), max_size=5),
        st.integers(0, 5),
    ),
    max_size=60,
)


def vector_of(id_: str, seed: int = 0) -> tuple[scoring.Rows, scoring.Floats]:
    """A vector of a document: one of five, so that many are equal."""
    number = (sum(map(ord, id_)) + seed) % 5
    return vectors(5)[0][number : number + 1], vectors(5)[1][number : number + 1]


@settings(max_examples=60)
@given(STEPS)
def _after_any_history_the_index_is_what_a_fresh_one_would_be(steps: list[tuple[str, int, list[str], int]]) -> None:
    index = Index()
    events: dict[str, EventDoc] = {}
    memories: dict[str, MemoryDoc] = {}
    for action, number, tokens, order in steps:
        spoken_by = event(f"e{number}", " ".join(tokens), session=f"s{number % 3}", order=order)
        read = memory(f"m{number}", " ".join(tokens[:2]), sources=(f"e{number}", f"e{number + 1}"))
        if action == "add":
            index.add([spoken_by])
            events[spoken_by.id] = spoken_by
            index.set_vectors([spoken_by.id], *vector_of(spoken_by.id))
            if order % 2:
                index.add([read])
                index.set_vectors([read.id], *vector_of(read.id))
                memories[read.id] = read
        else:
            known = (events.pop(spoken_by.id, None) is not None) + (memories.pop(read.id, None) is not None)
            assert index.remove([spoken_by.id, read.id]) == known
        if order == 5:
            index = unpacked(index)

    fresh = loaded(list(events.values()), list(memories.values()))
    for id_ in (*events, *memories):
        fresh.set_vectors([id_], *vector_of(id_))
    assert contents(index) == contents(fresh)
    assert set(index.events.rows) == set(events)
    assert set(index.vocabulary) == {t for doc in (*events.values(), *memories.values()) for t in doc.tokens.split()}
    for session in ("s0", "s1", "s2"):
        mine = sorted((d for d in events.values() if d.session_id == session), key=lambda d: (d.order, d.id))
        assert spoken(index, session) == [doc.id for doc in mine]
    for seed in range(5):
        (query,), (scale,) = vector_of("query", seed)
        for count in (1, 3, 40):
            assert near(index, query, float(scale), count) == near(fresh, query, float(scale), count)


def near(index: Index, query: scoring.Rows, scale: float, count: int) -> list[tuple[str, float]]:
    rows, cosines = index.events.nearest(query, scale, None, count)
    assert cosines.tolist() == index.events.cosines_of(rows, query, scale).tolist()
    order = nearest_first(index, rows, cosines)
    return [(index.events.ids[rows[at]], float(cosines[at])) for at in order]


def test_a_memory_is_linked_again_to_an_event_that_comes_back() -> None:
    index = Index()
    spoken_by, read = event("e1", "heron"), memory("m1", "heron", sources=("e1",))
    index.add([spoken_by])
    index.add([read])
    index.remove(["e1"])
    assert contents(index)["links"] == set()

    index.add([spoken_by])

    assert contents(index)["links"] == {("m1", "e1")}
    index.remove(["m1", "e1"])
    index.add([spoken_by])
    assert contents(index)["links"] == set()


def test_after_any_history_the_index_is_what_a_fresh_one_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, values in LOW.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    _after_any_history_the_index_is_what_a_fresh_one_would_be()


@pytest.mark.usefixtures("low_index_bounds")
def test_no_segment_grows_beyond_what_is_merged_in_a_moment() -> None:
    index = Index()
    for n in range(200):
        index.add([event(f"e{n}", "a b c", order=n)])

    segments = index.events.postings._segments

    assert max(map(len, segments)) <= 40
    assert len(segments) <= 2 * 600 / 40
    assert held(index.events, index.vocabulary["b"]) == {f"e{n}": 1 for n in range(200)}


@pytest.mark.usefixtures("low_index_bounds")
def test_a_removed_document_leaves_no_token_and_no_vector() -> None:
    index = Index()
    index.add([event("e1", "shared secret"), event("e2", "shared")])
    index.set_vectors(["e1", "e2"], *vectors(2))
    row = index.events.rows["e1"]

    gone = index.remove(["e1", "e1", "unknown"])

    assert gone == 1
    assert "e1" not in index
    assert len(index) == 1
    assert list(index.vocabulary) == ["shared"]
    assert index.events.ids[row] == ""
    assert index.events._vectors is not None
    assert not any(block[row].any() for block in index.events._vectors._blocks[:1])
    assert not any(block[:, row].any() for block in index.events._vectors._signs[:1])


def test_a_forgotten_token_can_come_back() -> None:
    index = Index()
    index.add([memory("m1", "dog")])
    index.remove(["m1"])
    index.add([memory("m2", "dog")])

    assert held(index.memories, index.vocabulary["dog"]) == {"m2": 1}


def test_a_batch_that_repeats_an_id_keeps_the_last() -> None:
    index = Index()
    index.add([memory("m1", "dog"), memory("m1", "cat")])
    index.add([event("e1", "bird"), event("e1", "fish", order=3)])

    assert set(index.vocabulary) == {"cat", "fish"}
    assert len(index) == 2


def test_nothing_added_is_nothing_held() -> None:
    index = Index()
    index.add([])
    index.add([])

    assert len(index) == 0
    assert index.remove(["x"]) == 0
    assert index.set_vectors([], *vectors(0)) == 0


def test_searches_beside_additions_and_removals_never_fail() -> None:
    draw = random.Random(0)
    docs = [event(f"e{n}", " ".join(draw.choices(WORDS, k=6)), session=f"s{n % 7}", order=n) for n in range(3000)]
    index = Index()

    def search(n: int) -> int:
        query = Query(text="q", tokens=tuple(WORDS[n % 40 : n % 40 + 3]))
        return len(rank(index, query, Filters(), RecallPolicy(), limit=5, neighbours=1).hits)

    with ThreadPoolExecutor(3) as pool:
        found = pool.map(search, range(60))
        for at in range(0, 3000, 50):
            index.add(docs[at : at + 50])
            index.remove(doc.id for doc in docs[at : at + 50 : 2])
        assert all(count <= 5 for count in found)

    assert len(index) == 1500
    assert search(3) == 5


def test_a_hundred_thousand_short_documents_stay_within_their_memory() -> None:
    index = Index()
    index.add(memory(f"m{n}", f"w{n % 9000} w{n % 700} w{n % 50} a b c d e f g") for n in range(10_000))
    index.set_vectors([f"m{n}" for n in range(10_000)], *vectors(10_000, d=384))

    assert index.nbytes < 10_000 * 1000  # bytes: a tenth of the documents, and of 100 MB
