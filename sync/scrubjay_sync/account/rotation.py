"""New root keys and new epochs, so that old keys open nothing written from now on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.envelope import Suite
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import KEY_BYTES, Entropy, RootKey
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys


async def rotate(member: Member, cloud: Cloud, *, entropy: Entropy) -> None:
    """Replace the root key, the account's signing key, and every scope's key for what is written from now on."""
    await member.append(cloud, lambda state, ring: rotation_draft(state, ring, entropy))


def rotation_draft(state: AccountState, ring: Keyring, entropy: Entropy) -> Draft:
    """Return the draft that replaces the root key and every sealed scope's key."""
    root = RootKey.new(entropy, state.version + 1)
    epochs, ring = new_epochs(state, ring, entropy)
    return Draft(entries=[(EntryType.ROTATE, {1: root.version, 2: root.ask}), *epochs], keyring=ring, root=root)


def new_epochs(
    state: AccountState,
    ring: Keyring,
    entropy: Entropy,
    *,
    only: Sequence[bytes] | None = None,
    above: AccountState | None = None,
) -> tuple[list[tuple[EntryType, dict[int, Any]]], Keyring]:
    """Return the entries that give sealed scopes a new epoch, and the keyring with their keys.

    `above`: the state that a void entry cancels, because epochs count on from it.
    """
    entries = []
    for scope in state.scopes.values():
        if scope.deleted or scope.suite == Suite.OPEN or (only is not None and scope.id not in only):
            continue
        known = ring.scopes.get(scope.id, ScopeKeys(name=""))
        reached = scope if above is None else above.scopes.get(scope.id, scope)
        epoch = max(scope.epoch, reached.epoch) + 1
        entries.append((EntryType.EPOCH_ADD, {1: scope.id, 2: epoch}))
        ring = ring.with_scope(scope.id, replace(known, keys={**known.keys, epoch: entropy(KEY_BYTES)}))
    return entries, ring
