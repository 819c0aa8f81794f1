"""The files around a store: journals and logs that a kill leaves, foreign schemas, half-made copies, read-only disks."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from damaged import flip
from scrubjay import destination
from scrubjay.store import Store, check, half_made, nightly_copies
from scrubjay.store.log_file import Tail, read_log
from scrubjay.vault import files as vault_files
from scrubjay_io.sqlite import driver
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError
from test_damage import run

NOW = Millis(1_800_000_000_000)


def home_with(folder: Path, *words: str) -> Path:
    """Return a home whose store holds some memories."""
    for one in words:
        assert run(folder, "add", one)[0] == 0
    return folder


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return home_with(tmp_path_factory.mktemp("home"), "the ferry leaves at six", "Maya drinks tea")


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "home")
    return tmp_path / "home"


def store_of(home: Path) -> Path:
    return home / "data" / "memory.db"


def contents(home: Path) -> set[str]:
    code, out, err = run(home, "list")
    assert code == 0, err
    return {entry["memory"]["content"] for entry in json.loads(out)["entries"]}


def interrupted(path: Path) -> None:
    """Leave a store as a process that dies while it changes it in a transaction of a rollback journal."""
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with closing(driver.connect(str(work), isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = delete")
        connection.execute("pragma cache_size = 1")
        connection.execute("begin immediate")
        connection.execute("update memory set content = 'half written'")
        connection.execute("create table filler (x)")
        connection.executemany("insert into filler values (zeroblob(3000))", [()] * 50)
        for suffix in ("", "-journal"):
            shutil.copy(f"{work}{suffix}", f"{path}{suffix}")
        connection.execute("rollback")
    work.unlink()


@pytest.mark.parametrize("first", ["list", "doctor", "verify", "export", "backup", "restore", "add", "recall"])
def test_what_a_kill_left_half_written_is_undone_by_whatever_opens_the_store_first(home: Path, first: str) -> None:
    before = contents(home)
    copy = home / "copy.db"
    assert run(home, "backup", str(copy))[0] == 0
    interrupted(store_of(home))
    words = {
        "export": ("-",),
        "backup": (str(home / "b.db"),),
        "restore": (str(copy),),
        "add": ("x",),
        "recall": ("tea",),
    }

    code, _, err = run(home, first, *words.get(first, ()))

    assert code == 0, err
    assert contents(home) - {"x"} == before
    assert run(home, "verify")[0] == 0


def test_a_restore_beside_a_stale_journal_leaves_none_of_it_beside_the_new_file(home: Path) -> None:
    other = home_with(home.parent / "other", "a tern")
    copy = home / "copy.db"
    assert run(other, "backup", str(copy))[0] == 0
    path = store_of(home)
    interrupted(path)
    path.write_bytes(b"not a database any more" * 400)

    assert run(home, "restore", str(copy))[0] == 0

    assert contents(home) == {"a tern"}
    assert not path.with_name("memory.db-journal").exists()


def test_a_new_and_a_restored_store_are_first_opened_without_a_change_of_mode(home: Path) -> None:
    copy = home / "copy.db"
    assert run(home, "backup", str(copy))[0] == 0

    assert run(home, "restore", str(copy))[0] == 0

    assert store_of(home).read_bytes()[18:20] == b"\2\2"


FOREIGN = (
    "create trigger theirs after insert on memory begin update memory set content = 'theirs'; end",
    "create view theirs as select * from memory",
    "create table theirs (x)",
    "create index theirs on memory (content)",
    "drop trigger event_is_kept",
    "drop index op_entity",
)


@pytest.mark.parametrize("sql", FOREIGN)
def test_a_file_with_a_schema_that_is_not_ours_is_no_store(home: Path, sql: str) -> None:
    copy, path = home / "copy.db", store_of(home)
    assert run(home, "backup", str(copy))[0] == 0
    with closing(driver.connect(str(copy), isolation_level=None)) as connection:
        connection.execute(sql)
    before = contents(home)

    refused = run(home, "restore", str(copy))

    assert refused[0] == 7, refused
    assert contents(home) == before
    shutil.copy(copy, path)
    assert run(home, "list")[0] == 7
    assert "scrubjay salvage " in run(home, "doctor")[1]
    assert run(home, "salvage")[0] == 0
    assert contents(home) == before
    assert check(path) == []


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a killed process leaves it: 30 acknowledged writes stand in its log alone."""
    folder = tmp_path_factory.mktemp("logged")
    source, path = folder / "open.db", folder / "memory.db"

    async def write() -> None:
        entropy = random.Random(1).randbytes
        store = await Store.open(source, now=lambda: NOW, entropy=entropy)
        for n in range(30):
            await store.write(lambda tx, n=n: tx.set_meta(f"note {n}", "x" * 300))
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
        await store.close()

    asyncio.run(write())
    return path


def test_a_flipped_bit_in_a_log_is_told_from_a_torn_end(logged: Path, tmp_path: Path) -> None:
    path, log = tmp_path / "memory.db", tmp_path / "memory.db-wal"
    shutil.copy(logged, path)
    data = logged.with_name("memory.db-wal").read_bytes()
    draw = random.Random(2)
    tails: Counter[Any] = Counter()

    for _ in range(60):
        log.write_bytes(data)
        flip(log, [draw.randrange(len(data) * 8 * 9 // 10)])
        found = read_log(path)
        assert found is not None
        tails[found.tail] += 1
    for cut in range(1, len(data) - 32, 977):
        log.write_bytes(data[:-cut])
        torn = read_log(path)
        assert torn is None or torn.tail is Tail.WHOLE, cut

    assert tails == {Tail.DAMAGED: 60}


def test_a_store_whose_log_is_damaged_is_not_opened_and_is_salvaged_with_what_follows(
    logged: Path, tmp_path: Path
) -> None:
    path = tmp_path / "data" / "memory.db"
    path.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{logged}{suffix}", f"{path}{suffix}")
    log = read_log(path)
    assert log is not None
    flip(path.with_name("memory.db-wal"), [(log.frames[2].start - 10) * 8])  # in a check sum: the page itself is whole
    before = path.read_bytes()

    refused = run(tmp_path, "list")

    assert refused[0] == 7
    assert json.loads(refused[2])["hint"].startswith("scrubjay salvage ")
    assert path.read_bytes() == before
    assert "scrubjay salvage " in run(tmp_path, "doctor", "--deep")[1]
    code, out, err = run(tmp_path, "salvage")
    assert code == 0, err
    assert json.loads(out)["lost"] == {}
    with closing(driver.connect(str(path))) as connection:
        assert connection.execute("select count(*) from meta where key like 'note %'").fetchone() == (30,)
    assert run(tmp_path, "doctor", "--deep")[0] == 0


@pytest.mark.anyio
async def test_no_write_is_confirmed_whose_log_was_deleted_and_it_is_there_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await Store.open(path, now=lambda: NOW, entropy=os.urandom)
    await store.write(lambda tx: tx.set_meta("confirmed", "yes"))

    path.with_name("memory.db-wal").unlink()

    with pytest.raises(Exception, match=r"memory\.db-wal is not there any more"):
        await store.write(lambda tx: tx.set_meta("unconfirmed", "yes"))
    await store.close()
    with closing(driver.connect(str(path))) as connection:
        assert connection.execute("select value from meta where key = 'confirmed'").fetchone() == ("yes",)


def test_the_copy_of_a_killed_backup_is_told_and_the_next_one_deletes_it(home: Path) -> None:
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    folder = home / "data" / "backups"
    folder.mkdir()
    for name in ("part", "part.part", "part.part-journal"):
        (folder / f".memory-2026-11-21T101010.db.scrubjay-{killed.pid}.abcd1234.{name}").write_bytes(b"x" * 100)
    (folder / f".other.db.scrubjay-{os.getppid()}.abcd1234.part").write_bytes(b"of a living process")
    (folder / ".mine.part").write_bytes(b"nobody's business")

    told = [check for check in json.loads(run(home, "doctor")[1])["checks"] if check["name"] == "copies"]
    assert run(home, "backup")[0] == 0

    assert [check["state"] for check in told] == ["warn"]
    assert half_made(store_of(home)) == []
    assert {each.name for each in folder.glob(".*")} == {
        f".other.db.scrubjay-{os.getppid()}.abcd1234.part",
        ".mine.part",
    }


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no links, as exFAT and many of FUSE."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("without_links")
def test_without_links_a_file_still_appears_whole_and_never_over_another(tmp_path: Path, home: Path) -> None:
    path, note = tmp_path / "copy.db", tmp_path / "note.md"

    with destination.written(path, force=False) as part:
        part.write_bytes(b"whole")
    with pytest.raises(ConflictError), destination.written(path, force=False) as part:
        part.write_bytes(b"another")
    written = vault_files.write(note, b"# mine", over=None)
    again = vault_files.write(note, b"# theirs", over=None)

    assert path.read_bytes() == b"whole"
    assert (written is not None, again, note.read_bytes()) == (True, None, b"# mine")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy.db", "home", "note.md"]
    assert run(home, "backup", str(home / "b.db"))[0] == 0
    assert run(home, "restore", str(home / "b.db"))[0] == 0


@pytest.fixture
def read_only(home: Path, tmp_path: Path) -> Iterator[Path]:
    """The home on a file system that is only read."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts a file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", disk], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        shutil.copytree(home, disk / "home")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        yield disk / "home"
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_store_on_a_read_only_disk_is_read_and_not_called_damaged(read_only: Path) -> None:
    assert contents(read_only) == {"the ferry leaves at six", "Maya drinks tea"}
    for words in (("recall", "tea"), ("export", "-"), ("get", "Maya drinks tea"), ("verify",), ("context",)):
        code, out, err = run(read_only, *words)
        assert code in {0, 3}, (words, out, err)
    assert json.loads(run(read_only, "verify")[1])["sound"]

    code, _, err = run(read_only, "add", "something new")
    assert code == 6
    assert "read-only" in json.loads(err.splitlines()[-1])["hint"]
    doctor = run(read_only, "doctor", "--deep")[1]
    assert "read-only: mount it for writing" in doctor
    assert "restore" not in doctor
    assert "chmod" not in doctor


@pytest.mark.slow
def test_whatever_step_a_command_is_killed_at_the_store_opens_and_is_whole() -> None:
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    trials = os.environ.get("SCRUBJAY_KILLED_FILES", "20")

    done = subprocess.run(
        [sys.executable, "-m", "kill_files", "--trials", trials, "--seed", "1"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_in_the_place_of_a_store_or_of_a_copy_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    night = tmp_path / "memory.db.nightly"
    night.mkdir()
    os.mkfifo(path)
    os.mkfifo(night / "memory-2026-11-26T030000.000Z.db")
    (night / "memory-2026-11-27T030000.000Z.db").mkdir()
    code = "import sys, pathlib; from scrubjay.store import check; print(check(pathlib.Path(sys.argv[1])))"

    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60, check=True)

    assert "is a device or a pipe" in done.stdout
    assert nightly_copies(path) == []
