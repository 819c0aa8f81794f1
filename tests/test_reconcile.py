"""`scrubjay reconcile`: what hooks missed comes out of the hosts' transcripts, and what they caught is not doubled."""

import asyncio
import json
import os
import sqlite3
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from cli_shell import Shell
from scrubjay import api
from scrubjay import settings as options
from scrubjay.api.caller import HOST
from scrubjay.hosts.transcripts import TRANSCRIPTS
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis

FIXTURES = Path(__file__).parent / "fixtures"
CODEX_SESSION = "01a208d0-6dcc-7ed0-8b98-bd57b542e9d3"
ASKED = "Run the command that prints the marker, then say what it printed."
ANSWER = "The command printed scrubjay-live-42. We decided to keep the cart store on SQLite WAL."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one transcript of Codex, Gemini CLI and Claude Code each, and OpenCode's database."""
    home = tmp_path / "ana"
    monkeypatch.setenv("HOME", str(home))
    for place in TRANSCRIPTS.values():
        if place.variable:
            monkeypatch.delenv(place.variable, raising=False)
    codex = home / ".codex/sessions/2026/11/23" / f"rollout-2026-11-23T14-30-07-{CODEX_SESSION}.jsonl"
    gemini = home / ".gemini/tmp/shop/chats/session-2026-11-23T14-30-8f0ab4ca.jsonl"
    claude = home / ".claude/projects/-home-ana-shop/5f0c1c1e-6a0e-4b0c-9d53-0a1b2c3d4e5f.jsonl"
    for path, fixture in (
        (codex, "codex_rollout.jsonl"),
        (gemini, "gemini_session.jsonl"),
        (claude, "claude_code.jsonl"),
    ):
        path.parent.mkdir(parents=True)
        path.write_bytes((FIXTURES / fixture).read_bytes())
    helper = claude.with_suffix("") / "subagents" / "agent-a1.jsonl"
    helper.parent.mkdir(parents=True)
    helper.write_bytes(claude.read_bytes().replace(b"SQLite", b"HELPER"))
    return home


def opencode(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as database:
        database.executescript(
            "create table session (id text, directory text);"
            "create table message (id text, session_id text, data text);"
            "create table part (id text, message_id text, data text);"
        )
        data = json.dumps({"role": "user", "time": {"created": 1795351791248}})
        database.execute("insert into session values ('ses_1', '/home/ana/shop')")
        database.execute("insert into message values ('msg_1', 'ses_1', ?)", (data,))
        part = json.dumps({"type": "text", "text": text})
        database.execute("insert into part values ('prt_1', 'msg_1', ?)", (part,))
    database.close()


def reports(shell: Shell, *words: str) -> dict[str, dict[str, Any]]:
    return {one["host"]: one for one in shell.json("reconcile", "--since", "30 years ago", *words)["hosts"]}


def texts(shell: Shell, session: str) -> Counter[str]:
    page = shell.json("events", "-n", "500")["events"]
    return Counter(event["text"] for event in page if event["text"] and event["session_id"] == session)


def deliver(sent: int, *payloads: tuple[str, dict[str, Any]]) -> None:
    """Have hooks deliver to the store of this environment what Codex reports."""

    async def delivered() -> None:
        settings = options.load(environ=dict(os.environ))
        options.ensure_dirs(settings)
        service = await Application.open(settings.store_path, models_dir=settings.models_dir, model="none")
        try:
            for event, payload in payloads:
                about = {"session_id": CODEX_SESSION, "cwd": "/home/ana/shop", "hook_event_name": event}
                data = json.dumps(about | payload).encode()
                request = api.HookRequest(host="codex", event=event, data=data, sent=Millis(sent))
                answer = await service.call(HOST, "hook", request)
                assert answer.accepted == 1
        finally:
            await service.close()

    asyncio.run(delivered())


def test_what_hooks_missed_is_stored_and_what_they_caught_is_not_doubled(shell: Shell, home: Path) -> None:
    deliver(
        1_795_444_207_500,  # within a second of the transcript's own times
        ("UserPromptSubmit", {"turn_id": "01a208d0-6df9-70e2-97fb-8da2188948a2", "prompt": ASKED}),
        (
            "PostToolUse",
            {
                "tool_name": "Bash",
                "tool_input": {"command": "echo scrubjay-live-42"},
                "tool_response": "scrubjay-live-42\n",
                "tool_use_id": "call_stub_1",
            },
        ),
    )

    found = reports(shell)

    assert (found["codex"]["files"], found["codex"]["duplicates"]) == (1, 2)
    stored = texts(shell, CODEX_SESSION)
    assert stored[ASKED] == 1
    assert stored["Now use tabs, not spaces."] == 1
    assert stored[ANSWER] == 2  # two turns ended so
    assert sum("scrubjay-live-42" in text for text in stored) == 2  # the tool's output, once, and the answer
    assert found["gemini"]["events"] >= 3
    assert found["claude-code"]["files"] == 1
    assert home.is_dir()


def test_a_transcript_that_did_not_change_is_not_read_again_and_one_that_grew_is(shell: Shell, home: Path) -> None:
    first = reports(shell)
    again = reports(shell)
    whole = reports(shell, "--all")
    gemini = next(home.glob(".gemini/tmp/*/chats/*.jsonl"))
    said = {"id": "new", "timestamp": "2026-11-23T14:31:00.000Z", "type": "user", "content": [{"text": "Use tabs."}]}
    gemini.write_bytes(gemini.read_bytes().rstrip(b"\n") + b"\n" + json.dumps(said).encode() + b"\n")
    grown = reports(shell, "gemini")

    assert {host: one["unchanged"] for host, one in again.items()} == {
        host: one["files"] for host, one in first.items()
    }
    assert sum(one["files"] + one["events"] for one in again.values()) == 0
    assert sum(one["events"] for one in whole.values()) == 0
    assert sum(one["files"] for one in whole.values()) == 3
    assert (list(grown), grown["gemini"]["events"]) == (["gemini"], 1)


def test_a_database_of_opencode_is_read_and_a_broken_one_stops_nothing(shell: Shell, home: Path) -> None:
    path = home / ".local/share/opencode/opencode.db"
    opencode(path, "We keep the cart store on SQLite.")

    assert reports(shell, "opencode")["opencode"]["events"] == 1
    assert texts(shell, "ses_1") == {"We keep the cart store on SQLite.": 1}

    path.write_bytes(b"SQLite format 3\0 and then nothing")
    code, out, _ = shell.run("reconcile", "--since", "30 years ago")
    report = json.loads(out)
    assert code == 2
    assert [failed["path"] for failed in report["failed"]] == [str(path)]
    assert {one["host"]: one["files"] for one in report["hosts"]}["codex"] == 1


def test_only_what_was_written_since_then_is_read(shell: Shell, home: Path) -> None:
    for path in home.rglob("*.jsonl"):
        os.utime(path, (1_000_000_000, 1_000_000_000))

    assert sum(one["files"] for one in shell.json("reconcile")["hosts"]) == 0


def test_a_host_that_keeps_no_transcripts_is_refused(shell: Shell) -> None:
    code, error = shell.error("reconcile", "cursor")

    assert code == 2
    assert "claude-code" in error["hint"]


@pytest.mark.parametrize(
    ("host", "environ", "folder"),
    [
        ("claude-code", {}, "/home/ana/.claude"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/etc/claude"}, "/etc/claude"),
        ("codex", {"CODEX_HOME": "/data/codex"}, "/data/codex"),
        ("gemini", {}, "/home/ana/.gemini"),
        ("opencode", {}, "/home/ana/.local/share/opencode"),
        ("opencode", {"XDG_DATA_HOME": "/data"}, "/data/opencode"),
    ],
)
def test_transcripts_are_looked_for_where_the_host_was_told_to_keep_them(
    host: str, environ: dict[str, str], folder: str
) -> None:
    assert TRANSCRIPTS[host].within(PurePosixPath("/home/ana"), environ) == PurePosixPath(folder)
