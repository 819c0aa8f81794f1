"""claude-mem: observations and summaries that a program wrote, and the prompts it wrote them of.

One object, as its export writes it: `{"observations", "sessions", "summaries", "prompts"}`; its database is read as the
same (`scrubjay.containers.claude_mem`). Prompts are turns of the agent's own sessions, and twins of what the agent's
transcripts tell. Observations and summaries become notes, trusted as an import.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from scrubjay.importers.notes import imported, source_key
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, digest, first, json_value, millis
from scrubjay.importers.talk import Session, listed, spoken, whole_json
from scrubjay.importers.typed import typed
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, EventType, Json, MemoryDraft, Role

AGENTS = {"": "claude-code", "claude": "claude-code", "gemini-cli": "gemini"}
SUMMARY = (
    ("request", "Asked"),
    ("investigated", "Looked into"),
    ("learned", "Learned"),
    ("completed", "Done"),
    ("next_steps", "Next"),
    ("notes", "Notes"),
)
"""What a summary of a session says, and how it is headed in the note."""

LISTS = ("observations", "summaries", "prompts", "sessions")


def parse_claude_mem(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read an export. Raises InvalidError for what is none; what cannot be read is counted in `skipped`."""
    whole = whole_json(name, data)
    if not isinstance(whole, dict) or not any(isinstance(whole.get(key), list) for key in LISTS):
        raise InvalidError(f"{name} is not an export of claude-mem", hint="import its claude-mem.db, or its export")
    skipped: Counter[str] = Counter()
    found = {key: objects(whole.get(key), skipped) for key in LISTS}
    sessions = {clean(each.get("content_session_id")): each for each in found["sessions"]}
    found["prompts"].sort(key=lambda each: (clean(each.get("content_session_id")), when(each) or 0))
    events = tuple(event for each in found["prompts"] if (event := prompt(each, sessions, project, skipped)))
    notes = [note for each in found["observations"] if (note := observation(each, project, skipped))]
    notes += [note for each in found["summaries"] if (note := summary(each, project, skipped))]
    once = {note.metadata["source_key"]: note for note in notes}
    skipped["duplicate"] += len(notes) - len(once)
    return Parsed(
        format=SourceFormat.CLAUDE_MEM, events=events, memories=tuple(once.values()), skipped=counted(skipped)
    )


def objects(value: Any, skipped: Counter[str]) -> list[Json]:
    """Return the objects of a list."""
    found = listed(value or [])
    skipped["not_object"] += sum(not isinstance(each, dict) for each in found)
    return [each for each in found if isinstance(each, dict)]


def prompt(found: Json, sessions: dict[str, Json], project: str | None, skipped: Counter[str]) -> EventDraft | None:
    """Return what the person typed, as the turn of the agent's session that it was."""
    session_id = clean(found.get("content_session_id"))
    text = typed(spoken(clean(found.get("prompt_text"))))
    if not (text and session_id):
        skipped["no_name" if text else "empty"] += 1
        return None
    of = sessions.get(session_id, {})
    platform = first(of, "platform_source") or clean(found.get("platform_source"))
    session = Session(
        agent=AGENTS.get(platform, platform),
        id=session_id,
        project=project or first(of, "project") or clean(found.get("project")) or None,
        source=SourceFormat.CLAUDE_MEM.value,
    )
    key = f"prompt:{session_id}:{found.get('prompt_number')}:{digest(text)[:8]}"
    return session.event(EventType.USER_MESSAGE, Role.USER, text, ts=when(found), key=key)


def observation(found: Json, project: str | None, skipped: Counter[str]) -> MemoryDraft | None:
    """Return what claude-mem observed: its title, what it told, and the facts."""
    title, facts = clean(found.get("title")), strings(found.get("facts"))
    told = first(found, "narrative", "text") or clean(found.get("subtitle"))
    lines = [title, told if told != title else "", *(f"- {fact}" for fact in facts)]
    text = "\n".join(filter(None, lines))
    if not text:
        skipped["empty"] += 1
        return None
    key = (clean(found.get("memory_session_id")), title, str(found.get("created_at_epoch")), digest(text)[:8])
    about: Json = {
        "type": clean(found.get("type")),
        "tags": strings(found.get("concepts")),
        "files": strings(found.get("files_modified")) or strings(found.get("files_read")),
    }
    return note(text, found, project, "observation", *key, **about)


def summary(found: Json, project: str | None, skipped: Counter[str]) -> MemoryDraft | None:
    """Return what claude-mem said of a whole session."""
    lines = [f"{called}: {text}" for key, called in SUMMARY if (text := clean(found.get(key)))]
    if not lines:
        skipped["empty"] += 1
        return None
    key = (clean(found.get("memory_session_id")), str(found.get("created_at_epoch")))
    return note("\n".join(lines), found, project, "summary", *key)


def note(text: str, found: Json, project: str | None, *place: str, **about: Any) -> MemoryDraft:
    """Return a note, of the project that claude-mem names where none was given."""
    owner = project or clean(found.get("project")) or None
    session = clean(found.get("memory_session_id"))
    return imported(
        text,
        project=owner,
        created_at=when(found),
        metadata={
            "source_key": source_key(SourceFormat.CLAUDE_MEM, owner, "", *place),
            "source": SourceFormat.CLAUDE_MEM.value,
            "session": session,
            **about,
        },
    )


def when(found: Json) -> Millis | None:
    """Return when a record was made."""
    return millis(found.get("created_at_epoch")) or millis(found.get("created_at"))


def strings(value: Any) -> list[str]:
    """Return a list of strings, which the database keeps as JSON."""
    if isinstance(value, str):
        try:
            value = json_value(value.encode(errors="replace"))
        except ValueError:
            return [clean(value)] if clean(value) else []
    return [text for each in listed(value or []) if (text := clean(each))]
