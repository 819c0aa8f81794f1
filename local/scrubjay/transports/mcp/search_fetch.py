"""The two tools that ChatGPT's connectors ask for: search gives ids and titles, fetch the text of one. JSON as text."""

from __future__ import annotations

from typing import Any

import msgspec

from scrubjay import api, redaction
from scrubjay.transports.mcp import answers
from scrubjay.transports.mcp.answers import bare
from scrubjay.transports.mcp.tools import Answer, Arguments, Tool, ToolContext, Toolset

HITS = 20
TITLE_CHARS = 100


class Search(Arguments, frozen=True):
    """Arguments of search."""

    query: str


def _json(value: dict[str, Any]) -> Answer:
    return Answer(text=msgspec.json.encode(value).decode(), structured=value)


async def search(context: ToolContext, asked: Search) -> Answer:
    """Return the memories that answer a question: what can be fetched."""
    request = api.RecallRequest(query=asked.query, limit=HITS, kinds=("memory",))
    found: api.RecallResponse = await context.operation("recall", request)
    results = [{"id": f"m_{hit.id}", "title": _title(hit.text), "url": f"memory://m/{hit.id}"} for hit in found.hits]
    return _json({"results": results})


class Fetch(Arguments, frozen=True):
    """Arguments of fetch."""

    id: str


async def fetch(context: ToolContext, asked: Fetch) -> Answer:
    """Return one memory with its sources. Raises NotFoundError."""
    found: api.WhyResponse = await context.operation("why", api.RefRequest(ref=bare(asked.id)))
    memory = found.entry.memory
    pieces = answers.memory(found, context.utc_offset, full=True)
    about = {"type": memory.type.value, "date": answers.day(memory.created_at, context.utc_offset)}
    return _json(
        {
            "id": f"m_{memory.id}",
            "title": _title(memory.content),
            "text": redaction.defused("\n".join(pieces[1:])),
            "url": f"memory://m/{memory.id}",
            "metadata": about,
        }
    )


def _title(text: str) -> str:
    return redaction.defused(" ".join(text.split()))[:TITLE_CHARS]


TOOLSET = Toolset(
    name="scrubjay-search-fetch",
    instructions="The person's memory of work with all their agents: search it, then fetch what fits.",
    tools=(
        Tool(
            name="search",
            title="Search memory",
            description="Search the person's memories; returns ids, titles and addresses.",
            arguments=Search,
            run=search,
            read_only=True,
        ),
        Tool(
            name="fetch",
            title="Fetch a memory",
            description="The whole text of one memory by its id, with its sources.",
            arguments=Fetch,
            run=fetch,
            read_only=True,
        ),
    ),
)
