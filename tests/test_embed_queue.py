"""What waits to be embedded is kept by every write: after any history the queue is what a search of all texts finds."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from quick_disk import quick_folder
from scrubjay.store import MemoryWrite, Store, Transaction, embed_queue, file, rows
from scrubjay_io.sqlite import driver
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Event, EventType, Role

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
HISTORIES = int(os.environ.get("SCRUBJAY_TEST_HISTORIES", "25"))
FEW = 5
"""In every run of the tests; the others run with the slow ones."""
TEXTS = ("", " \n", "\u00a0", "one", "another text", "a third")
TYPES = (EventType.USER_MESSAGE, EventType.NOTE, EventType.TOOL_RESULT, EventType.SESSION_START)
UNEMBEDDED = (  # what the search before there was a queue found
    "select 1, m.n from memory m where not exists (select 1 from embedding x where x.space = ?1 and x.owner = m.id)"
    f" union all select 0, e.n from event e where {embed_queue.EMBEDDABLE}"
    " and not exists (select 1 from embedding x where x.space = ?1 and x.owner = e.id)"
)


def event(event_id: str, text: str, kind: EventType, n: int) -> Event:
    return Event(
        id=event_id,
        device="",
        agent="test",
        session_id=f"s{n % 3}",
        type=kind,
        role=Role.USER,
        text=text,
        ts=Millis(NOW + n),
        dedupe_key=event_id,
    )


async def opened(path: Path, seed: int) -> Store:
    return await Store.open(path, now=lambda: Millis(NOW), entropy=random.Random(seed).randbytes)


async def check(store: Store) -> None:
    """The queue is what waits, but for what has not been looked at yet; nothing is in it that does not wait."""
    state = await store.read(lambda q: q.fetch("select space, memories, events from embed_queue"))
    queued = [tuple(row) for row in await store.read(lambda q: q.fetch("select memory, n from unembedded"))]
    refused = [tuple(row) for row in await store.read(lambda q: q.fetch("select memory, n from refused"))]
    if not state:
        assert (queued, refused) == ([], [])
        assert not await store.read(lambda q: q.embed_queue.may_wait())
        return
    space, memories, events = state[0]
    waits = {tuple(row) for row in await store.read(lambda q: q.fetch(UNEMBEDDED, (space,)))}
    assert not set(queued) & set(refused)
    assert {*queued, *refused} <= waits
    unlooked = {place for place in waits if place[1] <= (memories if place[0] else events)}
    assert waits - unlooked <= {*queued, *refused}
    assert await store.read(lambda q: q.embed_queue.may_wait()) == bool(queued or memories or events)
    assert (await store.read(lambda q: q.embed_queue.counts()))[0] >= len(waits) - len(refused)


class History:
    """Random writes to one store, which hears another one, crashes, and changes models."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.folder = folder
        self.store: Store
        self.other: Store

    async def run(self, steps: int) -> None:
        self.store = await opened(self.folder / "1.db", 1)
        self.other = await opened(self.folder / "2.db", 2)
        try:
            for _ in range(steps):
                await getattr(self, self.draw.choice(STEPS))()
                await check(self.store)
            await self.store.write(lambda tx: tx.vectors.enter_space("last"))
            while await self.store.write(lambda tx: tx.vectors.queue.fill()):
                pass
            await check(self.store)
            assert (await self.store.read(lambda q: q.fetch("select memories, events from embed_queue"))) == [(0, 0)]
        finally:
            await self.store.close()
            await self.other.close()

    async def some(self, table: str, store: Store | None = None) -> list[str]:
        found = [
            row[0] for row in await (store or self.store).read(lambda q: q.fetch(f"select id from {table} order by id"))
        ]
        return self.draw.sample(found, min(len(found), self.draw.randint(1, 3)))

    async def say(self, store: Store | None = None) -> None:
        chosen = [(self.draw.choice(TEXTS), self.draw.choice(TYPES)) for _ in range(self.draw.randint(1, 6))]

        def work(tx: Transaction) -> None:
            tx.events.append([event(tx.new_id(), *one, n) for n, one in enumerate(chosen)], learn=True)

        await (store or self.store).write(work)

    async def remember(self, store: Store | None = None) -> None:
        fields = {Field.CONTENT: self.draw.choice(TEXTS[3:]), Field.CREATED_AT: NOW}
        await (store or self.store).write(
            lambda tx: tx.memories.write([MemoryWrite(memory_id=tx.new_id(), fields=fields)])
        )

    async def edit(self) -> None:
        fields = {Field.CONTENT: self.draw.choice(TEXTS[3:])}
        for memory_id in await self.some("memory"):
            await self.store.write(
                lambda tx, id_=memory_id: tx.memories.write([MemoryWrite(memory_id=id_, fields=fields)])
            )

    async def rename(self) -> None:
        name = f"name {self.draw.randint(0, 5)}"
        for memory_id in (await self.some("memory"))[:1]:
            held = [*(await self.store.read(lambda q: q.names.holders([name]))).values()]
            if not held:
                write = MemoryWrite(memory_id=memory_id, fields={Field.NAME: name}, names=(name,))
                await self.store.write(lambda tx, write=write: tx.memories.write([write]))

    async def forget_memory(self) -> None:
        for memory_id in await self.some("memory"):
            await self.store.write(lambda tx, id_=memory_id: tx.forget.memory(id_))

    async def forget_event(self) -> None:
        for event_id in (await self.some("event"))[:1]:
            await self.store.write(lambda tx, id_=event_id: tx.forget.event(id_))

    async def blank(self) -> None:
        for event_id in await self.some("event"):
            await self.store.write(
                lambda tx, id_=event_id: tx.forget.passages(id_, [(0, self.draw.choice((1, 3, 99)))])
            )

    async def hear(self) -> None:
        await self.say(self.other)
        await self.remember(self.other)
        for event_id in (await self.some("event", self.other))[:1]:
            await self.other.write(lambda tx, id_=event_id: tx.forget.passages(id_, [(0, 2)]))
        sent = await self.other.write(lambda tx: tx.queries.ops.unsent(self.other.device, 0, 100_000))
        run = [(one.seq, one.data) for one in sent if self.draw.random() < 0.8]
        self.draw.shuffle(run)
        await self.store.write(lambda tx: tx.ingest.receive(self.other.device, run))

    async def enter(self) -> None:
        name = self.draw.choice(("a", "b", "c"))
        await self.store.write(lambda tx: tx.vectors.enter_space(name))

    async def leave(self) -> None:
        await self.store.write(lambda tx: tx.vectors.leave_space())

    async def look(self) -> None:
        await self.store.write(lambda tx: tx.vectors.queue.fill())

    async def embed(self) -> None:
        found = await self.store.read(lambda q: q.embed_queue.space())
        waiting = await self.store.read(lambda q: q.embed_queue.first(4))
        space = self.draw.choice([1 if found is None else found[0], 1])
        if waiting:
            made = [(one.owner, one.said if self.draw.random() < 0.9 else "other", b"v") for one in waiting]
            await self.store.write(lambda tx: (tx.vectors.space("a"), tx.vectors.put(space, made))[1])

    async def refuse(self) -> None:
        found = await self.store.read(lambda q: q.embed_queue.space())
        refused = [(one.owner, one.said, "too long") for one in await self.store.read(lambda q: q.embed_queue.first(2))]
        if found is not None:
            await self.store.write(lambda tx: tx.vectors.refuse(found[0], refused))

    async def retry(self) -> None:
        await self.store.write(lambda tx: tx.vectors.queue.retry())

    async def rebuild(self) -> None:
        await self.store.write(lambda tx: tx.projections.rebuild(vectors=self.draw.random() < 0.3))

    async def adopt(self) -> None:
        await self.store.write(lambda tx: tx.incarnation.adopt())

    async def upgrade(self) -> None:
        """A memory that no op is about, as damage leaves it, goes when a new version makes the tables again."""
        columns = "id, content, kind, type, scope, layer, salience, confidence, trust, created_at, updated_at"

        def work(tx: Transaction) -> None:
            top = tx.queries.fetch("select coalesce(max(n), 0) from memory")[0][0]
            values = (tx.new_id(), "stray", "stored", "fact", "user", "archive", 0.5, 1.0, "user", NOW, NOW)
            tx.queries.fetch(
                f"insert into memory (n, {columns}, content_hash, metadata) values (?, {rows.placeholders(columns)}, '', '{{}}')",
                (top + 1, *values),
            )
            tx.vectors.queue.add_memories([top + 1])
            tx.projections.project_all(tell=True)

        await self.store.write(work)

    async def reopen(self) -> None:
        await self.store.close()
        self.store = await opened(self.folder / "1.db", self.draw.randint(3, 1_000_000))


STEPS = (
    *("say", "remember", "embed", "embed", "look") * 3,
    *("edit", "rename", "forget_memory", "forget_event", "blank", "hear", "enter", "refuse"),
    *("leave", "retry", "rebuild", "reopen", "adopt", "upgrade"),
)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed >= FEW else ()) for seed in range(HISTORIES)]
)
async def test_after_any_history_the_queue_is_what_a_search_of_all_texts_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed_queue, "STEP", 3)  # so that spaces change while some texts have not been looked at
    folder = Path(tempfile.mkdtemp(dir=quick_folder()))
    try:
        await History(folder, seed).run(60)
    finally:
        shutil.rmtree(folder)


async def fill(store: Store, memories: int, events: int) -> None:
    def work(tx: Transaction) -> None:
        fields = {Field.CREATED_AT: NOW}
        tx.memories.write(
            [MemoryWrite(memory_id=tx.new_id(), fields=fields | {Field.CONTENT: f"m{n}"}) for n in range(memories)]
        )
        tx.events.append([event(tx.new_id(), f"e{n}", TYPES[0], n) for n in range(events)], learn=True)

    await store.write(work)


def texts(found: Sequence[embed_queue.Waiting]) -> list[str]:
    return [one.text.removeprefix("[user] ") for one in found]


async def test_memories_come_first_and_the_newest_of_each_first(tmp_path: Path) -> None:
    store = await opened(tmp_path / "1.db", 1)
    try:
        await fill(store, 3, 3)
        await store.write(lambda tx: tx.vectors.enter_space("a"))

        whole = await store.read(lambda q: q.embed_queue.first(10))
        first = await store.read(lambda q: q.embed_queue.first(2))
        rest = await store.read(lambda q: q.embed_queue.first(10, first[-1].place))

        assert texts(whole) == ["m2", "m1", "m0", "e2", "e1", "e0"]
        assert [*first, *rest] == whole
    finally:
        await store.close()


async def test_a_store_without_a_model_queues_nothing(tmp_path: Path) -> None:
    store = await opened(tmp_path / "1.db", 1)
    try:
        await store.write(lambda tx: tx.vectors.enter_space("a"))
        await fill(store, 3, 3)
        before = await store.read(lambda q: q.embed_queue.counts())
        await store.write(lambda tx: tx.vectors.leave_space())
        await fill(store, 3, 3)

        assert (before, await store.read(lambda q: q.embed_queue.counts())) == ((6, 0), (0, 0))
        assert await store.read(lambda q: q.fetch("select * from unembedded")) == []
    finally:
        await store.close()


async def test_a_store_of_the_schema_before_is_queued_when_its_model_is_used(tmp_path: Path) -> None:
    path = tmp_path / "1.db"
    store = await opened(path, 1)
    await fill(store, 3, 3)
    await store.write(
        lambda tx: (
            tx.vectors.put(tx.vectors.space("a"), [(one, "0", b"v") for one in ids[:1]])
            if (ids := [row[0] for row in tx.queries.fetch("select id from event order by n")])
            else None
        )
    )
    await store.close()
    older = tmp_path / "older.db"
    with closing(driver.connect(str(path))) as connection:
        seed = dict(connection.execute("select key, value from meta"))
        file.prepare(older, file.migrations()[:3], lambda: seed)
        connection.execute("attach ? as older", (str(older),))
        for table in ("event", "op", "memory", "session", "space", "embedding"):
            held = [row[1] for row in connection.execute(f"pragma older.table_info({table})")]
            columns = ", ".join(held)
            connection.execute(f"insert into older.{table} ({columns}) select {columns} from main.{table}")
        connection.commit()

    store = await opened(older, 2)
    try:
        number = await store.write(lambda tx: tx.vectors.enter_space("a"))

        assert store.schema_version == file.migrations()[-1].version
        assert number == 1
        assert texts(await store.read(lambda q: q.embed_queue.first(10))) == ["m2", "m1", "m0", "e2", "e1"]
        await check(store)
    finally:
        await store.close()


async def test_the_queries_of_the_queue_read_only_what_they_need(tmp_path: Path) -> None:
    store = await opened(tmp_path / "1.db", 1)
    try:
        plans = [
            " | ".join(str(row[3]) for row in await store.read(lambda q: q.fetch(f"explain query plan {sql}", params)))
            for sql, params in (
                (embed_queue.MEMORIES, (10, 10, 10)),
                (embed_queue.EVENTS, (10, 10)),
                (embed_queue.LOOK, ()),
                ("delete from embedding where space in (select id from space) and owner = ?", ("x",)),
            )
        ]
    finally:
        await store.close()

    assert all("SEARCH q USING PRIMARY KEY (memory=? AND n<?)" in plan for plan in plans[:2])
    assert not any("SCAN m" in plan or "SCAN e " in plan or "TEMP B-TREE" in plan for plan in plans[:2])
    assert "SEARCH embedding" in plans[3]
