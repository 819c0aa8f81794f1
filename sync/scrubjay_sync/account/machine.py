"""What this machine brings to an account, and how replication of its store begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay.store import Store
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    AnotherAccountError,
    ConflictError,
)
from scrubjay_sync.account.device_secrets import Vault
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import DeviceKeys, Entropy


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What this machine brings to an account: its store, the place for its secrets, the server, time and chance."""

    store: Store
    vault: Vault
    cloud: Cloud
    now: Callable[[], Millis]
    entropy: Entropy

    @property
    def device(self) -> bytes:
        """The store's device id, 16 bytes."""
        return bytes.fromhex(self.store.device)

    async def member(self) -> Member:
        """Return the member that this machine is, once it is one."""
        return await Member.load(self.store, self.vault, self.cloud.origin, now=self.now, entropy=self.entropy)


async def require_logged_out(machine: Machine) -> None:
    """Raise ConflictError when the store replicates an account already."""
    if await machine.store.read(lambda q: q.replication.state()) is not None:
        raise ConflictError("this store is logged in already", hint="scrubjay logout first")


async def account_before(store: Store) -> bytes:
    """Return the account that the store was in last; empty when there was none, or nobody knows what it still has."""
    return await store.read(lambda q: q.replication.left()) or b""


async def require_same_account(machine: Machine, account: bytes, *, bring_all: bool) -> None:
    """Two accounts are often two people, or work and home: what one holds must not go to the other unasked."""
    before = await account_before(machine.store)
    if before and before != account and not bring_all:
        raise another_account(before.hex())


def another_account(before: str) -> AnotherAccountError:
    """Return what is said to a store that was in account `before` (hex) and is about to enter another."""
    return AnotherAccountError(
        f"this store was in account {before[:8]} before: everything that it holds would go to another account now",
        hint="scrubjay login --bring-all allows it; scrubjay login --account NAME gives it a store of its own",
    )


async def begin_replication(machine: Machine, state: AccountState, entries: Sequence[bytes]) -> Member:
    """Turn replication on, and return the member with all its keys. `state` is what the log adds up to after `entries`.

    What the store replicated with another account before goes to this one as this device's own: here nobody has it.
    So does what is held of devices that the account no longer knows, since its server went back to before they were
    added or had shown another history: what they wrote stands in no lane that anybody can read.
    """
    own = state.device_of(machine.device)

    def begin(tx: Any) -> None:
        if tx.queries.replication.left() not in {None, state.account}:
            tx.incarnation.adopt()
        elif own is not None and own.full:
            unknown = [one for one in tx.queries.replication.left_devices() if not state.device_of(bytes.fromhex(one))]
            if unknown:
                tx.incarnation.adopt(unknown)
        tx.replication.begin(state.account)
        tx.replication.keep_log(state.seq + 1 - len(entries), list(entries))
        tx.replication.keep_account(state.seq, account_log.state_bytes(state))

    await machine.store.write(begin)
    member = await machine.member()
    await member.refresh(machine.cloud)
    return member


def device_body(device: bytes, own: DeviceKeys) -> dict[int, Any]:
    """Return the body of the entry that adds a device with these keys."""
    return account_log.device_body(device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
