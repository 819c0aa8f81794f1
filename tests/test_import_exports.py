"""Exports of other programs: conversations, memories and histories in the form that each of them writes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.containers import databases
from scrubjay.importers import Parsed, SourceFormat, detect, parse
from scrubjay.importers.parsing import millis
from scrubjay.service.application import Application
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType, Role, Scope, Trust
from service_calls import NOW

FIXTURES = Path(__file__).parent / "fixtures"
FILES = {
    "aider.md": SourceFormat.AIDER,
    "chatgpt_conversations.json": SourceFormat.CHATGPT,
    "claude_ai_conversations.json": SourceFormat.CLAUDE_AI,
    "specstory.md": SourceFormat.SPECSTORY,
}


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def of(value: Any, name: str = "file.json") -> Parsed:
    data = json.dumps(value).encode()
    assert detect(name, data) is parse(name, data).format
    return parse(name, data)


def said(parsed: Parsed) -> list[tuple[str, str]]:
    return [(event.role.value if event.role else "", event.text) for event in parsed.events]


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_the_format_is_found_from_the_content(name: str, expected: SourceFormat) -> None:
    assert detect(name, fixture(name)) is expected
    assert detect(name, fixture(name)[:900]) is expected


def test_chatgpts_open_branch_is_read_and_what_hangs_beside_it_is_counted() -> None:
    parsed = parse("conversations.json", fixture("chatgpt_conversations.json"))

    assert said(parsed) == [
        ("user", "What is WAL? I use SQLite for the cart store."),
        ("assistant", "Write-ahead logging."),
        ("user", "What plant is this? 🌱"),
        ("assistant", "A basil."),
    ]
    assert [event.ts for event in parsed.events] == [
        1_795_165_201_000,
        1_795_165_210_000,
        1_795_165_300_000,
        1_795_165_305_500,
    ]
    assert {event.session_id for event in parsed.events} == {"c1", "c2"}
    assert parsed.events[1].metadata == {"model": "gpt-5"}
    assert dict(parsed.skipped) == {"branch": 1, "image": 1, "other_block": 1, "system": 1, "thinking": 1}


def test_a_chatgpt_tree_that_turns_in_a_circle_ends() -> None:
    nodes = {
        key: {"id": key, "parent": parent, "children": [], "message": {"author": {"role": "user"}, "content": {}}}
        for key, parent in (("a", "b"), ("b", "a"))
    }

    assert of([{"id": "c", "current_node": "a", "mapping": nodes}]).events == ()


def test_claude_ais_messages_are_their_blocks_of_text() -> None:
    parsed = parse("conversations.json", fixture("claude_ai_conversations.json"))

    assert said(parsed) == [
        ("user", "What is WAL?"),
        ("system", "my notes"),  # pasted: nobody said it
        ("assistant", "Write-ahead logging."),
        ("user", "Older messages have only this."),
    ]
    assert [event.dedupe_key for event in parsed.events] == [
        "claude-ai:m1",
        "claude-ai:m1:attached:0",
        "claude-ai:m2",
        "claude-ai:m3",
    ]
    assert dict(parsed.skipped) == {"attachment": 1, "other_block": 1, "thinking": 1}


def test_what_claude_ai_remembered_and_its_projects_are_notes_trusted_as_an_import() -> None:
    memories = of(
        [{"conversations_memory": "Likes tea.", "project_memories": {"p1": "Uses WAL."}, "account_uuid": "a"}]
    )
    projects = of(
        [
            {
                "uuid": "p1",
                "name": "Shop",
                "prompt_template": "Be brief.",
                "docs": [{"uuid": "d", "filename": "a.md", "content": "Port 8080."}],
            }
        ]
    )
    notes = [*memories.memories, *projects.memories]

    assert [note.content for note in notes] == ["Likes tea.", "Uses WAL.", "Be brief.", "Port 8080."]
    assert notes[3].name == "Shop / a.md"
    assert {note.trust for note in notes} == {Trust.IMPORT}
    assert len({note.metadata["source_key"] for note in notes}) == 4


def test_a_specstory_history_gives_the_turns_of_the_agents_session() -> None:
    parsed = parse("2026-11-20.md", fixture("specstory.md"))

    assert said(parsed) == [
        ("user", "Switch the cart store to SQLite WAL."),
        ("assistant", "I will run the tests first."),
        ("assistant", "WAL is on."),
        ("user", "Thanks. Write `_**User**_` into the docs, please."),
    ]
    assert {(event.agent, event.session_id) for event in parsed.events} == {
        ("claude-code", "5f0c1c1e-6a0e-4b0c-9d53-0a1b2c3d4e5f")
    }
    assert [event.ts for event in parsed.events] == [
        1_795_165_200_000,
        1_795_165_204_000,
        1_795_165_209_000,
        1_795_165_209_000,  # its header has no time: it was said after the one above
    ]
    assert dict(parsed.skipped) == {"sidechain": 1, "thinking": 1, "tool_text": 1}


CURSOR = """# Formatting
_Exported on 9/1/2026 at 10:00:00 GMT+2 from Cursor (1.5.5)_

---

**User**

We decided to indent with tabs.

---

Not with spaces.

---

**Cursor**

Tabs it is.

> **User** stands in a quote

---

**User**

---
"""


@pytest.mark.parametrize(
    ("written", "when"),
    [
        ("9/1/2026 at 10:00:00 GMT+2", "2026-09-01T08:00:00Z"),
        ("12/29/2025 at 3:57:23 PM GMT-3", "2025-12-29T18:57:23Z"),
        ("4/1/2026 at 18:50:59 GMT+5:30", "2026-04-01T13:20:59Z"),
        ("2025/12/16 at GMT+8 16:06:09", "2025-12-16T08:06:09Z"),
        ("01/09/2026 at 10:00:00 GMT+2", None),  # day or month?
        ("2025. 7. 6. at 18시 15분 42초 GMT+9", None),
        ("13/41/2026 at 99:00:00", None),
    ],
)
def test_a_chat_exported_from_cursor_is_a_talk(written: str, when: str | None) -> None:
    data = CURSOR.replace("9/1/2026 at 10:00:00 GMT+2", written).encode()
    parsed = parse("cursor_formatting.md", data)

    assert (detect("x.md", data), parsed.format) == (SourceFormat.CURSOR, SourceFormat.CURSOR)
    assert said(parsed) == [
        ("user", "We decided to indent with tabs.\n\n---\n\nNot with spaces."),
        ("assistant", "Tabs it is.\n\n> **User** stands in a quote"),
    ]
    assert {event.ts for event in parsed.events} == {None if when is None else millis(when)}
    assert dict(parsed.skipped) == {"empty": 1}


def test_a_chat_that_went_on_and_is_exported_again_gives_the_same_keys_for_what_it_had() -> None:
    longer = CURSOR.replace("9/1/2026", "9/2/2026") + "\n**User**\n\nThanks.\n\n---\n"
    before, after = parse("a.md", CURSOR.encode()).events, parse("b.md", longer.encode()).events

    assert [event.dedupe_key for event in after[:2]] == [event.dedupe_key for event in before]
    assert [event.text for event in after[2:]] == ["Thanks."]


def test_an_aider_history_gives_what_the_person_typed_and_what_the_agent_said() -> None:
    parsed = parse(".aider.chat.history.md", fixture("aider.md"))

    texts = said(parsed)
    assert [role for role, _ in texts] == ["user", "assistant", "user", "assistant", "user", "assistant", "assistant"]
    assert texts[0] == ("user", "The cart store must use SQLite in WAL mode.\nPrices are integers in cents.")
    assert texts[1][1].startswith("I will switch the cart store.\n\n#### Steps")
    assert "> WAL lets readers go on" in texts[1][1]
    assert texts[1][1].endswith(">>>>>>> REPLACE\n```")
    assert texts[2] == ("user", "should prices be rounded up?")
    assert texts[4] == ("user", "never log card numbers")
    assert texts[6] == ("assistant", "I masked them in `log.py`.")
    assert [event.session_id for event in parsed.events] == ["aider-2026-11-20T09:00:00Z"] * 4 + [
        "aider-2026-11-21T10:30:00Z"
    ] * 3
    assert parsed.events[0].ts == 1_795_165_200_000
    assert dict(parsed.skipped) == {"command": 4, "repeated": 1}


def test_an_aider_history_whose_lines_lost_their_blanks_is_read_too() -> None:
    text = fixture("aider.md").decode()
    cut = "\n".join(line.rstrip() for line in text.splitlines()).replace("#### Steps\n", "")

    parsed = parse("history.md", cut.encode())

    people = [words for role, words in said(parsed) if role == "user"]
    assert people == [words for role, words in said(parse("history.md", text.encode())) if role == "user"]


CLAUDE_MEM = """
create table sdk_sessions (id integer primary key, content_session_id text, memory_session_id text, project text,
    platform_source text default 'claude', user_prompt text, started_at_epoch integer);
create table observations (id integer primary key, memory_session_id text, project text, text text, type text,
    title text, subtitle text, facts text, narrative text, concepts text, files_read text, files_modified text,
    prompt_number integer, created_at text, created_at_epoch integer);
create table session_summaries (id integer primary key, memory_session_id text, project text, request text,
    investigated text, learned text, completed text, next_steps text, notes text, created_at_epoch integer);
create table user_prompts (id integer primary key, content_session_id text, prompt_number integer, prompt_text text,
    created_at text, created_at_epoch integer);
insert into sdk_sessions values (1, 's1', 'm1', 'shop', 'claude', 'x', 1795165200000);
insert into observations values (1, 'm1', 'shop', null, 'decision', 'Cart store on WAL', 'why', '["WAL is on"]',
    'The cart store was moved to WAL.', '["how-it-works"]', '[]', '["src/cart.py"]', 1, '2026', 1795165210000);
insert into session_summaries values (1, 'm1', 'shop', 'switch to WAL', null, 'WAL is fast', 'done', '', null, 1795165220000);
insert into user_prompts values (1, 's1', 1, 'Switch the cart store to SQLite WAL.', '2026', 1795165201000);
"""
MEM0 = """
create table history (id text primary key, memory_id text, old_memory text, new_memory text, event text,
    created_at datetime, updated_at datetime, is_deleted integer, actor_id text, role text);
insert into history values ('1', 'a', null, 'Likes tea', 'ADD', '2026-11-20T09:00:00Z', null, 0, null, 'user');
insert into history values ('2', 'b', null, 'Lives in Rome', 'ADD', '2026-11-20T09:01:00Z', null, 0, null, 'user');
insert into history values ('3', 'a', 'Likes tea', 'Likes green tea', 'UPDATE', '2026-11-20T09:02:00Z', null, 0, null, 'user');
insert into history values ('4', 'b', 'Lives in Rome', null, 'DELETE', '2026-11-20T09:03:00Z', null, 1, null, 'user');
"""


def made(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript("pragma journal_mode = wal;" + script)
    return path


def test_claude_mems_database_gives_prompts_observations_and_summaries(tmp_path: Path) -> None:
    parts = list(databases.parts(made(tmp_path / "claude-mem.db", CLAUDE_MEM)))
    parsed = [parse(part.name, part.data, part.format) for part in parts]
    (prompt,) = parsed[0].events
    observation, summary = parsed[1].memories[0], parsed[2].memories[0]

    assert [part.name for part in parts] == [
        "claude-mem.db/prompts/1",
        "claude-mem.db/observations/1",
        "claude-mem.db/summaries/1",
    ]
    assert all(detect(part.name, part.data) is SourceFormat.CLAUDE_MEM for part in parts)
    assert (prompt.agent, prompt.session_id, prompt.project, prompt.ts) == (
        "claude-code",
        "s1",
        "shop",
        1_795_165_201_000,
    )
    assert observation.content == "Cart store on WAL\nThe cart store was moved to WAL.\n- WAL is on"
    assert (observation.scope, observation.resource_id, observation.trust) == (Scope.PROJECT, "shop", Trust.IMPORT)
    assert observation.metadata["files"] == ["src/cart.py"]
    assert summary.content == "Asked: switch to WAL\nLearned: WAL is fast\nDone: done"


@pytest.mark.anyio
async def test_prompts_of_claude_mem_and_of_the_transcript_are_stored_once(
    tmp_path: Path, service: Application
) -> None:
    line = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-11-20T09:00:00Z",
        "message": {"role": "user", "content": "Switch the cart store to SQLite WAL."},
    }
    transcript = api.ImportRequest(name="s1.jsonl", data=json.dumps(line).encode())
    part = next(iter(databases.parts(made(tmp_path / "claude-mem.db", CLAUDE_MEM))))
    first = await service.call(PERSON, "import", transcript)
    other = await service.call(PERSON, "import", api.ImportRequest(name=part.name, data=part.data))

    assert (first.events, other.events, other.duplicates) == (1, 0, 1)


def test_mem0s_history_gives_the_last_word_on_each_memory(tmp_path: Path) -> None:
    (part,) = databases.parts(made(tmp_path / "history.db", MEM0))
    parsed = parse(part.name, part.data, part.format)

    assert [memory.content for memory in parsed.memories] == ["Likes green tea"]
    assert dict(parsed.skipped) == {"deleted": 1, "duplicate": 1}


@pytest.mark.anyio
async def test_an_edited_memory_of_mem0_is_updated_and_not_doubled(service: Application) -> None:
    def results(text: str) -> bytes:
        memory = {"id": "a", "memory": text, "hash": "h", "created_at": "2026-11-20T09:00:00Z", "user_id": "maya"}
        return json.dumps({"results": [memory]}).encode()

    for text in ("Likes tea", "Likes green tea", "Likes green tea"):
        answer = await service.call(PERSON, "import", api.ImportRequest(name="m.json", data=results(text)))
    entries = (await service.call(PERSON, "list", api.ListRequest())).entries

    assert (answer.format, answer.memories, answer.duplicates) == ("mem0", 0, 1)
    assert [entry.memory.content for entry in entries] == ["Likes green tea"]


@pytest.mark.parametrize(
    ("script", "words"),
    [("create table t (x);", "of no program that scrubjay knows"), (None, "cannot be read as a database")],
)
def test_a_database_of_another_program_or_a_damaged_one_is_refused(
    tmp_path: Path, script: str | None, words: str
) -> None:
    path = tmp_path / "x.db"
    if script is None:
        path.write_bytes(databases.MAGIC + b"\x10\x00" + b"\xff" * 5_000)
    else:
        made(path, script)

    with pytest.raises(InvalidError, match=words):
        list(databases.parts(path))


@pytest.mark.anyio
@pytest.mark.parametrize("name", FILES)
async def test_an_export_twice_adds_nothing_and_a_dry_run_stores_nothing(name: str, service: Application) -> None:
    request = api.ImportRequest(name=name, data=fixture(name))
    tried = await service.call(PERSON, "import", api.ImportRequest(name=name, data=fixture(name), dry_run=True))
    empty = (await service.call(PERSON, "events", api.EventsRequest())).events
    first = await service.call(PERSON, "import", request)
    again = await service.call(PERSON, "import", request)

    assert empty == ()
    assert tried.events == first.events == again.duplicates > 0
    assert again.events == 0


@pytest.mark.parametrize("format_", ["chatgpt", "claude-ai", "claude-mem", "mem0", "opencode"])
@pytest.mark.parametrize("data", [b"{", b"[" * 200_000, b'{"a": 1}x', b'"text"', b"7"])
def test_what_is_no_export_is_refused_or_counted(format_: str, data: bytes) -> None:
    try:
        parsed = parse("file.json", data, format_)
    except InvalidError as error:
        assert "file.json" in error.message  # noqa: PT017
    else:
        assert (parsed.events, parsed.memories) == ((), ())
        assert parsed.skipped


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(
        {"mapping", "message", "author", "role", "content", "parts", "chat_messages", "uuid", "id", "sender", "docs",
         "results", "memory", "history", "new_memory", "event", "observations", "prompts", "facts", "info", "messages",
         "data", "create_time", "parent", "current_node", "prompt_text", "content_session_id"})), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(value=JSON, format_=st.sampled_from(["chatgpt", "claude-ai", "claude-mem", "mem0", "opencode", "gemini"]))
def test_no_json_is_too_strange_to_be_read_or_refused(value: Any, format_: str) -> None:
    try:
        parsed = parse("file.json", json.dumps(value).encode(), format_)
    except InvalidError:
        return
    for event in parsed.events:
        assert event.type in (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.TOOL_RESULT)
        assert event.role in Role
        assert event.ts is None or event.ts < NOW * 10
