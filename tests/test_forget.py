"""Forgetting is forgetting: no file of the store holds the words, their terms or their vector, and a neighbour stays."""

# ruff: noqa: ASYNC240 - a test may wait for its own disk

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay.store import Transaction, file
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft
from scrubjay_shared.scoring import encode_vector

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
NOW = Millis(1_800_000_000_000)
GONE = "I prefer quvexzoldrun gondolas to ferries in the morning."
KEPT = "I prefer wubbaflintok bicycles to trains in the evening."
TERMS = (b"vexzoldrun", b"gondola")
"""Of what must go. FTS5 writes the beginning of a term only once, so it is looked for without its first letters."""
CONTROL = b"bbaflintok"


def said(text: str, session: str = "s1", **more: Any) -> EventDraft:
    return EventDraft(agent="test", session_id=session, type=EventType.USER_MESSAGE, text=text, **more)


def files_with(folder: Path, needle: bytes) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file() and needle in path.read_bytes())


def vector_of(seed: int) -> bytes:
    row = np.random.default_rng(seed).integers(-127, 127, 384, dtype=np.int8)
    return encode_vector(row, 1.0)


async def embed(service: Application) -> dict[str, bytes]:
    """Give every owner a vector of its own; return them by owner."""
    space = await service.store.write(lambda tx: tx.vectors.enter_space("test"))
    waiting = await service.store.read(lambda q: q.embed_queue.first(10_000))
    vectors = {one.owner: vector_of(place) for place, one in enumerate(waiting)}
    rows = [(one.owner, one.said, vectors[one.owner]) for one in waiting]
    await service.store.write(lambda tx: tx.vectors.put(space, rows))
    return vectors


async def fill(service: Application) -> dict[str, bytes]:
    """Store both sentences in one batch, among others, learn from them, and embed everything."""
    others = [said(f"We decided to paint boat number {n} blue in June.", ts=Millis(NOW + n)) for n in range(30)]
    await service.call(
        PERSON, "ingest", api.IngestRequest(events=(said(GONE, ts=NOW), said(KEPT, ts=Millis(NOW + 99)), *others))
    )
    await service.call(PERSON, "settle", api.SettleRequest())
    await service.call(PERSON, "add", MemoryDraft(content=f"noted: {KEPT}", name="kept"))
    return await embed(service)


async def memory_with(service: Application, word: str) -> str:
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries
    return next(entry.memory.id for entry in entries if word in entry.memory.content)


async def event_with(service: Application, word: str) -> str:
    events = (await service.call(PERSON, "events", api.EventsRequest(limit=500))).events
    return next(event.id for event in events if word in event.text)


async def assert_gone(service: Application, folder: Path, needles: tuple[bytes, ...]) -> None:
    for needle in needles:
        assert files_with(folder, needle) == []
    assert files_with(folder, CONTROL) != []
    for word in ("quvexzoldrun", "gondolas ferries morning"):
        for mode in api.Mode:
            answer = await service.call(
                PERSON, "recall", api.RecallRequest(query=word, mode=mode, limit=50, neighbours=3)
            )
            assert "quvexzoldrun" not in repr(answer)
    shown = [
        await service.call(PERSON, "list", api.ListRequest(limit=500)),
        await service.call(PERSON, "events", api.EventsRequest(limit=500)),
        await service.call(PERSON, "sessions", api.Nothing()),
    ]
    assert "quvexzoldrun" not in repr(shown)
    assert "wubbaflintok" in repr(shown)


@pytest.mark.parametrize("what", ["the memory", "the event"])
async def test_what_is_forgotten_is_in_no_file_and_stays_gone(
    what: str, opened: Opener, store_path: Path, tmp_path: Path
) -> None:
    folder = store_path.parent
    async with opened() as service:
        vectors = await fill(service)
        memory_id, event_id = await memory_with(service, "quvexzoldrun"), await event_with(service, "quvexzoldrun")
        kept_id = await memory_with(service, "wubbaflintok")
        needles = (*TERMS, vectors[memory_id][-200:], vectors[event_id][-200:])
        assert all(files_with(folder, needle) for needle in (*needles, vectors[kept_id][-200:]))

        await service.call(PERSON, "forget", api.ForgetRequest(ref=memory_id if what == "the memory" else event_id))

        await assert_gone(service, folder, needles)
        assert files_with(folder, vectors[kept_id][-200:]) != []
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert rebuilt.before == rebuilt.after
        await assert_gone(service, folder, needles)
    assert files_with(folder, TERMS[0]) == []
    async with opened() as service:
        again = await service.call(PERSON, "ingest", api.IngestRequest(events=(said(GONE, ts=NOW),)))
        assert (again.accepted, again.duplicates) == (0, 1)
        await service.call(PERSON, "settle", api.SettleRequest())
        await service.maintain.run()
        await assert_gone(service, folder, needles)
        (tmp_path / "copies").mkdir()
        await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copies" / "copy.db")))
        export = b"".join([line async for line in service.stream(PERSON, "export", api.Nothing())])
    assert all(needle not in export for needle in needles)
    assert CONTROL in export
    assert all(files_with(tmp_path / "copies", needle) == [] for needle in needles)
    async with opened(tmp_path / "other" / "memory.db") as other:
        await other.call(PERSON, "import", api.ImportRequest(name="x", data=export))
        await other.call(PERSON, "settle", api.SettleRequest())
        await assert_gone(other, tmp_path / "other", needles)


async def test_forgetting_a_memory_blanks_the_words_it_was_read_from_and_no_others(service: Application) -> None:
    text = f"Good morning! {GONE} See you at the harbour."
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(text), said(KEPT))))
    await service.call(PERSON, "settle", api.SettleRequest())
    ref = await memory_with(service, "quvexzoldrun")

    answer = await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))

    assert answer.forgotten == (ref,)
    assert answer.sources == 1
    first = (await service.call(PERSON, "events", api.EventsRequest())).events[0].text
    assert len(first) == len(text)
    assert first.startswith("Good morning! ░")
    assert first.endswith(" See you at the harbour.")


async def test_sources_are_kept_on_request(service: Application) -> None:
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(GONE),)))
    await service.call(PERSON, "settle", api.SettleRequest())
    ref = await memory_with(service, "quvexzoldrun")

    answer = await service.call(PERSON, "forget", api.ForgetRequest(ref=ref, keep_sources=True))

    assert (answer.forgotten, answer.sources) == ((ref,), 0)
    assert await event_with(service, "quvexzoldrun")
    await service.call(PERSON, "settle", api.SettleRequest())
    assert "quvexzoldrun" not in repr(await service.call(PERSON, "list", api.ListRequest(limit=500)))


async def test_forgetting_an_event_takes_the_memories_that_rest_on_it_alone(service: Application) -> None:
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(GONE, ts=NOW), said(KEPT, ts=Millis(NOW + 1)))))
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(KEPT, session="s2", ts=Millis(NOW + 2)),)))
    await service.call(PERSON, "settle", api.SettleRequest())
    alone, shared = await memory_with(service, "quvexzoldrun"), await memory_with(service, "wubbaflintok")

    gone = await service.call(PERSON, "forget", api.ForgetRequest(ref=await event_with(service, "quvexzoldrun")))
    left = await service.call(PERSON, "forget", api.ForgetRequest(ref=await event_with(service, "wubbaflintok")))

    assert gone.forgotten == (alone,)
    assert left.forgotten == ()
    why = await service.call(PERSON, "why", api.RefRequest(ref=shared))
    assert [source.events[0].session_id for source in why.sources] == ["s2"]


async def test_the_title_of_a_session_does_not_outlive_its_event(service: Application) -> None:
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(GONE, ts=NOW), said(KEPT, ts=Millis(NOW + 1)))))

    await service.call(PERSON, "forget", api.ForgetRequest(ref=await event_with(service, "quvexzoldrun")))

    (session,) = (await service.call(PERSON, "sessions", api.Nothing())).sessions
    assert session.title == KEPT[:80]


async def test_what_is_forgotten_while_it_is_being_learned_from_does_not_come_back(service: Application) -> None:
    for round_ in range(5):
        drafts = [said(f"{GONE[:-1]} on day {n}.", session=f"r{round_}", ts=Millis(NOW + n)) for n in range(20)]
        ids = (await service.call(PERSON, "ingest", api.IngestRequest(events=tuple(drafts)))).ids

        learning = asyncio.create_task(service.distill.run())
        await asyncio.gather(*(service.call(PERSON, "forget", api.ForgetRequest(ref=event_id)) for event_id in ids))
        await learning
        await service.call(PERSON, "settle", api.SettleRequest())

        assert "quvexzoldrun" not in repr(await service.call(PERSON, "list", api.ListRequest(limit=500)))


async def test_a_vector_made_of_a_text_that_was_forgotten_meanwhile_is_not_kept(
    service: Application, store_path: Path
) -> None:
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(GONE), said(KEPT))))
    await service.call(PERSON, "settle", api.SettleRequest())
    space = await service.store.write(lambda tx: tx.vectors.enter_space("test"))
    waiting = await service.store.read(lambda q: q.embed_queue.first(100))
    ref = await memory_with(service, "quvexzoldrun")
    event_id = await event_with(service, "quvexzoldrun")

    await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))
    late = [(one.owner, one.said, vector_of(n)) for n, one in enumerate(waiting)]
    await service.store.write(lambda tx: tx.vectors.put(space=space, vectors=late))

    owners = {row[0] for row in await service.store.read(lambda q: q.fetch("select owner from embedding"))}
    assert not owners & {ref, event_id}
    assert len(owners) == len(waiting) - 2
    assert files_with(store_path.parent, vector_of([row[0] for row in late].index(ref))[-200:]) == []


async def test_copies_that_migrations_and_crashes_left_beside_the_store_go_too(
    opened: Opener, store_path: Path
) -> None:
    async with opened() as service:
        await fill(service)
    last = file.migrations()[-1].version
    step = file.Migration(last + 1, "more", "create table more (y integer) strict;\n")
    file.prepare(store_path, [*file.migrations(), step], dict)
    store_path.write_bytes(file.snapshot_path(store_path, last).read_bytes())  # the upgrade was taken back
    for name in (".part", ".v1.bak.part", ".restored", ".restored.part"):
        store_path.with_name(store_path.name + name).write_bytes(GONE.encode())
    folder = store_path.parent
    async with opened() as service:
        assert len(files_with(folder, TERMS[0])) > 4

        await service.call(PERSON, "forget", api.ForgetRequest(ref=await event_with(service, "quvexzoldrun")))

        assert files_with(folder, TERMS[0]) == []
        assert files_with(folder, CONTROL) != []


async def test_forgetting_twice_finds_nothing_the_second_time(service: Application) -> None:
    entry = await service.call(
        PERSON, "add", MemoryDraft(content="A zebra has stripes", name="zebra", aliases=("stripes",))
    )
    await service.call(PERSON, "forget", api.ForgetRequest(ref="stripes"))

    for ref in ("zebra", "stripes", entry.memory.id):
        with pytest.raises(NotFoundError):
            await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))

    again = await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes", name="zebra"))
    assert again.created
    assert again.memory.id != entry.memory.id


async def test_a_forgotten_memory_cannot_be_written_again_by_its_id(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes"))
    update = service.call(PERSON, "update", api.UpdateRequest(ref=entry.memory.id, content="It is back"))

    outcomes = await asyncio.gather(
        service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id)), update, return_exceptions=True
    )

    assert (
        isinstance(outcomes[1], NotFoundError) or (await service.call(PERSON, "list", api.ListRequest())).entries == ()
    )
    assert (await service.call(PERSON, "list", api.ListRequest())).entries == ()


# --- the full text after large texts came, changed and went --------------------------------------------------------------


def long_text(rng: Random) -> str:
    """Return a text that says few words very often: SQLite then needs several pages for the places of one word."""
    said = rng.choice(["m {0}", "{0} и ёж", "東京 {0}", "{0}"]).format(f"w{rng.randrange(30)}")
    return f"{rng.randrange(1000)} " + f"{said} " * rng.choice([1, 3, 300, 2500, 6000])


async def check_full_text(service: Application) -> None:
    """Have FTS5 compare its index with the texts that it was made of."""

    def check(tx: Transaction) -> None:
        tx.queries.fetch("insert into memory_fts (memory_fts, rank) values ('integrity-check', 1)")

    await service.store.write(check)


async def test_a_large_memory_that_was_updated_is_forgotten_whole(service: Application, tmp_path: Path) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="m first " * 2500))
    await service.call(PERSON, "update", api.UpdateRequest(ref=entry.memory.id, content="m second " * 2500))

    await service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id))

    await check_full_text(service)
    await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copy.db")))


async def test_a_large_memory_that_got_another_name_is_forgotten_whole(service: Application, tmp_path: Path) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="M " + "tally " * 5000, name="first"))
    await service.call(PERSON, "rename", api.RenameRequest(ref=entry.memory.id, name="second"))
    await service.call(PERSON, "alias", api.AliasRequest(ref=entry.memory.id, alias="third"))

    await service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id))

    await check_full_text(service)
    await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copy.db")))


@pytest.mark.parametrize("seed", range(6))
async def test_the_full_text_is_whole_after_any_writes_of_large_and_small_texts(
    service: Application, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    memories: list[str] = []
    events: list[str] = []
    for number in range(25):
        does = rng.choice(["add", "add", "ingest", "update", "rename", "alias", "unalias", "forget", "forget event"])
        ref = rng.choice(memories) if memories else None
        if does == "ingest":
            drafts = tuple(said(long_text(rng)) for _ in range(2))
            events += (await service.call(PERSON, "ingest", api.IngestRequest(events=drafts))).ids
        elif does == "forget event" and events:
            await service.call(PERSON, "forget", api.ForgetRequest(ref=events.pop(rng.randrange(len(events)))))
        elif does == "add" or ref is None:
            memories.append(
                (await service.call(PERSON, "add", MemoryDraft(content=f"{number} {long_text(rng)}"))).memory.id
            )
        elif does == "update":
            await service.call(PERSON, "update", api.UpdateRequest(ref=ref, content=f"{number} {long_text(rng)}"))
        elif does == "rename":
            await service.call(PERSON, "rename", api.RenameRequest(ref=ref, name=f"name-{number}"))
        elif does == "alias":
            await service.call(PERSON, "alias", api.AliasRequest(ref=ref, alias=f"alias-{number}"))
        elif does == "unalias":
            await service.call(PERSON, "alias", api.AliasRequest(ref=ref, alias=f"gone-{number}"))
            await service.call(PERSON, "alias", api.AliasRequest(ref=ref, alias=f"gone-{number}", remove=True))
        elif does == "forget":
            memories.remove(ref)
            await service.call(PERSON, "forget", api.ForgetRequest(ref=ref))
        await check_full_text(service)
    await service.call(PERSON, "backup", api.PathRequest(path=str(tmp_path / "copy.db")))
