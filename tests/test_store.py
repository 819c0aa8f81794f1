"""The store as a file: what it refuses, what survives, and that tables never say what the log does not."""

# ruff: noqa: ASYNC240 - a test may wait for its own disk

from __future__ import annotations

import ast
import asyncio
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.ingest import intake
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.store import Transaction, automatic_copies, check, checksums, file, find_damage, rows
from scrubjay.store.file import Migration
from scrubjay_io.sqlite import driver
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, Op

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOW = Millis(1_800_000_000_000)

HOLDER = """
import asyncio, sys
from pathlib import Path
from scrubjay.service.application import Application

async def main():
    service = await Application.open(Path(sys.argv[1]), models_dir=Path(sys.argv[1]).parent, model="none")
    print("open", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def said(text: str, session: str = "s1", **more: Any) -> EventDraft:
    return EventDraft(agent="test", session_id=session, type=EventType.USER_MESSAGE, text=text, **more)


async def tell(service: Application, *texts: str, session: str = "s1") -> tuple[str, ...]:
    events = tuple(said(text, session, dedupe_key=f"{session}/{text[:100]}") for text in texts)
    return (await service.call(PERSON, "ingest", api.IngestRequest(events=events))).ids


async def event_texts(service: Application) -> list[str]:
    page = await service.call(PERSON, "events", api.EventsRequest(limit=500))
    return [event.text for event in page.events]


async def full_store(opened: Opener, path: Path) -> None:
    """Leave a closed store with something in every table."""
    async with opened(path) as service:
        await tell(service, *(f"We decided to use tool number {n} for the harbour in Oslo." for n in range(40)))
        await service.call(PERSON, "settle", api.SettleRequest())
        await service.call(PERSON, "add", MemoryDraft(content="Maya drinks tea", name="drinks", aliases=("tea",)))


def raw(path: Path) -> Any:
    return closing(driver.connect(str(path), isolation_level=None))


def bytes_in(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but those that only say who has it open."""
    passing = (".lock", ".pid", "-shm")
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in passing and not path.name.endswith(passing)
    }


async def lane(service: Application) -> list[int]:
    return [row[0] for row in await service.store.read(lambda q: q.fetch("select seq from op order by seq"))]


# --- a new file ---------------------------------------------------------------------------------------------------------


async def test_a_new_store_is_ours_whole_and_private(service: Application, store_path: Path) -> None:
    assert stat.S_IMODE(store_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store_path.parent.stat().st_mode) == 0o700
    assert check(store_path) == []
    assert service.store.schema_version == file.migrations()[-1].version


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [step.version for step in file.migrations()] == list(range(1, len(file.migrations()) + 1))


def test_a_store_that_cannot_be_made_whole_does_not_appear(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    broken = Migration(2, "broken", "create table x (y integer) strict;\ninsert into nowhere values (1);")

    with pytest.raises(ScrubjayError):
        file.prepare(path, [*file.migrations(), broken], lambda: file.created(NOW, "s", "d"))

    assert not path.exists()


async def test_what_a_crash_left_of_a_new_store_is_made_over(opened: Opener, store_path: Path) -> None:
    store_path.parent.mkdir()
    store_path.with_name("memory.db.part").write_bytes(b"half")

    async with opened() as service:
        await tell(service, "hello")

    assert not store_path.with_name("memory.db.part").exists()
    assert check(store_path) == []


async def test_an_empty_file_becomes_a_store(opened: Opener, store_path: Path) -> None:
    store_path.parent.mkdir()
    store_path.touch()

    async with opened() as service:
        assert await event_texts(service) == []


# --- what is refused ----------------------------------------------------------------------------------------------------


async def random_bytes(_: Opener, path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 64)


async def short_text(_: Opener, path: Path) -> None:
    path.write_text("notes", encoding="utf-8")


async def foreign(_: Opener, path: Path) -> None:
    with raw(path) as connection:
        connection.execute("create table theirs (x)")


async def cut_short(opened: Opener, path: Path) -> None:
    await full_store(opened, path)
    os.truncate(path, path.stat().st_size - 4096)


async def cut_to_its_header(opened: Opener, path: Path) -> None:
    await full_store(opened, path)
    os.truncate(path, 50)


async def damaged_page(opened: Opener, path: Path) -> None:
    await full_store(opened, path)
    with path.open("r+b") as stream:
        stream.seek(4096 * 2)
        stream.write(b"\xa5" * 4096)


async def newer_schema(opened: Opener, path: Path) -> None:
    await full_store(opened, path)
    with raw(path) as connection:
        connection.execute("pragma user_version = 999")


async def log_without_store(_: Opener, path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(5000))


async def empty_with_log(_: Opener, path: Path) -> None:
    path.touch()
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(5000))


async def newer_schema_with_log(opened: Opener, path: Path) -> None:
    """A crash of a newer version: the log still holds its last commits."""
    await full_store(opened, path)
    with raw(path) as connection:
        connection.execute("pragma user_version = 999")
        copies = {part.name: part.read_bytes() for part in path.parent.glob("memory.db*")}
    for name, data in copies.items():
        (path.parent / name).write_bytes(data)


async def damaged_with_log(opened: Opener, path: Path) -> None:
    await full_store(opened, path)
    with raw(path) as connection:
        connection.execute("insert into meta (key, value) values ('x', 'y')")
        copies = {part.name: part.read_bytes() for part in path.parent.glob("memory.db*")}
    for name, data in copies.items():
        (path.parent / name).write_bytes(data)
    with path.open("r+b") as stream:
        stream.seek(4096 * 2)
        stream.write(b"\xa5" * 4096)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (random_bytes, CorruptError),
        (short_text, CorruptError),
        (foreign, CorruptError),
        (cut_short, CorruptError),
        (cut_to_its_header, CorruptError),
        (damaged_page, CorruptError),
        (damaged_with_log, CorruptError),
        (newer_schema, ConflictError),
        (newer_schema_with_log, ConflictError),
        (log_without_store, CorruptError),
        (empty_with_log, CorruptError),
    ],
    ids=lambda value: value.__name__,
)
async def test_what_is_not_a_sound_store_is_refused_and_left_as_it_is(
    make: Callable[[Opener, Path], Awaitable[None]], kind: type[ScrubjayError], opened: Opener, store_path: Path
) -> None:
    store_path.parent.mkdir(exist_ok=True)
    await make(opened, store_path)
    before = bytes_in(store_path.parent)

    with pytest.raises(kind) as refused:
        async with opened():
            pass

    assert refused.value.hint
    after = bytes_in(store_path.parent)
    assert {name: after[name] for name in before} == before
    assert {name for name, data in after.items() if data} <= set(before)


async def test_a_folder_is_no_store(opened: Opener, store_path: Path) -> None:
    store_path.mkdir(parents=True)

    with pytest.raises(CorruptError, match="folder"):
        async with opened():
            pass


@pytest.mark.parametrize("below", ["plain.txt", "plain.txt/deeper"])
async def test_a_place_that_cannot_be_written_is_unavailable(below: str, opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("x", encoding="ascii")

    with pytest.raises(UnavailableError) as refused:
        async with opened(tmp_path / below / "memory.db"):
            pass

    assert refused.value.hint


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that refuses even root")
async def test_a_folder_that_refuses_new_files_is_unavailable(opened: Opener) -> None:
    with pytest.raises(UnavailableError):
        async with opened(Path("/proc/memory.db")):
            pass


async def test_a_store_refused_once_opens_when_its_cause_is_gone(opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)
    whole = store_path.read_bytes()
    os.truncate(store_path, 5000)
    with pytest.raises(CorruptError):
        async with opened():
            pass

    store_path.write_bytes(whole)

    async with opened() as service:
        assert len(await event_texts(service)) == 40


# --- migrations ---------------------------------------------------------------------------------------------------------

LAST = file.migrations()[-1].version
GOOD = Migration(LAST + 1, "more", "create table more (y integer) strict;\n-- a comment\n")
BROKEN = Migration(LAST + 2, "broken", "create table worse (y integer) strict;\ninsert into nowhere values (1);")


def never() -> dict[str, str]:
    raise AssertionError("an existing store is not seeded")


async def test_a_failing_migration_leaves_the_file_byte_for_byte_and_a_copy(opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)
    before = store_path.read_bytes()

    with pytest.raises(ScrubjayError):
        file.prepare(store_path, [*file.migrations(), replace(BROKEN, version=LAST + 1)], never)

    assert store_path.read_bytes() == before
    (copy,) = automatic_copies(store_path)
    assert check(copy) == []


async def test_a_migration_copies_the_file_first_and_stands_in_a_transaction_of_its_own(
    opened: Opener, store_path: Path
) -> None:
    await full_store(opened, store_path)

    with pytest.raises(ScrubjayError):
        file.prepare(store_path, [*file.migrations(), GOOD, BROKEN], never)

    with raw(store_path) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_schema")}
        assert connection.execute("pragma user_version").fetchone() == (LAST + 1,)
    assert "more" in tables
    assert "worse" not in tables
    with raw(file.snapshot_path(store_path, LAST)) as connection:
        assert connection.execute("pragma user_version").fetchone() == (LAST,)
        assert connection.execute("select count(*) from event").fetchone() == (40,)


async def test_a_migration_without_a_last_semicolon_is_run_too(opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)

    file.prepare(store_path, [*file.migrations(), replace(GOOD, sql="create table more (y integer) strict")], never)

    with raw(store_path) as connection:
        assert connection.execute("select count(*) from more").fetchone() == (0,)


async def test_a_store_from_before_the_check_sums_gets_them_and_can_get_smaller(
    opened: Opener, store_path: Path
) -> None:
    older = [step for step in file.migrations() if step.version < 5]
    store_path.parent.mkdir(parents=True)
    with raw(store_path) as connection:
        connection.execute(f"pragma application_id = {file.APPLICATION_ID}")
        for step in older:
            file.migrate(connection, step)
        connection.execute("insert into meta (key, value) values ('store_id', 'a'), ('device', 'b')")

    async with opened(store_path):
        pass

    with raw(store_path) as connection:
        assert connection.execute("pragma auto_vacuum").fetchone() == (2,)
        found = connection.execute("select key, value, crc from meta where key in ('device', 'store_id')").fetchall()
    assert [crc for _, _, crc in found] == [checksums.checksum(key, value) for key, value, _ in found]
    assert list(find_damage(store_path, lambda *_: None)) == []


async def test_a_migrated_store_is_refused_by_the_version_before(opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)
    file.prepare(store_path, [*file.migrations(), GOOD], never)

    with pytest.raises(ConflictError, match="newer"):
        async with opened():
            pass


# --- one process --------------------------------------------------------------------------------------------------------


@pytest.fixture
def holder(store_path: Path) -> Any:
    """Another process that has the store open."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(store_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"open\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_a_second_process_is_told_who_has_the_store(
    holder: subprocess.Popen[bytes], opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConflictError, match=str(holder.pid)):
        async with opened():
            pass

    with pytest.raises(ConflictError):
        await asyncio.to_thread(_restore_a_copy, store_path, tmp_path / "copy.db")


def _restore_a_copy(path: Path, copy: Path) -> None:
    with closing(driver.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        file.copy_to(connection, path, copy)
    file.restore(path, copy, file.migrations())


async def test_a_killed_process_leaves_no_lock(holder: subprocess.Popen[bytes], opened: Opener) -> None:
    holder.send_signal(signal.SIGKILL)
    await asyncio.to_thread(holder.wait)

    async with opened() as service:
        assert await tell(service, "free again")


async def test_the_same_process_cannot_open_it_twice_but_again_after_closing(opened: Opener) -> None:
    async with opened():
        with pytest.raises(ConflictError):
            async with opened():
                pass

    async with opened() as service:
        assert await event_texts(service) == []


async def test_a_closed_store_says_so(opened: Opener) -> None:
    async with opened() as service:
        await service.close()
        for call in (tell(service, "x"), event_texts(service)):
            with pytest.raises(UnavailableError, match="closed"):
                await call


# --- writing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "delete from event",
        "update event set text = 'other'",
        "update event set text = 'other', erased = erased",
        "update event set erased = erased + 1, ts = 5",
        "update event set erased = erased + 1, id = 'x'",
        "update event set erased = erased + 1, dedupe_key = 'x'",
    ],
)
async def test_events_can_be_neither_changed_nor_deleted_by_sql(sql: str, opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)

    with raw(store_path) as connection, pytest.raises(driver.Error, match="append-only"):
        connection.execute(sql)


async def test_a_reader_cannot_write(service: Application) -> None:
    with pytest.raises(UnavailableError):
        await service.store.read(lambda q: q.fetch("insert into meta (key, value) values ('x', 'y')"))


async def test_a_write_that_fails_takes_no_number_and_nobody_elses_write(service: Application) -> None:
    def bad(tx: Transaction) -> None:
        tx.memories.write([])
        tx.events.append([replace(_event(tx), text="never")], learn=True)
        raise InvalidError("no")

    writes = [tell(service, f"text {n}") for n in range(60)]
    failing = [service.store.write(bad) for _ in range(10)]

    outcomes = await asyncio.gather(*writes[:30], *failing, *writes[30:], return_exceptions=True)

    assert sum(isinstance(outcome, InvalidError) for outcome in outcomes) == 10
    assert sorted(await event_texts(service)) == sorted(f"text {n}" for n in range(60))
    assert await lane(service) == list(range(1, 61))


def _event(tx: Transaction) -> Any:
    cleaned = intake.event(said("x"), 0, device="d", now=NOW, policy=DEFAULT, source=intake.Source.PERSON).event
    return replace(cleaned, id=tx.new_id())


async def cap(service: Application, spare_pages: int) -> None:
    """Leave the file room for a few pages more, or lift the limit again (0)."""

    def limit(connection: Any) -> None:
        pages = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {pages + spare_pages if spare_pages else 1 << 30}")

    await service.store._connection.call(limit)


async def test_a_full_disk_says_so_and_loses_nothing_that_was_acknowledged(opened: Opener) -> None:
    async with opened() as service:
        await tell(service, "before")
        await cap(service, 20)

        with pytest.raises(UnavailableError, match="no space left") as refused:
            await tell(service, "too much " * 100_000)

        assert "free some disk space" in refused.value.hint
        assert await event_texts(service) == ["before"]
        await cap(service, 0)
        await tell(service, "after")
    async with opened() as service:
        assert await event_texts(service) == ["before", "after"]
        assert await lane(service) == [1, 2]


async def test_a_write_too_large_for_the_disk_does_not_fail_the_small_ones_beside_it(service: Application) -> None:
    await cap(service, 60)
    large = service.call(PERSON, "ingest", api.IngestRequest(events=(said("x" * 900_000),)))
    small = [tell(service, f"text {n}") for n in range(20)]

    outcomes = await asyncio.gather(*small[:10], large, *small[10:], return_exceptions=True)

    assert [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)] == [UnavailableError]
    assert len(await event_texts(service)) == 20
    assert await lane(service) == list(range(1, 21))


CRAMPED = """
import asyncio, resource, sys
from pathlib import Path
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.records import EventDraft, EventType

async def main():
    path = Path(sys.argv[1])
    service = await Application.open(path, models_dir=path.parent, model="none")
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
    for n in range(10_000):
        draft = EventDraft(agent="a", session_id="s", type=EventType.NOTE, text=f"{n} " + "word " * 200)
        try:
            await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))
        except UnavailableError as error:
            print("refused", error.hint != "", flush=True)
            break
        print(n, flush=True)
    try:
        await service.close()
    except UnavailableError:
        pass

asyncio.run(main())
"""


async def test_a_system_that_stops_taking_bytes_costs_no_acknowledged_event(opened: Opener, store_path: Path) -> None:
    process = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", CRAMPED, str(store_path)], capture_output=True, text=True, check=False
    )
    lines = process.stdout.split("\n")

    assert lines[-2] == "refused True", process.stderr
    acknowledged = lines[:-2]
    assert acknowledged
    async with opened() as service:
        page = await service.call(PERSON, "events", api.EventsRequest(limit=500))
        assert [event.text.split()[0] for event in page.events] == acknowledged
    assert check(store_path) == []


async def disconnect(service: Application) -> None:
    """Take the file away from under the writer: its commit fails, and so does the rollback after it."""
    await service.store.write(lambda tx: tx._context.connection.close())


async def test_after_a_disk_that_failed_every_write_is_refused_and_none_waits_for_ever(service: Application) -> None:
    await tell(service, "before")
    waiting = [disconnect(service), *(tell(service, f"text {n}") for n in range(300))]

    async with asyncio.timeout(10):
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(UnavailableError, match="stopped writing") as refused:
            await tell(service, "later")

    assert {type(outcome) for outcome in outcomes} == {UnavailableError}
    assert "check the disk" in refused.value.hint
    assert "scrubjay daemon stop" in refused.value.hint
    assert await event_texts(service) == ["before"]


async def test_a_store_whose_disk_failed_closes_and_gives_its_lock_back(opened: Opener, store_path: Path) -> None:
    service = await Application.open(store_path, models_dir=store_path.parent, model="none")
    await tell(service, "before")
    with pytest.raises(UnavailableError):
        await disconnect(service)

    async with asyncio.timeout(10):
        await service.close()

    async with opened() as again:
        assert await event_texts(again) == ["before"]


async def test_status_says_that_the_store_stopped_writing(service: Application) -> None:
    before = (await service.call(PERSON, "status", api.Nothing())).warnings
    with pytest.raises(UnavailableError):
        await disconnect(service)

    assert not any("stopped writing" in warning for warning in before)
    assert any(
        "stopped writing" in warning for warning in (await service.call(PERSON, "status", api.Nothing())).warnings
    )


async def test_a_caller_that_goes_away_does_not_take_its_write_back(service: Application) -> None:
    task = asyncio.create_task(tell(service, "said and gone"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await tell(service, "next")

    assert (await event_texts(service))[-1] == "next"
    assert await lane(service) == list(range(1, len(await event_texts(service)) + 1))


async def test_a_clock_that_jumps_back_changes_no_order(opened: Opener) -> None:
    times = iter([NOW, NOW, NOW, NOW + 5000, *[NOW - 86_400_000] * 50])
    async with opened(now=lambda: Millis(next(times))) as service:
        for n in range(6):
            await tell(service, f"text {n}")
    async with opened(now=lambda: Millis(NOW - 172_800_000)) as service:
        await tell(service, "after the restart")

        stamps = [row[0] for row in await service.store.read(lambda q: q.fetch("select hlc from op order by seq"))]

    assert stamps == sorted(set(stamps))
    assert len(stamps) == 7


# --- the log and the tables ---------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=10)
@given(st.lists(st.tuples(texts, st.dictionaries(texts, json_values, max_size=4)), min_size=1, max_size=5))
def test_the_bytes_of_an_events_op_can_be_made_again_from_its_row(found: list[tuple[str, dict[str, Any]]]) -> None:
    drafts = [said(text, metadata=metadata, dedupe_key=f"k{n}") for n, (text, metadata) in enumerate(found)]

    async def run(folder: str) -> None:
        async with _opened(Path(folder) / "memory.db") as service:
            answer = await service.call(PERSON, "ingest", api.IngestRequest(events=tuple(drafts)))
            cleaned = [
                intake.event(
                    draft, 0, device=service.store.device, now=NOW, policy=DEFAULT, source=intake.Source.PERSON
                ).event
                for draft in drafts
            ]
            stored = await service.store.read(lambda q: q.events.by_id(answer.ids))
            logged = {
                row[0]: row[1:]
                for row in await service.store.read(
                    lambda q: q.fetch("select entity, seq, op_id, hlc, type, body from op")
                )
            }
            for event_id, sent in zip(answer.ids, cleaned, strict=True):
                if not event_id:
                    continue
                seq, op_id, hlc, op_type, body = logged[event_id]
                at_first = Op(
                    device=service.store.device,
                    seq=seq,
                    op_id=op_id,
                    hlc=Hlc(hlc),
                    type=op_type,
                    body=ops.event_body(replace(sent, id=event_id, ts=stored[event_id].ts)),
                )
                assert body is None
                assert ops.encode(replace(at_first, body=ops.event_body(stored[event_id]))) == ops.encode(at_first)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


def _opened(path: Path) -> AbstractAsyncContextManager[Application]:
    from contextlib import asynccontextmanager  # noqa: PLC0415 - Hypothesis takes no function-scoped fixture

    @asynccontextmanager
    async def open_() -> AsyncIterator[Application]:
        service = await Application.open(path, models_dir=path.parent, model="none")
        try:
            yield service
        finally:
            await service.close()

    return open_()


SENTENCES = (
    "I prefer tea to coffee in the morning.",
    "We decided to move the harbour office to Bergen.",
    "My sister Ingrid lives in Trondheim.",
    "I want to finish the beta by October.",
    "ok",
    "東京に行きました 🦜",
    "I prefer tea to coffee in the morning!",
)
actions = st.tuples(
    st.sampled_from(("tell", "add", "update", "rename", "alias", "unalias", "forget", "forget event", "learn", "slot")),
    st.integers(0, 6),
    st.integers(0, 6),
)


async def act(service: Application, action: str, one: int, two: int) -> None:
    """Do something, as a caller would who does not know whether it is possible."""
    names = ("alpha", "beta", "gamma")
    name = names[one % 3]
    requests: dict[str, Callable[[], Awaitable[object]]] = {
        "tell": lambda: tell(service, SENTENCES[one], SENTENCES[two], session=f"s{one % 2}"),
        "add": lambda: service.call(
            PERSON, "add", MemoryDraft(content=SENTENCES[one], name=names[two % 3] if two < 4 else None)
        ),
        "update": lambda: service.call(
            PERSON, "update", api.UpdateRequest(ref=name, content=f"{SENTENCES[two]} {one}", salience=0.1)
        ),
        "rename": lambda: service.call(PERSON, "rename", api.RenameRequest(ref=name, name=names[two % 3])),
        "alias": lambda: service.call(PERSON, "alias", api.AliasRequest(ref=name, alias=f"also {two}")),
        "unalias": lambda: service.call(PERSON, "alias", api.AliasRequest(ref=name, alias=f"also {two}", remove=True)),
        "learn": service.distill.run,
        "slot": lambda: service.call(
            PERSON, "set_identity", api.SlotRequest(key=name, value=SENTENCES[two] if two < 4 else "")
        ),
    }
    if action == "forget":
        entries = (await service.call(PERSON, "list", api.ListRequest())).entries
        ref = entries[one % len(entries)].memory.id if entries else "nothing"
        requests[action] = lambda: service.call(PERSON, "forget", api.ForgetRequest(ref=ref, keep_sources=two == 0))
    if action == "forget event":
        events = (await service.call(PERSON, "events", api.EventsRequest())).events
        gone = events[one % len(events)].id if events else "nothing"
        requests[action] = lambda: service.call(PERSON, "forget", api.ForgetRequest(ref=gone))
    try:
        await requests[action]()
    except (NotFoundError, ConflictError):
        return


async def assert_tables_in_step(service: Application) -> None:
    """Check that full text, grips and names say what the events and memories do."""

    def look(tx: Transaction) -> None:
        tx.queries.fetch("insert into memory_fts (memory_fts) values ('integrity-check')")
        events = [
            (row[13], rows.event_of(row)) for row in tx.queries.fetch(f"select {rows.EVENT_COLUMNS}, n from event")
        ]
        assert [(doc.id, doc.tokens) for doc in tx.queries.documents.events(None)[0]] == [
            (event.id, tokens) for _, event in events if (tokens := rows.event_tokens(event))
        ]
        memories = tx.queries.fetch(f"select n, {rows.MEMORY_COLUMNS} from memory order by n")
        assert tx.queries.fetch("select rowid, tokens from memory_fts order by rowid") == [
            (row[0], rows.memory_tokens(rows.memory_of((*row[1:], None, None)))) for row in memories
        ]
        ids = {row[1] for row in memories}
        assert {
            row[0] for row in tx.queries.fetch("select memory_id from name union select memory_id from grip")
        } <= ids
        assert {row[0] for row in tx.queries.fetch("select owner from embedding")} <= ids | {
            event.id for _, event in events
        }

    await service.store.write(look)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(actions, min_size=1, max_size=14))
def test_a_rebuild_says_what_was_there_after_any_history(history: list[tuple[str, int, int]]) -> None:
    async def run(folder: str) -> None:
        path = Path(folder) / "memory.db"
        async with _opened(path) as service:
            for action, one, two in history:
                await act(service, action, one, two)
            await assert_tables_in_step(service)
            assert list(find_damage(path, lambda *_: None)) == []
            recalled = await service.call(
                PERSON, "recall", api.RecallRequest(query="tea harbour", mode=api.Mode.KEYWORD)
            )

            rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())

            assert rebuilt.after == rebuilt.before
            await assert_tables_in_step(service)
            again = await service.call(PERSON, "recall", api.RecallRequest(query="tea harbour", mode=api.Mode.KEYWORD))
            assert again.hits == recalled.hits
            seqs = await lane(service)
            assert seqs == list(range(1, len(seqs) + 1))
        async with _opened(path) as service:
            again = await service.call(PERSON, "recall", api.RecallRequest(query="tea harbour", mode=api.Mode.KEYWORD))
            assert again.hits == recalled.hits

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


async def test_a_rebuild_repairs_what_was_damaged(opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)
    async with opened() as service:
        whole = (await service.call(PERSON, "rebuild", api.RebuildRequest())).before
    with raw(store_path) as connection:
        for sql in (
            "delete from name",
            "delete from grip",
            "delete from session",
            "delete from memory_fts",
            "update memory set content = 'wrong', salience = 0",
            "delete from memory where n = 1",
        ):
            connection.execute(sql)

    async with opened() as service:
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())

    assert rebuilt.before != whole
    assert rebuilt.after == whole


async def test_what_is_said_during_a_rebuild_is_found_after_it(service: Application) -> None:
    await tell(service, *(f"filler number {n}" for n in range(300)))

    async def keep_talking() -> None:
        for n in range(60):
            await tell(service, f"zebra {n}")

    await asyncio.gather(keep_talking(), *(service.call(PERSON, "rebuild", api.RebuildRequest()) for _ in range(3)))

    answer = await service.call(
        PERSON, "recall", api.RecallRequest(query="zebra", mode=api.Mode.KEYWORD, limit=100, max_tokens=100_000)
    )
    assert len(answer.hits) == 60


# --- copies -------------------------------------------------------------------------------------------------------------


async def test_a_backup_made_while_others_write_is_whole_and_restores(
    opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    async with opened() as service:
        await tell(service, *(f"before {n}" for n in range(100)))
        writes = [tell(service, f"during {n}") for n in range(100)]

        backup = asyncio.create_task(service.call(PERSON, "backup", api.PathRequest(path=str(target))))
        await asyncio.gather(*writes)
        made = await backup

        assert made.bytes == target.stat().st_size
        assert made.sha256 == file.digest(target)[1]
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert check(target) == []
    kept = file.restore(store_path, target, file.migrations())

    assert kept is not None
    async with opened() as service:
        found = await event_texts(service)
        assert {f"before {n}" for n in range(100)} <= set(found)
        assert await lane(service) == list(range(1, len(found) + 1))
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert rebuilt.before == rebuilt.after
    async with opened(kept) as service:
        assert len(await event_texts(service)) == 200


async def test_a_backup_goes_only_where_it_harms_nothing(opened: Opener, store_path: Path, tmp_path: Path) -> None:
    folder = store_path.parent
    async with opened() as service:
        await tell(service, "hello")
        for path in (
            folder / "memory.db",
            folder / ".." / "store" / "memory.db",
            folder / "memory.db-wal",
            folder / "memory.db.lock",
            "copy.db",
        ):
            with pytest.raises(InvalidError):
                await service.call(PERSON, "backup", api.PathRequest(path=str(path)))
        with pytest.raises(NotFoundError):
            await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "nowhere" / "copy.db")))
        with pytest.raises(InvalidError):
            await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path)))
        assert await event_texts(service) == ["hello"]


async def test_a_restore_is_refused_when_the_store_is_in_use(opened: Opener, store_path: Path, tmp_path: Path) -> None:
    async with opened() as service:
        await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copy.db")))

        with pytest.raises(ConflictError):
            file.restore(store_path, tmp_path / "copy.db", file.migrations())

        assert await tell(service, "still here")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (damaged_page, CorruptError),
        (cut_short, CorruptError),
        (foreign, CorruptError),
        (random_bytes, CorruptError),
        (newer_schema, ConflictError),
    ],
    ids=lambda value: value.__name__,
)
async def test_a_bad_backup_is_refused_and_the_store_stays(
    make: Callable[[Opener, Path], Awaitable[None]],
    kind: type[ScrubjayError],
    opened: Opener,
    store_path: Path,
    tmp_path: Path,
) -> None:
    await full_store(opened, store_path)
    before = store_path.read_bytes()
    (tmp_path / "bad").mkdir()
    await make(opened, tmp_path / "bad" / "memory.db")

    with pytest.raises(kind):
        file.restore(store_path, tmp_path / "bad" / "memory.db", file.migrations())

    assert store_path.read_bytes() == before


async def test_a_restore_names_what_it_lacks(opened: Opener, store_path: Path, tmp_path: Path) -> None:
    await full_store(opened, store_path)

    with pytest.raises(NotFoundError):
        file.restore(store_path, tmp_path / "none.db", file.migrations())
    with pytest.raises(ConflictError):
        file.restore(store_path, store_path, file.migrations())


async def test_two_restores_in_a_row_keep_both_files_they_replaced(
    opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    await full_store(opened, store_path)
    async with opened() as service:
        await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copy.db")))

    kept = [file.restore(store_path, tmp_path / "copy.db", file.migrations()) for _ in range(3)]

    assert len({path for path in kept if path is not None and path.exists()}) == 3


async def test_the_log_of_a_lost_store_is_not_played_into_a_restored_one(
    opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    await full_store(opened, store_path)
    async with opened() as service:
        await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copy.db")))
        await tell(service, "in the log only")
        log = store_path.with_name("memory.db-wal").read_bytes()
    store_path.unlink()
    store_path.with_name("memory.db-wal").write_bytes(log)

    file.restore(store_path, tmp_path / "copy.db", file.migrations())

    assert not store_path.with_name("memory.db-wal").exists()
    async with opened() as service:
        assert len(await event_texts(service)) == 40


async def test_a_restore_brings_what_stands_in_the_log_of_the_copy(
    opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copied" / "memory.db"
    copy.parent.mkdir()
    async with opened() as service:
        await tell(service, "in the log only")
        for suffix in ("", "-wal"):
            source = store_path.with_name(store_path.name + suffix)
            copy.with_name(copy.name + suffix).write_bytes(source.read_bytes())

    file.restore(store_path, copy, file.migrations())

    async with opened() as service:
        assert await event_texts(service) == ["in the log only"]


# --- reading ------------------------------------------------------------------------------------------------------------


async def free_bytes(service: Application) -> int:
    free, page = (await service.store.read(lambda q: q.fetch("select * from pragma_freelist_count, pragma_page_size")))[
        0
    ]
    return int(free * page)


async def test_the_file_gets_smaller_after_much_was_forgotten(opened: Opener, store_path: Path) -> None:
    async with opened() as service:
        ids = await tell(service, *(f"{n} " + "about the harbour " * 2_000 for n in range(150)))
        await service.maintain.run()
        large = store_path.stat().st_size
        for event_id in ids[10:]:
            await service.call(PERSON, "forget", api.ForgetRequest(ref=event_id))
        held = await free_bytes(service)

        await service.maintain.run()

        assert held > large // 2
        assert await free_bytes(service) <= file.SPARE_PAGES * 4096
        assert store_path.stat().st_size < large // 2
        assert len(await event_texts(service)) == 10
    assert check(store_path) == []


async def test_writes_go_on_while_the_file_is_made_smaller(service: Application) -> None:
    ids = await tell(service, *(f"{n} " + "about the harbour " * 2_000 for n in range(150)))
    for event_id in ids:
        await service.call(PERSON, "forget", api.ForgetRequest(ref=event_id))
    steps, begun = 0, asyncio.Event()
    outside = service.store._writer.outside

    async def counted(sql: str) -> list[Any]:
        nonlocal steps
        if "incremental_vacuum" in sql:
            steps += 1
            begun.set()
        return await outside(sql)

    service.store._writer.outside = counted  # type: ignore[method-assign]
    shrinking = asyncio.create_task(service.maintain.run())
    await begun.wait()
    seen = steps
    await tell(service, "in between")

    assert steps <= seen + 1
    await shrinking
    assert steps > seen + 1


def stored_in(folder: Path) -> dict[str, bytes]:
    """The files of a store, without the traces, which say that something was asked."""
    return {name: data for name, data in bytes_in(folder).items() if not name.startswith("trace.jsonl")}


async def test_reading_writes_nothing(opened: Opener, store_path: Path) -> None:
    await full_store(opened, store_path)
    async with opened() as service:
        await service.store.checkpoint(truncate=True)
        before = stored_in(store_path.parent), store_path.stat().st_mtime_ns
        ref = api.RefRequest(ref="drinks")
        async for _ in service.stream(
            PERSON, "export", api.Nothing()
        ):  # it would write what recalls counted: so before them
            pass

        for _ in range(3):
            await service.call(PERSON, "recall", api.RecallRequest(query="harbour tools", neighbours=2))
            await service.call(PERSON, "get", ref)
            await service.call(PERSON, "why", ref)
            await service.call(PERSON, "list", api.ListRequest())
            await service.call(PERSON, "events", api.EventsRequest())
            await service.call(PERSON, "sessions", api.Nothing())
            await service.call(PERSON, "context", api.ContextRequest())
            await service.call(PERSON, "stats", api.Nothing())
            await service.call(PERSON, "status", api.Nothing())

        assert (stored_in(store_path.parent), store_path.stat().st_mtime_ns) == before
        changes = [await connection.call(lambda raw_: raw_.total_changes) for connection in service.store._open]
        assert changes[1:] == [0] * (len(changes) - 1)


# --- the rooms ------------------------------------------------------------------------------------------------------------

_SQL = re.compile(
    r"\s*(select\s.+\sfrom\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|pragma\s|create\s+(temp\s+)?table\s)",
    re.IGNORECASE | re.DOTALL,
)


def test_only_the_store_speaks_sql() -> None:
    root = Path(__file__).parent.parent
    modules = [
        path
        for folder in ("local/scrubjay", "sync/scrubjay_sync")
        for path in (root / folder).rglob("*.py")
        if not {"store", "containers"} & set(path.relative_to(root).parts)  # other programs' databases are read there
    ]
    said = [
        (path.name, node.value)
        for path in modules
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.match(node.value)
    ]
    looked = [path.name for path in modules if re.search(r"\b(q|queries)\.fetch\(", path.read_text(encoding="utf-8"))]

    assert len(modules) > 100
    assert (said, looked) == ([], [])


def test_an_upgrade_leaves_nothing_of_the_full_text_of_events_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    seed = {"store_id": "1", "device": "2", "created": "1", "projected": file.PROJECTED}
    file.prepare(path, file.migrations()[:5], lambda: seed)
    with closing(driver.connect(str(path))) as connection:
        connection.executemany("insert into event_fts (tokens) values (?)", [(f"quvex{n} " * 40,) for n in range(300)])
        connection.commit()
    before = path.read_bytes().count(b"quvex")

    version = file.prepare(path, file.migrations(), lambda: seed)

    assert before > 300
    assert version == file.migrations()[-1].version
    assert b"quvex" not in path.read_bytes()
    assert check(path) == []
