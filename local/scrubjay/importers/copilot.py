"""Copilot CLI sessions: `events.jsonl`, a line an event, `{"type", "data", "id", "timestamp", "parentId"}`.

A message's `content` is what was typed; `transformedContent` adds what hooks and the program put beside it, and is not
read. Compactions keep their summary, and a rewind takes back an event and all after it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from scrubjay.importers.echo import is_our_tool
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, json_objects, millis, path_of
from scrubjay.importers.talk import Session, called, output, part_of, spoken
from scrubjay.importers.typed import refused, typed
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Json, Role

AGENT = "copilot"
GUIDANCE = re.compile(r"\n\nTool \"[^\"\n]{1,200}\" \w+\. Additional guidance from \w+ hooks:\n.*", re.DOTALL)
"""What the program adds to a tool's result of what hooks said."""


@dataclass(slots=True)
class Log:
    """A session while it is read."""

    name: str
    project: str | None
    skipped: Counter[str] = field(default_factory=Counter)
    session: Session | None = None
    calls: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    drafts: list[tuple[str, EventDraft]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)

    def here(self) -> Session:
        """Return the session, which a log without its first line leaves to be told by its folder."""
        if self.session is None:
            path = path_of(self.name)
            named = path.parent.name if path.stem == "events" else path.stem
            self.session = Session(agent=AGENT, id=named or AGENT, project=self.project)
        return self.session

    def read(self, line: Json) -> None:
        """Take in one event."""
        data, key, ts = part_of(line, "data"), clean(line.get("id")), millis(line.get("timestamp"))
        kind = clean(line.get("type"))
        self.seen.append(key)
        if kind in ("session.start", "session.resume"):
            self.begin(data)
        elif kind == "session.snapshot_rewind":
            self.rewind(clean(data.get("upToEventId")))
        elif line.get("agentId") or data.get("parentToolCallId"):
            self.skipped["sidechain"] += 1
        elif kind == "user.message":
            self.prompt(data, key, ts)
        elif kind == "assistant.message":
            self.answer(data, key, ts)
        elif kind == "tool.execution_start":
            tool, server = clean(data.get("toolName")), clean(data.get("mcpServerName"))
            self.calls[clean(data.get("toolCallId"))] = (tool, called(tool, data.get("arguments")), server)
        elif kind == "tool.execution_complete":
            self.result(data, key, ts)
        elif kind == "session.compaction_complete" and (summary := clean(data.get("summaryContent"))):
            draft = self.here().event(EventType.COMPACTION, Role.SYSTEM, summary, ts=ts, key=key)
            self.drafts.append((key, draft))
        else:
            self.skipped["interrupted" if kind == "abort" else "bookkeeping"] += 1

    def begin(self, data: Json) -> None:
        """Take the session's id, folder and branch; a session that was resumed says them again."""
        self.skipped["bookkeeping"] += 1
        context = part_of(data, "context")
        if self.session is None and (session := clean(data.get("sessionId"))):
            branch = clean(context.get("branch"))
            self.session = Session(
                agent=AGENT,
                id=session,
                project=self.project or first(context, "cwd", "gitRoot") or None,
                metadata={"git_branch": branch} if branch else {},
            )

    def rewind(self, event: str) -> None:
        """Take back an event and all after it."""
        gone = set(self.seen[self.seen.index(event) :]) if event in self.seen else set()
        self.skipped["branch"] += sum(key in gone for key, _ in self.drafts)
        self.taken_back += [
            draft.text for key, draft in self.drafts if key in gone and draft.type is EventType.USER_MESSAGE
        ]
        self.drafts = [(key, draft) for key, draft in self.drafts if key not in gone]

    def prompt(self, data: Json, key: str, ts: Millis | None) -> None:
        """Add what the person typed, or count why it is not that."""
        text = clean(data.get("content"))
        said = typed(spoken(text))
        if clean(data.get("source")) not in ("", "user") or data.get("isAutopilotContinuation") is True:
            self.skipped["not_human"] += 1
        elif not said:
            self.skipped["reminder" if text else "empty"] += 1
        else:
            self.drafts.append((key, self.here().event(EventType.USER_MESSAGE, Role.USER, said, ts=ts, key=key)))

    def answer(self, data: Json, key: str, ts: Millis | None) -> None:
        """Add what the agent said. A message that only calls tools says nothing."""
        self.skipped["thinking"] += bool(data.get("reasoningText"))
        if text := clean(data.get("content")):
            draft = self.here().event(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, ts=ts, key=key)
            self.drafts.append((key, draft))

    def result(self, data: Json, key: str, ts: Millis | None) -> None:
        """Add what a tool printed; not what one of our own said."""
        call = clean(data.get("toolCallId"))
        tool, heading, server = self.calls.get(call, ("", "", ""))
        result, error = part_of(data, "result"), part_of(data, "error")
        printed = first(result, "content", "detailedContent") or clean(error.get("message"))
        printed = output(GUIDANCE.sub("", printed))
        if is_our_tool(tool, server):
            self.skipped["recalled"] += 1
        elif not printed:
            self.skipped["empty"] += 1
        else:
            failed = data.get("success") is False
            printed, said = refused(printed) if failed and not server else (printed, "")
            # Hooks have no id of a call.
            draft = self.here().tool_result(tool, heading, printed, ts=ts, call="", key=key, failed=failed)
            self.drafts.append((key, draft))
            if said := spoken(said):
                words = self.here().event(EventType.USER_MESSAGE, Role.USER, said, ts=ts, key=key and f"{key}:said")
                self.drafts.append((key, words))


def parse_copilot(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a session. Never fails: what cannot be read is counted in `skipped`."""
    log = Log(name=name, project=project)
    for line in json_objects(data, log.skipped):
        log.read(line)
    kept: dict[str, EventDraft] = {}
    for _, draft in log.drafts:
        if draft.dedupe_key in kept:
            log.skipped["duplicate"] += 1
        else:
            kept[draft.dedupe_key or ""] = replace(draft, session_id=log.here().id)
    return Parsed(
        format=SourceFormat.COPILOT,
        events=tuple(kept.values()),
        skipped=counted(log.skipped),
        taken_back=tuple(log.taken_back),
    )
