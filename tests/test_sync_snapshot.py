"""Snapshots: a new machine that begins with one ends up as one that reads the lanes, whatever the snapshot says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from scrubjay_shared import snapshot
from scrubjay_shared.envelope import ObjectKind, parse
from scrubjay_shared.errors import BadSignatureError, ConflictError, DeniedError, InvalidError, NotFoundError
from scrubjay_shared.snapshot import Chunk
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices
from scrubjay_sync.engine import revocation, snapshot_making
from scrubjay_sync.engine.snapshot_making import Basis
from scrubjay_sync.packing import Manifest
from scrubjay_sync.policy import SYNC
from sync_devices import Answer, Device, Handler, World, world_at

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


async def talk(device: Device, count: int, about: str = "tea") -> list[str]:
    """Say some things, and note two of them; returns the ids of all."""
    said = await device.say(*(f"{about} number {number}" for number in range(count)))
    first = await device.note(f"{about} is liked")
    await device.edit(first, f"{about} is liked much")
    return [*said, first, await device.note(f"{about} at four", name=f"{about}-time")]


async def filled(world: World) -> tuple[Device, Device]:
    """Return two devices that both wrote, in sync."""
    one, two = await world.device(), await world.device()
    await talk(one, 30)
    await talk(two, 20, "coffee")
    await world.settle()
    return one, two


async def said(device: Device) -> list[str]:
    return sorted(str(row[0]) for row in await device.store.read(lambda q: q.fetch("select text from event")))


async def shown(device: Device) -> dict[str, Any]:
    return {"state": await device.digest(), "said": await said(device), "contents": await device.contents()}


async def used(device: Device) -> str:
    """Return what the device's first reading did with a snapshot."""
    state = await device.store.read(lambda q: q.replication.state())
    assert state is not None
    return state.snapshot


async def no_snapshot(request: httpx2.Request, answer: Answer) -> httpx2.Response:
    return httpx2.Response(404) if "/snapshots/" in request.url.path else await answer()


async def kept(world: World) -> list[tuple[int, int]]:
    """Return the objects of snapshots at the server: (kind, whether in force)."""
    sql = "select kind, replaced_at is null from blob where kind in (3, 4) order by 1, 2"
    return [(int(kind), int(live)) for kind, live in await world.database.read(lambda tx: tx.rows(sql, ()))]


# --- the law: by a snapshot or by the lanes, it is the same --------------------------------------------------------


async def test_who_begins_with_a_snapshot_ends_up_as_who_reads_the_lanes(world: World) -> None:
    one, two = await filled(world)
    made = await one.engine.snapshot()
    await talk(two, 5, "cocoa")
    await world.settle()
    by_snapshot, by_lanes = await world.device(), await world.device()
    by_lanes.network.fault = no_snapshot

    await by_snapshot.sync()
    await by_lanes.sync()
    await world.settle()

    assert (made.ops, made.chunks, made.sent) == (56, 2, 2)
    assert (await used(by_snapshot), await used(by_lanes)) == ("loaded", "")
    assert await shown(by_snapshot) == await shown(by_lanes) == await shown(one)
    assert not await by_snapshot.store.read(lambda q: q.snapshots.unconfirmed())
    assert [await device.alarms() for device in world.devices] == [[], [], [], []]
    assert [sum(row.ok for row in []) for _ in ()] == []


async def test_everything_of_a_snapshot_is_there_before_the_lanes_are_read(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    three = await world.device()
    there: list[int] = []

    async def watch(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if "/lanes/" in request.url.path:
            there.append(len(await said(three)))
        return await answer()

    three.network.fault = watch
    await three.sync()

    assert set(there) == {50}


async def test_what_was_forgotten_since_a_snapshot_was_made_is_not_there_for_a_moment(world: World) -> None:
    one, two = await filled(world)
    ids = await talk(one, 3, "secret")
    await world.settle()
    await one.engine.snapshot()
    await two.store.write(lambda tx: tx.forget.memory(ids[3]))
    await two.store.write(lambda tx: tx.forget.event(ids[0]))
    await world.settle()
    three = await world.device()
    seen: set[str] = set()

    async def watch(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        seen.update(await said(three), await three.contents())
        return await answer()

    three.network.fault = watch
    await three.sync()
    await three.sync()

    assert await used(three) == "loaded"
    assert "secret number 1" in seen
    assert not {"secret number 0", "secret is liked", "secret is liked much"} & seen
    assert await shown(three) == await shown(one) == await shown(two)
    assert await three.alarms() == []


async def test_undo_and_a_rebuild_say_the_same_after_a_snapshot(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    three = await world.device()
    await three.sync()
    before = await shown(three)

    await three.store.write(lambda tx: tx.projections.rebuild(vectors=False))
    await three.reopen()

    assert await shown(three) == before == await shown(one)
    assert (await three.sync()).synced


async def test_a_first_reading_that_was_cut_off_goes_on_with_the_snapshot(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    three = await world.device()
    asked = 0

    async def fall(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        nonlocal asked
        asked += "/objects/" in request.url.path
        if asked == 2:
            raise httpx2.ConnectError("the cable is out")
        return await answer()

    three.network.fault = fall
    with pytest.raises(Exception, match="cannot be reached|cable"):
        await three.sync()
    state = await used(three)
    three.network.fault = None
    await three.reopen()
    await three.sync()

    assert (state, await used(three)) == ("loading", "loaded")
    assert await shown(three) == await shown(one)
    assert await three.alarms() == []


# --- making them --------------------------------------------------------------------------------------------------


async def test_what_did_not_change_is_not_sent_again_and_what_is_replaced_is_gone(world: World) -> None:
    one, two = await filled(world)
    first = await one.engine.snapshot()
    again = await one.engine.snapshot()
    await talk(two, 3, "cocoa")
    await world.settle()
    later = await one.engine.snapshot()

    assert (first.sent, again.sent, later.sent) == (2, 0, 1)
    assert (first.ops, later.ops) == (56, 62)
    assert await kept(world) == [(3, 1), (3, 1), (4, 1)]


async def test_ops_that_do_not_fit_one_object_are_several_chunks(world: World) -> None:
    one = await world.device()
    letters = [world.random.randbytes(40_000).hex() for _ in range(12)]
    await one.say(*letters)
    await world.settle()

    made = await one.engine.snapshot()
    two = await world.device()
    await two.sync()

    assert made.chunks > 1
    assert await said(two) == sorted(letters)
    assert await two.alarms() == []


def basis(ops: int) -> Basis:
    return Basis(seen=packing.Checkpoint(at=snapshot_making.Millis(0), heads={}, log_seq=0, log_head=b""), ends={}, ops=ops)


def standing(ops: int) -> Manifest:
    chunk = snapshot.ChunkRef(hash=bytes(32), device=bytes(16), low=1, high=ops, ops=ops)
    return Manifest(maker=bytes(16), seen=basis(ops).seen, chunks=(chunk,))


def test_one_is_due_when_there_is_enough_to_spare_and_a_quarter_has_come_since() -> None:
    most = SYNC.snapshot_ops

    assert not snapshot_making.is_due(basis(most - 1), None)
    assert snapshot_making.is_due(basis(most), None)
    assert not snapshot_making.is_due(basis(most * 5 // 4 - 1), standing(most))
    assert snapshot_making.is_due(basis(most * 5 // 4), standing(most))


async def test_a_small_account_has_none_made_by_itself(world: World) -> None:
    one, _ = await filled(world)

    assert (await one.engine.snapshot(when_due=True)).chunks == 0
    assert await kept(world) == []


async def test_a_device_that_has_not_compared_its_own_yet_makes_none(world: World) -> None:
    one, _ = await filled(world)
    await one.store.write(
        lambda tx: tx._context.run(  # noqa: SLF001 - as a first reading leaves it that was cut off
            "insert into unconfirmed (device, base, bits) values (?, 0, ?)", ("ab" * 16, b"\1" * 512)
        )
    )

    with pytest.raises(ConflictError):
        await snapshot_making.basis(one.engine.context, one.now())


# --- forgetting ---------------------------------------------------------------------------------------------------


async def test_a_snapshot_goes_when_words_of_it_leave_the_lanes(world: World) -> None:
    one, two = await filled(world)
    ids = await talk(one, 3, "secret")
    await world.settle()
    await one.engine.snapshot()
    await two.store.write(lambda tx: tx.forget.event(ids[0]))
    await world.settle()
    before = await kept(world)
    world.time += SYNC.repack_after_ms
    await world.settle()

    assert before == [(3, 1), (3, 1), (4, 1)]
    assert await kept(world) == []


async def test_one_that_was_made_after_the_forgetting_stays(world: World) -> None:
    one, two = await filled(world)
    ids = await talk(one, 3, "secret")
    await world.settle()
    await two.store.write(lambda tx: tx.forget.event(ids[0]))
    await world.settle()
    world.time += SYNC.repack_after_ms // 2
    await one.engine.snapshot()
    world.time += SYNC.repack_after_ms
    await world.settle()

    assert await kept(world) == [(3, 1), (3, 1), (4, 1)]


# --- who may ------------------------------------------------------------------------------------------------------


async def test_a_limited_device_makes_none_and_the_server_takes_none_of_it(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    limited = await limited_device(world, one)
    await limited.sync()
    found = await snapshot_making.basis(one.engine.context, one.now())

    with pytest.raises(InvalidError):
        await limited.engine.snapshot()
    with pytest.raises(DeniedError):
        await snapshot_making.make(limited.engine.context, found)
