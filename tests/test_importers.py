from __future__ import annotations

import json
import re
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.importers import TYPED, Parsed, SourceFormat, detect, parse
from scrubjay_shared.errors import InvalidError, NotFoundError, ScrubjayError
from scrubjay_shared.records import EventDraft, EventType, Kind, Layer, MemoryDraft, Scope, Trust

FIXTURES = Path(__file__).parent / "fixtures"
CLAUDE = "claude_code.jsonl"
FILES = {
    CLAUDE: SourceFormat.CLAUDE_CODE,
    "locomo_tiny.json": SourceFormat.LOCOMO,
    "mcp_memory.jsonl": SourceFormat.MCP_MEMORY,
    "vault_note.md": SourceFormat.MARKDOWN,
    "CLAUDE.md": SourceFormat.MARKDOWN,
}
UTC_2026_11_20_09_00 = 1_795_165_200_000
UTC_2024_02_29_13_56 = 1_709_214_960_000
UTC_2024_03_01_00_05 = 1_709_251_500_000


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def keys(parsed: Parsed) -> list[object]:
    return [event.dedupe_key for event in parsed.events] + [m.metadata["source_key"] for m in parsed.memories]


def named(parsed: Parsed) -> dict[str | None, MemoryDraft]:
    return {memory.name: memory for memory in parsed.memories}


def user_line(
    uuid: str | None = "u1", parent: str | None = None, content: Any = "hello", **more: Any
) -> dict[str, Any]:
    return {
        "type": "user",
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": "2026-11-20T09:00:00Z",
        "message": {"role": "user", "content": content},
        **more,
    }


def transcript(*found: object) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in found).encode()


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_the_format_is_found_from_the_content(name: str, expected: SourceFormat) -> None:
    data = fixture(name)

    assert detect(name, data) == expected
    assert detect(name, data[:600]) == expected
    assert parse(name, data).format == expected


@pytest.mark.parametrize("wrap", ["bom", "crlf", "utf16"])
@pytest.mark.parametrize("name", FILES)
def test_byte_order_marks_and_line_ends_change_nothing(name: str, wrap: str) -> None:
    plain = fixture(name)
    wrapped = {
        "bom": b"\xef\xbb\xbf" + plain,
        "crlf": plain.replace(b"\n", b"\r\n"),
        "utf16": plain.decode().encode("utf-16"),
    }

    assert parse(name, wrapped[wrap]) == parse(name, plain)


@pytest.mark.parametrize("name", FILES)
def test_reading_twice_gives_the_same_distinct_keys(name: str) -> None:
    once, twice = parse(name, fixture(name)), parse(name, fixture(name))

    assert once == twice
    assert len(set(keys(once))) == len(keys(once)) > 0


@pytest.mark.parametrize("name", FILES)
def test_imports_are_trusted_as_imports_but_for_what_was_typed_to_an_agent_and_never_always_loaded(name: str) -> None:
    parsed = parse(name, fixture(name))

    for event in parsed.events:
        is_typed = parsed.format in TYPED and event.type is EventType.USER_MESSAGE
        assert event.trust is (Trust.USER if is_typed else Trust.IMPORT)
    assert {memory.trust for memory in parsed.memories} <= {Trust.IMPORT}
    assert {memory.layer for memory in parsed.memories} <= {Layer.ARCHIVE}


@pytest.mark.parametrize("name", FILES)
def test_a_given_project_owns_everything(name: str) -> None:
    parsed = parse(name, fixture(name), project="proj_shop")

    assert {event.project for event in parsed.events} <= {"proj_shop"}
    assert {(m.scope, m.resource_id) for m in parsed.memories} <= {(Scope.PROJECT, "proj_shop")}


def test_a_transcript_gives_what_was_said_and_done_on_the_kept_branch() -> None:
    parsed = parse(CLAUDE, fixture(CLAUDE))

    assert [(event.type.value, event.text) for event in parsed.events] == [
        ("user_message", "Switch the cart store to SQLite WAL"),
        ("assistant_message", "I'll look at the store first.\nThen I run the tests."),
        ("tool_result", "$ pytest -q\n12 passed"),
        ("tool_result", "Read cart.py\nno such file"),
        ("assistant_message", "All 12 tests pass."),
        ("user_message", "Now set a busy timeout of 5 seconds"),
        ("user_message", "and add a test for it"),
        ("assistant_message", "Set it to 5000 ms."),
        (
            "compaction",
            "This session is being continued from a previous conversation. The cart store now uses SQLite in WAL mode.",
        ),
        ("user_message", "thanks \N{REPLACEMENT CHARACTER}"),
    ]


def test_a_transcript_says_what_it_left_out_and_why() -> None:
    parsed = parse(CLAUDE, fixture(CLAUDE))

    assert dict(parsed.skipped) == {
        "bad_json": 1,
        "bookkeeping": 2,
        "branch": 2,
        "command": 1,
        "duplicate": 1,
        "interrupted": 1,
        "meta": 1,
        "not_human": 1,
        "not_object": 1,
        "sidechain": 1,
        "summary": 1,
        "synthetic": 1,
        "system": 1,
        "thinking": 1,
        "torn_line": 1,
    }


def test_events_of_a_transcript_carry_session_project_time_and_circumstances() -> None:
    events = parse(CLAUDE, fixture(CLAUDE)).events

    first, failed, compaction = events[0], events[3], events[8]
    assert first.session_id == "5f0c1c1e-6a0e-4b0c-9d53-0a1b2c3d4e5f"
    assert first.project == "/home/ana/shop"
    assert first.ts == UTC_2026_11_20_09_00 + 60_000
    assert first.dedupe_key == "claude-code:u1"
    assert failed.metadata == {"git_branch": "main", "tool": "Read", "call_id": "toolu_2", "is_error": True}
    assert compaction.metadata == {"git_branch": "main", "trigger": "auto", "preTokens": 155_000}


def test_a_resumed_copy_of_a_line_keeps_its_key() -> None:
    copied = parse("other.jsonl", transcript(user_line(sessionId="elsewhere", timestamp="2026-11-21T00:00:00Z")))

    assert keys(copied) == keys(parse("one.jsonl", transcript(user_line())))


def test_an_answer_that_grew_since_the_last_import_is_not_taken_for_the_known_one() -> None:
    def answer(uuid: str, text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return user_line(uuid, type="assistant", message={"id": "m", "role": "assistant", "content": content})

    early = parse("t.jsonl", transcript(user_line("u0"), answer("a1", "First")))
    late = parse("t.jsonl", transcript(user_line("u0"), answer("a1", "First"), answer("a2", "second")))

    assert [event.text for event in late.events] == ["hello", "First\nsecond"]
    assert keys(late)[0] == keys(early)[0]
    assert keys(late)[1] != keys(early)[1]


def test_lines_with_unknown_parents_follow_the_line_before() -> None:
    data = transcript(
        user_line("u1", None, "one"),
        user_line("u2", "gone", "two"),
        user_line("u3", None, "three"),
        user_line("u4", "u4", "four"),
    )

    assert [event.text for event in parse("t.jsonl", data).events] == ["one", "two", "three", "four"]


def test_a_circle_of_parents_ends() -> None:
    data = transcript(user_line("u1", "u2", "one"), user_line("u2", "u1", "two"))

    assert [event.text for event in parse("t.jsonl", data).events] == ["one", "two"]


@pytest.mark.parametrize(
    ("more", "content", "reason"),
    [
        ({}, "<command-name>/init</command-name>", "command"),
        ({}, "<local-command-stdout>ok</local-command-stdout>", "command"),
        ({}, "<local-command-caveat>x</local-command-caveat>", "command"),
        ({}, "<task-notification>x</task-notification>", "command"),
        ({}, "<bash-stdout>ok</bash-stdout>", "command"),
        ({}, "Caveat: the messages below", "command"),
        ({}, "This session is being continued from a previous conversation", "command"),
        ({}, "[Request interrupted by user for tool use]", "interrupted"),
        ({}, "<system-reminder>x</system-reminder>", "reminder"),
        ({}, [{"type": "image", "source": {}}], "image"),
        ({}, "  ", "empty"),
        ({"message": None}, "", "empty"),
        ({"isMeta": True}, "x", "meta"),
        ({"isSidechain": True}, "x", "sidechain"),
        ({"isVisibleInTranscriptOnly": True}, "x", "transcript_only"),
        ({"origin": {"kind": "task-notification"}}, "x", "not_human"),
        ({"toolUseResult": {}}, "x", "tool_text"),
        ({"type": "progress"}, "x", "bookkeeping"),
        ({"type": 7}, "x", "bookkeeping"),
    ],
)
def test_what_the_person_did_not_type_is_counted_by_reason(more: dict[str, Any], content: Any, reason: str) -> None:
    parsed = parse("t.jsonl", transcript(user_line(content=content, **more)))

    assert (parsed.events, parsed.skipped) == ((), ((reason, 1),))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-11-20T09:00:00.000Z", UTC_2026_11_20_09_00),
        ("2026-11-20T10:00:00+01:00", UTC_2026_11_20_09_00),
        ("2026-11-20T09:00:00", UTC_2026_11_20_09_00),
        (UTC_2026_11_20_09_00, UTC_2026_11_20_09_00),
        (UTC_2026_11_20_09_00 // 1000, UTC_2026_11_20_09_00),
        ("yesterday", None),
        (float("nan"), None),
        (-1, None),
        (10**30, None),
        (True, None),
        (None, None),
    ],
)
def test_times_are_read_in_every_spelling_and_never_made_up(written: Any, expected: int | None) -> None:
    (event,) = parse("t.jsonl", transcript(user_line(timestamp=written))).events

    assert event.ts == expected


def test_locomo_turns_come_in_order_with_time_speaker_and_caption() -> None:
    parsed = parse("locomo_tiny.json", fixture("locomo_tiny.json"), only="conv-1")

    assert [(e.session_id, e.ts, e.text, e.metadata) for e in parsed.events] == [
        (
            "locomo/conv-1/session_1",
            UTC_2024_02_29_13_56,
            "I repainted the boat.",
            {"speaker": "Ines", "dia_id": "D1:1"},
        ),
        (
            "locomo/conv-1/session_1",
            UTC_2024_02_29_13_56 + 60_000,
            "Nice!",
            {"speaker": "Tomas", "dia_id": "D1:2", "caption": "a blue rowing boat"},
        ),
        ("locomo/conv-1/session_2", UTC_2024_03_01_00_05, "Up late again?", {"speaker": "Tomas", "dia_id": "D2:1"}),
        ("locomo/conv-1/session_10", None, "Bye", {"speaker": "Ines", "dia_id": "D10:1"}),
    ]
    assert keys(parsed) == [f"locomo:conv-1:{dia_id}" for dia_id in ("D1:1", "D1:2", "D2:1", "D10:1")]
    assert parsed.skipped == (("empty", 1),)
    assert {event.project for event in parsed.events} == {None}


def test_one_locomo_conversation_can_be_chosen_by_place_or_stand_alone() -> None:
    data = fixture("locomo_tiny.json")
    alone = json.dumps(json.loads(data)[1]).encode()

    assert len(parse("l.json", data).events) == 5
    assert parse("l.json", data, only="2") == parse("l.json", data, only="conv-2") == parse("l.json", alone)


def test_an_unknown_locomo_conversation_is_not_found() -> None:
    with pytest.raises(NotFoundError) as caught:
        parse("l.json", fixture("locomo_tiny.json"), only="conv-99")

    assert "conv-1, conv-2" in caught.value.hint


def test_a_memory_graph_gives_notes_and_facts_that_stand_alone() -> None:
    parsed = parse("mcp_memory.jsonl", fixture("mcp_memory.jsonl"))

    assert [(m.name, m.kind, m.content) for m in parsed.memories] == [
        ("Ada_Berg", Kind.NOTE, "Ada_Berg (person)"),
        (None, Kind.STORED, "Ada_Berg (person): Prefers trains to planes"),
        (None, Kind.STORED, "Ada_Berg leads the cart team"),
        ("Shop", Kind.NOTE, "Shop (project)"),
        (None, Kind.STORED, "Shop (project): Runs on SQLite"),
        (None, Kind.STORED, "Shop (project): Opened in 2024"),
        ("Acme", Kind.NOTE, "Acme"),
        (None, Kind.STORED, "Acme: Sells boats"),
        (None, Kind.STORED, "Ada_Berg works on Shop"),
        (None, Kind.STORED, "Shop owned by Acme"),
    ]
    assert dict(parsed.skipped) == {"bad_json": 1, "duplicate": 1, "no_name": 1, "not_object": 1, "unknown": 1}


def test_a_memory_graph_in_one_object_reads_the_same_as_its_lines() -> None:
    entity = {"name": "Ada", "entityType": "person", "observations": ["Likes tea"]}
    relation = {"from": "Ada", "to": "Acme", "relationType": "works_at"}
    lines = transcript({"type": "entity", **entity}, {"type": "relation", **relation})
    whole = json.dumps({"entities": [entity], "relations": [relation]}, indent=1).encode()

    assert parse("memory", whole) == parse("memory", lines)


def test_a_vault_note_is_one_note_with_its_title_aliases_tags_and_date() -> None:
    (note,) = parse("kitchen/vault_note.md", fixture("vault_note.md")).memories

    assert (note.name, note.kind) == ("Pour-over coffee", Kind.NOTE)
    assert note.aliases == ("V60", "filter coffee", "kitchen/pour-over")
    assert note.created_at == 1_770_076_800_000
    assert note.content.startswith("# Pour-over coffee\n\n- [method] 15 g of coffee")
    assert note.content.endswith("- pairs_with [[Cardamom buns]]")
    assert note.metadata["source"] == "kitchen/vault_note.md"
    assert note.metadata["tags"] == ["coffee", "kitchen"]
    assert note.metadata["frontmatter"] == {"type": "note"}


@pytest.mark.parametrize(
    ("written", "key", "values"),
    [
        ('aliases: ["a, b", c]', "aliases", ["a, b", "c"]),
        ("aliases: 'it''s'", "aliases", ["it's"]),
        ('aliases: "a \\"quoted\\" word"', "aliases", ['a "quoted" word']),
        ("aliases: Comment # x", "aliases", ["Comment"]),
        ("aliases:\n  - a # one\n  - 'b: c'\n# a remark\nother: x", "aliases", ["a", "b: c"]),
        ("aliases:\n- a\n- b", "aliases", ["a", "b"]),
        ("aliases: >-\n  folded\n  text", "aliases", ["folded text"]),
        ("aliases: a: b: [c", "aliases", ["a: b: [c"]),  # no YAML, but everybody knows what is meant
        ("aliases: yes\ntitle: 1.10", "aliases", ["yes"]),
        ("bad: [\naliases: a", "aliases", ["a"]),
        ("aliases: &x [*x, a]", "aliases", ["&x [*x, a]"]),
    ],
)
def test_frontmatter_is_read_as_yaml_and_a_fault_in_it_costs_no_more_than_its_key(
    written: str, key: str, values: list[str]
) -> None:
    (note,) = parse("n.md", f"---\n{written}\n---\nText.\n".encode()).memories

    assert list(getattr(note, key)) == values
    assert note.content == "Text."


def test_a_rule_at_the_beginning_is_no_note_and_a_second_frontmatter_no_text() -> None:
    ruled = parse("n.md", b"---\n\n# One\n\nFirst.\n\n---\n\n## Two\n\nSecond.\n").memories
    twice = parse("n.md", b"---\ntitle: A\n---\n\n---\ntitle: B\ntags: [x]\n---\nText.\n").memories
    prose = parse("n.md", b"---\nHello there.\nAll is well.\n---\nText.\n").memories

    assert [note.content for note in ruled] == ["First.\n\n---", "Second."]
    assert [(note.name, note.content, note.metadata["tags"]) for note in twice] == [("A", "Text.", ["x"])]
    assert "Hello there." in prose[0].content


def test_a_bomb_in_frontmatter_does_not_go_off() -> None:
    lines = ["a: &a [x, x]", *(f"{name}: &{name} [*{above}, *{above}]" for above, name in pairwise("abcdefghijklmnop"))]
    (note,) = parse("n.md", ("---\n" + "\n".join(lines) + "\ndeep: " + "[" * 4_000 + "\n---\nText.").encode()).memories

    assert note.content == "Text."


def test_a_document_is_split_at_its_headings_and_not_in_code_fences() -> None:
    parsed = parse("CLAUDE.md", fixture("CLAUDE.md"))

    assert {name: memory.content for name, memory in named(parsed).items()} == {
        "Shop": "House rules for agents.",
        "Shop / Style": "Use tabs.\n\n```sh\n# not a heading\nmake lint\n```",
        "Shop / Style / Commits": "Imperative mood.",
        "Shop / Tests": "Plain functions, no mocks.\n\n~~~markdown\n## also not a heading\n~~~",
        "Shop / Tests (2)": "Run them before you push.",
    }
    assert parsed.skipped == (("empty", 1),)


def test_an_edited_note_keeps_its_key() -> None:
    before = parse("a.md", b"# A\n\n## One\n\nold\n\n## Two\n\ntwo\n")
    after = parse("a.md", b"# A\n\n## One\n\nnew\n\n## Two\n\ntwo\n")

    assert keys(before) == keys(after)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("just words", ["file"]),
        ("Title\n=====\n\nwords", ["Title"]),
        ("words\n\n# One\n\nmore\n\n# Two\n\nyet more", ["file", "file / One", "file / Two"]),
        ("#tag is no heading", ["file"]),
        ("```one line```\n\n# One\n\nwords", ["file", "file / One"]),
        ("## A\n\n1\n\n## A\n\n2\n\n## A (2)\n\n3", ["file / A", "file / A (2)", "file / A (2) (2)"]),
        ("---\nA rule, then words.\n---\nMore.", ["file"]),
        ("---\ntitle: open", ["file"]),
        ('---\ntitle: "Quoted: yes"\nsummary: >\n  folded\n  words\n---\nBody', ["Quoted: yes"]),
        ("# " + "long " * 100 + "\n\nwords", ["long " * 39 + "long…"]),
    ],
)
def test_notes_are_named_by_title_and_headings(text: str, names: list[str]) -> None:
    parsed = parse("folder/file.md", text.encode())

    assert [memory.name for memory in parsed.memories] == names


def test_text_gives_a_note_for_each_paragraph_of_one_session() -> None:
    parsed = parse("diary.txt", "Första stycket\növer två rader.\r\n\r\n \r\nAgain.\n\nAgain.\n".encode())

    assert [(e.type, e.text) for e in parsed.events] == [
        (EventType.NOTE, "Första stycket\növer två rader."),
        (EventType.NOTE, "Again."),
        (EventType.NOTE, "Again."),
    ]
    assert len({event.session_id for event in parsed.events}) == 1
    assert parsed.events[0].session_id.startswith("text/diary.txt/")


def test_an_edited_text_adds_only_what_is_new() -> None:
    before = parse("diary.txt", b"one\n\ntwo\n\none")
    after = parse("sub/diary.txt", b"zero\n\none\n\ntwo and more\n\none")

    assert len(set(keys(after)) - set(keys(before))) == 2


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("empty.jsonl", b"", None),
        ("blank.md", b" \n\xef\xbb\xbf"[:2], None),
        ("only-mark.txt", b"\xef\xbb\xbf\n", None),
        ("picture.md", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", None),
        ("memory.db", b"SQLite format 3\x00", None),
        ("late.txt", b"x" * 10_000 + b"\0", None),
        ("latin1.txt", "blåbär".encode("latin-1"), None),
        ("latin1.md", "blåbär".encode("latin-1"), None),
        ("odd.txt", b"\xff\xfea\x00b", None),
        ("table.csv", b"a,b\n1,2\n", None),
        ("settings.json", b'{"theme": "dark"}', None),
        ("events.jsonl", b'{"agent": "x", "session_id": "s"}\n', None),
        ("broken.json", b"{", "locomo"),
        ("deep.json", b"[" * 100_000, "locomo"),
        ("none.json", b"[1, {}]", "locomo"),
        ("a.txt", b"words", "word-perfect"),
        ("empty.txt", b"", "text"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_a_hint(name: str, data: bytes, kind: str | None) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(name, data, kind)

    assert (kind if kind == "word-perfect" else name) in caught.value.message
    assert caught.value.hint


def test_an_unknown_format_names_the_ones_there_are() -> None:
    with pytest.raises(InvalidError) as caught:
        parse("table.csv", b"a,b\n1,2\n")

    assert caught.value.hint == f"--format takes one of: {', '.join(sorted([*SourceFormat, 'scrubjay']))}"


def test_choosing_a_conversation_elsewhere_than_in_locomo_is_refused() -> None:
    with pytest.raises(InvalidError):
        parse("a.txt", b"words", only="1")


def test_a_line_nested_beyond_reason_is_counted() -> None:
    data = b'{"a":' * 100_000 + b"\n" + transcript(user_line())

    parsed = parse("t.jsonl", data)

    assert len(parsed.events) == 1
    assert parsed.skipped == (("bad_json", 1),)


def test_bytes_that_are_no_text_do_not_cost_the_rest_of_the_line() -> None:
    data = transcript(user_line(content="caf? au lait")).replace(b"caf?", b"caf\xe9")

    assert [event.text for event in parse("t.jsonl", data).events] == ["caf\N{REPLACEMENT CHARACTER} au lait"]


FIELDS = (
    *("type", "uuid", "parentUuid", "message", "content", "text", "id", "name", "input", "attachment", "prompt"),
    *("timestamp", "cwd", "conversation", "session_1", "session_1_date_time", "dia_id", "speaker", "sample_id"),
    *("observations", "entityType", "from", "to", "relationType", "entities"),
)


def test_the_sample_conversation_is_in_order_and_its_questions_point_into_it() -> None:
    samples = resources.files("scrubjay") / "samples"
    lines = (samples / "conversation.jsonl").read_bytes().splitlines()
    questions = json.loads((samples / "questions.json").read_bytes())

    drafts = [msgspec.json.decode(line, type=EventDraft) for line in lines]

    times = [draft.ts for draft in drafts if draft.ts is not None]
    assert times == sorted(times)
    assert len(times) == len(drafts)
    assert len(questions) == 8
    assert all(drafts[place - 1].text for question in questions for place in question["lines"])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)
types = st.sampled_from(["user", "assistant", "system", "attachment", "entity", "relation", "tool_use"])
odd_lines = st.lists(
    st.builds(lambda value, kind: {**value, "type": kind} if isinstance(value, dict) else value, json_values, types),
    max_size=6,
)


@given(st.sampled_from([None, *SourceFormat]), st.sampled_from(["a.jsonl", "a.md", "a.txt", "a", ""]), st.binary())
def test_bytes_of_any_kind_are_read_or_refused(kind: SourceFormat | None, name: str, data: bytes) -> None:
    try:
        first = parse(name, data, kind)
    except ScrubjayError:
        return

    assert keys(parse(name, data, kind)) == keys(first)


@given(st.sampled_from(SourceFormat), odd_lines, st.booleans())
def test_json_of_any_shape_is_read_or_refused(kind: SourceFormat, found: list[Any], as_list: bool) -> None:  # noqa: FBT001 - drawn
    data = json.dumps(found).encode() if as_list else transcript(*found)
    try:
        first = parse("a.jsonl", data, kind)
    except ScrubjayError:
        return

    assert keys(parse("a.jsonl", data, kind)) == keys(first)
    assert all(event.text.encode() or event.metadata["caption"].encode() for event in first.events)
    assert all(memory.content.encode() for memory in first.memories)


@given(st.text(alphabet="# -=`~\nab", max_size=80))
def test_every_word_of_a_document_is_in_a_note_unless_counted(text: str) -> None:
    try:
        parsed = parse("f.md", text.encode())
    except InvalidError:
        assert not text.strip()
        return

    kept = re.findall("[ab]+", " ".join(f"{m.name} {m.content}" for m in parsed.memories))
    assert parsed.skipped or not parsed.memories or set(re.findall("[ab]+", text)) <= set(kept)
    assert len({m.name for m in parsed.memories}) == len(set(keys(parsed))) == len(parsed.memories)
