"""Tools under the names of a toolkit that others have: memory-search, memory-add, memory-remove, memory-observe."""

from __future__ import annotations

from typing import Literal

from scrubjay import api
from scrubjay.transports.mcp import reading_tools, writing_tools
from scrubjay.transports.mcp.answers import bare
from scrubjay.transports.mcp.tools import Arguments, Tool, ToolContext, Toolset
from scrubjay.transports.mcp.writing_tools import still_in_copies
from scrubjay_shared.records import MemoryType, Scope


class Search(Arguments, frozen=True):
    """Arguments of memory-search."""

    query: str
    scope: Literal["", "user", "project"] = ""


async def search(context: ToolContext, asked: Search) -> str:
    """Return what answers a question."""
    return await reading_tools.search(context, reading_tools.Search(query=asked.query, scope=asked.scope))


class Add(Arguments, frozen=True):
    """Arguments of memory-add."""

    content: str
    scope: Literal["user", "project"]


async def add(context: ToolContext, asked: Add) -> str:
    """Store a memory of a scope."""
    draft = writing_tools.drafted(context, asked.content, MemoryType.FACT, asked.scope)
    found: api.Entry = await context.operation("add", draft)
    return f"{'added' if found.created else 'already there:'} m_{found.memory.id}"


class Remove(Arguments, frozen=True):
    """Arguments of memory-remove."""

    id: str


async def remove(context: ToolContext, asked: Remove) -> str:
    """Erase a memory. Raises NotFoundError where there is none."""
    done: api.ForgetResponse = await context.operation("forget", api.ForgetRequest(ref=bare(asked.id)))
    return f"removed {asked.id}{still_in_copies([done])}"


class Observe(Arguments, frozen=True):
    """Arguments of memory-observe."""

    scope: Literal["user", "project", "session"]
    content: str
    topic: str = ""


async def observe(context: ToolContext, asked: Observe) -> str:
    """Store one fact that the last turns say: what `@observe SCOPE` is in an observer's answer.

    Raises ConflictError where no turn says it.
    """
    request = api.ObserveRequest(scope=Scope(asked.scope), content=asked.content, topic=asked.topic or None)
    found: api.ObserveResponse = await context.operation("observe", request)
    memory = found.entry.memory
    return f"{'observed' if found.entry.created else 'already there:'} m_{memory.id} ({memory.scope})"


TOOLSET = Toolset(
    name="scrubjay-search-add-remove",
    instructions="Memory across sessions: memory-search before you ask, memory-add what should last, memory-remove "
    "what is wrong.",
    tools=(
        Tool(
            name="memory-search",
            title="Search memory",
            description="Search stored memories by meaning and words, in one scope or all.",
            arguments=Search,
            run=search,
            read_only=True,
        ),
        Tool(
            name="memory-add",
            title="Add a memory",
            description="Add a memory: user scope holds across projects, project scope in this one.",
            arguments=Add,
            run=add,
            idempotent=True,
        ),
        Tool(
            name="memory-remove",
            title="Remove a memory",
            description="Remove a stored memory by its id.",
            arguments=Remove,
            run=remove,
            destructive=True,
            idempotent=True,
        ),
        Tool(
            name="memory-observe",
            title="Observe a fact",
            description="Note one fact that was said in this session: project for what holds here, user for what holds "
            "everywhere, session for what is in progress. Not stored where no turn says it.",
            arguments=Observe,
            run=observe,
            idempotent=True,
        ),
    ),
)
