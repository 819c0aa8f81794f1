"""Of two hits about one thing the later one may say what has become of it: it is told first, and nothing is ended."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranking_world import event, index_of, memory, unit
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.lifecycle.succeeding import chance, successors
from scrubjay.policy import SucceedingPolicy
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.pairs import Pair, pairs
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType, Role, Trust
from service_calls import NOW, Opener, ingest, said

POLICY = SucceedingPolicy()
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")
MODEL = "bge-small-en-v1.5"
OLD, NEW = "The kettle whistles at 90 degrees", "The kettle whistles at 95 degrees"


def hit(id_: str, confidence: float = 0.5, *, superseded: bool = False) -> Hit:
    return Hit(
        id=id_, kind="memory", score=confidence, parts={"dense": confidence}, ts=0, confidence=confidence,
        superseded=superseded,
    )  # fmt: skip


def pair(old: str, new: str, contained: float = 1.0, *, nearest: bool = True) -> Pair:
    return Pair(old=old, new=new, contained=contained, nearest=nearest)


# --- what the index knows of pairs ------------------------------------------------------------------------------------


def test_a_pair_is_of_one_subject_and_of_two_times() -> None:
    texts = {"old": OLD, "new": NEW, "same": OLD, "other": "The roof is slate"}
    index = index_of(
        event("old", OLD, ts=Millis(1)),
        event("other", texts["other"], ts=Millis(1), order=1),
        memory("new", NEW, created_at=Millis(5)),
        memory("same", OLD, created_at=Millis(5), updated_at=Millis(9)),
        vectors={"old": unit(1, 0.1), "new": unit(1, 0), "same": unit(1, 0.05), "other": unit(0, 1)},
    )

    found = {(one.old, one.new): one for one in pairs(index, texts, POLICY)}

    assert found.keys() == {("old", "new"), ("old", "same")}, "a change of the memory is no later statement"
    assert found["old", "same"].contained == pytest.approx(1)
    assert 0.5 < found["old", "new"].contained < 1
    assert all(one.nearest for one in found.values())


def test_only_one_earlier_text_is_the_nearest_and_what_has_no_vector_is_in_no_pair() -> None:
    texts = {"near": OLD, "far": "The kettle is blue", "new": NEW, "bare": OLD, "gone": OLD}
    index = index_of(
        *(event(name, texts[name], ts=Millis(at), order=at) for at, name in enumerate(["near", "far", "new", "bare"])),
        vectors={"near": unit(1, 0.1), "far": unit(1, 0.6), "new": unit(1, 0)},
    )

    found = {(one.old, one.new): one.nearest for one in pairs(index, texts, POLICY)}

    assert found == {("near", "far"): True, ("near", "new"): True, ("far", "new"): False}


# --- how likely one takes the place of the other ----------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_words_in_common_never_make_it_less_likely(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert chance(pair("a", "b", less), OLD, NEW, POLICY) <= chance(pair("a", "b", more), OLD, NEW, POLICY)


def test_what_says_that_it_ended_or_has_another_number_is_likelier() -> None:
    kettle = "We boil the water in the copper kettle"
    ends = chance(pair("a", "b", 0.5), kettle, "We no longer use the copper kettle", POLICY)
    praises = chance(pair("a", "b", 0.5), kettle, "We like the copper kettle", POLICY)
    assert ends > 2 * praises
    assert chance(pair("a", "b"), OLD, NEW, POLICY) > chance(pair("a", "b"), OLD, OLD, POLICY)
    assert chance(pair("a", "b", nearest=False), OLD, NEW, POLICY) < chance(pair("a", "b"), OLD, NEW, POLICY)


def test_a_later_hit_is_told_before_the_one_that_it_may_outdate() -> None:
    hits, texts = [hit("old"), hit("else"), hit("new", 0.4)], {"old": OLD, "else": "The roof is slate", "new": NEW}

    assert successors(hits, [pair("old", "new")], texts, POLICY, asks_now=False) == {"old": "new"}
    assert successors(hits[::-1], [pair("old", "new")], texts, POLICY, asks_now=False) == {}, "it stands before it"
    weak = [*hits[:2], hit("new", 0.4 * POLICY.likely)]
    assert successors(weak, [pair("old", "new")], texts, POLICY, asks_now=False) == {}
    ended = [*hits[:2], hit("new", 0.5, superseded=True)]
    assert successors(ended, [pair("old", "new")], texts, POLICY, asks_now=False) == {}
    beyond = replace(POLICY, olds=0)
    assert successors(hits, [pair("old", "new")], texts, beyond, asks_now=False) == {}


def test_less_is_enough_where_the_question_asks_how_things_are_now() -> None:
    hits, texts = [hit("old"), hit("new")], {"old": "The kettle is copper", "new": "A kettle of steel came"}
    doubtful = [pair("old", "new", 0.3)]
    assert POLICY.chance_now <= chance(doubtful[0], texts["old"], texts["new"], POLICY) < POLICY.chance

    assert successors(hits, doubtful, texts, POLICY, asks_now=False) == {}
    assert successors(hits, doubtful, texts, POLICY, asks_now=True) == {"old": "new"}


@given(
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.floats(0, 1), st.booleans()), max_size=30),
)
def test_a_hit_comes_up_once_and_what_came_up_brings_up_nothing(
    count: int, likely: list[tuple[int, int, float, bool]]
) -> None:
    hits = [hit(str(n), 1 - n / 20) for n in range(count)]
    of = [pair(str(old), str(new), contained, nearest=nearest) for old, new, contained, nearest in likely if old != new]

    found = successors(hits, of, dict.fromkeys(map(str, range(9)), OLD), POLICY, asks_now=True)

    assert len(set(found.values())) == len(found)
    assert all(int(old) < int(new) < count for old, new in found.items())
    assert found.keys().isdisjoint(found.values())


# --- asked ------------------------------------------------------------------------------------------------------------

CASES = {
    "What does the harbour light show at night?": (
        "The harbour light shows two white flashes at night.",
        "The harbour light shows one red flash at night.",
    ),
    "Which oven bakes the rye loaves now?": (
        "The rye loaves are baked in the brick oven at 240 degrees.",
        "The rye loaves go into the steam oven at 220 degrees, the brick oven is closed.",
    ),
    "How often are the bee hives opened?": (
        "We open the bee hives once a week to look for the queen.",
        "Open the bee hives once a month to look for the queen, more disturbs them.",
    ),
}


@pytest.mark.skipif(not (REAL / MODEL).is_dir(), reason="the model's files are not here")
@pytest.mark.anyio
async def test_of_what_was_said_in_work_with_an_agent_the_later_is_answered_first(opened: Opener) -> None:
    async with opened(models_dir=REAL, model=MODEL, now=lambda: Millis(NOW + 1_000)) as service:
        agent = {"type": EventType.ASSISTANT_MESSAGE, "role": Role.ASSISTANT, "trust": Trust.AGENT}
        turns = [text for both in zip(*CASES.values(), strict=True) for text in both]
        drafts = [said(text, f"s{n}", ts=Millis(NOW + n), **agent) for n, text in enumerate(turns)]
        await ingest(service, *drafts, learn=False)
        await service.call(PERSON, "settle", api.SettleRequest())
        before_was_later = []
        for question, (old, new) in CASES.items():
            answer = await service.call(PERSON, "recall", api.RecallRequest(query=question))
            places = {one.text: at for at, one in enumerate(answer.hits)}
            assert places[new] < places[old], question
            assert all(one.score == pytest.approx(sum(one.parts.values())) for one in answer.hits)
            before_was_later += [one.parts.get("questions", 0) for one in answer.hits if one.text == new]
            then = api.RecallRequest(query=question, as_of=Millis(NOW + len(CASES)))
            assert (await service.call(PERSON, "recall", then)).hits[0].text == old
    assert any(before_was_later), "at least one stood behind the earlier one by likeness"


async def recalled_turns(service: Application, question: str, **more: Any) -> dict[str, tuple[int, str | None]]:
    """Return the events that answer a question, by their words: place among the hits, and what questions them."""
    answer = await service.call(PERSON, "recall", api.RecallRequest(query=question, **more))
    return {hit.text: (at, hit.questioned_by) for at, hit in enumerate(answer.hits) if hit.kind == "event"}


@pytest.mark.anyio
async def test_a_turn_all_of_whose_words_were_replaced_is_marked_and_told_after_what_holds(opened: Opener) -> None:
    old, both = (
        "The harbour gauge listens on port 8080.",
        "The tide gauge listens on port 7000. We ring the bell at noon.",
    )
    question, tide = "Does the harbour gauge listen on port 8080?", "Does the tide gauge listen on port 7000?"
    async with opened(now=lambda: Millis(NOW + 1_000)) as service:
        turns = [old, both, "The harbour gauge listens on port 9090.", "The tide gauge listens on port 7001."]
        for at, text in enumerate(turns):
            await ingest(service, said(text, f"s{at}", ts=Millis(NOW + at)))
            await service.call(PERSON, "settle", api.SettleRequest())
        page = await service.call(PERSON, "list", api.ListRequest())
        by_words = {entry.memory.content: entry.memory for entry in page.entries}
        assert by_words[old].superseded_by == by_words[turns[2]].id, "or nothing here is tried"
        answer = await service.call(PERSON, "recall", api.RecallRequest(query=question))
        now, then = (
            await recalled_turns(service, question),
            await recalled_turns(service, question, as_of=Millis(NOW + 2)),
        )
        partly = await recalled_turns(service, tide)

    places = {hit.id: at for at, hit in enumerate(answer.hits)}
    place, later = now[old]
    assert later == by_words[turns[2]].id
    assert places[later] < place
    assert then[old][1] is None, "it held then"
    assert partly[both][1] is None, "the bell is still rung at noon"
