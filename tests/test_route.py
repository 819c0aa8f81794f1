"""Routing over a real store: layers stand in for one another, none fails the answer, and nothing hidden is pointed to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli_shell import EVENTS, Shell
from scrubjay import Memory, api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_io.sqlite import driver
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import DeniedError, InvalidError, TooLargeError
from service_calls import NOTHING, Opener, ingest, said

pytestmark = pytest.mark.anyio

NOW = Millis(int(datetime(2026, 11, 23, 15, tzinfo=UTC).timestamp() * 1000))
DAY = 86_400_000
TALKS = {
    3: ("We decided to paint the lantern green.", "Green suits the harbour.", "The lantern gets two coats."),
    6: ("The ferry timetable moves to winter hours.", "First ferry at seven then."),
    20: ("My sister plays the violin in the town orchestra.", "She practises every morning."),
    45: ("The greenhouse heating failed again.", "A broken valve was the reason."),
}
"""What was said how many days ago, a session a day."""


@pytest.fixture
async def told(opened: Opener) -> AsyncIterator[Application]:
    async with opened(now=lambda: NOW) as service:
        await tell(service)
        yield service


async def tell(service: Application, *, learn: bool = False) -> None:
    for ago, texts in TALKS.items():
        start = NOW - ago * DAY
        drafts = [said(text, f"s{ago}", ts=start + n * 60_000) for n, text in enumerate(texts)]
        await ingest(service, *drafts, learn=learn)
    await service.call(PERSON, "settle", api.SettleRequest())


async def route(service: Application, query: str, caller: Caller = PERSON, **more: Any) -> api.RouteResponse:
    answer: api.RouteResponse = await service.call(caller, "route", api.RouteRequest(query=query, **more))
    return answer


def day(ago: int) -> str:
    return datetime.fromtimestamp((NOW - ago * DAY) / 1000, UTC).date().isoformat()


@pytest.mark.parametrize(
    ("question", "intent", "ago"),
    [
        ("Which colour did we choose for the lantern?", api.Intent.ANSWER, 3),
        ("Where did we discuss the ferry timetable?", api.Intent.LOCATE, 6),
        ("Tell me about the violin", api.Intent.EXPLORE, 20),
        ("What broke in the greenhouse in October?", api.Intent.TIME_BOXED, 45),
        ("What did we talk about on 17 November 2026?", api.Intent.TIME_BOXED, 6),
    ],
)
async def test_a_question_leads_to_the_talk_of_its_day(
    told: Application, question: str, intent: api.Intent, ago: int
) -> None:
    answer = await route(told, question)

    assert answer.intent is intent
    first = answer.pointers[0]
    assert first.day == day(ago)
    opened: api.TocResponse = await told.call(PERSON, "toc", api.TocRequest(id=first.node))
    assert opened.node.id == first.node
    for grip in first.grips:
        passage: api.GripResponse = await told.call(PERSON, "grip", api.GripRequest(id=grip))
        assert any(passage.excerpt in text for text in TALKS[ago])
    assert all(layer.state is not api.LayerState.FAILED for layer in answer.layers)
    assert bool(answer.hits) is (intent in {api.Intent.ANSWER, api.Intent.TIME_BOXED} and "talk about" not in question)


async def test_dates_in_a_question_become_nodes(told: Application) -> None:
    answer = await route(told, "What happened on Tuesday?")

    [named] = answer.times
    assert (named.words, named.nodes) == ("Tuesday", (f"toc:day:{day(6)}",))
    assert [pointer.day for pointer in answer.pointers] == [day(6)] * len(answer.pointers)
    assert answer.pointers[0].node == f"toc:day:{day(6)}"


async def test_what_is_new_is_the_latest_days(told: Application) -> None:
    answer = await route(told, "What have we been talking about?", limit=2)

    assert answer.intent is api.Intent.EXPLORE
    assert [pointer.node for pointer in answer.pointers] == [f"toc:day:{day(3)}", f"toc:day:{day(6)}"]


async def test_an_intent_that_is_named_is_not_guessed(told: Application) -> None:
    answer = await route(told, "Which colour did we choose for the lantern?", intent=api.Intent.LOCATE)

    assert (answer.intent, answer.confidence, answer.hits) == (api.Intent.LOCATE, 1.0, ())
    assert answer.pointers[0].day == day(3)


@pytest.mark.parametrize("mode", api.TeleportMode)
async def test_a_teleport_points_and_says_which_mode_ran(told: Application, mode: api.TeleportMode) -> None:
    request = api.TeleportRequest(query="violin orchestra", mode=mode)
    answer: api.TeleportResponse = await told.call(PERSON, "teleport", request)

    assert answer.mode == "keyword"  # no model is in use here
    assert bool(answer.notes) is (mode is not api.TeleportMode.KEYWORD)
    assert [pointer.day for pointer in answer.pointers] == [day(20)]
    assert answer.pointers[0].level == "segment"
    assert answer.pointers[0].grips


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"limit": 0}, InvalidError),
        ({"limit": 101}, InvalidError),
        ({"timeout_ms": 0}, InvalidError),
        ({"max_tokens": 0}, InvalidError),
        ({"since": -1}, InvalidError),
        ({"query": "x" * 8_001}, TooLargeError),
    ],
)
async def test_a_request_that_cannot_be_answered_is_refused(
    told: Application, changes: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await told.call(PERSON, "route", api.RouteRequest(**({"query": "lantern"} | changes)))


async def test_without_time_layers_are_skipped_and_said(told: Application) -> None:
    policy = told.policy
    answer = await route(told, "Which colour did we choose for the lantern?", timeout_ms=1)

    assert told.policy is policy
    assert answer.elapsed_ms < 5_000
    assert [step for step in answer.steps if "no time was left" in step.note]


# A layer that fails does not fail the answer

DAMAGE = {
    "contents": ("drop table toc_segment; drop table toc_period", "Which colour did we choose for the lantern?"),
    "contents, nothing named": ("drop table toc_segment; drop table toc_period", "What happened on Friday?"),
    "memories": ("drop table memory", "Which colour did we choose for the lantern?"),
    "citations": ("drop table grip", "Which colour did we choose for the lantern?"),
    "a segment's row": (
        "update toc_segment set outline = 'nonsense'",
        "Which colour did we choose for the lantern?",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_damaged_table_leaves_the_answer_to_the_other_layers(
    opened: Opener, store_path: Path, name: str
) -> None:
    damage, question = DAMAGE[name]
    async with opened(now=lambda: NOW) as service:
        await tell(service, learn=True)
        before = await route(service, question)
        await service.call(PERSON, "run_job", api.JobRequest(name="count"))
        with closing(driver.connect(store_path)) as connection:
            connection.executescript(damage)

        after = await route(service, question)

        assert before.pointers[0].day == after.pointers[0].day == day(3)
        failed = {layer.name for layer in after.layers if layer.state is api.LayerState.FAILED}
        layer = name.partition(",")[0]
        assert failed == {"contents" if layer.startswith(("contents", "a segment")) else "memories"}
        assert [step for step in after.steps if step.note.startswith("failed")]
        health: api.LayersResponse = await service.call(PERSON, "layers", NOTHING)
        assert {each.name: each.state for each in health.layers}["events"] is api.LayerState.OK
        if "toc" in damage and "drop" in damage:
            assert after.pointers[0].node == f"toc:day:{day(3)}"
            assert health.tier == "keyword"
        for layer_ in after.layers:
            assert "lantern" not in layer_.detail


async def test_the_layers_say_what_is_missing(told: Application) -> None:
    health: api.LayersResponse = await told.call(PERSON, "layers", NOTHING)

    states = {layer.name: (layer.state, layer.detail) for layer in health.layers}
    assert health.tier == "keyword"
    assert states["vector"] == (api.LayerState.UNAVAILABLE, "no embedding model is in use")
    assert states["hybrid"] == (api.LayerState.DEGRADED, "by words alone: no embedding model is in use")
    assert states["keyword"] == states["contents"] == states["events"] == (api.LayerState.OK, "")


async def test_what_is_not_in_the_table_of_contents_yet_is_found_by_its_day(opened: Opener) -> None:
    async with opened(now=lambda: NOW) as service:
        await ingest(service, said("The lantern is green.", ts=NOW - 3 * DAY))

        answer = await route(service, "Where did we mention the lantern?")

        assert [(pointer.node, pointer.level) for pointer in answer.pointers] == [(f"toc:day:{day(3)}", "day")]
        assert any("not in the table of contents yet" in note for note in answer.notes)


async def test_an_empty_store_gives_no_pointers(service: Application) -> None:
    for question in ("Where did we mention the lantern?", "what is new?", "what happened yesterday?", ""):
        answer = await route(service, question)
        assert (answer.pointers, answer.hits) == ((), ())


# Whose it is

OWN = Caller(principal=Principal.AGENT, agent="crow", project="own")


async def two_projects(service: Application) -> None:
    await ingest(
        service,
        said("The quagga of ours is blue.", "a", project="own", agent="crow", ts=NOW - 3 * DAY),
        said("The quagga of theirs is red.", "b", project="other", agent="jay", ts=NOW - 6 * DAY),
        said("The quagga of nobody is grey.", "c", agent="jay", ts=NOW - 9 * DAY),
    )
    await service.call(PERSON, "settle", api.SettleRequest())


@pytest.mark.parametrize(
    "question",
    ["Which colour has the quagga?", "Where did we mention the quagga?", "Tell me about the quagga", "What is new?",
     "What happened in November?", "Which colour had the quagga last week?"],
)  # fmt: skip
async def test_own_found_others_absent_shared_found(opened: Opener, question: str) -> None:
    async with opened(now=lambda: NOW) as service:
        await two_projects(service)

        own = await route(service, question, OWN, limit=10)
        all_ = await route(service, question, limit=10)

        def days(answer: api.RouteResponse) -> set[str]:
            return {pointer.day for pointer in answer.pointers if pointer.level in {"day", "segment"}}

        assert day(6) not in days(own)
        assert day(6) in days(all_)
        if "last week" not in question:
            assert {day(3), day(9)} <= days(own)
        assert not [hit for hit in own.hits if "theirs" in hit.text]
        for pointer in own.pointers:
            if pointer.level == "segment":
                await service.call(OWN, "toc", api.TocRequest(id=pointer.node))
            for grip in pointer.grips:
                await service.call(OWN, "grip", api.GripRequest(id=grip))
        teleported = await service.call(OWN, "teleport", api.TeleportRequest(query="quagga"))
        assert {pointer.day for pointer in teleported.pointers} == {day(3), day(9)}
        with pytest.raises(DeniedError):
            await route(service, question, OWN, project="other")


async def test_a_question_can_be_about_one_agent(opened: Opener) -> None:
    async with opened(now=lambda: NOW) as service:
        await two_projects(service)

        answer = await route(service, "Where did we mention the quagga?", agent="jay")

        assert {pointer.day for pointer in answer.pointers} == {day(6), day(9)}
        assert {agent for pointer in answer.pointers for agent in pointer.agents} == {"jay"}


def test_the_commands_route_and_teleport(shell: Shell) -> None:
    shell.json("ingest", stdin=EVENTS)

    answer = shell.json("route", "where did we decide about PostgreSQL?")
    assert answer["intent"] == "locate"
    [pointer] = answer["pointers"]
    assert pointer["level"] == "segment"
    assert [each["node"] for each in shell.json("teleport", "PostgreSQL", "--mode", "keyword")["pointers"]] == [
        pointer["node"]
    ]
    assert shell.json("route", "--layers")["tier"] == "keyword"
    code, shown, _ = shell.run("route", "--text", "where did we decide about PostgreSQL?")
    assert code == 0
    assert pointer["node"] in shown


def test_memory_routes(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        memory.ingest(
            [{"agent": "a", "session_id": "s", "type": "user_message", "text": "The lantern is green.", "ts": 1}]
        )
        memory.settle()
        assert memory.route("where did we mention the lantern?").pointers[0].day == "1970-01-01"
        assert memory.teleport("lantern", mode="keyword").pointers[0].level == "segment"
