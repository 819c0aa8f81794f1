"""The index holds what was put in, in any order of arrival, and nothing of what was taken out."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import index as module
from scrubjay.index import EventDoc, Index, MemoryDoc, Table
from scrubjay.policy import RecallPolicy
from scrubjay.recall import Filters, Query, rank
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
    rows, tfs = table.postings(term)
    living = table["alive"][rows]
    assert (np.diff(rows) > 0).all()
    return dict(zip((table.ids[row] for row in rows[living].tolist()), tfs[living].tolist(), strict=True))


def spoken(index: Index, session: str) -> list[str]:
    """The ids of a session by walking its list, checked both ways."""
    events = index.events
    rows = [row for row in events.rows.values() if events["session"][row] == index.sessions.find(session)]
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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so low that a few documents pass through tail, segments, blocks and compaction."""
    for name, value in {"_TAIL": 4, "_BLOCK": 4, "_COMPACT_ROWS": 3, "_CHUNK": 5}.items():
        monkeypatch.setattr(module, name, value)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "remove"]),
        st.integers(0, 30),
        st.lists(st.sampled_from(WORDS[:8]), max_size=5),
        st.integers(0, 5),
    ),
    max_size=60,
)


@settings(max_examples=60)
@given(STEPS)
def _after_any_history_the_index_is_what_a_fresh_one_would_be(steps: list[tuple[str, int, list[str], int]]) -> None:
    index = Index()
    model: dict[str, EventDoc] = {}
    for verb, number, tokens, order in steps:
        doc = event(f"e{number}", " ".join(tokens), session=f"s{number % 3}", order=order)
        if verb == "add":
            index.add_events([doc])
            model[doc.id] = doc
        else:
            assert index.remove([doc.id]) == int(model.pop(doc.id, None) is not None)

    assert set(index.events.rows) == set(model)
    assert set(index.vocabulary) == {token for doc in model.values() for token in doc.tokens.split()}
    for token, term in index.vocabulary.items():
        wanted = {doc.id: doc.tokens.split().count(token) for doc in model.values() if token in doc.tokens.split()}
        assert held(index.events, term) == wanted
    for session in ("s0", "s1", "s2"):
        mine = sorted((d for d in model.values() if d.session_id == session), key=lambda d: (d.order, d.id))
        assert spoken(index, session) == [doc.id for doc in mine]


def test_after_any_history_the_index_is_what_a_fresh_one_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_TAIL": 4, "_BLOCK": 4, "_COMPACT_ROWS": 3, "_CHUNK": 5}.items():
        monkeypatch.setattr(module, name, value)
    _after_any_history_the_index_is_what_a_fresh_one_would_be()


@pytest.mark.usefixtures("small")
def test_vectors_stay_with_their_documents_through_growth_removal_and_compaction() -> None:
    rows, scales = vectors(60)
    index = Index()
    index.add_events(event(f"e{n}", "w", order=n) for n in range(60))
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
    index.add_events([event("e1", "shared secret"), event("e2", "shared")])
    index.set_vectors(["e1", "e2"], *vectors(2))
    row = index.events.rows["e1"]

    gone = index.remove(["e1", "e1", "unknown"])

    assert gone == 1
    assert "e1" not in index
    assert len(index) == 1
    assert list(index.vocabulary) == ["shared"]
    assert "e1" not in index.events.ids
    assert not index.events._blocks[0][row].any()


def test_a_forgotten_token_can_come_back() -> None:
    index = Index()
    index.add_memories([memory("m1", "dog")])
    index.remove(["m1"])
    index.add_memories([memory("m2", "dog")])

    assert held(index.memories, index.vocabulary["dog"]) == {"m2": 1}


@pytest.mark.parametrize(("keep", "embedded"), [(True, 1), (False, 0)])
def test_a_replaced_document_keeps_its_vector_only_on_request(keep: bool, embedded: int) -> None:  # noqa: FBT001
    rows, scales = vectors(1)
    index = Index()
    index.add_memories([memory("m1", "dog")])
    index.set_vectors(["m1"], rows, scales)

    index.add_memories([memory("m1", "cat")], keep_vectors=keep)

    assert index.embedded == (embedded, 1)
    assert "dog" not in index.vocabulary
    if keep:
        assert index.memories.vectors(np.array([index.memories.rows["m1"]])).tolist() == rows.tolist()


def linked(index: Index) -> set[tuple[str, str]]:
    memories, events = index.links()
    return {(index.memories.ids[m], index.events.ids[e]) for m, e in zip(memories, events, strict=True)}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", ["event", "memory"])
def test_a_memory_finds_its_source_whichever_arrives_first(first: str) -> None:
    index = Index()
    if first == "event":
        index.add_events([event("e1")])
    index.add_memories([memory("m1", sources=("e1", "e2", "e1"))])
    index.add_events([event("e1"), event("e2", order=1)])

    assert linked(index) == {("m1", "e1"), ("m1", "e2")}

    index.add_memories([memory("m1", sources=("e2",))])
    assert linked(index) == {("m1", "e2")}

    index.add_events([event("e2", order=5)])
    assert linked(index) == {("m1", "e2")}

    index.remove(["e2"])
    assert linked(index) == set()


@pytest.mark.usefixtures("small")
def test_links_survive_compaction_of_either_side() -> None:
    index = Index()
    index.add_events(event(f"e{n}", order=n) for n in range(40))
    index.add_memories(memory(f"m{n}", sources=(f"e{n}", f"late{n}")) for n in range(40))

    index.remove([f"e{n}" for n in range(20)] + [f"m{n}" for n in range(10, 30)])
    index.add_events([event("late35", order=99), event("late15", order=99)])

    assert linked(index) == {(f"m{n}", f"e{n}") for n in range(30, 40)} | {("m35", "late35")}


def test_neighbours_stop_at_the_ends_of_the_session() -> None:
    index = Index()
    index.add_events([event(f"e{n}", order=n) for n in (3, 1, 0)])
    index.add_events([event("e2", order=2), event("other", session="t", order=2)])

    assert index.neighbours("e1", before=2, after=1) == ("e0", "e2")
    assert index.neighbours("e3", before=2, after=2) == ("e1", "e2")
    assert index.neighbours("e0", before=0, after=0) == ()
    assert index.neighbours("unknown", before=1, after=1) == ()


def test_a_vector_of_another_width_is_refused_until_all_are_cleared() -> None:
    index = Index()
    index.add_memories([memory("m1")])
    index.set_vectors(["m1", "unknown"], *vectors(2))

    with pytest.raises(InvalidError):
        index.set_vectors(["m1"], *vectors(1, d=9))

    index.clear_vectors()
    assert index.embedded == (0, 1)
    assert index.set_vectors(["m1"], *vectors(1, d=9)) == 1


def test_a_batch_that_repeats_an_id_keeps_the_last() -> None:
    index = Index()
    index.add_memories([memory("m1", "dog"), memory("m1", "cat")])
    index.add_events([event("e1", "bird"), event("e1", "fish", order=3)])

    assert set(index.vocabulary) == {"cat", "fish"}
    assert len(index) == 2


def test_nothing_added_is_nothing_held() -> None:
    index = Index()
    index.add_events([])
    index.add_memories([])

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
            index.add_events(docs[at : at + 50])
            index.remove(doc.id for doc in docs[at : at + 50 : 2])
        assert all(count <= 5 for count in found)

    assert len(index) == 1500
    assert search(3) == 5


def test_a_hundred_thousand_short_documents_stay_within_their_memory() -> None:
    index = Index()
    index.add_memories(memory(f"m{n}", f"w{n % 9000} w{n % 700} w{n % 50} a b c d e f g") for n in range(10_000))
    index.set_vectors([f"m{n}" for n in range(10_000)], *vectors(10_000, d=384))

    assert index.nbytes < 10_000 * 1000  # bytes: a tenth of the documents, and of 100 MB
