"""Revoking a device: how far its history counts, what stands in the way, and what a revocation that ended half-way left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import msgspec
import pytest

from scrubjay_shared import wire
from scrubjay_shared.errors import ConflictError, RevokedError, UnavailableError
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices
from scrubjay_sync.engine import outbox, revocation
from sync_devices import Answer, Device, World, world_at

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


async def push_unreadable(device: Device) -> None:
    """Have a device send an object that is signed and chained as it should be, and opens for nobody."""
    context = device.engine.context

    def work(tx: object) -> None:
        place = outbox.next_seal_context(context, tx, device.member.home)
        wrong = replace(place, key=b"not the key of the scope, at all")
        outbox.keep_own(context, tx, device.member.home, packing.segments(wrong, [], context.signer))

    await device.store.write(work)
    await device.sync()


async def test_what_one_device_cannot_open_does_not_end_the_history_of_another(world: World) -> None:
    one, two = await world.device(), await world.device()
    await two.note("before")
    await two.sync()
    await one.sync()
    await push_unreadable(two)
    await two.note("after")
    await two.sync()
    await one.sync()
    lane = (one.member.home, two.member.device)
    context = one.engine.context
    held = (await one.store.read(lambda q: q.replication.lanes()))[lane].n
    sent = (await two.store.read(lambda q: q.replication.lanes()))[lane]
    assert held < sent.n

    ends = await revocation.verified_ends(context, two.member.device)
    assert ends == {lane: (sent.n, sent.tip)}
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=world.random.randbytes
    )
    three = await world.device()
    await three.sync()
    assert three.engine.context.counts_to(*lane) == sent.n


async def test_a_device_is_not_revoked_behind_what_the_server_withholds(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    await two.note("held back")
    await two.sync()

    async def withhold(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        hidden = request.url.path.startswith(("/v1/lanes/", "/v1/pull"))
        headers = {key: value for key, value in response.headers.items() if key.startswith("scrubjay-")}
        return httpx2.Response(200, headers=headers, content=b"") if hidden else response

    one.network.fault = withhold
    await one.sync()
    context = one.engine.context
    with pytest.raises(ConflictError, match="not revoked yet") as refused:
        await revocation.verified_ends(context, two.member.device)
    assert "--cut" in refused.value.hint
    lane = (one.member.home, two.member.device)
    before = (await one.store.read(lambda q: q.replication.lanes()))[lane]
    assert (await revocation.verified_ends(context, two.member.device, cut=True))[lane] == (before.n, before.tip)


async def test_the_end_of_a_lane_that_was_not_read_yet_is_taken_from_no_server(world: World) -> None:
    """A machine that has just begun knows where lanes end from the server alone."""
    one, two = await world.device(), await world.device()
    await two.note("long ago")
    await two.sync()
    lane = (one.member.home, two.member.device)
    sent = (await two.store.read(lambda q: q.replication.lanes()))[lane]

    def pinned(tx: object) -> None:
        known = one.engine.context.empty_lane(*lane)
        tx.replication.put_lane(replace(known, n=9, tip=b"t" * 32, low=10, low_prev=b"t" * 32))

    await one.store.write(pinned)
    assert await revocation.verified_ends(one.engine.context, two.member.device) == {lane: (sent.n, sent.tip)}


async def test_a_revocation_that_ends_half_way_lapses_or_is_finished(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()

    async def cut_off(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if (request.method, request.url.path) == ("POST", "/v1/log"):
            raise httpx2.ConnectError("gone", request=request)
        return await answer()

    one.network.fault = cut_off
    ends = await revocation.verified_ends(one.engine.context, two.member.device)
    for again in (False, True):
        with pytest.raises(UnavailableError):
            await account_devices.revoke(
                one.member, one.machine.cloud, two.member.device, ends=ends, entropy=world.random.randbytes
            )
        if not again:  # once: what no entry followed is not asked for again
            await two.note("waits")
            with pytest.raises(UnavailableError, match="about to shut this one out"):
                await two.sync()
            world.time += 16 * 60_000
        assert (await two.sync()).synced

    one.network.fault = None
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=world.random.randbytes
    )
    world.time += 16 * 60_000
    with pytest.raises(RevokedError):
        await two.sync()


async def test_what_a_server_lost_before_it_was_read_is_waited_for_until_its_device_is_revoked(world: World) -> None:
    one, two, three = await world.device(), await world.device(), await world.device()
    await one.note("still there")
    await one.sync()
    await world.back_up()
    await two.note("lost with the server's disk")
    await two.sync()

    async def no_lanes(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.url.path.startswith("/v1/lanes/"):
            raise httpx2.ConnectError("gone", request=request)
        return await answer()

    three.network.fault = no_lanes
    with pytest.raises(UnavailableError):
        await three.sync()
    three.network.fault = None
    await world.restore(announced=False)
    waiting = await three.sync()
    assert not waiting.synced
    assert "withheld" in {error.code for error in waiting.errors}

    ends = await revocation.verified_ends(one.engine.context, two.member.device, cut=True)
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=world.random.randbytes
    )
    after = await three.sync()
    assert (after.synced, after.errors) == (True, ())
    assert await three.contents() == ["still there"]


async def test_whom_a_thief_keeps_out_is_told_by_whom_and_revokes_the_thief(world: World) -> None:
    """The attack: whoever has a device of mine keeps every other one from syncing, again and again."""
    one, two, thief = await world.device(), await world.device(), await world.device()
    await world.settle()
    await thief.note("of the thief's, which counts")
    await thief.sync()
    for kept_out in (one, two):
        await thief.machine.cloud.account.delete_device(kept_out.member.device)
    for kept_out in (one, two):
        await kept_out.note("waits")
        for _ in range(2):
            with pytest.raises(UnavailableError, match="about to shut this one out"):
                await kept_out.sync()
    author = thief.member.device.hex()[:8]
    for device in (one, two):
        alarms = await device.store.read(lambda q: q.replication.alarms())
        told = [alarm for alarm in alarms if "was kept from sending" in alarm.message]
        assert {alarm.code for alarm in told} == {"account_changed"}
        assert all(author in alarm.message and f"devices revoke {author}" in alarm.hint for alarm in told)
        assert any(device.member.device.hex()[:8] in alarm.message for alarm in told)
        await device.engine.acknowledge()
        with pytest.raises(UnavailableError):
            await device.sync()
        assert await device.store.read(lambda q: q.replication.alarms()) == []  # told once
    assert await thief.store.read(lambda q: q.replication.alarms()) == []

    ends = await revocation.verified_ends(one.engine.context, thief.member.device)
    await account_devices.revoke(
        one.member, one.machine.cloud, thief.member.device, ends=ends, entropy=world.random.randbytes
    )

    for device in (one, two):
        assert (await device.sync()).synced
    for device in (one, two):
        await device.sync()
        assert sorted(await device.contents()) == ["of the thief's, which counts", "waits", "waits"]
    with pytest.raises(RevokedError):
        await thief.sync()


async def test_who_was_away_is_told_of_a_refusal_that_lapsed_and_of_none_that_nobody_signed(world: World) -> None:
    one, two, thief = await world.device(), await world.device(), await world.device()
    await world.settle()
    await thief.machine.cloud.account.delete_device(one.member.device)
    world.time += 16 * 60_000

    async def forged(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        if request.url.path != "/v1/refusals":
            return response
        known = wire.read(response.content, wire.Refusals).refusals
        lies = [replace(known[0], device=two.member.device), replace(known[0], author=two.member.device)]
        headers = {key: value for key, value in response.headers.items() if key.startswith("scrubjay-")}
        return httpx2.Response(
            200, headers=headers, content=msgspec.json.encode(wire.Refusals(refusals=(*lies, *known)))
        )

    two.network.fault = forged
    assert (await two.sync()).synced
    alarms = [alarm for alarm in await two.store.read(lambda q: q.replication.alarms()) if "kept from" in alarm.message]
    assert [one.member.device.hex()[:8] in alarm.message for alarm in alarms] == [True]
    assert (await one.sync()).synced


async def test_an_older_server_refuses_without_a_signature_and_tells_of_nobody(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()

    async def older(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.url.path == "/v1/refusals":
            return httpx2.Response(404, json={"code": "not_found"})
        response = await answer()
        if request.url.path == "/v1/log":
            response.headers["Scrubjay-Refused"] = "9999999999999"
        return response

    one.network.fault = older
    assert (await one.sync()).synced
    ends = await revocation.verified_ends(one.engine.context, two.member.device)
    await account_devices.revoke(
        one.member, one.machine.cloud, two.member.device, ends=ends, entropy=world.random.randbytes
    )
    with pytest.raises(RevokedError):
        await two.sync()
