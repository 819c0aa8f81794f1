"""Work with agents is found as exchanges: what somebody asked, and what the agent said of it in the end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from ranking_world import POLICY, ask, event, index_of, memory
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.cli.render import hits as rendered
from scrubjay.index.documents import EventDoc
from scrubjay.policy import DEFAULT
from scrubjay.retrieval import handing
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.fusion import told_once
from scrubjay.service.application import Application
from scrubjay.transports.mcp import answers
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Role
from service_calls import ingest, said

pytestmark = pytest.mark.anyio

KINDS = {"u": ("user", "user_message"), "a": ("assistant", "assistant_message"), "t": ("tool", "tool_result")}


def turns(kinds: str, **more: str) -> list[EventDoc]:
    """Return a session: a turn a letter, named by its place."""
    return [
        event(f"{kind}{at}", "parser", order=at, speaker=KINDS[kind][0], type=KINDS[kind][1], **more)
        for at, kind in enumerate(kinds)
    ]


def sides(*docs: EventDoc, filters: Filters | None = None) -> dict[str, tuple[str, ...]]:
    """Return the other sides of what is found, by id."""
    return {hit.id: hit.beside for hit in ask(index_of(*docs), "parser", filters or Filters(), limit=999).hits}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("uatau", {"u0": ("a3",), "a1": ("u0",), "a3": ("u0",), "t2": (), "u4": ()}),
        ("aua", {"a0": (), "u1": ("a2",), "a2": ("u1",)}),
        ("uuaa", {"u0": (), "u1": ("a3",), "a2": ("u1",), "a3": ("u1",)}),
        ("utta", {"u0": ("a3",), "t1": (), "t2": (), "a3": ("u0",)}),
    ],
)
def test_the_other_side_is_what_was_asked_or_the_agents_last_word_on_it(
    kinds: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert sides(*turns(kinds)) == expected


def test_sessions_have_nothing_to_do_with_one_another() -> None:
    other = [turn._replace(id=f"other-{turn.id}", session_id="other") for turn in turns("aa")]

    assert sides(*turns("u"), *other) == {"u0": (), "other-a0": (), "other-a1": ()}


def test_where_people_talk_there_are_no_exchanges() -> None:
    assert set(sides(*turns("uuuau")).values()) == {()}


def test_no_other_side_is_shown_that_the_caller_does_not_see() -> None:
    asked, answered = turns("ua")
    hidden = (asked._replace(project="other"), answered._replace(project="mine"))

    assert sides(*hidden, filters=Filters(caller_project="mine")) == {"a1": ()}
    assert sides(*hidden) == {"u0": ("a1",), "a1": ("u0",)}


def test_it_is_looked_for_over_a_bounded_number_of_turns() -> None:
    reach = POLICY.agent_work.exchange
    near, far = turns("u" + "t" * (reach - 1) + "a"), turns("u" + "t" * reach + "aa")

    assert sides(*near)["u0"] == (near[-1].id,)
    assert sides(*far)["u0"] == ()


def test_a_memory_has_the_other_side_of_the_turn_that_it_was_read_from() -> None:
    read = memory("m", "lexer", sources=("u0",))
    answer = ask(index_of(*turns("uaa"), read), "lexer", apart=True)
    (hit,) = (one for one in answer.hits if one.kind == "memory")

    assert (hit.also, hit.beside) == (("u0",), ("a2",))


def test_what_an_exchange_above_shows_is_no_hit_of_its_own_and_is_not_shown_again() -> None:
    def hit(id_: str, *beside: str, kind: str = "event") -> Hit:
        return Hit(id=id_, kind=kind, score=1.0, parts={}, ts=0, beside=beside)

    found = told_once([hit("u0", "a2"), hit("a1", "u0"), hit("a2", "u0"), hit("m", "a2", "a5", kind="memory")])

    assert [(one.id, one.beside) for one in found] == [("u0", ("a2",)), ("a1", ()), ("m", ("a5",))]


def printed(what: RenderableType) -> str:
    console = Console(width=400, record=True, file=io.StringIO(), color_system=None)
    console.print(what)
    return console.export_text()


def agent(text: str) -> EventDraft:
    return said(text, type=EventType.ASSISTANT_MESSAGE, role=Role.ASSISTANT)


async def test_recall_shows_an_exchange_within_its_budget(service: Application) -> None:
    filler = "Nothing of note happened in this part of the log. " * 60
    await ingest(
        service,
        said("Where does the zebra sleep?"),
        agent("I look at the stables first."),
        agent(f"{filler}The zebra sleeps in stable nine. {filler}"),
        said("thanks"),
        learn=False,
    )

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="zebra sleep"))
    hit = answer.hits[0]
    own, other = hit.sources

    assert "stable nine" in hit.text
    assert other.text == "Where does the zebra sleep?"
    assert (own.event_id, own.beside, other.beside) == (hit.id, None, api.Beside.ASKED)
    assert (own,) == hit.read_from
    assert len(answer.hits) == 3  # the question is not told a second time
    assert answer.tokens <= DEFAULT.limits.recall_tokens
    assert f"answering user: “{other.text}”" in printed(rendered.hit(hit, 1))
    assert f"> answering user: {other.text}" in answers.hit(hit, 0, why=False)


async def test_of_a_long_other_side_the_passage_that_answers_is_shown(service: Application) -> None:
    filler = "Nothing of note happened in this part of the log. " * 60
    long = f"{filler}The zebra sleeps in stable nine. {filler}"
    await ingest(service, said("Where does the zebra sleep, in which stable?"), agent("Hm."), agent(long), learn=False)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="where does the zebra sleep"))
    others = {quote.event_id: quote.text for hit in answer.hits for quote in hit.sources if quote.beside is not None}

    assert all(len(text) < len(filler) / 4 for text in others.values())
    assert all("stable nine" in text for text in others.values() if len(text) > 100)


async def test_that_somebody_has_heard_is_no_answer_and_not_shown(service: Application) -> None:
    await ingest(service, said("The zebra sleeps in stable nine."), agent("OK, I will."), learn=False)
    await ingest(service, said("The zebra sleeps badly in stable ten."), agent("Of course."), learn=False)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="where does the zebra sleep"))
    beside = {hit.text: [quote.text for quote in hit.sources if quote.beside] for hit in answer.hits}

    assert beside["The zebra sleeps in stable nine."] == []
    assert beside["The zebra sleeps badly in stable ten."] == ["Of course."]


def test_no_agent_is_handed_the_other_side_unasked() -> None:
    asked = api.Quote(
        event_id="e", session_id="s", ts=Millis(1), utc_offset=0, speaker="user", text="zebra?", beside=api.Beside.ASKED
    )
    hit = api.Hit(
        id="m", kind="memory", text="Stable nine.", score=1.0, ts=Millis(1), type="fact", trust="user",
        sources=(asked,), confidence=0.9,
    )  # fmt: skip
    answer = api.RecallResponse(hits=(hit,), mode="hybrid", tokens=9, elapsed_ms=1.0, confidence=0.9)

    found = handing.recalled(answer, DEFAULT.handing, session_id="s", now=Millis(2), utc_offset=0, guessed={})

    assert ["Stable nine." in item.text for item in found] == [True]  # and not taken for the session's own words
    assert "zebra" not in found[0].text


async def test_a_forgotten_side_is_not_shown(service: Application) -> None:
    asked = await ingest(
        service, said("Where does the zebra sleep?"), agent("In stable nine, by the gate."), learn=False
    )
    await service.call(PERSON, "forget", api.ForgetRequest(ref=asked.ids[0]))

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="stable gate"))

    assert [hit.id for hit in answer.hits] == [asked.ids[1]]
    assert "zebra" not in str(answer)
