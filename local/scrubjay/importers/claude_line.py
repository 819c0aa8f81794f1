"""What a line of a Claude Code transcript says, as events. Looks at one line at a time, and at no tree.

The vendor calls the format internal: a line we do not know is counted, never an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.importers.echo import is_our_tool
from scrubjay.importers.forms import Answered, answered, is_form
from scrubjay.importers.parsing import (
    clean,
    digest,
    first,
    millis,
    path_of,
)
from scrubjay.importers.talk import called, listed, part_of, spoken
from scrubjay.importers.typed import refused, typed
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
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "Caveat:",
    "[Request interrupted",
    "This session is being continued from a previous conversation",
)
COMMAND = re.compile(r"/[\w:-]+")
"""A command to the program as it is typed, which says no more than its name."""

TALK = ("user", "assistant")
NOT_PERSONS = frozenset(("system", "loop_wakeup", "schedule_wakeup", "poll_event"))
"""`promptSource` of prompts that a program made; a person's is "user", a script's "sdk"; older lines lack it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedLine:
    """What one line holds: the events (usually one, or no event), and where it stands in the transcript's tree.

    `message_id` is that of an assistant message, whose content blocks come as one line each. `boundary` says that a
    compaction ended here, `preserved` names the first and the last line that it kept. `queue` is what was done to the
    queue of what is typed while the agent works.
    """

    uuid: str
    parent: str
    talk: bool
    prompt: bool = False
    message_id: str = ""
    drafts: tuple[EventDraft, ...] = ()
    boundary: bool = False
    queue: str = ""
    preserved: tuple[str, str] = ("", "")

    @property
    def stays(self) -> bool:
        """Whether prompts below it are its own: bookkeeping between a message and a prompt is passed over."""
        return self.talk or self.boundary


@dataclass(slots=True)
class LineMapper:
    """Maps lines to events, one after another, in the order in which the agent wrote them.

    Carried from line to line: why lines were skipped, tool calls that await their results, the project of each session.
    """

    name: str
    project: str | None
    skipped: Counter[str] = field(default_factory=Counter)
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)
    compacted: Json = field(default_factory=dict)

    def draft(self, record: dict[str, Any], event: EventType, role: Role, text: str, key: str) -> EventDraft:
        """Return an event of this line. Its project is the directory the session began in, unless one was given."""
        session = first(record, "sessionId", "session_id") or path_of(self.name).stem
        if cwd := clean(record.get("cwd")):
            self.projects.setdefault(session, cwd)
        branch = clean(record.get("gitBranch"))
        return EventDraft(
            agent=AGENT,
            session_id=session,
            type=event,
            role=role,
            text=text,
            project=self.project or self.projects.get(session),
            ts=millis(record.get("timestamp")),
            trust=Trust.IMPORT,
            metadata={"git_branch": branch} if branch else {},
            dedupe_key=f"{AGENT}:{key or digest(session, str(record.get('timestamp')), text)}",
        )

    def map(self, record: dict[str, Any]) -> MappedLine:
        """Return what a line means. What it holds besides is counted in `skipped`."""
        kind = record.get("type")
        line = MappedLine(uuid=clean(record.get("uuid")), parent=self.parent_of(record), talk=kind in TALK)
        if kind == "user":
            return self.user(record, line)
        if kind == "assistant":
            return self.assistant(record, line)
        if kind == "attachment":
            return self.attachment(record, line)
        if kind == "queue-operation":
            return self.queued(record, line)
        if kind == "system":
            line = self.boundary(record, line)
        self.skipped[clean(kind) if kind in ("system", "summary") else "bookkeeping"] += 1
        return line

    def parent_of(self, record: dict[str, Any]) -> str:
        """Return the line that a line names as the one before it; a compaction's has no other than a logical one."""
        return first(record, "parentUuid", "logicalParentUuid")

    def boundary(self, record: dict[str, Any], line: MappedLine) -> MappedLine:
        """Return the line, as the end of a compaction if it is one; its circumstances go with the summary to come."""
        if record.get("subtype") != "compact_boundary":
            return line
        details = part_of(record, "compactMetadata")
        self.compacted = {k: v for k, v in details.items() if k in ("trigger", "preTokens") and v is not None}
        kept = part_of(details, "preservedSegment")
        return replace(line, boundary=True, preserved=(clean(kept.get("headUuid")), clean(kept.get("tailUuid"))))

    def user(self, record: dict[str, Any], line: MappedLine) -> MappedLine:
        """Return a prompt, a compaction's summary, or results of tools."""
        blocks = self.blocks(record)
        text = "\n".join(clean(block.get("text")) for block in blocks if block.get("type") == "text").strip()
        if record.get("isCompactSummary"):
            if not text:
                self.skipped["empty"] += 1
                return line
            draft = self.draft(record, EventType.COMPACTION, Role.SYSTEM, text, line.uuid)
            draft, self.compacted = replace(draft, metadata={**draft.metadata, **self.compacted}), {}
            return replace(line, drafts=(draft,))
        if reason := not_a_message(record):
            self.skipped[reason] += 1
            return line
        if "toolUseResult" in record or any(block.get("type") == "tool_result" for block in blocks):
            self.skipped["tool_text"] += bool(text)
            return replace(line, drafts=tuple(self.results(record, blocks, line.uuid)))
        return self.prompt(record, line, text, images=any(block.get("type") == "image" for block in blocks))

    def prompt(self, record: dict[str, Any], line: MappedLine, text: str, *, images: bool) -> MappedLine:
        """Return what the person typed, or count why it is not that."""
        said = typed(spoken(text))
        if said.startswith(NOT_TYPED):
            self.skipped["interrupted" if said.startswith("[Request") else "command"] += 1
            return line
        if not said:
            self.skipped["reminder" if text else "image" if images else "empty"] += 1
            return replace(line, prompt=images)
        draft = self.draft(record, EventType.USER_MESSAGE, Role.USER, said, line.uuid)
        return replace(line, prompt=True, drafts=(draft,))

    def results(self, record: dict[str, Any], blocks: list[dict[str, Any]], uuid: str) -> Iterator[EventDraft]:
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
            if is_our_tool(tool):
                self.skipped["recalled"] += 1
                continue
            told = record.get("toolUseResult")
            if is_form(tool) and block.get("is_error") is not True and (found := answered(told, told, output)):
                yield from self.form(record, found, ":".join(filter(None, (uuid, call))))
                continue
            said = ""
            if turned_down(record, block, tool):
                output, said = refused(output)
            text, key = f"{heading}\n{output}" if heading else output, ":".join(filter(None, (uuid, call)))
            draft = self.draft(record, EventType.TOOL_RESULT, Role.TOOL, text, key)
            about: Json = {key: value for key, value in (("tool", tool), ("call_id", call)) if value}
            if block.get("is_error") is True:
                about["is_error"] = True
            yield replace(draft, metadata={**draft.metadata, **about})
            if said := spoken(said):
                yield self.draft(record, EventType.USER_MESSAGE, Role.USER, said, key and f"{key}:said")

    def form(self, record: dict[str, Any], found: Sequence[Answered], key: str) -> Iterator[EventDraft]:
        """Yield the questions of a form as the agent's words, and the answers as the person's."""
        for n, one in enumerate(found):
            if answer := spoken(one.answer):
                yield self.draft(record, EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, one.asked, f"{key}:asked:{n}")
                yield self.draft(record, EventType.USER_MESSAGE, Role.USER, answer, f"{key}:answered:{n}")

    def assistant(self, record: dict[str, Any], line: MappedLine) -> MappedLine:
        """Return the words of an answer; tool calls are remembered for their results, thinking is left out."""
        message = record.get("message")
        message = message if isinstance(message, dict) else {}
        if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            self.skipped["synthetic"] += 1
            return line
        texts = []
        for block in self.blocks(record):
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
        draft = self.draft(record, EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, line.uuid)
        return replace(line, message_id=message_id, drafts=(draft,))

    def attachment(self, record: dict[str, Any], line: MappedLine) -> MappedLine:
        """Return a prompt that was typed while the agent was still working; other attachments are bookkeeping."""
        inner = record.get("attachment")
        if not isinstance(inner, dict) or inner.get("type") != "queued_command":
            self.skipped["bookkeeping"] += 1
            return line
        if inner.get("commandMode") not in (None, "prompt") or not_a_message({**record, **inner}):
            self.skipped["not_human"] += 1
            return line
        blocks = content_blocks(inner.get("prompt"))
        text = "\n".join(clean(block.get("text")) for block in blocks if block.get("type") == "text").strip()
        queued = self.prompt(record, line, text, images=any(block.get("type") == "image" for block in blocks))
        return replace(queued, prompt=False)  # it lies beside the path without having been taken back

    def queued(self, record: dict[str, Any], line: MappedLine) -> MappedLine:
        """Return what was typed while the agent worked, as it was put into the queue, or that it was taken out again.

        Some versions tell it nowhere else; where a later line does, `claude_code` leaves this one out. Its key is not
        one of this transcript's other lines: so a line that tells it later is known to be the same.
        """
        operation = clean(record.get("operation"))
        blocks = content_blocks(record.get("content")) if operation == "enqueue" else []
        said = typed(spoken("\n".join(clean(block.get("text")) for block in blocks).strip()))
        if not said or said.startswith(NOT_TYPED) or COMMAND.fullmatch(said):
            self.skipped["bookkeeping"] += 1
            return replace(line, queue=operation)
        draft = self.draft(record, EventType.USER_MESSAGE, Role.USER, said, "")
        key = digest(draft.session_id, str(record.get("timestamp")), said)
        return replace(line, queue=operation, drafts=(replace(draft, dedupe_key=f"{AGENT}/queued:{key}"),))

    def blocks(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the content blocks of a line's message."""
        message = record.get("message")
        return content_blocks(message.get("content") if isinstance(message, dict) else message)


def not_a_message(record: dict[str, Any]) -> str:
    """Return why a user line was not typed by the person, or the empty string."""
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    if record.get("isMeta"):
        return "meta"
    if record.get("isVisibleInTranscriptOnly"):
        return "transcript_only"
    return "" if kind in (None, "human") and record.get("promptSource") not in NOT_PERSONS else "not_human"


def turned_down(record: dict[str, Any], block: dict[str, Any], tool: str) -> bool:
    """Say whether the program may have written that the person turned a tool down. A server could write the same."""
    told = record.get("toolUseResult")
    if tool.startswith("mcp__"):
        return told == "User rejected tool use" or bool(record.get("toolDenialKind"))
    return block.get("is_error") is True or isinstance(told, str) or bool(record.get("toolDenialKind"))


def content_blocks(content: Any) -> list[dict[str, Any]]:
    """Return message content as a list of blocks: a bare string is one block of text, an object one block."""
    return [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in listed(content)
        if isinstance(block, str | dict)
    ]
