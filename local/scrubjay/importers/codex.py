r"""Codex rollouts: one session, one line an item, `{"timestamp", "type", "payload"}`.

A message may stand in a rollout three times: as what was sent to the model (`response_item`), as what was shown
(`event_msg` of type `item_completed`), and in old ones as `user_message` or `agent_message`. One of the three is read,
the first that the file has. What the program put among a person's messages (its environment, AGENTS.md, what hooks
added) is told from what was typed by `content_item_kinds`, and in rollouts without it by how it begins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
from scrubjay.importers.talk import Session, called, joined, output, parts_of, spoken
from scrubjay.importers.typed import typed as typed_of_host
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Json, Role

AGENT = "codex"
TYPED = "user."
"""How the kinds of what a person sent begin: text, and what was sent while the agent worked."""

NOT_TYPED = (  # a user's item that begins so was written by the program
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<hook_prompt",
    "<goal_context>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<model_switch>",
)
KINDS = {"plain": True, "user_instructions": False, "environment_context": False}
"""Whether an old rollout's message was typed, by its kind; another kind does not say."""

SESSION_ID = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$")
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
PRINTED = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Process exited with code|Process running with session ID|Original token count"
    r"|Exit code|Total output lines)\b[^\n]*\n)+Output:\n?"
)
"""What the program writes above the output of a command."""

Draft = tuple[EventDraft, bool]
"""An event, and whether a person typed it: a rollback takes back a number of what persons typed."""


@dataclass(slots=True)
class Stream:
    """One of the ways in which a rollout tells its messages: what it gave, and what of it was left out."""

    drafts: list[Draft] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    lines: int = 0
    taken_back: list[str] = field(default_factory=list)

    def roll_back(self, turns: int) -> None:
        """Take back the last turns."""
        prompts = [index for index, (_, typed) in enumerate(self.drafts) if typed]
        if prompts and turns > 0:
            start = prompts[max(len(prompts) - turns, 0)]
            self.skipped["branch"] += len(self.drafts) - start
            self.taken_back += [draft.text for draft, typed in self.drafts[start:] if typed]
            del self.drafts[start:]


@dataclass(slots=True)
class Rollout:
    """Reads the lines of a rollout, one after another."""

    name: str
    project: str | None
    skipped: Counter[str] = field(default_factory=Counter)
    session: Session | None = None
    turn: str = ""
    is_helper: bool = False
    sent: Stream = field(default_factory=Stream)
    shown: Stream = field(default_factory=Stream)
    old: Stream = field(default_factory=Stream)
    calls: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    def here(self) -> Session:
        """Return the session, which an unreadable first line leaves to be told by the file's name."""
        if self.session is None:
            stem = path_of(self.name).stem
            found = SESSION_ID.search(stem)
            self.session = Session(agent=AGENT, id=found[1] if found else stem or AGENT, project=self.project)
        return self.session

    def read(self, line: dict[str, Any]) -> None:
        """Take in one line."""
        payload = line.get("payload")
        if not isinstance(payload, dict):
            self.skipped["unknown"] += 1
            return
        kind, ts = clean(line.get("type")), millis(line.get("timestamp"))
        match kind:
            case "session_meta":
                self.begin(payload)
            case "turn_context":
                self.turn = clean(payload.get("turn_id")) or self.turn
                self.skipped["bookkeeping"] += 1
            case "response_item":
                self.sent.lines += 1
                self.item(payload, ts)
            case "event_msg":
                self.event_msg(payload, ts)
            case "compacted":
                self.compacted(payload, ts)
            case _:
                self.skipped["bookkeeping"] += 1

    def begin(self, meta: Json) -> None:
        """Take the session's id, folder and branch. A fork repeats those of its parent after its own."""
        self.skipped["bookkeeping"] += 1
        if self.session is not None:
            return
        session = first(meta, "id", "session_id")
        git = meta.get("git")
        branch = clean(git.get("branch")) if isinstance(git, dict) else ""
        source = meta.get("source")
        self.is_helper = (isinstance(source, dict) and "subagent" in source) or meta.get("thread_source") == "subagent"
        if session:
            self.session = Session(
                agent=AGENT,
                id=session,
                project=self.project or clean(meta.get("cwd")) or None,
                metadata={"git_branch": branch} if branch else {},
            )

    def event_msg(self, payload: Json, ts: Millis | None) -> None:
        """Take what was shown, or a change of the session."""
        match clean(payload.get("type")):
            case "item_completed" if isinstance(payload.get("item"), dict):
                self.shown.lines += 1
                self.turn = clean(payload.get("turn_id")) or self.turn
                self.completed(payload["item"], ts)
            case "user_message":
                self.old.lines += 1
                typed = KINDS.get(clean(payload.get("kind")))
                self.prompt(self.old, clean(payload.get("message")), ts, key="", typed=typed)
            case "agent_message":
                self.old.lines += 1
                self.answer(self.old, clean(payload.get("message")), ts, key="")
            case "task_started" | "turn_started":
                self.turn = clean(payload.get("turn_id")) or self.turn
                self.skipped["bookkeeping"] += 1
            case "thread_rolled_back":
                turns = payload.get("num_turns")
                for stream in (self.sent, self.shown, self.old):
                    stream.roll_back(turns if isinstance(turns, int) else 0)
            case "turn_aborted":
                self.skipped["interrupted"] += 1
            case _:
                self.skipped["bookkeeping"] += 1

    def item(self, payload: Json, ts: Millis | None) -> None:
        """Take what was sent to the model, or came from it."""
        passed = payload.get("internal_chat_message_metadata_passthrough")
        passed = passed if isinstance(passed, dict) else {}
        self.turn = clean(passed.get("turn_id")) or self.turn
        kind, key = clean(payload.get("type")), self.key(clean(payload.get("id")))
        if kind == "message":
            role, parts = payload.get("role"), parts_of(payload.get("content"))
            if role == "user":
                said, typed = typed_of(parts, passed.get("content_item_kinds"))
                self.prompt(self.sent, said, ts, key=key, typed=typed)
            elif role == "assistant":
                self.answer(self.sent, joined(parts), ts, key=key)
            else:
                self.sent.skipped["meta"] += 1
        elif kind in CALLS:
            tool = "__".join(filter(None, (clean(payload.get("namespace")), clean(payload.get("name")))))
            given = payload.get("action") if kind == "local_shell_call" else arguments(payload)
            self.calls[clean(payload.get("call_id"))] = (
                tool,
                called(tool, given),
                clean(payload.get("namespace")).removeprefix("mcp__"),
            )
        elif kind in OUTPUTS:
            call = clean(payload.get("call_id"))
            tool, heading, space = self.calls.get(call, ("", "", ""))
            self.result(self.sent, tool, heading, printed(payload.get("output")), ts, call=call, space=space)
        else:
            self.sent.skipped["thinking" if kind == "reasoning" else "bookkeeping"] += 1

    def completed(self, item: Json, ts: Millis | None) -> None:
        """Take an item as it was shown."""
        key, call = self.key(clean(item.get("id"))), clean(item.get("id"))
        match clean(item.get("type")):
            case "UserMessage":
                self.prompt(self.shown, joined(parts_of(item.get("content"))), ts, key=key, typed=True)
            case "AgentMessage":
                self.answer(self.shown, joined(parts_of(item.get("content"))), ts, key=key)
            case "CommandExecution":
                said = clean(item.get("aggregated_output"))
                self.result(self.shown, "exec_command", called("", item), said, ts, call=call)
            case "McpToolCall":
                server, result = clean(item.get("server")), item.get("result")
                said = joined(parts_of(result.get("content"))) if isinstance(result, dict) else ""
                tool = f"mcp__{server}__{clean(item.get('tool'))}"
                self.result(self.shown, tool, called(tool, item.get("arguments")), said, ts, call=call, space=server)
            case kind:
                self.shown.skipped["thinking" if kind == "Reasoning" else "bookkeeping"] += 1

    def key(self, item: str) -> str:
        """Return what an item is known by, whichever rollout holds it: a fork repeats its parent's."""
        return f"{self.turn}:{item}" if item and self.turn else ""

    def about(self) -> Json:
        """Return what is noted of a message: the turn, which the hooks name too."""
        return {"turn_id": self.turn}

    def prompt(self, stream: Stream, text: str, ts: Millis | None, *, key: str, typed: bool | None) -> None:
        """Add what the person typed, or count why it is not that. `typed` is None where the rollout does not say."""
        stream.messages += 1
        said = typed_of_host(spoken(text))
        if typed is False or (typed is None and said.startswith(NOT_TYPED)):
            stream.skipped["meta"] += 1
        elif not said:
            stream.skipped["reminder" if text else "empty"] += 1
        else:
            draft = self.here().event(EventType.USER_MESSAGE, Role.USER, said, ts=ts, key=key, about=self.about())
            stream.drafts.append((draft, True))

    def answer(self, stream: Stream, text: str, ts: Millis | None, *, key: str) -> None:
        """Add what the agent said."""
        stream.messages += 1
        if not text:
            stream.skipped["empty"] += 1
            return
        draft = self.here().event(EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, text, ts=ts, key=key, about=self.about())
        stream.drafts.append((draft, False))

    def result(
        self, stream: Stream, tool: str, heading: str, said: str, ts: Millis | None, *, call: str, space: str = ""
    ) -> None:
        """Add what a tool printed; not what one of our own said."""
        said = output(said)
        if is_our_tool(tool, space):
            stream.skipped["recalled"] += 1
        elif not said:
            stream.skipped["empty"] += 1
        else:
            key = self.key(call)
            draft = self.here().tool_result(tool, heading, said, ts=ts, call=call, key=key and f"{key}:output")
            stream.drafts.append((draft, False))

    def compacted(self, payload: Json, ts: Millis | None) -> None:
        """Add the summary of a compaction. The history that it replaced stands above it, and is not read again."""
        said = clean(payload.get("message"))
        if not said:
            self.skipped["bookkeeping"] += 1
            return
        draft = self.here().event(EventType.COMPACTION, Role.SYSTEM, said, ts=ts)
        for stream in (self.sent, self.shown, self.old):
            stream.drafts.append((draft, False))

    def chosen(self) -> Stream:
        """Return the stream to read."""
        return next((each for each in (self.sent, self.shown, self.old) if each.messages), self.sent)


def parse_codex(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a rollout. Never fails: what cannot be read is counted in `skipped`."""
    rollout = Rollout(name=name, project=project)
    for line in json_objects(data, rollout.skipped):
        rollout.read(line)
    if rollout.is_helper:
        return Parsed(format=SourceFormat.CODEX, skipped=(("subagents", 1),))
    stream = rollout.chosen()
    others = sum(each.lines for each in (rollout.sent, rollout.shown, rollout.old) if each is not stream)
    skipped = rollout.skipped + stream.skipped + Counter(bookkeeping=others)
    events = tuple(once(stream.drafts, skipped))
    left = tuple(stream.taken_back)
    return Parsed(format=SourceFormat.CODEX, events=events, skipped=counted(skipped), taken_back=left)


def once(drafts: list[Draft], skipped: Counter[str]) -> Iterator[EventDraft]:
    """Yield the events, each key once: a torn write that was made again repeats its line."""
    seen: dict[str, str] = {}
    for draft, _ in drafts:
        key = draft.dedupe_key or ""
        if seen.get(key) == draft.text:
            skipped["duplicate"] += 1
            continue
        yield draft if key not in seen else replace(draft, dedupe_key=f"{key}:{len(seen)}")
        seen[key] = draft.text


def typed_of(parts: list[Json], kinds: Any) -> tuple[str, bool | None]:
    """Return what of a user's message was typed, and whether that is sure; None where the rollout does not say."""
    if not isinstance(kinds, list) or len(kinds) != len(parts):
        return joined([part for part in parts if not clean(part.get("text")).startswith(NOT_TYPED)]) or joined(
            parts
        ), None
    typed = [part for part, kind in zip(parts, kinds, strict=True) if clean(kind).startswith(TYPED)]
    return joined(typed), bool(typed)


def arguments(payload: Json) -> Any:
    """Return what a tool was given: an object, or one that is written as a string."""
    given = payload.get("arguments", payload.get("input"))
    if not isinstance(given, str):
        return given
    try:
        value = json_value(given.encode(errors="replace"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def printed(found: Any) -> str:
    """Return what a tool printed, whichever way it is written: a text, parts, or JSON with the output in it."""
    if isinstance(found, list):
        said = joined(parts_of(found))
    elif isinstance(found, dict):
        said = first(found, "output", "content")
    else:
        said = clean(found)
    if said.startswith('{"output":'):
        try:
            value = json_value(said.encode(errors="replace"))
        except ValueError:
            value = None
        said = clean(value.get("output")) if isinstance(value, dict) else said
    return PRINTED.sub("", said).strip()
