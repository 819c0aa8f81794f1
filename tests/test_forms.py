"""Forms in which an agent asks its person: of every host's shape, by hook and from a transcript, up to a memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import Memory
from scrubjay.hosts.normalise import normalise
from scrubjay.importers.claude_code import parse_claude_code
from scrubjay.importers.forms import answered, is_form
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType, MemoryType, Trust

NOON = Millis(1_795_000_000_000)
AUTH, TTL = "Which auth method should we use?", "How long should sessions last?"
QUESTIONS = {
    "questions": [
        {
            "id": "auth",
            "header": "Auth",
            "question": AUTH,
            "options": [
                {"label": "OAuth (Recommended)", "description": "via Keycloak"},
                {"label": "API keys", "description": ""},
            ],
            "multiSelect": False,
        },
        {"id": "ttl", "header": "TTL", "question": TTL, "options": [{"label": "1 day"}, {"label": "30 days"}]},
    ]
}
IN_WORDS = (
    f'User has answered your questions: "{AUTH}"="OAuth", "{TTL}"="8 hours". You can now continue with the user\'s'
    " answers in mind."
)


@pytest.mark.parametrize(
    "output",
    [
        QUESTIONS | {"answers": {AUTH: "OAuth (Recommended)", TTL: "8 hours"}},  # Claude Code
        {"answers": {"auth": {"answers": ["OAuth"]}, "ttl": {"answers": ["8 hours"]}}},  # Codex
        {"answers": {"0": "OAuth", "1": "8 hours"}},
        {"answers": [["OAuth"], ["8 hours"]]},  # OpenCode's metadata
        IN_WORDS,
    ],
)
def test_the_answers_of_a_form_are_read_in_every_shape(output: Any) -> None:
    told = answered(QUESTIONS, output, output if isinstance(output, str) else "")

    assert [(one.question, one.answer) for one in told] == [(AUTH, "OAuth"), (TTL, "8 hours")]
    assert told[0].asked == f"- OAuth (Recommended): via Keycloak\n- API keys\n\n{AUTH}"


@pytest.mark.parametrize("output", ["User declined to answer questions", {"answers": {}}, {"answers": None}, None, 7])
def test_a_form_that_was_turned_down_has_no_answers(output: Any) -> None:
    assert answered(QUESTIONS, output, output if isinstance(output, str) else "") == ()


@pytest.mark.parametrize(
    ("tool", "server", "shows"),
    [
        ("AskUserQuestion", "", True),
        ("ask_user", "", True),
        ("question", "", True),
        ("question", "survey", False),
        ("mcp__survey__question", "", False),
        ("Bash", "", False),
    ],
)
def test_only_the_hosts_own_tools_show_forms(tool: str, server: str, shows: bool) -> None:  # noqa: FBT001
    assert is_form(tool, server) is shows


def _reported(tool: str = "AskUserQuestion", **more: Any) -> dict[str, Any]:
    answers = {AUTH: "OAuth (Recommended)", TTL: "8 hours, like the old app"}
    return {
        "hook_event_name": "PostToolUse",
        "session_id": "s1",
        "tool_name": tool,
        "tool_use_id": "toolu_1",
        "tool_input": QUESTIONS,
        "tool_response": QUESTIONS | {"answers": answers},
    } | more


def test_a_form_becomes_what_the_agent_asked_and_the_person_said() -> None:
    told = normalise("claude-code", _reported(), ts=NOON).drafts

    assert [(one.type, one.trust) for one in told] == [
        (EventType.ASSISTANT_MESSAGE, Trust.AGENT),
        (EventType.USER_MESSAGE, Trust.USER),
    ] * 2
    assert [one.text for one in told[1::2]] == ["OAuth", "8 hours, like the old app"]
    assert len({one.dedupe_key for one in told}) == len(told)


def test_the_same_answer_to_two_questions_is_two_events() -> None:
    both = QUESTIONS | {"answers": {AUTH: "Yes", TTL: "Yes"}}

    told = normalise("claude-code", _reported(tool_response=both), ts=NOON).drafts

    assert len({one.dedupe_key for one in told}) == len(told) == 4


def test_another_programs_form_and_a_form_that_was_turned_down_stay_results_of_a_tool() -> None:
    for report in (
        _reported("mcp__survey__question"),
        _reported(tool_response="User declined to answer questions"),
        _reported("Bash"),
    ):
        assert [one.type for one in normalise("claude-code", report, ts=NOON).drafts] == [EventType.TOOL_RESULT]


def _transcript() -> bytes:
    about = {"sessionId": "s1", "cwd": "/work/site", "timestamp": "2026-11-18T10:00:00.000Z"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "AskUserQuestion", "input": QUESTIONS}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": IN_WORDS}
    lines = [
        about | {"type": "assistant", "uuid": "a", "message": {"id": "m1", "content": [call]}},
        about | {"type": "user", "uuid": "b", "parentUuid": "a", "message": {"content": [result]}},
    ]
    lines[1]["toolUseResult"] = QUESTIONS | {"answers": {AUTH: "OAuth", TTL: "8 hours"}}
    return "\n".join(json.dumps(line) for line in lines).encode()


def test_a_transcript_gives_the_questions_and_answers_of_a_form() -> None:
    told = parse_claude_code("s1.jsonl", _transcript(), project=None).events

    assert [(one.type, one.text.splitlines()[-1]) for one in told] == [
        (EventType.ASSISTANT_MESSAGE, AUTH),
        (EventType.USER_MESSAGE, "OAuth"),
        (EventType.ASSISTANT_MESSAGE, TTL),
        (EventType.USER_MESSAGE, "8 hours"),
    ]
    again = parse_claude_code("s1.jsonl", _transcript(), project=None).events
    assert [one.dedupe_key for one in again] == [one.dedupe_key for one in told]


def test_what_a_form_settles_is_learned_with_its_question(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        (tmp_path / "s1.jsonl").write_bytes(_transcript())
        memory.import_file(tmp_path / "s1.jsonl")
        memory.settle(60)

        assert {(one.memory.type, one.memory.content) for one in memory.list().entries} == {
            (MemoryType.DECISION, f'The user answered "OAuth" to "{AUTH}".'),
            (MemoryType.DECISION, f'The user answered "8 hours" to "{TTL}".'),
        }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["questions", "answers", "question", "id", "label"]), inner)
    ),
    max_leaves=12,
)


@given(_JSON, _JSON, st.text(max_size=60).map(lambda text: f'User has answered your questions: "{text}"="{text}".'))
def test_no_payload_breaks_it(told: Any, output: Any, text: str) -> None:
    assert all(one.question and one.answer for one in answered(told, output, text))
