"""A file's format is told by its shape at the top, whatever programs' words, calls and files stand within it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_shell import Shell
from scrubjay.importers import SourceFormat, detect, parse
from scrubjay.importers.shapes import SHAPES, SKETCHED_BYTES
from scrubjay_shared.errors import InvalidError

FIXTURES = Path(__file__).parent / "fixtures"
CALL = "INPUT"
"""Where a text or a tool's input stands in the files below."""


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


CLAUDE_LINE = {
    "parentUuid": None, "type": "assistant", "uuid": "u1", "sessionId": "s", "timestamp": "2026-09-01T10:00:00Z",
    "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t", "name": "remember", "input": CALL}, {"type": "text", "text": "Kept."}]},
}  # fmt: skip
GRAPH = [
    {"type": "entity", "name": "Harbour", "entityType": "service", "observations": ["listens on 8080", CALL]},
    {"type": "relation", "from": "Harbour", "to": "Postgres", "relationType": "stores_in"},
]
LISTS = {"entities": [GRAPH[0]], "relations": [GRAPH[1]]}
MEMORY = {"id": "1", "memory": "Prefers window seats", "user_id": "ana", "metadata": CALL}
OPENCODE = {
    "info": {"id": "ses_1", "directory": "/x"},
    "messages": [{"info": {"id": "msg_1", "role": "assistant", "time": {"created": 1}}, "parts": [
        {"id": "prt_1", "type": "tool", "tool": "remember", "callID": "c",
         "state": {"status": "completed", "input": CALL, "output": "ok"}},
        {"id": "prt_2", "type": "text", "text": "Kept."}]}],
}  # fmt: skip
OPENCODE_2 = {
    "info": {"id": "ses_2", "location": {"directory": "/x"}},
    "messages": [{"id": "msg_2", "type": "assistant", "time": {"created": 1}, "content": [
        {"type": "tool", "id": "c", "name": "remember", "state": {"status": "completed", "input": CALL}},
        {"type": "text", "text": "Kept."}]}],
}  # fmt: skip
CLAUDE_AI = [{
    "uuid": "c1", "name": "Map", "created_at": "2026-06-01T10:00:00Z", "chat_messages": [
        {"uuid": "m1", "sender": "assistant", "content": [
            {"type": "tool_use", "name": "create_entities", "input": CALL}, {"type": "text", "text": "Kept."}]}],
}]  # fmt: skip
CHATGPT = [{
    "id": "c", "current_node": "a", "mapping": {"a": {"id": "a", "children": [], "message": {
        "id": "a", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Kept."]},
        "metadata": {"arguments": CALL}}}},
}]  # fmt: skip
LOCOMO = [{
    "sample_id": "conv-1", "qa": [{"question": "What?", "evidence": ["D1:1"]}],
    "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023",
                     "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "Kept.", "about": CALL}]},
}]  # fmt: skip
PAM = {
    "schema": "portable-ai-memory", "schema_version": "1.0",
    "memories": [{"id": "m", "type": "fact", "content": "Kept.", "metadata": CALL}],
}  # fmt: skip
CLAUDE_MEM = {
    "observations": [{"memory_session_id": "m", "title": "Kept.", "created_at_epoch": 1, "facts": [CALL]}],
    "sessions": [], "summaries": [], "prompts": [],
}  # fmt: skip
GEMINI = {
    "sessionId": "s", "projectHash": "h",
    "messages": [{"id": "1", "type": "gemini", "content": "Kept.", "toolCalls": [{"name": "x", "args": CALL}]}],
}  # fmt: skip
CODEX = [
    {"type": "session_meta", "timestamp": "2026-09-01T10:00:00Z", "payload": {"id": "s", "cwd": "/x"}},
    {"type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "x", "arguments": CALL}},
    {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"text": "Kept."}]}},
]  # fmt: skip
COPILOT = [
    {"type": "session.start", "id": "0", "data": {"sessionId": "s"}},
    {"type": "tool.execution_start", "id": "1", "data": {"toolCallId": "c", "toolName": "x", "arguments": CALL}},
    {"type": "assistant.message", "id": "2", "data": {"content": "Kept."}},
]  # fmt: skip

DOCUMENTS: dict[str, tuple[SourceFormat, Any]] = {
    "claude.ai": (SourceFormat.CLAUDE_AI, CLAUDE_AI),
    "chatgpt": (SourceFormat.CHATGPT, CHATGPT),
    "opencode": (SourceFormat.OPENCODE, OPENCODE),
    "opencode 2": (SourceFormat.OPENCODE, OPENCODE_2),
    "opencode list": (SourceFormat.OPENCODE, [OPENCODE]),
    "mem0": (SourceFormat.MEM0, {"results": [MEMORY]}),
    "mem0 with its graph": (SourceFormat.MEM0, {"results": [MEMORY], "relations": [{"source": "ana", "target": "b"}]}),
    "mem0 list": (SourceFormat.MEM0, [MEMORY]),
    "mem0 relations first": (SourceFormat.MEM0, {"relations": [], "results": [MEMORY]}),
    "graph": (SourceFormat.MCP_MEMORY, LISTS),
    "graph list": (SourceFormat.MCP_MEMORY, GRAPH),
    "pam": (SourceFormat.PAM, PAM),
    "locomo": (SourceFormat.LOCOMO, LOCOMO),
    "locomo conversation": (SourceFormat.LOCOMO, LOCOMO[0]["conversation"]),
    "claude-mem": (SourceFormat.CLAUDE_MEM, CLAUDE_MEM),
    "gemini": (SourceFormat.GEMINI, GEMINI),
}
LINES: dict[str, tuple[SourceFormat, list[Any]]] = {
    "claude code": (SourceFormat.CLAUDE_CODE, [{"type": "mode", "sessionId": "s"}, CLAUDE_LINE]),
    "codex": (SourceFormat.CODEX, CODEX),
    "copilot": (SourceFormat.COPILOT, COPILOT),
    "gemini": (SourceFormat.GEMINI, [{"sessionId": "s", "projectHash": "h"}, *GEMINI["messages"]]),
    "graph": (SourceFormat.MCP_MEMORY, GRAPH),
}
FOREIGN = {name: value for name, (_, value) in DOCUMENTS.items()} | {name: value for name, (_, value) in LINES.items()}
"""What may stand within a file: another one, whole."""

WRITTEN = [{}, {"indent": 1}, {"indent": 0}, {"separators": (",", ":")}]


def within(value: Any, inner: Any) -> Any:
    """Return a file's value with something in place of each call's input."""
    if isinstance(value, dict):
        return {key: within(each, inner) for key, each in value.items()}
    if isinstance(value, list):
        return [within(each, inner) for each in value]
    return inner if value == CALL else value


def lines(values: list[Any], **how: Any) -> bytes:
    return "".join(json.dumps(value, **how) + "\n" for value in values).encode()


@pytest.mark.parametrize("how", WRITTEN, ids=["plain", "indented", "broken", "tight"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_a_document_quotes_does_not_make_it_another_programs(name: str, how: dict[str, Any]) -> None:
    source, value = DOCUMENTS[name]

    for inner in (*FOREIGN.values(), *map(json.dumps, FOREIGN.values())):
        data = json.dumps(within(value, inner), **how).encode()
        parsed = parse("export.json", data)
        assert (detect("export.json", data), parsed.format) == (source, source)
        assert parsed.events or parsed.memories
        assert detect("export.json", data[: len(data) // 3 + 80]) is source


@pytest.mark.parametrize("name", LINES)
def test_what_a_line_quotes_does_not_make_it_another_programs(name: str) -> None:
    source, values = LINES[name]

    for inner in (*FOREIGN.values(), *map(json.dumps, FOREIGN.values())):
        for value in (values, [{"type": "note", "about": inner}, *values]):
            data = lines(within(value, inner))
            parsed = parse("session.jsonl", data)
            assert parsed.format is source
            assert parsed.events or parsed.memories


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(DOCUMENTS)),
    inner=st.recursive(
        st.sampled_from([*FOREIGN.values(), "x", None]),
        lambda each: st.dictionaries(
            st.sampled_from(["entities", "relations", "evidence", "mapping", "chat_messages", "memory", "parentUuid",
                             "schema", "results", "payload", "projectHash", "info", "observations", "session_1"]),
            each | st.lists(each, max_size=2), max_size=4),
        max_leaves=5,
    ),
    indent=st.sampled_from([None, 0, 2]),
)  # fmt: skip
def test_no_key_within_a_tools_input_changes_what_a_file_is(name: str, inner: Any, indent: int | None) -> None:
    source, value = DOCUMENTS[name]

    assert detect("export.json", json.dumps(within(value, inner), indent=indent).encode()) is source


def test_a_document_of_another_program_that_quotes_ours_is_refused() -> None:
    for value in FOREIGN.values():
        for how in WRITTEN:
            data = json.dumps({"version": 3, "files": {"a": {"content": value}}}, **how).encode()
            with pytest.raises(InvalidError, match="not of a format"):
                detect("lock.json", data)


def test_keys_behind_a_long_value_are_seen() -> None:
    long = "x" * (SKETCHED_BYTES // 2)

    assert detect("a.jsonl", json.dumps({"about": long, **CLAUDE_LINE}).encode()) is SourceFormat.CLAUDE_CODE


@pytest.mark.parametrize(
    ("name", "text", "source"),
    [
        ("note.md", "# Tools\n\nOurs begin so:\n\n<!-- Generated by SpecStory, Markdown v2 -->\n", SourceFormat.MARKDOWN),
        ("note.txt", '{braces} and "mapping": {}, said the manual', SourceFormat.TEXT),
        ("note.txt", '[1] See "entities": ["type": "entity"] in the list.', SourceFormat.TEXT),
        ("note.md", '{"entities": []}\n', SourceFormat.MARKDOWN),
    ],
)  # fmt: skip
def test_a_text_that_quotes_a_mark_stays_a_text(name: str, text: str, source: SourceFormat) -> None:
    assert detect(name, text.encode()) is source


def test_every_json_format_has_a_shape() -> None:
    texts = {SourceFormat.AIDER, SourceFormat.CURSOR, SourceFormat.MARKDOWN, SourceFormat.SPECSTORY, SourceFormat.TEXT}

    assert {source for source, _ in SHAPES} == set(SourceFormat) - texts
    assert {source for source, _ in (*DOCUMENTS.values(), *LINES.values())} == set(SourceFormat) - texts


NOTHING = {
    "another program's lines": ("a.jsonl", "codex", b'{"a": 1}\n{"b": 2}\n'),
    "no JSON": ("a.jsonl", "claude-code", b"hello\nthere\n"),
    "a torn line alone": ("a.jsonl", "claude-code", b'{"parentUuid": null, "type": "us'),
    "relations of a graph alone": (
        "mem0.json",
        None,
        b'{"results": [], "relations": [{"source": "ana", "target": "b"}]}',
    ),
    "an empty graph": ("memory.json", None, b'{"entities": [], "relations": []}'),
    "conversations that are none": ("conversations.json", "chatgpt", b'[{"title": "x"}]'),
}


@pytest.mark.parametrize(("name", "named", "data"), NOTHING.values(), ids=NOTHING)
def test_a_file_that_gave_nothing_is_an_error_that_says_what_was_seen(
    shell: Shell, tmp_path: Path, name: str, named: str | None, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    code, _, err = shell.run("import", str(path), *(("--format", named) if named else ()))

    assert code != 0
    assert "nothing could be taken" in err
    assert "--format takes one of" in err


def test_a_transcript_of_bookkeeping_alone_is_no_error(shell: Shell, tmp_path: Path) -> None:
    rows = [{"type": "mode", "sessionId": "s"}, {"type": "summary", "summary": "x", "leafUuid": "u"}]
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(rows) + b"\0" * 4_096 + b'{"type": "us')

    assert shell.json("import", str(path))["events"] == 0


def test_the_relations_of_mem0s_graph_are_counted() -> None:
    _, value = DOCUMENTS["mem0 with its graph"]
    parsed = parse("mem0.json", json.dumps(value).encode())

    assert [memory.content for memory in parsed.memories] == ["Prefers window seats"]
    assert dict(parsed.skipped) == {"relation": 1}
