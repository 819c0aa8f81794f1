"""The `Memory` class: the names and results of its specification, one file, any thread, with a daemon and without."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import scrubjay
from scrubjay import Memory, api
from scrubjay import settings as options
from scrubjay.api.operations import OPERATIONS
from scrubjay.daemon import control
from scrubjay.transports import local
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)
from scrubjay_shared.records import EventDraft, EventType, Layer, MemoryType, Scope

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_PORT", "0")
    paths = os.pathsep.join(str(ROOT / part) for part in ("local", "shared", "bench"))
    monkeypatch.setenv("PYTHONPATH", paths)


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "agent_memory.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def with_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The store's file of a running daemon. The tests that share it name what they write."""
    folder = tmp_path_factory.mktemp("daemon")
    paths = os.pathsep.join(str(ROOT / part) for part in ("local", "shared", "bench"))
    flags = {"data_dir": folder / "data", "state_dir": folder / "state", "model": "none", "port": 0}
    chosen = options.load(flags, {"SCRUBJAY_HOME": str(folder)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", paths)
        control.start(chosen)
    yield chosen.store_path
    control.stop(chosen)


def said(text: str, n: int = 0, session: str = "s1") -> EventDraft:
    return EventDraft(
        agent="test", session_id=session, type=EventType.USER_MESSAGE, text=text, dedupe_key=f"{session}-{n}"
    )


# The specification, as it is printed there.


def test_identity_is_what_was_set(mem: Memory) -> None:
    mem.set_identity("name", "g1itchbot")

    assert mem.get_identity() == {"name": "g1itchbot"}
    assert mem.get_identity_context() == "# Identity\n- name: g1itchbot"


def test_active_context_is_what_was_set(mem: Memory) -> None:
    mem.set_active("task", "Building memory system")

    assert mem.get_active() == {"task": "Building memory system"}
    assert "- task: Building memory system" in mem.get_active_context()


def test_startup_context_holds_identity_and_active(mem: Memory) -> None:
    mem.set_identity("name", "g1itchbot")
    mem.set_active("task", "Building memory system")

    context = mem.get_startup_context()

    assert mem.get_identity_context() in context
    assert mem.get_active_context() in context


def test_an_empty_value_removes_the_line(mem: Memory) -> None:
    mem.set_identity("name", "g1itchbot")

    mem.set_identity("name", "")

    assert mem.get_identity() == {}
    assert mem.get_identity_context() == ""


def test_what_was_added_is_found_at_once(mem: Memory) -> None:
    mem.add("The harbour has 140 berths", memory_type="fact", salience=0.6)

    found = mem.search("how many berths?", limit=5, min_salience=0.3)

    assert [hit.text for hit in found] == ["The harbour has 140 berths"]
    assert mem.search("how many berths?", min_salience=0.7) == []


def test_stats_count_under_the_names_of_the_specification(mem: Memory) -> None:
    mem.set_identity("name", "g1itchbot")
    mem.add("one")
    mem.add("two")

    stats = mem.stats()

    assert (stats["memories"], stats["identity_keys"], stats["active_keys"]) == (2, 1, 0)


def test_extraction_gives_the_types_of_the_specification() -> None:
    found = scrubjay.extract_memories("We decided to pivot to memory. I prefer local solutions.", min_confidence=0.5)

    assert [memory.type for memory in found] == [MemoryType.DECISION, MemoryType.PREFERENCE]
    assert found[0].content.startswith("We decided")


# The operations beyond it.


def test_a_memory_goes_through_its_life(mem: Memory) -> None:
    added = mem.add("We chose SQLite", memory_type="decision", name="database", aliases=["db"])

    assert added.created
    assert mem.get("db").memory.id == added.memory.id
    assert mem.update("database", "We chose PostgreSQL", salience=0.9).memory.content == "We chose PostgreSQL"
    assert mem.rename("database", "storage").memory.name == "storage"
    assert set(mem.alias("storage", "postgres").aliases) == {"db", "database", "postgres"}
    assert "postgres" not in mem.alias("storage", "postgres", remove=True).aliases
    assert [entry.memory.name for entry in mem.list().entries] == ["storage"]
    assert mem.why("storage").history
    assert mem.forget("storage").forgotten == (added.memory.id,)
    with pytest.raises(NotFoundError):
        mem.get("storage")


def test_adding_the_same_twice_is_adding_it_once(mem: Memory) -> None:
    first = mem.add("The harbour has 140 berths")

    again = mem.add("The harbour has 140 berths")

    assert (first.created, again.created) == (True, False)
    assert again.memory.id == first.memory.id


def test_what_was_said_becomes_memory_with_its_source(mem: Memory) -> None:
    mem.ingest([said("We decided to use PostgreSQL for the bookings because of exclusion constraints.")])

    left = mem.settle()

    assert (left.to_learn, left.to_embed) == (0, 0)
    (entry,) = mem.list(memory_type="decision").entries
    (source,) = mem.why(entry.memory.id).sources
    text = "\n".join(event.text for event in source.events)
    assert text[source.grip.span_start : source.grip.span_end] == source.grip.excerpt


def test_a_period_is_given_in_datetimes_or_in_milliseconds(mem: Memory) -> None:
    noon = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
    ts = Millis(round(noon.timestamp() * 1000))
    mem.ingest([{"agent": "a", "session_id": "s1", "type": "note", "text": "The berth is free", "ts": ts}])

    def found(**period: Any) -> tuple[int, int]:
        return len(mem.events(**period).events), len(mem.recall("berth", **period).hits)

    assert found(since=noon) == found(since=ts) == found(since=noon.astimezone().replace(tzinfo=None)) == (1, 1)
    assert found(until=noon) == found(until=ts) == found(since=noon + timedelta(seconds=1)) == (0, 0)


def test_a_mapping_is_as_good_as_a_draft(mem: Memory) -> None:
    answer = mem.ingest([{"agent": "a", "session_id": "s", "type": "user_message", "text": "hello there"}])

    assert answer.accepted == 1
    assert [event.text for event in mem.events().events] == ["hello there"]


def test_export_and_import_give_the_same_memories(mem: Memory, tmp_path: Path) -> None:
    mem.add("We chose SQLite", memory_type="decision", name="database", aliases=["db"])
    mem.ingest([said("I prefer tabs over spaces in Makefiles.")])
    mem.settle()
    mem.export(tmp_path / "all.ndjson")

    with Memory(tmp_path / "copy.db") as copy:
        copy.import_file(tmp_path / "all.ndjson", restore=True)
        copy.settle()

        ours = {(entry.memory.content_hash, entry.memory.id, entry.aliases) for entry in mem.list().entries}
        theirs = {(entry.memory.content_hash, entry.memory.id, entry.aliases) for entry in copy.list().entries}
    assert theirs == ours


def test_a_backup_opens_as_a_store(mem: Memory, tmp_path: Path) -> None:
    mem.add("We chose SQLite", name="database")

    copy = mem.backup(tmp_path / "copy.db")

    with Memory(copy.path) as restored:
        assert restored.get("database").memory.content == "We chose SQLite"


def test_a_project_sees_its_own_and_not_the_others(tmp_path: Path) -> None:
    path = tmp_path / "agent_memory.db"
    with Memory(path, project="proj_a") as a:
        assert a.add("The beta is on October 1st").memory.scope is Scope.PROJECT
    with Memory(path, project="proj_b") as b:
        b.add("The beta is in spring")

        assert [hit.text for hit in b.search("when is the beta?")] == ["The beta is in spring"]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda mem: mem.add(""), InvalidError),
        (lambda mem: mem.add("   \n"), InvalidError),
        (lambda mem: mem.add(7), InvalidError),
        (lambda mem: mem.add(None), InvalidError),
        (lambda mem: mem.add("x", salience=float("nan")), InvalidError),
        (lambda mem: mem.add("x", salience=1.5), InvalidError),
        (lambda mem: mem.add("x", salience=-1), InvalidError),
        (lambda mem: mem.add("x", salience="high"), InvalidError),
        (lambda mem: mem.add("x", memory_type="opinion"), InvalidError),
        (lambda mem: mem.add("x", metadata={"deep": object()}), InvalidError),
        (lambda mem: mem.search("x", limit=0), InvalidError),
        (lambda mem: mem.search("x", limit=-5), InvalidError),
        (lambda mem: mem.search("x", min_salience=float("nan")), InvalidError),
        (lambda mem: mem.search(None), InvalidError),
        (lambda mem: mem.recall("x", kinds=["dream"]), InvalidError),
        (lambda mem: mem.get("nobody"), NotFoundError),
        (lambda mem: mem.get(""), ScrubjayError),
        (lambda mem: mem.forget("01ARYZ6S410000000000000000"), NotFoundError),
        (lambda mem: mem.set_identity("", "x"), InvalidError),
        (lambda mem: mem.set_identity("x", 5), InvalidError),
        (lambda mem: mem.ingest([{"agent": "a"}]), InvalidError),
        (lambda mem: mem.ingest([{"agent": "a", "session_id": "s", "type": "dream", "text": ""}]), InvalidError),
        (lambda mem: mem.call("dance", None), InvalidError),
        (lambda mem: mem.call("get", api.Nothing()), InvalidError),
    ],
)
def test_bad_input_is_an_error_with_a_hint_and_changes_nothing(
    mem: Memory, call: Callable[[Any], Any], kind: type[ScrubjayError]
) -> None:
    before = mem.stats()

    with pytest.raises(kind) as error:
        call(mem)

    assert error.value.hint
    assert mem.stats() == before


@pytest.mark.parametrize(
    "query",
    ['"', "*", "NEAR", "a NEAR b", "-x", "a:b", '"*NEAR-:', "(", "a AND", "'; drop table memories; --", "\\", "^"],
)
def test_a_query_is_words_and_never_syntax(mem: Memory, query: str) -> None:
    mem.add(f"the odd one {query} here")

    assert isinstance(mem.search(f"odd {query}"), list)
    assert isinstance(mem.search(query), list)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定使用数据库", "数据库"),
        ("会議は東京で行われます", "東京"),
        ("เราเลือกฐานข้อมูล", "ฐานข้อมูล"),
        ("اخترنا قاعدة البيانات", "البيانات"),
        ("deploy day 🎉 is friday", "🎉"),
        ("Straße und Brücke", "brücke"),
    ],
)
def test_every_language_is_found_by_its_words(mem: Memory, text: str, query: str) -> None:
    mem.add(text)
    mem.add("something else altogether")

    assert [hit.text for hit in mem.search(query, limit=1)] == [text]


def test_five_megabytes_are_stored_and_come_back(mem: Memory) -> None:
    text = "harbour " * (5 * 1024 * 1024 // 8)

    added = mem.add(text, name="big")

    assert mem.get("big").memory.id == added.memory.id
    assert mem.get("big").memory.content.strip() == text.strip()


# One file, many callers.


def test_many_threads_lose_nothing(mem: Memory) -> None:
    def write(number: int) -> None:
        for n in range(10):
            mem.add(f"thread {number} wrote down number {n}", name=f"note-{number}-{n}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert mem.stats()["memories"] == 80


def test_it_works_inside_a_running_loop(mem: Memory) -> None:
    async def agent() -> list[api.Hit]:
        mem.add("The harbour has 140 berths")
        return mem.search("berths")

    assert [hit.text for hit in asyncio.run(agent())] == ["The harbour has 140 berths"]


def test_closing_ends_its_threads_and_frees_the_file(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    mem = Memory(tmp_path / "agent_memory.db")
    mem.add("one")

    mem.close()
    mem.close()

    assert set(threading.enumerate()) - before == set()
    with pytest.raises(UnavailableError):
        mem.add("two")
    with Memory(tmp_path / "agent_memory.db") as again:
        assert again.stats()["memories"] == 1


def test_what_is_collected_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "agent_memory.db"
    Memory(path).add("one")
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "scrubjay-close":
            thread.join()

    with Memory(path) as again:
        assert again.stats()["memories"] == 1


def test_a_process_that_forgets_to_close_ends_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent_memory.db"
    program = f"from scrubjay import Memory; m = Memory({str(path)!r}); m.add('one'); print('added')"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "added\n", "")
    with Memory(path) as again:
        assert again.stats()["memories"] == 1


def test_a_fork_is_told_to_open_its_own(mem: Memory) -> None:
    mem.add("one")
    program = f"""
import os, sys
from scrubjay import Memory
from scrubjay_shared.errors import UnavailableError
mem = Memory({str(mem._transport.path.with_name("forked.db"))!r})
child = os.fork()
if child == 0:
    try:
        mem.add("two")
    except UnavailableError as error:
        os._exit(7 if "fork" in error.message else 8)
    os._exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
mem.add("still ours")
sys.exit(code)
"""

    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 7, ended.stderr


def test_a_second_opening_is_refused_and_names_the_holder(mem: Memory) -> None:
    with pytest.raises(ConflictError) as error:
        Memory(mem._transport.path)

    assert str(os.getpid()) in error.value.message


def test_a_file_that_is_not_ours_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"my diary\n" * 100)

    with pytest.raises(CorruptError):
        Memory(path)

    assert path.read_bytes() == b"my diary\n" * 100


# With a daemon.


def test_the_daemon_answers_every_verb_as_this_process_does(with_daemon: Path, mem: Memory, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Harbour\n\nWe decided to open the harbour in May 2026.\n", encoding="utf-8")

    with Memory(with_daemon) as there:
        for each in (mem, there):
            each.add("We chose SQLite", name="database", layer=Layer.ACTIVE)
            each.ingest([said("I prefer tabs over spaces in Makefiles.", 1), said("ok", 2)])
            each.import_file(notes)
            each.settle()

        for operation, request in (
            ("list", api.ListRequest()),
            ("events", api.EventsRequest(session_id="s1")),
            ("sessions", api.Nothing()),
            ("context", api.ContextRequest()),
            ("models", api.Nothing()),
        ):
            ours, theirs = mem.call(operation, request), there.call(operation, request)
            assert type(theirs) is type(ours)
            assert shape(theirs) == shape(ours), operation


def shape(answer: Any) -> Any:
    """An answer without what differs between two stores: ids, times and devices."""
    import msgspec  # noqa: PLC0415

    hidden = {"id", "ts", "device", "created_at", "updated_at", "start", "end", "oldest", "newest", "accessed_at"}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in hidden}
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    return plain(msgspec.to_builtins(answer))


def test_a_daemons_file_is_reached_through_the_daemon(with_daemon: Path) -> None:
    with Memory(with_daemon) as mem:
        before = mem.stats()["memories"]
        mem.set_identity("name", "g1itchbot")
        entry = mem.add("We chose a green boat", memory_type="decision", name="boat", salience=0.6)

        assert mem._transport.through == "daemon"
        assert mem.get_identity_context() == "# Identity\n- name: g1itchbot"
        assert mem.get("boat") == api.Entry(memory=entry.memory)
        assert mem.search("which colour has the boat?")[0].id == entry.memory.id
        assert mem.stats()["memories"] == before + 1
        assert mem.forget("boat").forgotten == (entry.memory.id,)
        mem.set_identity("name", "")
        assert mem.stats()["memories"] == before


def test_an_error_crosses_the_socket_as_itself(with_daemon: Path) -> None:
    with Memory(with_daemon) as mem, pytest.raises(NotFoundError) as error:
        mem.get("nobody")

    assert "nobody" in error.value.message
    assert error.value.hint


def test_an_export_through_the_daemon_is_whole(with_daemon: Path, tmp_path: Path) -> None:
    with Memory(with_daemon) as mem:
        for n in range(20):
            mem.add(f"note number {n} about the harbour", name=f"n{n}")
        counts = mem.stats()

        lines = mem.export(tmp_path / "all.ndjson")

    records = [json.loads(line) for line in (tmp_path / "all.ndjson").read_bytes().splitlines()]
    kinds = Counter(next(iter(record)) for record in records)
    assert kinds["memory"] == sum(counts[name] for name in ("memories", "identity_keys", "active_keys"))
    assert kinds["event"] == counts["events"]
    assert len(records) == lines


def test_a_door_has_every_verb() -> None:
    assert all(local.known(name) is operation for name, operation in OPERATIONS.items())


HOST = """
import gc, json, locale, logging, os, signal, sys, threading, warnings
import numpy  # it says which warnings to leave out, when it is imported

def switches():
    umask = os.umask(0)
    os.umask(umask)
    logging.getLogger("apscheduler.scheduler"), logging.getLogger("apscheduler.executors.default")
    theirs = ("", "apscheduler", "apscheduler.scheduler", "apscheduler.executors.default", "httpx", "httpx2")
    return {
        "gc": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug()),
        "umask": umask,
        "signals": {number.name: repr(signal.getsignal(number)) for number in signal.valid_signals()
                    if isinstance(number, signal.Signals)},
        "logging": {name: (logging.getLogger(name).level, len(logging.getLogger(name).handlers)) for name in theirs},
        "disabled": logging.root.manager.disable,
        "warnings": [repr(one) for one in warnings.filters],
        "hooks": (sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__),
        "switch interval": sys.getswitchinterval(),
        "recursion": sys.getrecursionlimit(),
        "folder": os.getcwd(),
        "niceness": os.nice(0),
        "locale": locale.setlocale(locale.LC_ALL),
        "environment": dict(os.environ),
    }

if sys.argv[2] == "off":
    gc.disable()
before = switches()
from scrubjay import Memory
path = sys.argv[1]
with Memory(path) as memory:
    memory.import_file(sys.argv[3], dry_run=True)
    memory.import_file(sys.argv[3])
    memory.add("We use Postgres 16.")
    memory.recall("postgres")
after = switches()
print(json.dumps({name: [repr(before[name]), repr(after[name])] for name in before if before[name] != after[name]}))
"""


@pytest.mark.parametrize("collector", ["on", "off"])
def test_memory_leaves_the_switches_of_the_program_that_uses_it_as_they_are(tmp_path: Path, collector: str) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Quay\n\nThe quay is closed on Sundays.\n", encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SCRUBJAY_HOME": str(tmp_path / "home")}
    told = subprocess.run(
        [sys.executable, "-c", HOST, str(tmp_path / "memory.db"), collector, str(note)],
        env=environ | {"SCRUBJAY_MODEL": "none", "SCRUBJAY_PORT": "0"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(told.stdout) == {}
