"""Tools under the names of a toolkit that others have: memory-search, memory-add, memory-remove, memory-observe."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from scrubjay import api
from scrubjay.transports.mcp import reading_tools, writing_tools
from scrubjay.transports.mcp.answers import bare
from scrubjay.transports.mcp.tools import Arguments, Tool, ToolContext, Toolset
from scrubjay_shared.errors import InvalidError
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
    await context.operation("forget", api.ForgetRequest(ref=bare(asked.id)))
    return f"removed {asked.id}"


class Observe(Arguments, frozen=True):
    """Arguments of memory-observe."""

    scope: Literal["user", "project", "session"]
    content: str
    topic: str = ""


async def observe(context: ToolContext, asked: Observe) -> str:
    """Store one observation as this agent's: what `@observe SCOPE` is in an observer's answer.

    Raises InvalidError for the scope of a project or a session that is not known.
    """
    caller = context.caller
    if asked.scope != "session":
        draft = writing_tools.drafted(context, asked.content, MemoryType.FACT, asked.scope)
    elif caller.session_id:
        draft = replace(
            writing_tools.drafted(context, asked.content, MemoryType.FACT, "user"),
            scope=Scope.SESSION,
            resource_id=caller.session_id,
        )
    else:
        raise InvalidError("no session is known for this connection", hint="give scope=project or scope=user")
    found: api.Entry = await context.operation("add", replace(draft, topic=asked.topic or None))
    return f"{'observed' if found.created else 'already there:'} m_{found.memory.id} ({found.memory.scope})"


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
            description="Note one fact: project for what holds here, user for what holds everywhere, session for what "
            "is in progress.",
            arguments=Observe,
            run=observe,
            idempotent=True,
        ),
    ),
)
