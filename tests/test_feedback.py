"""Feedback is counted by who gives it, moves a memory a little, asks the person where it says wrong, and is undone."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from cli_shell import Shell
from mcp_clients import mounted, over_http, refused, said
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.lifecycle.trust import is_held_back
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError
from scrubjay_shared.records import Memory, MemoryDraft, Scope

pytestmark = pytest.mark.anyio
AGENT = Caller(principal=Principal.AGENT, agent="crow", project="own")


async def added(service: Application, text: str = "zebra stripes are white", **more: object) -> str:
    found: api.Entry = await service.call(
        PERSON, "add", MemoryDraft(content=text, name=text.split(maxsplit=1)[0], **more)
    )  # type: ignore[arg-type]
    return found.memory.id


def counted(path: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("select memory_id, agent, helped, missed from feedback order by agent").fetchall()


async def test_feedback_is_counted_by_who_gives_it_and_shown_together(service: Application, store_path: Path) -> None:
    ref = await added(service)
    for caller, helped in ((PERSON, True), (AGENT, True), (AGENT, True), (AGENT, False)):
        asked = api.FeedbackRequest(refs=("zebra", ref), helped=helped)
        done = await service.call(caller, "feedback", asked)
        assert (done.memories, done.helped) == ((ref,), helped)

    why = await service.call(PERSON, "why", api.RefRequest(ref=ref))
    assert (why.helped, why.missed) == (3, 1)
    assert counted(store_path) == [(ref, "", 1, 0), (ref, "crow", 2, 1)]


async def feedback(
    service: Application, ref: str, caller: Caller = AGENT, *, helped: bool = False, wrong: bool = False, **more: str
) -> api.FeedbackResponse:
    asked = api.FeedbackRequest(refs=(ref,), helped=helped, wrong=wrong, **more)  # type: ignore[arg-type]
    answer: api.FeedbackResponse = await service.call(caller, "feedback", asked)
    return answer


async def get(service: Application, ref: str) -> Memory:
    found: api.Entry = await service.call(PERSON, "get", api.RefRequest(ref=ref))
    return found.memory


async def test_an_agent_may_not_put_other_words_in_place_by_feedback(service: Application) -> None:
    ref = await added(service)
    own: api.Entry = await service.call(AGENT, "add", MemoryDraft(content="The okapi lives in hall two."))

    for memory in (ref, own.memory.id):
        with pytest.raises(DeniedError, match="memory_correct"):
            await feedback(service, memory, wrong=True, content="zebra stripes are black")

    assert (await get(service, ref)).superseded_by is None
    assert (await get(service, own.memory.id)).superseded_by is None


async def test_what_helped_comes_before_what_did_not_and_likeness_still_decides(service: Application) -> None:
    first, second = await added(service, "zebra one is here"), await added(service, "okapi one is here")
    near = await added(service, "gnu one is here indeed, it is the one")
    for number in range(20):
        agent = replace(AGENT, agent=f"crow {number}")
        await feedback(service, second, agent, helped=True)
        await feedback(service, first, agent)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="one is here"))
    order = [hit.id for hit in answer.hits]
    assert order.index(second) < order.index(first)
    [hit] = [hit for hit in answer.hits if hit.id == second]
    assert hit.parts["salience"] == pytest.approx(DEFAULT.recall.salience)
    asked = await service.call(PERSON, "recall", api.RecallRequest(query="gnu indeed"))
    assert asked.hits[0].id == near


async def test_one_agent_counts_a_few_times_and_many_within_the_band(service: Application) -> None:
    ref = await added(service)
    usual, policy = (await get(service, ref)).salience, DEFAULT.feedback

    for _ in range(3 * policy.counted):
        await feedback(service, ref, helped=True)
    once = (await get(service, ref)).salience
    for number in range(30):
        await feedback(service, ref, replace(AGENT, agent=f"crow {number}"), helped=True)

    assert once == pytest.approx(usual + policy.counted * policy.agent_step)
    assert (await get(service, ref)).salience == pytest.approx(usual + policy.band)
    assert counted_of(await service.call(PERSON, "why", api.RefRequest(ref=ref))) == (3 * policy.counted + 30, 0, 0)


async def test_an_agent_does_not_push_its_own_memory(service: Application) -> None:
    draft = MemoryDraft(content="mine", scope=Scope.PROJECT, resource_id="own", metadata={"agent": "crow"})
    ref = (await service.call(AGENT, "add", draft)).memory.id

    assert (await feedback(service, ref, helped=True)).changed == ()
    assert (await feedback(service, ref, replace(AGENT, agent="jay"), helped=True)).changed == (ref,)


async def test_what_an_agent_calls_wrong_is_asked_of_the_person_and_an_undo_takes_it_back(
    service: Application,
) -> None:
    draft = MemoryDraft(content="The port is 1.", scope=Scope.PROJECT, resource_id="own")
    ref = (await service.call(AGENT, "add", draft)).memory.id
    before = await get(service, ref)

    done = await feedback(service, ref, wrong=True)
    again = await feedback(service, ref, wrong=True)

    after = await get(service, ref)
    assert (after.review, after.archived_at) == ("waiting disputed", None)
    assert after.salience == pytest.approx(before.salience - DEFAULT.feedback.wrong_step)
    assert again.changed == ()
    await service.call(PERSON, "undo", api.UndoRequest(cause=done.cause or ""))
    undone = await get(service, ref)
    assert (undone.review, undone.salience) == (before.review, before.salience)


async def test_no_agent_takes_the_persons_word_out_of_use(service: Application) -> None:
    ref = await added(service)

    await feedback(service, ref, wrong=True)

    memory = await get(service, ref)
    assert memory.review == "disputed"
    assert memory.salience == pytest.approx(0.55)
    assert not is_held_back(memory.review)
    await service.call(PERSON, "decide", api.DecideRequest(refs=(ref,), accept=True))
    assert (await feedback(service, ref, replace(AGENT, agent="jay"), wrong=True)).changed == ()


async def test_what_the_person_calls_wrong_is_put_away_or_replaced(service: Application) -> None:
    gone, old = await added(service, "zebra stripes are red"), await added(service, "okapi legs are plain")

    done = await feedback(service, gone, PERSON, wrong=True)
    corrected = await feedback(service, old, PERSON, wrong=True, content="okapi legs are striped")

    assert (await get(service, gone)).archived_at is not None
    assert (await get(service, old)).superseded_by == corrected.corrected
    assert (await get(service, corrected.corrected or "")).content == "okapi legs are striped"
    await service.call(PERSON, "undo", api.UndoRequest(cause=done.cause or ""))
    assert (await get(service, gone)).archived_at is None


async def test_a_correction_is_the_persons_and_of_one_memory(service: Application) -> None:
    ref = await added(service)
    with pytest.raises(DeniedError):
        await feedback(service, ref, wrong=True, content="another")
    for wrong in (
        api.FeedbackRequest(refs=(ref,), helped=True, wrong=True),
        api.FeedbackRequest(refs=(ref,), helped=True, content="another"),
    ):
        with pytest.raises(InvalidError):
            await service.call(PERSON, "feedback", wrong)


def counted_of(why: api.WhyResponse) -> tuple[int, int, int]:
    return why.helped, why.missed, why.wrong


async def test_what_is_forgotten_leaves_no_feedback(service: Application, store_path: Path) -> None:
    ref = await added(service)
    await service.call(AGENT, "feedback", api.FeedbackRequest(refs=(ref,), helped=True))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))

    assert counted(store_path) == []


async def test_feedback_on_what_is_not_there_counts_nothing(service: Application, store_path: Path) -> None:
    ref = await added(service)
    with pytest.raises(NotFoundError):
        await service.call(AGENT, "feedback", api.FeedbackRequest(refs=(ref, "nothing"), helped=True))
    for refs in ((), ("zebra",) * 101):
        with pytest.raises(InvalidError, match="between 1 and 100"):
            await service.call(AGENT, "feedback", api.FeedbackRequest(refs=refs, helped=True))

    assert counted(store_path) == []


async def test_an_agent_gives_it_by_a_tool(service: Application, store_path: Path) -> None:
    ref = await added(service)
    async with mounted(service) as app, over_http(app, name="codex-mcp-client") as client:
        assert "helped" in await said(client, "memory_feedback", ids=f"m_{ref}", helped="yes")
        assert "helped 1, did not 0" in await said(client, "memory_get", ids=[ref])
        assert "helped" in await refused(client, "memory_feedback", ids=[ref], helped="maybe")

    assert counted(store_path) == [(ref, "codex", 1, 0)]


def test_the_person_gives_it_by_a_command(shell: Shell) -> None:
    ref = shell.json("add", "zebra stripes are white", "--name", "zebra")["memory"]["id"]
    assert shell.json("feedback", "zebra", "--not-helped")["memories"] == [ref]
    assert shell.json("why", "zebra")["missed"] == 1
    assert shell.json("feedback", ref, "--wrong")["wrong"] is True
    assert shell.json("get", ref)["memory"]["archived_at"]
