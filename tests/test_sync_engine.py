"""Rounds of devices over the real service: what one writes all have, once, in any order and after any interruption."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx2
import pytest

from scrubjay.store import MemoryWrite, Refusal, Store
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite, parse
from scrubjay_shared.errors import RevokedError, UnavailableError
from scrubjay_shared.ops import Field
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices, account_scopes, leaving, pairing, rotation
from scrubjay_sync.api.devices import RevokeRequest
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.login import JoinRequest, LogInRequest
from scrubjay_sync.api.rounds import SyncRequest
from scrubjay_sync.engine import outbox
from scrubjay_sync.operations import devices, login, rounds
from scrubjay_sync.operations.client import SyncClient
from sync_devices import AUTH_KEY, KDF, ORIGIN, Handler, Network, World, answered, world_at

pytestmark = pytest.mark.anyio

Answer = Callable[[], Awaitable[httpx2.Response]]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


async def test_two_devices_end_up_the_same(world: World) -> None:
    one, two = await world.device(), await world.device()
    await one.note("tea at four")
    await two.note("coffee at nine")
    await one.say("hello from the first", "and again")

    await world.settle()

    assert ["coffee at nine", "tea at four"] == await one.contents() == await two.contents()
    assert await one.digest() == await two.digest()
    assert (await one.sync()).synced
    assert (await two.sync()).synced


async def test_three_devices_agree_on_edits_made_apart_from_each_other(world: World) -> None:
    devices = [await world.device() for _ in range(3)]
    shared = await devices[0].note("the first wording")
    await world.settle()
    for number, device in enumerate(devices):
        await device.edit(shared, f"wording of {number}")
        await device.rename(shared, f"name{number}")

    await world.settle()

    digests = {await device.digest() for device in devices}
    assert len(digests) == 1
    assert await devices[0].contents() == ["wording of 2"]


async def test_forget_wins_everywhere_over_an_edit_made_meanwhile(world: World) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note("to be forgotten")
    await world.settle()
    await two.edit(memory, "edited while it was forgotten")
    await one.forget(memory)

    await world.settle()

    assert [] == await one.contents() == await two.contents()


async def test_a_new_device_reads_everything_backwards_and_says_that_it_is_complete(world: World) -> None:
    one = await world.device()
    for number in range(30):
        await one.note(f"memory {number} " + world.random.randbytes(9_000).hex())
        await one.sync()

    two = await world.device()
    found = await two.sync()

    assert found.synced
    assert await one.digest() == await two.digest()
    assert (await two.engine.verify()).whole


async def test_a_round_without_news_sends_and_changes_nothing(world: World) -> None:
    one, two = await world.device(), await world.device()
    await one.note("something")
    await world.settle()
    before = await one.store.read(lambda q: q.replication.lanes())

    found = await one.sync()

    assert (found.ops_sent, found.ops_received, found.pages, found.synced) == (0, 0, 0, True)
    assert before == await one.store.read(lambda q: q.replication.lanes())
    assert [] == await one.alarms() == await two.alarms()


@pytest.mark.slow
async def test_an_op_too_large_for_one_object_arrives_whole(world: World) -> None:
    one, two = await world.device(), await world.device()
    text = world.random.randbytes(700_000).hex()
    await one.say(text)
    await one.note("after it")

    await world.settle()

    assert [(text,)] == await two.store.read(lambda q: q.fetch("select text from event"))
    three = await world.device()
    await three.sync()
    assert await one.digest() == await three.digest()


@pytest.mark.slow
async def test_many_small_objects_become_packs_that_a_new_device_reads(world: World) -> None:
    one, two = await world.device(), await world.device()
    for number in range(70):
        await one.note(f"memory {number}")
        await one.sync()
    await world.settle()

    rows = await one.store.read(lambda q: q.replication.sealed(one.member.home, one.member.device))
    usage = await one.machine.cloud.account.usage()
    assert len(rows) < 10
    assert usage.objects < 20
    three = await world.device()
    await three.sync()
    assert await one.digest() == await two.digest() == await three.digest()
    assert (await three.engine.verify()).whole


async def test_a_pack_whose_answer_was_lost_is_taken_over_when_the_next_one_would_have_other_ends(world: World) -> None:
    one = await world.device()
    early = await one.note("soon forgotten")
    lost = []

    async def without_answer(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        if request.url.path == "/v1/pack":
            lost.append(response.status_code)
            raise httpx2.ReadError("the line is dead")
        return response

    one.network.fault = without_answer
    for number in range(100):
        if number == 50:
            await one.forget(early)
        await one.note(f"memory {number}")
        with suppress(UnavailableError):
            await one.sync()
        if lost:
            break
    one.network.fault = None
    assert lost == [200]
    world.time += (
        25 * 3600 * 1000
    )  # the object with the forgotten words is packed by itself now, and the rest without it

    rounds = [await one.sync() for _ in range(3)]

    assert [(done.synced, done.errors) for done in rounds] == [(True, ())] * 3
    assert sum(done.packed for done in rounds) > 0
    rows = await one.store.read(lambda q: q.replication.sealed(one.member.home, one.member.device))
    assert [row.n_from for row in rows[1:]] == [row.n_to + 1 for row in rows[:-1]]
    two = await world.device()
    await two.sync()
    assert await one.digest() == await two.digest()
    assert (await two.engine.verify()).whole


async def test_what_was_forgotten_is_packed_away_within_a_day_on_every_device(world: World) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note("the secret word is xylophone")
    kept = await one.note("this one stays")
    await world.settle()
    await two.forget(memory)
    await world.settle()

    world.time += 25 * 3600 * 1000
    await world.settle()

    for device in (one, two):
        assert await device.store.read(lambda q: q.replication.erased(one.member.device)) == {}
        for lane in (await device.store.read(lambda q: q.replication.lanes())).values():
            for data in await device.store.read(
                lambda q: q.replication.objects(q.replication.sealed(lane.scope, lane.device))
            ):
                opened = packing.opened(parse(data), device.member.scopes.key(lane.scope, 0))
                assert not any(b"xylophone" in (op or b"") for _, op in opened.entries)
    three = await world.device()
    await three.sync()
    assert await three.contents() == ["this one stays"]
    assert kept in {row[0] for row in await three.store.read(lambda q: q.fetch("select id from memory"))}
    assert await one.digest() == await three.digest()


async def test_a_device_says_within_a_day_that_it_has_carried_out_a_forget_and_words_stay_gone(world: World) -> None:
    one, two = await world.device(), await world.device()
    memory = await one.note("the secret word is xylophone")
    await world.settle()
    refusal = Refusal(texts=("the secret word is xylophone",))
    await one.store.write(lambda tx: tx.forget.memory(memory, refusal))
    world.time += 1000
    await two.note("Xylophone is the secret word!")  # by hand, and later: the person's own act on the other machine
    fields = {Field.CONTENT: "The secret word is: xylophone", Field.KIND: "observation", Field.CREATED_AT: 1}
    await two.store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=tx.new_id(), fields=fields)]))
    await world.settle()

    assert await one.contents() == await two.contents() == ["Xylophone is the secret word!"]
    [found] = await one.store.read(lambda q: q.tombstones.forgets(memory, 1))
    assert [said.at for said in await one.store.read(lambda q: q.tombstones.receipts(found))] == [None]
    assert await one.store.read(lambda q: q.tombstones.waiting_objects(found)) > 0
    later = Millis(found.at + 1)
    assert await one.store.read(lambda q: q.tombstones.unconfirmed(later, 9)) == 1
    assert await one.store.read(lambda q: q.tombstones.unconfirmed(found.at, 9)) == 0
    world.time += 25 * 3600 * 1000
    await world.settle()
    assert await one.store.read(lambda q: q.tombstones.unconfirmed(later, 9)) == 0
    [receipt] = await one.store.read(lambda q: q.tombstones.receipts(found))
    assert receipt.device == two.store.device
    assert receipt.at is not None
    assert await one.store.read(lambda q: q.tombstones.waiting_objects(found)) == 0
    three = await world.device()
    await three.sync()
    assert await three.contents() == ["Xylophone is the secret word!"]


async def test_a_project_bound_to_a_scope_takes_its_new_things_there(world: World) -> None:
    one, two = await world.device(), await world.device()
    before = await one.note("about the project, before", scope="project", resource_id="proj_a")
    await one.sync()
    scope = await account_scopes.create_scope(
        one.member, one.machine, name="work", suite=Suite.SEALED, projects=["proj_a"]
    )
    after = await one.note("about the project, after", scope="project", resource_id="proj_a")
    await one.edit(before, "edited after the binding")
    await world.settle()
    await two.edit(after, "edited by the other device")
    await world.settle()

    placed = dict(await two.store.read(lambda q: q.fetch("select entity, scope from placed")))
    assert {after: scope} == placed
    lanes = await one.store.read(lambda q: q.replication.lanes())
    assert {one.member.device, two.member.device} == {device for where, device in lanes if where == scope}
    assert await one.digest() == await two.digest()


async def test_a_restored_backup_goes_on_as_a_new_device_and_loses_nothing(world: World) -> None:
    one, two = await world.device(), await world.device()
    await one.note("before the backup")
    await world.settle()
    backup = one.path.with_name("backup.db")
    await one.store.backup(backup)
    await one.note("after the backup, sent")
    await world.settle()

    await one.store.close()
    for suffix in ("-wal", "-shm"):
        one.path.with_name(one.path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(backup, one.path)
    await one.reopen()
    await one.note("after the restore, not sent")
    found = await one.sync()
    await world.settle()

    assert found.new_incarnation
    assert await one.alarms() == ["fork"]
    expected = ["after the backup, sent", "after the restore, not sent", "before the backup"]
    assert expected == await one.contents() == await two.contents()
    assert await one.digest() == await two.digest()
    assert (await one.sync()).synced


async def test_two_copies_of_one_store_both_keep_what_they_wrote(world: World, tmp_path: Path) -> None:
    one, two = await world.device(), await world.device()
    await one.note("from before the copy")
    await world.settle()
    folder = tmp_path / "twin"
    folder.mkdir()
    twin = await world.copied(one, folder)
    await one.note("by the original")
    await twin.note("by the copy")
    await one.sync()

    found = await twin.sync()
    await world.settle(one, two, twin)

    assert found.new_incarnation
    assert one.member.device != twin.member.device
    expected = ["by the copy", "by the original", "from before the copy"]
    assert expected == await one.contents() == await two.contents() == await twin.contents()
    assert await one.digest() == await two.digest() == await twin.digest()


async def test_a_server_restored_from_a_backup_is_repaired_by_those_who_have_the_rest(world: World) -> None:
    one, two = await world.device(), await world.device()
    await one.note("in the backup")
    await world.settle()
    await world.back_up()
    await one.note("lost by the server")
    await two.note("lost too")
    await world.settle()

    await world.restore()
    repaired = await one.sync()
    await world.settle()

    assert repaired.repaired
    assert "rolled_back" in await one.alarms()
    three = await world.device()
    await three.sync()
    assert await three.contents() == ["in the backup", "lost by the server", "lost too"]
    assert await one.digest() == await two.digest() == await three.digest()
    assert (await one.engine.verify()).whole


async def test_a_device_that_others_saw_die_lives_on_through_them(world: World) -> None:
    """A lane whose owner is gone and that the server lost is given back by another device."""
    one, two = await world.device(), await world.device()
    await one.sync()
    await world.back_up()
    await two.note("by the device that dies")
    await world.settle()
    await world.restore()

    await world.settle(one)

    three = await world.device()
    await three.sync()
    assert await three.contents() == ["by the device that dies"]


async def test_a_new_epoch_reseals_what_was_not_sent_and_both_go_on(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    await two.note("sealed under the old epoch")
    await two.store.write(partial(outbox.seal_next, two.engine.context))
    await rotation.rotate(one.member, one.machine.cloud, entropy=one.machine.entropy)

    await world.settle()

    assert await one.contents() == ["sealed under the old epoch"]
    assert (await two.sync()).synced
    assert await one.digest() == await two.digest()


@pytest.mark.slow
async def test_what_a_kill_leaves_at_any_moment_the_next_round_goes_on_from(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    for stop_at in range(1, 14):
        await one.note(f"memory {stop_at}")
        one.network.fault = _cut_after(stop_at)
        with suppress(UnavailableError):
            await one.sync()
        one.network.fault = None
        await one.reopen()

    await world.settle()

    assert len(await two.contents()) == 13
    assert await one.digest() == await two.digest()
    assert (await one.engine.verify()).whole


def _cut_after(count: int) -> Handler:
    """The server does what it is asked, and from the nth request on its answers are lost."""
    seen = 0

    async def fault(_: httpx2.Request, answer: Callable[[], Awaitable[httpx2.Response]]) -> httpx2.Response:
        nonlocal seen
        seen += 1
        found = await answer()
        if seen >= count:
            raise httpx2.ReadError("gone")
        return found

    return fault


async def test_a_round_may_be_cancelled_anywhere(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    for turns in range(1, 60, 3):
        await one.note(f"memory {turns}")
        task = asyncio.create_task(one.sync())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    await world.settle()

    assert len(await two.contents()) == 20
    assert await one.digest() == await two.digest()
    assert (await one.engine.verify()).whole


async def test_what_a_device_pushed_until_it_was_shut_out_is_on_the_machine_that_revoked_it(
    world: World, tmp_path: Path
) -> None:
    one, two = await world.device(), await world.device()
    store = await Store.open(tmp_path / "mine" / "memory.db", now=world.now, entropy=world.random.randbytes)
    world.stack.push_async_callback(store.close)

    async def last_moment(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.method == "DELETE":
            network.fault = None
            await two.note("at the last moment")
            await two.sync()
            await one.sync()
        return await answer()

    network = Network(world)
    network.fault = last_moment
    mine = SyncClient(
        store,
        tmp_path / "mine",
        environ={"SCRUBJAY_KEYCHAIN": "file"},
        now=world.now,
        entropy=world.random.randbytes,
        sleep=asyncio.sleep,
        transport=network,
    )
    world.stack.push_async_callback(mine.close)
    await login.log_in(
        mine, LogInRequest(origin=ORIGIN, username="ann", auth_key=AUTH_KEY, kdf=KDF, device_name="mine")
    )
    await one.member.refresh(one.machine.cloud)
    waiting, _ = mine.require_joining()
    asked = await answered(waiting, one.member, one.machine.cloud)
    shown = (await login.poll(mine, Nothing())).words
    proof = await pairing.approve(one.member, one.machine.cloud, asked, shown)
    await login.join(mine, JoinRequest(proof=proof))

    await devices.revoke(mine, RevokeRequest(ref="device1"))
    await one.sync()
    await rounds.sync(mine, SyncRequest())

    assert await one.contents() == ["at the last moment"]
    assert await store.read(lambda q: q.fetch("select content from memory")) == [("at the last moment",)]
    with pytest.raises(RevokedError):
        await two.sync()


async def test_packs_of_a_revoked_device_are_made_by_another(world: World) -> None:
    one, two = await world.device(), await world.device()
    memory = await two.note("to be forgotten later")
    for number in range(70):
        await two.note(f"memory {number}")
        await two.store.write(partial(outbox.seal_next, two.engine.context))
    await world.settle()
    ends = await account_devices.ends_of(one.store, one.member.state, two.member.device)
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=one.machine.entropy
    )
    await one.forget(memory)
    await one.sync()

    world.time += 25 * 3600 * 1000
    await world.settle(one)

    assert await one.store.read(lambda q: q.replication.erased(two.member.device)) == {}
    three = await world.device()
    await three.sync()
    assert await one.digest() == await three.digest()
    assert (await three.engine.verify()).whole


async def test_inspect_finds_nothing_readable_on_the_server(world: World) -> None:
    one = await world.device()
    await one.note("the quick brown fox jumps over the lazy dog", name="foxes-and-dogs")
    await one.say("what did the fox say yesterday in the garden?", project="proj_garden")
    await one.sync()

    found = await one.engine.inspect()

    assert found.blind
    assert found.objects >= 4
    assert found.grams > 20


async def test_status_says_what_waits_and_whom_we_have_seen(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    await one.note("not sent yet")

    status = await one.engine.status()

    assert status.pending_ops == 1
    assert {two.member.device} == set(status.seen)
    assert (one.member.account, one.member.device, ORIGIN) == (status.account, status.device, status.origin)
    assert not status.clock_off
    await one.sync()
    assert (await one.engine.status()).pending_ops == 0


async def test_two_devices_in_step_show_the_same_six_words(world: World) -> None:
    one, two = await world.device(), await world.device()
    await one.note("something")
    await world.settle()

    first, second = await one.engine.verify(), await two.engine.verify()

    assert first.words == second.words
    assert len(first.words) == 6


async def test_a_new_account_gets_all_that_the_store_holds_also_what_other_devices_of_the_old_one_wrote(
    world: World,
) -> None:
    one, two = await world.device(), await world.device()
    await one.note("from the first machine")
    await two.note("from the second machine")
    await world.settle()
    await leaving.delete_account(one.machine, AUTH_KEY)
    await leaving.leave(two.store, two.machine.vault, two.machine.entropy)

    again = await world.adopted(one)
    three = await world.device()
    await world.settle(again, three)

    assert await three.contents() == ["from the first machine", "from the second machine"]
    assert await three.digest() == await again.digest()
