"""Memories over the command line: their life, any text and any question, names, context and pages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli_shell import Shell
from scrubjay_shared import errors


def test_a_memory_goes_through_its_life(shell: Shell) -> None:
    added = shell.json("add", "We chose", "SQLite", "--type", "decision", "--name", "database", "--alias", "db")
    memory_id = added["memory"]["id"]

    assert added["created"] is True
    assert added["memory"]["content"] == "We chose SQLite"
    assert shell.json("add", "We chose SQLite")["created"] is False
    assert shell.json("get", "db")["memory"]["id"] == memory_id
    assert shell.json("get", memory_id[:16])["memory"]["name"] == "database"
    assert shell.json("update", "database", "We chose PostgreSQL", "--salience", "0.9")["memory"]["salience"] == 0.9
    assert shell.json("rename", "database", "storage")["memory"]["name"] == "storage"
    assert "pg" in shell.json("alias", "storage", "pg")["aliases"]
    assert "pg" not in shell.json("alias", "storage", "pg", "--remove")["aliases"]
    assert [entry["memory"]["id"] for entry in shell.json("list", "--type", "decision")["entries"]] == [memory_id]
    assert shell.json("list", "--type", "goal")["entries"] == []
    assert shell.json("why", "storage")["history"]
    assert shell.json("recall", "what about PostgreSQL?")["hits"][0]["id"] == memory_id
    assert shell.json("stats")["memories"] == 1
    assert shell.json("forget", "storage")["forgotten"] == [memory_id]
    assert shell.error("get", "storage")[0] == 3
    assert shell.json("stats")["memories"] == 0


def test_what_a_new_memory_takes_the_place_of_is_said_when_it_is_added(shell: Shell) -> None:
    old = shell.json("add", "The staging database is PostgreSQL 16 on db-stage-2", "--name", "staging-db")

    said = shell.run("--text", "add", "The staging database is MySQL 9 on db-stage-3")[1]

    assert f"in the place of {old['memory']['id'][:16]} The staging database is PostgreSQL 16" in said
    command = said.partition("where both hold: scrubjay ")[2].splitlines()[0].split()
    shell.json(*command)
    assert shell.json("get", "staging-db")["memory"]["superseded_by"] is None
    assert shell.json("add", "The coffee machine is on the second floor")["supersedes"] == []


def test_what_took_a_memorys_place_before_is_said_when_something_else_does(shell: Shell) -> None:
    shell.json("add", "The staging database is PostgreSQL 16 on db-stage-2", "--name", "staging-db")
    mysql = shell.json("add", "The staging database is MySQL 9 on db-stage-3")["memory"]["id"]

    said = shell.run("--text", "supersede", "staging-db", "The staging database is MariaDB 11 on db-stage-4")[1]

    assert f"still holds: {mysql[:16]} The staging database is MySQL 9" in said
    command = said.partition("where it holds no longer: scrubjay ")[2].splitlines()[0].split()
    assert shell.json(*command)["still_holds"] is None
    assert shell.json("recall", "what is the staging database?")["hits"][0]["text"].startswith(
        "The staging database is Ma"
    )
    again = shell.json("supersede", "staging-db", command[-1])
    assert again["still_holds"] is None


def test_what_happened_is_told_in_words_and_with_what_takes_it_back(shell: Shell) -> None:
    shell.json("add", "The harbour has 140 berths", "--name", "berths")
    shell.json("update", "berths", "--topic", "harbour")

    _, history, _ = shell.run("--text", "history")
    _, why, _ = shell.run("--text", "why", "berths")

    assert "1 change of a memory, 1 name" in history or "1 name, 1 change of a memory" in history
    assert history.rstrip().endswith("scrubjay undo CAUSE takes it back")
    told = why.partition("history\n")[2]
    assert [line.split("  ")[2] for line in told.splitlines()] == ["added", "named", "changed: topic"]
    assert "#" not in told


def test_quiet_says_nothing_beside_the_result(shell: Shell) -> None:
    shell.json("add", "The harbour has 140 berths")

    _, _, err = shell.run("--text", "-q", "recall", "berths")

    assert err == ""


def test_a_text_comes_from_stdin_to_the_byte(shell: Shell) -> None:
    entry = shell.json("add", "-", stdin="\ufeffзаметка 🎉\nsecond line\n".encode())

    assert entry["memory"]["content"] == "заметка 🎉\nsecond line"


def test_five_megabytes_come_from_stdin(shell: Shell) -> None:
    text = b"harbour " * (5 * 1024 * 1024 // 8)

    entry = shell.json("add", "-", "--name", "big", stdin=text)

    assert len(entry["memory"]["content"]) == len(text) - 1
    assert shell.json("get", "big")["memory"]["id"] == entry["memory"]["id"]


BAD_INPUT: list[tuple[list[str], bytes | None, int]] = [
    (["add", ""], None, 2),
    (["add", "   "], None, 2),
    (["add", "-"], b"", 2),
    (["add", "-"], b"caf\xe9", 2),
    (["add", "-"], bytes(range(256)), 2),
    (["add", "x", "--name", ""], None, 2),
    (["add", "x", "--name", "n" * 1000], None, 2),
    (["get", "nobody"], None, 3),
    (["get", ""], None, 3),
    (["get", "01ARYZ6S410000000000000000"], None, 3),
    (["why", "../../etc/passwd"], None, 3),
    (["update", "nobody", "x"], None, 3),
    (["rename", "nobody", "x"], None, 3),
    (["alias", "nobody", "x"], None, 3),
    (["forget", "nobody"], None, 3),
    (["recall", "x" * 9000], None, 2),
    (["recall", "x", "--limit", "1000000"], None, 2),
    (["recall", "x", "--neighbours", "1000000"], None, 2),
    (["list", "--cursor", "garbage"], None, 2),
    (["list", "--limit", "1000000"], None, 2),
    (["events", "--cursor", "garbage"], None, 2),
    (["ingest"], b"", 2),
    (["ingest"], b"not json\n", 2),
    (["ingest"], b"{}\n", 2),
    (["ingest"], b'{"agent":"a","session_id":"s","type":"dream","text":"x"}\n', 2),
    (["ingest"], b'{"agent":"a","session_id":"s","type":"note","text":5}\n', 2),
    (["ingest"], b"[" * 100_000, 2),
    (["ingest"], b"\xff\xfe\n", 2),
    (["ingest", "/nowhere/at/all"], None, 3),
    (["import", "/nowhere/at/all"], None, 3),
    (["import", "/nowhere/*.jsonl"], None, 3),
    (["import", "-"], b"", 2),
    (["import", "-", "--format", "fortran"], b"x", 2),
    (["import", "-", "--format", "locomo"], b"{}", 2),
    (["export", "/nowhere/at/all"], None, 3),
    (["restore", "/nowhere/at/all"], None, 3),
    (["models", "use", "gpt-17"], None, 3),
    (["models", "pull", "gpt-17"], None, 3),
    (["context", "--identity", "=x"], None, 2),
    (["demo", "--locomo", "/nowhere/at/all"], None, 3),
]


@pytest.mark.parametrize(("line", "stdin", "expected"), BAD_INPUT, ids=range(len(BAD_INPUT)))
def test_bad_input_is_an_error_with_a_code_and_a_hint(
    shell: Shell, line: list[str], stdin: bytes | None, expected: int
) -> None:
    code, error = shell.error(*line, stdin=stdin)

    assert (code, errors.BY_CODE[error["code"]].exit_code) == (expected, expected)
    assert error["message"]
    assert error["hint"]


@pytest.mark.parametrize("query", ['"*NEAR-:', '"', "*", "a NEAR b", "-x", "col:on", "(", "'; drop table memories; --"])
def test_a_question_is_words_and_never_syntax(shell: Shell, query: str) -> None:
    shell.json("add", "the odd one is here")

    assert shell.run("recall", f"odd {query}")[0] == 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定使用数据库", "数据库"),
        ("会議は東京で行われます", "東京"),
        ("เราเลือกฐานข้อมูล", "ฐานข้อมูล"),
        ("اخترنا قاعدة البيانات", "البيانات"),
        ("deploy day 🎉 is friday", "🎉"),
    ],
)
def test_every_language_goes_in_and_comes_out(shell: Shell, text: str, query: str) -> None:
    shell.json("add", text)

    assert [hit["text"] for hit in shell.json("recall", query)["hits"]] == [text]


def test_control_characters_are_kept_in_json_and_harmless_on_screen(shell: Shell) -> None:
    shell.json("add", "-", "--name", "odd", stdin=b"bell\x07 esc\x1b[31mred")

    assert shell.json("get", "odd")["memory"]["content"].startswith("bell")
    _, out, _ = shell.run("--text", "get", "odd")
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_name_that_is_taken_is_a_conflict(shell: Shell) -> None:
    shell.json("add", "one", "--name", "first")
    shell.json("add", "two", "--name", "second")

    assert shell.error("rename", "second", "first")[0] == 5
    assert shell.error("alias", "second", "first")[0] == 5
    assert shell.error("add", "three", "--name", "first")[0] == 5
    assert shell.json("stats")["memories"] == 2


def test_context_sets_shows_and_removes(shell: Shell) -> None:
    shell.run("context", "--identity", "name=Maya", "--active", "task=the = sign")

    answer = shell.json("context")

    assert answer["identity"] == {"name": "Maya"}
    assert answer["active"] == {"task": "the = sign"}
    assert shell.json("context", "--identity", "name=")["identity"] == {}


def test_pages_follow_one_another(shell: Shell) -> None:
    for n in range(5):
        shell.json("add", f"note number {n}", "--name", f"n{n}")

    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = shell.json("list", "-n", "2", *cursor)
        seen.extend(entry["memory"]["name"] for entry in page["entries"])
        if page["next"] is None:
            break
        cursor = ["--cursor", page["next"]]
    assert seen == ["n4", "n3", "n2", "n1", "n0"]


@pytest.fixture
def repository(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository below the person's home, and a folder of it that commands run in."""
    top = shell.home.parent / "work" / "kiln"
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "config").write_text('[remote "origin"]\n\turl = git@git.example:ines/kiln.git\n')
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (top / "src").mkdir()
    monkeypatch.chdir(top / "src")
    return top


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("by", ["this process", "the daemon"])
def test_what_is_added_inside_a_repository_is_its_projects(shell: Shell, by: str) -> None:
    if by == "the daemon":
        assert shell.process("daemon", "start").returncode == 0
    try:
        added = shell.process("add", "Deploys of this repo need two approvals").stdout
    finally:
        shell.process("daemon", "stop")

    memory = json.loads(added)["memory"]
    assert (memory["scope"], memory["resource_id"]) == ("project", "git.example/ines/kiln")


def test_an_answer_says_for_where_a_memory_was_stored_and_how_to_store_it_otherwise(
    shell: Shell, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = shell.run("--text", "add", "Deploys need two approvals")[1]
    everywhere = shell.run("--text", "add", "--everywhere", "I prefer short answers", "--type", "preference")[1]
    named = shell.run("--text", "add", "--project", "barn", "The barn door is green")[1]
    session = shell.run("--text", "add", "--session", "s1", "We are at step three")[1]
    monkeypatch.chdir(repository.parent)
    outside = shell.run("--text", "add", "Tea without milk, please")[1]

    assert "for the project git.example/ines/kiln; for you everywhere: --everywhere" in here
    assert "for you, everywhere" in everywhere
    assert named.splitlines()[-1] == "for the project barn"
    assert "for this session" in session
    assert "for you, everywhere" in outside
    assert shell.run("add", "--everywhere", "--project", "barn", "x")[0] == errors.InvalidError.exit_code


def test_a_home_folder_that_is_a_repository_is_no_project(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    home = shell.home.parent
    (home / ".git").mkdir()
    (home / "notes").mkdir()
    monkeypatch.chdir(home / "notes")

    assert shell.json("add", "Tea without milk")["memory"]["scope"] == "user"


@pytest.mark.usefixtures("repository")
def test_what_is_always_loaded_is_of_the_person_wherever_it_is_added(shell: Shell) -> None:
    assert (
        shell.json("add", "Ines, potter", "--layer", "identity", "--name", "identity/who")["memory"]["scope"] == "user"
    )


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")
def test_a_folder_that_is_gone_is_in_no_repository(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = shell.home.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    added = shell.process("add", "Tea without milk")

    assert b"user" in added.stdout, added.stderr


def test_a_list_shows_a_person_first_what_agents_are_handed_and_a_program_the_newest(shell: Shell) -> None:
    shell.json("add", "The barn door is green", "--salience", "0.9")
    shell.json("add", "I prefer short answers", "--type", "preference")
    shell.json("add", "Ines, potter", "--layer", "identity", "--name", "identity/who")
    shell.json("add", "Lunch was late", "--salience", "0.1")

    told = shell.run("list", "--text")[1]
    places = [told.index(words) for words in ("Ines, potter", "short answers", "barn door", "Lunch")]

    assert places == sorted(places)
    newest = [entry["memory"]["content"] for entry in shell.json("list")["entries"]]
    assert newest == ["Lunch was late", "Ines, potter", "I prefer short answers", "The barn door is green"]
    of_today = shell.run("list", "--text", "--since", "yesterday")[1]
    assert of_today.index("Lunch") < of_today.index("Ines, potter")
