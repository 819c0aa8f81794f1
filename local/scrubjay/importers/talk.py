"""What the readers of agents' sessions share: an event of a session, what a tool was asked, and what is not to be read.

Hosts put text into a session that nobody said: what a memory gave them (`echo`), and tags of their own around what was
said. Both are taken off before a text is stored, or a memory would be learnt again from its own recall.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scrubjay.importers.echo import unwrapped, without_echo
from scrubjay.importers.forms import Answered
from scrubjay.importers.parsing import clean, digest, first, json_value
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, EventType, Json, Role, Trust

TOLD = (
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
    "description",
    "prompt",
)
"""What a tool call was about, the surest first."""

SHELL_NOISE = re.compile(r"\n?<shellId: \w+ completed with exit code \d+>\s*\Z|\nProcess Group PGID: \d+\s*\Z")
"""What Copilot CLI and Gemini CLI put behind a shell's output."""

SHELLS = ("bash", "sh", "zsh")


def spoken(text: str) -> str:
    """Return a text without what hooks and memory put into it."""
    return without_echo(text).strip() if "<" in text or "&" in text or "\\u003" in text else text.strip()


def output(text: str) -> str:
    """Return what a tool printed, without a host's tags around it and what hooks added to it."""
    return SHELL_NOISE.sub("", spoken(unwrapped(spoken(text))))


def called(tool: str, given: Any) -> str:
    """Return what a tool was asked, in one heading: the command as in a shell, or the tool and its subject."""
    if not isinstance(given, dict):
        return ""
    asked = given.get("command") or given.get("cmd")
    if isinstance(asked, list) and all(isinstance(word, str) for word in asked):
        is_script = len(asked) == 3 and asked[0].rsplit("/", 1)[-1] in SHELLS and asked[1].startswith("-")
        asked = asked[2] if is_script else shlex.join(asked)
    if command := clean(asked):
        return f"$ {command}"
    return " ".join(filter(None, (tool, first(given, *TOLD))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session of an agent: what all of its events share. `source` is whose file tells of it, if not the agent's."""

    agent: str
    id: str
    project: str | None
    metadata: Json = field(default_factory=dict)
    source: str = ""

    def event(
        self,
        event: EventType,
        role: Role,
        text: str,
        *,
        ts: Millis | None,
        key: str = "",
        about: Json | None = None,
    ) -> EventDraft:
        """Return an event. `key` is what the source knows it by; without one, its time and its words have to do."""
        return EventDraft(
            agent=self.agent,
            session_id=self.id,
            type=event,
            role=role,
            text=text,
            project=self.project,
            ts=ts,
            trust=Trust.IMPORT,
            metadata={**self.metadata, **{name: value for name, value in (about or {}).items() if value}},
            dedupe_key=f"{self.source or self.agent}:{key or digest(self.id, str(ts), event.value, text)}",
        )

    def tool_result(
        self, tool: str, heading: str, said: str, *, ts: Millis | None, call: str, key: str = "", failed: bool = False
    ) -> EventDraft:
        """Return what a tool printed, headed by what it was asked."""
        text = f"{heading}\n{said}" if heading else said
        about: Json = {"tool": tool, "call_id": call, "is_error": failed}
        return self.event(EventType.TOOL_RESULT, Role.TOOL, text, ts=ts, key=key, about=about)

    def form(self, found: Sequence[Answered], *, ts: Millis | None, key: str) -> Iterator[EventDraft]:
        """Yield the questions of a form as the agent's words, and the answers as the person's."""
        for n, one in enumerate(found):
            if answer := spoken(one.answer):
                asked = EventType.ASSISTANT_MESSAGE
                yield self.event(asked, Role.ASSISTANT, one.asked, ts=ts, key=key and f"{key}:asked:{n}")
                yield self.event(EventType.USER_MESSAGE, Role.USER, answer, ts=ts, key=key and f"{key}:answered:{n}")


def parts_of(content: Any) -> list[Json]:
    """Return the parts of a message; a bare string is one part of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    listed = content if isinstance(content, list) else [content]
    return [
        {"type": "text", "text": part} if isinstance(part, str) else part
        for part in listed
        if isinstance(part, str | dict)
    ]


def joined(parts: list[Json]) -> str:
    """Return the texts of some parts, one a line."""
    return "\n".join(filter(None, (clean(part.get("text")) for part in parts))).strip()


def part_of(found: Any, key: str) -> Json:
    """Return an object within an object; {} where there is none."""
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as a list of one."""
    return value if isinstance(value, list) else [value]


def open_branch(parents: Mapping[str, str], last: str, when: Callable[[str], int]) -> list[str]:
    """Return the messages of a tree along the branch that was left open, from its beginning. A circle is cut open.

    `parents` names what each message answers, "" for nothing. `last` is a message of the branch, which goes on to the
    newest one below it; without one, it leads to the newest end. Only what has a rival on the branch is left out: where
    a message between two is missing, both pieces are read, the earlier one first. `when` is 0 for an unknown time.
    """
    places = {message: place for place, message in enumerate(parents)}
    children: dict[str, list[str]] = {}
    top: dict[str, str] = {}
    for message, parent in parents.items():
        children.setdefault(parent, []).append(message)
        walked: dict[str, None] = {}
        at = message
        while at in parents and at not in top and at not in walked:
            walked[at] = None
            at = parents[at]
        top.update(dict.fromkeys(walked, top.get(at) or at or f"\0{next(reversed(walked), '')}"))
    trees: dict[str, list[str]] = {}
    for message, root in top.items():
        trees.setdefault(root, []).append(message)

    def age(message: str) -> tuple[int, int]:
        return when(message), places[message]

    found: list[list[str]] = []
    for tree in trees.values():
        leaf = last if last in tree else max(tree, key=lambda each: (each not in children, age(each)))
        path: dict[str, None] = {}
        while leaf in parents and leaf not in path:
            path[leaf] = None
            leaf = parents[leaf]
        path = dict.fromkeys(reversed(path))
        while below := [each for each in children.get(next(reversed(path)), ()) if each not in path]:
            path[max(below, key=age)] = None
        found.append([*path])
    found.sort(key=lambda path: (min(filter(None, map(when, path)), default=0), places[path[0]]))
    return [message for path in found for message in path]


def whole_json(name: str, data: bytes) -> Any:
    """Return the JSON document that a file is. Raises InvalidError for what is none."""
    try:
        return json_value(data, strict=False)
    except ValueError as e:
        reason = "is nested too deeply" if "nested" in str(e) else "is not a whole JSON document"
        raise InvalidError(f"{name} {reason}", hint="export or download it again, then import that") from e
