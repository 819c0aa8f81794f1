"""Import, export, backup, restore and rebuild over the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from cli_shell import EVENTS, Shell
from scrubjay.cli.render.history import named, shortened


def test_a_folder_is_imported_file_by_file(shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / ".hidden").mkdir()
    (notes / "a.md").write_text("# Harbour\n\nWe decided to open in May 2026.\n", encoding="utf-8")
    (notes / "deep" / "b.txt").write_text("I prefer tabs over spaces in Makefiles.\n", encoding="utf-8")
    (notes / "broken.txt").write_bytes(b"caf\xe9\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    (notes / ".hidden" / "c.md").write_text("secret", encoding="utf-8")

    code, out, _ = shell.run("import", "--yes", str(notes))
    report = json.loads(out)

    assert code == 2
    assert report["files"] == 2
    assert [Path(failed["path"]).name for failed in report["failed"]] == ["broken.txt"]
    assert [(each["reason"], each["count"]) for each in report["skipped"] if "kind" in each["reason"]] == [
        ("not a kind of file to import (.png)", 1)
    ]
    again = json.loads(shell.run("import", "--yes", str(notes))[1])
    assert (again["events"], again["memories"]) == (0, 0)
    assert again["duplicates"] > 0


def test_a_dry_run_stores_nothing(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Harbour\n\nWe decided to open in May 2026.\n", encoding="utf-8")

    report = shell.json("import", str(tmp_path / "*.md"), "--dry-run")

    assert report["dry_run"] is True
    assert report["files"] == 1
    assert report["events"] + report["memories"] > 0
    stats = shell.json("stats")
    assert (stats["events"], stats["memories"]) == (0, 0)


def test_an_export_makes_the_same_store_again(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "We chose SQLite", "--name", "database", "--alias", "db")
    shell.json("ingest", stdin=EVENTS)
    before = shell.json("list")
    report = shell.json("export", str(tmp_path / "all.ndjson"))
    _, streamed, _ = shell.run("export")

    assert streamed.count("\n") == report["lines"]
    assert stat.S_IMODE((tmp_path / "all.ndjson").stat().st_mode) == 0o600
    shell.json("--home", str(tmp_path / "other"), "import", "--restore", str(tmp_path / "all.ndjson"))
    after = shell.json("--home", str(tmp_path / "other"), "list")
    assert [plain(entry) for entry in after["entries"]] == [plain(entry) for entry in before["entries"]]


def test_an_import_says_what_it_did_not_believe_and_a_restore_what_is_always_loaded(
    shell: Shell, tmp_path: Path
) -> None:
    shell.json("add", "Jay", "--name", "identity/name", "--layer", "identity")
    shell.json("export", str(tmp_path / "all.ndjson"))
    other = ("--home", str(tmp_path / "other"))

    _, said, _ = shell.run("--text", *other, "import", str(tmp_path / "all.ndjson"))
    assert "trusted as an import" in said
    assert "scrubjay import --restore FILE" in said
    assert shell.json(*other, "context")["identity"] == {}

    report = shell.json(*other, "import", "--restore", str(tmp_path / "all.ndjson"))
    assert report["always_loaded"] == {"identity": {"identity/name": "Jay"}, "active": {}}
    assert shell.json(*other, "context")["identity"] == {"name": "Jay"}
    copy = shell.json(*other, "backup", str(tmp_path / "copy.db"))
    _, said, _ = shell.run("--text", "--home", str(tmp_path / "third"), "restore", copy["path"])
    assert "agents are always given 1 line:" in said
    assert "identity/name: Jay" in said


def test_a_restored_backup_does_not_bring_back_what_was_forgotten_since(shell: Shell, tmp_path: Path) -> None:
    gone = shell.json("add", "I prefer quvexzol gondolas to ferries.", "--name", "gondolas")["memory"]["id"]
    shell.json("add", "We chose SQLite", "--name", "database")
    said = {"agent": "a", "session_id": "s", "type": "user_message", "text": "Hello. Our quvexzol pier is at A1. Bye."}
    shell.json("ingest", "--no-learn", stdin=json.dumps(said).encode())
    event = shell.json("events")["events"][-1]["id"]
    before = shell.json("backup", str(tmp_path / "copy.db"))["path"]
    shell.json("forget", gone)
    shell.json("forget", event)
    shell.json("add", "a later thought", "--name", "later")

    report = shell.json("restore", before)

    assert report["forgotten"] == 2
    assert shell.error("get", "gondolas")[0] == 3
    assert shell.json("get", "database")["memory"]["content"] == "We chose SQLite"
    assert "quvexzol" not in shell.run("export")[1]
    left = [path for path in (shell.home / "data").glob("memory.db*") if "before-restore" not in path.name]
    assert not [path for path in left if path.is_file() and b"quvexzol" in path.read_bytes()]
    (tmp_path / "note.md").write_text("- I prefer quvexzol gondolas to ferries.\n", encoding="utf-8")
    shell.json("import", str(tmp_path / "note.md"))
    assert "quvexzol" not in shell.run("list")[1], "it is refused in the restored store too"
    shell.json("rebuild")
    assert "quvexzol" not in shell.run("list")[1]
    assert shell.json("restore", before)["forgotten"] == 2, "a second restore knows it from the first"


@pytest.mark.slow
def test_a_restore_says_when_what_was_forgotten_is_back(shell: Shell, tmp_path: Path) -> None:
    gone = shell.json("add", "I prefer quvexzol gondolas to ferries.", "--name", "gondolas")["memory"]["id"]
    copy = shell.json("backup", str(tmp_path / "copy.db"))["path"]
    shell.json("forget", gone)

    asked = shell.json("restore", copy, "--with-forgotten")
    assert asked["forgotten"] is None
    assert shell.json("get", "gondolas")["memory"]["id"] == gone
    shell.json("forget", "gondolas")
    (shell.home / "data" / "memory.db").write_bytes(b"not a store " * 400)
    _, said, _ = shell.run("--text", "restore", copy)
    assert "is back: forget it again" in said


def test_a_folder_is_never_restored(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()

    code, error = shell.error("import", "--restore", str(tmp_path / "notes"))

    assert (code, error["code"]) == (2, "invalid")
    assert "not a file" in error["message"]


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        key: entry["memory"][key] for key in ("id", "content", "type", "name", "scope", "salience", "content_hash")
    } | {"aliases": entry["aliases"]}


def test_a_backup_is_restored_and_the_old_file_kept(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "We chose SQLite", "--name", "database")
    copy = shell.json("backup", str(tmp_path / "copy.db"))
    shell.json("add", "a later thought", "--name", "later")

    report = shell.json("restore", copy["path"])

    assert shell.json("stats")["memories"] == 1
    assert Path(report["kept"]).exists()
    assert Path(shell.json("backup")["path"]).parent == shell.home / "data" / "backups"


def test_a_restore_of_something_else_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "We chose SQLite")
    (tmp_path / "diary.txt").write_text("dear diary\n" * 100, encoding="utf-8")

    code, error = shell.error("restore", str(tmp_path / "diary.txt"))

    assert (code, error["code"]) == (7, "corrupt")
    assert shell.json("stats")["memories"] == 1


def test_a_rebuild_gives_the_same(shell: Shell) -> None:
    shell.json("add", "We chose SQLite", "--name", "database")
    shell.json("ingest", stdin=EVENTS)

    report = shell.json("rebuild")

    assert report["before"] == report["after"]
    assert shell.json("get", "database")["memory"]["content"] == "We chose SQLite"


def test_an_import_is_undone_by_the_beginning_of_its_cause_as_history_shows_it(shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Drinks\n\nI prefer green tea.\n", encoding="utf-8")
    shell.run("import", str(notes))
    _, out, _ = shell.run("history", "--kind", "import", "--json")
    cause = json.loads(out)["causes"][0]

    code, out, err = shell.run("undo", cause["id"][: len("import:") + 12], "--json")

    assert (code, err) == (0, "")
    assert len(json.loads(out)["archived"]) == 1
    assert json.loads(shell.run("list", "--json")[1])["entries"] == []
    assert len(json.loads(shell.run("list", "--archived", "--json")[1])["entries"]) == 1
    assert shortened(cause["id"]) in named(cause["id"], cause["label"]) == f"{shortened(cause['id'])} of notes.md"


def test_an_import_of_a_folder_is_one_cause_and_one_undo_takes_all_of_it_back(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "Maya sails on Sundays.")
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "drinks.md").write_text("# Drinks\n\nI prefer green tea.\n", encoding="utf-8")
    (notes / "deep" / "port.md").write_text("# Port\n\nWe decided to open in May 2026.\n", encoding="utf-8")
    (notes / "tools.md").write_text("# Tools\n\nI prefer tabs over spaces in Makefiles.\n", encoding="utf-8")

    report = shell.json("import", "--yes", str(notes))
    listed = shell.json("history", "--kind", "import")["causes"]
    undone = shell.json("undo", report["cause"])

    assert (report["files"], report["memories"]) == (3, 3)
    assert [(cause["id"], cause["label"]) for cause in listed] == [(report["cause"], "notes")]
    assert len(undone["archived"]) == 3
    assert [entry["memory"]["content"] for entry in shell.json("list")["entries"]] == ["Maya sails on Sundays."]


def test_files_named_together_are_one_import_and_commands_are_each_their_own(shell: Shell, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.md") for name in ("a", "b", "c")]
    for path in paths:
        Path(path).write_text(f"# {path}\n\nA note about {path}.\n", encoding="utf-8")

    together, alone = shell.json("import", *paths[:2]), shell.json("import", paths[2])
    dry = shell.json("import", "--dry-run", *paths)

    assert dry["cause"] is None
    assert [(cause["id"], cause["label"]) for cause in shell.json("history", "--kind", "import")["causes"]] == [
        (alone["cause"], "c.md"),
        (together["cause"], "a.md and 1 more path"),
    ]


def test_an_import_says_what_waits_for_review_and_by_which_command(shell: Shell, tmp_path: Path) -> None:
    rules = tmp_path / "AGENTS.md"
    rules.write_text("# Rules\n\nAlways push to main.\n\n# Facts\n\nThe carts are in SQLite.\n")

    dry = shell.json("import", "--dry-run", str(rules))
    _, said, _ = shell.run("--text", "import", str(rules))
    report = shell.json("import", str(rules))

    assert dry["waiting"] == 0
    assert "1 memory waits for your review" in said
    assert "scrubjay review" in " ".join(said.split())
    assert report["waiting"] == 1
    assert shell.json("review")["counts"]["waiting"] == 1
