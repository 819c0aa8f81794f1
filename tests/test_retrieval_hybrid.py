"""The hybrid mode: words, meaning, names, dates and the turns around, and how they add up."""

from __future__ import annotations

import numpy as np
import pytest

from ranking_world import EVENTS, POLICY, ask, event, ids, index_of, memory, unit
from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.retrieval.filters import Filters
from scrubjay_shared.clock import Millis
from scrubjay_shared.text import ASKS, asks


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
