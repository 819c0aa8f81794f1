"""Revoking and renaming the devices of an account."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay.store import Store
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, Device, EntryType
from scrubjay_shared.errors import (
    ConflictError,
    NotFoundError,
    RevokedError,
)
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.account.rotation import new_epochs
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import Entropy, RootKey
from scrubjay_sync.keys.keyring import Keyring


async def ends_of(store: Store, device: bytes) -> dict[bytes, tuple[int, bytes]]:
    """Return how far a device's lanes are held and verified here, by scope: what will count of it."""
    lanes = await store.read(lambda q: q.replication.lanes())
    return {scope: (lane.n, lane.tip) for (scope, owner), lane in lanes.items() if owner == device and lane.n}


async def revoke(
    member: Member, cloud: Cloud, device: bytes, *, ends: Mapping[bytes, tuple[int, bytes]], entropy: Entropy
) -> None:
    """Shut a device out: its tokens at once, and every key that it knew is replaced for what is written from now on.

    What it wrote counts up to `ends`; what it has read stays read. Its lanes are adopted by this device, which packs
    them from now on. Raises NotFoundError, ConflictError for this device itself.
    """
    if device == member.device:
        raise ConflictError("that is this device", hint="scrubjay logout takes this device out of the account")

    def draft(state: AccountState, ring: Keyring) -> Draft:
        lost = known_device(state, device)
        adopted = [(EntryType.LANE_ADOPT, {1: scope, 2: device, 3: member.device}) for scope in sorted(ends)]
        revoked = (EntryType.DEVICE_REVOKE, account_log.revoke_body(device, ends))
        root = RootKey.new(entropy, state.version + 1) if lost.full else None
        rotated = [] if root is None else [(EntryType.ROTATE, {1: root.version, 2: root.ask})]
        epochs, kept = new_epochs(state, ring, entropy, only=lost.scopes)
        return Draft(entries=[revoked, *rotated, *epochs, *adopted], keyring=kept, root=root)

    known_device(member.state, device)
    await cloud.account.delete_device(device)
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
