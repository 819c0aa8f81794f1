"""Memories written for other programs are read again as they were, and say what those programs expect."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.cli import main
from scrubjay.exporters import markdown, mcp_memory, pam
from scrubjay.importers import detect, parse
from scrubjay.importers.export_format import MemoryRecord
from scrubjay.importers.notes import RULES
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Kind, Memory, MemoryType, Scope, content_hash

FIXTURES = Path(__file__).parent / "fixtures"
START = 1_795_165_200_000


class Store:
    """Command lines on stores of their own, one a folder."""

    def __init__(self, path: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.path = path
        self._capture = capture
        self._patch = patch

    def run(self, home: str, *words: str) -> tuple[int, str, str]:
        self._patch.setenv("SCRUBJAY_HOME", str(self.path / home))
        code = main([*words])
        written = self._capture.readouterr()
        return code, written.out, written.err

    def json(self, home: str, *words: str) -> Any:
        code, out, err = self.run(home, *words)
        assert code == 0, err
        return json.loads(out)

    def memories(self, home: str) -> list[tuple[Any, ...]]:
        entries = self.json(home, "list", "-n", "100")["entries"]
        fields = ("content", "name", "type", "resource_id", "topic", "created_at")
        return sorted((tuple(entry["memory"][key] for key in fields) for entry in entries), key=str)


@pytest.fixture
def store(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Store:
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_PORT", "0")
    return Store(tmp_path, capsys, monkeypatch)


def filled(store: Store, home: str = "one") -> None:
    for words in (
        ("Maya drinks green tea", "--name", "tea", "--type", "preference"),
        ("The cart store uses SQLite WAL.\n\nIts port is 8080.", "--project", "/home/ana/shop"),
        ('A "quoted" line: with a colon, and a – dash 🌱',),
    ):
        assert store.run(home, "add", *words)[0] == 0


def record(content: str = "Maya likes tea", **more: Any) -> MemoryRecord:
    fields: dict[str, Any] = {
        "id": "01KXK2Y3A8M3N5P9R2T4V6W8Y0",
        "content": content,
        "kind": Kind.STORED,
        "type": MemoryType.FACT,
        "scope": Scope.USER,
        "salience": 0.5,
        "created_at": Millis(START),
        "updated_at": Millis(START),
        "content_hash": content_hash(content),
    }
    return MemoryRecord(memory=Memory(**(fields | more)))


def test_memories_survive_a_journey_through_pam(store: Store, tmp_path: Path) -> None:
    filled(store)
    path = tmp_path / "memory-store.json"
    report = store.json("one", "export", "--format", "pam", str(path))
    first = store.json("two", "import", str(path))
    again = store.json("two", "import", str(path))

    assert report["lines"] == first["memories"] == again["duplicates"] == 3
    assert first["formats"] == {"pam": 1}
    assert store.memories("two") == store.memories("one")


def test_a_pam_document_has_what_its_specification_requires(store: Store) -> None:
    filled(store)
    found = store.json("one", "export", "--format", "pam")

    assert (found["schema"], found["schema_version"], found["export_type"]) == ("portable-ai-memory", "1.0", "full")
    assert found["owner"]["id"]
    assert found["integrity"]["total_memories"] == len(found["memories"]) == 3
    for memory in found["memories"]:
        plain = re.sub(" {2,}", " ", unicodedata.normalize("NFC", memory["content"].strip().lower()))
        assert memory["content_hash"] == f"sha256:{hashlib.sha256(plain.encode()).hexdigest()}"
        assert {"id", "type", "content", "temporal", "provenance"} <= memory.keys()
        assert memory["temporal"]["created_at"].endswith("Z")
        assert re.fullmatch("[a-z0-9_-]{2,32}", memory["provenance"]["platform"])
        assert all(re.fullmatch("[a-z0-9][a-z0-9_-]*", tag) for tag in memory["tags"])
    ordered = sorted(found["memories"], key=lambda each: each["id"])
    canonical = json.dumps(ordered, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert found["integrity"]["checksum"] == f"sha256:{hashlib.sha256(canonical).hexdigest()}"


@given(st.floats(0, 1))
def test_a_share_is_written_as_ecmascript_writes_it(number: float) -> None:
    written = json.dumps(pam.share(number))

    assert re.fullmatch(r"[01]|0\.\d{1,6}", written)
    assert abs(float(written) - number) <= 10**-4


def test_what_was_replaced_and_put_away_is_said_in_pam() -> None:
    newer = record("Maya likes green tea")
    older = record(id="01KXK2Y3A8M3N5P9R2T4V6W8Y1", superseded_by=newer.memory.id, valid_to=Millis(START + 1))
    orphan = record(id="01KXK2Y3A8M3N5P9R2T4V6W8Y2", superseded_by="01KXK2Y3A8M3N5P9R2T4V6W8ZZ")
    put_away = record(id="01KXK2Y3A8M3N5P9R2T4V6W8Y3", archived_at=Millis(START))
    found = json.loads(pam.document([newer, older, orphan, put_away], owner="o", now=Millis(START)))

    assert [each["status"] for each in found["memories"]] == ["active", "superseded", "superseded", "archived"]
    assert [(each["from"], each["to"]) for each in found["relations"]] == [(newer.memory.id, older.memory.id)]
    assert found["memories"][2]["temporal"]["superseded_by"] is None


def test_a_graph_of_the_mcp_memory_server_comes_back_as_it_went_in(store: Store, tmp_path: Path) -> None:
    path = FIXTURES / "mcp_memory.jsonl"
    store.json("one", "import", str(path))
    written = tmp_path / "memory.jsonl"
    store.json("one", "export", "--format", "mcp-memory", str(written))
    store.json("two", "import", str(written))

    before, after = (parse("memory.jsonl", each.read_bytes()) for each in (path, written))
    assert {memory.content for memory in after.memories} == {memory.content for memory in before.memories}
    assert store.memories("two") == store.memories("one") or {row[0] for row in store.memories("two")} == {
        row[0] for row in store.memories("one")
    }


def test_memories_of_no_graph_are_observed_of_what_they_are_about() -> None:
    rows = [
        json.loads(row)
        for row in mcp_memory.lines(
            [
                record("Maya likes tea", name="tea"),
                record("WAL is on", topic="cart store"),
                record("Port 8080", scope=Scope.PROJECT, resource_id="/shop"),
                record("Lives in Rome"),
                record("Lived in Oslo", valid_to=Millis(START)),
            ]
        )
    ]

    assert [(row["name"], row["observations"]) for row in rows] == [
        ("tea", ["Maya likes tea"]),
        ("cart store", ["WAL is on"]),
        ("/shop", ["Port 8080"]),
        ("user", ["Lives in Rome"]),
    ]
    assert {row["type"] for row in rows} == {"entity"}


def test_notes_of_markdown_are_read_again_as_they_were(store: Store, tmp_path: Path) -> None:
    filled(store)
    folder = tmp_path / "notes"
    report = store.json("one", "export", "--format", "markdown", str(folder))
    store.json("two", "import", "--yes", str(folder))
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]

    assert report["lines"] == len(files) == 3
    assert {row[0] for row in store.memories("two")} == {row[0] for row in store.memories("one")}
    assert "tea" in {row[1] for row in store.memories("two")}
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_folder_that_holds_something_is_not_written_to(store: Store, tmp_path: Path) -> None:
    filled(store)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.md").write_text("mine")

    code, _, err = store.run("one", "export", "--format", "markdown", str(tmp_path / "notes"))
    to_stdout, _, said = store.run("one", "export", "--format", "markdown")

    assert code != 0
    assert "exists already" in err
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["mine.md"]
    assert to_stdout != 0
    assert "folder" in said
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


@given(
    content=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
        lambda text: not RULES.fullmatch(text.strip())  # a line across the page is no words
    ),
    name=st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=50),
)
def test_any_words_survive_a_note_of_markdown(content: str, name: str | None) -> None:
    one = record(content, name=" ".join(name.split()) or None if name else None)
    ((path, data),) = markdown.notes([one])
    (read,) = parse(path, data).memories

    assert detect(path, data).value == "markdown"
    assert read.content == content.strip()
    assert re.fullmatch(r"person/[^/]{1,100}\.md", path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "other"}, "not a memory store"),
        ({"schema_version": "2.0"}, "version '2.0'"),
        ({"memories": {}}, "not a memory store"),
    ],
)
def test_a_document_of_another_kind_or_version_is_refused(change: dict[str, Any], words: str) -> None:
    whole = json.loads(pam.document([record()], owner="o", now=Millis(START))) | change

    with pytest.raises(Exception, match=words):
        parse("memory-store.json", json.dumps(whole).encode(), "pam")


def test_what_was_retracted_in_pam_is_not_read_and_counted() -> None:
    whole = json.loads(pam.document([record()], owner="o", now=Millis(START)))
    whole["memories"][0]["status"] = "retracted"
    parsed = parse("memory-store.json", json.dumps(whole).encode())

    assert (parsed.memories, parsed.skipped) == ((), (("deleted", 1),))
