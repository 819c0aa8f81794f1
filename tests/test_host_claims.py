"""The table of the hosts: what each claims, cell by cell, from real payloads, through the real application.

Rows are the hosts, columns what is promised of each: set up and taken back to the byte, seven kinds of events stored
right, a second delivery stored once, a secret never stored, what memory told not learned again, and its words handed to
the model in the host's own form. docs/agents.md shows the same table as it came out with the real programs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import HOST, PERSON
from scrubjay.hosts import HOSTS, host_name, normalise
from scrubjay.hosts.meanings import MEANINGS, Meaning, folded
from scrubjay.service.application import Application
from scrubjay.setup import files, plan
from scrubjay.setup import hosts as setups
from scrubjay.setup.program import Machine
from scrubjay_shared.records import Event, EventType, Role, Trust

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parent / "fixtures"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ASKED = "Run the command that prints the marker, then say what it printed."
ANSWER = "We decided to keep the cart store on SQLite WAL."
PRINTED = "scrubjay-live-42"
FAILED = "No such file or directory"
KINDS = ("start", "prompt", "tool", "failure", "stop", "compaction", "end")
ABOUT_CURSOR = {
    "conversation_id": "c0ffee00-0000-4000-8000-000000000001",
    "generation_id": "c0ffee00-0000-4000-8000-000000000002",
    "model": "stub-1",
    "cursor_version": "2.4.0",
    "workspace_roots": ["/home/ana/shop"],
}


def recorded(host: str, event: str, *holding: str, file: str = "host_payloads.jsonl") -> dict[str, Any]:
    """Return the first payload that a real host sent for an event, with these words in it."""
    for line in (FIXTURES / file).read_text(encoding="utf-8").splitlines():
        fixture = json.loads(line)
        payload = json.dumps(fixture["payload"], ensure_ascii=False)
        if (host_name(fixture["host"]), fixture["event"]) == (host, event) and all(word in payload for word in holding):
            return dict(fixture["payload"])
    raise LookupError(f"{host} {event} {holding}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a host sends for one kind of event. `real` is false where it was written after the host's documents."""

    event: str
    payload: Mapping[str, Any]
    real: bool = True


def failing(host: str, event: str) -> Cell:
    return Cell(event=event, payload=recorded(host, event, file="host_failures.jsonl"))


def cursor(event: str, **fields: Any) -> Cell:
    return Cell(event=event, payload=ABOUT_CURSOR | {"hook_event_name": event} | fields, real=False)


def codex_compaction() -> Cell:
    about = recorded("codex", "Stop") | {"hook_event_name": "PreCompact", "trigger": "auto"}
    return Cell(event="PreCompact", payload={k: v for k, v in about.items() if "assistant" not in k}, real=False)


TABLE: dict[str, dict[str, Cell | None]] = {
    "claude-code": {
        "start": Cell(event="SessionStart", payload=recorded("claude-code", "SessionStart")),
        "prompt": Cell(event="UserPromptSubmit", payload=recorded("claude-code", "UserPromptSubmit")),
        "tool": Cell(event="PostToolUse", payload=recorded("claude-code", "PostToolUse", "echo")),
        "failure": Cell(event="PostToolUseFailure", payload=recorded("claude-code", "PostToolUseFailure")),
        "stop": Cell(event="Stop", payload=recorded("claude-code", "Stop")),
        "compaction": Cell(event="PostCompact", payload=recorded("claude-code", "PostCompact")),
        "end": Cell(event="SessionEnd", payload=recorded("claude-code", "SessionEnd")),
    },
    "codex": {
        "start": Cell(event="SessionStart", payload=recorded("codex", "SessionStart")),
        "prompt": Cell(event="UserPromptSubmit", payload=recorded("codex", "UserPromptSubmit")),
        "tool": Cell(event="PostToolUse", payload=recorded("codex", "PostToolUse", "echo")),
        "failure": failing("codex", "PostToolUse"),
        "stop": Cell(event="Stop", payload=recorded("codex", "Stop")),
        "compaction": codex_compaction(),
        "end": Cell(event="SessionEnd", payload=recorded("codex", "SessionEnd")),
    },
    "gemini": {
        "start": Cell(event="SessionStart", payload=recorded("gemini", "SessionStart")),
        "prompt": Cell(event="BeforeAgent", payload=recorded("gemini", "BeforeAgent")),
        "tool": Cell(event="AfterTool", payload=recorded("gemini", "AfterTool", "echo")),
        "failure": failing("gemini", "AfterTool"),
        "stop": Cell(event="AfterAgent", payload=recorded("gemini", "AfterAgent")),
        "compaction": None,  # it tells none: its PreCompress comes before every request
        "end": Cell(event="SessionEnd", payload=recorded("gemini", "SessionEnd")),
    },
    "copilot": {
        "start": Cell(event="sessionStart", payload=recorded("copilot", "sessionStart")),
        "prompt": Cell(event="userPromptSubmitted", payload=recorded("copilot", "userPromptSubmitted")),
        "tool": Cell(event="postToolUse", payload=recorded("copilot", "postToolUse", "echo")),
        "failure": failing("copilot", "postToolUse"),
        "stop": Cell(event="agentStop", payload=recorded("copilot", "agentStop")),
        "compaction": Cell(
            event="preCompact",
            payload={"sessionId": "6399b92c", "timestamp": 1795351628800, "cwd": "/home/ana/shop", "trigger": "auto"},
            real=False,
        ),
        "end": Cell(event="sessionEnd", payload=recorded("copilot", "sessionEnd")),
    },
    "opencode": {
        "start": Cell(event="session.created", payload=recorded("opencode", "event session.created")),
        "prompt": Cell(event="chat.message", payload=recorded("opencode", "chat.message")),
        "tool": Cell(event="tool.execute.after", payload=recorded("opencode", "tool.execute.after", "echo")),
        "failure": failing("opencode", "tool.execute.after"),
        "stop": Cell(event="text.complete", payload=recorded("opencode", "text.complete")),
        "compaction": Cell(event="session.compacted", payload={"sessionID": "ses_dfcb1b9f7ffe"}, real=False),
        "end": Cell(event="dispose", payload={"sessionID": "ses_dfcb1b9f7ffe"}, real=False),
    },
    "cursor": {
        "start": cursor("sessionStart"),
        "prompt": cursor("beforeSubmitPrompt", prompt=ASKED, attachments=[]),
        "tool": cursor(
            "postToolUse",
            tool_name="Shell",
            tool_input={"command": "echo scrubjay-live-42"},
            tool_output=json.dumps({"output": "scrubjay-live-42\n", "exitCode": 0}),
            tool_use_id="t1",
        ),
        "failure": cursor(
            "postToolUseFailure",
            tool_name="Shell",
            tool_input={"command": "ls /nonexistent"},
            error_message=f"ls: cannot access '/nonexistent': {FAILED}",
            tool_use_id="t2",
        ),
        "stop": cursor("afterAgentResponse", text=f"The command printed scrubjay-live-42. {ANSWER}"),
        "compaction": cursor("preCompact", trigger="auto", context_tokens=120000),
        "end": cursor("sessionEnd", reason="completed", duration_ms=45000),
    },
}
WANTED: dict[str, tuple[EventType, Role, Trust, str]] = {
    "start": (EventType.SESSION_START, Role.SYSTEM, Trust.AGENT, ""),
    "prompt": (EventType.USER_MESSAGE, Role.USER, Trust.USER, ASKED),
    "tool": (EventType.TOOL_RESULT, Role.TOOL, Trust.UNTRUSTED, PRINTED),
    "failure": (EventType.TOOL_RESULT, Role.TOOL, Trust.UNTRUSTED, FAILED),
    "stop": (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT, Trust.AGENT, ANSWER),
    "compaction": (EventType.COMPACTION, Role.SYSTEM, Trust.AGENT, ""),
    "end": (EventType.SESSION_END, Role.SYSTEM, Trust.AGENT, ""),
}
CELLS = [(host, kind) for host in HOSTS for kind in KINDS if TABLE[host][kind] is not None]
ECHOES = {
    "claude-code": Cell(event="PostToolUse", payload=recorded("claude-code", "PostToolUse", "mcp__scrubjay__")),
    "codex": Cell(event="PostToolUse", payload=recorded("codex", "PostToolUse", "mcp__scrubjay__")),
    "gemini": Cell(event="AfterTool", payload=recorded("gemini", "AfterTool", "mcp_scrubjay_")),
    "copilot": Cell(event="postToolUse", payload=recorded("copilot", "postToolUse", "scrubjay-memory")),
    "opencode": Cell(event="tool.execute.after", payload=recorded("opencode", "tool.execute.after", "scrubjay_memory")),
    "cursor": cursor("postToolUse", tool_name="mcp_scrubjay_memory_search", tool_output='"m_41 canary-mcp-7377"'),
}
TRANSCRIPT = (
    '{"type":"user.message","data":{"content":"go"},"id":"1","timestamp":"2026-11-22T12:47:08.256Z"}\n'
    '{"type":"assistant.message","data":{"content":"ANSWER"},"id":"2","timestamp":"2026-11-22T12:47:08.700Z"}\n'
)


def of(host: str, kind: str) -> Cell:
    cell = TABLE[host][kind]
    assert cell is not None
    return cell


def test_the_table_has_a_row_for_every_host_and_a_column_for_every_kind() -> None:
    assert set(TABLE) == set(HOSTS)
    assert all(tuple(row) == KINDS for row in TABLE.values())
    assert {host for host, kind in CELLS if of(host, kind).real} == set(HOSTS) - {"cursor"}


async def report(service: Application, host: str, cell: Cell, **changed: Any) -> api.HookResponse:
    """Send what a hook sends."""
    data = json.dumps(dict(cell.payload) | changed, ensure_ascii=False).encode()
    answer = await service.call(HOST, "hook", api.HookRequest(host=host, event=cell.event, data=data))
    assert isinstance(answer, api.HookResponse)
    return answer


def with_transcript(folder: Path, host: str, kind: str, answer: str) -> dict[str, Any]:
    """Return what a payload needs besides: Copilot CLI's stop names a transcript, which is to be there."""
    if (host, kind) != ("copilot", "stop"):
        return {}
    (folder / "events.jsonl").write_text(TRANSCRIPT.replace("ANSWER", answer), encoding="utf-8")
    return {"transcriptPath": str(folder / "events.jsonl")}


async def stored(service: Application) -> list[Event]:
    return list((await service.call(PERSON, "events", api.EventsRequest())).events)


@pytest.mark.parametrize(("host", "kind"), CELLS)
async def test_each_kind_of_event_is_stored_once_however_often_it_comes(
    service: Application, tmp_path: Path, host: str, kind: str
) -> None:
    changed = with_transcript(tmp_path, host, kind, f"Done. {ANSWER}")
    first = await report(service, host, of(host, kind), **changed)
    again = await report(service, host, of(host, kind), **changed)

    (event,) = await stored(service)
    wanted_type, role, trust, words = WANTED[kind]
    assert (first.accepted, again.accepted, again.duplicates) == (1, 0, 1)
    assert (event.agent, event.type, event.role, event.trust) == (host, wanted_type, role, trust)
    assert words in event.text
    assert "canary" not in event.text
    assert event.project is not None or kind in {"compaction", "end"} or host == "opencode"
    if kind == "failure" and host != "codex":  # which does not tell it
        assert event.metadata["is_error"] is True


def planted(value: Any) -> Any:
    """Return a payload with a secret in each of its long texts."""
    if isinstance(value, dict):
        return {key: planted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [planted(each) for each in value]
    is_words = isinstance(value, str) and (" " in value or PRINTED in value) and not value.startswith("/")
    return f"{value} {SECRET}" if is_words and not value.startswith("{") else value


@pytest.mark.parametrize("host", HOSTS)
async def test_a_secret_in_any_text_is_in_no_file_of_the_store(
    service: Application, tmp_path: Path, store_path: Path, host: str
) -> None:
    seen: set[str] = set()
    for kind in ("prompt", "tool", "failure", "stop"):
        changed = with_transcript(tmp_path, host, kind, f"Done. {ANSWER} {SECRET}")
        cell = of(host, kind)
        answer = await report(service, host, Cell(event=cell.event, payload=planted(cell.payload)), **changed)

        assert answer.accepted == 1
        event = next(each for each in await stored(service) if each.id not in seen)
        seen.add(event.id)
        assert WANTED[kind][3] in event.text
        assert "[REDACTED" in event.text or "tool_output" in cell.payload
    await service.store.checkpoint(truncate=True)
    held = [path.read_bytes() for path in store_path.parent.iterdir() if path.is_file()]
    assert not any(SECRET.encode() in data for data in held)


@pytest.mark.parametrize("host", HOSTS)
async def test_what_memory_told_is_not_learned_again(service: Application, host: str) -> None:
    prompt = of(host, "prompt")
    fence = '<memory source="scrubjay">\n- canary-7377\n</memory>\n'
    held = json.dumps(prompt.payload, ensure_ascii=False)
    start = '\\"Run' if host == "opencode" else "Run"
    fenced = json.loads(held.replace(start, json.dumps(fence)[1:-1] + start, 1))

    echoed = await report(service, host, ECHOES[host])
    only = await report(
        service, host, Cell(event=prompt.event, payload=json.loads(held.replace(ASKED, json.dumps(fence)[1:-1])))
    )
    both = await report(service, host, Cell(event=prompt.event, payload=fenced))

    assert (echoed.accepted, echoed.dropped) == (0, "recalled")
    assert only.accepted in ({0, 1} if host == "opencode" else {0})  # it puts quotes around what is typed
    assert both.accepted == 1
    assert not [event.text for event in await stored(service) if "canary" in event.text or "<memory" in event.text]


HANDED: dict[str, tuple[str, ...]] = {
    "claude-code": ("hookSpecificOutput", "additionalContext"),
    "codex": ("hookSpecificOutput", "additionalContext"),
    "gemini": ("hookSpecificOutput", "additionalContext"),
    "copilot": ("additionalContext",),
    "opencode": ("additionalContext",),  # which its plugin reads
    "cursor": ("additional_context",),
}
"""Where each host looks for text that goes to the model, in what a hook prints."""


@pytest.mark.parametrize("host", HOSTS)
async def test_words_for_the_model_are_printed_where_the_host_looks_and_once(service: Application, host: str) -> None:
    await service.call(PERSON, "set_identity", api.SlotRequest(key="name", value="Ana"))
    cell = of(host, "start")
    request = api.HookRequest(host=host, event=cell.event, data=json.dumps(dict(cell.payload)).encode(), inject=True)

    answer = await service.call(HOST, "hook", request)
    again = await service.call(HOST, "hook", request)

    text: Any = json.loads(answer.output)
    for name in HANDED[host]:
        text = text[name]
    assert text.startswith('<memory source="scrubjay">')
    assert "Ana" in text
    assert text.rstrip().endswith("</memory>")
    assert (answer.accepted, again.output) == (1, "")


# ------------------------------------------------------------------------------------------------------------ set up


def machine(home: Path) -> Machine:
    return Machine(
        home=home,
        environ={},
        platform="linux",
        hook=Path("/opt/scrubjay/bin/scrubjay-hook"),
        scrubjay=Path("/opt/scrubjay/bin/scrubjay"),
        options=(),
    )


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_set_up_and_taken_back_to_the_byte(tmp_path: Path, host: str) -> None:
    home = tmp_path / "home"
    targets = setups.HOSTS[host].targets(machine(home))
    settings = [each.path for each in targets if each.path.suffix == ".json" or each.path.name == "config.toml"]
    for number, path in enumerate(settings):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'model = "mine"\r\n' if path.suffix == ".toml" else b'{ "mine": %d }' % number)
    before = tree(home)
    records = files.Records(tmp_path / "records", host)

    files.apply(plan.installation(targets := files.named(targets), files.contents(targets), records.load()), records)
    during = tree(home)
    files.apply(plan.removal(targets, files.contents(targets), records.load()), records)

    assert any(b"scrubjay-hook" in held for held in during.values())
    assert all(during[path] != held for path, held in before.items())
    assert tree(home) == before


@pytest.mark.parametrize(
    ("host", "events"),
    [
        ("claude-code", setups.CLAUDE),
        ("codex", setups.CODEX),
        ("gemini", setups.GEMINI),
        ("copilot", setups.COPILOT),
        ("cursor", setups.CURSOR),
    ],
)
def test_every_event_that_is_registered_means_something_and_takes_context_where_it_says_so(
    host: str, events: Mapping[str, bool]
) -> None:
    for event, injects in events.items():
        assert MEANINGS[folded(event)] is not Meaning.NOTHING
        payload = {"session_id": "s", "prompt": "hello", "agent_type": "x", "last_assistant_message": "done"}
        payload |= {"tool_name": "Bash", "tool_response": "ok", "error": "no"}
        assert (normalise(host, payload, event=event).context is not None) is injects, event
