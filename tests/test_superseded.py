"""What edits replaced: where it is kept, for how long, and that it then goes, here and at the server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from scrubjay.policy import DEFAULT
from scrubjay.store import MemoryWrite, Store
from scrubjay_cloud import retention
from scrubjay_shared import clock, ops
from scrubjay_shared.clock import Hlc, Millis
from scrubjay_shared.envelope import parse
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.ops import MAX_HLC, Field, OpType
from scrubjay_shared.records import Op
from scrubjay_sync import packing
from sync_devices import GENEROUS, Device, World, world_at

pytestmark = pytest.mark.anyio
DAY_MS = 24 * 3600 * 1000
SECRET = "xylophone"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(world_at(tmp_path))


async def written(device: Device) -> bytes:
    """Return all bytes of a device's files."""
    await device.store.drop_traces()
    return b"".join(one.read_bytes() for one in device.path.parent.iterdir() if one.is_file())


async def sent(device: Device) -> str:
    """Return what the objects say that a device keeps, as the server got them."""
    found: list[str] = []
    for lane in (await device.store.read(lambda q: q.replication.lanes())).values():
        rows = await device.store.read(lambda q: q.replication.sealed(lane.scope, lane.device))
        for data in await device.store.read(lambda q: q.replication.objects(rows)):
            envelope = parse(data)
            found.append(repr(packing.opened(envelope, device.engine.context.key(envelope)).entries))
    return "".join(found)


async def stored(device: Device) -> str:
    """Return what the objects say that the server stores, those too that it no longer hands out."""
    rows = await device.world.database.read(lambda tx: tx.rows("select body from object"))
    envelopes = [parse(bytes(row[0])) for row in rows]
    return "".join(repr(packing.opened(one, device.engine.context.key(one)).entries) for one in envelopes)


async def test_words_that_were_edited_out_go_from_every_file_and_from_the_server(world: World) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note(f"the word is {SECRET}", topic=f"about {SECRET}")
    await one.say("and something else")
    await world.settle()
    assert SECRET.encode() in await written(two)
    await two.set_fields(memory, content="the word is not kept", topic="nothing")
    await world.settle()

    world.time += DEFAULT.undo.after_request_ms + DAY_MS
    await world.settle()
    world.time += DAY_MS
    await world.settle()

    for device in (one, two):
        assert SECRET.encode() not in await written(device)
        assert SECRET not in await sent(device)
        assert await device.store.read(lambda q: q.replication.erased(one.member.device)) == {}
    assert SECRET in await stored(one)  # a device that was half-way through reading them may still do so
    world.time += 8 * DAY_MS
    await retention.sweep(world.database, world.now(), GENEROUS)
    assert SECRET not in await stored(one)
    three = await world.device()
    await three.sync()
    assert SECRET.encode() not in await written(three)
    assert len({await device.digest() for device in (one, two, three)}) == 1
    assert await three.contents() == ["the word is not kept"]


async def test_an_edit_costs_what_the_first_one_cost_and_keeps_a_few_versions(world: World) -> None:
    one = await world.device()
    memory = await one.note("0")
    for number in range(200):
        await one.edit(memory, f"{number} " + "words " * 50)

    bodies = await one.store.read(lambda q: q.fetch("select hollow, length(body) from op where type = 2"))
    whole = await one.store.read(lambda q: q.ops.whole([memory]))

    assert len(bodies) == 201
    assert len(whole[memory]) <= DEFAULT.undo.kept_versions + 2  # with the first, which says when it was made
    assert all(size < 120 for hollow, size in bodies if hollow)


async def test_an_edit_that_comes_reads_the_versions_that_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note("0")
    for number in range(40):
        await one.edit(memory, str(number))
    await world.settle()
    read: list[int] = []
    plain = ops.fold

    def counted(log: Any, *rest: Any) -> Any:
        held = list(log)
        read.append(len(held))
        return plain(held, *rest)

    monkeypatch.setattr(ops, "fold", counted)
    await one.edit(memory, "the last")
    await world.settle()

    assert await two.contents() == ["the last"]
    assert max(read) < 16


async def test_an_old_version_that_comes_late_is_no_conflict(world: World) -> None:
    """A write that was replaced by one whose words went already says nothing when it comes at last."""
    one = await world.device()
    memory = await one.note("zero")
    for number in range(30):
        await one.edit(memory, str(number))
    log = await one.store.read(lambda q: q.ops.of_entities([memory]))
    late, rest = log[memory][5], [op for op in log[memory] if op.seq != log[memory][5].seq]
    whole = next(op for op in log[memory] if op.seq == late.seq)
    other = await world.machine()
    said = {op.seq: ops.encode(op) for op in rest}
    await other.store.write(lambda tx: tx.ingest.receive(one.store.device, sorted(said.items())))

    await other.store.write(
        lambda tx: tx.ingest.receive(one.store.device, [(late.seq, ops.encode(_in_full(whole, "late words")))])
    )

    assert await other.store.read(lambda q: q.fetch("select content from memory")) == [("29",)]
    assert await other.store.read(lambda q: q.conflicts.open()) == []
    held = (await other.store.read(lambda q: q.ops.of_entities([memory])))[memory]
    assert b"late words" not in b"".join(ops.encode(op) for op in held)


def _in_full(op: Op, content: str) -> Op:
    body = {key: value for key, value in op.body.items() if key != ops.EMPTIED}
    return Op(device=op.device, seq=op.seq, op_id=op.op_id, hlc=op.hlc, type=op.type, body=body | {2: {1: content}})


@pytest.mark.parametrize("run", ["import", "distill", "observe", "relearn", "consolidate", "prune"])
async def test_a_run_can_be_undone_for_longer_than_an_edit(tmp_path: Path, run: str) -> None:
    now = [1_800_000_000_000]
    store = await Store.open(tmp_path / "memory.db", now=lambda: Millis(now[0]), entropy=bytes)
    await store.close()
    entropy = iter(range(1 << 20))
    store = await Store.open(
        tmp_path / "memory.db", now=lambda: Millis(now[0]), entropy=lambda n: next(entropy).to_bytes(n, "big")
    )

    async def write(memory_id: str, content: str, kind: str) -> None:
        fields: Mapping[Field, Any] = (
            {Field.CONTENT: content, Field.CREATED_AT: 1} if content == "old" else {Field.CONTENT: content}
        )
        await store.write(
            lambda tx: tx.memories.write([MemoryWrite(memory_id=memory_id, fields=fields)]),
            cause=store.new_cause(kind),
        )

    async def kept() -> int:
        await store.write(lambda tx: tx.superseded.sweep())
        logs = await store.read(lambda q: q.ops.of_entities([clock.ulid_text(bytes([n]) * 16) for n in (1, 2)]))
        return sum(op.body[2].get(1) == "old" for log in logs.values() for op in log)

    for number, kind in ((1, run), (2, "update")):
        await write(clock.ulid_text(bytes([number]) * 16), "old", "add")
        await write(clock.ulid_text(bytes([number]) * 16), "new", kind)

    assert await kept() == 2
    now[0] += DEFAULT.undo.after_request_ms + 1
    assert await kept() == 1
    now[0] += DEFAULT.undo.after_run_ms
    assert await kept() == 0
    await store.close()


# --- clocks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hlc", [MAX_HLC, MAX_HLC - 1, (1_800_000_000_000 << 16) + clock.REACH - 1])
async def test_no_stamp_freezes_a_field(world: World, hlc: int) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note("first")
    await world.settle()
    head = (await one.store.read(lambda q: q.ops.ends()))[one.store.device][0] + 1
    frozen = Op(
        device=one.store.device,
        seq=head,
        op_id=bytes(16),
        hlc=Hlc(hlc),
        type=int(OpType.MEMORY),
        body=ops.memory_body(memory, {Field.CONTENT: "frozen"}),
    )
    for device in (one, two):
        await device.store.write(lambda tx: tx.ingest.receive(frozen.device, [(head, ops.encode(frozen))]))
        assert await device.contents() == ["frozen"]

    await two.edit(memory, "thawed")
    assert await two.contents() == ["thawed"]
    await two.edit(memory, "thawed again")
    await world.settle()

    assert await one.contents() == await two.contents() == ["thawed again"]
    assert await one.digest() == await two.digest()
    assert await one.store.read(lambda q: q.ops.quarantined()) == []


async def test_a_change_that_no_device_would_apply_is_refused_and_not_dropped(world: World) -> None:
    one = await world.device()
    memory = await one.note("first")

    with pytest.raises(InvalidError, match="cannot be written"):
        await one.set_fields(memory, salience=7.0)

    assert await one.contents() == ["first"]


async def test_a_machine_whose_clock_was_not_set_takes_no_name(world: World) -> None:
    one, two = await world.device(), await world.device(skew_ms=1_000_000 - world.time)
    mine, theirs = await one.note("mine"), await two.note("theirs")
    await one.rename(mine, "deploy")
    await two.rename(theirs, "deploy")
    await world.settle()

    for device in (one, two):
        names = dict(await device.store.read(lambda q: q.fetch("select name, memory_id from name")))
        assert names == {"deploy": mine, "deploy~2": theirs}
    assert await one.digest() == await two.digest()


@pytest.mark.parametrize("said", [1 << 60, -(1 << 60), MAX_HLC])
async def test_a_time_that_nobody_can_show_is_shown_as_the_last_that_can_be(world: World, said: int) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note("when", valid_from=said, archived_at=None)
    await one.set_fields(memory, created_at=said)
    await world.settle()

    for device in (one, two):
        [(created, since)] = await device.store.read(lambda q: q.fetch("select created_at, valid_from from memory"))
        assert abs(created) == abs(since) == clock.MAX_EVENT_MILLIS
        assert time.gmtime(abs(created) / 1000).tm_year == 2248


async def test_a_total_that_nobody_can_have_counted_does_no_harm(world: World) -> None:
    one = await world.device()
    memory = await one.note("counted")
    for number in (1, 2, 3):
        device = bytes([number]) * 16
        count = Op(
            device=device.hex(), seq=1, op_id=bytes(16), hlc=Hlc(1 << 50), type=int(OpType.COUNT),
            body=ops.count_body(memory, ops.Counter.ACCESS, MAX_HLC, Millis(MAX_HLC)),
        )  # fmt: skip
        data = ops.encode(count)
        await one.store.write(lambda tx, device=device, data=data: tx.ingest.receive(device.hex(), [(1, data)]))

    [(total, last)] = await one.store.read(lambda q: q.fetch("select sum(total), max(last) from counted"))
    assert (total, last) == (3 << 40, clock.MAX_EVENT_MILLIS)
