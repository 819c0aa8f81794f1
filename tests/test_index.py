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

from scrubjay.index import ids, postings
from scrubjay.index import index as index_module
from scrubjay.index import table as tables
from scrubjay.index import vectors as vector_blocks
from scrubjay.index.arrays import floor_of_best
from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay.index.table import Table
from scrubjay.policy import RecallPolicy
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import rank
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

WORDS = [f"w{n}" for n in range(40)]


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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so low that a few documents pass through tail, segments, blocks, compaction and choosing by signs."""
    for module, values in LOW.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


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
    for verb, number, tokens, order in steps:
        spoken_by = event(f"e{number}", " ".join(tokens), session=f"s{number % 3}", order=order)
        read = memory(f"m{number}", " ".join(tokens[:2]), sources=(f"e{number}", f"e{number + 1}"))
        if verb == "add":
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


def nearest_first(index: Index, rows: Any, cosines: Any) -> list[int]:
    """Return the places of some rows: by cosine, among equals the newest, then the first ids."""
    events = index.events
    return sorted(range(len(rows)), key=lambda at: (-cosines[at], -events["ts"][rows[at]], events.ids[rows[at]]))


def near(index: Index, query: scoring.Rows, scale: float, count: int) -> list[tuple[str, float]]:
    rows, cosines = index.events.nearest(query, scale, None, count)
    assert cosines.tolist() == index.events.cosines_of(rows, query, scale).tolist()
    order = nearest_first(index, rows, cosines)
    return [(index.events.ids[rows[at]], float(cosines[at])) for at in order]


def test_after_any_history_the_index_is_what_a_fresh_one_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, values in LOW.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    _after_any_history_the_index_is_what_a_fresh_one_would_be()


IDS = st.lists(st.text(min_size=1, max_size=30) | st.sampled_from([f"{n:026d}" for n in range(9)]), unique=True)


@settings(max_examples=60)
@given(IDS, IDS)
def _any_id_is_found_by_its_row_and_the_other_way_about(ids: list[str], others: list[str]) -> None:
    index = Index()
    index.add(event(id_, "w") for id_ in ids)
    index.remove(others[::2])
    index.add(event(id_, "w") for id_ in others[::3])
    there = (set(ids) - set(others[::2])) | set(others[::3])

    found = index.events.rows.find([*ids, *others])

    assert set(index.events.rows) == there
    for id_, row in zip([*ids, *others], found.tolist(), strict=True):
        assert (row >= 0) == (id_ in there)
        assert index.events.rows.get(id_, -1) == row
        assert row < 0 or index.events.ids[row] == id_


def test_any_id_is_found_by_its_row_and_the_other_way_about(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, values in LOW.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    _any_id_is_found_by_its_row_and_the_other_way_about()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.booleans()), max_size=60), st.integers(1, 12))
def test_the_nearest_are_those_that_comparing_all_finds(docs: list[tuple[int, int, bool]], count: int) -> None:
    index = Index()
    rows, scales = vectors(5)
    index.add(event(f"e{n:02d}", "w", order=order) for n, (_, order, _) in enumerate(docs))
    for n, (number, _, _) in enumerate(docs):
        index.set_vectors([f"e{n:02d}"], rows[number : number + 1], scales[number : number + 1])
    seen = np.zeros(len(docs), np.bool_)
    for n, (_, _, visible) in enumerate(docs):
        seen[index.events.rows[f"e{n:02d}"]] = visible

    for mask in (None, seen):
        found, cosines = index.events.nearest(rows[0], float(scales[0]), mask, count)
        order = nearest_first(index, found, cosines)

        all_of_them = scoring.cosines(rows, scales, rows[0], float(scales[0]))
        wanted = sorted(
            (-float(all_of_them[number]), -order, f"e{n:02d}")
            for n, (number, order, visible) in enumerate(docs)
            if visible or mask is None
        )[:count]
        assert [index.events.ids[row] for row in found[order].tolist()] == [id_ for _, _, id_ in wanted]
        assert cosines[order].tolist() == [-cosine for cosine, _, _ in wanted]


def test_choosing_by_signs_finds_nearly_all_of_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_blocks, "EXACT", 10_000)
    monkeypatch.setattr(vector_blocks, "RESCORED", 1_000)  # of 20,000: a share like that of a large table
    draw = np.random.default_rng(7)
    topics = draw.standard_normal((300, 384)) + draw.standard_normal(384)  # texts share a common direction
    blends = np.einsum("nb,nbd->nd", draw.dirichlet(np.ones(3), 20_000), topics[draw.integers(0, 300, (20_000, 3))])
    blends += draw.normal(0, 0.3, blends.shape)
    index = Index()
    index.load([event(f"{n:026d}", "w", order=n) for n in range(20_000)])
    index.loaded()
    unit = np.asarray(blends / np.linalg.norm(blends, axis=1, keepdims=True), np.float32)
    rows, scales = scoring.quantise(unit)
    index.set_vectors([f"{n:026d}" for n in range(20_000)], rows, scales)

    agreed = []
    for n in range(0, 20_000, 500):
        query, (scale,) = scoring.quantise(topics[n % 300][None].astype(np.float32))
        found, _ = index.events.nearest(query[0], float(scale), None, 10)
        best = np.argsort(-scoring.cosines(rows, scales, query[0], float(scale)), kind="stable")[:10]
        agreed.append(np.isin(best, found).mean())

    assert np.mean(agreed) >= 0.98


@pytest.mark.usefixtures("small")
def test_no_segment_grows_beyond_what_is_merged_in_a_moment() -> None:
    index = Index()
    for n in range(200):
        index.add([event(f"e{n}", "a b c", order=n)])

    segments = index.events.postings._segments

    assert max(map(len, segments)) <= 40
    assert len(segments) <= 2 * 600 / 40
    assert held(index.events, index.vocabulary["b"]) == {f"e{n}": 1 for n in range(200)}


@pytest.mark.usefixtures("small")
def test_vectors_stay_with_their_documents_through_growth_removal_and_compaction() -> None:
    rows, scales = vectors(60)
    index = Index()
    index.add(event(f"e{n}", "w", order=n) for n in range(60))
    index.set_vectors([f"e{n}" for n in range(60)], rows, scales)

    index.remove(f"e{n}" for n in range(0, 60, 2))

    for n in range(1, 60, 2):
        row = np.array([index.events.rows[f"e{n}"]])
        assert index.events.vectors(row).tolist() == [rows[n].tolist()]
        assert index.events["scale"][row].tolist() == [scales[n]]
    assert index.embedded == (30, 30)
    assert len(index.events) < 60


@pytest.mark.usefixtures("small")
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


@pytest.mark.parametrize(("keep", "embedded"), [(True, 1), (False, 0)])
def test_a_replaced_document_keeps_its_vector_only_on_request(keep: bool, embedded: int) -> None:  # noqa: FBT001
    rows, scales = vectors(1)
    index = Index()
    index.add([memory("m1", "dog")])
    index.set_vectors(["m1"], rows, scales)

    index.add([memory("m1", "cat")], keep_vectors=keep)

    assert index.embedded == (embedded, 1)
    assert "dog" not in index.vocabulary
    if keep:
        assert index.memories.vectors(np.array([index.memories.rows["m1"]])).tolist() == rows.tolist()


def linked(index: Index) -> set[tuple[str, str]]:
    memories, events = index.links["memory"].pairs()
    return {(index.memories.ids[m], index.events.ids[e]) for m, e in zip(memories, events, strict=True)}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", ["event", "memory"])
def test_a_memory_finds_its_source_whichever_arrives_first(first: str) -> None:
    index = Index()
    if first == "event":
        index.add([event("e1")])
    index.add([memory("m1", sources=("e1", "e2", "e1"))])
    index.add([event("e1"), event("e2", order=1)])

    assert linked(index) == {("m1", "e1"), ("m1", "e2")}

    index.add([memory("m1", sources=("e2",))])
    assert linked(index) == {("m1", "e2")}

    index.add([event("e2", order=5)])
    assert linked(index) == {("m1", "e2")}

    index.remove(["e2"])
    assert linked(index) == set()


@pytest.mark.usefixtures("small")
def test_links_survive_compaction_of_either_side() -> None:
    index = Index()
    index.add(event(f"e{n}", order=n) for n in range(40))
    index.add(memory(f"m{n}", sources=(f"e{n}", f"late{n}")) for n in range(40))

    index.remove([f"e{n}" for n in range(20)] + [f"m{n}" for n in range(10, 30)])
    index.add([event("late35", order=99), event("late15", order=99)])

    assert linked(index) == {(f"m{n}", f"e{n}") for n in range(30, 40)} | {("m35", "late35")}


def test_neighbours_stop_at_the_ends_of_the_session() -> None:
    index = Index()
    index.add([event(f"e{n}", order=n) for n in (3, 1, 0)])
    index.add([event("e2", order=2), event("other", session="t", order=2)])

    assert index.neighbours("e1", before=2, after=1) == ("e0", "e2")
    assert index.neighbours("e3", before=2, after=2) == ("e1", "e2")
    assert index.neighbours("e0", before=0, after=0) == ()
    assert index.neighbours("unknown", before=1, after=1) == ()


def test_a_vector_of_another_width_is_refused_until_all_are_cleared() -> None:
    index = Index()
    index.add([memory("m1")])
    index.set_vectors(["m1", "unknown"], *vectors(2))

    with pytest.raises(InvalidError):
        index.set_vectors(["m1"], *vectors(1, d=9))

    index.clear_vectors()
    assert index.embedded == (0, 1)
    assert index.set_vectors(["m1"], *vectors(1, d=9)) == 1


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


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_the_floor_of_the_best_is_reached_by_as_many_as_are_asked_for(kind: type) -> None:
    values = np.arange(5000, dtype=kind)

    for count in (1, 10, 4999, 5000, 6000):
        assert np.count_nonzero(values >= floor_of_best(values, count)) >= min(count, len(values))
    assert np.count_nonzero(values[:0] >= floor_of_best(values[:0], 3)) == 0
