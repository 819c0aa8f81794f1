"""Codex rollouts: what a person typed, what the agent said and printed, and nothing of what the program put beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrubjay.importers import SourceFormat, detect, parse
from scrubjay_shared.records import EventType, Trust

ROLLOUT = (Path(__file__).parent / "fixtures" / "codex_rollout.jsonl").read_bytes()
SESSION = "01a208d0-6dcc-7ed0-8b98-bd57b542e9d3"
PROMPT = "Run the command that prints the marker, then say what it printed."
ANSWER = "The command printed scrubjay-live-42. We decided to keep the cart store on SQLite WAL."
META = {"id": SESSION, "cwd": "/home/ana/shop", "git": {"branch": "main"}}


def line(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-11-20T09:00:{second:02}.000Z", "type": kind, "payload": payload}


def rollout(*lines: dict[str, Any], meta: dict[str, Any] | None = None) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in (line("session_meta", META | (meta or {})), *lines)).encode()


def typed(text: str, second: int = 0, **more: Any) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return line("response_item", {"type": "message", "role": "user", "content": content, **more}, second)


def answered(text: str, second: int = 0) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return line("response_item", {"type": "message", "role": "assistant", "content": content}, second)


def texts(data: bytes) -> list[str]:
    return [event.text for event in parse("rollout-x.jsonl", data).events]


def test_a_real_rollout_gives_each_turn_once_and_nothing_that_was_recalled() -> None:
    parsed = parse(f"rollout-2026-11-23T14-30-07-{SESSION}.jsonl", ROLLOUT)

    assert detect("rollout.jsonl", ROLLOUT) is SourceFormat.CODEX
    assert [(event.type, event.text) for event in parsed.events] == [
        (EventType.USER_MESSAGE, PROMPT),
        (EventType.TOOL_RESULT, "$ echo scrubjay-live-42\nscrubjay-live-42"),
        (EventType.ASSISTANT_MESSAGE, ANSWER),
        (EventType.USER_MESSAGE, "Now use tabs, not spaces."),
        (EventType.ASSISTANT_MESSAGE, ANSWER),
    ]
    assert len({event.dedupe_key for event in parsed.events}) == 5
    assert {(event.agent, event.session_id, event.project) for event in parsed.events} == {
        ("codex", SESSION, "/home/ana/shop")
    }
    assert {(event.type is EventType.USER_MESSAGE, event.trust) for event in parsed.events} == {
        (True, Trust.USER),
        (False, Trust.IMPORT),
    }
    assert parsed.events[1].metadata == {"git_branch": "main", "tool": "exec_command", "call_id": "call_stub_1"}
    assert dict(parsed.skipped)["recalled"] == 1
    assert not any("canary" in event.text for event in parsed.events)


def test_a_rollout_without_sent_items_is_read_from_the_shown_ones() -> None:
    shown = b"".join(row + b"\n" for row in ROLLOUT.splitlines() if b'"type":"response_item"' not in row)

    assert texts(shown) == texts(ROLLOUT)


def test_an_old_rollout_is_read_from_its_messages_and_not_twice() -> None:
    old = [
        line("event_msg", {"type": "user_message", "message": "use tabs", "kind": "plain"}),
        line("event_msg", {"type": "user_message", "message": "cwd: /x", "kind": "environment_context"}),
        line("event_msg", {"type": "agent_message", "message": "Tabs it is."}, 1),
    ]

    assert texts(rollout(*old)) == ["use tabs", "Tabs it is."]
    assert texts(rollout(*old, typed("use tabs"), answered("Tabs it is."))) == ["use tabs", "Tabs it is."]


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>use spaces</INSTRUCTIONS>",
        "<user_instructions>use spaces</user_instructions>",
        "<turn_aborted>by the user</turn_aborted>",
        '<memory source="scrubjay">old news</memory>',
    ],
)
def test_what_the_program_put_among_a_persons_messages_is_not_stored(text: str) -> None:
    assert texts(rollout(typed(text), typed("use tabs"))) == ["use tabs"]


def test_only_the_part_that_was_typed_is_a_persons() -> None:
    content = [{"type": "input_text", "text": "be brief, says the hook"}, {"type": "input_text", "text": "use tabs"}]
    kinds = {"turn_id": "t1", "content_item_kinds": ["hooks.additional_context", "user.text"]}
    item = {"type": "message", "id": "m", "role": "user", "content": content}

    assert texts(rollout(line("response_item", item | {"internal_chat_message_metadata_passthrough": kinds}))) == [
        "use tabs"
    ]


def test_turns_that_were_rolled_back_are_left_out_and_counted() -> None:
    taken_back = line("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    data = rollout(typed("one"), answered("1"), typed("two", 1), answered("2", 1), taken_back, typed("three", 2))

    assert texts(data) == ["one", "1", "three"]
    assert dict(parse("r.jsonl", data).skipped)["branch"] == 2


@pytest.mark.parametrize(
    ("call", "output", "said"),
    [
        (
            {"type": "function_call", "name": "shell", "arguments": '{"command":["bash","-lc","pytest -q"]}'},
            '{"output":"12 passed\\n","metadata":{"exit_code":0}}',
            "$ pytest -q\n12 passed",
        ),
        (
            {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}'},
            "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\na.txt\n",
            "$ ls\na.txt",
        ),
        (
            {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls", "a b"]}},
            "a.txt",
            "$ ls 'a b'\na.txt",
        ),
        (
            {"type": "function_call", "name": "read", "arguments": "{not json"},
            [{"type": "input_text", "text": "Wall time: 1 s\nOutput:"}, {"type": "input_text", "text": "hi"}],
            "read\nhi",
        ),
    ],
)
def test_output_of_tools_stands_under_what_was_asked(call: dict[str, Any], output: Any, said: str) -> None:
    printed = {"type": "function_call_output", "call_id": "c", "output": output}
    data = rollout(line("response_item", call | {"call_id": "c"}), line("response_item", printed))

    assert texts(data) == [said]


def test_a_helpers_rollout_is_not_the_persons() -> None:
    helper = rollout(typed("look into it"), meta={"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}})

    assert parse("r.jsonl", helper).events == ()
    assert parse("r.jsonl", helper).skipped == (("subagents", 1),)


def test_a_compaction_gives_its_summary_and_not_the_history_again() -> None:
    compacted = line("compacted", {"message": "We chose tabs.", "replacement_history": [typed("use tabs")["payload"]]})
    parsed = parse("r.jsonl", rollout(typed("use tabs"), compacted))

    assert [(event.type, event.text) for event in parsed.events] == [
        (EventType.USER_MESSAGE, "use tabs"),
        (EventType.COMPACTION, "We chose tabs."),
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"type":"response_item","payload":[]}\n',
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":7}}\n',
        b'{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","result":3}}}\n',
        b'{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":-4}}\n',
        b'{"type":"session_meta","payload":{"id":5,"cwd":{},"git":[],"source":1}}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\xfd not json\n",
        b'{"type":"response_item","payl',
    ],
)
def test_a_hostile_line_is_counted_and_the_rest_is_read(hostile: bytes) -> None:
    data = rollout(typed("use tabs")) + hostile

    assert texts(data) == ["use tabs"]
    assert texts(ROLLOUT + hostile) == texts(ROLLOUT)


def test_a_rollout_that_grew_gives_the_same_keys_for_what_it_had() -> None:
    rows = ROLLOUT.splitlines(keepends=True)
    whole = [event.dedupe_key for event in parse("r.jsonl", ROLLOUT).events]

    for count in range(len(rows)):
        keys = [event.dedupe_key for event in parse("r.jsonl", b"".join(rows[: count + 1])).events]
        assert keys == whole[: len(keys)], count
