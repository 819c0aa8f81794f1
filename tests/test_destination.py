"""Where exports and backups may go: never onto a file of the store, under whatever name, nor onto another unasked."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from scrubjay import Memory, api, settings
from scrubjay.api.caller import PERSON
from scrubjay.cli import main
from scrubjay.service.application import Application
from scrubjay_shared.errors import ConflictError, InvalidError
from scrubjay_shared.records import MemoryDraft

Opener = Callable[..., AbstractAsyncContextManager[Application]]
OURS = (
    *("memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal", "memory.db.lock", "memory.db.pid"),
    *("memory.db.index", "memory.db.v3.bak", "memory.db.before-restore-20261122T101010", "MEMORY.DB", "Memory.db-WAL"),
    *("token", "daemon.json", "stopped", "scrubjay.sock", "sync.json"),
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The data folder of a store with one memory."""
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        monkeypatch.delenv(name)
    for name, value in (("HOME", str(tmp_path / "home")), ("MODEL", "none"), ("PORT", "0")):
        monkeypatch.setenv(f"SCRUBJAY_{name}", value)
    assert main(["add", "We chose SQLite", "--name", "database"]) == 0
    capsys.readouterr()
    return tmp_path / "home" / "data"


@pytest.mark.parametrize("command", ["export", "backup"])
@pytest.mark.parametrize("name", OURS)
def test_no_copy_goes_onto_a_file_of_the_store(command: str, name: str, data: Path) -> None:
    before = {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()}

    codes = [main([command, str(data / name)]), main([command, str(data / name), "--force"])]

    assert codes == [2, 2]
    assert {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()} == before
    assert main(["get", "database"]) == 0


@pytest.mark.parametrize("command", ["export", "backup"])
@pytest.mark.parametrize("way", ["relative", "dots", "symlink", "folder link", "hard link", "tilde"])
def test_the_store_is_recognised_under_every_name(
    command: str, way: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = data / "memory.db"
    monkeypatch.chdir(data)
    monkeypatch.setenv("HOME", str(data))
    (tmp_path / "link.db").symlink_to(store)
    (tmp_path / "folder").symlink_to(data)
    os.link(store, tmp_path / "hard.db")
    named = {
        "relative": "memory.db",
        "dots": str(data / ".." / "data" / "memory.db"),
        "symlink": str(tmp_path / "link.db"),
        "folder link": str(tmp_path / "folder" / "memory.db"),
        "hard link": str(tmp_path / "hard.db"),
        "tilde": "~/memory.db",
    }
    before = store.read_bytes()

    assert main([command, named[way], "--force"]) == 2

    assert store.read_bytes() == before


@pytest.mark.parametrize("command", ["export", "backup"])
def test_the_settings_and_the_log_are_not_overwritten(command: str, data: Path) -> None:
    config = data.parent / "config.toml"
    log = data.parent / "state" / "daemon.log"
    log.parent.mkdir(exist_ok=True)
    for file in (config, log, data / "notes.txt"):
        file.write_text("", encoding="utf-8")

        assert main([command, str(file), "--force"]) == 2
        assert file.read_bytes() == b""


@pytest.mark.parametrize("command", ["export", "backup"])
@pytest.mark.usefixtures("data")
def test_a_file_that_is_there_is_replaced_only_when_forced(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years of work", encoding="utf-8")

    code = main([command, str(thesis)])
    error = json.loads(capsys.readouterr().err)
    kept = thesis.read_text(encoding="utf-8")
    forced = main([command, str(thesis), "--force"])

    assert (code, error["code"], kept) == (5, "conflict", "years of work")
    assert "--force" in error["hint"]
    assert forced == 0
    assert stat.S_IMODE(thesis.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["thesis.txt"]


@pytest.mark.parametrize("command", ["export", "backup"])
@pytest.mark.usefixtures("data")
def test_a_folder_that_is_missing_is_said_with_what_makes_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command, str(tmp_path / "no" / "copy")])

    error = json.loads(capsys.readouterr().err)
    assert (code, error["code"]) == (3, "not_found")
    assert error["hint"] == f"make it first: mkdir -p '{tmp_path / 'no'}'"


@pytest.mark.usefixtures("data")
def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    assert main(["export", str(pipe), "--force"]) == 2
    assert main(["export", str(tmp_path), "--force"]) == 2

    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.usefixtures("data")
def test_an_export_follows_a_link_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "all.jsonl")

    assert main(["export", str(tmp_path / "link.jsonl")]) == 0

    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real" / "all.jsonl").read_bytes().startswith(b'{"scrubjay_export"')


@pytest.mark.anyio
async def test_the_operation_refuses_what_the_command_refuses(opened: Opener, store_path: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_bytes(b"x")
    async with opened() as service:
        await service.call(PERSON, "add", MemoryDraft(content="We chose SQLite"))
        for name in OURS:
            with pytest.raises(InvalidError):
                await service.call(PERSON, "backup", api.PathRequest(path=str(store_path.parent / name), force=True))
        with pytest.raises(ConflictError):
            await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "there.db")))
        answer = await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "there.db"), force=True))

    assert (tmp_path / "there.db").stat().st_size == answer.bytes > 1


@pytest.mark.anyio
async def test_the_operation_knows_the_settings_and_the_log(tmp_path: Path) -> None:
    chosen = settings.load({"model": "none"}, {"SCRUBJAY_HOME": str(tmp_path)})
    service = await Application.configured(chosen, {})
    try:
        for file in (chosen.config_path, chosen.log_path):
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"mine")
            with pytest.raises(InvalidError):
                await service.call(PERSON, "backup", api.PathRequest(path=str(file), force=True))
            assert file.read_bytes() == b"mine"
    finally:
        await service.close()


@pytest.mark.usefixtures("data")
def test_the_library_refuses_the_same(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"x")
    with Memory(tmp_path / "agent.db") as mem:
        mem.add("We chose SQLite")
        for target in ("agent.db", "agent.db-wal"):
            with pytest.raises(InvalidError):
                mem.export(tmp_path / target, force=True)
        with pytest.raises(ConflictError):
            mem.export(tmp_path / "there")
        assert mem.export(tmp_path / "there", force=True) == 3  # its beginning, the memory, its op
        assert mem.export(tmp_path / "agent.db.jsonl") == 3
