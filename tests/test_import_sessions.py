"""Sessions of the five agents, as their programs wrote them: the turns, the agent's words, and no echo of memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.containers.opencode import sessions
from scrubjay.hosts import normalise
from scrubjay.importers import SourceFormat, detect, parse
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType, Role
from service_calls import ingest

FIXTURES = Path(__file__).parent / "fixtures"
FILES = {
    "claude-code": ("claude_session.jsonl", SourceFormat.CLAUDE_CODE),
    "codex": ("codex_rollout.jsonl", SourceFormat.CODEX),
    "gemini": ("gemini_session.jsonl", SourceFormat.GEMINI),
    "copilot": ("copilot_events.jsonl", SourceFormat.COPILOT),
    "opencode": ("opencode_session.json", SourceFormat.OPENCODE),
}
PROMPT = "Run the command that prints the marker, then say what it printed."
ANSWER = "The command printed scrubjay-live-42. We decided to keep the cart store on SQLite WAL."
HOOKS = [json.loads(line) for line in (FIXTURES / "hooks_of_sessions.jsonl").read_bytes().splitlines()]


def file_of(host: str) -> tuple[str, bytes]:
    name = FILES[host][0]
    return name, (FIXTURES / name).read_bytes()


def jsonl(*lines: Any) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def texts(name: str, data: bytes) -> list[str]:
    return [event.text for event in parse(name, data).events]


@pytest.mark.parametrize("host", FILES)
def test_a_real_session_gives_what_was_typed_printed_and_answered(host: str) -> None:
    name, data = file_of(host)
    parsed = parse(name, data)
    prompt, result, answer = parsed.events[:3]

    assert detect(name, data) is FILES[host][1]
    assert (prompt.type, prompt.role, prompt.text.strip('"')) == (EventType.USER_MESSAGE, Role.USER, PROMPT)
    assert result.type is EventType.TOOL_RESULT
    assert result.text.splitlines()[0] == "$ echo scrubjay-live-42"
    assert result.text.splitlines()[-1].endswith("scrubjay-live-42")
    assert (answer.type, answer.text) == (EventType.ASSISTANT_MESSAGE, ANSWER)
    assert {event.agent for event in parsed.events} == {host}
    assert len({event.session_id for event in parsed.events}) == 1
    assert {event.project for event in parsed.events} == {None if host == "gemini" else "/home/ana/shop"}
    assert all(event.ts and (event.dedupe_key or "").startswith(f"{host}:") for event in parsed.events)


@pytest.mark.parametrize("host", FILES)
def test_no_echo_of_memory_and_no_answer_of_its_own_tool_is_read(host: str) -> None:
    parsed = parse(*file_of(host))

    assert not any("canary" in event.text or "memory source" in event.text for event in parsed.events)
    assert dict(parsed.skipped)["recalled"] == 1


@pytest.mark.anyio
@pytest.mark.parametrize("host", FILES)
async def test_what_the_hosts_hooks_delivered_is_not_stored_again_from_its_session(
    host: str, service: Application
) -> None:
    name, data = file_of(host)
    drafts = parse(name, data).events
    seen = Millis((drafts[0].ts or 0) + 200)
    hooked = [
        draft
        for hook in HOOKS
        if hook["host"] == host
        for draft in normalise(host, hook["payload"], event=hook["event"], ts=seen).drafts
    ]
    await ingest(service, *hooked)

    answer = await service.call(PERSON, "import", api.ImportRequest(name=name, data=data))
    stored = (await service.call(PERSON, "events", api.EventsRequest(limit=200))).events
    said = [event.text for event in stored if event.type in (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE)]

    assert len({(hook["host"], hook["event"]) for hook in HOOKS if hook["host"] == host}) >= 3
    assert [text.strip('"') for text in said].count(PROMPT) == 1
    assert said.count(ANSWER) == sum(draft.text == ANSWER for draft in drafts)
    assert sum(event.type is EventType.TOOL_RESULT and "scrubjay-live" in event.text for event in stored) == 1
    assert answer.duplicates >= (2 if host == "copilot" else 3)


@pytest.mark.anyio
@pytest.mark.parametrize("host", FILES)
async def test_a_session_twice_adds_nothing(host: str, service: Application) -> None:
    name, data = file_of(host)
    first = await service.call(PERSON, "import", api.ImportRequest(name=name, data=data))
    again = await service.call(PERSON, "import", api.ImportRequest(name=name, data=data))
    tried = await service.call(PERSON, "import", api.ImportRequest(name=name, data=data, dry_run=True))

    assert first.events == again.duplicates == tried.events > 0
    assert again.events == 0


def gemini(*records: Any) -> bytes:
    return jsonl({"sessionId": "s", "projectHash": "h", "kind": "main"}, *records)


def typed(name: str, text: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-11-20T09:00:00Z", "type": "user", "content": text, **more}


def test_geminis_rewinds_and_later_versions_of_a_record_are_followed() -> None:
    data = gemini(
        typed("1", "one"),
        typed("2", [{"text": "tw"}]),
        typed("2", [{"text": "two"}]),
        typed("3", "three"),
        {"$rewindTo": "3"},
        typed("4", "four"),
    )

    assert texts("s.jsonl", data) == ["one", "two", "four"]
    assert texts("s.jsonl", gemini(typed("1", "one"), {"$rewindTo": "unknown"}, typed("2", "two"))) == ["two"]
    assert texts("s.jsonl", gemini(typed("1", "one"), {"$set": {"messages": [typed("2", "two")]}})) == ["one", "two"]


def test_what_gemini_shows_of_a_prompt_is_read_and_not_the_files_it_pulled_in() -> None:
    long = [{"text": "see @a.py"}, {"text": "--- a.py ---\nimport os"}]

    assert texts("s.jsonl", gemini(typed("1", long, displayContent=[{"text": "see @a.py"}]))) == ["see @a.py"]
    assert texts("s.jsonl", gemini(typed("1", "/compress"), typed("2", "<session_context>x</session_context>"))) == []


def test_an_older_gemini_session_is_one_object() -> None:
    data = json.dumps({"sessionId": "s", "projectHash": "h", "messages": [typed("1", "one")]}, indent=1).encode()

    assert detect("session.json", data) is SourceFormat.GEMINI
    assert texts("session.json", data) == ["one"]


def test_copilots_rewinds_helpers_and_programs_prompts_are_left_out() -> None:
    def line(kind: str, key: str, **data: Any) -> dict[str, Any]:
        more = {"agentId": data.pop("agentId")} if "agentId" in data else {}
        return {"type": kind, "data": data, "id": key, "timestamp": "2026-11-20T09:00:00Z", "parentId": None, **more}

    data = jsonl(
        line("session.start", "0", sessionId="s", context={"cwd": "/x"}),
        line("user.message", "1", content="one"),
        line("user.message", "2", content="use the skill", source="skill-pdf"),
        line("user.message", "3", content="go on", isAutopilotContinuation=True),
        line("assistant.message", "4", content="hm", agentId="helper"),
        line("user.message", "5", content="two"),
        line("assistant.message", "6", content="2"),
        line("session.snapshot_rewind", "7", upToEventId="5", eventsRemoved=2),
        line("session.compaction_complete", "8", success=True, summaryContent="We chose tabs."),
    )
    parsed = parse("events.jsonl", data)

    assert [event.text for event in parsed.events] == ["one", "We chose tabs."]
    assert dict(parsed.skipped) == {"bookkeeping": 1, "branch": 2, "not_human": 2, "sidechain": 1}


def opencode(*messages: tuple[str, str, list[dict[str, Any]]], **info: Any) -> bytes:
    listed = [{"info": {"id": key, "role": role, "time": {"created": 1}}, "parts": p} for key, role, p in messages]
    return json.dumps({"info": {"id": "ses_1", "directory": "/x", **info}, "messages": listed}).encode()


def test_opencodes_undone_messages_helpers_and_added_texts_are_left_out() -> None:
    one = ("msg_1", "user", [{"id": "prt_1", "type": "text", "text": "one"}])
    added = ("msg_2", "user", [{"id": "prt_2", "type": "text", "text": "Called Read", "synthetic": True}])
    two = ("msg_3", "user", [{"id": "prt_3", "type": "text", "text": "two"}])

    assert texts("s.json", opencode(one, added, two)) == ["one", "two"]
    assert texts("s.json", opencode(one, added, two, revert={"messageID": "msg_3"})) == ["one"]
    assert parse("s.json", opencode(one, parentID="ses_0")).skipped == (("subagents", 1),)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    """OpenCode's database as its migrations left it in 1.18, with one session."""
    found = json.loads(file_of("opencode")[1])
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(
            "create table session (id text primary key, project_id text, parent_id text, directory text, title text,"
            " revert text, time_created integer);"
            "create table message (id text primary key, session_id text, time_created integer, data text);"
            "create table part (id text primary key, message_id text, session_id text, data text);"
            "create table session_message (id text primary key, session_id text, type text, seq integer, data text);"
        )
        info = found["info"]
        made.execute(
            "insert into session (id, directory, title) values (?, ?, ?)",
            (info["id"], info["directory"], info["title"]),
        )
        for message in found["messages"]:
            about = dict(message["info"])
            key = about.pop("id")
            made.execute("insert into message values (?, ?, 1, ?)", (key, info["id"], json.dumps(about)))
            for part in message["parts"]:
                data = {name: value for name, value in part.items() if name != "id"}
                made.execute("insert into part values (?, ?, ?, ?)", (part["id"], key, info["id"], json.dumps(data)))
        yield made


def test_opencodes_database_gives_what_its_export_gives(database: sqlite3.Connection) -> None:
    ((session, data),) = sessions(database)
    name, export = file_of("opencode")

    assert session.startswith("ses_")
    assert parse(name, data).events == parse(name, export).events


def test_a_database_of_another_program_is_refused() -> None:
    with closing(sqlite3.connect(":memory:")) as other, pytest.raises(InvalidError, match="not one of OpenCode"):
        list(sessions(other))


@settings(max_examples=60, deadline=None)
@given(host=st.sampled_from(sorted(FILES)), at=st.integers(0, 20_000), junk=st.binary(max_size=12))
def test_a_session_that_was_damaged_is_read_as_far_as_it_can_be_or_refused(host: str, at: int, junk: bytes) -> None:
    name, data = file_of(host)
    place = at % len(data)

    try:
        parsed = parse(name, data[:place] + junk + data[place + len(junk) :], FILES[host][1].value)
    except InvalidError:
        return  # a clear word
    assert all(event.agent == host for event in parsed.events)
