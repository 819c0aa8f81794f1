r"""Claude Code transcripts: one session as a tree of lines, read along the branch that was kept.

A line names its parent. A rewind makes a second child, and what hangs on the older one was taken back by the person;
so from the last message we walk up, and leave out every prompt beside that path with all that answers it (`branch`).
Tool calls that ran in parallel also lie beside the path; they hold no prompt and stay. A line whose parent is unknown
(resumed, compacted, or an older format) follows the line before it.

The vendor calls the format internal: a line we do not know is counted, never an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.importers.reading import (
    Parsed,
    SourceFormat,
    clean,
    counted,
    digest,
    first,
    json_objects,
    millis,
    path_of,
)
from scrubjay_shared.records import EventDraft, EventType, Json, Role, Trust

AGENT = "claude-code"
NOT_TYPED = (  # a user line that starts so was written by the program, not by the person
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<task-notification>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "Caveat:",
    "[Request interrupted",
    "This session is being continued from a previous conversation",
)
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
TOLD = ("file_path", "notebook_path", "path", "pattern", "url", "query", "description")  # what a tool call was about
TALK = ("user", "assistant")
NOT_PERSONS = frozenset(("system", "loop_wakeup", "schedule_wakeup", "poll_event"))
"""`promptSource` of prompts that a program made; a person's is "user", a script's "sdk", an older line has none."""

OURS = re.compile(r"mcp__(?:plugin_\w*_)?scrubjay__")
"""Tools that answer from this very memory: what they said is known, and learning it again would double it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the transcript: its place in the tree, and the events it holds (usually one or none).

    `message_id` is that of an assistant message, whose content blocks come as one line each.
    """

    uuid: str
    parent: str
    talk: bool
    prompt: bool = False
    message_id: str = ""
    drafts: tuple[EventDraft, ...] = ()


@dataclass(slots=True)
class Reading:
    """What must be carried from line to line: reasons for skipping, tool calls awaiting results, session projects."""

    name: str
    project: str | None
    skipped: Counter[str] = field(default_factory=Counter)
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    compacted: Json = field(default_factory=dict)

    def draft(self, found: dict[str, Any], event: EventType, role: Role, text: str, key: str) -> EventDraft:
        """Return an event of this line. Its project is the directory the session began in, unless one was given."""
        session = first(found, "sessionId", "session_id") or path_of(self.name).stem
        if cwd := clean(found.get("cwd")):
            self.homes.setdefault(session, cwd)
        branch = clean(found.get("gitBranch"))
        return EventDraft(
            agent=AGENT,
            session_id=session,
            type=event,
            role=role,
            text=text,
            project=self.project or self.homes.get(session),
            ts=millis(found.get("timestamp")),
            trust=Trust.IMPORT,
            metadata={"git_branch": branch} if branch else {},
            dedupe_key=f"{AGENT}:{key or digest(session, str(found.get('timestamp')), text)}",
        )

    def line(self, found: dict[str, Any]) -> Line:
        """Return what a line means. What it holds besides is counted in `skipped`."""
        kind = found.get("type")
        line = Line(
            uuid=clean(found.get("uuid")),
            parent=first(found, "parentUuid", "logicalParentUuid"),
            talk=kind in TALK,
        )
        if kind == "user":
            return self.user(found, line)
        if kind == "assistant":
            return self.assistant(found, line)
        if kind == "attachment":
            return self.attachment(found, line)
        if kind == "system":
            details = found.get("compactMetadata")
            if found.get("subtype") == "compact_boundary" and isinstance(details, dict):
                self.compacted = {k: v for k, v in details.items() if k in ("trigger", "preTokens") and v is not None}
        self.skipped[clean(kind) if kind in ("system", "summary") else "bookkeeping"] += 1
        return line

    def user(self, found: dict[str, Any], line: Line) -> Line:
        """Return a prompt, a compaction's summary, or results of tools."""
        blocks = self.blocks(found)
        text = "\n".join(clean(block.get("text")) for block in blocks if block.get("type") == "text").strip()
        if found.get("isCompactSummary"):
            if not text:
                self.skipped["empty"] += 1
                return line
            draft = self.draft(found, EventType.COMPACTION, Role.SYSTEM, text, line.uuid)
            draft, self.compacted = replace(draft, metadata={**draft.metadata, **self.compacted}), {}
            return replace(line, drafts=(draft,))
        if reason := not_a_message(found):
            self.skipped[reason] += 1
            return line
        if "toolUseResult" in found or any(block.get("type") == "tool_result" for block in blocks):
            self.skipped["tool_text"] += bool(text)
            return replace(line, drafts=tuple(self.results(found, blocks, line.uuid)))
        return self.prompt(found, line, text, images=any(block.get("type") == "image" for block in blocks))

    def prompt(self, found: dict[str, Any], line: Line, text: str, *, images: bool) -> Line:
        """Return what the person typed, or count why it is not that."""
        typed = REMINDER.sub("", text).strip()
        if typed.startswith(NOT_TYPED):
            self.skipped["interrupted" if typed.startswith("[Request") else "command"] += 1
            return line
        if not typed:
            self.skipped["reminder" if text else "image" if images else "empty"] += 1
            return replace(line, prompt=images)
        draft = self.draft(found, EventType.USER_MESSAGE, Role.USER, typed, line.uuid)
        return replace(line, prompt=True, drafts=(draft,))

    def results(self, found: dict[str, Any], blocks: list[dict[str, Any]], uuid: str) -> Iterator[EventDraft]:
        """Yield the results of tools in a user line, each headed by what was called."""
        for block in blocks:
            if block.get("type") != "tool_result":
                continue
            parts = content_blocks(block.get("content"))
            output = "\n".join(clean(part.get("text")) for part in parts if part.get("type") == "text").strip()
            if not output:
                self.skipped["image" if any(part.get("type") == "image" for part in parts) else "empty"] += 1
                continue
            call = clean(block.get("tool_use_id"))
            tool, heading = self.calls.get(call, ("", "")) if call else ("", "")
            if OURS.match(tool):
                self.skipped["recalled"] += 1
                continue
            text = f"{heading}\n{output}" if heading else output
            draft = self.draft(found, EventType.TOOL_RESULT, Role.TOOL, text, ":".join(filter(None, (uuid, call))))
            about: Json = {"tool": tool} if tool else {}
            if block.get("is_error") is True:
                about["is_error"] = True
            yield replace(draft, metadata={**draft.metadata, **about})

    def assistant(self, found: dict[str, Any], line: Line) -> Line:
        """Return the words of an answer; tool calls are remembered for their results, thinking is left out."""
        message = found.get("message")
        message = message if isinstance(message, dict) else {}
        if found.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            self.skipped["synthetic"] += 1
            return line
        texts = []
        for block in self.blocks(found):
            kind = block.get("type")
            if kind == "text":
                texts.append(clean(block.get("text")))
            elif kind == "tool_use":
                tool = clean(block.get("name"))
                self.calls[clean(block.get("id"))] = (tool, called(tool, block.get("input")))
            else:
                self.skipped["thinking" if kind in ("thinking", "redacted_thinking") else "other_block"] += 1
        text = "\n".join(filter(None, texts))
        message_id = clean(message.get("id"))
        if not text:
            return replace(line, message_id=message_id)
        draft = self.draft(found, EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, line.uuid)
        return replace(line, message_id=message_id, drafts=(draft,))

    def attachment(self, found: dict[str, Any], line: Line) -> Line:
        """Return a prompt that was typed while the agent was still working; other attachments are bookkeeping."""
        inner = found.get("attachment")
        if not isinstance(inner, dict) or inner.get("type") != "queued_command":
            self.skipped["bookkeeping"] += 1
            return line
        if inner.get("commandMode") not in (None, "prompt") or not_a_message({**found, **inner}):
            self.skipped["not_human"] += 1
            return line
        blocks = content_blocks(inner.get("prompt"))
        text = "\n".join(clean(block.get("text")) for block in blocks if block.get("type") == "text").strip()
        queued = self.prompt(found, line, text, images=any(block.get("type") == "image" for block in blocks))
        return replace(queued, prompt=False)  # it lies beside the path without having been taken back

    def blocks(self, found: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the content blocks of a line's message."""
        message = found.get("message")
        return content_blocks(message.get("content") if isinstance(message, dict) else message)


def parse_claude_code(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a transcript. Never fails: what cannot be read is counted in `skipped`."""
    reading = Reading(name=name, project=project)
    read: list[Line] = []
    seen: set[str] = set()
    for found in json_objects(data, reading.skipped):
        uuid = clean(found.get("uuid"))
        if uuid and uuid in seen:
            reading.skipped["duplicate"] += 1
        elif found.get("isSidechain") is True:
            reading.skipped["sidechain"] += 1
        else:
            seen.add(uuid)
            read.append(reading.line(found))
    taken_back = abandoned(read)
    reading.skipped["branch"] += sum(bool(line.drafts) for line in taken_back.values())
    events = tuple(merged(line for place, line in enumerate(read) if place not in taken_back))
    return Parsed(format=SourceFormat.CLAUDE_CODE, events=events, skipped=counted(reading.skipped))


def not_a_message(found: dict[str, Any]) -> str:
    """Return why a user line was not typed by the person, or the empty string."""
    origin = found.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    if found.get("isMeta"):
        return "meta"
    if found.get("isVisibleInTranscriptOnly"):
        return "transcript_only"
    return "" if kind in (None, "human") and found.get("promptSource") not in NOT_PERSONS else "not_human"


def content_blocks(content: Any) -> list[dict[str, Any]]:
    """Return message content as a list of blocks: a bare string is one block of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in content
        if isinstance(block, str | dict)
    ]


def called(tool: str, given: Any) -> str:
    """Return what a tool was asked, in one heading: the command as in a shell, or the tool and its subject."""
    if not isinstance(given, dict):
        return ""
    if command := clean(given.get("command")):
        return f"$ {command}"
    return " ".join(filter(None, (tool, first(given, *TOLD))))


def abandoned(read: list[Line]) -> dict[int, Line]:
    """Return the lines, by place, that lie on a branch the person left: at or below a prompt beside the kept path."""
    places: dict[str, int] = {}
    parents: dict[int, int | None] = {}
    last: int | None = None
    for i, line in enumerate(read):
        if line.uuid:
            parents[i] = places.get(line.parent, last)
            places[line.uuid] = last = i
    kept: set[int] = set()
    step = max((i for i in parents if read[i].talk), default=None)
    while step is not None:
        kept.add(step)
        step = parents[step]
    left: set[int] = set()
    for i, parent in parents.items():
        if i not in kept and (read[i].prompt or parent in left):
            left.add(i)
    return {i: read[i] for i in sorted(left)}


def merged(read: Iterator[Line]) -> Iterator[EventDraft]:
    """Yield the events in order, the text lines of one assistant message as one event under its last line's key.

    The last, because a transcript that was still being written is imported again later, and its new words must not
    be taken for the ones already known.
    """
    held: EventDraft | None = None
    held_id = ""
    for line in read:
        for draft in line.drafts:
            if held and held_id and line.message_id == held_id:
                held = replace(draft, text=f"{held.text}\n{draft.text}", ts=held.ts)
                continue
            if held:
                yield held
            held, held_id = draft, line.message_id
    if held:
        yield held
