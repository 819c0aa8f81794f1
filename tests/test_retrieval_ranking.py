"""Recall ranks what the caller may see, explains every score, and behaves at every edge."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranking_world import DIMENSIONS, EVERYTHING, POLICY, ask, crowd, event, ids, index_of, memory, unit
from scrubjay.index.documents import MEMORY, EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay.policy import weighted
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import MODES, rank
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.text import query_tokens

PROJECTS = {"s1": None, "s2": "proj_a", "s3": "proj_b"}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[EventDoc | MemoryDoc], dict[str, list[float]], Query]:
    """Some events and memories over few words, some with vectors, some linked, and a question about them."""
    words = st.lists(st.sampled_from(["dog", "cat", "Ann", "Bob", "paint", "the", "東京"]), max_size=4).map(" ".join)
    docs: list[EventDoc | MemoryDoc] = []
    docs += [
        event(
            f"e{n}",
            draw(words),
            speaker=draw(st.sampled_from(["Ann", "Bob", "user"])),
            order=draw(st.integers(0, 3)),
            session=(session := draw(st.sampled_from(list(PROJECTS)))),
            project=PROJECTS[session],
        )
        for n in range(draw(st.integers(0, 8)))
    ]
    docs += [
        memory(
            f"m{n}",
            draw(words),
            scope=draw(st.sampled_from(["user", "project", "session"])),
            resource_id=draw(st.sampled_from(["proj_a", "proj_b", "s1"])),
            session_id=draw(st.sampled_from([None, "s1", "s2"])),
            superseded=draw(st.booleans()),
            updated_at=Millis(draw(st.integers(0, 3))),
            sources=tuple(draw(st.lists(st.sampled_from(["e0", "e1", "e2"]), max_size=2, unique=True))),
        )
        for n in range(draw(st.integers(0, 8)))
    ]
    rows = np.random.default_rng(draw(st.integers(0, 3))).standard_normal((len(docs) + 1, DIMENSIONS))
    vectors = {doc.id: unit(*row) for doc, row in zip(docs, rows, strict=False) if draw(st.booleans())}
    text = draw(words)
    query = Query(
        text=text,
        tokens=tuple(query_tokens(text)),
        vector=np.array(unit(*rows[-1]), np.float32) if draw(st.booleans()) else None,
        named=tuple(draw(st.lists(st.sampled_from(["m0", "m1", "nobody"]), max_size=1))),
        dates=tuple(draw(st.lists(st.just((1, 3)), max_size=1))),
    )
    return docs, vectors, query


@given(worlds(), st.sampled_from(MODES), st.integers(0, 6))
def test_every_score_is_exactly_the_sum_of_its_parts_and_the_best_come_first(
    world: tuple[list[EventDoc | MemoryDoc], dict[str, list[float]], Query], mode: str, limit: int
) -> None:
    docs, vectors, query = world

    hits = rank(index_of(*docs, vectors=vectors), query, EVERYTHING, POLICY, limit=limit, mode=mode).hits

    assert len(hits) <= limit
    assert all(hit.score == sum(hit.parts.values()) for hit in hits)
    assert [(-hit.score, -hit.ts, hit.id) for hit in hits] == sorted((-hit.score, -hit.ts, hit.id) for hit in hits)
    shown = [id_ for hit in hits for id_ in (hit.id, *hit.also)]
    assert len(shown) == len(set(shown))


@pytest.mark.slow
@given(worlds(), st.sampled_from(MODES), st.randoms(use_true_random=False))
def test_the_order_of_arrival_makes_no_difference(
    world: tuple[list[EventDoc | MemoryDoc], dict[str, list[float]], Query], mode: str, shuffle: random.Random
) -> None:
    docs, vectors, query = world
    mixed = shuffle.sample(docs, len(docs))
    grown = Index()
    for doc in mixed:
        if isinstance(doc, EventDoc):
            grown.add([doc])
        else:
            grown.add([doc])
    grown.add([memory("gone", "dog dog")])
    grown.remove(["gone"])
    for id_ in shuffle.sample(sorted(vectors), len(vectors)):
        grown.set_vectors([id_], *scoring.quantise(np.array([vectors[id_]], np.float32)))

    whole = rank(index_of(*docs, vectors=vectors), query, EVERYTHING, POLICY, limit=20, mode=mode)

    assert ids(rank(grown, query, EVERYTHING, POLICY, limit=20, mode=mode)) == ids(whole)


@given(worlds(), st.sampled_from(MODES))
def test_what_the_caller_may_not_see_changes_nothing(
    world: tuple[list[EventDoc | MemoryDoc], dict[str, list[float]], Query], mode: str
) -> None:
    docs, vectors, query = world
    caller = Filters(caller_project="proj_a")
    visible = [
        doc
        for doc in docs
        if (isinstance(doc, EventDoc) and doc.project in {None, "proj_a"})
        or (
            isinstance(doc, MemoryDoc)
            and (doc.scope == "user" or (doc.scope == "project" and doc.resource_id == "proj_a"))
        )
    ]
    kept = {doc.id for doc in visible}

    among_all = rank(index_of(*docs, vectors=vectors), query, caller, POLICY, limit=20, mode=mode, neighbours=1)
    alone = rank(
        index_of(*visible, vectors={id_: row for id_, row in vectors.items() if id_ in kept}),
        query,
        caller,
        POLICY,
        limit=20,
        mode=mode,
    )

    assert ids(among_all) == ids(alone)
    assert {id_ for hit in among_all.hits for id_ in (hit.id, *hit.also, *hit.neighbours)} <= kept


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", ["", "  ", "what is it?", "?!"])
def test_a_query_without_words_gives_the_newest_first(text: str, mode: str) -> None:
    index = index_of(
        event("e1", "dog", order=1), event("e3", "cat", order=3), memory("m2", "bird", updated_at=Millis(2))
    )

    ranking = ask(index, text, mode=mode, limit=2)

    assert ids(ranking) == ["e3", "m2"]
    assert "newest" in ranking.notes[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_query_that_matches_nothing_has_no_hits(mode: str) -> None:
    index = index_of(event("e1", "dog"), memory("m1", "cat"))

    assert ids(ask(index, "zebra", mode=mode)) == []
    assert ids(ask(Index(), "zebra", mode=mode)) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 10])
def test_equal_documents_tie_by_newness_and_then_by_id(count: int, mode: str) -> None:
    index = index_of(*(memory(f"m{n}", "a dog", updated_at=Millis(n // 2)) for n in range(count)))

    ranking = ask(index, "dog", mode=mode, limit=20)

    assert ids(ranking) == sorted((f"m{n}" for n in range(count)), key=lambda id_: (-(int(id_[1:]) // 2), id_))
    assert len({hit.score for hit in ranking.hits}) == 1


def test_a_tie_at_the_limit_is_cut_by_newness_too() -> None:
    index = index_of(*(memory(f"m{n:03}", "a dog", updated_at=Millis(n % 100)) for n in range(300)))

    assert ids(ask(index, "dog", limit=4)) == ["m099", "m199", "m299", "m098"]


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"mode": "magic"}, "not a mode of recall"),
        ({"limit": -1}, "must be 0 or more"),
        ({"neighbours": -1}, "must be 0 or more"),
    ],
)
def test_nonsense_is_refused(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidError, match=match):
        ask(Index(), "dog", **changed)


def test_a_query_vector_of_another_width_is_refused() -> None:
    index = index_of(memory("m1", "dog"), vectors={"m1": unit(1, 0)})

    with pytest.raises(InvalidError, match="must have 2 numbers"):
        ask(index, "dog", vector=np.array(unit(1, 0, 0), np.float32))


@pytest.mark.parametrize("text", ['"', "dog NEAR cat", "dog*", "-dog", "x:dog", "\x00dog\ud800", "dog " * 5000])
def test_hostile_text_is_only_text(text: str) -> None:
    index = index_of(event("e1", "my dog"))

    assert ids(ask(index, text)) == ["e1"]


def test_weights_come_from_the_policy() -> None:
    index = index_of(memory("m1", "dog"), memory("m2", "cat"))
    query = Query(text="dog", tokens=("dog",))

    hits = rank(index, query, EVERYTHING, replace(POLICY, memory_bm25=0.0, memory_session=0.0), limit=5).hits

    assert hits == (Hit(id="m1", kind=MEMORY.name, score=0.0, parts={}, ts=0, matched=1.0),)


def crowd_questions(count: int) -> list[dict[str, Any]]:
    draw = random.Random(5)
    rows = np.random.default_rng(6).standard_normal((count, DIMENSIONS))
    return [
        {
            "text": f"When did Ann say word{draw.randrange(60)} and word{draw.randrange(60)}?",
            "vector": np.array(unit(*row), np.float32),
            "cosine_baseline": (0.0, 0.35),
        }
        for row in rows
    ]


def test_an_unrelated_memory_reorders_nothing_but_ties() -> None:
    docs, vectors = crowd(800)
    stranger = memory("zz", "quarterly invoices in the blue cabinet")
    before, after = index_of(*docs, vectors=vectors), index_of(*docs, stranger, vectors=vectors)

    for asked in crowd_questions(20):
        text = asked.pop("text")
        was = ask(before, text, limit=50, **asked).hits
        places = {hit.id: place for place, hit in enumerate(ask(after, text, limit=51, **asked).hits)}

        clear = [(a.id, b.id) for a in was for b in was if a.score - b.score > 0.001 * abs(a.score)]
        assert all(places[a] < places[b] for a, b in clear if a in places and b in places)


def test_the_same_question_gives_the_same_answer_bit_for_bit_whatever_the_order_of_arrival() -> None:
    docs, vectors = crowd(600)
    shuffled = docs.copy()
    random.Random(3).shuffle(shuffled)
    one, other = index_of(*docs, vectors=vectors), index_of(*shuffled, vectors=vectors)

    for asked in crowd_questions(10):
        text = asked.pop("text")
        assert ask(one, text, **asked) == ask(one, text, **asked) == ask(other, text, **asked)


def test_looking_at_some_of_a_store_finds_nearly_what_looking_at_all_of_it_finds() -> None:
    docs, vectors = crowd(3_000)
    index = index_of(*docs, vectors=vectors)
    few = replace(POLICY, exhaustive=0, candidates=200, seeds=100)
    shared = 0

    for asked in crowd_questions(20):
        query = Query(tokens=tuple(query_tokens(asked["text"])), **asked)
        whole, fast = (rank(index, query, EVERYTHING, policy, limit=10).hits for policy in (POLICY, few))
        shared += len({hit.id for hit in whole} & {hit.id for hit in fast})

    assert len(index) > POLICY.candidates
    assert shared >= 0.95 * 10 * 20


def test_a_narrow_filter_finds_its_few_rows_in_a_large_store() -> None:
    docs, vectors = crowd(500)
    rare = event("rare", "word1 alone", agent="other", session="elsewhere")
    index = index_of(*docs, rare, vectors=vectors)
    few = replace(POLICY, exhaustive=0, candidates=5, seeds=5)

    query = Query(text="word59", tokens=("word59",), vector=np.array(unit(*[1.0] * DIMENSIONS), np.float32))
    alone = Query(text="word1", tokens=("word1",))

    assert not rank(index, query, Filters(agent="nobody"), few, limit=10).hits
    assert ids(rank(index, alone, Filters(agent="other"), few, limit=10)) == ["rare"]


def test_fitted_weights_take_the_place_of_the_default_ones() -> None:
    assert weighted(POLICY, {"event_dense": 2.5}) == replace(POLICY, event_dense=2.5)


@pytest.mark.parametrize("weights", [{"nonsense": 1.0}, {"rerank_hits": 3.0}, {"event_dense": float("nan")}])
def test_what_is_no_weight_is_refused(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidError, match=r"is not the name of a weight of recall|must be a finite number"):
        weighted(POLICY, weights)


def test_a_question_about_now_prefers_the_newer_of_two_that_say_the_same_and_another_does_not() -> None:
    docs = [
        memory("old", "The header is navy blue blue", created_at=Millis(1), updated_at=Millis(1)),
        memory("new", "The header is sky blue", created_at=Millis(2), updated_at=Millis(2)),
        memory("other", "The footer is blue", created_at=Millis(3), updated_at=Millis(3)),
    ]
    near, apart = unit(1, 0.1), unit(0, 1)
    vectors = {"old": near, "new": unit(1, 0.15), "other": apart}
    index = index_of(*docs, vectors=vectors)
    vector = np.array(near, np.float32)

    def first(text: str) -> str:
        return ask(index, text, vector=vector).hits[0].id

    assert first("which blue is the header?") == "old"
    assert first("which blue is the header now?") == "new"
    hits = {hit.id: hit.parts for hit in ask(index, "which blue is the header now?", vector=vector).hits}
    assert hits["old"]["outdated"] < 0
    assert "outdated" not in hits["new"]
    assert "outdated" not in hits["other"]
