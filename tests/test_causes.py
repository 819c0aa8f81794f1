"""The causes of ops in the store: kept, carried to other devices byte for byte, and found again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrubjay.store import Cause, MemoryWrite, Store, Transaction
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Event, EventType, Role

pytestmark = pytest.mark.anyio

NOW = Millis(1_800_000_000_000)
Making = Callable[[str], Any]


def entropy(first: int) -> Callable[[int], bytes]:
    drawn = iter(range(first, 1 << 62))
    return lambda count: next(drawn).to_bytes(count, "big")


async def store_in(folder: Path, first: int) -> Store:
    return await Store.open(folder / f"{first}" / "memory.db", now=lambda: NOW, entropy=entropy(first))


def event(event_id: str, text: str) -> Event:
    return Event(
        id=event_id, device="", agent="x", session_id="s", type=EventType.USER_MESSAGE, role=Role.USER, text=text,
        ts=NOW, dedupe_key=event_id, project="p", utc_offset=60, metadata={"speaker": "Anna"},
    )  # fmt: skip


async def write(store: Store, cause: Cause | None, text: str = "tea") -> tuple[str, str]:
    """Append an event and a memory with a name; return their ids."""

    def work(tx: Transaction) -> tuple[str, str]:
        event_id, memory_id = tx.new_id(), tx.new_id()
        tx.events.append([event(event_id, text)], learn=False)
        fields = {Field.CONTENT: text, Field.CREATED_AT: int(tx.now)}
        tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields, names=(text,))])
        return event_id, memory_id

    return await store.write(work, cause=cause)


async def sent(store: Store, device: str) -> list[tuple[int, bytes | None]]:
    found = await store.read(lambda q: q.ops.between(device, 1, 1_000))
    return [(one.seq, one.data) for one in found]


async def kept(store: Store) -> dict[str, dict[int, int]]:
    """Return how many ops of each type each cause has."""

    def read(queries: Any) -> dict[str, dict[int, int]]:
        page, _ = queries.causes.page(kind=None, after=None, limit=100)
        counts = queries.causes.counts([row.n for row in page])
        return {row.id: counts.get(row.n, {}) for row in page}

    return await store.read(read)


async def test_an_op_without_a_cause_has_the_bytes_that_it_always_had(tmp_path: Path) -> None:
    store = await store_in(tmp_path, 1)
    await write(store, None)

    read = [ops.decode(data or b"", device=store.device, seq=seq) for seq, data in await sent(store, store.device)]

    assert all(ops.CAUSE not in op.body for op in read)
    assert await store.read(lambda q: q.fetch("select count(*) from cause")) == [(0,)]
    await store.close()


async def test_a_cause_goes_to_another_device_and_on_from_there_byte_for_byte(tmp_path: Path) -> None:
    one, other = await store_in(tmp_path, 1), await store_in(tmp_path, 1 << 40)
    cause = one.new_cause("import", label="notes.md")
    event_id, _ = await write(one, cause)
    await one.write(lambda tx: tx.forget.passages(event_id, [(0, 1)]), cause=cause)
    run = await sent(one, one.device)
    assert [ops.cause_of(ops.decode(data or b"", device="", seq=seq)) for seq, data in run] == [cause.id] * 4

    await other.write(lambda tx: tx.ingest.receive(one.device, run))

    assert await sent(other, one.device) == run
    expected = {cause.id: {OpType.EVENT: 1, OpType.MEMORY: 1, OpType.CLAIM: 1, OpType.BLANK: 1}}
    assert await kept(other) == await kept(one) == expected
    labels = [await store.read(lambda q: q.causes.labels([cause.id])) for store in (one, other)]
    assert labels == [{cause.id: "notes.md"}, {}]
    for store in (one, other):  # the words of an event stand in its row alone, with a cause as without
        assert await store.read(lambda q: q.fetch("select body from op where type = 1")) == [(None,)]
        await store.close()


async def test_what_came_before_causes_were_known_gets_them_when_the_store_is_opened(tmp_path: Path) -> None:
    store = await store_in(tmp_path, 1)
    cause = store.new_cause("import")
    await write(store, cause)
    await store.write(lambda tx: tx.ingest._run("update op set cause = null where type <> 1"))
    await store.write(lambda tx: tx.set_meta("projected", "3"))
    await store.close()

    store = await store_in(tmp_path, 1)

    assert await kept(store) == {cause.id: {OpType.EVENT: 1, OpType.MEMORY: 1, OpType.CLAIM: 1}}
    await store.close()


async def test_a_write_that_fails_leaves_no_cause_behind(tmp_path: Path) -> None:
    store = await store_in(tmp_path, 1)

    def work(tx: Transaction) -> None:
        tx.events.append([event(tx.new_id(), "tea")], learn=False)
        raise LookupError

    cause = store.new_cause("import")
    with pytest.raises(LookupError):
        await store.write(work, cause=cause)
    assert await kept(store) == {}

    await write(store, cause)
    assert list(await kept(store)) == [cause.id]
    await store.close()


async def test_a_store_that_goes_on_as_another_device_keeps_its_causes(tmp_path: Path) -> None:
    store = await store_in(tmp_path, 1)
    cause = store.new_cause("import")
    await write(store, cause)
    before = await kept(store)

    await store.write(lambda tx: tx.incarnation.renew("ab" * 16, 0))

    assert await kept(store) == before
    read = [ops.decode(data or b"", device="", seq=seq) for seq, data in await sent(store, "ab" * 16)]
    assert [ops.cause_of(op) for op in read] == [cause.id] * 3
    await store.close()
