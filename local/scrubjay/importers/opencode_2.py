"""Sessions of OpenCode 2 as those of version 1: one reader reads both.

A message is an object of its own `type`: `user` with its `text`, `assistant` with the parts of its `content`, `shell`
for a command that the person ran, `compaction` with a `summary`; the rest is the program's. Messages follow each other
in the order in which they are written.
"""

from __future__ import annotations

from typing import Any

from scrubjay.importers.parsing import clean, first
from scrubjay.importers.talk import listed, part_of
from scrubjay_shared.records import Json

SYNTHETIC = ("synthetic", "skill")
BOOKKEEPING = ("agent-switched", "model-switched", "location-switched", "system", "idle")


def is_of_2(message: Any) -> bool:
    """Say whether a message is one of version 2: it has no `info`."""
    return isinstance(message, dict) and "info" not in message and isinstance(message.get("type"), str)


def as_version_1(session: Json) -> Json:
    """Return a session as version 1 would have written it. Its messages are numbered: there, ids order them."""
    given = session.get("messages")
    messages = given if isinstance(given, list) else []
    if not any(map(is_of_2, messages)):
        return session
    info = part_of(session, "info")
    place = clean(part_of(info, "location").get("directory"))
    reverted = clean(part_of(info, "revert").get("messageID"))
    numbers: dict[str, str] = {}
    found: list[Any] = []
    for number, message in enumerate(messages):
        if isinstance(message, dict):
            as_1 = message_of(message) if is_of_2(message) else message
            name = f"{number:09}"
            numbers.setdefault(clean(part_of(as_1, "info").get("id")), name)
            found.append({**as_1, "info": {**part_of(as_1, "info"), "id": name}})
        else:
            found.append(message)
    about = {"directory": clean(info.get("directory")) or place, "revert": {"messageID": numbers.get(reverted, "")}}
    return {**session, "info": {**info, **about}, "messages": found}


def message_of(message: Json) -> Json:
    """Return one message as version 1 would have written it."""
    kind, key = clean(message.get("type")), clean(message.get("id"))
    time = part_of(message, "time")
    info: Json = {"id": key, "role": "user" if kind == "user" else "assistant", "time": time}
    if kind == "user":
        files = [{"type": "file"} for _ in listed(message.get("files") or [])]
        parts: list[Json] = [{"id": key, "type": "text", "text": message.get("text")}, *files]
    elif kind == "assistant":
        parts = content_of(key, message.get("content"), time)
    elif kind == "shell":
        parts = [shell_of(key, message, time)]
    elif kind == "compaction" and clean(message.get("summary")) and message.get("status") in (None, "completed"):
        info["summary"] = True
        parts = [{"id": key, "type": "text", "text": message.get("summary")}]
    elif kind in SYNTHETIC:
        parts = [{"type": "text", "text": message.get("text"), "synthetic": True}]
    elif kind in BOOKKEEPING or kind == "compaction":
        parts = [{"type": kind}]
    else:  # of a version to come: counted as unknown, whatever it holds
        info["role"] = "unknown"
        parts = [{"type": "text", "text": kind or "?"}]
    return {"info": info, "parts": parts}


def content_of(key: str, content: Any, time: Json) -> list[Json]:
    """Return the parts of an answer. Words have no time of their own: they follow the tool before them."""
    given = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    last = len(given) - 1
    when = time.get("created")
    parts: list[Json] = []
    for number, part in enumerate(given):
        name = f"{key}:{number}"
        if part.get("type") == "tool":
            when = part_of(part, "time").get("completed") or when
            parts.append(tool_of(name, part, when))
        else:
            end = time.get("completed") or when if number == last else when
            parts.append({**part, "id": name, "time": {"end": end}})
    return parts


def tool_of(key: str, part: Json, when: Any) -> Json:
    """Return a tool's call with its result."""
    state = part_of(part, "state")
    return {
        "id": key,
        "type": "tool",
        "tool": first(part, "name", "tool"),
        "callID": first(part, "id", "callID"),
        "state": {
            **{name: state.get(name) for name in ("status", "input", "metadata")},
            "output": printed(state.get("content")) or clean(state.get("output")),
            "error": clean(part_of(state, "error").get("message")) or clean(state.get("error")),
            "time": {"end": when},
        },
    }


def shell_of(key: str, message: Json, time: Json) -> Json:
    """Return a command that the person ran as the call of a tool."""
    output = message.get("output")
    said = clean(output.get("output")) if isinstance(output, dict) else clean(output)
    state = {"input": {"command": message.get("command")}, "output": said, "time": {"end": time.get("completed")}}
    return {"id": key, "type": "tool", "tool": "shell", "callID": first(message, "callID", "shellID"), "state": state}


def printed(content: Any) -> str:
    """Return the words of what a tool gave back; files among them are left out."""
    texts = [clean(each.get("text")) for each in listed(content or []) if isinstance(each, dict)]
    return "\n".join(filter(None, texts))
