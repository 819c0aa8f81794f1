"""Memories and events become one order by how likely each answers, and nothing stands there twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranking_world import POLICY
from scrubjay.retrieval import relevance
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.doubts import bearing, told_before
from scrubjay.retrieval.fusion import Known, falling, judged, merged, weighed
from scrubjay.retrieval.reranking import read_by_model
from scrubjay.retrieval.turns import TurnKind

BASELINE = (0.5, 0.1)
RELEVANCE = POLICY.relevance
shares = st.floats(0, 1, allow_nan=False)


def hit(id_: str, score: float = 1.0, *, kind: str = "event", **more: object) -> Hit:
    return replace(Hit(id=id_, kind=kind, score=score, parts={"dense": score}, ts=0), **more)  # type: ignore[arg-type]


def memory(id_: str, score: float = 1.0, **more: object) -> Hit:
    return hit(id_, score, kind="memory", **more)


def order(*hits: Hit, known: dict[str, Known]) -> list[str]:
    found = judged(hits, known, POLICY, cosine_baseline=BASELINE)
    return [one.id for one in merged(found, RELEVANCE, limit=10)]


def test_a_sure_memory_that_fits_stands_above_the_turns_and_an_unsure_one_below() -> None:
    known = {"sure": Known(), "unsure": Known(confidence=0.2), "turn": Known(chars=200)}
    near = {"cosine": 0.85, "matched": 0.5}

    assert order(memory("sure", **near), hit("turn", 4.0), known=known) == ["sure", "turn"]
    assert order(memory("unsure", **near), hit("turn", 4.0), known=known) == ["turn", "unsure"]


def test_a_turn_that_a_memory_above_it_was_read_from_is_left_out_and_one_more_source_is_not() -> None:
    near = {"cosine": 0.9, "matched": 0.9}
    known = {"m": Known(), "e1": Known(), "e2": Known()}

    assert order(memory("m", also=("e1",), **near), hit("e1"), hit("e2"), known=known) == ["m", "e2"]


def test_a_memory_that_may_answer_stands_in_place_of_the_likelier_turn_it_was_read_from() -> None:
    known = {
        "m": Known(confidence=0.15),
        "n": Known(confidence=0.05),
        "turn": Known(chars=200),
        "other": Known(chars=200),
    }
    read = memory("m", also=("turn",), cosine=0.85, matched=0.5), memory("n", also=("turn",), cosine=0.8, matched=0.5)

    assert order(*read, hit("turn", 4.0), hit("other", 3.0), known=known) == ["m", "other", "n"]


def test_a_memory_without_the_words_of_the_question_does_not_hide_the_turn_that_has_them() -> None:
    known = {"m": Known(), "turn": Known(chars=200)}
    read = memory("m", also=("turn",), cosine=0.7, matched=0.0)

    assert order(read, hit("turn", 4.0, matched=1.0), known=known)[0] == "turn"
    assert order(replace(read, matched=0.6), hit("turn", 4.0, matched=1.0), known=known) == ["m"]


def test_a_memory_below_its_only_turn_is_left_out_and_one_with_another_source_stays() -> None:
    known = {"m": Known(confidence=0.1), "n": Known(confidence=0.1), "e1": Known()}
    weak = memory("m", also=("e1",), cosine=0.5), memory("n", also=("e1", "e2"), cosine=0.5)

    assert order(*weak, hit("e1", 6.0), known=known) == ["e1", "n"]


def test_a_memory_called_by_its_name_comes_first_however_unsure_it_is() -> None:
    known = {"pg": Known(confidence=0.1), "e": Known()}

    assert order(memory("pg", parts={"name": 1.0}), hit("e", 9.0), known=known) == ["pg", "e"]


def test_a_superseded_memory_is_less_relevant_than_its_equal() -> None:
    one, old = memory("m", cosine=0.9), memory("m", cosine=0.9, superseded=True)

    assert relevance.of_memory(old, 1.0, RELEVANCE, cosine_baseline=BASELINE) < relevance.of_memory(
        one, 1.0, RELEVANCE, cosine_baseline=BASELINE
    )


def test_narration_and_output_lose_and_what_was_forgotten_meanwhile_is_gone() -> None:
    known = {
        "said": Known(),
        "narrated": Known(turn=TurnKind.NARRATION),
        "printed": Known(turn=TurnKind.OUTPUT),
    }
    found = weighed([hit("narrated", 3), hit("printed", 2.9), hit("said", 2.5), hit("gone", 2)], known, POLICY)

    assert [one.id for one in found] == ["said", "narrated", "printed"]
    assert found[1].parts["turn"] == -POLICY.narration


@given(st.lists(st.floats(-20, 20, allow_nan=False).map(lambda value: round(value, 6)), max_size=12))
def test_scores_fall_in_any_order_and_stay_the_sum_of_their_parts(scores: list[float]) -> None:
    found = falling([hit(str(n), score) for n, score in enumerate(scores)])

    assert [one.id for one in found] == [str(n) for n in range(len(scores))]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(one.score == 0.0 + sum(one.parts.values()) for one in found)
    assert falling(found) == found


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-5, 9), shares, shares), max_size=12),
    st.integers(0, 12),
)
def test_merging_keeps_the_order_within_a_kind_and_loses_nothing_but_repetitions(
    drawn: list[tuple[bool, float, float, float]], limit: int
) -> None:
    hits = weighed(
        [
            hit(f"{n}", round(score, 3), kind="memory" if is_memory else "event", cosine=cosine, matched=matched)
            for n, (is_memory, score, cosine, matched) in enumerate(drawn)
        ],
        {f"{n}": Known() for n in range(len(drawn))},
        POLICY,
    )
    found = merged(
        judged(hits, {one.id: Known() for one in hits}, POLICY, cosine_baseline=BASELINE), RELEVANCE, limit=limit
    )

    assert len(found) == min(limit, len(hits))
    for kind in ("memory", "event"):
        kept = [one.id for one in found if one.kind == kind]
        assert kept == [one.id for one in hits if one.kind == kind][: len(kept)]


@given(st.tuples(shares, shares, shares), st.tuples(shares, shares, shares))
def test_more_likeness_words_or_confidence_never_make_a_memory_less_relevant(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> None:
    less, more = (
        relevance.of_memory(memory("m", cosine=cosine, matched=matched), sure, RELEVANCE, cosine_baseline=BASELINE)
        for cosine, matched, sure in (one, tuple(map(max, one, other)))
    )

    assert 0 <= less <= more <= 1


@given(st.floats(-20, 20), st.floats(0, 20), st.integers(0, 5_000), st.sampled_from(TurnKind))
def test_a_better_score_never_makes_an_event_less_relevant(
    score: float, gain: float, chars: int, kind: TurnKind
) -> None:
    less = relevance.of_event(hit("e", score), kind, chars, RELEVANCE)

    assert 0 <= less <= relevance.of_event(hit("e", score + gain), kind, chars, RELEVANCE) <= 1


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=6), st.integers(0, 5), shares, shares)
def test_more_likeness_or_words_never_make_an_answer_less_sure(
    drawn: list[tuple[float, float]], at: int, cosine: float, matched: float
) -> None:
    at = at % len(drawn)
    better = list(drawn)
    better[at] = (max(drawn[at][0], cosine), max(drawn[at][1], matched))

    less, more = (
        relevance.of_answer(
            [hit(str(n), cosine=near, matched=words) for n, (near, words) in enumerate(each)],
            POLICY,
            cosine_baseline=BASELINE,
        )
        for each in (drawn, better)
    )

    assert 0 <= less <= more <= 1


def test_an_answer_is_at_least_as_sure_as_its_best_hit() -> None:
    far = [hit(str(n), cosine=0.4, confidence=0.01) for n in range(9)]
    best = memory("m", cosine=0.9, confidence=0.7)

    assert relevance.of_answer(far, POLICY, cosine_baseline=BASELINE) < 0.12
    assert relevance.of_answer([*far, best], POLICY, cosine_baseline=BASELINE) >= 0.7


def test_no_hits_answer_nothing_and_words_alone_can() -> None:
    assert relevance.of_answer([], POLICY, cosine_baseline=BASELINE) == 0
    alone = [
        relevance.of_answer([hit("e", matched=matched)], POLICY, cosine_baseline=BASELINE)
        for matched in (0.0, 0.5, 1.0)
    ]
    assert alone == sorted(set(alone))
    assert alone[-1] > 0.5


@pytest.mark.parametrize(
    ("turns", "read"),
    [
        ([TurnKind.STATEMENT, TurnKind.QUESTION, TurnKind.FINDING], (0, 1, 2, 3, 4, 5)),  # people talk: all are read
        (
            [TurnKind.FINDING, TurnKind.OUTPUT, TurnKind.STATEMENT],
            (0, 1, 2),
        ),  # work: only the memories
    ],
)
def test_a_model_reads_turns_where_people_talk_and_only_memories_where_an_agent_works(
    turns: list[TurnKind], read: tuple[int, ...]
) -> None:
    hits = [memory("m1", 3.0), memory("m2", 2.9), memory("m3", 0.9), *(hit(f"e{n}", 2.0) for n in range(3))]
    known = {f"e{n}": Known(turn=turn) for n, turn in enumerate(turns)}

    assert read_by_model(hits, known, POLICY) == read


def test_a_model_reads_the_first_memories_of_work_wherever_they_stand_and_none_that_is_outdated() -> None:
    more = [memory(f"m{n}", 1.0) for n in range(POLICY.rerank_memories)]
    hits = [hit("e", 3.0), memory("old", 2.9, superseded=True), *more, memory("last", 0.5)]
    known = {"e": Known(turn=TurnKind.FINDING)}

    assert read_by_model(hits, known, POLICY) == tuple(range(2, 2 + POLICY.rerank_memories))
    assert read_by_model(hits[:2], known, POLICY) == ()
    assert read_by_model([hits[0], more[0]], known, POLICY) == (1,)


def test_a_model_reads_a_memory_of_a_turn_of_work_only_where_it_is_likely() -> None:
    likely, unlikely = (
        memory(f"m{times}", around=0.7, also=("f",), confidence=times * POLICY.rerank_likely) for times in (1.0, 0.9)
    )
    known = {"e": Known(turn=TurnKind.FINDING)}

    assert read_by_model([unlikely, likely, hit("e"), memory("added")], known, POLICY) == (1, 3)


def test_no_model_reads_a_single_hit_or_what_trails_beyond_its_reach() -> None:
    assert read_by_model([hit("e")], {"e": Known()}, POLICY) == ()
    far = [hit("e", 3.0 + POLICY.rerank_reach), hit("f", 2.9)]
    assert read_by_model(far, {"e": Known(), "f": Known()}, POLICY) == ()


@given(st.lists(st.integers(0, 9), unique=True, max_size=10), st.dictionaries(st.integers(0, 9), st.integers(0, 9)))
def test_no_hit_stands_before_the_one_that_questions_it(ids: list[int], doubts: dict[int, int]) -> None:
    scores = [1.0 - n / 20 for n in range(len(ids))]
    hits = [
        Hit(id=str(one), kind="memory", score=score, parts={"words": score}, ts=0)
        for one, score in zip(ids, scores, strict=True)
    ]
    questioned = {str(old): str(new) for old, new in doubts.items() if old < new}

    told = told_before(hits, questioned)

    assert sorted(hit.id for hit in told) == sorted(hit.id for hit in hits)
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in told)
    places = {hit.id: place for place, hit in enumerate(told)}
    for old, new in questioned.items():
        if old in places and new in places:
            assert places[new] < places[old]


def test_a_doubt_bears_on_the_question_where_the_later_memory_is_nearly_as_likely_to_answer() -> None:
    hits = [memory("old", confidence=0.4), memory("near", confidence=0.25), memory("far", confidence=0.2)]

    assert bearing(hits, {"old": "near"}, 0.6) == {"old": "near"}
    assert bearing(hits, {"old": "far"}, 0.6) == {}
    assert bearing(hits, {"far": "old"}, 0.6) == {"far": "old"}
    assert bearing([memory("old"), memory("new")], {"old": "new"}, 0.6) == {"old": "new"}  # nobody judged them
    assert bearing(hits, {"old": "gone"}, 0.6) == {"old": "gone"}
