"""Claude.ai's export: conversations, what it remembered of a person, and projects with their documents.

The words of a message are its blocks of text; `text` repeats them with thoughts and tools among them, and is read where
there are no blocks. What Claude.ai remembered is what a program concluded: notes, trusted as an import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrubjay.importers.notes import imported, short_name, source_key
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis, path_of
from scrubjay.importers.talk import Session, joined, listed, parts_of, whole_json
from scrubjay_shared.records import EventDraft, EventType, Json, Kind, MemoryDraft, Role

AGENT = "claude-ai"
SPEAKERS = {
    "human": (EventType.USER_MESSAGE, Role.USER),
    "user": (EventType.USER_MESSAGE, Role.USER),
    "assistant": (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT),
}


def parse_claude_ai(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read one file of an export. Raises InvalidError for what is no JSON; the rest is counted in `skipped`."""
    skipped: Counter[str] = Counter()
    events: list[EventDraft] = []
    notes: list[MemoryDraft] = []
    for found in listed(whole_json(name, data)):
        if not isinstance(found, dict):
            skipped["not_object"] += 1
        elif isinstance(messages := found.get("chat_messages", found.get("messages")), list):
            events += said(found, messages, project, skipped)
        elif "conversations_memory" in found or "project_memories" in found:
            notes += remembered(found, project)
        elif "prompt_template" in found or isinstance(found.get("docs"), list):
            notes += documents(found, project, path_of(name).as_posix())
        else:
            skipped["bookkeeping" if "email_address" in found else "unknown"] += 1
    return Parsed(format=SourceFormat.CLAUDE_AI, events=tuple(events), memories=tuple(notes), skipped=counted(skipped))


def said(talk: Json, messages: list[Any], project: str | None, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield what was said in one conversation, in order."""
    session = Session(agent=AGENT, id=first(talk, "uuid", "id"), project=project)
    if not session.id:
        skipped["no_name"] += 1
        return
    when = millis(talk.get("created_at"))
    for message in messages:
        if not isinstance(message, dict):
            skipped["not_object"] += 1
            continue
        when = millis(message.get("created_at")) or when
        blocks = parts_of(message.get("content") or [])
        for block in blocks:
            kind = clean(block.get("type"))
            skipped["thinking" if kind == "thinking" else "other_block"] += kind not in ("text", "")
        attached = [each for key in ("attachments", "files") for each in listed(message.get(key) or [])]
        skipped["attachment"] += len(attached)
        text = joined([block for block in blocks if block.get("type") in ("text", None)]) or clean(message.get("text"))
        speaker = SPEAKERS.get(first(message, "sender", "role"))
        if not text or speaker is None:
            skipped["system" if text else "empty"] += 1
            continue
        yield session.event(*speaker, text, ts=when, key=first(message, "uuid", "id"))


def remembered(found: Json, project: str | None) -> Iterator[MemoryDraft]:
    """Yield what Claude.ai remembered: of all conversations, and of each project."""
    by_project = found.get("project_memories")
    texts = {"": found.get("conversations_memory"), **(by_project if isinstance(by_project, dict) else {})}
    for key, said_ in texts.items():
        if text := clean(said_):
            called = "what Claude.ai remembered" + (f" of project {key}" if key else "")
            yield note(called, text, project, "memory", key)


def documents(found: Json, project: str | None, source: str) -> Iterator[MemoryDraft]:
    """Yield a project's instructions and its documents."""
    called = first(found, "name", "uuid") or "project"
    about = {"source": source, "created_at": found.get("created_at")}
    if text := first(found, "prompt_template", "description"):
        yield note(called, text, project, "project", first(found, "uuid") or called, **about)
    for doc in listed(found.get("docs") or []):
        if isinstance(doc, dict) and (text := clean(doc.get("content"))):
            title, key = first(doc, "filename", "uuid"), first(doc, "uuid", "filename")
            yield note(f"{called} / {title}", text, project, "document", first(found, "uuid") or called, key, **about)


def note(called: str, text: str, project: str | None, *place: str, **about: object) -> MemoryDraft:
    """Return a note of an export."""
    return imported(
        text,
        name=short_name(called),
        kind=Kind.NOTE,
        project=project,
        created_at=millis(about.get("created_at")),
        metadata={
            "source_key": source_key(SourceFormat.CLAUDE_AI, project, "", *place),
            "source": about.get("source") or SourceFormat.CLAUDE_AI.value,
            "heading": called,
        },
    )
