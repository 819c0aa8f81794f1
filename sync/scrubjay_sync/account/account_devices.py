"""Revoking and renaming the devices of an account."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay.store import Store
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, Device, EntryType, LaneEnd
from scrubjay_shared.errors import (
    ConflictError,
    NotFoundError,
    RevokedError,
)
from scrubjay_sync.account import shut_out
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.account.rotation import new_epochs
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import Entropy, RootKey
from scrubjay_sync.keys.keyring import Keyring

Ends = Mapping[tuple[bytes, bytes], LaneEnd]
"""How far lanes count, by (scope, whose lane)."""


async def ends_of(store: Store, state: AccountState, device: bytes) -> Ends:
    """Return how far the lanes of a device and its instances are held here: what will count of it."""
    lanes = await store.read(lambda q: q.replication.lanes())
    return {
        lane_id: (lane.n, lane.tip)
        for lane_id, lane in lanes.items()
        if lane.n and (known := state.device_of(lane_id[1])) is not None and known.id == device
    }


def let_in_by(state: AccountState, device: bytes) -> tuple[Device, ...]:
    """Return the devices in force that a device has let in, and those that these have: in the order they were added."""
    found = {device}
    for one in sorted(state.devices.values(), key=lambda one: one.added):
        if one.added_by in found:
            found.add(one.id)
    return tuple(one for one in state.active() if one.id in found - {device})


async def revoke(
    member: Member,
    cloud: Cloud,
    device: bytes,
    *,
    ends: Ends,
    entropy: Entropy,
    also: Mapping[bytes, Ends] | None = None,
) -> None:
    """Shut a device out: its tokens at once, and every key that it knew is replaced for what is written from now on.

    What it wrote counts up to `ends`; what it has read stays read. Its lanes are adopted by this device, which packs
    them from now on. `also`, devices by id with their own ends, go with it. The new keys are given to the devices that
    are in force now: one that was added since the call began ends it. Raises NotFoundError, ConflictError for this
    device itself and for one that was added meanwhile.
    """
    gone = {device: ends, **(also or {})}
    if member.device in gone:
        raise ConflictError("that is this device", hint="scrubjay logout takes this device out of the account")
    known = {one.id for one in member.state.active()}

    def draft(state: AccountState, ring: Keyring) -> Draft:
        for one in state.active():
            if one.id not in known:
                raise ConflictError(
                    f"device {one.id.hex()[:8]} was added meanwhile, by {one.added_by.hex()[:8]}: nothing was done",
                    hint="scrubjay devices list shows it; run the command again, and say what to do about it",
                )
        lost = [known_device(state, one) for one in gone]
        revoked = [
            (EntryType.DEVICE_REVOKE, body)
            for one, ends in gone.items()
            for body in account_log.revoke_bodies(one, ends)
        ]
        adopted = [
            (EntryType.LANE_ADOPT, {1: scope, 2: one, 3: member.device})
            for one, ends in gone.items()
            for scope in sorted({scope for scope, _ in ends})
        ]
        full = any(one.full for one in lost)
        root = RootKey.new(entropy, state.version + 1) if full else None
        rotated = [] if root is None else [(EntryType.ROTATE, {1: root.version, 2: root.ask})]
        read = None if full else {scope for one in lost for scope in one.scopes or ()}
        epochs, kept = new_epochs(state, ring, entropy, only=None if read is None else sorted(read))
        return Draft(entries=[*revoked, *rotated, *epochs, *adopted], keyring=kept, root=root)

    for one in gone:
        known_device(member.state, one)
    for one in gone:
        await shut_out.refuse(cloud, one)
    await member.append(cloud, draft)


def known_device(state: AccountState, device: bytes) -> Device:
    """Return a device in force. Raises NotFoundError, RevokedError."""
    found = state.devices.get(device)
    if found is None:
        raise NotFoundError(f"the account has no device {device.hex()[:8]}", hint="scrubjay devices list shows them")
    if found.revoked:
        raise RevokedError(f"device {device.hex()[:8]} was revoked already", hint="scrubjay devices list shows them")
    return found


async def rename_device(member: Member, cloud: Cloud, device: bytes, name: str) -> None:
    """Give a device a name. The server does not see it."""

    def draft(state: AccountState, ring: Keyring) -> Draft:
        known_device(state, device)
        return Draft(keyring=ring.with_device(device, name)) if ring.devices.get(device) != name else Draft()

    await member.append(cloud, draft)
