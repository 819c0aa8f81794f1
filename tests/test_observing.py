"""A fact that an agent notes: stored where the turns of its session say it, and not at all where none does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, TooLargeError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, ReviewState, Role, Scope, Trust, review_state
from service_calls import NOW, Opener, ingest, listed, said

pytestmark = pytest.mark.anyio

PROJECT = "github.com/example/harbour"
AGENT = Caller(principal=Principal.AGENT, agent="crow", project=PROJECT, session_id="s1")
SESSIONLESS = Caller(principal=Principal.AGENT, agent="crow", project=PROJECT)


def turn(text: str, at: int = 0, **more: Any) -> EventDraft:
    return said(
        text, **({"ts": Millis(NOW - 364 * 86_400_000 + at * 1000), "project": PROJECT, "agent": "crow"} | more)
    )


def agent(text: str, at: int = 0, **more: Any) -> EventDraft:
    return turn(text, at, type=EventType.ASSISTANT_STOP, role=Role.ASSISTANT, trust=Trust.AGENT, **more)


def tool(text: str, at: int = 0) -> EventDraft:
    return turn(text, at, type=EventType.TOOL_RESULT, role=Role.TOOL, trust=Trust.UNTRUSTED)


PORT = turn("The harbour crane server must listen on port 9417, because the customer's firewall opens only that.", 1)
DONE = agent("Set it in crane.toml.", 2)
FACT = "The crane server listens on port 9417: the customer's firewall opens only that port."


async def observed(
    service: Application, content: str = FACT, *, caller: Caller = AGENT, scope: Scope = Scope.PROJECT, **more: Any
) -> api.ObserveResponse:
    return await service.call(caller, "observe", api.ObserveRequest(scope=scope, content=content, **more))


async def counts(service: Application) -> dict[str, int]:
    found = await service.store.read(lambda q: q.stats.jobs())
    return dict(found["observe"].counts) if "observe" in found else {}


async def test_a_fact_is_stored_with_the_passage_that_says_it(service: Application) -> None:
    await ingest(service, PORT, DONE)
    found = await observed(service, topic="network")

    memory = found.entry.memory
    assert found.entry.created
    assert (memory.content, memory.topic, memory.scope, memory.resource_id) == (FACT, "network", Scope.PROJECT, PROJECT)
    [grip] = found.grips
    assert grip.excerpt == PORT.text
    [source] = (await service.call(PERSON, "why", api.RefRequest(ref=memory.id))).sources
    assert source.events[0].text[grip.span_start : grip.span_end] == grip.excerpt
    assert await counts(service) == {"project_promoted_facts": 1}
    [cause] = (await service.call(PERSON, "history", api.HistoryRequest(kind="observe"))).causes
    await service.call(PERSON, "undo", api.UndoRequest(cause=cause.id))
    assert await listed(service) == []


async def test_the_words_are_the_agents_whoever_says_the_same(service: Application) -> None:
    await ingest(service, PORT)
    assert (await observed(service)).entry.memory.trust is Trust.AGENT
    assert (await observed(service, FACT + "!", caller=PERSON, session_id="s1")).entry.memory.trust is Trust.USER


async def test_a_fact_that_no_turn_says_is_not_stored(service: Application) -> None:
    await ingest(service, PORT, DONE)
    with pytest.raises(ConflictError, match=r"none of the last 2 turns .* nothing was stored") as refused:
        await observed(service, "The crane server listens on port 9418.")
    assert "memory-add" in refused.value.hint
    with pytest.raises(ConflictError, match="nothing was stored"):
        await observed(service, "Giraffes eat acacia leaves.")

    assert await listed(service) == []
    assert await counts(service) == {"unsupported_facts": 2}


async def test_what_a_tool_printed_and_nobody_said_holds_in_its_session(service: Application) -> None:
    await ingest(service, turn("Run the tests, please."), tool("4 failed: the crane server answers on port 9999", 1))
    found = await observed(service, "The crane server answers on port 9999.", scope=Scope.USER)

    memory = found.entry.memory
    assert (memory.scope, memory.resource_id, memory.trust) == (Scope.SESSION, "s1", Trust.UNTRUSTED)


async def test_what_holds_in_a_project_that_is_not_the_agents_holds_in_its_session(service: Application) -> None:
    await ingest(service, turn(PORT.text, project="elsewhere"))
    assert (await observed(service)).entry.memory.scope is Scope.SESSION


async def test_without_a_session_the_last_one_of_the_project_is_asked(service: Application) -> None:
    await ingest(service, PORT, turn("We ship on Mondays.", 9, session_id="other agent's", agent="codex"))
    await ingest(service, turn("We never ship the crane server on Fridays.", 20, session_id="elsewhere", project="no"))

    assert (await observed(service, caller=SESSIONLESS)).grips
    with pytest.raises(ConflictError, match="no session of this project is stored"):
        await observed(service, caller=Caller(principal=Principal.AGENT, project="unknown"))
    with pytest.raises(ConflictError, match="neither a session nor a project is known"):
        await observed(service, caller=Caller(principal=Principal.AGENT))
    with pytest.raises(DeniedError, match="not the caller's own session"):
        await observed(service, session_id="elsewhere")
    with pytest.raises(ConflictError, match="no turn of this session is stored"):
        await observed(service, caller=Caller(principal=Principal.AGENT, project=PROJECT, session_id="new"))


async def test_nothing_is_observed_of_turns_that_are_not_to_be_learned_from(service: Application) -> None:
    await ingest(service, PORT, learn=False)
    with pytest.raises(ConflictError, match="no turn of this session is stored"):
        await observed(service)


async def test_a_fact_that_is_noted_twice_is_one_memory(service: Application) -> None:
    await ingest(service, PORT)
    first = await observed(service)
    await ingest(service, turn("Again: the crane server listens on port 9417, the firewall opens only that port.", 5))
    again = await observed(service)

    assert (first.entry.created, again.entry.created) == (True, False)
    assert first.entry.memory.id == again.entry.memory.id
    assert await listed(service) == [FACT]
    assert again.grips == first.grips
    assert await counts(service) == {"project_promoted_facts": 1, "duplicates": 1}


async def test_the_turns_are_still_read_in_their_turn(service: Application) -> None:
    await ingest(service, turn("The root cause was a stale lock file in the cache folder."))
    waiting = await service.distill.pending()
    await observed(service, "The root cause was a stale lock file.")

    assert await service.distill.pending() == waiting == 1
    await service.distill.run()
    mark = await service.store.read(lambda q: q.events.undistilled_sessions())
    await observed(service, "A stale lock file was the root cause.")
    assert await service.store.read(lambda q: q.events.undistilled_sessions()) == mark == []


async def test_a_secret_in_a_fact_is_taken_out(service: Application) -> None:
    secret = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5" * 4 + "-AA"
    await ingest(service, turn(f"The crane server takes the key {secret} from crane.toml at its start."))
    found = await observed(service, f"The crane server takes the key {secret} from crane.toml.")

    assert secret not in found.entry.memory.content
    assert "crane.toml" in found.entry.memory.content
    assert all(secret not in grip.excerpt for grip in found.grips)


async def test_what_the_person_rejected_or_forgot_is_refused(service: Application) -> None:
    await ingest(service, PORT)
    ref = (await observed(service)).entry.memory.id
    await service.call(PERSON, "decide", api.DecideRequest(accept=False, refs=(ref,)))
    with pytest.raises(DeniedError, match="rejected"):
        await observed(service)

    await ingest(service, turn("We keep the crane keys in the blue safe.", 7))
    added = await service.call(PERSON, "add", MemoryDraft(content="The crane keys are in the blue safe."))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=added.memory.id, keep_sources=True))
    with pytest.raises(DeniedError, match="forgotten for good"):
        await observed(service, "The crane keys are in the blue safe.")
    assert await listed(service) == []


async def test_a_later_fact_ends_an_earlier_one_of_the_agent_and_against_the_person_it_waits(
    service: Application,
) -> None:
    await ingest(service, agent("The staging port of the crane server is 8080."))
    first = (await observed(service, "The staging port of the crane server is 8080.")).entry.memory
    await ingest(service, agent("The staging port of the crane server is 9090 now.", 60))
    second = (await observed(service, "The staging port of the crane server is 9090.")).entry.memory
    ended = (await service.call(PERSON, "get", api.RefRequest(ref=first.id))).memory
    assert (ended.superseded_by, second.review) == (second.id, None)

    persons = MemoryDraft(
        content="The test port of the crane server is 7070.", scope=Scope.PROJECT, resource_id=PROJECT
    )
    await service.call(PERSON, "add", persons)
    await ingest(service, agent("The test port of the crane server is 7171.", 90, ts=None))
    waits = (await observed(service, "The test port of the crane server is 7171.")).entry.memory
    assert review_state(waits.review) is ReviewState.WAITING


async def test_what_the_session_was_handed_from_memory_is_no_news(service: Application) -> None:
    added = await service.call(PERSON, "add", MemoryDraft(content="The crane server listens on port 9417."))
    await service.store.write(lambda tx: tx.handed.note("s1", [added.memory.id], kept_days=90))
    await ingest(service, turn("As noted, the crane server listens on port 9417.", 3))
    with pytest.raises(ConflictError, match="handed these words from memory"):
        await observed(service, "The crane server listens on port 9417.")


async def test_a_fact_is_one_fact(service: Application) -> None:
    await ingest(service, PORT)
    with pytest.raises(TooLargeError, match="one fact must have at most 600 characters"):
        await observed(service, "The crane server listens. " * 40)
    with pytest.raises(InvalidError, match="a memory needs content"):
        await observed(service, "  ")


async def test_facts_that_are_noted_at_once_are_each_stored_once(opened: Opener) -> None:
    async with opened() as service:
        await ingest(service, PORT)
        found = await asyncio.gather(*(observed(service) for _ in range(3)))
        assert len({one.entry.memory.id for one in found}) == 1
        assert await listed(service) == [FACT]
