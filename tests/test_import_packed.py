"""Files as hosts really keep them: packed, with long first lines, in use; and what is no file at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cli_shell import Shell
from scrubjay.cli import import_paths, reasons
from scrubjay.cli.import_parts import Part, line_pieces, of_stream
from scrubjay.containers import databases, files
from scrubjay.importers import SourceFormat, parse
from scrubjay.policy import DEFAULT
from scrubjay_shared.errors import InvalidError, TooLargeError

SESSION = "019a0000-0000-7000-8000-0000000000e1"
SAID = ["Ship on Tuesdays.", "Never on Fridays."]


def rollout(*said: str, about: str = "Be brief.") -> bytes:
    meta = {"id": SESSION, "cwd": "/home/u/shop", "base_instructions": {"text": about}}
    rows: list[dict[str, Any]] = [{"timestamp": "2026-11-20T09:00:00Z", "type": "session_meta", "payload": meta}]
    for number, text in enumerate(said):
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        rows.append({"timestamp": f"2026-11-20T09:0{number}:01Z", "type": "response_item", "payload": item})
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def claude(*said: str, first: Any = None) -> bytes:
    rows = [] if first is None else [first]
    rows += [
        {"parentUuid": None, "type": "user", "uuid": f"u{number}", "sessionId": SESSION, "cwd": "/home/u/shop",
         "timestamp": f"2026-11-20T09:0{number}:00Z", "message": {"role": "user", "content": text}}
        for number, text in enumerate(said)
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def placed(home: Path, suffix: str, data: bytes) -> Path:
    path = home / ".codex/sessions/2026/11/20" / f"rollout-2026-11-20T09-00-00-{SESSION}.jsonl{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def packed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


def hide(monkeypatch: pytest.MonkeyPatch, *ways: str) -> None:
    """Take away ways to unpack zstd, as on a machine without them."""
    if "library" in ways:
        for module in ("compression.zstd", "zstandard"):
            monkeypatch.setitem(sys.modules, module, None)
    if "program" in ways:
        monkeypatch.setenv("PATH", "")


def stored(shell: Shell) -> list[str]:
    return sorted(event["text"] for event in shell.json("events", "-n", "100")["events"])


@pytest.mark.parametrize("way", ["library", "program"])
@pytest.mark.parametrize("named", [True, False], ids=["by name", "its home"])
def test_a_packed_rollout_is_imported(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, *, named: bool
) -> None:
    path = placed(tmp_path, ".zst", packed(rollout(*SAID)))
    if way == "program":
        hide(monkeypatch, "library")

    report = shell.json("import", str(path if named else tmp_path / ".codex"))

    assert (report["files"], report["events"], report["formats"]) == (1, 2, {"codex": 1})
    (event, _) = shell.json("events", "-n", "100")["events"]
    assert (event["session_id"], event["project"]) == (SESSION, "/home/u/shop")


def test_reconcile_reads_packed_rollouts_and_what_became_packed_adds_nothing(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    plain = placed(tmp_path, "", rollout(*SAID))

    before = shell.json("reconcile", "codex", "--since", "30 years ago")["hosts"][0]
    placed(tmp_path, ".zst", packed(plain.read_bytes()))
    beside = shell.json("reconcile", "codex", "--since", "30 years ago", "--all")["hosts"][0]
    plain.unlink()
    after = shell.json("reconcile", "codex", "--since", "30 years ago")["hosts"][0]

    assert [(one["files"], one["events"], one["duplicates"]) for one in (before, beside, after)] == [
        (1, 2, 0),
        (1, 0, 2),
        (1, 0, 2),
    ]


def test_a_rollout_and_its_packed_copy_are_counted_once(shell: Shell, tmp_path: Path) -> None:
    placed(tmp_path, "", rollout(*SAID))
    placed(tmp_path, ".zst", packed(rollout(SAID[0])))

    report = shell.json("import", str(tmp_path / ".codex"))

    assert (report["files"], report["events"], report["duplicates"]) == (1, 2, 0)
    assert {"reason": "packed_twin", "count": 1} in report["skipped"]


def test_where_nothing_unpacks_zstd_it_is_said_what_to_install(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = placed(tmp_path, ".zst", packed(rollout(*SAID)))
    path.with_name(f"rollout-2026-11-21T09-00-00-{SESSION[:-1]}2.jsonl").write_bytes(rollout(SAID[0]))
    hide(monkeypatch, "library", "program")

    folder = shell.json("import", str(tmp_path / ".codex"))
    code, _, named = shell.run("import", str(path))

    assert {"reason": "no_zstd", "count": 1} in folder["skipped"]
    assert code != 0
    assert "pip install zstandard" in named
    assert "install zstd" in reasons.WORDS["no_zstd"][0]


def test_a_transcript_that_was_packed_with_gzip_is_imported(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.jsonl.gz").write_bytes(gzip.compress(claude(*SAID)))
    (tmp_path / "old" / "notes.md.gz").write_bytes(gzip.compress(b"# Tea\n\nGreen.\n"))

    report = shell.json("import", str(tmp_path / "old"), "--yes")

    assert (report["files"], report["events"], report["memories"]) == (1, 2, 0)


@pytest.mark.parametrize("way", ["library", "program"])
@pytest.mark.parametrize("data", [files.ZSTD + b"x" * 40, gzip.compress(b"x" * 9_000)[:40]], ids=["zstd", "gzip"])
def test_a_damaged_packed_file_is_refused(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, data: bytes
) -> None:
    path = placed(tmp_path, ".zst", data)
    if way == "program":
        hide(monkeypatch, "library")

    code, _, err = shell.run("import", str(path))

    assert code != 0
    assert "cannot be unpacked" in err


@pytest.mark.parametrize("way", ["library", "program"])
def test_a_packed_file_that_was_made_to_harm_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    path = tmp_path / "bomb.jsonl.zst"
    path.write_bytes(packed(b'{"a": 1}' + b" " * 60_000_000))
    if way == "program":
        hide(monkeypatch, "library")

    with files.opened(path) as stream, pytest.raises(TooLargeError, match="would unpack to more"):
        stream.read()


@pytest.mark.parametrize("keys", ["usual", "turned round", "behind a mark", "behind a lost block"])
def test_a_first_line_of_any_usual_length_is_read_to_its_end(tmp_path: Path, keys: str) -> None:
    data = rollout(*SAID, about="Be brief. " * 90_000)
    if keys == "turned round":
        first, _, rest = data.partition(b"\n")
        data = json.dumps(dict(reversed(json.loads(first).items()))).encode() + b"\n" + rest
    elif keys != "usual":
        data = (b"\xef\xbb\xbf" if keys == "behind a mark" else b"\0" * 100_000) + data
    placed(tmp_path, "", data)
    other = tmp_path / "notes"
    other.mkdir()
    (other / "a.jsonl").write_bytes(data)

    for folder in (tmp_path / ".codex", other):
        assert [file.reason for file in import_paths.files([str(folder)], named_format=False)] == [""]


def test_bookkeeping_of_any_length_may_stand_before_the_first_word(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-home-u-shop"
    folder.mkdir(parents=True)
    copy = {"type": "a-kind-to-come", "copies": {"a.py": "x" * 100_000}}
    (folder / f"{SESSION}.jsonl").write_bytes(b"".join([json.dumps(copy).encode() + b"\n"] * 20) + claude(*SAID))

    assert shell.json("import", str(tmp_path / "projects"))["events"] == 2


def test_a_transcript_is_known_by_its_place_and_name_where_its_lines_do_not_tell(shell: Shell, tmp_path: Path) -> None:
    lines = b'{"type": "a-kind-to-come"}\n' * 3
    folder = tmp_path / "projects" / "-home-u-shop"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(lines)
    (folder / f"{SESSION[:-1]}2.jsonl").write_bytes(claude(*SAID))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / f"{SESSION}.jsonl").write_bytes(lines)

    report = shell.json("import", str(folder))
    found = [file.reason for file in import_paths.files([str(tmp_path / "other")], named_format=False)]

    assert report["formats"] == {"claude-code": 2}
    assert report["events"] == 2
    assert found == ["unknown_json"]


def test_no_more_of_another_programs_file_is_read_than_it_takes_to_tell(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{\n "a": "' + b"x" * (1 << 20) + b'"\n}')

    assert len(import_paths.head_of(path)) == import_paths.HEAD_BYTES
    path.write_bytes(b'{"a": "' + b"x" * (DEFAULT.limits.max_head_bytes * 2) + b'"}')
    assert len(import_paths.head_of(path)) <= DEFAULT.limits.max_head_bytes


DATABASE = (
    "create table history (id, memory_id, old_memory, new_memory, event, created_at);"
    "insert into history values ('1', 'a', null, 'Maya likes tea', 'ADD', '2026-11-20');"
)


def in_use(folder: Path) -> sqlite3.Connection:
    """Return a connection to a database of which a part stands in its log alone, as while its program runs."""
    folder.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(folder / "history.db")
    database.executescript("pragma journal_mode = wal; pragma wal_autocheckpoint = 0;" + DATABASE)
    database.commit()
    return database


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("files_", [("", "-wal"), ("", "-wal", "-shm")], ids=["its log", "its log and index"])
def test_a_database_is_read_with_its_log_and_nothing_is_written_beside_it(
    tmp_path: Path, files_: tuple[str, ...]
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    with closing(in_use(tmp_path / "used")):
        for suffix in files_:
            (folder / f"history.db{suffix}").write_bytes((tmp_path / "used" / f"history.db{suffix}").read_bytes())
    folder.chmod(0o555)
    before = state(folder)

    (part,) = databases.parts(folder / "history.db")

    assert parse(part.name, part.data, part.format).memories[0].content == "Maya likes tea"
    assert state(folder) == before
    folder.chmod(0o755)


def test_a_database_without_a_log_is_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    in_use(tmp_path / "there").close()
    (tmp_path / "there").chmod(0o555)
    before = state(tmp_path / "there")

    assert set(before) == {"history.db"}
    assert len(list(databases.parts(tmp_path / "there/history.db"))) == 1
    assert state(tmp_path / "there") == before
    (tmp_path / "there").chmod(0o755)


def test_a_database_is_read_while_its_program_writes_to_it(tmp_path: Path) -> None:
    with closing(in_use(tmp_path)) as database:
        database.execute("insert into history values ('2', 'b', null, 'Maya likes rain', 'ADD', '2026-11-21')")
        before = set(state(tmp_path))

        (part,) = databases.parts(tmp_path / "history.db")

        assert len(parse(part.name, part.data, part.format).memories) == 1  # the second is not committed
        database.commit()
        (part,) = databases.parts(tmp_path / "history.db")
        assert len(parse(part.name, part.data, part.format).memories) == 2
        assert set(state(tmp_path)) == before


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
def test_what_is_no_file_is_named(shell: Shell, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rollout.jsonl"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path = Path(os.devnull)
    else:
        with pytest.raises(InvalidError, match="is a folder"):
            files.require_file(tmp_path)
        return

    code, _, err = shell.run("import", str(path))

    assert code != 0
    assert f"is {kind}" in err


def test_reconcile_names_a_transcript_that_is_no_file(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    path = placed(tmp_path, "", b"")
    path.unlink()
    os.mkfifo(path)

    code, out, _ = shell.run("reconcile", "codex", "--since", "30 years ago", "--json")

    assert code != 0
    assert "is a pipe" in out


@pytest.mark.parametrize("most", [700, 1_000, 10_000])
def test_a_file_of_lines_comes_in_pieces_that_say_whose_they_are(most: int) -> None:
    said = [f"Sentence number {number}." for number in range(40)]
    for data, format_ in ((rollout(*said), SourceFormat.CODEX), (claude(*said, first={"type": "mode"}), None)):
        stream = io.BytesIO(data)
        found = [part.data for part in of_stream(Part("a.jsonl", b""), stream, most)]
        events = [event for piece in found for event in parse("a.jsonl", piece, format_).events]

        assert all(len(piece) <= most for piece in found)
        assert list(dict.fromkeys(event.text for event in events)) == said
        assert {(event.session_id, event.project) for event in events} == {(SESSION, "/home/u/shop")}


def test_a_line_that_is_larger_than_a_piece_is_refused() -> None:
    with pytest.raises(TooLargeError, match="a record of the file"):
        list(line_pieces(rollout("x" * 2_000), io.BytesIO(), 500))
