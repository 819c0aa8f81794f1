"""OpenCode 2's database beside the tables of version 1: every session is read once, in its newest form, or refused."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli_shell import Shell
from scrubjay.containers import databases
from scrubjay.hosts.transcripts import TRANSCRIPTS
from scrubjay.importers import SourceFormat, detect, parse
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType

T = 1_788_000_000_000
VERSION_1 = """
create table session (id text primary key, directory text not null, parent_id text, title text, revert text, time_updated integer);
create table message (id text primary key, session_id text not null, time_created integer, data text not null);
create table part (id text primary key, message_id text not null, session_id text, data text not null);
"""
VERSION_2 = """
create table {session} (id text primary key, project_id text, parent_id text, fork_session_id text, directory text not null,
    title text, version text, revert text, time_created integer, time_updated integer);
create table session_message (id text primary key, session_id text not null, type text not null, seq integer not null,
    time_created integer, time_updated integer, data text not null);
"""


class Made:
    """A database of OpenCode, as one version or both wrote it."""

    def __init__(self, path: Path, *scripts: str) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._run("pragma journal_mode = wal;" + "".join(scripts))

    def _run(self, script: str, *rows: tuple[str, tuple[Any, ...]]) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(script)
            for statement, values in rows:
                database.execute(statement, values)
            database.commit()

    def run(self, script: str) -> None:
        self._run(script)

    def old(self, session: str, *said: tuple[str, str, str], updated: int = T) -> None:
        """Add a session of version 1: messages by id, role and text."""
        rows: list[tuple[str, tuple[Any, ...]]] = [
            ("insert into session values (?, '/home/u/shop', null, 't', null, ?)", (session, updated))
        ]
        for number, (key, role, text) in enumerate(said):
            about = json.dumps({"role": role, "time": {"created": T + number}})
            part = json.dumps({"type": "text", "text": text, "time": {"end": T + number}})
            rows.append(("insert into message values (?, ?, ?, ?)", (key, session, T + number, about)))
            rows.append(("insert into part values (?, ?, ?, ?)", (key.replace("msg", "prt"), key, session, part)))
        self._run("", *rows)

    def new(
        self, session: str, *messages: tuple[str, str, Any], table: str = "session_v2", updated: int = T, **more: Any
    ) -> None:
        """Add a session of version 2: messages by id, type and data, or text."""
        about = {"id": session, "directory": "/home/u/shop", "time_updated": updated, **more}
        marks = ", ".join("?" for _ in about)
        rows = [(f"insert into {table} ({', '.join(about)}) values ({marks})", tuple(about.values()))]
        for number, (key, kind, data) in enumerate(messages):
            whole = data if isinstance(data, dict) else text_of(kind, data)
            when = {"time": {"created": T + number * 1000}} | whole
            values = (key, session, kind, number, T + number * 1000, T, json.dumps(when))
            rows.append(("insert into session_message values (?, ?, ?, ?, ?, ?, ?)", values))
        self._run("", *rows)


def text_of(kind: str, text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]} if kind == "assistant" else {"text": text}


def both(path: Path) -> Made:
    return Made(path, VERSION_1, VERSION_2.format(session="session_v2"))


def texts(path: Path) -> list[str]:
    return [event.text for part in databases.parts(path) for event in parse(part.name, part.data, part.format).events]


def stored(shell: Shell) -> Counter[str]:
    return Counter(event["text"] for event in shell.json("events", "-n", "500")["events"])


def test_sessions_of_both_versions_are_read(tmp_path: Path) -> None:
    made = both(tmp_path / "opencode.db")
    made.old("ses_a", ("msg_1", "user", "An old sentence."))
    made.new("ses_b", ("msg_2", "user", "We named the branch trunk."), ("msg_3", "assistant", "Trunk it is."))

    assert texts(made.path) == ["An old sentence.", "We named the branch trunk.", "Trunk it is."]


def test_a_database_of_version_2_alone_is_read(tmp_path: Path) -> None:
    made = Made(tmp_path / "x.db", VERSION_2.format(session="session_v2"))
    made.new("ses_b", ("msg_2", "user", "We named the branch trunk."))

    assert texts(made.path) == ["We named the branch trunk."]


def test_a_test_versions_database_is_read(tmp_path: Path) -> None:
    made = Made(tmp_path / "opencode-next.db", VERSION_2.format(session="session"))
    made.new("ses_b", ("msg_2", "user", "We named the branch trunk."), table="session")

    assert texts(made.path) == ["We named the branch trunk."]


def test_columns_that_are_not_there_are_done_without(tmp_path: Path) -> None:
    script = (
        "create table session_v2 (id text, directory text);"
        "create table session_message (id text, session_id text, type text, data text);"
        "insert into session_v2 values ('ses_1', '/x');"
        """insert into session_message values ('msg_1', 'ses_1', 'user', '{"text": "Trunk."}');"""
    )

    assert texts(Made(tmp_path / "x.db", script).path) == ["Trunk."]


def test_what_messages_of_version_2_say(tmp_path: Path) -> None:
    tool = {
        "type": "tool", "id": "call_1", "name": "shell", "time": {"created": T, "completed": T + 500},
        "state": {"status": "completed", "input": {"command": "ls"}, "content": [{"type": "text", "text": "a.py"}]},
    }  # fmt: skip
    failed = {"type": "tool", "id": "call_2", "name": "read", "state": {
        "status": "error", "input": {"path": "b.py"}, "error": {"type": "x", "message": "no such file"}}}  # fmt: skip
    answer = {"time": {"created": T, "completed": T + 900}, "content": [
        {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I look."}, tool, failed,
        {"type": "text", "text": "There is one."}]}  # fmt: skip
    made = Made(tmp_path / "x.db", VERSION_2.format(session="session_v2"))
    made.new(
        "ses_1",
        ("msg_9", "user", "What is here?"),
        ("msg_8", "assistant", answer),
        ("msg_7", "shell", {"shellID": "sh_1", "command": "pwd", "output": {"output": "/home/u/shop"}}),
        ("msg_6", "synthetic", "The file changed."),
        ("msg_5", "system", "The tools changed."),
        ("msg_4", "model-switched", {"model": {"id": "m"}}),
        ("msg_3", "compaction", {"status": "running", "summary": "Half", "recent": ""}),
        ("msg_2", "compaction", {"status": "completed", "summary": "The shop has one file.", "recent": ""}),
        ("msg_1", "hologram", {"text": "of a version to come"}),
    )
    (part,) = databases.parts(made.path)
    parsed = parse(part.name, part.data)

    assert detect(part.name, part.data) is SourceFormat.OPENCODE
    assert [(event.type, event.text) for event in parsed.events] == [
        (EventType.USER_MESSAGE, "What is here?"),
        (EventType.ASSISTANT_MESSAGE, "I look."),
        (EventType.TOOL_RESULT, "$ ls\na.py"),
        (EventType.TOOL_RESULT, "read b.py\nno such file"),
        (EventType.ASSISTANT_MESSAGE, "There is one."),
        (EventType.TOOL_RESULT, "$ pwd\n/home/u/shop"),
        (EventType.COMPACTION, "The shop has one file."),
    ]
    assert dict(parsed.skipped) == {"bookkeeping": 3, "meta": 1, "thinking": 1, "unknown": 1}
    assert {event.project for event in parsed.events} == {"/home/u/shop"}
    assert [event.ts for event in parsed.events[:5]] == [T, T, T + 500, T + 500, T + 900]
    assert len({event.dedupe_key for event in parsed.events}) == len(parsed.events)


def test_a_helpers_session_and_what_was_taken_back_are_left_out(tmp_path: Path) -> None:
    made = Made(tmp_path / "x.db", VERSION_2.format(session="session_v2"))
    made.new("ses_1", ("msg_1", "user", "Search."), parent_id="ses_0")
    revert = json.dumps({"messageID": "msg_a"})
    made.new("ses_2", ("msg_z", "user", "Use red."), ("msg_a", "user", "Use green."), revert=revert)

    assert texts(made.path) == ["Use red."]


MOVED = (("msg_1", "user", "Which port?"), ("msg_2", "assistant", "Port 8080."))


def test_a_session_that_stands_in_both_is_read_once_in_its_newest_form(tmp_path: Path) -> None:
    made = both(tmp_path / "opencode.db")
    made.old("ses_a", *MOVED, updated=T)
    made.new("ses_a", *MOVED, ("msg_3", "user", "Take 9090."), updated=T + 5)
    made.old("ses_b", ("msg_b1", "user", "Red?"), ("msg_b2", "user", "No, green."), updated=T + 9)
    made.new("ses_b", ("msg_b1", "user", "Red?"), updated=T)

    assert texts(made.path) == ["Which port?", "Port 8080.", "Take 9090.", "Red?", "No, green."]


@pytest.mark.parametrize("gone", [False, True], ids=["beside the old tables", "the old tables gone"])
def test_what_was_imported_of_version_1_is_not_stored_again_of_version_2(
    shell: Shell, tmp_path: Path, *, gone: bool
) -> None:
    before, after = tmp_path / "before/opencode.db", tmp_path / "after/opencode.db"
    Made(before, VERSION_1).old("ses_a", *MOVED)
    made = both(after)
    made.old("ses_a", *MOVED)
    made.new("ses_a", *MOVED, ("msg_3", "user", "Take 9090."), updated=T + 5)
    if gone:
        made.run("drop table session; drop table message; drop table part;")

    first = shell.json("import", str(before))
    second = shell.json("import", str(after))
    third = shell.json("import", str(before))

    assert (first["events"], second["events"], third["events"]) == (2, 1, 0)
    assert stored(shell) == {"Which port?": 1, "Port 8080.": 1, "Take 9090.": 1}


def test_version_1_after_version_2_adds_nothing_either(shell: Shell, tmp_path: Path) -> None:
    old, new = tmp_path / "old/opencode.db", tmp_path / "new/opencode-next.db"
    Made(old, VERSION_1).old("ses_a", *MOVED)
    Made(new, VERSION_2.format(session="session")).new("ses_a", *MOVED, table="session")

    shell.json("import", str(new))

    assert shell.json("import", str(old))["events"] == 0


UNKNOWN = {
    "a third version": "create table session_v3 (id text, directory text); insert into session_v3 values ('s', '/x');",
    "messages elsewhere": "drop table session_message; create table session_event (id text, body blob);",
    "other columns": "drop table session_message; create table session_message (id text, session text, body blob);"
    "insert into session_message values ('m', 'ses_b', 'x');",
    "sessions without a folder": "drop table session_v2; create table session_v2 (id text, place text);"
    "insert into session_v2 values ('ses_b', '/x');",
}


@pytest.mark.parametrize("change", UNKNOWN.values(), ids=UNKNOWN)
def test_sessions_of_an_unknown_form_are_said_and_the_others_read(shell: Shell, tmp_path: Path, change: str) -> None:
    made = both(tmp_path / "opencode.db")
    made.old("ses_a", ("msg_1", "user", "An old sentence."))
    made.new("ses_b", ("msg_2", "user", "We named the branch trunk."))
    made.run(change)

    with pytest.raises(InvalidError, match="in a form that scrubjay does not know"):
        texts(made.path)
    code, _, err = shell.run("import", str(made.path))
    assert code != 0
    assert "opencode export" in err
    assert stored(shell)["An old sentence."] == 1


def test_an_export_of_version_2_is_read() -> None:
    data = json.dumps(
        {
            "info": {"id": "ses_1", "location": {"directory": "/home/u/shop"}, "time": {"created": T}},
            "messages": [{"id": "msg_1", "type": "user", "text": "We named it trunk.", "time": {"created": T}}],
        },
        indent=2,
    ).encode()
    (event,) = parse("session.json", data).events

    assert (event.text, event.project, event.session_id) == ("We named it trunk.", "/home/u/shop", "ses_1")


def test_reconcile_reads_the_databases_of_all_channels(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(TRANSCRIPTS["opencode"].variable, raising=False)
    folder = tmp_path / ".local/share/opencode"
    both(folder / "opencode.db").new("ses_a", ("msg_1", "user", "Trunk."))
    Made(folder / "opencode-next.db", VERSION_2.format(session="session")).new(
        "ses_b", ("msg_2", "user", "Heron."), table="session"
    )

    (report,) = shell.json("reconcile", "opencode", "--since", "30 years ago")["hosts"]

    assert (report["files"], report["events"]) == (2, 2)
