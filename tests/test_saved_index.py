"""A copy of the index lies beside the store: believed only when it is true, gone before anything is erased."""

# ruff: noqa: ASYNC240 - a test may wait for its own disk

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.models import catalog
from scrubjay.service import index_maintainer as module
from scrubjay.service.application import Application
from scrubjay.store import save_index, saved_index
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft
from scrubjay_shared.scoring import encode_vector

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOW = Millis(1_800_000_000_000)
SECRET = "quvexzoldrun"
QUESTIONS = ("boats in June", SECRET, "bicycles", "painted ferries", "lighthouse")
SPACE = catalog.EMBEDDERS["bge-small-en-v1.5"].space


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is kept of the smallest index."""
    monkeypatch.setattr(module, "SAVED_FROM", 1)


@pytest.fixture
def copy(store_path: Path) -> Path:
    """Where the copy of the index lies."""
    return store_path.with_name("memory.db.index")


def said(text: str, n: int) -> EventDraft:
    return EventDraft(agent="test", session_id=f"s{n % 3}", type=EventType.USER_MESSAGE, text=text, ts=Millis(NOW + n))


async def fill(service: Application) -> None:
    texts = [f"We decided to paint boat number {n} blue in June." for n in range(20)]
    texts.append(f"I prefer {SECRET} gondolas to ferries in the morning.")
    await service.call(PERSON, "ingest", api.IngestRequest(events=tuple(said(text, n) for n, text in enumerate(texts))))
    await service.call(PERSON, "settle", api.SettleRequest())
    await service.call(PERSON, "add", MemoryDraft(content="noted: bicycles", name="kept"))
    await embed(service)


async def embed(service: Application) -> None:
    """Give every owner without one a vector."""
    space = await service.store.write(lambda tx: tx.vectors.enter_space(SPACE))
    waiting = await service.store.read(lambda q: q.embed_queue.first(10_000))
    draw = np.random.default_rng(len(waiting))
    rows = [(one.owner, one.said, encode_vector(draw.integers(-127, 127, 384, dtype=np.int8), 0.01)) for one in waiting]
    await service.store.write(lambda tx: tx.vectors.put(space, rows))


async def answers(service: Application) -> list[Any]:
    """What is answered to some questions, and which vectors are held."""
    index = service._maintainer.index
    held = {
        id_: table.vectors(np.array([row])).tolist()
        for table in (index.events, index.memories)
        for id_, row in table.rows.items()
        if table["embedded"][row]
    }
    found = [
        await service.call(
            PERSON, "recall", api.RecallRequest(query=query, mode=api.Mode.KEYWORD, limit=50, neighbours=2)
        )
        for query in QUESTIONS
    ]
    return [[(hit.id, hit.score, hit.neighbours) for hit in answer.hits] for answer in found] + [held, index.embedded]


async def reopened(opened: Opener, copy: Path) -> tuple[list[Any], list[Any], bool]:
    """The answers after opening with what lies there, after opening without, and whether the copy was of use."""
    before = copy.read_bytes() if copy.exists() else None
    async with opened(model="bge-small-en-v1.5") as service:
        used = before is not None and copy.exists()
        with_copy = await answers(service)
    copy.unlink(missing_ok=True)
    async with opened(model="bge-small-en-v1.5") as service:
        return with_copy, await answers(service), used


async def change(service: Application) -> None:
    """Do to a store what can be done to it short of erasing."""
    await service.call(
        PERSON,
        "ingest",
        api.IngestRequest(events=(said("The lighthouse is red.", 1), said("Bicycles are painted.", 40))),
    )
    await service.call(PERSON, "add", MemoryDraft(content="a lighthouse stands by the sea", name="light"))
    await service.call(PERSON, "update", api.UpdateRequest(ref="kept", content="noted: painted bicycles"))
    await service.call(PERSON, "update", api.UpdateRequest(ref="kept", salience=0.9))


async def test_a_copy_is_kept_and_read_and_only_its_owner_may_read_it(opened: Opener, copy: Path) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
        first = await answers(service)

    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    part = copy.with_name("memory.db.index.part")
    part.write_bytes(b"of a crash")
    with_copy, without, used = await reopened(opened, copy)
    assert not part.exists()
    assert used
    assert with_copy == without
    assert with_copy[:-2] == first[:-2]
    assert with_copy[-1][0] > 20


@pytest.mark.parametrize("embedded", [True, False])
async def test_what_was_written_after_the_copy_is_caught_up_with(
    embedded: bool,  # noqa: FBT001
    opened: Opener,
    copy: Path,
) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
    old = copy.read_bytes()
    async with opened(model="bge-small-en-v1.5") as service:
        await change(service)
        if embedded:
            await embed(service)
    copy.write_bytes(old)  # as after a crash

    with_copy, without, used = await reopened(opened, copy)

    assert used
    assert with_copy == without
    assert any("lighthouse" in QUESTIONS[at] and found for at, found in enumerate(with_copy[: len(QUESTIONS)]))


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def bent(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


def bent_head(content: bytes) -> bytes:
    return content[:-40] + bytes([content[-40] ^ 1]) + content[-39:]


@pytest.mark.slow
@pytest.mark.parametrize("harm", [cut, bent, bent_head, lambda _: b"", lambda _: b"hello" * 99, lambda c: c + b"x"])
async def test_a_damaged_copy_is_as_if_there_were_none(
    harm: Callable[[bytes], bytes], opened: Opener, copy: Path
) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
    copy.write_bytes(harm(copy.read_bytes()))

    with_copy, without, used = await reopened(opened, copy)

    assert not used
    assert with_copy == without


async def test_the_copy_of_another_store_or_of_another_model_is_not_believed(
    opened: Opener, copy: Path, tmp_path: Path
) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "memory.db"
    other.with_name(copy.name).write_bytes(copy.read_bytes())

    async with opened(other, model="bge-small-en-v1.5") as service:
        assert len(service._maintainer.index) == 0
        assert not other.with_name(copy.name).exists()
    async with opened(model="none") as service:
        assert service._maintainer.index.embedded[0] == 0
    async with opened(model="bge-small-en-v1.5") as service:
        assert service._maintainer.index.embedded[0] > 20


async def test_a_restored_backup_does_not_take_the_copy_of_what_came_after_it(
    opened: Opener, copy: Path, store_path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
        await service.call(PERSON, "backup", api.PathRequest(path=str(backup)))
        await service.call(PERSON, "add", MemoryDraft(content="a lighthouse that the backup does not know"))
    store_path.write_bytes(backup.read_bytes())
    kept = copy.read_bytes()
    async with opened(model="bge-small-en-v1.5") as service:
        assert not copy.exists()
        await service.call(PERSON, "add", MemoryDraft(content="another lighthouse, at the same place in the log"))
    copy.write_bytes(kept)

    with_copy, without, used = await reopened(opened, copy)

    assert not used
    assert with_copy == without


def folder_holds(folder: Path, needle: bytes) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file() and needle in path.read_bytes())


async def test_what_is_forgotten_is_in_no_copy_and_an_old_copy_does_not_bring_it_back(
    opened: Opener, copy: Path, store_path: Path
) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
    old = copy.read_bytes()
    assert SECRET.encode() in old

    async with opened(model="bge-small-en-v1.5") as service:
        answer = await service.call(PERSON, "recall", api.RecallRequest(query=SECRET, mode=api.Mode.KEYWORD))
        await service.call(PERSON, "forget", api.ForgetRequest(ref=answer.hits[0].id))
        assert not copy.exists()
        assert folder_holds(store_path.parent, SECRET[2:].encode()) == []
        await service.maintain.run()
        assert copy.exists()
        assert folder_holds(store_path.parent, SECRET[2:].encode()) == []
    assert folder_holds(store_path.parent, SECRET[2:].encode()) == []
    copy.write_bytes(old)

    async with opened(model="bge-small-en-v1.5") as service:
        assert not copy.exists()
        assert SECRET not in service._maintainer.index.vocabulary


async def test_a_forget_during_the_saving_of_a_copy_leaves_none(opened: Opener, store_path: Path, copy: Path) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
        part = copy.with_name("memory.db.index.part")
        part.write_bytes(SECRET.encode())  # as a crash in the middle of saving leaves it
        answer = await service.call(PERSON, "recall", api.RecallRequest(query=SECRET, mode=api.Mode.KEYWORD))

        async with module.asyncio.TaskGroup() as tasks:
            tasks.create_task(service.maintain.run())
            tasks.create_task(service.call(PERSON, "forget", api.ForgetRequest(ref=answer.hits[0].id)))

        assert folder_holds(store_path.parent, SECRET[2:].encode()) == []


async def test_rebuild_reads_the_store_and_not_the_copy(opened: Opener, copy: Path) -> None:
    async with opened(model="bge-small-en-v1.5") as service:
        await fill(service)
        await service.maintain.run()
        assert copy.exists()

        await service.call(PERSON, "rebuild", api.RebuildRequest(vectors=True))

        assert not copy.exists()
        assert service._maintainer.index.embedded[0] == 0


async def test_a_copy_that_cannot_be_written_is_done_without(opened: Opener, copy: Path) -> None:
    copy.parent.mkdir()
    copy.with_name("memory.db.index.part").mkdir()  # in the way
    (copy.with_name("memory.db.index.part") / "x").touch()
    async with opened(model="bge-small-en-v1.5") as service:
        await service.call(PERSON, "add", MemoryDraft(content="a lighthouse"))

    assert not copy.exists()


def test_a_copy_written_while_vectors_come_in_passes_its_own_check(tmp_path: Path) -> None:
    vectors = np.zeros(16_000_000, np.int8)
    ended = threading.Event()

    def embed_on() -> None:
        while not ended.is_set():
            vectors[:] += 1

    embedding = threading.Thread(target=embed_on)
    embedding.start()
    try:
        for _ in range(5):
            assert save_index(tmp_path / "memory.db", {"of": "this"}, {}, {"vectors": vectors}, stop=lambda: False)

            assert saved_index(tmp_path / "memory.db", {"of": "this"}) is not None
    finally:
        ended.set()
        embedding.join()
