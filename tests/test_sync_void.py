"""`scrubjay recovery void`: what a thief with an unlocked device changed is undone from a device that is still in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import CredentialsError, InvalidError, RevokedError
from scrubjay_sync.account import account_devices, account_scopes, limited_devices, recovery, reversal
from scrubjay_sync.account.limited_devices import Bundle
from scrubjay_sync.keys.recovery_code import RecoveryCode
from sync_devices import Device, World, world_at

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


async def robbed(world: World) -> tuple[Device, Device, Device, int, Bundle]:
    """One, two, and a stolen machine with which a thief shut two out and let something in. Also where that began."""
    one, two, stolen = await world.device(), await world.device(), await world.device()
    for device in (one, two, stolen):
        await device.note(f"from {device.store.device[:4]}")
    await world.settle()
    start = one.member.state.seq + 1
    await account_devices.revoke(
        stolen.member, stolen.machine.cloud, two.member.device, ends={}, entropy=world.random.randbytes
    )
    bundle = await limited_devices.create_limited(
        stolen.member,
        stolen.machine.cloud,
        name="thief",
        scopes=[stolen.member.home],
        read_only=False,
        entropy=world.random.randbytes,
    )
    thiefs = RecoveryCode(secret=b"t" * 20)
    await recovery.replace_recovery(
        stolen.member, stolen.machine.cloud, thiefs, old=None, now=world.now, entropy=world.random.randbytes
    )
    with pytest.raises(RevokedError):
        await two.sync()
    await one.sync()
    return one, two, stolen, start, bundle


async def test_what_a_thief_changed_is_undone_and_every_device_goes_on(world: World) -> None:
    one, two, stolen, start, bundle = await robbed(world)

    await reversal.void(one.member, one.machine.cloud, world.code, start, entropy=world.random.randbytes)

    state = one.member.state
    assert {device.id for device in state.active()} == {one.member.device, two.member.device, stolen.member.device}
    assert state.waiting_recovery is None
    with pytest.raises(Exception, match="does not know this device"):
        await limited_devices.join_limited(await world.machine(), bundle)
    await two.note("I am back")
    await world.settle(one, two)  # the wrap key that each renewed since opens what is wrapped for it now
    assert await one.digest() == await two.digest()
    assert "I am back" in await one.contents()
    assert any("from entry" in words and "was undone" in words for words in await two.changes())
    await account_devices.revoke(
        one.member, one.machine.cloud, stolen.member.device, ends={}, entropy=world.random.randbytes
    )
    await world.settle(one, two)
    assert await one.digest() == await two.digest()


async def test_a_device_that_was_let_in_since_can_void_and_stays(world: World) -> None:
    one = await world.device()
    scope = await account_scopes.create_scope(one.member, one.machine, name="kept", suite=Suite.SEALED)
    start = one.member.state.seq + 1
    two = await world.device()
    await account_scopes.create_scope(two.member, two.machine, name="made by a thief", suite=Suite.SEALED)

    await reversal.void(two.member, two.machine.cloud, world.code, start, entropy=world.random.randbytes)

    assert two.member.state.devices[two.member.device].full
    assert set(two.member.scopes.ids) == {two.member.home, scope}
    await two.note("after it")
    await world.settle()
    assert await one.contents() == ["after it"]


async def test_another_code_or_another_entry_changes_nothing(world: World) -> None:
    one, two, _, start, _ = await robbed(world)
    before = one.member.state
    wrong = RecoveryCode(secret=b"t" * 20)  # that one waits, and rules over nothing yet
    for code, at, refusal in (
        (wrong, start, CredentialsError),
        (world.code, 0, InvalidError),
        (world.code, 2, InvalidError),
        (world.code, before.seq + 1, InvalidError),
    ):
        with pytest.raises(refusal):
            await reversal.void(one.member, one.machine.cloud, code, at, entropy=world.random.randbytes)
    with pytest.raises(RevokedError, match="was shut out") as refused:
        await reversal.void(two.member, two.machine.cloud, world.code, start, entropy=world.random.randbytes)
    assert f"--void-from {start}" in refused.value.hint
    await one.member.refresh(one.machine.cloud)
    assert one.member.state == before
