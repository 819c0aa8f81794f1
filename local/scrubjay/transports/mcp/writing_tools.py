"""The tools that write: add, correct, forget, and whether what was found helped.

What an agent may, the operations decide: they are called as that agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from msgspec import Meta

from scrubjay import api, redaction
from scrubjay.lifecycle.consolidation import MEMBERS
from scrubjay.transports.mcp.answers import bare
from scrubjay.transports.mcp.tools import Arguments, ToolContext
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from scrubjay_shared.records import Kind, MemoryDraft, MemoryType, Scope

PERSONAL = frozenset({MemoryType.PREFERENCE, MemoryType.SELF, MemoryType.SOCIAL, MemoryType.BELIEF})
"""What is about the person rather than the project that they happened to say it in."""

WRONG = frozenset({"", "wrong"})


class Add(Arguments, frozen=True):
    """Arguments of memory_add."""

    text: Annotated[str, Meta(description="one statement, clear without this conversation")]
    type: Literal["decision", "preference", "insight", "goal", "fact", "howto", "self", "social"] = "fact"
    scope: Annotated[Literal["", "project", "user"], Meta(description="default project; user for preferences")] = ""
    topic: str = ""


async def add(context: ToolContext, asked: Add) -> str:
    """Store a memory as this agent's, of the agent's own project unless it is about the person."""
    draft = drafted(context, asked.text, MemoryType(asked.type), asked.scope)
    found: api.Entry = await context.operation("add", replace(draft, topic=asked.topic or None))
    where = "this project" if found.memory.scope is Scope.PROJECT else "all projects"
    if not found.created:
        known = redaction.defused(found.memory.content)[:200]  # another's words, perhaps
        return f"already known as m_{found.memory.id} ({where}): {known}"
    return f"remembered as m_{found.memory.id} ({found.memory.type}, {where})"


def drafted(context: ToolContext, text: str, kind: MemoryType, scope: str) -> MemoryDraft:
    """Return a memory as an agent adds it. Raises InvalidError for the scope of a project that is not known."""
    project = context.caller.project
    chosen = Scope(scope) if scope else Scope.PROJECT if project and kind not in PERSONAL else Scope.USER
    if chosen is Scope.PROJECT and not project:
        raise InvalidError("no project is known for this connection", hint="give scope=user")
    return MemoryDraft(
        content=text,
        type=kind,
        scope=chosen,
        resource_id=project if chosen is Scope.PROJECT else None,
        metadata={"agent": context.caller.agent} if context.caller.agent else {},
    )


class Correct(Arguments, frozen=True):
    """Arguments of memory_correct."""

    id: Annotated[str, Meta(description="m_… or a name")]
    text: Annotated[str, Meta(description='what holds now, or "wrong" if nothing does')]


async def correct(context: ToolContext, asked: Correct) -> str:
    """Let a new statement take a memory's place, or put away one that is wrong. The person can undo both."""
    ref = bare(asked.id)
    if asked.text.strip().lower() in WRONG:
        entry: api.Entry = await context.operation("update", api.UpdateRequest(ref=ref, archived=True))
        return f"m_{entry.memory.id} is put away: neither found nor listed any more; the person can undo it"
    old = (await context.operation("get", api.RefRequest(ref=ref))).memory
    if MEMBERS in old.metadata and old.kind is Kind.ARCHIVE:
        raise ConflictError(
            f"m_{old.id} is an archive of many memories", hint="name the one in it that memory_search found"
        )
    draft = drafted(context, asked.text, old.type, "project" if old.scope is Scope.PROJECT else "user")
    new: api.Entry = await context.operation("add", replace(draft, topic=old.topic))
    try:
        await context.operation("supersede", api.SupersedeRequest(ref=old.id, by=new.memory.id))
    except DeniedError:
        return (
            f"m_{old.id} is not yours to rewrite, so it stays; your correction is kept beside it as "
            f"m_{new.memory.id}. Tell the person: scrubjay supersede {old.id} {new.memory.id}"
        )
    return f"m_{old.id} is replaced by m_{new.memory.id}; the old one is kept as history"


class Feedback(Arguments, frozen=True):
    """Arguments of memory_feedback."""

    ids: Annotated[list[str], Meta(description="m_…")]
    helped: Literal["yes", "no", "wrong"]


async def feedback(context: ToolContext, asked: Feedback) -> str:
    """Count whether memories helped."""
    refs = tuple(bare(ref) for ref in asked.ids)
    done: api.FeedbackResponse = await context.operation(
        "feedback", api.FeedbackRequest(refs=refs, helped=asked.helped == "yes", wrong=asked.helped == "wrong")
    )
    words = "wrong, and the person will be asked" if done.wrong else "helped" if done.helped else "did not help"
    return f"noted of {', '.join(f'm_{ref}' for ref in done.memories)}: {words}"


class Forget(Arguments, frozen=True):
    """Arguments of memory_forget."""

    id: Annotated[str, Meta(description="m_… or e_…")]
    keep_sources: bool = False


async def forget(context: ToolContext, asked: Forget) -> str:
    """Erase a memory and its source words."""
    request = api.ForgetRequest(ref=bare(asked.id), keep_sources=asked.keep_sources)
    try:
        done: api.ForgetResponse = await context.operation("forget", request)
    except NotFoundError:
        return f"{asked.id[:60]} is not remembered: nothing to forget"
    gone = [f"m_{ref}" for ref in done.forgotten] + [f"e_{ref}" for ref in done.events]
    left = f"; {len(done.copies)} backups may still hold it: the person deletes those" if done.copies else ""
    return f"erased {', '.join(gone)} and {done.sources} source passages{left}{still_in_copies([done])}"


def still_in_copies(done: Sequence[api.ForgetResponse]) -> str:
    """Return what an agent is told of copies that still hold what it forgot; nothing where there are none."""
    blanks = [one.blanks for one in done if one.holding]
    if not blanks:
        return ""
    more = f" (and {len(blanks) - 1} more like it)" if len(blanks) > 1 else ""
    holding = max(one.holding for one in done)
    return f"; {holding} automatic copies still hold it: the person blanks those with `{blanks[0]}`{more}"
