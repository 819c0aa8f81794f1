"""Leaving an account: logging out, and deleting it."""

from __future__ import annotations

import logging
from typing import Any

from scrubjay.store import Store
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.errors import MalformedError
from scrubjay_shared.wire import (
    DeleteAccount,
    Deleted,
)
from scrubjay_sync.account.account_devices import ends_of
from scrubjay_sync.account.device_secrets import Vault
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.keys.keypairs import Entropy
from scrubjay_sync.keys.keyring import Keyring

log = logging.getLogger(__name__)


async def log_out(machine: Machine, member: Member | None) -> None:
    """Leave the account: keys and everything kept for it are erased here, memories stay.

    With `member`, the log says so too; else (offline, revoked, keys lost) only this machine knows. What was never
    confirmed by the server becomes a new device's, to be sent after a later login.
    """
    if member is not None and not member.limited:
        ends = await ends_of(machine.store, member.state, member.device)

        def draft(state: AccountState, _: Keyring) -> Draft:
            own = state.devices.get(member.device)
            gone = own is None or own.revoked
            return (
                Draft()
                if gone
                else Draft(
                    entries=[(EntryType.DEVICE_REVOKE, body) for body in account_log.revoke_bodies(member.device, ends)]
                )
            )

        await member.append(machine.cloud, draft)
    await leave(machine.store, machine.vault, machine.entropy)


async def leave(store: Store, vault: Vault, entropy: Entropy) -> None:
    """Erase what a store keeps of its account, except for its memories. A second call does nothing."""
    state = await store.read(lambda q: q.replication.state())
    if state is not None:
        after = await confirmed_seq(store, bytes.fromhex(store.device), state.sealed_seq)
        fresh, account = entropy(16).hex(), await _pinned(store)

        def end(tx: Any) -> None:
            tx.incarnation.renew(fresh, after)
            held = tx.queries.ops.ends()
            tx.replication.end([one for one in held if account and account.device_of(bytes.fromhex(one)) is not None])

        await store.write(end)
    await vault.erase()


async def _pinned(store: Store) -> AccountState | None:
    """Return the account as its log is known here; None where that cannot be read, which must keep nobody in."""
    kept = await store.read(lambda q: q.replication.account_state())
    try:
        return None if kept is None else account_log.state_of(kept)
    except MalformedError as error:
        log.warning("sync leaves an account whose state it cannot read code=%s", error.code)
        return None


async def confirmed_seq(store: Store, device: bytes, sealed_seq: int) -> int:
    """Return the last op of this device up to which the server has confirmed every one."""
    confirmed = sealed_seq
    for (scope, owner), lane in (await store.read(lambda q: q.replication.lanes())).items():
        if owner == device:
            waiting = await store.read(lambda q: q.replication.sealed(scope, device, after=lane.acked_n))
            confirmed = min([confirmed, *(one.seq_low - 1 for one in waiting)])
    return max(confirmed, 0)


async def delete_account(machine: Machine, auth_key: bytes) -> Deleted:
    """Delete the account at the server, and leave it. Memories stay here."""
    deleted = await machine.cloud.account.delete_account(DeleteAccount(auth_key=auth_key))
    await leave(machine.store, machine.vault, machine.entropy)
    return deleted
