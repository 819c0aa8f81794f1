"""Archives, databases and long lists: what is in them is imported, and one that was made to harm does nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.cli import main
from scrubjay.cli.import_parts import SPLIT_BYTES, Part, split
from scrubjay.containers import archives, elements
from scrubjay_shared.errors import InvalidError, ScrubjayError, TooLargeError

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_PORT", "0")

    def command(*words: str) -> tuple[int, Any, str]:
        code = main([*words])
        written = capsys.readouterr()
        return code, json.loads(written.out) if written.out.strip() else None, written.err

    return command


def zipped(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "."), data)
    return path


def test_an_export_is_imported_from_its_archive_and_again_adds_nothing(run: Any, tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "chatgpt.zip",
        conversations__json=(FIXTURES / "chatgpt_conversations.json").read_bytes(),
        user__json=b'{"id": "user-1", "email": "ana@example.org"}',
        chat__html=b"<html>",
    )

    _, tried, _ = run("import", str(path), "--dry-run")
    _, first, _ = run("import", str(path))
    _, again, _ = run("import", str(path))
    _, events, _ = run("events")

    assert tried["events"] == first["events"] == again["duplicates"] == 4
    assert again["events"] == 0
    assert first["formats"] == {"chatgpt": 1}
    assert {line["reason"] for line in first["skipped"]} >= {"unknown_json", "not a kind of file to import (.html)"}
    assert not any("ana@" in event["text"] for event in events["events"])


def test_a_database_is_imported_and_again_adds_nothing(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "create table history (id, memory_id, old_memory, new_memory, event, created_at);"
            "insert into history values ('1', 'a', null, 'Maya likes tea', 'ADD', '2026-11-20');"
        )

    _, first, _ = run("import", str(path))
    _, again, _ = run("import", str(path))

    assert (first["memories"], again["memories"], again["duplicates"]) == (1, 0, 1)


def test_an_agents_home_gives_its_sessions_and_the_persons_instructions(run: Any, tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    chats = home / "tmp" / "shop" / "chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-11-23T14-30-8f0ab4ca.jsonl").write_bytes((FIXTURES / "gemini_session.jsonl").read_bytes())
    (chats.parent / ".project_root").write_text("/home/ana/shop")
    (home / "GEMINI.md").write_text("# Style\n\nUse tabs.\n")
    (home / "oauth_creds.json").write_text('{"access_token": "ya29.a0AfH6SMBx"}')
    (home / "tmp" / "notes.md").write_text("# Draft\n\nNot mine.\n")

    _, report, _ = run("import", str(home))
    _, events, _ = run("events")

    assert (report["files"], report["events"], report["memories"]) == (2, 3, 1)
    assert {event["project"] for event in events["events"]} == {"/home/ana/shop"}
    assert {"reason": "agent_files", "count": 2} in report["skipped"]


def test_a_file_that_claims_to_unpack_to_much_is_refused_before_anything_is_stored(run: Any, tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "bomb.zip", a__md=b"# Tea\n\nGreen.\n", b__json=b" " * (archives.SMALL + 1))

    code, _, err = run("import", str(bomb))
    _, listed, _ = run("list")

    assert code != 0
    assert "would unpack to" in err
    assert listed["entries"] == []


@pytest.mark.parametrize("at", [30, 45, 60, -30, -10])
def test_a_damaged_archive_is_refused_before_anything_is_given_out(tmp_path: Path, at: int) -> None:
    path = zipped(tmp_path / "a.zip", a__json=b'{"a": 1}' * 40, b__json=b'{"b": 2}' * 40)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)

    try:
        found = list(archives.files(path, (".json",)))
    except ScrubjayError as error:
        assert error.hint  # noqa: PT017
    else:
        assert {content for _, content in found if content} <= {b'{"a": 1}' * 40, b'{"b": 2}' * 40}


def test_a_file_larger_than_its_archive_says_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", a__json=b'{"a": 1}' * 4_000)
    data = path.read_bytes()
    true, false = (32_000).to_bytes(4, "little"), (31_000).to_bytes(4, "little")
    assert data.count(true) == 2
    path.write_bytes(data.replace(true, false))

    with pytest.raises((TooLargeError, InvalidError)):
        list(archives.files(path, (".json",)))


def test_names_that_lead_out_of_a_folder_are_names_alone(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.md", "# Tea\n\nGreen.\n")

    code, report, _ = run("import", str(path))

    assert (code, report["memories"]) == (0, 1)
    assert not (tmp_path.parent.parent / "evil.md").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(JSON, max_size=8),
    most=st.integers(1, 60),
    indent=st.sampled_from([None, 1]),
    ascii_=st.booleans(),
)
def test_the_pieces_of_an_array_hold_its_elements_in_order(
    values: list[Any], most: int, indent: int | None, *, ascii_: bool
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    found = list(elements.pieces(data, most))

    assert [each for piece in found for each in json.loads(piece)] == values


@pytest.mark.parametrize(
    "data",
    [b"[1, 2", b"[1, 2}", b"", b"{}", b'["a', b"[[[", b"]", b"[" + b'"\\' * 200_000, b"[" + b'"' * 200_001],
    ids=["open", "crossed", "empty", "object", "half", "deep", "closed", "escapes", "quotes"],
)
def test_what_is_no_whole_array_comes_as_it_is(data: bytes) -> None:
    assert list(elements.pieces(data, 1)) == [data]


def test_a_short_file_and_one_that_is_left_out_come_whole() -> None:
    long = b"[" + b"1," * SPLIT_BYTES + b"1]"

    assert list(split(Part("a.json", b"[1, 2]"))) == [Part("a.json", b"[1, 2]")]
    assert list(split(Part("a.json", long, reason="unknown_json"))) == [Part("a.json", long, reason="unknown_json")]
