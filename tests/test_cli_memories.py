"""Memories over the command line: their life, any text and any question, names, context and pages."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cli_shell import EVENTS, Shell
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


KILN = "git.example/ines/kiln"


@pytest.fixture
def said_elsewhere(shell: Shell, repository: Path) -> Path:
    """A rule of the repository that commands run in, and talk in another project, later."""
    shell.json("add", "Deploys of this repo need two approvals", "--layer", "surfaced")
    talk = {"agent": "a", "session_id": "s", "type": "user_message", "text": "The barn door sticks", "project": "barn"}
    shell.run("ingest", "-", stdin=json.dumps(talk).encode())
    return repository


@pytest.mark.usefixtures("said_elsewhere")
@pytest.mark.parametrize(
    "words",
    [
        ["brief"],
        ["context"],
        ["context", "--handed"],
        ["context", "--prompt", "how do we deploy?"],
        ["active"],
        ["active", "list"],
        ["learn", "--dry-run", "We always deploy with two approvals"],
    ],
    ids=" ".join,
)
def test_inside_a_repository_commands_act_for_its_project_as_add_does(shell: Shell, words: list[str]) -> None:
    answer = shell.json(*words)
    _, _, told = shell.run("--text", *words)

    assert answer["project"] == KILN
    assert KILN in told
    assert "where something was said last" not in told
    assert "--project names another" in told


@pytest.mark.parametrize(
    "words", [["brief"], ["context"], ["active"], ["learn", "--dry-run", "We use uv"]], ids=" ".join
)
def test_a_project_that_is_named_wins_over_the_folder(
    shell: Shell, said_elsewhere: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    named = shell.json(*words, "--project", "barn")
    _, _, told = shell.run("--text", *words, "--project", "barn")
    monkeypatch.chdir(said_elsewhere.parent)
    outside = shell.json(*words)

    assert named["project"] == "barn"
    assert "--project names another" not in told
    assert outside["project"] != KILN


@pytest.mark.usefixtures("said_elsewhere")
def test_what_an_agent_is_handed_in_a_repository_is_shown_in_it(shell: Shell) -> None:
    assert "two approvals" in shell.run("--text", "context", "--handed")[1]
    assert "two approvals" in shell.run("--text", "brief")[1]


@pytest.mark.usefixtures("repository")
def test_a_repository_of_which_nothing_is_known_is_said_to_be_so(shell: Shell) -> None:
    assert f"nothing here belongs to project {KILN}" in shell.run("--text", "context", "--handed")[2]


@pytest.mark.usefixtures("said_elsewhere")
def test_what_is_learned_inside_a_repository_is_its_projects(shell: Shell) -> None:
    [learned, *_] = shell.json("learn", "We decided to fire the kiln at cone six")["learned"]

    assert learned["memory"]["resource_id"] == KILN


def test_a_named_session_has_a_project_of_its_own(shell: Shell, said_elsewhere: Path) -> None:
    assert said_elsewhere.exists()
    assert shell.json("context", "--session", "s")["project"] is None


LEDGERLINE = "git:cba4163749ac09b8"


@pytest.fixture
def without_remote(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that only its first commit names, with something said in it; commands run outside of it."""
    top = shell.home.parent / "work" / "ledgerline"
    (top / ".git" / "logs").mkdir(parents=True)
    (top / ".git" / "config").write_text("[core]\n\tbare = false\n")
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    commit = LEDGERLINE.removeprefix("git:") + "0" * 24
    (top / ".git" / "logs" / "HEAD").write_text(
        f"{'0' * 40} {commit} Ines <i@x> 1764000000 +0000\tcommit (initial): x\n"
    )
    talk = {"agent": "a", "session_id": "s", "type": "user_message", "text": "The ledger is done", "project": str(top)}
    shell.run("ingest", "-", stdin=json.dumps(talk).encode())
    monkeypatch.chdir(top)
    shell.json("add", "Amounts are kept in cents", "--name", "cents", "--layer", "surfaced")
    monkeypatch.chdir(top.parent)
    return top


@pytest.mark.usefixtures("without_remote")
@pytest.mark.parametrize(
    "words",
    [
        ["add", "--project", "ledgerline", "Totals are kept in cents"],
        ["get", "cents"],
        ["why", "cents"],
        ["sessions"],
        ["agents"],
        ["brief"],
        ["active"],
    ],
    ids=" ".join,
)
def test_a_project_without_a_remote_is_shown_with_the_name_of_its_folder(shell: Shell, words: list[str]) -> None:
    _, out, err = shell.run("--text", *words)

    assert f"ledgerline ({LEDGERLINE})" in out + err
    assert "ledgerline (" not in shell.run("--json", *words)[1]


def test_the_folder_that_commands_run_in_is_named_too(
    shell: Shell, without_remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(without_remote)

    assert f"of the project ledgerline ({LEDGERLINE}), whose folder you are in" in shell.run("--text", "context")[2]


@pytest.mark.usefixtures("without_remote")
@pytest.mark.parametrize("name", ["ledgerline", "Ledgerline", "ledgerline/"])
def test_a_project_is_named_by_what_its_folder_is_called(shell: Shell, name: str) -> None:
    [entry] = shell.json("list", "--project", name)["entries"]

    assert entry["memory"]["resource_id"] == LEDGERLINE
    assert shell.json("add", "--project", name, "A total is in cents")["memory"]["resource_id"] == LEDGERLINE


def test_a_project_of_the_very_name_is_meant_before_a_folder(shell: Shell, without_remote: Path) -> None:
    shell.json(
        "ingest",
        "-",
        stdin=json.dumps(
            {"agent": "a", "session_id": "t", "type": "user_message", "text": "x", "project": without_remote.name}
        ).encode(),
    )

    assert shell.json("brief", "--project", without_remote.name)["project"] == without_remote.name


def test_two_folders_of_one_name_are_both_suggested(shell: Shell, without_remote: Path) -> None:
    other = shell.home.parent / "old" / without_remote.name
    shutil.copytree(without_remote, other)
    log = other / ".git" / "logs" / "HEAD"
    log.write_text(log.read_text().replace("cba4", "0ddb"))
    shell.json("add", "--project", str(other), "Amounts were kept in euros")

    _, _, told = shell.run("--text", "list", "--project", "ledgerline")
    _, _, close = shell.run("--text", "list", "--project", "legerline")

    assert "did you mean" in told
    assert str(without_remote) in told
    assert str(other) in told
    assert "did you mean" in close


@pytest.mark.parametrize("form", ["{id}", "[{id}]", "{end}", "[{end}]", "{beginning}", "[{beginning}]"])
@pytest.mark.parametrize(
    "command",
    [["get"], ["why"], ["trace"], ["update", "--salience", "0.9"], ["feedback", "--helped"], ["forget"]],
    ids=" ".join,
)
def test_a_memory_is_named_as_agents_are_shown_it(shell: Shell, command: list[str], form: str) -> None:
    id_ = shell.json("add", "The barn door is green")["memory"]["id"]
    ref = form.format(id=id_, end=id_[-6:], beginning=id_[:12])

    code, out, err = shell.run("--json", command[0], ref, *command[1:])

    assert code == 0, err
    assert id_ in out


def test_a_name_in_brackets_is_found_before_what_stands_in_them(shell: Shell) -> None:
    shell.json("add", "The barn door is green", "--name", "door")
    named = shell.json("add", "The gate is blue", "--name", "[door]")["memory"]["id"]

    assert shell.json("get", "[door]")["memory"]["id"] == named


def test_an_event_is_named_in_brackets_too(shell: Shell) -> None:
    shell.run("ingest", "-", stdin=EVENTS)
    id_ = shell.json("events")["events"][0]["id"]

    assert shell.json("forget", f"[{id_}]")["events"] == [id_]


def test_nothing_that_waits_is_said_to_be_so(shell: Shell) -> None:
    assert shell.run("--text", "review", "accept", "all")[1] == "nothing waits for review\n"


def test_no_undo_is_offered_of_what_was_forgotten(shell: Shell) -> None:
    id_ = shell.json("add", "The barn door is green")["memory"]["id"]
    both = " ".join(shell.run("--text", "history")[1].split())
    shell.json("forget", id_)
    last = " ".join(shell.run("--text", "history", "--kind", "forget")[1].split())
    mixed = " ".join(shell.run("--text", "history")[1].split())  # however wide the window is
    [cause] = shell.json("history", "--kind", "forget")["causes"]
    undone = shell.run("--text", "undo", cause["id"])[1]

    assert "undo CAUSE takes it back" in both
    assert "forgotten" not in both
    assert "undo" not in last
    assert mixed.endswith("undo CAUSE takes it back; what was forgotten stays so")
    assert "1 forgotten thing stays forgotten" in undone


def test_a_session_is_forgotten_by_the_beginning_of_its_id(shell: Shell) -> None:
    for session in ("9ee25ee8-77aa", "9ee25ee9-0000"):
        talk = {"agent": "a", "session_id": session, "type": "user_message", "text": f"in {session}"}
        shell.run("ingest", "-", stdin=json.dumps(talk).encode())

    code, error = shell.error("forget", "--session", "9ee25e", "--yes")
    assert (code, "scrubjay sessions" in error["hint"]) == (errors.ConflictError.exit_code, True)
    assert "scrubjay sessions" in shell.error("forget", "--session", "7777777", "--yes")[1]["hint"]
    assert shell.json("forget", "--session", "9ee25ee8", "--yes")["of"] == "9ee25ee8-77aa"
    assert [session["id"] for session in shell.json("sessions")["sessions"]] == ["9ee25ee9-0000"]


def test_help_of_list_says_in_which_order(shell: Shell) -> None:
    _, out, _ = shell.run("list", "--help")

    assert "what agents are handed first" in " ".join(out.split())
    assert "in JSON the newest first" in " ".join(out.split())
