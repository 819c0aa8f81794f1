"""Who this device is in its account: its keys, the account log it has pinned, and the keys of the scopes it may read.

Theory of operation. What a server says of an account is believed only as far as the log proves it. The log is kept in
the store with what it adds up to; `refresh` fetches what follows the last entry we hold, together with that entry
itself, so that a server that shows another history is found out at once.
The keyring is fetched by the hash that the log names; root keys arrive wrapped, and count only if that keyring opens
with them. Whoever changes the account makes a `Draft` of the state as it is and `append` races for the end of the log,
making the draft again of the newer state when it lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from scrubjay.store import Store
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, Device, EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    DeniedError,
    LogConflictError,
    NotFoundError,
    SplitError,
    UnauthenticatedError,
    UnavailableError,
)
from scrubjay_shared.wire import LogAppend, LogPage
from scrubjay_sync.account.credentials import Credentials
from scrubjay_sync.account.device_secrets import Secrets, Vault
from scrubjay_sync.account.drafts import Assembled, Draft, assemble, checkpoint_draft
from scrubjay_sync.account.log_repair import repair_log
from scrubjay_sync.account.member_scopes import MemberScopes
from scrubjay_sync.account.opened_keys import OpenedKeys
from scrubjay_sync.account.pinned_log import PinnedLog
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.cloud.connection import Credential
from scrubjay_sync.keys.keypairs import DeviceKeys, Entropy, RootKey, WrapKeys
from scrubjay_sync.keys.keyring import Keyring, rotations_left
from scrubjay_sync.policy import IDENTITY


class Member:
    """This device as a member of its account. One at a time reads or changes the account; callers need no lock.

    `account` is the account's id, 16 bytes; `origin` the server's address; `scopes` those that it takes part in.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        origin: str,
        *,
        secrets: Secrets,
        log: PinnedLog,
        now: Callable[[], Millis],
        entropy: Entropy,
    ) -> None:
        """Made by `load`."""
        self.account = secrets.account
        self.origin = origin
        self._store = store
        self._vault = vault
        self._log = log
        self._credentials = Credentials(vault, secrets)
        self._keys = OpenedKeys(vault, self._credentials)
        self.scopes = MemberScopes(store, self._log, self._keys)
        self._followed: bytes | None = None
        """The head of the log up to which the keys were followed."""
        self.answering = b""
        """What the machine says of itself that is being let in; empty where none is."""
        self._now = now
        self._entropy = entropy
        self._turn = asyncio.Lock()

    @classmethod
    async def load(
        cls, store: Store, vault: Vault, origin: str, *, now: Callable[[], Millis], entropy: Entropy
    ) -> Member:
        """Return the member that this store and this vault make. Needs no network.

        The keys of scopes are there already when the last keyring was kept, else they come with `refresh`. Raises
        NotFoundError when the vault is empty or the store holds no log, CorruptError's kinds when that log does not
        verify. A revoked device loads: it learns so from `refresh`.
        """
        secrets = await vault.load()
        log = await PinnedLog.load(store, now)
        if secrets is None or log is None:
            raise NotFoundError(
                "this device's keys for its account are gone",
                hint="scrubjay logout --force, then scrubjay login; all memories stay",
            )
        member = cls(store, vault, origin, secrets=secrets, log=log, now=now, entropy=entropy)
        if member.state.account != secrets.account:
            raise SplitError(
                "the account log in the store is another account's",
                hint="scrubjay logout --force, then scrubjay login; all memories stay",
            )
        await member._keys.open_kept(member.state)
        return member

    # --- who this is ------------------------------------------------------------------------------------------------

    @property
    def device(self) -> bytes:
        """This device's id: the store's, 16 bytes."""
        return bytes.fromhex(self._store.device)

    @property
    def certified(self) -> Device | None:
        """What the account knows this store as: itself, or the limited device that it is an instance of."""
        return self.state.device_of(self.device)

    @property
    def state(self) -> AccountState:
        """What the log we hold adds up to."""
        return self._log.state

    @property
    def home(self) -> bytes:
        """The scope of everything that is bound to no other."""
        return self.state.home

    @property
    def credential(self) -> Credential:
        """What this device asks for tokens with."""
        return self._credentials.own

    def sign(self, message: bytes) -> bytes:
        """Sign as this device."""
        return self._credentials.own.sign(message)

    @property
    def limited(self) -> bool:
        """Whether this device has only some scopes' keys, and no say in the account."""
        own = self.certified
        return own is not None and not own.full

    @property
    def read_only(self) -> bool:
        """Whether this device may push nothing."""
        own = self.certified
        return own is not None and own.read_only

    @property
    def root(self) -> RootKey:
        """The account's root key. Raises DeniedError on a limited device."""
        if self._credentials.secrets.root is None:
            raise DeniedError(
                "this is a limited device, which may not change the account", hint="use a device that is not limited"
            )
        return self._credentials.secrets.root

    @property
    def keyring(self) -> Keyring:
        """What full devices share. Raises DeniedError on a limited device, UnavailableError before `refresh`."""
        if self._keys.keyring is None:
            _ = self.root
            raise UnavailableError(
                "this device has not fetched the account's keys yet", hint="scrubjay sync fetches them"
            )
        return self._keys.keyring

    @property
    def rotations_left(self) -> int | None:
        """How often all keys can be replaced until the keyring is full; None where this device holds no keyring."""
        return None if self._keys.keyring is None else rotations_left(self._keys.keyring)

    def device_name(self, device: bytes) -> str:
        """Return a device's name, or the beginning of its id when it has none."""
        known = self.state.device_of(device)
        return self._keys.names.get(device if known is None else known.id, "") or device.hex()[:8]

    # --- following the account ----------------------------------------------------------------------------------------

    async def refresh(self, cloud: Cloud) -> bool:
        """Take over what the account log says by now, and the keys that follow. Returns whether anything changed.

        A new incarnation of this store is certified on the way, and after a rotation this device's wrap key is renewed.
        Raises RolledBackError when the server shows less than it has shown before (see `repair_log`), SplitError when
        it shows something else, RevokedError when this device was revoked (its memories stay), and what replaying
        raises.
        """
        async with self._turn:
            before = self._followed
            await self._refresh(cloud)
            if self.certified is None or self.certified.id != self._credentials.secrets.device:
                await self._certify(cloud)
            await self._write_checkpoint(cloud)
            return before != self._followed

    async def _refresh(self, cloud: Cloud) -> None:
        cloud.use(self._credentials.asking(self.state))
        await self._log.catch_up(cloud)
        if self.state.head != self._followed:
            rotated = await self._keys.follow(cloud, self.state)
            await self.scopes.bind_projects()
            if rotated:
                await self._renew(cloud)
            self._followed = self.state.head

    async def _renew(self, cloud: Cloud) -> None:
        """Replace this device's wrap key, so that what was wrapped before a rotation opens nothing that comes after."""
        if self._credentials.secrets.next_wrap is None:
            await self._credentials.save(replace(self._credentials.secrets, next_wrap=WrapKeys.new(self._entropy)))
        renewed = self._credentials.secrets.next_wrap
        if renewed is not None:
            device, wrap_pub = self._credentials.asking(self.state).device, renewed.wrap_pub
            await self._append(cloud, lambda *_: Draft(entries=[(EntryType.DEVICE_REKEY, {1: device, 2: wrap_pub})]))
            await self._credentials.adopt_wrap(self.state.devices[device])

    async def _certify(self, cloud: Cloud) -> None:
        """Let the account certify the store's new device id: new keys, and the name of the incarnation before."""
        known = self._credentials.secrets
        if known.root is None:
            raise DeniedError(
                "this store goes on as a new device, and a limited device cannot add itself to the account",
                hint="make a new one on another device: scrubjay devices create",
            )
        former = known.former
        if former is None or known.device in self.state.devices:
            former = (known.device, known.keys)
        if known.device != self.device:
            if self.device in self.state.devices:  # said before its keys here are replaced: there are no others
                raise UnauthenticatedError(
                    f"this store is older than its keys: it is device {self.device.hex()[:8]}, and the keys are of"
                    f" {known.device.hex()[:8]}",
                    hint="scrubjay logout --force, then scrubjay login; all memories stay",
                )
            made = DeviceKeys.new(self._entropy)
            await self._credentials.save(
                Secrets(account=self.account, device=self.device, keys=made, root=known.root, former=former)
            )
        cloud.use(self._credentials.asking(self.state))
        own, name = self._credentials.secrets.keys, self.device_name(former[0])
        body = account_log.device_body(self.device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
        await self._append(
            cloud,
            lambda _, ring: Draft(entries=[(EntryType.DEVICE_ADD, body)], keyring=ring.with_device(self.device, name)),
        )
        await self._credentials.save(replace(self._credentials.secrets, former=None))
        cloud.use(self._credentials.own)

    # --- changing the account -----------------------------------------------------------------------------------------

    async def append(
        self,
        cloud: Cloud,
        draft: Callable[[AccountState, Keyring], Draft],
        *,
        send: Callable[[LogAppend], Awaitable[LogPage]] | None = None,
    ) -> AccountState:
        """Change the account. `draft` is called again with the newer state when another device was quicker.

        `send` takes the place of `cloud.log.append`. Raises DeniedError on a limited device, LogConflictError when it
        lost `IDENTITY.append_tries` races, and what `refresh` raises.
        """
        async with self._turn:
            await self._refresh(cloud)
            await self._write_checkpoint(cloud)
            return await self._append(cloud, draft, send or cloud.log.append)

    async def _write_checkpoint(self, cloud: Cloud) -> None:
        """State in the log what it adds up to, if that is due and this device may: others then begin to read there."""
        own = self.state.devices.get(self.device)
        if own is not None and own.full and checkpoint_draft(self.state).entries:
            await self._append(cloud, lambda state, _: checkpoint_draft(state))

    async def _append(
        self,
        cloud: Cloud,
        draft: Callable[[AccountState, Keyring], Draft],
        send: Callable[[LogAppend], Awaitable[LogPage]] | None = None,
    ) -> AccountState:
        for _ in range(IDENTITY.append_tries):
            change = draft(self.state, self.keyring)
            if not change.entries and change.keyring is None:
                return self.state
            who = self._credentials.asking(self.state)
            made = assemble(
                change,
                account=self.account,
                states=[self.state],
                root=self.root,
                keyring=self.keyring,
                device=who.device,
                sign=who.sign,
                now=self._now(),
                entropy=self._entropy,
                earlier=change.earlier,
            )
            try:
                await (send or cloud.log.append)(made.append)
            except LogConflictError:
                await self._refresh(cloud)
                continue
            await self._accepted(made)
            if change.root is not None:
                await self._renew(cloud)
            return self.state
        raise LogConflictError(
            "other devices changed the account at the same time, again and again", hint="try again in a minute"
        )

    async def _accepted(self, made: Assembled) -> None:
        if made.sealed is not None:
            await self._vault.keep_keyring(made.sealed)
        if made.root != self.root:
            await self._credentials.save(replace(self._credentials.secrets, root=made.root))
        await self._log.extend(made.states, made.append.entries)
        self._keys.use(made.keyring)
        self._followed = self.state.head
        await self.scopes.bind_projects()

    async def repair_log(self, cloud: Cloud) -> int:
        """Give a server that lost the end of the log (an old backup was restored) what we hold of it.

        Returns how many entries it took back; puts the keyring back too when that is gone. Raises SplitError when its
        log is not the beginning of ours.
        """
        async with self._turn:
            cloud.use(self._credentials.asking(self.state))
            return await repair_log(
                cloud,
                self._log,
                sealed=await self._vault.keyring(),
                root=self._credentials.secrets.root,
                keyring=self._keys.keyring,
            )
