"""The normaliser of hooks: real payloads of five hosts become the right events, and no payload breaks it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrubjay.hosts import HOSTS, completed, host_name, normalise
from scrubjay.hosts.bounds import bounded
from scrubjay.hosts.meanings import MEANINGS
from scrubjay.importers.echo import FENCE, is_our_command, is_our_tool, without_echo
from scrubjay.policy import DEFAULT
from scrubjay_shared.records import EventType, Role, Trust

FIXTURE = Path(__file__).parent / "fixtures" / "host_payloads.jsonl"
PAYLOADS = [json.loads(line) for line in FIXTURE.read_text(encoding="utf-8").splitlines()]
NOW = 1_795_351_628_000
ASKED = "Run the command that prints the marker, then say what it printed."
SAID = "The command printed scrubjay-live-42. We decided to keep the cart store on SQLite WAL."


def of(host: str, event: str, number: int = 0) -> dict[str, Any]:
    """Return a real payload: the `number`th of this event."""
    found = [each["payload"] for each in PAYLOADS if host_name(each["host"]) == host and each["event"] == event]
    return dict(found[number])


def test_the_fixtures_are_all_the_real_payloads() -> None:
    assert len(PAYLOADS) == 61
    assert {host_name(each["host"]) for each in PAYLOADS} == set(HOSTS) - {"cursor"}


@pytest.mark.parametrize(
    ("host", "event", "number", "kind", "text"),
    [
        ("claude-code", "SessionStart", 0, EventType.SESSION_START, ""),
        ("claude-code", "UserPromptSubmit", 0, EventType.USER_MESSAGE, ASKED),
        ("claude-code", "PostToolUse", 1, EventType.TOOL_RESULT, "$ echo scrubjay-live-42\nscrubjay-live-42"),
        ("claude-code", "PostToolUse", 2, EventType.TOOL_RESULT, f"Agent look\n{SAID}"),
        ("claude-code", "Stop", 0, EventType.ASSISTANT_MESSAGE, SAID),
        ("claude-code", "SubagentStop", 1, EventType.SUBAGENT_STOP, SAID),
        ("claude-code", "PreCompact", 0, EventType.COMPACTION, ""),
        ("claude-code", "PostCompact", 0, EventType.COMPACTION, SAID),
        ("claude-code", "SessionEnd", 0, EventType.SESSION_END, ""),
        ("codex", "UserPromptSubmit", 0, EventType.USER_MESSAGE, ASKED),
        ("codex", "PostToolUse", 1, EventType.TOOL_RESULT, "$ echo scrubjay-live-42\nscrubjay-live-42"),
        ("codex", "Stop", 0, EventType.ASSISTANT_MESSAGE, SAID),
        ("gemini", "BeforeAgent", 0, EventType.USER_MESSAGE, ASKED),
        ("gemini", "AfterTool", 1, EventType.TOOL_RESULT, "$ echo scrubjay-live-42\nOutput: scrubjay-live-42"),
        ("gemini", "AfterAgent", 0, EventType.ASSISTANT_MESSAGE, SAID),
        ("copilot", "userPromptSubmitted", 0, EventType.USER_MESSAGE, ASKED),
        ("copilot", "postToolUse", 1, EventType.TOOL_RESULT, "$ echo scrubjay-live-42\nscrubjay-live-42"),
        ("opencode", "event session.created", 0, EventType.SESSION_START, ""),
        ("opencode", "chat.message", 0, EventType.USER_MESSAGE, f'"{ASKED}"'),
        ("opencode", "tool.execute.after", 1, EventType.TOOL_RESULT, "$ echo scrubjay-live-42\nscrubjay-live-42"),
        ("opencode", "text.complete", 0, EventType.ASSISTANT_MESSAGE, SAID),
    ],
)
def test_a_real_payload_becomes_its_event(host: str, event: str, number: int, kind: EventType, text: str) -> None:
    captured = normalise(host, of(host, event, number), event=event, ts=NOW, utc_offset=60)

    (draft,) = captured.drafts
    assert (draft.agent, draft.type, draft.text, draft.utc_offset) == (host, kind, text, 60)
    assert captured.dropped is None
    assert draft.dedupe_key is not None


def test_only_what_a_person_typed_is_trusted_as_theirs() -> None:
    trusted = {
        draft.type
        for each in PAYLOADS
        for draft in normalise(each["host"], each["payload"], event=each["event"]).drafts
        if draft.trust is Trust.USER
    }

    assert trusted == {EventType.USER_MESSAGE}


@pytest.mark.parametrize(
    ("source", "dropped"),
    [
        (None, None),
        ("user", None),
        ("sdk", None),
        ("system", "machine_prompt"),
        ("loop_wakeup", "machine_prompt"),
        ("schedule_wakeup", "machine_prompt"),
        ("poll_event", "machine_prompt"),
    ],
)
def test_a_prompt_that_a_program_made_is_not_stored(source: str | None, dropped: str | None) -> None:
    captured = normalise("claude-code", of("claude-code", "UserPromptSubmit") | {"source": source}, ts=NOW)

    assert captured.dropped == dropped
    assert captured.context == (None if dropped else "prompt")


@pytest.mark.parametrize(
    ("host", "event", "number", "reason"),
    [
        ("claude-code", "PostToolUse", 0, "recalled"),
        ("codex", "PostToolUse", 0, "recalled"),
        ("gemini", "AfterTool", 0, "recalled"),
        ("copilot", "postToolUse", 0, "recalled"),
        ("copilot", "PostToolUse", 0, "recalled"),
        ("opencode", "tool.execute.after", 0, "recalled"),
        ("claude-code", "SubagentStop", 0, "not_captured"),
        ("claude-code", "PostToolBatch", 0, "not_captured"),
        ("claude-code", "PreToolUse", 0, "not_captured"),
        ("gemini", "PreCompress", 0, "not_captured"),
        ("opencode", "dispose", 0, "no_session"),
    ],
)
def test_what_is_not_stored_says_why(host: str, event: str, number: int, reason: str) -> None:
    captured = normalise(host, of(host, event, number), event=event, ts=NOW)

    assert (captured.drafts, captured.dropped) == ((), reason)


def test_nothing_that_memory_told_comes_back_from_the_real_payloads() -> None:
    texts = [
        draft.text
        for each in PAYLOADS
        for draft in normalise(each["host"], each["payload"], event=each["event"]).drafts
    ]

    assert not [text for text in texts if "canary" in text]


def test_one_event_in_two_spellings_has_one_key() -> None:
    for camel, pascal in [
        ("sessionStart", "SessionStart"),
        ("userPromptSubmitted", "UserPromptSubmit"),
        ("sessionEnd", "SessionEnd"),
    ]:
        one = normalise("copilot", of("copilot", camel), event=camel, ts=NOW).drafts[0]
        two = normalise("copilot", of("copilot", pascal), event=pascal, ts=NOW + 70_000).drafts[0]
        assert (one.dedupe_key, one.ts) == (two.dedupe_key, two.ts)
    one = normalise("copilot", of("copilot", "postToolUse", 1), event="postToolUse").drafts[0]
    two = normalise("copilot", of("copilot", "PostToolUse", 1), event="PostToolUse").drafts[0]
    assert one.dedupe_key == two.dedupe_key


def test_two_events_have_two_keys_whether_or_not_their_host_gives_ids() -> None:
    keys = {
        (each["host"], draft.dedupe_key)
        for each in PAYLOADS
        if not (each["host"] == "copilot" and each["event"][0].isupper())
        for draft in normalise(each["host"], each["payload"], event=each["event"], ts=NOW).drafts
    }
    stored = [
        draft
        for each in PAYLOADS
        if not (each["host"] == "copilot" and each["event"][0].isupper())
        for draft in normalise(each["host"], each["payload"], event=each["event"], ts=NOW).drafts
    ]
    assert len(keys) == len(stored)

    same_call = of("claude-code", "PostToolUse", 1)
    other_output = same_call | {"tool_response": {"stdout": "something else"}}
    one, two = (normalise("claude-code", each).drafts[0].dedupe_key for each in (same_call, other_output))
    assert one != two


def test_the_stop_without_words_names_the_transcript_that_has_them() -> None:
    captured = normalise("copilot", of("copilot", "agentStop"), event="agentStop", ts=NOW)
    lines = [
        b'ut off"}',
        b'{"type":"user.message","data":{"content":"go"},"id":"1","timestamp":"2026-11-22T12:47:08.256Z"}',
        b'{"type":"assistant.message","data":{"content":"Working."},"id":"2","timestamp":"2026-11-22T12:47:08.300Z"}',
        b'{"type":"assistant.message","data":{"content":"All done."},"id":"3","timestamp":"2026-11-22T12:47:08.700Z"}',
        b'{"type":"assistant.turn_end","data":{},"id":"4"}',
        b"not json",
    ]

    assert captured.transcript
    assert captured.transcript.endswith("events.jsonl")
    (draft,) = completed(captured, b"\n".join(lines)).drafts
    assert (draft.text, draft.role, draft.trust) == ("All done.", Role.ASSISTANT, Trust.AGENT)
    assert completed(captured, b"\n".join(lines[:2])) == captured
    assert completed(captured, b"") == captured


@pytest.mark.parametrize(
    ("host", "event", "payload"),
    [
        ("claude-code", None, of("claude-code", "PostToolUseFailure")),
        (
            "codex",
            None,
            of("codex", "PostToolUse", 1) | {"tool_response": {"content": [{"text": "no"}], "isError": True}},
        ),
        ("gemini", None, of("gemini", "AfterTool", 1) | {"tool_response": {"error": {"message": "no"}}}),
        (
            "copilot",
            "postToolUse",
            of("copilot", "postToolUse", 1) | {"toolResult": {"resultType": "failure", "textResultForLlm": "no"}},
        ),
        ("copilot", "postToolUseFailure", {"sessionId": "s", "toolName": "bash", "timestamp": NOW, "error": "no"}),
        (
            "opencode",
            "tool.execute.after",
            of("opencode", "tool.execute.after", 1) | {"output": {"output": "no", "metadata": {"exit": 1}}},
        ),
        ("cursor", None, {"hook_event_name": "postToolUseFailure", "conversation_id": "c", "error_message": "no"}),
    ],
)
def test_a_tool_that_failed_is_marked(host: str, event: str | None, payload: dict[str, Any]) -> None:
    (draft,) = normalise(host, payload, event=event, ts=NOW).drafts

    assert draft.metadata["is_error"] is True
    assert draft.type is EventType.TOOL_RESULT


def test_cursor_speaks_in_its_own_words() -> None:
    about = {"conversation_id": "c1", "generation_id": "g1", "workspace_roots": ["/home/ana/shop"], "model": "m"}
    prompt = normalise("cursor", about | {"hook_event_name": "beforeSubmitPrompt", "prompt": "use WAL"}, ts=NOW)
    tool = normalise(
        "cursor",
        about
        | {
            "hook_event_name": "postToolUse",
            "tool_name": "Shell",
            "tool_input": {"command": "ls"},
            "tool_output": '{"output": "a.py", "exitCode": 0}',
        },
        ts=NOW,
    )
    answer = normalise("cursor", about | {"hook_event_name": "afterAgentResponse", "text": "Done."}, ts=NOW)

    assert (prompt.cwd, prompt.session_id, prompt.context) == ("/home/ana/shop", "c1", None)
    assert [each.drafts[0].text for each in (prompt, tool, answer)] == ["use WAL", "$ ls\na.py", "Done."]
    assert normalise("cursor", about | {"hook_event_name": "sessionStart"}).context == "session_start"


def test_prompts_of_helpers_are_not_a_persons() -> None:
    child = of("opencode", "chat.message") | {"parentID": "ses_1"}

    assert normalise("opencode", child, event="chat.message").dropped == "subagent"
    assert normalise("codex", of("codex", "UserPromptSubmit") | {"agent_id": "a"}).dropped == "subagent"


# ------------------------------------------------------------------------------------------------------------ echo

OPEN, CLOSE = '<memory source="scrubjay">', "</memory>"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"{OPEN}\nold\n{CLOSE}\nnew", "\nnew"),
        (f'<memory source="scrubjay" trust="recalled-data">old{CLOSE}new', "new"),
        ('<hook_context>&lt;memory source="scrubjay"&gt;old&lt;/memory&gt;</hook_context>\n\nnew', "\n\nnew"),
        ("&lt;memory source=&quot;scrubjay&quot;&gt;old&lt;/memory&gt;new", "new"),
        ('\\u003cmemory source=\\"scrubjay\\"\\u003eold\\u003c/memory\\u003enew', "new"),
        (f"<system-reminder>\n{OPEN}old{CLOSE}\n</system-reminder>new", "new"),
        ("<system-reminder>the date is today</system-reminder>new", "new"),
        (f"new\n{OPEN}\nold, cut off", "new\n"),
        (f"a {OPEN} is our fence", 'a ‹memory source="scrubjay"> is our fence'),
        (f"new {OPEN}{OPEN}old{CLOSE}old{CLOSE}", "new "),
        ("<memory>a person's own tag</memory>", "<memory>a person's own tag</memory>"),
        ("a </memory> without a beginning", "a </memory> without a beginning"),
        ('<memory source="notes">theirs</memory>', '<memory source="notes">theirs</memory>'),
    ],
)
def test_our_own_words_are_taken_out_and_others_stay(text: str, kept: str) -> None:
    assert without_echo(text) == kept


@pytest.mark.parametrize(
    ("tool", "server", "ours"),
    [
        ("mcp__scrubjay__memory_search", "", True),
        ("mcp__plugin_scrubjay_scrubjay__memory_search", "", True),
        ("mcp__plugin_my-tools_scrubjay__memory_add", "", True),
        ("mcp_scrubjay_memory_search", "", True),
        ("scrubjay-memory_search", "", True),
        ("scrubjay_memory_search", "", True),
        ("memory_search", "scrubjay", True),
        ("memory_search", "plugin:scrubjay:scrubjay", True),
        ("Bash", "", False),
        ("mcp__notes__memory_search", "notes", False),
        ("scrubjays", "", False),
        ("mcp__bluejay_scrubjay_like__x", "", False),
    ],
)
def test_our_tools_are_known_by_name_or_server(tool: str, server: str, ours: bool) -> None:  # noqa: FBT001
    assert is_our_tool(tool, server) is ours


def test_our_program_in_a_shell_is_memory_speaking() -> None:
    assert is_our_command({"command": "scrubjay recall 'cart store'"})
    assert is_our_command({"command": "SCRUBJAY_HOME=/x /home/ana/.local/bin/scrubjay list"})
    assert is_our_command({"command": ["bash", "-lc", "scrubjay recall x"]})
    assert not is_our_command({"command": "cat scrubjay.txt"})
    assert not is_our_command({"command": "scrubjay-cloud serve"})
    assert not is_our_command(None)


# ---------------------------------------------------------------------------------------------------------- bounds


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    lines = [f"line {number} of the build" for number in range(200_000)]
    payload = of("codex", "PostToolUse", 1) | {"tool_response": "\n".join(lines)}

    (draft,) = normalise("codex", payload).drafts

    assert draft.text.startswith("$ echo scrubjay-live-42\nline 0 of the build")
    assert draft.text.endswith("line 199999 of the build")
    assert len(draft.text) < DEFAULT.limits.output_chars + 200
    assert "characters left out" in draft.text


def test_no_half_of_a_secret_is_left_where_a_text_is_cut() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(["Ab3dEf9h" * 8] * 60) + "\n-----END RSA PRIVATE KEY-----"
    for before in range(0, 5_000, 500):
        text = "x " * 2_000 + " " * before + key + " y" * 60_000
        assert "Ab3dEf9h" not in bounded(text, 8_000), before
        assert "Ab3dEf9h" not in bounded(text[::1] + key + "z " * (before // 2), 8_000), before


def test_a_long_output_in_the_tag_of_its_host_is_taken_out_of_it() -> None:
    output = (
        "<untrusted_context>\nOutput: "
        + "a line\n" * 200_000
        + "Exit Code: 2\nProcess Group PGID: 1\n</untrusted_context>"
    )
    payload = of("gemini", "AfterTool", 1) | {"tool_response": {"llmContent": output}}

    (draft,) = normalise("gemini", payload).drafts

    assert draft.text.endswith("a line")
    assert "untrusted_context" not in draft.text
    assert draft.metadata["is_error"] is True


def test_a_private_passage_is_gone_before_a_text_is_cut() -> None:
    text = "a " * 100_000 + "<private>" + "my pin 1234 " * 100_000

    assert "1234" not in bounded(text, 8_000)


# ------------------------------------------------------------------------------------------------------ any payload

texts = st.text(max_size=40) | st.sampled_from(
    [
        OPEN,
        CLOSE,
        "&lt;memory source=scrubjay",
        "<mem",
        'ory source="scrubjay">',
        "<hook_context>",
        "</hook_context>",
        "�",
        "{",
        '{"a": ',
        "x" * 300,
        "<private>",
        "2026-11-22T12:47:03Z",
        "0001-01-01T00:00:00+23:59",
        "1e999",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(sorted({key for each in PAYLOADS for key in each["payload"]} | {"tool_output", "text", "error"}))
payloads = st.dictionaries(keys, values, max_size=8)
real = st.sampled_from([each["payload"] for each in PAYLOADS])
mixed = st.builds(lambda base, other: {**base, **other}, real, payloads)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    host=st.sampled_from(HOSTS) | texts,
    payload=mixed | payloads | values,
    event=st.sampled_from(sorted(MEANINGS)) | st.none() | texts,
)
@example(host="codex", payload={"session_id": "s", "tool_response": [[[[[[[["deep"]]]]]]]]}, event="PostToolUse")
@example(host="gemini", payload={"session_id": "s", "timestamp": 10**400, "prompt": "x"}, event="BeforeAgent")
def test_no_payload_breaks_it_and_no_event_holds_our_fence(host: str, payload: Any, event: str | None) -> None:
    captured = normalise(host, payload, event=event, ts=NOW)

    assert bool(captured.drafts) != bool(captured.dropped)
    for draft in captured.drafts:
        assert not FENCE.search(draft.text)
        assert 1 <= len(draft.session_id) <= DEFAULT.limits.max_name_chars
        assert 1 <= len(draft.agent) <= DEFAULT.limits.max_name_chars
        draft.text.encode()  # it is valid Unicode


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                OPEN,
                CLOSE,
                "<mem",
                "ory",
                " source=",
                '"scrubjay"',
                "&lt;",
                "&amp;",
                "lt;",
                "memory source=scrubjay",
                "&gt;",
                "<hook_context>",
                "</hook_context>",
                "\\u003c",
                "\n",
                "a",
                "<system-reminder>",
                "</system-reminder>",
            ]
        ),
        max_size=14,
    ).map("".join)
)
def test_no_text_keeps_a_fence_and_cleaning_twice_changes_nothing(text: str) -> None:
    once = without_echo(text)

    assert not FENCE.search(once)
    assert without_echo(once) == once
