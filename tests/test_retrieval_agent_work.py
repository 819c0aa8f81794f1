"""Of work with agents other things count than where people talk, and what stands around a memory's turn finds it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranking_world import POLICY, ask, event, index_of, memory, unit
from scrubjay.index.documents import EventDoc
from scrubjay.retrieval import relevance
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.fusion import Known, judged, of_work, spread_out
from scrubjay.retrieval.ranking import Ranking
from scrubjay.retrieval.reranking import reranked
from scrubjay.retrieval.turns import TurnKind

WORK = POLICY.agent_work
BASELINE = (0.5, 0.1)
AGENT = {"speaker": "assistant", "type": "assistant_message"}
NEAR, FAR = unit(1.0, 0.1), unit(0.0, 1.0)


def session(agents: int, people: int) -> list[EventDoc]:
    turns = [event(f"a{n}", "the tests of the parser pass", order=2 * n, **AGENT) for n in range(agents)]
    return turns + [event(f"p{n}", "and the release script", order=2 * n + 1) for n in range(people)]


@pytest.mark.parametrize(("agents", "people"), [(3, 3), (4, 1)])
def test_a_store_is_of_work_where_half_of_its_turns_are_an_agents(agents: int, people: int) -> None:
    assert ask(index_of(*session(agents, people)), "parser release").work


@pytest.mark.parametrize(("agents", "people"), [(2, 3), (0, 3)])
def test_where_people_say_more_it_is_talk(agents: int, people: int) -> None:
    assert not ask(index_of(*session(agents, people)), "parser release").work


def test_whose_work_it_is_depends_on_what_the_caller_sees() -> None:
    there = [event("mine", "parser", project="talk"), event("theirs", "parser", order=1, project="code", **AGENT)]
    index = index_of(*there, event("more", "parser", order=2, project="code", **AGENT))

    assert not ask(index, "parser", Filters(caller_project="talk")).work
    assert ask(index, "parser", Filters(caller_project="code")).work
    assert ask(index, "parser").work


def test_parts_weigh_as_the_policy_says_and_a_score_stays_their_sum() -> None:
    turns = [event("a", "parser", type="user_message"), event("b", "lexer", order=1)]
    vectors = {"a": NEAR, "b": FAR}
    asked = {"vector": _query(), "cosine_baseline": BASELINE}
    talk = {hit.id: hit for hit in ask(index_of(*turns, vectors=vectors), "parser", **asked).hits}
    agents = [turn._replace(type="assistant_message") for turn in turns]
    work = {hit.id: hit for hit in ask(index_of(*agents, vectors=vectors), "parser", **asked).hits}

    for name in ("dense", "bm25", "session"):
        assert work["a"].parts[name] == pytest.approx(talk["a"].parts[name] * getattr(WORK, name), abs=1e-5)
    assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in work.values())


def test_a_memory_is_judged_by_the_turns_around_the_one_it_was_read_from() -> None:
    def likely(around: list[float]) -> float:
        turns = [event(f"e{n}", "step", order=n, **AGENT) for n in range(3)]
        read = memory("m", "it should not", sources=("e1",))
        vectors = {"e0": around, "e1": FAR, "e2": FAR, "m": FAR}
        answer = ask(
            index_of(*turns, read, vectors=vectors), "step", vector=_query(), cosine_baseline=BASELINE, apart=True
        )
        (hit,) = (one for one in answer.hits if one.kind == "memory")
        assert hit.around is not None
        return relevance.of_sourced(hit, 1.0, POLICY, cosine_baseline=BASELINE)

    assert likely(NEAR) > 2 * likely(FAR)


def test_no_turn_around_is_looked_at_that_the_caller_does_not_see() -> None:
    hidden = event("e0", "step", project="other", **AGENT)
    turn = event("e1", "step", order=1, project="mine", **AGENT)
    read = memory("m", "it should not", sources=("e1",))
    index = index_of(hidden, turn, read, vectors={"e0": NEAR, "e1": FAR, "m": FAR})
    answer = ask(index, "step", Filters(caller_project="mine"), vector=_query(), cosine_baseline=BASELINE, apart=True)
    (hit,) = (one for one in answer.hits if one.kind == "memory")

    assert hit.around == pytest.approx(0.0, abs=0.02)


def test_a_memory_without_a_source_is_judged_by_its_own_meaning_and_words() -> None:
    turn, added = event("e", "parser", **AGENT), memory("m", "parser")

    def likely(**asked: object) -> tuple[Hit, float]:
        answer = ask(index_of(turn, added, vectors={"e": NEAR, "m": NEAR}), "parser", apart=True, **asked)
        (hit,) = (one for one in answer.hits if one.kind == "memory")
        found = judged([hit], {"m": Known()}, POLICY, cosine_baseline=BASELINE, work=True)
        return hit, found[0].confidence or 0.0

    hit, found = likely(vector=_query(), cosine_baseline=BASELINE)
    assert hit.around is None
    assert found == relevance.of_added(hit, 1.0, POLICY, cosine_baseline=BASELINE)
    hit, found = likely()  # without a vector what is known of words alone holds
    assert found == relevance.of_memory(hit, 1.0, POLICY.relevance, cosine_baseline=BASELINE)


@given(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), st.tuples(st.floats(0, 1), *[st.floats(0, 1)] * 2))
def test_more_likeness_words_or_confidence_never_make_an_added_memory_less_relevant(
    drawn: tuple[float, float, float], other: tuple[float, float, float]
) -> None:
    less, more = (
        relevance.of_added(
            one("m", "memory", 0.0, cosine=cosine, matched=matched), sure, POLICY, cosine_baseline=BASELINE
        )
        for cosine, matched, sure in (drawn, tuple(map(max, drawn, other)))
    )

    assert 0 <= less <= more <= 1


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-11.5, 9), st.floats(0, 20))
def test_what_a_model_likes_more_is_never_less_likely_and_a_turns_memory_never_loses(
    sure: float, gain: float, logit: float, more: float
) -> None:
    surer = min(sure + gain, 1.0)
    less, liked = (relevance.of_read(one("m", "memory", sure), each, WORK) for each in (logit, logit + more))

    assert 0 <= less <= liked <= 1
    assert less <= relevance.of_read(one("m", "memory", surer), logit, WORK)
    assert relevance.of_read(one("m", "memory", sure, also=("e",)), logit, WORK) == max(less, sure)
    assert relevance.of_read(one("m", "memory", sure, parts={"name": 1.0}), logit, WORK) == 1


def test_what_a_model_read_of_work_stands_among_the_turns_by_how_likely_it_answers_now() -> None:
    turns = [one(f"e{n}", "event", 0.2 - 0.01 * n) for n in range(2)]
    hits = (one("liked", "memory", 0.15), *turns, one("unlike", "memory", 0.3))
    ranking = Ranking(hits=hits, mode="hybrid", work=True)

    found = reranked(ranking, np.array([8.0, -11.0], np.float32), POLICY, limit=4, read=(0, 3)).hits

    assert [hit.id for hit in found] == ["liked", "e0", "e1", "unlike"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all(hit.score == 0.0 + sum(hit.parts.values()) for hit in found)
    assert reranked(ranking, np.zeros(0, np.float32), POLICY, limit=4, read=()).hits[0].id == "unlike"


def test_a_memory_in_the_place_of_its_turn_is_as_likely_as_the_turn() -> None:
    hits = [one("m", "memory", 0.05, also=("e",)), one("e", "event", 0.2), one("f", "event", 0.1)]

    assert [(hit.id, hit.confidence) for hit in of_work(hits, WORK)] == [("m", 0.2), ("f", 0.1)]


def test_an_event_goes_along_with_every_memory_read_from_it() -> None:
    turn = event("e", "parser and lexer", **AGENT)
    read = [memory(name, f"the {name} is slow", sources=("e",)) for name in ("parser", "lexer")]
    answer = ask(index_of(turn, *read), "parser lexer", apart=True)

    assert [hit.also for hit in answer.hits if hit.kind == "memory"] == [("e",), ("e",)]


def test_what_is_read_from_another_turn_comes_before_more_of_the_same() -> None:
    def read(id_: str, source: str, confidence: float) -> Hit:
        return Hit(id=id_, kind="memory", score=1.0, parts={}, ts=0, also=(source,), confidence=confidence)

    hits = [read("a", "e", 0.4), read("b", "e", 0.3), read("c", "f", 0.2), read("d", "g", 0.05)]

    assert [hit.id for hit in spread_out(hits, WORK.repeats)] == ["a", "c", "b", "d"]
    assert spread_out(hits, 1.0) == tuple(hits)


def test_an_agents_turn_after_which_it_goes_on_is_a_step_and_its_last_one_is_not() -> None:
    turns = [
        event("asked", "parser", type="user_message"),
        event("step", "parser", order=1, **AGENT),
        event("printed", "parser", order=2, type="tool_result"),
        event("last", "parser", order=3, **AGENT),
        event("thanks", "parser", order=4, type="user_message"),
        event("end", "parser", order=5, **AGENT),
    ]
    found = {hit.id: hit.parts.get("step", 0.0) for hit in ask(index_of(*turns), "parser").hits}

    assert found == {"asked": 0, "step": -WORK.step, "printed": 0, "last": 0, "thanks": 0, "end": 0}


def test_what_follows_and_is_not_seen_makes_no_step() -> None:
    mine = [event(f"m{n}", "parser", order=n, project="mine", **AGENT) for n in range(2)]
    index = index_of(*mine, event("theirs", "parser", order=2, project="other", **AGENT))
    found = {hit.id: hit.parts.get("step", 0.0) for hit in ask(index, "parser", Filters(caller_project="mine")).hits}

    assert found == {"m0": -WORK.step, "m1": 0}


def one(id_: str, kind: str, confidence: float, **more: object) -> Hit:
    return replace(Hit(id=id_, kind=kind, score=1.0, parts={"dense": 1.0}, ts=0, confidence=confidence), **more)  # type: ignore[arg-type]


def test_two_of_the_first_three_are_memories_where_they_are_likely_enough() -> None:
    turns = [one(f"e{n}", "event", 0.2 - 0.01 * n) for n in range(4)]

    def order(*memories: Hit) -> list[str]:
        return [hit.id for hit in of_work([*memories, *turns], WORK)]

    likely = [one(f"m{n}", "memory", 0.15 - 0.01 * n) for n in range(3)]
    assert order(*likely) == ["e0", "m0", "m1", "e1", "e2", "e3", "m2"]
    assert order(likely[0]) == ["e0", "e1", "m0", "e2", "e3"]
    assert order(one("unsure", "memory", 0.01)) == ["e0", "e1", "e2", "e3", "unsure"]
    assert order(one("old", "memory", 0.15, superseded=True)) == ["e0", "e1", "e2", "e3", "old"]
    assert order(one("sure", "memory", 0.9), likely[0]) == ["sure", "e0", "m0", "e1", "e2", "e3"]


def test_turns_of_work_stand_by_how_likely_they_answer_and_not_by_their_scores() -> None:
    long, short = one("long", "event", 0.1, score=9.0), one("short", "event", 0.3)

    assert [hit.id for hit in of_work([long, short], WORK)] == ["short", "long"]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.floats(-5, 20), st.booleans()), max_size=10))
def test_one_order_of_work_has_every_hit_once_and_scores_that_fall(
    drawn: list[tuple[bool, float, float, bool]],
) -> None:
    hits = [
        one(str(n), "memory" if is_memory else "event", sure, parts={"dense": round(score, 6)}, superseded=old)
        for n, (is_memory, sure, score, old) in enumerate(drawn)
    ]
    found = of_work(hits, WORK)

    assert sorted(hit.id for hit in found) == sorted(hit.id for hit in hits)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert all(hit.score == 0.0 + sum(hit.parts.values()) for hit in found)


def test_what_is_nearest_says_whether_anything_is_known_of_work() -> None:
    turns = [event(f"e{n}", "parser", order=n, **AGENT) for n in range(300)]
    vectors = {turn.id: NEAR if n < 10 else FAR for n, turn in enumerate(turns)}
    asked = {"vector": _query(), "cosine_baseline": BASELINE}
    answer = ask(index_of(*turns, vectors=vectors), "parser", **asked)
    most = len(turns) // WORK.near_share
    near, far = (float(np.dot(each, _query())) for each in (NEAR, FAR))

    assert answer.near == pytest.approx((10 * near + (most - 10) * far) / most, abs=0.02)
    assert ask(index_of(*turns), "parser").near is None
    assert ask(index_of(turns[0]._replace(type="user_message"), vectors=vectors), "parser", **asked).near is None


@given(st.floats(-1, 1), st.floats(0, 1))
def test_the_nearer_it_is_the_surer_an_answer_is(near: float, gain: float) -> None:
    hits = [one("e", "event", 0.01, cosine=0.9)]
    less, more = (
        relevance.of_answer(hits, POLICY, cosine_baseline=BASELINE, near=each) for each in (near, near + gain)
    )

    assert 0 <= less <= more <= 1


@given(
    score=st.floats(-20, 20),
    gain=st.floats(0, 10),
    around=st.floats(-1, 1),
    nearer=st.floats(0, 1),
    sure=st.floats(0, 1),
)
def test_more_likeness_never_makes_a_memory_less_relevant(
    score: float, gain: float, around: float, nearer: float, sure: float
) -> None:
    hit = Hit(id="m", kind="memory", score=score, parts={}, ts=0, around=around)
    better = replace(hit, score=score + gain, around=around + nearer)
    less, more = (relevance.of_sourced(one, sure, POLICY, cosine_baseline=BASELINE) for one in (hit, better))

    assert 0 <= less <= more <= 1
    assert relevance.of_sourced(replace(hit, superseded=True), sure, POLICY, cosine_baseline=BASELINE) <= less


def test_a_finding_of_work_is_about_as_good_as_a_statement_and_a_narration_is_not() -> None:
    said = Hit(id="e", kind="event", score=10.0, parts={}, ts=0)
    statement, finding, narration = (
        relevance.of_event(said, kind, 100, WORK) for kind in (TurnKind.STATEMENT, TurnKind.FINDING, TurnKind.NARRATION)
    )

    assert 0.8 * statement < finding < 1.25 * statement
    assert narration < 0.6 * statement


def _query() -> npt.NDArray[np.float32]:
    return np.array(unit(1.0, 0.0), np.float32)
