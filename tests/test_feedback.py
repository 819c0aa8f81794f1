"""Feedback is counted by who gives it, shown by `why`, ranks nothing, and goes with the memory."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cli_shell import Shell
from mcp_clients import mounted, over_http, refused, said
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import MemoryDraft

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
        assert await service.call(caller, "feedback", asked) == api.FeedbackResponse(memories=(ref,), helped=helped)

    why = await service.call(PERSON, "why", api.RefRequest(ref=ref))
    assert (why.helped, why.missed) == (3, 1)
    assert counted(store_path) == [(ref, "", 1, 0), (ref, "crow", 2, 1)]


async def test_feedback_changes_neither_the_memory_nor_the_order_of_answers(service: Application) -> None:
    first, second = await added(service, "zebra one is here"), await added(service, "okapi one is here")
    before = await service.call(PERSON, "recall", api.RecallRequest(query="one is here"))
    memory = (await service.call(PERSON, "get", api.RefRequest(ref=second))).memory
    for _ in range(20):
        await service.call(AGENT, "feedback", api.FeedbackRequest(refs=(second,), helped=True))
        await service.call(AGENT, "feedback", api.FeedbackRequest(refs=(first,), helped=False))

    after = await service.call(PERSON, "recall", api.RecallRequest(query="one is here"))
    assert [(hit.id, hit.score) for hit in after.hits] == [(hit.id, hit.score) for hit in before.hits]
    assert (await service.call(PERSON, "get", api.RefRequest(ref=second))).memory.updated_at == memory.updated_at


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
    assert shell.json("feedback", "zebra", "--not-helped") == {"memories": [ref], "helped": False}
    assert shell.json("why", "zebra")["missed"] == 1
