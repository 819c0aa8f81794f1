"""OpenCode sessions, as `opencode export` writes them: one object, `{"info", "messages": [{"info", "parts"}]}`.

Version 2 of the program writes messages without `info`, which are read as those of version 1 (`opencode_2`).

The program keeps them in a database (`scrubjay.containers.opencode`), of which the same objects are made. A part is a
text, a tool's call with its result, or bookkeeping; texts that the program added are marked `synthetic`. A session that
was taken back to a message names it in `revert`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scrubjay.importers.echo import is_our_tool
from scrubjay.importers.forms import answered, is_form
from scrubjay.importers.opencode_2 import as_version_1
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis
from scrubjay.importers.talk import Session, called, listed, output, part_of, spoken, whole_json
from scrubjay.importers.typed import refused, typed
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, EventType, Json, Role

AGENT = "opencode"
MADE_BY_1, MADE_BY_2 = f"{AGENT}:prt_", f"{AGENT}:msg_"
"""How keys begin of events that version 1 wrote down, and of those of version 2, which has no ids of parts."""


def parse_opencode(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read one session or a list of them. Raises InvalidError for what is no session; damage within one is counted."""
    found = whole_json(name, data)
    given = [each for each in listed(found) if is_session(each)]
    sessions = [as_version_1(each) for each in given]
    if not sessions:
        raise InvalidError(f"{name} holds no OpenCode session", hint="opencode export SESSION > FILE writes one")
    skipped: Counter[str] = Counter()
    left: list[str] = []
    events = tuple(event for each in sessions for event in turns(each, project, skipped, left))
    return Parsed(
        format=SourceFormat.OPENCODE,
        events=events,
        skipped=counted(skipped),
        taken_back=tuple(left),
        keys_begin=MADE_BY_1 if sessions == given else MADE_BY_2,
    )


def is_session(found: Any) -> bool:
    """Say whether a value is a session: it has an id, and messages."""
    return isinstance(found, dict) and bool(clean(part_of(found, "info").get("id"))) and "messages" in found


def turns(found: Json, project: str | None, skipped: Counter[str], left: list[str]) -> Iterator[EventDraft]:
    """Yield what a session says; `left` takes what of it the person took back.

    A helper's session, which has a parent, says nothing of a person.
    """
    info = part_of(found, "info")
    if clean(info.get("parentID")):
        skipped["subagents"] += 1
        return
    session = Session(agent=AGENT, id=clean(info.get("id")), project=project or clean(info.get("directory")) or None)
    revert = part_of(info, "revert")
    reverted, from_part = clean(revert.get("messageID")), clean(revert.get("partID"))
    given = found.get("messages")
    messages = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    skipped["not_object"] += (len(given) if isinstance(given, list) else 1) - len(messages)
    messages.sort(key=lambda each: clean(part_of(each, "info").get("id")))
    for message in messages:
        about = part_of(message, "info")
        if reverted and (taken_back := reverted_of(message, reverted, from_part)):
            skipped["branch"] += 1
            left += [text for part in taken_back if (text := clean(part.get("text"))) and about.get("role") == "user"]
            message["parts"] = [part for part in listed(message.get("parts") or []) if part not in taken_back]
        role, created = clean(about.get("role")), millis(part_of(about, "time").get("created"))
        parts = message.get("parts")
        for part in parts if isinstance(parts, list) else []:
            if not isinstance(part, dict):
                skipped["not_object"] += 1
            elif part.get("type") == "text":
                yield from words(session, role, part, created, skipped, is_summary=about.get("summary") is True)
            elif part.get("type") == "tool":
                yield from result(session, part, created, skipped)
            else:
                skipped["thinking" if part.get("type") == "reasoning" else "bookkeeping"] += 1


def reverted_of(message: Json, reverted: str, from_part: str) -> list[Json]:
    """Return the parts of a message that were taken back: all of a later one, of the named one those from a part on."""
    named = clean(part_of(message, "info").get("id"))
    parts = [part for part in listed(message.get("parts") or []) if isinstance(part, dict)]
    if named == reverted and from_part:
        return [part for part in parts if clean(part.get("id")) >= from_part]
    return parts if named >= reverted else []


def words(
    session: Session, role: str, part: Json, created: Millis | None, skipped: Counter[str], *, is_summary: bool
) -> Iterator[EventDraft]:
    """Yield what was typed or answered."""
    text = clean(part.get("text"))
    said = typed(spoken(text)) if role == "user" else text
    key, ts = clean(part.get("id")), millis(part_of(part, "time").get("end")) or created
    if part.get("synthetic") is True or part.get("ignored") is True:
        skipped["meta"] += 1
    elif not said:
        skipped["reminder" if text else "empty"] += 1
    elif role == "user":
        yield session.event(EventType.USER_MESSAGE, Role.USER, said, ts=created, key=key)
    elif role == "assistant" and is_summary:
        yield session.event(EventType.COMPACTION, Role.SYSTEM, said, ts=ts, key=key)
    elif role == "assistant":
        yield session.event(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, said, ts=ts, key=key)
    else:
        skipped["unknown"] += 1


def result(session: Session, part: Json, created: Millis | None, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield what a tool printed; not what one of our own said."""
    tool, state = clean(part.get("tool")), part_of(part, "state")
    printed = output(first(state, "output", "error"))
    if is_our_tool(tool):
        skipped["recalled"] += 1
    elif not printed:
        skipped["empty"] += 1
    else:
        key, ts = clean(part.get("id")), millis(part_of(state, "time").get("end")) or created
        found = answered(state.get("input"), state.get("metadata"), printed) if is_form(tool) else ()
        if found and state.get("status") != "error":
            yield from session.form(found, ts=ts, key=key)
            return
        failed = state.get("status") == "error"
        printed, said = refused(printed) if failed and "_" not in tool else (printed, "")  # a server's tool has one
        yield session.tool_result(
            tool,
            called(tool, state.get("input")),
            printed,
            ts=ts,
            call=clean(part.get("callID")),
            key=key,
            failed=failed,
        )
        if said := spoken(said):
            yield session.event(EventType.USER_MESSAGE, Role.USER, said, ts=ts, key=key and f"{key}:said")
