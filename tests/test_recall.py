"""Recall ranks what the caller may see, explains every score, and behaves at every edge."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.index import table as tables
from scrubjay.index import vectors as vector_blocks
from scrubjay.index.documents import EVENT, MEMORY, EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay.index.table import Table
from scrubjay.policy import RecallPolicy, weighted
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.packing import CUT, pack
from scrubjay.retrieval.query import Query
from scrubjay.retrieval.ranking import HYBRID, KEYWORD, MODES, WEIGHTED, Ranking, rank
from scrubjay.retrieval.reranking import passage, reranked
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.text import ASKS, analyse, asks, estimate_tokens, query_tokens

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
    neighbours = more.pop("neighbours", 0)
    query = Query(text=text, tokens=tuple(query_tokens(text)), **more)
    return rank(index, query, filters, POLICY, limit=limit, mode=mode, neighbours=neighbours)


def ids(ranking: Ranking) -> list[str]:
    return [hit.id for hit in ranking.hits]


def unit(*numbers: float) -> list[float]:
    row = np.array(numbers, np.float32)
    return [float(x) for x in row / np.linalg.norm(row)]


# --- laws -------------------------------------------------------------------------------------------------------------


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


@settings(max_examples=30)
@given(st.lists(st.text(max_size=80), max_size=6), st.integers(0, 60))
def test_a_pack_never_exceeds_its_budget_and_keeps_the_order(texts: list[str], budget: int) -> None:
    packed = pack(texts, max_tokens=budget)

    assert estimate_tokens("\n".join(packed.texts)) == packed.tokens <= budget
    assert len(packed.texts) + packed.left_out == len(texts)
    whole = packed.texts[:-1] if packed.truncated else packed.texts
    assert list(whole) == texts[: len(whole)]
    if packed.truncated:
        assert packed.texts[-1].endswith(CUT)
        assert texts[len(whole)].startswith(packed.texts[-1].removesuffix(CUT))


# --- edges ------------------------------------------------------------------------------------------------------------


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


# --- hybrid -----------------------------------------------------------------------------------------------------------


def test_meaning_finds_what_words_do_not() -> None:
    index = index_of(
        memory("puppy", "a young hound"),
        memory("tax", "the tax return"),
        vectors={"puppy": unit(1, 0.1), "tax": unit(0, 1)},
    )

    ranking = ask(index, "dog", vector=np.array(unit(1, 0), np.float32))

    assert ids(ranking) == ["puppy", "tax"]
    assert ranking.notes == ()
    assert ranking.hits[0].cosine == pytest.approx(0.995, abs=0.01)
    assert ranking.hits[0].matched == 0.0


@pytest.mark.parametrize(
    ("vectors", "asked", "notes"),
    [
        ({}, True, ("nothing embedded yet: lexical only",)),
        ({"m1": unit(1, 0)}, False, ()),  # why there is no vector, the service says
        ({"m1": unit(1, 0)}, True, ("partly embedded: 50% of 2 documents have a vector",)),
    ],
)
def test_missing_vectors_are_said_and_recall_works(
    vectors: dict[str, list[float]],
    asked: bool,  # noqa: FBT001
    notes: tuple[str, ...],
) -> None:
    index = index_of(memory("m1", "cat"), memory("m2", "dog"), vectors=vectors)
    vector = np.array(unit(0, 1), np.float32) if asked else None

    ranking = ask(index, "dog", vector=vector)

    assert ids(ranking)[0] == "m2"
    assert ranking.notes == notes


def test_a_row_without_a_vector_is_neutral_and_not_the_worst() -> None:
    docs = [memory(id_, "dog") for id_ in ("near", "far", "bare")]
    index = index_of(*docs, vectors={"near": unit(1, 0), "far": unit(0, 1)})

    assert ids(ask(index, "dog", vector=np.array(unit(1, 0), np.float32))) == ["near", "bare", "far"]


def test_one_lexical_match_among_thousands_does_not_silence_meaning() -> None:
    docs = [memory(f"m{n}", "filler") for n in range(3000)]
    rows = np.random.default_rng(0).standard_normal((3000, 64))
    vectors = {doc.id: unit(*row) for doc, row in zip(docs, rows, strict=True)}
    index = index_of(*docs, memory("match", "xylophone"), vectors=vectors | {"match": unit(*-rows[7])})

    query = np.array(unit(*rows[7]), np.float32)
    hits = ask(
        index, "xylophone", vector=query, cosine_baseline=(0.0, 0.125)
    ).hits  # random rows deviate by 1 / sqrt(64)

    assert hits[0].id == "m7"
    assert "match" in index


def test_an_answer_is_found_through_the_question_before_it() -> None:
    index = index_of(
        event("q", "Where did you paint the sunrise?", speaker="Ann", order=1),
        event("a", "At the lake.", speaker="Bob", order=2),
        event("z", "At the office.", speaker="Bob", order=9),
        event("x", "unrelated", speaker="Ann", order=20, session="t"),
    )

    hits = ask(index, "painting sunrise").hits

    assert [hit.id for hit in hits][:2] == ["q", "a"]
    assert hits[1].parts["before"] > 0
    assert hits[1].parts["bm25_before"] > 0


def test_the_one_speaker_named_is_preferred() -> None:
    docs = [
        event(f"{who}{n}", "I went hiking", speaker=who, order=n, session=who) for n, who in enumerate(("Ann", "Bob"))
    ]
    index = index_of(*docs)

    one = {hit.id: hit.parts.get("speaker") for hit in ask(index, "When did Bob hike?").hits}
    both = [hit.parts.get("speaker") for hit in ask(index, "Did Ann and Bob hike?").hits]

    assert one == {"Bob1": POLICY.event_speaker, "Ann0": -POLICY.event_speaker}
    assert both == [None, None]


def test_a_role_is_not_a_speaker_name() -> None:
    index = index_of(event("u", "the user table", speaker="user"), event("a", "the user table", speaker="assistant"))

    assert all("speaker" not in hit.parts for hit in ask(index, "user table").hits)


def test_a_memory_and_its_source_are_one_hit() -> None:
    index = index_of(
        event("e1", "I bought a red bicycle", order=1),
        event("e2", "Nice weather", order=2),
        memory("m1", "The user owns a red bicycle", sources=("e1",)),
    )

    ranking = ask(index, "bicycle")

    assert (ranking.hits[0].id, ranking.hits[0].also) == ("m1", ("e1",))
    assert "e1" not in ids(ranking)
    assert ranking.hits[0].parts["source"] > 0


def test_a_memory_lends_its_words_to_its_source() -> None:
    index = index_of(
        event("e1", "Yes, last year, in Paris.", order=1, session="a"),
        event("e2", "Yes, last week, in Rome.", order=1, session="b"),
        memory("m1", "Bicycle bought in Paris", sources=("e1",)),
    )

    ranking = ask(index, "bicycle", Filters(kinds=EVENTS))

    assert ids(ranking) == ["e1"]
    assert ranking.hits[0].parts["memory"] > 0
    assert ranking.hits[0].also == ()


def test_a_summary_of_many_events_does_not_stand_for_them() -> None:
    turns = [event(f"e{n}", f"bicycle part {n}", order=n) for n in range(9)]
    index = index_of(*turns, memory("sum", "They spoke about bicycle parts", sources=tuple(t.id for t in turns)))

    ranking = ask(index, "bicycle part", limit=20)

    assert set(ids(ranking)) == {"sum", *(turn.id for turn in turns)}
    assert all(hit.also == () for hit in ranking.hits)


def test_merging_does_not_shorten_the_answer() -> None:
    docs: list[EventDoc | MemoryDoc] = [event(f"e{n}", "a bicycle", order=n) for n in range(200)]
    docs += [memory(f"m{n}", "a red bicycle", sources=(f"e{n}",)) for n in range(200)]

    ranking = ask(index_of(*docs), "red bicycle", limit=150)

    assert len(ranking.hits) == 150


def test_a_memory_asked_for_by_name_is_first() -> None:
    index = index_of(memory("m1", "dog dog food"), memory("m2", "unrelated"), memory("m3", "dog"))

    hits = ask(index, "dog", named=("m2", "unknown")).hits

    assert hits[0].id == "m2"
    assert hits[0].parts["name"] > 0
    assert {hit.id for hit in hits[1:]} == {"m1", "m3"}


def test_a_name_does_not_open_what_the_caller_may_not_see() -> None:
    index = index_of(memory("m1", "dog", scope="project", resource_id="proj_b"), memory("m2", "cat"))

    assert ids(ask(index, "dog", Filters(caller_project="proj_a"), named=("m1",))) == []


def test_a_superseded_memory_comes_after_the_current_ones_and_is_marked() -> None:
    index = index_of(
        memory("old", "The favourite editor is Vim", superseded=True),
        memory("new", "The favourite tool to write is Emacs"),
    )

    hits = ask(index, "favourite editor Vim").hits

    assert [(hit.id, hit.superseded) for hit in hits] == [("new", False), ("old", True)]
    assert hits[1].parts["superseded"] < 0
    assert ids(ask(index, "favourite editor", Filters(superseded=False))) == ["new"]
    assert ids(ask(index, "favourite editor Vim", named=("old",)))[0] == "old"


def test_a_date_in_the_question_prefers_what_is_of_that_date() -> None:
    index = index_of(
        event("may", "went hiking", order=50, session="a"),
        event("june", "went hiking", order=60, session="b"),
        memory("then", "A hiking club", valid_from=Millis(40), valid_to=Millis(55)),
        memory("later", "A hiking club", created_at=Millis(60)),
    )

    hits = {hit.id: hit for hit in ask(index, "hiking", dates=((45, 55),)).hits}

    assert {id_ for id_, hit in hits.items() if hit.parts.get("date") == POLICY.date} == {"may", "then"}
    assert hits["may"].score > hits["june"].score
    assert set(ids(ask(index, "what happened", dates=((45, 55),)))) == {"may", "then"}


def test_neighbours_come_with_an_event_on_request() -> None:
    index = index_of(*(event(f"e{n}", "dog" if n == 2 else "x", order=n) for n in range(5)))

    ranking = ask(index, "dog", limit=1, neighbours=1)

    assert ranking.hits[0].neighbours == ("e1", "e3")
    assert ask(index, "dog", limit=1).hits[0].neighbours == ()


# --- filters ----------------------------------------------------------------------------------------------------------

WORLD: list[EventDoc | MemoryDoc] = [
    event("e-a", "dog", order=10, session="sa", project="proj_a"),
    event("e-b", "dog", order=20, session="sb", project="proj_b", agent="codex", type="tool_result"),
    event("e-none", "dog", order=30, session="sn"),
    memory("m-user", "dog", created_at=Millis(10), salience=0.9, type="decision"),
    memory("m-a", "dog", created_at=Millis(20), scope="project", resource_id="proj_a", project="proj_a"),
    memory("m-b", "dog", created_at=Millis(30), scope="project", resource_id="proj_b", agent="codex"),
    memory("m-sa", "dog", created_at=Millis(40), scope="session", session_id="sa", project="proj_a"),
    memory("m-old", "dog", created_at=Millis(90), valid_from=Millis(5), valid_to=Millis(12)),
]
ALL = {doc.id for doc in WORLD}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ALL),
        (Filters(caller_project="proj_a"), {"e-a", "e-none", "m-user", "m-a", "m-old"}),
        (Filters(caller_project="proj_a", caller_session="sa"), {"e-a", "e-none", "m-user", "m-a", "m-sa", "m-old"}),
        (Filters(caller_project="proj_c"), {"e-none", "m-user", "m-old"}),
        (Filters(kinds=EVENTS), {"e-a", "e-b", "e-none"}),
        (Filters(kinds=MEMORIES), {"m-user", "m-a", "m-b", "m-sa", "m-old"}),
        (Filters(types=frozenset({"decision"})), {"m-user"}),
        (Filters(types=frozenset({"tool_result", "decision"})), {"e-b", "m-user"}),
        (Filters(types=frozenset({"unheard"})), set()),
        (Filters(min_salience=0.8), {"m-user"}),
        (Filters(agent="codex"), {"e-b", "m-b"}),
        (Filters(session_id="sa"), {"e-a", "m-sa"}),
        (Filters(project="proj_a"), {"e-a", "m-a", "m-sa"}),
        (Filters(project="proj_a", caller_project="proj_b"), set()),
        (Filters(since=20, until=40), {"e-b", "e-none", "m-a", "m-b"}),
        (Filters(until=11), {"e-a", "m-user", "m-old"}),
        (Filters(since=12), {"e-b", "e-none", "m-a", "m-b", "m-sa", "m-old"}),
    ],
)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", ["dog", ""])
def test_filters_let_through(filters: Filters, expected: set[str], mode: str, text: str) -> None:
    assert set(ids(ask(index_of(*WORLD), text, filters, mode=mode, limit=20))) == expected


# --- the plain modes --------------------------------------------------------------------------------------------------


def test_keyword_scores_are_plain_bm25_over_what_was_asked_for() -> None:
    contents = ["the red bicycle", "a bicycle, a bicycle and a car", "a long story about nothing at all", "red car"]
    index = index_of(
        *(memory(f"m{n}", content) for n, content in enumerate(contents)), event("e1", "red red bicycle bicycle")
    )

    ranking = ask(index, "red bicycle", Filters(kinds=MEMORIES), mode=KEYWORD)

    documents = [analyse(content) for content in contents]
    scores = scoring.bm25(query_tokens("red bicycle"), documents, k1=POLICY.keyword_k1, b=POLICY.keyword_b)
    assert {hit.id: hit.score for hit in ranking.hits} == {
        f"m{n}": pytest.approx(score, abs=1e-5) for n, score in enumerate(scores) if score
    }
    assert ranking.notes == ("bm25 with k1 1.2 and b 0.75",)
    assert all(set(hit.parts) == {"bm25"} for hit in ranking.hits)


def test_weighted_scores_are_the_formula_of_cosine_and_overlap() -> None:
    index = index_of(memory("m1", "red bicycle"), memory("m2", "red car"), vectors={"m1": unit(1, 1), "m2": unit(1, 0)})

    hits = ask(index, "red bicycle", mode=WEIGHTED, vector=np.array(unit(1, 0), np.float32)).hits

    red, bicycle = scoring.overlap_idf(2, 2), scoring.overlap_idf(2, 1)
    assert {hit.id: hit.score for hit in hits} == {
        "m1": pytest.approx(0.8 * 0.7071 + 0.2, abs=0.01),
        "m2": pytest.approx(0.8 + 0.2 * red / (red + bicycle), abs=0.01),
    }


def test_weighted_mode_scores_every_row_and_copies_no_more_than_a_block_of_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_blocks, "BLOCK", 8)
    monkeypatch.setattr(tables, "_PICKED", 8)
    copied: list[int] = []
    real = Table.vectors

    def counting(table: Table, rows: npt.NDArray[np.intp]) -> scoring.Rows:
        copied.append(len(rows))
        return real(table, rows)

    draw = np.random.default_rng(3)
    vectors = {f"m{n}": unit(*draw.normal(size=5)) for n in range(100) if n % 7}
    index = index_of(
        *(memory(f"m{n}", "bread", scope="project", resource_id="one" if n % 5 == 0 else "two") for n in range(100)),
        vectors=vectors,
    )
    query = np.array(unit(*draw.normal(size=5)), np.float32)
    monkeypatch.setattr(Table, "vectors", counting)

    for filters, count in ((EVERYTHING, 100), (Filters(caller_project="one"), 20)):
        found = {hit.id: hit for hit in ask(index, "bread", filters, mode=WEIGHTED, vector=query, limit=100).hits}

        assert len(found) == count
        assert max(copied, default=0) <= 8
        for id_, hit in found.items():
            exact = float(np.dot(vectors[id_], query)) if id_ in vectors else None
            assert hit.cosine == (None if exact is None else pytest.approx(exact, abs=0.02))


@pytest.mark.parametrize(("tagged", "found"), [(5, 5), (4, 10)])
def test_weighted_mode_searches_matching_topics_unless_they_hold_too_little(tagged: int, found: int) -> None:
    index = index_of(
        *(memory(f"m{n}", "bread", topic="food" if n < tagged else "work") for n in range(10)),
        vectors={f"m{n}": unit(1, 1) for n in range(10)},
    )
    index.set_topics(["food", "work"], *scoring.quantise(np.array([unit(1, 0), unit(0, 1)], np.float32)))

    ranking = ask(index, "bread", mode=WEIGHTED, vector=np.array(unit(1, 0), np.float32), limit=20)

    assert len(ranking.hits) == found
    assert ranking.notes == (
        ("within topics: food",) if found == tagged else ("no topic matches enough: all searched",)
    )


def test_weights_come_from_the_policy() -> None:
    index = index_of(memory("m1", "dog"), memory("m2", "cat"))
    query = Query(text="dog", tokens=("dog",))

    hits = rank(index, query, EVERYTHING, replace(POLICY, memory_bm25=0.0, memory_session=0.0), limit=5).hits

    assert hits == (Hit(id="m1", kind=MEMORY.name, score=0.0, parts={}, ts=0, matched=1.0),)


# --- packing ----------------------------------------------------------------------------------------------------------


def test_a_pack_cuts_the_last_text_at_a_word_and_counts_the_rest() -> None:
    texts = ["one two three", "four five six seven eight nine ten eleven twelve", "never reached"]

    packed = pack(texts, max_tokens=14)

    assert packed.texts[0] == texts[0]
    assert packed.texts[1].endswith(CUT)
    assert packed.texts[1].removesuffix(CUT) == "four five six seven eight nine"
    assert (packed.left_out, packed.truncated) == (1, True)


def test_a_pack_without_room_for_some_words_leaves_the_text_out() -> None:
    assert pack(["one two three", "four five six"], max_tokens=6).texts == ("one two three",)
    assert pack(["one two three"], max_tokens=0).left_out == 1
    assert pack([], max_tokens=10).tokens == 0


# --- what a score may depend on ---------------------------------------------------------------------------------------


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


# --- the turns around -------------------------------------------------------------------------------------------------


def test_a_thought_in_several_short_turns_is_found_through_the_ones_before() -> None:
    index = index_of(
        event("q", "what did the plumber say about the boiler", speaker="Ann", order=1),
        event("b1", "ugh", speaker="Bob", order=2),
        event("b2", "so", speaker="Bob", order=3),
        event("b3", "the valve is gone", speaker="Bob", order=4),
        event("other", "the valve is gone", speaker="Bob", order=5, session="t"),
    )

    hits = {hit.id: hit for hit in ask(index, "boiler plumber").hits}

    assert hits["b3"].parts["bm25_before"] > 0
    assert "other" not in hits


def test_a_window_ends_where_enough_was_said() -> None:
    long = " ".join(f"filler{n}" for n in range(40))
    index = index_of(
        event("q", "the boiler", order=1),
        event("long", long, order=2),
        event("next", "yes", order=3),
        event("after", "no", order=4),
    )

    hits = {hit.id: hit for hit in ask(index, "boiler").hits}

    assert hits["long"].parts["bm25_before"] > 0
    assert "next" not in hits
    assert "after" not in hits


@pytest.mark.parametrize(
    ("question", "better", "worse", "part"),
    [
        ("When did the boiler break?", "the boiler broke yesterday", "the boiler broke again", "when"),
        ("How many valves has the boiler?", "the boiler has three valves", "the boiler has these valves", "count"),
        ("What about the boiler?", "the boiler broke", "the boiler broke?", "asks"),
    ],
)
def test_a_turn_that_can_answer_comes_before_one_that_cannot(question: str, better: str, worse: str, part: str) -> None:
    docs = [event(id_, said, session=id_) for id_, said in (("a", worse), ("b", better))]
    tokens = [doc._replace(tokens=f"{doc.tokens} {ASKS}" if asks(said) else doc.tokens)
              for doc, said in zip(docs, (worse, better), strict=True)]  # fmt: skip
    index = index_of(*tokens)

    hits = ask(index, question).hits

    assert [hit.id for hit in hits] == ["b", "a"]
    assert any(part in hit.parts for hit in hits)


# --- the reranker -----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-12, 12), max_size=6), st.integers(0, 8))
def test_a_reranker_reorders_what_it_read_and_nothing_else(logits: list[float], limit: int) -> None:
    docs, vectors = crowd(40)
    ranking = ask(index_of(*docs, vectors=vectors), "word1 word2 word3", limit=8)

    found = reranked(ranking, np.array(logits, np.float32), POLICY, limit=limit)

    read = len(logits)
    assert {hit.id for hit in found.hits[:read]} <= {hit.id for hit in ranking.hits[:read]} or limit < read
    assert [hit.id for hit in found.hits[read:]] == [hit.id for hit in ranking.hits[read:limit]]
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in found.hits)


def test_what_the_reranker_prefers_strongly_comes_first() -> None:
    docs, vectors = crowd(40)
    ranking = ask(index_of(*docs, vectors=vectors), "word1 word2 word3", limit=4)

    found = reranked(ranking, np.array([0, 0, 0, 100], np.float32), POLICY, limit=4)

    assert found.hits[0].id == ranking.hits[3].id
    assert found.hits[0].parts["rerank"] == pytest.approx(100 * POLICY.rerank)


def test_a_passage_is_the_turn_with_the_last_words_before_it() -> None:
    before = [("Ann", "one two three"), ("Ann", "four five")]

    assert passage("Bob", "six", before, replace(POLICY, rerank_words=4)) == "Ann: three, Ann: four five, Bob: six"
    assert passage("Bob", "a b c d e", before, replace(POLICY, rerank_words=4)) == "Bob: a b c d e"
    assert passage("Bob", "six", before, replace(POLICY, rerank_before=0)) == "Bob: six"
    assert passage("Bob", "six", [], POLICY) == "Bob: six"


# --- weights ----------------------------------------------------------------------------------------------------------


def test_fitted_weights_take_the_place_of_the_default_ones() -> None:
    assert weighted(POLICY, {"event_dense": 2.5}) == replace(POLICY, event_dense=2.5)


@pytest.mark.parametrize("weights", [{"nonsense": 1.0}, {"rerank_hits": 3.0}, {"event_dense": float("nan")}])
def test_what_is_no_weight_is_refused(weights: dict[str, float]) -> None:
    with pytest.raises(InvalidError, match=r"is not the name of a weight of recall|must be a finite number"):
        weighted(POLICY, weights)
