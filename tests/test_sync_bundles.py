"""A bundle joins any number of stores: one after the other, at once, and copies of one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import msgspec
import pytest

from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import MAX_OBJECT_BYTES, Suite
from scrubjay_shared.errors import InvalidError, RevokedError, UnavailableError
from scrubjay_shared.wire import Heads
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices, account_scopes, limited_devices
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.limited_devices import Bundle
from scrubjay_sync.engine import checkpoints, outbox
from scrubjay_sync.keys.keypairs import DeviceKeys
from scrubjay_sync.packing import Checkpoint
from scrubjay_sync.policy import SYNC
from sync_devices import Answer, Device, Network, World, world_at

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


class Pipeline:
    """An owner, a scope, and the bundle of a limited device that may write there."""

    world: World
    owner: Device
    scope: bytes
    bundle: Bundle

    @classmethod
    async def of(cls, world: World) -> Pipeline:
        made = cls()
        made.world, made.owner = world, await world.device()
        member, machine = made.owner.member, made.owner.machine
        made.scope = await account_scopes.create_scope(
            member, machine, name="ci", suite=Suite.SEALED, projects=["proj_ci"]
        )
        made.bundle = await limited_devices.create_limited(
            member, machine.cloud, name="runner", scopes=[made.scope], read_only=False, entropy=world.random.randbytes
        )
        await made.owner.sync()
        return made

    async def container(self) -> Device:
        """Return a machine with nothing on it, joined by the bundle."""
        network = Network(self.world)
        path = self.world.path / f"container{self.world.random.random()}" / "memory.db"
        machine = await self.world.machine(path, network)
        member = await limited_devices.join_limited(machine, Bundle.parse(self.bundle.text))
        return Device(world=self.world, machine=machine, member=member, network=network, path=path)

    async def ran(self, text: str) -> Device:
        """Run a job in a fresh container: it joins, writes down what happened, and sends it."""
        made = await self.container()
        await made.note(text)
        assert (await made.sync()).synced
        return made


@pytest.fixture
async def pipeline(world: World) -> Pipeline:
    return await Pipeline.of(world)


@pytest.mark.parametrize(("turns", "shards"), [(2, 2), pytest.param(10, 5, marks=pytest.mark.slow)])
async def test_fresh_containers_join_by_one_bundle_in_turn_and_several_at_once(
    pipeline: Pipeline, turns: int, shards: int
) -> None:
    for turn in range(turns):
        await pipeline.ran(f"build {turn} passed")
    await asyncio.gather(*(pipeline.ran(f"shard {shard} passed") for shard in range(shards)))

    assert (await pipeline.owner.sync()).synced
    expected = sorted(
        [f"build {turn} passed" for turn in range(turns)] + [f"shard {shard} passed" for shard in range(shards)]
    )
    assert await pipeline.owner.contents() == expected
    assert await pipeline.owner.alarms() == []
    last = await pipeline.container()
    assert (await last.sync()).synced
    assert await last.contents() == expected
    assert await last.alarms() == []
    assert (await pipeline.owner.engine.verify()).whole


async def test_a_container_whose_answer_was_lost_sends_its_write_once(pipeline: Pipeline) -> None:
    made = await pipeline.container()
    await made.note("the build broke")

    async def lost(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        if request.url.path == "/v1/push":
            raise httpx2.ReadError("cut off", request=request)
        return response

    made.network.fault = lost
    with pytest.raises(UnavailableError):
        await made.sync()
    made.network.fault = None
    assert (await made.sync()).synced
    await pipeline.owner.sync()
    assert await pipeline.owner.contents() == ["the build broke"]
    assert await pipeline.owner.alarms() == []


async def test_copies_of_a_joined_container_go_on_as_instances_of_their_own(pipeline: Pipeline, tmp_path: Path) -> None:
    image = await pipeline.ran("written before the image was made")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = await pipeline.world.copied(image, tmp_path / "first")
    second = await pipeline.world.copied(image, tmp_path / "second")
    await first.note("from the first copy")
    await second.note("from the second copy")
    assert (await first.sync()).synced
    assert (await second.sync()).synced
    assert first.store.device != second.store.device
    assert await second.alarms() == ["fork"]  # a person may want to know that an image was copied
    await pipeline.owner.sync()
    assert await pipeline.owner.contents() == sorted(
        ["written before the image was made", "from the first copy", "from the second copy"]
    )
    assert await pipeline.owner.alarms() == []


async def test_another_history_of_an_instances_lane_is_found_out(pipeline: Pipeline, tmp_path: Path) -> None:
    made = await pipeline.ran("one")
    await pipeline.owner.sync()
    (tmp_path / "twin").mkdir()
    twin = await pipeline.world.copied(made, tmp_path / "twin")
    await pipeline.world.back_up()
    await made.note("two")
    await made.sync()
    await pipeline.owner.sync()
    await pipeline.world.restore(announced=False)  # and now it shows what it had never shown before
    await twin.note("two, but another")
    await twin.sync()
    await pipeline.owner.sync()
    assert "split" in await pipeline.owner.alarms()
    assert "two, but another" not in await pipeline.owner.contents()


async def test_what_all_instances_wrote_counts_after_a_revoke_and_nothing_later_does(pipeline: Pipeline) -> None:
    world, owner = pipeline.world, pipeline.owner
    early = [await pipeline.ran(f"build {turn}") for turn in range(3)]
    unsent = await pipeline.container()
    await owner.sync()
    ends = await account_devices.ends_of(owner.store, owner.member.state, pipeline.bundle.device)
    assert len(ends) == 3
    await account_devices.revoke(
        owner.member, owner.machine.cloud, pipeline.bundle.device, ends=ends, entropy=world.random.randbytes
    )

    await unsent.note("after the revoke")
    with pytest.raises(RevokedError):
        await unsent.sync()
    with pytest.raises(RevokedError):
        await pipeline.container()
    other = await world.device()
    await other.sync()
    assert await other.contents() == [f"build {turn}" for turn in range(3)]
    assert await other.alarms() == []
    context = other.engine.context
    assert context.counts_to(pipeline.scope, bytes.fromhex(early[0].store.device)) == 1
    assert context.counts_to(pipeline.scope, bytes.fromhex(unsent.store.device)) == 0


async def test_words_that_are_forgotten_leave_the_lane_of_a_container_that_is_gone(pipeline: Pipeline) -> None:
    await pipeline.ran("the password was hunter2")
    await pipeline.owner.sync()
    [memory_id] = [str(row[0]) for row in await pipeline.owner.store.read(lambda q: q.fetch("select id from memory"))]
    await pipeline.owner.forget(memory_id)
    await pipeline.owner.sync()
    pipeline.world.time += 13 * 3600 * 1000
    assert (await pipeline.owner.sync()).packed
    late = await pipeline.container()
    assert (await late.sync()).synced
    assert await late.contents() == []
    assert await late.alarms() == []
    assert (await pipeline.owner.engine.verify()).whole


async def test_ids_that_could_be_instances_of_another_device_are_not_let_in(pipeline: Pipeline) -> None:
    world, owner, keys = pipeline.world, pipeline.owner, DeviceKeys.new(pipeline.world.random.randbytes)
    related = account_log.instance_of(pipeline.bundle.device, world.random.randbytes(8))
    for scopes in (None, [pipeline.scope]):
        body = account_log.device_body(related, sign_pub=keys.sign_pub, wrap_pub=keys.wrap_pub, scopes=scopes)
        with pytest.raises(InvalidError, match="instances"):
            await owner.member.append(
                owner.machine.cloud, lambda _state, _ring, body=body: Draft(entries=[(EntryType.DEVICE_ADD, body)])
            )


def test_more_lanes_than_one_entry_holds_are_named_in_several() -> None:
    device = bytes(range(16))
    ends = {
        (bytes(16), account_log.instance_of(device, n.to_bytes(8, "big"))): (n + 1, n.to_bytes(32, "big"))
        for n in range(2_000)
    }
    bodies = account_log.revoke_bodies(device, ends | {(bytes(16), device): (7, bytes(32))})
    assert [len(body[2]) for body in bodies] == [801, 800, 400]
    assert all(len(msgspec.msgpack.encode(body)) < account_log.MAX_ENTRY_BYTES - 1_000 for body in bodies)


# --- checkpoints ------------------------------------------------------------------------------------------------------


async def test_a_limited_device_without_home_hears_what_the_owner_has_seen(pipeline: Pipeline) -> None:
    """The server shows it less than the owner has seen; the owner's word in the scope they share tells it so."""
    world, owner = pipeline.world, pipeline.owner
    other = await pipeline.ran("seen by the owner")
    await owner.sync()
    world.time += 25 * 3600 * 1000
    await owner.sync()  # its word of the day, in home and in the scope
    hidden = bytes.fromhex(other.store.device)
    late = await pipeline.container()

    async def hide(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        path, headers = request.url.path, {k: v for k, v in response.headers.items() if k.startswith("scrubjay-")}
        if path == "/v1/heads":
            heads = msgspec.json.decode(response.content, type=Heads)
            kept = tuple(one for one in heads.heads if one.device != hidden)
            return httpx2.Response(
                200, headers=headers, content=msgspec.json.encode(Heads(heads=kept, cursor=heads.cursor))
            )
        if path.startswith("/v1/lanes/") and path.endswith(hidden.hex()):
            return httpx2.Response(200, headers=headers, content=b"")
        return response

    late.network.fault = hide
    done = await late.sync()
    assert not done.synced
    assert "withheld" in await late.alarms()


async def test_a_limited_device_sends_its_word_after_a_day_and_not_in_its_first_minutes(pipeline: Pipeline) -> None:
    world, owner = pipeline.world, pipeline.owner
    made = await pipeline.container()
    await made.sync()
    lane = (pipeline.scope, bytes.fromhex(made.store.device))
    assert lane not in {(one.scope, one.device) for one in (await owner.machine.cloud.heads()).heads}
    world.time += 25 * 3600 * 1000
    await made.sync()
    await owner.sync()
    assert lane in await owner.store.read(lambda q: q.replication.lanes())
    assert await owner.alarms() == []


async def test_a_limited_devices_word_about_places_that_nobody_wrote_holds_nobody_up(pipeline: Pipeline) -> None:
    owner, made = pipeline.owner, await pipeline.ran("honest so far")
    context = made.engine.context
    lanes = {
        (pipeline.scope, owner.member.device): (1 << 40, b"x" * 32),
        (owner.member.home, owner.member.device): (9_999, b"y" * 32),
    }
    lie = Checkpoint(at=owner.now(), heads=lanes, log_seq=owner.member.state.seq, log_head=owner.member.state.head)

    def work(tx: Any) -> None:
        place = outbox.next_seal_context(context, tx, pipeline.scope)
        outbox.keep_own(context, tx, pipeline.scope, [packing.checkpoint(place, lie, context.signer)])

    await made.store.write(work)
    await made.sync()
    assert (await owner.sync()).synced
    assert (await owner.sync()).synced
    assert await owner.alarms() == []


def test_a_checkpoint_names_devices_first_and_other_instances_each_time() -> None:
    device, runner = bytes(range(16)), bytes(range(100, 116))
    state = SimpleNamespace(devices={device: None, runner: None})
    heads = {(bytes(16), account_log.instance_of(runner, n.to_bytes(8, "big"))): (1, bytes(32)) for n in range(6_000)}
    heads[bytes(16), device] = (3, bytes(32))

    first, second = (checkpoints.some_of(heads, state, Millis(at)) for at in (1, 2))
    assert len(first) == len(second) == SYNC.checkpoint_lanes
    assert (bytes(16), device) in first
    assert first.keys() != second.keys()
    seal = packing.SealContext(
        account=bytes(16), scope=bytes(16), device=device, n=1, prev=bytes(32), suite=1, epoch=0, key=bytes(32)
    )
    seen = Checkpoint(at=Millis(1), heads=first, log_seq=1, log_head=bytes(32))
    made = packing.checkpoint(seal, seen, packing.Signer(sign=lambda _: bytes(64), entropy=bytes))
    assert len(made.envelope.data) < MAX_OBJECT_BYTES
