"""Claude.ai's export: conversations, what it remembered of a person, and projects with their documents.

The words of a message are its blocks of text; `text` repeats them with thoughts and tools among them, and is read where
there are no blocks. Of prompts that were edited the branch counts that was left open. A long text that was pasted in is
an attachment with its words: it is kept as a note of the conversation, which nobody said. What Claude.ai remembered is
what a program concluded: notes, trusted as an import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrubjay.importers.notes import imported, short_name, source_key
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis, path_of
from scrubjay.importers.talk import Session, joined, listed, open_branch, parts_of, whole_json
from scrubjay_shared.records import EventDraft, EventType, Json, Kind, MemoryDraft, Role

AGENT = "claude-ai"
PERSONS = ("human", "user")
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
    left: list[str] = []
    for found in listed(whole_json(name, data)):
        if not isinstance(found, dict):
            skipped["not_object"] += 1
        elif isinstance(messages := found.get("chat_messages", found.get("messages")), list):
            events += said(found, messages, project, skipped, left)
        elif "conversations_memory" in found or "project_memories" in found:
            notes += remembered(found, project)
        elif "prompt_template" in found or isinstance(found.get("docs"), list):
            notes += documents(found, project, path_of(name).as_posix())
        else:
            skipped["bookkeeping" if "email_address" in found else "unknown"] += 1
    return Parsed(
        format=SourceFormat.CLAUDE_AI,
        events=tuple(events),
        memories=tuple(notes),
        skipped=counted(skipped),
        taken_back=tuple(left),
    )


def said(
    talk: Json, messages: list[Any], project: str | None, skipped: Counter[str], left: list[str]
) -> Iterator[EventDraft]:
    """Yield what was said in one conversation, in order; `left` takes what the person said on branches beside it."""
    session = Session(agent=AGENT, id=first(talk, "uuid", "id"), project=project)
    if not session.id:
        skipped["no_name"] += 1
        return
    when = millis(talk.get("created_at"))
    found = [message for message in messages if isinstance(message, dict)]
    skipped["not_object"] += len(messages) - len(found)
    branch = kept(found, clean(talk.get("current_leaf_message_uuid")))
    for number in set(range(len(found))) - set(branch):
        if text := words(found[number], Counter()):
            skipped["branch"] += 1
            left += [text] if first(found[number], "sender", "role") in PERSONS else []
    for number in branch:
        message = found[number]
        when = millis(message.get("created_at")) or when
        key = first(message, "uuid", "id")
        text, speaker = words(message, skipped), SPEAKERS.get(first(message, "sender", "role"))
        pasted = [each for name in ("attachments", "files") for each in listed(message.get(name) or [])]
        attached = [clean(each.get("extracted_content")) if isinstance(each, dict) else "" for each in pasted]
        skipped["attachment"] += sum(not each for each in attached)
        if text and speaker is not None:
            yield session.event(*speaker, text, ts=when, key=key)
        elif not any(attached):
            skipped["system" if text else "empty"] += 1
        for place, (each, material) in enumerate(zip(pasted, attached, strict=True)):
            if material:
                about: Json = {"source": clean(each.get("file_name"))}
                note_key = key and f"{key}:attached:{place}"
                yield session.event(EventType.NOTE, Role.SYSTEM, material, ts=when, key=note_key, about=about)


def kept(messages: list[Json], last: str) -> list[int]:
    """Return the messages, by number, of the branch that was left open; all of them where none names its parent."""
    parents = {
        first(message, "uuid", "id") or f"\0{n}": first(message, "parent_message_uuid")
        for n, message in enumerate(messages)
    }
    if len(parents) < len(messages) or not any(parents.values()):
        return [*range(len(messages))]
    numbers = {name: number for number, name in enumerate(parents)}
    times = [millis(message.get("created_at")) or 0 for message in messages]
    return [numbers[name] for name in open_branch(parents, last, lambda name: times[numbers[name]])]


def words(message: Json, skipped: Counter[str]) -> str:
    """Return the words of a message, and count what is beside them."""
    blocks = parts_of(message.get("content") or [])
    for block in blocks:
        kind = clean(block.get("type"))
        skipped["thinking" if kind == "thinking" else "other_block"] += kind not in ("text", "")
    return joined([block for block in blocks if block.get("type") in ("text", None)]) or clean(message.get("text"))


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
