"""/mcp as agents use it: the SDK's own client, in both eras of the protocol, on the daemon's real app and store."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import msgspec
import pytest
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette

from mcp_clients import (
    AGENT_TOKEN,
    HOOK_TOKEN,
    HOST,
    LEGACY,
    MODERN,
    MODES,
    PERSON_TOKEN,
    mounted,
    over_http,
    refused,
    said,
)
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite
from scrubjay.transports.mcp.clients import agent_named, client_of, session_of
from scrubjay.transports.mcp.memory_tools import INSTRUCTIONS, TOOLSET
from scrubjay.transports.mcp.reading_tools import Search
from scrubjay.transports.mcp.tools import Arguments, Tool, arguments, schema
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import EventDraft, EventType, Layer, MemoryDraft, MemoryType, Scope, Trust
from scrubjay_shared.text import estimate_tokens

pytestmark = pytest.mark.anyio
in_both_eras = pytest.mark.parametrize("era", MODES)

SCHEMA_TOKENS = 1_600
WORDS = "the cart store moved to SQLite WAL because the journal locked readers out"


@pytest.fixture
async def app(service: Application) -> AsyncIterator[Starlette]:
    async with mounted(service) as one:
        yield one


@pytest.fixture(scope="module")
async def bare_app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Starlette]:
    """The app over an empty store, for what stores nothing."""
    folder = tmp_path_factory.mktemp("bare")
    service = await Application.open(folder / "memory.db", models_dir=folder / "models", model="none")
    async with mounted(service) as one:
        yield one
    await service.close()


async def the_one_memory(service: Application) -> Any:
    [entry] = (await service.call(PERSON, "list", api.ListRequest())).entries
    return entry.memory


# What a client sees before it calls anything


@in_both_eras
async def test_both_eras_are_served_with_the_same_tools(bare_app: Starlette, era: str) -> None:
    async with over_http(bare_app, era=era) as client:
        assert client.protocol_version == era
        assert client.instructions == INSTRUCTIONS
        assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in TOOLSET.tools]
        assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {"recall", "decisions", "handoff"}
        assert (await client.list_resources()).resources == []
        templates = (await client.list_resource_templates()).resource_templates
        assert "memory://m/{id}" in {template.uri_template for template in templates}


async def test_the_tools_cost_a_model_at_most_1600_tokens(bare_app: Starlette) -> None:
    async with over_http(bare_app) as client:
        tools = (await client.list_tools()).tools

    given = [{"name": one.name, "description": one.description, "input_schema": one.input_schema} for one in tools]
    assert estimate_tokens(json.dumps(given, separators=(",", ":"), ensure_ascii=False)) <= SCHEMA_TOKENS


async def test_annotations_say_what_reads_what_destroys_and_that_nothing_leaves_the_machine(
    bare_app: Starlette,
) -> None:
    async with over_http(bare_app) as client:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    assert all(found is not None and found.open_world_hint is False for found in hints.values())
    assert {name for name, found in hints.items() if found and found.destructive_hint} == {"memory_forget"}
    reading = {name for name, found in hints.items() if found and found.read_only_hint}
    assert {"memory_search", "memory_get", "memory_status"} <= reading
    assert not reading & {"memory_add", "memory_correct", "memory_forget"}


@pytest.mark.parametrize("tool", TOOLSET.tools, ids=lambda tool: tool.name)
async def test_a_schema_has_no_union_no_reference_and_no_noise(tool: Tool) -> None:
    text = json.dumps(schema(tool.arguments))
    assert not re.search(r'"(anyOf|oneOf|\$ref|\$defs|title|default)":', text)
    assert schema(tool.arguments)["type"] == "object"


# What the tools do


@in_both_eras
async def test_what_is_added_is_found_read_corrected_and_forgotten(app: Starlette, era: str) -> None:
    async with over_http(app, era=era) as client:
        added = await said(client, "memory_add", text=WORDS, type="decision", topic="storage")
        [ref] = re.findall(r"m_\w{26}", added)
        found = await said(client, "memory_search", query="cart store")
        assert ref in found
        assert WORDS in found
        assert WORDS in await said(client, "memory_get", ids=[ref])
        replaced = await said(client, "memory_correct", id=ref, text="the cart store moved to PostgreSQL")
        [_, newer] = re.findall(r"m_\w{26}", replaced)
        assert f"replaced by {newer}" in await said(client, "memory_get", ids=[ref, newer])
        assert newer in await said(client, "memory_forget", id=newer)
        assert "nothing to forget" in await said(client, "memory_forget", id=newer)
        assert "1 memories" in await said(client, "memory_status")


@in_both_eras
async def test_what_an_agent_adds_is_an_agents_and_says_which(app: Starlette, service: Application, era: str) -> None:
    async with over_http(app, era=era, name="codex-mcp-client") as client:
        await said(client, "memory_add", text=WORDS)

    memory = await the_one_memory(service)
    assert memory.trust is Trust.AGENT
    assert memory.metadata["agent"] == "codex"
    assert (memory.scope, memory.resource_id) == (Scope.PROJECT, "own")
    hits = (await service.call(PERSON, "recall", api.RecallRequest(query="cart", agent="codex"))).hits
    assert [hit.id for hit in hits] == [memory.id]


@pytest.mark.parametrize("token", [PERSON_TOKEN, HOOK_TOKEN])
async def test_no_token_makes_more_than_an_agent_over_mcp(app: Starlette, service: Application, token: str) -> None:
    async with over_http(app, token=token) as client:
        await said(client, "memory_add", text=WORDS)

    assert (await the_one_memory(service)).trust is Trust.AGENT


async def test_what_is_about_the_person_holds_in_all_projects(app: Starlette, service: Application) -> None:
    async with over_http(app) as client:
        assert "all projects" in await said(client, "memory_add", text="Ana prefers tabs", type="preference")

    assert (await the_one_memory(service)).scope is Scope.USER


async def test_without_a_project_a_memory_of_one_is_refused_and_says_what_to_do(app: Starlette) -> None:
    async with over_http(app, project=None) as client:
        assert "scope=user" in await refused(client, "memory_add", text=WORDS, scope="project")
        assert "all projects" in await said(client, "memory_add", text=WORDS)


async def test_a_correction_of_the_persons_own_words_is_kept_beside_them(app: Starlette, service: Application) -> None:
    mine = await service.call(PERSON, "add", MemoryDraft(content="The office is in Graz"))
    async with over_http(app) as client:
        told = await said(client, "memory_correct", id=f"m_{mine.memory.id}", text="The office is in Vienna")
        assert "not yours to rewrite" in told
        assert "not rewrite" in await refused(client, "memory_correct", id=mine.memory.id, text="wrong")

    kept = await service.call(PERSON, "get", api.RefRequest(ref=mine.memory.id))
    assert kept.memory.content == "The office is in Graz"
    assert kept.memory.archived_at is None


async def test_what_is_wrong_is_put_away_and_the_person_can_have_it_back(app: Starlette, service: Application) -> None:
    async with over_http(app) as client:
        await said(client, "memory_add", text=WORDS)
        memory = await the_one_memory(service)
        await said(client, "memory_correct", id=f"m_{memory.id}", text="wrong")
        assert memory.id not in await said(client, "memory_search", query="cart store")

    runs = (await service.call(PERSON, "history", api.HistoryRequest())).causes
    await service.call(PERSON, "undo", api.UndoRequest(cause=runs[0].id))
    assert (await the_one_memory(service)).id == memory.id


async def test_identity_and_its_names_are_the_persons(app: Starlette, service: Application) -> None:
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Ana"))
    line = await the_one_memory(service)
    async with over_http(app) as client:
        for tool, given in (
            ("memory_forget", {"id": f"m_{line.id}"}),
            ("memory_correct", {"id": f"m_{line.id}", "text": "wrong"}),
        ):
            assert "only the person" in await refused(client, tool, **given)
        await said(client, "memory_correct", id=f"m_{line.id}", text="The person is called Eve")

    context = await service.call(PERSON, "context", api.ContextRequest())
    assert context.identity == {"name": "Ana"}
    assert (await service.call(PERSON, "get", api.RefRequest(ref=line.id))).memory.layer is Layer.IDENTITY


async def test_a_search_pages_through_all_hits_once_and_in_order(app: Starlette, service: Application) -> None:
    for number in range(12):
        await service.call(PERSON, "add", MemoryDraft(content=f"zebra note number {number} about stripes"))
    async with over_http(app) as client:
        whole = re.findall(r"(?<!see )m_\w{26}", await said(client, "memory_search", query="zebra", limit=12))
        seen, cursor = [], ""
        while True:
            page = await said(client, "memory_search", query="zebra", limit=5, cursor=cursor)
            seen += re.findall(r"(?<!see )m_\w{26}", page)
            more = re.search(r"more: cursor=(\d+)", page)
            if more is None:
                break
            cursor = more[1]
        assert "no more hits" in await said(client, "memory_search", query="zebra", cursor="90")
        assert "not a cursor" in await refused(client, "memory_search", query="zebra", cursor="x")

    assert len(whole) == 12
    assert seen == whole


@pytest.mark.parametrize("max_tokens", [120, 150, 400, 3_000])
async def test_an_answer_never_costs_more_than_max_tokens(
    app: Starlette, service: Application, max_tokens: int
) -> None:
    for number in range(8):
        long = " ".join(f"zebra {number} stripe{word}" for word in range(120))
        await service.call(PERSON, "add", MemoryDraft(content=long, type=MemoryType.FACT))
    ids = [entry.memory.id for entry in (await service.call(PERSON, "list", api.ListRequest())).entries]
    async with over_http(app) as client:
        found = await said(client, "memory_search", query="zebra", limit=8, max_tokens=max_tokens)
        read = await said(client, "memory_get", ids=ids, detail="full", max_tokens=max_tokens)

    for text in (found, read):
        assert estimate_tokens(text) <= max_tokens
        assert "zebra" in text


async def test_a_search_is_narrowed_by_time_agent_and_scope(app: Starlette, service: Application) -> None:
    drafts = tuple(
        EventDraft(agent=agent, session_id=agent, type=EventType.USER_MESSAGE, text=f"zebra said by {agent}", ts=ts)
        for agent, ts in (("codex", 1_700_000_000_000), ("gemini", 1_760_000_000_000))
    )
    await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=False))
    await service.call(
        PERSON, "add", MemoryDraft(content="zebra of the project", scope=Scope.PROJECT, resource_id="own")
    )
    async with over_http(app) as client:
        assert "by codex" not in await said(client, "memory_search", query="zebra", agent="gemini")
        in_2023 = await said(client, "memory_search", query="zebra", when="November 2023")
        assert "by codex" in in_2023
        assert "by gemini" not in in_2023
        of_project = await said(client, "memory_search", query="zebra", scope="project")
        assert "of the project" in of_project
        assert "is not a time" in await refused(client, "memory_search", query="zebra", when="gurk")


async def test_an_event_is_shown_with_who_said_it_and_can_be_forgotten(app: Starlette, service: Application) -> None:
    draft = EventDraft(agent="codex", session_id="s", type=EventType.USER_MESSAGE, text="zebra crossing at nine")
    await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,), learn=False))
    async with over_http(app) as client:
        found = await said(client, "memory_search", query="zebra")
        [ref] = re.findall(r"e_\w{26}", found)
        assert "user" in found
        assert ref in await said(client, "memory_forget", id=ref)
        assert ref not in await said(client, "memory_search", query="zebra")


async def test_an_event_and_a_memory_are_read_with_what_was_said_around_them(
    app: Starlette, service: Application
) -> None:
    texts = ("good morning", "we decided to use SQLite WAL for the cart store", "and the tests", "are green now")
    drafts = tuple(
        EventDraft(agent="codex", session_id="s", type=EventType.USER_MESSAGE, text=text, ts=1_760_000_000_000 + n)
        for n, text in enumerate(texts)
    )
    ids = (await service.call(PERSON, "ingest", api.IngestRequest(events=drafts))).ids
    await service.call(PERSON, "settle", api.SettleRequest())
    learned = (await service.call(PERSON, "list", api.ListRequest())).entries[0].memory
    async with over_http(app) as client:
        event = await said(client, "memory_get", ids=f"e_{ids[1]}", before=1)
        assert texts[0] in event
        assert f"> user, 2025-10-09, codex: {texts[1]} (e_{ids[1]})" in event
        assert texts[2] not in event
        memory = await said(client, "memory_get", ids=[f"m_{learned.id}"], after=2)
        for ref in (f"[{learned.id[-6:]}]", f"[m_{learned.id}]", f" [{learned.id}] "):  # as a start shows it
            assert learned.content in await said(client, "memory_get", ids=[ref])
        assert f"e_{ids[1]}" in await said(client, "memory_get", ids=[f"[e_{ids[1]}]"])
        assert all(text in memory for text in texts[1:])
        assert texts[0] not in memory
        assert "there is no passage" in await refused(client, "memory_get", ids=["e_01M84DG8N9QK6ED6NGVV3W35Q7"])


async def told(service: Application, texts: Sequence[str]) -> tuple[str, ...]:
    drafts = tuple(
        EventDraft(agent="codex", session_id="s", type=EventType.USER_MESSAGE, text=text, ts=1_760_000_000_000 + n)
        for n, text in enumerate(texts)
    )
    return (await service.call(PERSON, "ingest", api.IngestRequest(events=drafts))).ids


TURNS = (
    "good morning to all",
    "readers were locked out " + "again and again " * 60,
    "so what keeps the carts?",
    "we decided to use SQLite WAL for the cart store",
    "and the tests are green",
    "see you next week",
    "a cat walked by",
)


async def test_what_is_opened_stands_between_two_turns_to_each_side_that_are_shortened(
    app: Starlette, service: Application
) -> None:
    ids = await told(service, TURNS)
    await service.call(PERSON, "settle", api.SettleRequest())
    learned = (await service.call(PERSON, "list", api.ListRequest())).entries[0].memory
    async with over_http(app) as client:
        event = await said(client, "memory_get", ids=[f"e_{ids[3]}"])
        memory = await said(client, "memory_get", ids=[f"m_{learned.id}"])
        alone = await said(client, "memory_get", ids=[f"e_{ids[3]}"], before=0)
        full = await said(client, "memory_get", ids=[f"m_{learned.id}"], detail="full")

    assert re.findall(r"\(e_(\w{26})\)", event) == [*ids[1:6]]
    assert re.findall(r"\(e_(\w{26})\)", memory) == [ids[3], ids[1], ids[2], ids[4], ids[5]]
    for text in (event, memory):
        assert re.search(
            r"^· user, 2025-10-09, codex: readers were locked out .{300,400} \[…\] \(e_", text, re.MULTILINE
        )
    assert f"> user, 2025-10-09, codex: {TURNS[3]} (e_{ids[3]})" in event
    assert re.findall(r"\(e_(\w{26})\)", alone) == re.findall(r"\(e_(\w{26})\)", full) == [ids[3]]


async def test_turns_around_take_no_room_from_what_was_asked_for(app: Starlette, service: Application) -> None:
    ids = await told(service, [f"turn {n}: " + "zebras are striped " * 18 for n in range(30)])
    opened = [ids[n] for n in (4, 14, 24)]
    async with over_http(app) as client:
        for max_tokens in (500, 900, 2_000, 3_000):
            text = await said(client, "memory_get", ids=[f"e_{one}" for one in opened], max_tokens=max_tokens)
            assert re.findall(r"^> .*\(e_(\w{26})\)$", text, re.MULTILINE) == opened
            assert estimate_tokens(text) <= max_tokens
            assert "cut to max_tokens" not in text
        assert text.count("\n· ") == 12


async def test_the_timeline_is_walked_down_to_what_was_said(app: Starlette, service: Application) -> None:
    drafts = tuple(
        EventDraft(agent="codex", session_id=f"s{n}", type=EventType.USER_MESSAGE, text=text, ts=1_760_000_000_000 + n)
        for n, text in enumerate(
            ("we decided to use SQLite WAL for the cart store because readers were locked out",) * 2
        )
    )
    await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=False))
    await service.call(PERSON, "run_job", api.JobRequest(name="toc"))
    async with over_http(app) as client:
        at = ""
        for level in ("year", "month", "week", "day", "segment"):
            shown = await said(client, "memory_timeline", at=at)
            at = re.findall(rf"toc:{level}:[\w-]+", shown)[0]
        segment = await said(client, "memory_timeline", at=at)
        assert "up: toc:day:2025-10-09" in segment
        [grip] = re.findall(r"grip:\w+:\d+-\d+", segment)
        assert "SQLite WAL" in await said(client, "memory_get", ids=[grip])
        assert at in await said(client, "memory_timeline", at="October 2025", level="segment")
        [read] = (await client.read_resource("memory://toc/day:2025-10-09")).contents
        assert at in getattr(read, "text", "")
        assert "nothing" in await said(client, "memory_timeline", at="March 2021")
        assert "is not a time" in await refused(client, "memory_timeline", at="gurk")
        assert "nothing was said" in await refused(client, "memory_timeline", at="toc:year:1999")


async def test_a_question_after_a_place_is_told_where_and_why_tells_how(app: Starlette, service: Application) -> None:
    draft = EventDraft(agent="codex", session_id="s", type=EventType.USER_MESSAGE, text=f"we decided: {WORDS}")
    await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,), learn=False))
    await service.call(PERSON, "run_job", api.JobRequest(name="toc"))
    async with over_http(app) as client:
        where = await said(client, "memory_search", query="where did we talk about the cart store?", why=True)
        assert re.search(r"^toc:segment:\w{26} · ", where, re.MULTILINE)
        assert "taken for: locate" in where
        assert WORDS in where
        assert "toc:" not in await said(client, "memory_search", query="which store does the cart use?")


async def test_one_id_of_several_that_is_missing_does_not_hide_the_others(app: Starlette, service: Application) -> None:
    mine = await service.call(PERSON, "add", MemoryDraft(content=WORDS))
    async with over_http(app) as client:
        both = await said(client, "memory_get", ids=[f"m_{mine.memory.id}", "m_01M84DG8N9QK6ED6NGVV3W35Q7"])
        assert WORDS in both
        assert "there is no memory" in both
        assert "there is no memory" in await refused(client, "memory_get", ids=["m_01M84DG8N9QK6ED6NGVV3W35Q7"])


async def test_a_memory_is_a_resource_too(app: Starlette, service: Application) -> None:
    mine = await service.call(PERSON, "add", MemoryDraft(content=WORDS))
    async with over_http(app) as client:
        [read] = (await client.read_resource(f"memory://m/{mine.memory.id}")).contents
        assert WORDS in getattr(read, "text", "")
        with pytest.raises(MCPError, match="there is no memory"):
            await client.read_resource("memory://m/01M84DG8N9QK6ED6NGVV3W35Q7")
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("file:///etc/passwd")


async def test_a_prompt_is_filled_in_and_names_the_tool(bare_app: Starlette) -> None:
    async with over_http(bare_app) as client:
        [message] = (await client.get_prompt("decisions", {"topic": "the {cart} store"})).messages
        assert "the {cart} store" in getattr(message.content, "text", "")
        assert "memory_search" in getattr(message.content, "text", "")
        with pytest.raises(MCPError, match="needs topic"):
            await client.get_prompt("decisions", {})


# What models get wrong


class Sample(Arguments, frozen=True):
    ids: list[str] = msgspec.field(default_factory=list)
    limit: int = 5
    text: str = ""


async def nothing(_: Any, __: Any) -> str:
    return ""


SAMPLE = Tool(name="sample", title="", description="", arguments=Sample, run=nothing)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, Sample()),
        ({"ids": "m_1"}, Sample(ids=["m_1"])),
        ({"limit": "7"}, Sample(limit=7)),
        ({"limit": None, "ids": None, "text": None}, Sample()),
        ({"limit": 7.0}, Sample(limit=7)),
    ],
)
async def test_arguments_are_read_as_models_write_them(given: dict[str, Any], read: Sample) -> None:
    assert arguments(SAMPLE, given) == read


@pytest.mark.parametrize("given", [{"limt": 7}, {"limit": "many"}, {"ids": 3}, {"text": ["a"]}, {"ids": [None]}])
async def test_arguments_that_mean_nothing_are_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match=r"limt|limit|ids|text"):
        arguments(SAMPLE, given)


async def test_a_wrong_call_is_an_answer_that_the_model_can_act_on(bare_app: Starlette) -> None:
    async with over_http(bare_app) as client:
        told = await refused(client, "memory_search", query="x", project="/etc")
        assert "project" in told
        assert "query" in told
        assert "needs a question" in await refused(client, "memory_search", query=" ")
        with pytest.raises(MCPError, match="memory_search"):
            await client.call_tool("memory_serch", {})


async def test_no_argument_of_a_tool_names_a_project_a_session_or_a_trust() -> None:
    named = {name for tool in TOOLSET.tools for name in schema(tool.arguments)["properties"]}
    assert not named & {"project", "session_id", "resource_id", "trust", "layer", "name", "aliases"}
    assert "query" in set(schema(Search)["properties"])


# Who comes in


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"host": "localhost:7377"}, 200),
        ({"host": "evil.example:7377"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:7377"}, 200),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_a_rebound_page_a_foreign_origin_and_no_token_stay_outside(
    bare_app: Starlette, change: dict[str, str], status: int, path: str
) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {AGENT_TOKEN}",
        "mcp-protocol-version": LEGACY,
    }
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=bare_app), base_url=f"http://{HOST}") as http:
        answer = await http.post(path, json=asked, headers=headers | change)

    assert answer.status_code == status


async def test_white_space_around_a_header_is_no_part_of_it(service: Application) -> None:
    """As the daemon's parser of HTTP leaves it: the headers of the protocol are compared with the body."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_status", "arguments": {}}}
    asked["params"]["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {AGENT_TOKEN}",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
    }
    async with mounted(service) as app:

        async def padded(scope: Any, receive: Any, send: Any) -> None:
            await app(scope | {"headers": [*scope["headers"], (b"mcp-name", b" memory_status \t")]}, receive, send)

        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=padded), base_url=f"http://{HOST}") as http:
            answer = (await http.post("/mcp", json=asked, headers=headers)).json()

    assert "0 memories" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/mcp", 405), ("DELETE", "/mcp/", 405), ("POST", "/mcp/x", 404)]
)
async def test_no_stream_is_kept_no_session_ended_and_no_other_path_served(
    bare_app: Starlette, method: str, path: str, status: int
) -> None:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=bare_app), base_url=f"http://{HOST}") as http:
        answer = await http.request(method, path, headers={"authorization": f"Bearer {AGENT_TOKEN}"})

    assert answer.status_code == status


async def test_without_its_libraries_the_daemon_says_what_to_install_and_serves_the_rest(
    service: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "scrubjay.transports.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    headers = {"authorization": f"Bearer {AGENT_TOKEN}"}
    async with (
        mounted(service) as app,
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=f"http://{HOST}", headers=headers) as http,
    ):
        answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert answer.status_code == 503
        assert "mcp_types is missing" in answer.json()["detail"]
        assert "install" in answer.json()["hint"]
        assert (await http.get("/v1/stats")).status_code == 200


def test_a_daemon_that_no_agent_asks_loads_nothing_of_mcp() -> None:
    program = (
        "import sys, scrubjay.daemon.process; "
        "print([name for name in ('mcp', 'mcp_types', 'pydantic', 'anyio._backends._asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Which agent a client is


@pytest.mark.parametrize("name", ["claude-code", "", "Ana's agent ✓", "x" * 500])
async def test_the_session_id_is_the_clients_name_and_nothing_else(name: str) -> None:
    given = session_of(name)
    assert given.isascii()
    assert given.isprintable()
    assert name.startswith(client_of(given) or "")
    assert client_of(given) or not name


@pytest.mark.parametrize("session", ["", "agent-%%%", "agent-____", "another", "agent-\u00e4"])
async def test_a_session_id_of_somebody_else_names_nobody(session: str) -> None:
    assert client_of(session) is None


@pytest.mark.parametrize(
    ("name", "agent"), [("copilot-cli", "copilot"), ("mine\n", "mine"), (" ", None), ("\u202e", None)]
)
async def test_a_client_is_known_by_the_name_of_its_agent(name: str, agent: str | None) -> None:
    assert agent_named(name) == agent


async def test_a_client_that_says_its_name_once_is_known_by_it_later(app: Starlette) -> None:
    assert MODERN != LEGACY
    async with over_http(app, era=LEGACY, name="gemini-cli-mcp-client") as client:
        assert "you are gemini" in await said(client, "memory_status")


async def test_of_an_archive_a_search_finds_what_is_in_it_and_that_is_corrected(
    app: Starlette, service: Application
) -> None:
    inside = [
        (await service.call(PERSON, "add", MemoryDraft(content=text, trust=Trust.AGENT))).memory.id
        for text in ("The relay zebra answers on port 8001.", "The relay heron answers on port 8002.")
    ]
    archive = "0" * 25 + "A"
    made = {Field.CONTENT: "2 memories, 2026-01-01:", Field.KIND: "archive", Field.METADATA: {"members": 2}}
    gone = {Field.ARCHIVED_AT: 1, Field.SUPERSEDED_BY: archive}
    writes = [MemoryWrite(memory_id=archive, fields=made | {Field.CREATED_AT: 1, Field.SCOPE: "user"})]
    writes += [MemoryWrite(memory_id=one, fields=gone) for one in inside]
    await service.store.write(lambda tx: tx.memories.write(writes), cause=service.store.new_cause("test"))
    async with over_http(app) as client:
        found = await said(client, "memory_search", query="zebra port", limit=1)
        assert f"m_{inside[0]} " in found
        assert "is an archive" in await refused(client, "memory_correct", id=f"m_{archive}", text="port 9001")
        assert len((await service.call(PERSON, "list", api.ListRequest())).entries) == 1
        await said(client, "memory_correct", id=f"m_{inside[0]}", text="The relay zebra answers on port 9001.")
        told = await said(client, "memory_search", query="zebra port")
        assert told.index("9001") < told.index("8001")
