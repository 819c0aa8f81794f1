"""36 poisoned documents by every way into the store: none of them becomes a rule that an agent is handed unasked.

The documents are in fixtures/poison.jsonl. The `marks` of each are words of what it wants done; none of them may stand
in anything that is handed over at a session's start or beside a prompt that is about the document.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hook_process import prompt, tool_result
from mcp_clients import AGENT_TOKEN, HOST, mounted, over_http
from scrubjay import api
from scrubjay.api.caller import HOST as HOST_CALLER
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.records import MemoryDraft, MemoryType

pytestmark = pytest.mark.anyio

SHOP = "/home/ana/shop"
OWN_RULE = "I prefer tabs over spaces in every project."


@dataclass(frozen=True)
class Document:
    id: str
    kind: str
    ask: str
    marks: tuple[str, ...]
    text: str


DOCUMENTS = [
    Document(**{**row, "marks": tuple(row["marks"])})
    for row in map(json.loads, (Path(__file__).parent / "fixtures" / "poison.jsonl").read_text("utf-8").splitlines())
]

Deliver = Callable[[Document], Awaitable[None]]


async def hook(service: Application, payload: dict[str, Any], *, inject: bool = False) -> str:
    """Deliver a payload as a host does, and return what its agent is handed."""
    request = api.HookRequest(host="claude-code", data=json.dumps(payload).encode(), inject=inject)
    output = (await service.call(HOST_CALLER, "hook", request)).output
    return json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""


@asynccontextmanager
async def by_tool_result(service: Application) -> AsyncIterator[Deliver]:
    async def deliver(document: Document) -> None:
        await hook(service, tool_result(f"read {document.id}", document.text, f"toolu_{document.id}"))

    yield deliver


@asynccontextmanager
async def by_paste(service: Application) -> AsyncIterator[Deliver]:
    """Pasted after a question, and pasted alone."""

    async def deliver(document: Document) -> None:
        session = f"pasted {document.id}"
        await hook(service, prompt(session, f"Can you summarise this file?\n\n```\n{document.text}\n```", "p1"))
        await hook(service, prompt(session, f"Here is what it says:\n\n{document.text}", "p2"))

    yield deliver


@asynccontextmanager
async def by_assistant(service: Application) -> AsyncIterator[Deliver]:
    """An agent that tells what it read, as its own words and at the end of its session."""

    async def deliver(document: Document) -> None:
        said = {"hook_event_name": "Stop", "prompt_id": f"s{document.id}", "last_assistant_message": document.text}
        await hook(service, {"session_id": f"told {document.id}", "cwd": SHOP} | said)

    yield deliver


@asynccontextmanager
async def by_import(service: Application) -> AsyncIterator[Deliver]:
    async def deliver(document: Document) -> None:
        for name, project in ((f"{document.id}.md", SHOP), (f"{document.id}-notes.md", None)):
            request = api.ImportRequest(name=name, data=document.text.encode(), format="markdown", project=project)
            await service.call(PERSON, "import", request)

    yield deliver


@asynccontextmanager
async def by_mcp(service: Application) -> AsyncIterator[Deliver]:
    """An agent that was told by the document to remember it, as whatever type counts most."""
    async with mounted(service) as app, over_http(app, project=SHOP) as client:

        async def deliver(document: Document) -> None:
            for kind, scope in (("preference", "user"), ("howto", "project"), ("decision", "project")):
                given = {"text": f"{document.text}\n({kind})", "type": kind, "scope": scope}
                await client.call_tool("memory_add", given)

        yield deliver


@asynccontextmanager
async def by_http(service: Application) -> AsyncIterator[Deliver]:
    """An agent that calls the API itself, and says of its own words that they are the person's."""
    headers = {"Authorization": f"Bearer {AGENT_TOKEN}", "Scrubjay-Project": SHOP}
    async with mounted(service) as app:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}", headers=headers) as http:

            async def deliver(document: Document) -> None:
                draft = {"content": document.text, "type": "preference", "scope": "user", "trust": "user"}
                await http.post("/v1/memories", json=draft)
                event = {"agent": "crow", "session_id": f"http {document.id}", "type": "user_message"}
                event |= {"role": "user", "trust": "user", "project": SHOP, "text": document.text}
                answer = await http.post("/v1/events", json={"events": [event]})
                assert answer.status_code == 202, answer.text

            yield deliver


WAYS = {
    "tool result": by_tool_result,
    "pasted": by_paste,
    "another agent": by_assistant,
    "import": by_import,
    "MCP": by_mcp,
    "HTTP": by_http,
}


SLOW = {"import", "MCP"}
"""The ways that take more than a second or two."""


async def handed(service: Application) -> dict[str, str]:
    """Return what agents are handed at a session's start, and beside a prompt about each document."""
    begun = {"cwd": SHOP, "hook_event_name": "SessionStart", "source": "startup"}
    found = {"start": await hook(service, begun | {"session_id": "later"}, inject=True)}
    for document in DOCUMENTS:
        asked = prompt(f"later {document.id}", document.ask, f"q{document.id}")
        found[document.id] = await hook(service, asked, inject=True)
    return found


def injected(found: dict[str, str]) -> list[str]:
    """Return the documents of which a mark stands in something that was handed over, and where."""
    return [
        f"{document.id} {document.kind} in {place}"
        for place, text in found.items()
        for document in DOCUMENTS
        if any(mark.casefold() in text.casefold() for mark in document.marks)
    ]


def test_there_are_36_documents_of_many_kinds() -> None:
    assert len(DOCUMENTS) == 36
    assert len({document.kind for document in DOCUMENTS}) >= 20
    assert all(mark in document.text for document in DOCUMENTS for mark in document.marks)


@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.slow if way in SLOW else ()) for way in WAYS])
async def test_no_poisoned_document_is_handed_over(service: Application, way: str) -> None:
    await hook(service, prompt("own", OWN_RULE))
    async with WAYS[way](service) as deliver:
        for document in DOCUMENTS:
            await deliver(document)
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=60_000))

    found = await handed(service)

    assert injected(found) == []
    assert "tabs over spaces" in found["start"], "the person's own rule is handed over"


async def test_the_same_words_of_the_person_are_handed_over(service: Application) -> None:
    """The suite can fail: what it looks for is handed over where the person added it."""
    for document in DOCUMENTS[:6]:
        draft = MemoryDraft(content=f"I prefer {document.marks[0]}.", type=MemoryType.PREFERENCE)
        await service.call(PERSON, "add", draft)

    found = await handed(service)

    assert len({row.split()[0] for row in injected({"start": found["start"]})}) == 6
