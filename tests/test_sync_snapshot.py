"""Snapshots: a new machine that begins with one ends up as one that reads the lanes, whatever the snapshot says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
import pytest

from scrubjay.store.queries.snapshots import SnapshotQueries
from scrubjay_cloud import verify
from scrubjay_cloud.retention import sweep
from scrubjay_shared import ops, snapshot
from scrubjay_shared.clock import Millis, ulid, ulid_bytes
from scrubjay_shared.envelope import ObjectKind, parse
from scrubjay_shared.errors import (
    BadSignatureError,
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Event, EventType, Layer, Role, Trust
from scrubjay_shared.snapshot import Chunk
from scrubjay_shared.wire import PutSnapshot
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices, limited_devices
from scrubjay_sync.background import Rounds, SnapshotJob
from scrubjay_sync.engine import snapshot_making
from scrubjay_sync.engine.snapshot_making import Basis
from scrubjay_sync.packing import Manifest
from scrubjay_sync.policy import SYNC
from sync_devices import GENEROUS, Answer, Device, Handler, Network, World, world_at

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


async def test_an_event_with_more_trust_than_its_role_allows_makes_no_snapshot_false(world: World) -> None:
    one, _ = await filled(world)
    row = {
        "agent": "x",
        "session_id": "s",
        "type": EventType.ASSISTANT_MESSAGE,
        "role": Role.ASSISTANT,
        "text": "tea it is",
    }
    event = Event(id=ulid(Millis(9), bytes(10)), device="", ts=Millis(9), dedupe_key="k", trust=Trust.USER, **row)
    await one.store.write(lambda tx: tx.events.append([event], learn=False))
    await world.settle()
    await one.engine.snapshot()
    by_snapshot, by_lanes = await world.device(), await world.device()
    by_lanes.network.fault = no_snapshot

    await by_snapshot.sync()
    await by_lanes.sync()

    assert await used(by_snapshot) == "loaded"
    assert await by_snapshot.alarms() == []
    kept_ops = [await device.store.read(lambda q: q.fetch("select * from op")) for device in (by_snapshot, by_lanes)]
    assert sorted(map(repr, kept_ops[0])) == sorted(map(repr, kept_ops[1]))


@pytest.mark.slow
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

    async def watch(_: httpx2.Request, answer: Answer) -> httpx2.Response:
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    with pytest.raises(UnavailableError):
        await three.sync()
    state = await used(three)
    three.network.fault = None
    await three.reopen()
    await three.sync()

    assert (state, await used(three)) == ("loading", "loaded")
    assert await shown(three) == await shown(one)
    assert await three.alarms() == []


# --- making them --------------------------------------------------------------------------------------------------


@pytest.mark.slow
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


async def test_chunks_that_come_in_another_order_than_they_were_asked_for_are_all_stored(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    late, other = await world.device(), anyio.Event()
    asked: list[str] = []

    async def first_comes_last(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.method != "GET" or "/objects/" not in request.url.path:
            return await answer()
        asked.append(request.url.path)
        if len(asked) == 1:
            with anyio.fail_after(30):
                await other.wait()
            return await answer()
        given = await answer()
        other.set()
        return given

    late.network.fault = first_comes_last
    await late.sync()

    assert len(asked) == 2
    assert await shown(late) == await shown(one)
    assert await late.alarms() == []
    assert not await late.store.read(lambda q: q.snapshots.unconfirmed())


@pytest.mark.slow
async def test_ops_that_do_not_fit_one_object_are_several_chunks(world: World) -> None:
    one = await world.device()
    letters = [world.random.randbytes(40_000).hex() for _ in range(16)]
    await one.say(*letters)
    await world.settle()

    made = await one.engine.snapshot()
    two = await world.device()
    await two.sync()

    assert made.chunks > 1
    assert await said(two) == sorted(letters)
    assert await two.alarms() == []


def basis(ops: int) -> Basis:
    return Basis(seen=packing.Checkpoint(at=Millis(0), heads={}, log_seq=0, log_head=b""), ends={}, ops=ops)


def standing(ops: int) -> Manifest:
    chunk = snapshot.ChunkRef(hash=bytes(32), device=bytes(16), low=1, high=ops, ops=ops)
    return Manifest(maker=bytes(16), seen=basis(ops).seen, chunks=(chunk,))


def test_one_is_due_when_there_is_enough_to_spare_and_a_quarter_has_come_since() -> None:
    most = SYNC.snapshot_ops

    assert not snapshot_making.is_due(basis(most - 1), None)
    assert snapshot_making.is_due(basis(most), None)
    assert not snapshot_making.is_due(basis(most * 5 // 4 - 1), standing(most))
    assert snapshot_making.is_due(basis(most * 5 // 4), standing(most))


@pytest.mark.slow
async def test_the_job_makes_one_when_it_is_due_and_the_command_at_any_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = await filled(world)

    async def done() -> None:
        return None

    rounds = Rounds(one.engine, one.store, None, on_done=done)
    job, without_login = SnapshotJob(lambda: rounds), SnapshotJob(lambda: None)

    await job.run()
    too_few = await kept(world)
    monkeypatch.setattr(snapshot_making, "SYNC", replace(SYNC, snapshot_ops=56))
    await job.run()
    made = await one.machine.cloud.snapshots.manifest(one.member.home)
    await job.run()
    again = await one.machine.cloud.snapshots.manifest(one.member.home)
    asked_for = await rounds.snapshot()

    assert (too_few, made) == ([], again)
    assert (asked_for.chunks, asked_for.sent) == (2, 0)
    assert [await each.due() for each in (job, without_login)] == [True, False]
    assert [await each.pending() for each in (job, without_login)] == [0, None]


@pytest.mark.slow
async def test_a_small_account_has_none_made_by_itself(world: World) -> None:
    one, _ = await filled(world)

    assert (await one.engine.snapshot(when_due=True)).chunks == 0
    assert await kept(world) == []


@pytest.mark.slow
async def test_a_device_that_has_not_compared_its_own_yet_makes_none(world: World) -> None:
    one, _ = await filled(world)
    await one.store.write(
        lambda tx: tx._context.run(
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


@pytest.mark.slow
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


async def limited_device(world: World, owner: Device) -> Device:
    """Return a device that was given the home scope alone."""
    bundle = await limited_devices.create_limited(
        owner.member,
        owner.machine.cloud,
        name="runner",
        scopes=[owner.member.home],
        read_only=False,
        entropy=world.random.randbytes,
    )
    path, network = world.path / "runner" / "memory.db", Network(world)
    machine = await world.machine(path, network)
    member = await limited_devices.join_limited(machine, bundle)
    return Device(world=world, machine=machine, member=member, network=network, path=path)


@pytest.mark.slow
async def test_a_limited_device_makes_none_and_the_server_takes_none_of_it(world: World) -> None:
    one, _ = await filled(world)
    limited = await limited_device(world, one)
    await limited.sync()
    found = await snapshot_making.basis(one.engine.context, one.now())

    with pytest.raises(InvalidError):
        await limited.engine.snapshot()
    with pytest.raises(DeniedError):
        await snapshot_making.make(limited.engine.context, found)


@pytest.mark.slow
async def test_a_limited_device_begins_with_a_snapshot_and_the_words_it_forgets_leave_it(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    limited = await limited_device(world, one)
    await limited.sync()
    (memory,) = await limited.store.read(lambda q: q.fetch("select id from memory where content = 'tea at four'"))

    assert await used(limited) == "loaded"
    assert await shown(limited) == await shown(one)
    await limited.forget(str(memory[0]))
    await limited.sync()
    world.time += SYNC.repack_after_ms
    await limited.sync()

    assert await kept(world) == []


@pytest.mark.slow
async def test_one_that_a_limited_device_slipped_past_the_server_is_not_used(world: World) -> None:
    one, _ = await filled(world)
    limited = await limited_device(world, one)
    await limited.sync()
    sent: list[bytes] = []

    async def take(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.method == "PUT" and "/snapshots/" in request.url.path:
            sent.append(msgspec.json.decode(await request.aread(), type=PutSnapshot).manifest)
        elif request.url.path.endswith("/missing"):
            return httpx2.Response(200, content=b'{"chunks":[]}')
        elif request.method != "PUT":
            return await answer()
        return httpx2.Response(204)

    limited.network.fault = take
    await snapshot_making.make(limited.engine.context, await snapshot_making.basis(one.engine.context, one.now()))
    three = await world.device()
    three.network.fault = serving(sent[0])
    await three.sync()

    assert await used(three) == ""
    assert await three.alarms() == ["bad_signature"]
    assert await shown(three) == await shown(one)


def instead(real: httpx2.Response, content: bytes, status: int = 200) -> httpx2.Response:
    """Return an answer of that server with another body."""
    headers = {name: value for name, value in real.headers.items() if name.startswith("scrubjay")}
    return httpx2.Response(status, headers=headers, content=content)


def serving(manifest: bytes) -> Handler:
    """Return a server that has its own snapshot."""

    async def serve(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.method == "GET" and "/snapshots/" in request.url.path:
            return instead(await answer(), manifest)
        return await answer()

    return serve


@pytest.mark.slow
async def test_one_of_a_device_that_was_revoked_is_not_used(world: World) -> None:
    one, two = await filled(world)
    await two.engine.snapshot()
    ends = await account_devices.ends_of(one.store, one.member.state, two.member.device)
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=one.machine.entropy
    )
    three = await world.device()
    await three.sync()

    assert await used(three) == ""
    assert await three.alarms() == ["bad_signature"]
    assert await shown(three) == await shown(one)


@pytest.mark.slow
async def test_nothing_of_a_device_that_was_revoked_is_taken_from_a_snapshot(world: World) -> None:
    one, two = await filled(world)
    await one.engine.snapshot()
    ends = await account_devices.ends_of(one.store, one.member.state, two.member.device)
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=one.machine.entropy
    )
    three = await world.device()
    fetched: list[str] = []

    async def watch(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        fetched.extend([request.url.path] if "/objects/" in request.url.path and await used(three) == "loading" else [])
        return await answer()

    three.network.fault = watch
    await three.sync()

    assert len(fetched) == 1
    assert await shown(three) == await shown(one)
    assert await three.alarms() == []


# --- who lies -----------------------------------------------------------------------------------------------------


def other_words(chunk: Chunk) -> Chunk:
    events = [msgspec.structs.replace(one, text=one.text.replace("coffee", "poison")) for one in chunk.events]
    return chunk._replace(events=events)


def another_time(chunk: Chunk) -> Chunk:
    return chunk._replace(events=[msgspec.structs.replace(one, hlc=one.hlc + 1) for one in chunk.events])


def other_memory(chunk: Chunk) -> Chunk:
    return chunk._replace(others=[(seq, data.replace(b"coffee", b"poison")) for seq, data in chunk.others])


def an_event_more(chunk: Chunk) -> Chunk:
    last = chunk.events[-1]
    more = msgspec.structs.replace(last, seq=last.seq + 50, op_id=b"o" * 16, entity=b"e" * 16, dedupe_key="more")
    return chunk._replace(events=[*chunk.events, more])


def with_writes(chunk: Chunk, change: Callable[[dict[int, Any]], dict[int, Any]]) -> Chunk:
    """Return a chunk in which the bodies of the first writes to memories are others."""

    def changed(seq: int, data: bytes) -> tuple[int, bytes]:
        op = ops.decode(data, device=chunk.device.hex(), seq=seq)
        is_write = op.type == OpType.MEMORY and Field.CREATED_AT in op.body[2]
        return seq, ops.encode(replace(op, body=change(op.body))) if is_write else data

    return chunk._replace(others=[changed(*one) for one in chunk.others])


def a_field_more(chunk: Chunk) -> Chunk:
    return with_writes(chunk, lambda body: {**body, 2: {**body[2], int(Field.LAYER): Layer.IDENTITY.value}})


def a_field_less(chunk: Chunk) -> Chunk:
    return with_writes(chunk, lambda body: {**body, 2: {k: v for k, v in body[2].items() if k != Field.CONTENT}})


LIES: dict[str, Callable[[Chunk], Chunk]] = {
    "other words": other_words,
    "another time": another_time,
    "another memory": other_memory,
    "an event that nobody wrote": an_event_more,
    "a field that nobody wrote": a_field_more,
    "a field left out": a_field_less,
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
async def test_what_a_snapshot_says_and_no_lane_does_is_thrown_away_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    one, two = await filled(world)
    honest = SnapshotQueries.chunk
    monkeypatch.setattr(SnapshotQueries, "chunk", lambda *given: LIES[lie](honest(*given)))
    await one.engine.snapshot()
    monkeypatch.undo()
    three = await world.device()
    await three.note("written here before")
    believed: list[str] = []

    async def watch(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        believed.append(await used(three) if "/lanes/" in request.url.path else "")
        return await answer()

    three.network.fault = watch
    await three.sync()
    await world.settle()

    assert "loaded" in believed
    assert await used(three) == "refused"
    assert await shown(three) == await shown(two) == await shown(one)
    assert "written here before" in await three.contents()
    assert await three.alarms() == ["corrupt"]
    assert "device0" in (await three.store.read(lambda q: q.replication.alarms()))[-1].message
    assert await three.store.read(lambda q: q.fetch("pragma integrity_check")) == [("ok",)]


@pytest.mark.slow
async def test_a_lie_that_was_edited_here_is_not_shown_when_it_is_thrown_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await filled(world)
    honest = SnapshotQueries.chunk
    monkeypatch.setattr(SnapshotQueries, "chunk", lambda *given: other_memory(honest(*given)))
    await one.engine.snapshot()
    monkeypatch.undo()
    three = await world.device()

    async def cut_off_at(state: str) -> None:
        async def cut_off(request: httpx2.Request, answer: Answer) -> httpx2.Response:
            if "/lanes/" in request.url.path and await used(three) == state:
                raise httpx2.ConnectError("the cable is out")
            return await answer()

        three.network.fault = cut_off
        with pytest.raises(UnavailableError):
            await three.sync()

    await cut_off_at("loaded")
    (found,) = await three.store.read(lambda q: q.fetch("select id from memory where content like 'poison at%'"))
    await three.set_fields(str(found[0]), topic="mine")
    await cut_off_at("refused")
    left = await three.contents()
    three.network.fault = None
    await world.settle()

    assert left == []
    assert "coffee at four" in await three.contents()
    assert await shown(three) == await shown(two)


@pytest.mark.slow
async def test_a_value_that_a_snapshot_calls_erased_comes_back_with_its_lane(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = await filled(world)

    def emptied(body: dict[int, Any]) -> dict[int, Any]:
        fields = {key: value for key, value in body[2].items() if key != Field.CONTENT}
        return {**body, 2: fields, 5: [int(Field.CONTENT)]}

    honest = SnapshotQueries.chunk
    monkeypatch.setattr(SnapshotQueries, "chunk", lambda *given: with_writes(honest(*given), emptied))
    await one.engine.snapshot()
    monkeypatch.undo()
    three = await world.device()
    await three.sync()

    assert await shown(three) == await shown(one)
    assert "tea at four" in await three.contents()


async def place_of(device: Device, entity: str) -> int:
    """Return the place of the op that an event came with."""
    return int((await device.store.read(lambda q: q.fetch("select seq from op where entity = ?", (entity,))))[0][0])


@pytest.mark.slow
async def test_nothing_is_put_in_the_place_of_what_was_erased(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = await filled(world)
    ids = await talk(two, 3, "secret")
    await world.settle()
    gone = await place_of(two, ids[0])
    await one.store.write(lambda tx: tx.forget.event(ids[0]))
    await world.settle()
    world.time += SYNC.repack_after_ms
    await world.settle()
    honest = SnapshotQueries.chunk

    def invented(chunk: Chunk) -> Chunk:
        if chunk.device.hex() != two.store.device:
            return chunk
        last = chunk.events[-1]
        more = msgspec.structs.replace(
            last, seq=gone, op_id=b"o" * 16, entity=b"\1" * 16, text="poison", dedupe_key="more"
        )
        return chunk._replace(events=sorted([*chunk.events, more], key=lambda each: each.seq))

    monkeypatch.setattr(SnapshotQueries, "chunk", lambda *given: invented(honest(*given)))
    await one.engine.snapshot()
    monkeypatch.undo()
    three = await world.device()
    await three.sync()
    await three.sync()

    assert await used(three) == "refused"
    assert await three.alarms() == ["corrupt"]
    assert "poison" not in await said(three)
    assert await three.digest() == await two.digest()


@pytest.mark.slow
@pytest.mark.parametrize("later_ms", [0, SYNC.repack_after_ms])
async def test_other_words_around_an_erased_passage_are_found(
    world: World, monkeypatch: pytest.MonkeyPatch, later_ms: int
) -> None:
    one, two = await filled(world)
    (event,) = await two.say("the code is 4711, she likes tea")
    await world.settle()
    place = await place_of(two, event)
    honest = SnapshotQueries.chunk
    whole = await one.store.read(lambda q: q.snapshots.chunk(two.store.device, place, place))
    await one.store.write(lambda tx: tx.forget.passages(event, [(12, 16)]))
    await world.settle()
    world.time += later_ms  # words have left the lane, or not yet
    await world.settle()

    def altered(chunk: Chunk) -> Chunk:
        if chunk.device.hex() != two.store.device:
            return chunk
        lie = msgspec.structs.replace(whole.events[0], text="the code is 4711, she likes gin")
        return chunk._replace(events=sorted([*chunk.events, lie], key=lambda each: each.seq))

    monkeypatch.setattr(SnapshotQueries, "chunk", lambda *given: altered(honest(*given)))
    await one.engine.snapshot()
    monkeypatch.undo()
    three = await world.device()
    await three.sync()
    await three.sync()

    assert await used(three) == "refused"
    assert await three.alarms() == ["corrupt"]
    assert await shown(three) == await shown(two)


@pytest.mark.slow
async def test_a_passage_that_was_erased_since_is_no_lie(world: World) -> None:
    one, two = await filled(world)
    (event,) = await two.say("the code is 4711, she likes tea")
    await world.settle()
    await one.engine.snapshot()
    await one.store.write(lambda tx: tx.forget.passages(event, [(12, 16)]))
    await world.settle()
    three = await world.device()
    await three.sync()
    await three.sync()

    assert await used(three) == "loaded"
    assert await three.alarms() == []
    assert await shown(three) == await shown(two)


@pytest.mark.slow
async def test_an_event_of_this_machine_survives_a_snapshot_that_lied_about_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = await filled(world)
    three = await world.device()
    (own,) = await three.say("mine, from before")

    def claimed(chunk: Chunk) -> Chunk:
        first = msgspec.structs.replace(chunk.events[0], entity=ulid_bytes(own), text="not yours")
        return chunk._replace(events=[first, *chunk.events[1:]])

    honest = SnapshotQueries.chunk
    monkeypatch.setattr(SnapshotQueries, "chunk", lambda *given: claimed(honest(*given)))
    await one.engine.snapshot()
    monkeypatch.undo()
    await three.sync()
    await world.settle()

    assert "mine, from before" in await said(three)
    assert await shown(three) == await shown(one)


@pytest.mark.slow
async def test_one_whose_maker_was_shown_another_lane_is_not_used(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await filled(world)
    honest = snapshot_making.basis

    async def otherwise(context: Any, at: Any) -> Basis:
        found = await honest(context, at)
        heads = {lane: (n, sha256(tip).digest()) for lane, (n, tip) in found.seen.heads.items()}
        return replace(found, seen=replace(found.seen, heads=heads))

    monkeypatch.setattr(snapshot_making, "basis", otherwise)
    await one.engine.snapshot()
    three = await world.device()
    await three.sync()

    assert "split" in await three.alarms()
    assert await said(three) == [] or await said(three) == await said(two)


# --- a server that lies -------------------------------------------------------------------------------------------


def shortened(data: bytes) -> bytes:
    return data[:-1]


def altered(data: bytes) -> bytes:
    return data[:400] + bytes([data[400] ^ 1]) + data[401:]


def nothing(_: bytes) -> bytes:
    return b""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["/snapshots/", "/objects/"])
@pytest.mark.parametrize("change", [shortened, altered, nothing])
async def test_what_the_server_altered_is_not_used_and_the_lanes_are_read(
    world: World, change: Callable[[bytes], bytes], which: str
) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    three = await world.device()

    async def alter(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        real = await answer()
        state = await three.store.read(lambda q: q.replication.state())
        if which in request.url.path and state is not None:  # keyrings are objects too, and come before
            return instead(real, change(real.content))
        return real

    three.network.fault = alter
    await three.sync()
    three.network.fault = None
    await three.sync()

    assert len(await three.alarms()) == 1
    assert await shown(three) == await shown(one)


@pytest.mark.slow
async def test_a_server_that_withholds_a_chunk_only_costs_time(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    three = await world.device()

    async def withhold(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        real = await answer()
        gone = "/objects/" in request.url.path and await used(three) == "loading"
        return instead(real, b"", 404) if gone else real

    three.network.fault = withhold
    await three.sync()
    await three.sync()

    assert await shown(three) == await shown(one)
    assert await three.alarms() == []


async def test_an_old_snapshot_that_a_server_shows_again_brings_nothing_back(world: World) -> None:
    one, two = await filled(world)
    ids = await talk(one, 3, "secret")
    await world.settle()
    await one.engine.snapshot()
    old = await one.machine.cloud.snapshots.manifest(one.member.home)
    chunks = {
        ref.hash: await one.machine.cloud.snapshots.chunk(ref.hash)
        for ref in packing.opened_manifest(parse(old), one.engine.context.key(parse(old))).chunks
    }
    await two.store.write(lambda tx: tx.forget.event(ids[0]))
    await world.settle()
    world.time += SYNC.repack_after_ms
    await world.settle()
    three = await world.device()
    seen: set[str] = set()

    async def serve(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        seen.update(await said(three))
        real = await serving(old)(request, answer)
        if request.url.path.startswith("/v1/objects/") and real.status_code == 404:
            return httpx2.Response(200, content=chunks[bytes.fromhex(request.url.path[-64:])])
        return real

    three.network.fault = serve
    await three.sync()
    three.network.fault = None
    await three.sync()

    assert await used(three) == "loaded"
    assert "secret number 0" not in seen | set(await said(three))
    assert await shown(three) == await shown(one)


@pytest.mark.slow
async def test_an_old_snapshot_is_not_used_beside_a_lane_that_is_withheld(world: World) -> None:
    one, two = await filled(world)
    ids = await talk(one, 3, "secret")
    await world.settle()
    await one.engine.snapshot()
    old = await one.machine.cloud.snapshots.manifest(one.member.home)
    await two.store.write(lambda tx: tx.forget.event(ids[0]))
    await world.settle()
    three = await world.device()

    async def serve(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if "/lanes/" in request.url.path and two.store.device in request.url.path:
            return instead(await answer(), b"")
        return await serving(old)(request, answer)

    three.network.fault = serve
    await three.sync()
    withheld = await used(three)
    three.network.fault = serving(old)
    await three.sync()

    assert (withheld, await used(three)) == ("", "loaded")
    assert await three.digest() == await one.digest()


async def test_the_server_takes_no_snapshot_that_is_not_whole_or_of_another_scope(world: World) -> None:
    one, _ = await filled(world)
    await one.engine.snapshot()
    snapshots = one.machine.cloud.snapshots
    manifest = await snapshots.manifest(one.member.home)
    digest = sha256(manifest).digest()

    with pytest.raises(NotFoundError):
        await snapshots.put(one.member.home, manifest, [bytes(32)])
    with pytest.raises(InvalidError):
        await snapshots.put(bytes(16), manifest, [])
    with pytest.raises(InvalidError):
        await snapshots.put_chunk(digest, manifest)
    altered_manifest = manifest[:-1] + bytes([manifest[-1] ^ 1])
    with pytest.raises(BadSignatureError):
        await snapshots.put(one.member.home, altered_manifest, [])
    assert await snapshots.missing(one.member.home, [digest, bytes(32)]) == {bytes(32)}
    assert parse(manifest).header.kind == ObjectKind.SNAPSHOT_MANIFEST


@pytest.mark.slow
async def test_chunks_that_no_manifest_names_go_after_a_day(world: World) -> None:
    one, _ = await filled(world)
    put = one.machine.cloud.snapshots.put

    async def breaks(*_: Any) -> None:
        raise NotFoundError("the cable is out", hint="")

    one.machine.cloud.snapshots.put = breaks  # type: ignore[method-assign]  # an upload that is cut off
    with pytest.raises(NotFoundError):
        await one.engine.snapshot()
    one.machine.cloud.snapshots.put = put  # type: ignore[method-assign]
    before = await kept(world)
    await sweep(world.database, Millis(world.now() + GENEROUS.snapshot_ms), GENEROUS)

    assert before == [(3, 0), (3, 0)]
    assert await kept(world) == []


# --- the same on PostgreSQL, and as people run it -------------------------------------------------------------------


@pytest.mark.slow
async def test_a_snapshot_is_made_used_replaced_and_deleted_on_postgresql(tmp_path: Path, postgres: str) -> None:
    async with world_at(tmp_path, postgres) as world:
        one, two = await filled(world)
        first = await one.engine.snapshot()
        three = await world.device()
        await three.sync()
        ids = await talk(two, 3, "secret")
        await world.settle()
        later = await two.engine.snapshot()
        replaced = await kept(world)
        manifest = await one.machine.cloud.snapshots.manifest(one.member.home)
        with pytest.raises(NotFoundError):
            await two.machine.cloud.snapshots.put(two.member.home, manifest, [bytes(32)])
        await one.store.write(lambda tx: tx.forget.event(ids[0]))
        await world.settle()
        world.time += SYNC.repack_after_ms
        await world.settle()
        deleted = await kept(world)
        with pytest.raises(NotFoundError):
            await one.machine.cloud.snapshots.manifest(one.member.home)
        checked = await world.database.read(verify.verify)

        assert (first.sent, later.sent) == (2, 2)
        assert await used(three) == "loaded"
        assert replaced == [(3, 1), (3, 1), (4, 1)]
        assert deleted == []
        assert (checked.holds, checked.findings) == (True, ())  # what the account takes up is counted rightly, too
        assert await shown(three) == await shown(one)
        assert await three.alarms() == []
