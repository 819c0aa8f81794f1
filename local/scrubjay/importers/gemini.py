"""Gemini CLI sessions: a line a record, later ones of the same id in place of earlier ones, and rewinds.

`{"$rewindTo": id}` takes back a message and all after it. `{"$set": {"messages": […]}}` says what the model is given
from now on, as after a compaction: it takes nothing back that the person said, and repeats what it keeps. Sessions of
before were one JSON object with `messages`. Results of tools stand twice; they are read from the calls alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from scrubjay.importers.echo import is_our_tool
from scrubjay.importers.parsing import (
    Parsed,
    SourceFormat,
    clean,
    counted,
    first,
    json_objects,
    json_value,
    millis,
    path_of,
)
from scrubjay.importers.talk import Session, called, joined, output, part_of, parts_of, spoken
from scrubjay.importers.typed import typed
from scrubjay_shared.records import EventDraft, EventType, Json, Role

AGENT = "gemini"
CONTEXT = ("<session_context>", "<state_snapshot>")
COMMANDS = ("/", "?")
"""How a prompt begins that is a command to the program: `/compress`, `?` for help."""

NOTICES = ("info", "error", "warning")


@dataclass(slots=True)
class Chat:
    """A session while it is read: its messages by id, in order, as they stand after all records so far."""

    id: str = ""
    is_helper: bool = False
    messages: dict[str, Json] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    taken_back: list[str] = field(default_factory=list)

    def read(self, record: Json) -> None:
        """Take in one record."""
        changed = part_of(record, "$set")
        if "$rewindTo" in record:
            self.rewind(clean(record.get("$rewindTo")))
        elif "$set" in record:
            if isinstance(changed.get("messages"), list):
                self.put(self.unsaid(changed["messages"]))
            self.skipped["bookkeeping"] += 1
        elif "projectHash" in record or isinstance(record.get("messages"), list):
            self.id = clean(record.get("sessionId")) or self.id
            self.is_helper = record.get("kind") == "subagent"
            self.put(record.get("messages") or [])
        else:
            self.put([record])

    def unsaid(self, messages: list[Any]) -> list[Any]:
        """Return messages without those that repeat an earlier one under another id."""
        known = Counter(alike(message) for key, message in self.messages.items())
        named = [message for message in messages if isinstance(message, dict) and message.get("id") in self.messages]
        known -= Counter(map(alike, named))
        found = []
        for message in messages:
            if isinstance(message, dict) and message not in named and known[alike(message)] > 0:
                known[alike(message)] -= 1
            else:
                found.append(message)
        return found

    def put(self, messages: Any) -> None:
        """Take in messages, each in place of an earlier one of its id."""
        for message in messages if isinstance(messages, list) else []:
            if not isinstance(message, dict):
                self.skipped["not_object"] += 1
            elif (found := clean(message.get("id"))) and clean(message.get("type")):
                self.messages[found] = message
            else:
                self.skipped["unknown"] += 1

    def rewind(self, message: str) -> None:
        """Take back a message and all after it; all of them, where it is not known, as the program does.

        Where a line before could not be read, it may have held that message: then nothing is taken back.
        """
        ids = list(self.messages)
        if message not in ids and self.skipped["bad_json"]:
            return
        gone = [self.messages.pop(each) for each in ids[ids.index(message) if message in ids else 0 :]]
        self.skipped["branch"] += len(gone)
        self.taken_back += [text for each in gone if clean(each.get("type")) == "user" and (text := shown(each))]


def parse_gemini(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a session. Never fails: what cannot be read is counted in `skipped`."""
    chat = Chat()
    for record in records(data, chat.skipped):
        chat.read(record)
    if chat.is_helper:
        return Parsed(format=SourceFormat.GEMINI, skipped=(("subagents", 1),))
    session = Session(agent=AGENT, id=chat.id or path_of(name).stem or AGENT, project=project)
    events = tuple(event for message in chat.messages.values() for event in said(session, message, chat.skipped))
    return Parsed(
        format=SourceFormat.GEMINI, events=events, skipped=counted(chat.skipped), taken_back=tuple(chat.taken_back)
    )


def shown(message: Json) -> str:
    """Return the words of a message, as the person was shown it: without the files that a mention pulled in."""
    return joined(parts_of(message.get("displayContent") or message.get("content")))


def alike(message: Any) -> tuple[str, str]:
    """Return what two records of one message have in common, whatever their ids."""
    return (clean(message.get("type")), shown(message)) if isinstance(message, dict) else ("", "")


def records(data: bytes, skipped: Counter[str]) -> Iterator[Json]:
    """Yield the records of a session: its lines, or the one object that it is."""
    try:
        whole = json_value(data)
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        yield whole
    else:
        yield from json_objects(data, skipped)


def said(session: Session, message: Json, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield what a message says: a prompt, or an answer and the results of its tools."""
    kind = clean(message.get("type"))
    if kind == "user":
        yield from prompt(session, message, skipped)
    elif kind == "gemini":
        yield from answer(session, message, skipped)
    else:
        skipped["system" if kind in NOTICES else "unknown"] += 1


def prompt(session: Session, message: Json, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield what the person typed."""
    parts = parts_of(message.get("displayContent") or message.get("content"))
    text = joined(parts)
    said = typed(spoken(text))
    if any("functionResponse" in part for part in parts):
        skipped["bookkeeping"] += 1
    elif said.startswith(CONTEXT):
        skipped["meta"] += 1
    elif said.startswith(COMMANDS):
        skipped["command"] += 1
    elif not said:
        skipped["reminder" if text else "empty"] += 1
    else:
        key = f"{session.id}:{clean(message.get('id'))}"
        ts = millis(message.get("timestamp"))
        yield session.event(EventType.USER_MESSAGE, Role.USER, said, ts=ts, key=key)


def answer(session: Session, message: Json, skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield the results of an answer's tools, then its words: the words come once the tools are done."""
    key, ts = f"{session.id}:{clean(message.get('id'))}", millis(message.get("timestamp"))
    skipped["thinking"] += bool(message.get("thoughts"))
    calls = message.get("toolCalls")
    text = joined(parts_of(message.get("content")))
    if text:
        yield session.event(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, ts=ts, key=key)
    for call in calls if isinstance(calls, list) else []:
        if not isinstance(call, dict):
            skipped["not_object"] += 1
            continue
        tool, call_id = clean(call.get("name")), clean(call.get("id"))
        printed = output(result_of(call))
        if is_our_tool(tool):
            skipped["recalled"] += 1
        elif not printed:
            skipped["empty"] += 1
        else:
            yield session.tool_result(
                tool,
                called(tool, call.get("args")),
                printed,
                ts=millis(call.get("timestamp")) or ts,
                call="",  # hooks have none
                key=f"{session.id}:{call_id}:output" if call_id else "",
                failed=call.get("status") == "error",
            )


def result_of(call: Json) -> str:
    """Return what a tool printed, as the model was given it; else as the person was shown it."""
    found = call.get("result")
    told = [part_of(part_of(part, "functionResponse"), "response") for part in found] if isinstance(found, list) else []
    texts = [first(response, "output", "content", "error") for response in told]
    return "\n".join(filter(None, texts)) or clean(call.get("resultDisplay"))
