"""Who this device is in its account: its keys, the account log it has pinned, and the keys of the scopes it may read.

Theory of operation. What a server says of an account is believed only as far as the log proves it. The log is kept in
the store, entry by entry, and replayed from its genesis when a member is loaded; `refresh` fetches what follows the
last entry we hold, together with that entry itself, so that a server that shows another history is found out at once.
The keyring is fetched by the hash that the log names; root keys arrive wrapped, and count only if that keyring opens
with them. Whoever changes the account makes a `Draft` of the state as it is and `append` races for the end of the log,
making the draft again of the newer state when it lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, Device, EntryType, ScopeState
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    DeniedError,
    LogConflictError,
    NotFoundError,
    RevokedError,
    RolledBackError,
    SplitError,
    UnauthenticatedError,
    UnavailableError,
    WithheldError,
)
from scrubjay_shared.wire import LIMITED_WRAP, ROOT_WRAP, LogAppend, LogPage
from scrubjay_sync.account.device_secrets import Secrets, Vault
from scrubjay_sync.account.drafts import Assembled, Draft, assemble, wraps_after
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.cloud.connection import Credential
from scrubjay_sync.keys.keypairs import DeviceKeys, Entropy, RootKey, WrapKeys, signer
from scrubjay_sync.keys.keyring import (
    Keyring,
    LimitedKeyring,
    ScopeKeys,
    digest_of,
    epoch_of_keyring,
    open_keyring,
    unwrap_limited_keyring,
)
from scrubjay_sync.keys.wraps import unwrap_root
from scrubjay_sync.policy import IDENTITY


async def fetch_log(cloud: Cloud, *, pending: str | None = None, start: int = 0) -> tuple[list[bytes], LogPage]:
    """Return the account log from an entry on, all its pages, and the last page. Raises WithheldError."""
    entries: list[bytes] = []
    while True:
        page = await cloud.log(start + len(entries), pending=pending)
        entries += page.entries
        if start + len(entries) > page.seq:
            return entries, page
        if not page.entries:
            raise WithheldError("the server does not hand out the end of the account log", hint="scrubjay sync verify")


class Member:
    """This device as a member of its account. One at a time reads or changes the account; callers need no lock.

    `account` is the account's id, 16 bytes; `origin` the server's address.
    """

    def __init__(
        self,
        store: Store,
        vault: Vault,
        origin: str,
        *,
        secrets: Secrets,
        entries: Sequence[bytes],
        now: Callable[[], Millis],
        entropy: Entropy,
    ) -> None:
        """Made by `load`."""
        self.account = secrets.account
        self.origin = origin
        self._store = store
        self._vault = vault
        self._secrets = secrets
        self._entries = list(entries)
        self._states = account_log.extended((), entries, now())
        self._keyring: Keyring | None = None
        self._scopes: Mapping[bytes, ScopeKeys] = {}
        self._names: Mapping[bytes, str] = {}
        self._followed: bytes | None = None
        """The head of the log up to which the keys were followed."""
        self._now = now
        self._entropy = entropy
        self._turn = asyncio.Lock()
        self._arm(secrets)

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
        entries = await store.read(lambda q: q.replication.account_log())
        if secrets is None or not entries:
            raise NotFoundError(
                "this device's keys for its account are gone",
                hint="scrubjay logout --force, then scrubjay login; all memories stay",
            )
        member = cls(store, vault, origin, secrets=secrets, entries=entries, now=now, entropy=entropy)
        if member.state.account != secrets.account:
            raise SplitError(
                "the account log in the store is another account's",
                hint="scrubjay logout --force, then scrubjay login; all memories stay",
            )
        await member._open_kept()
        return member

    def _arm(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._sign = signer(secrets.keys.sign_seed)
        self._credential = Credential(account=self.account, device=secrets.device, sign=self._sign)

    async def _open_kept(self) -> None:
        """Take the kept keyring, if it is the newest one and our root key opens it."""
        kept, root, named = await self._vault.keyring(), self._secrets.root, self.state.keyring
        if kept is None or root is None or named is None or digest_of(kept) != named[1]:
            return
        if epoch_of_keyring(kept) == root.version:
            self._keep(open_keyring(kept, account=self.account, version=named[0], digest=named[1], root=root))

    def _keep(self, keyring: Keyring) -> None:
        self._keyring, self._scopes, self._names = keyring, keyring.scopes, keyring.devices

    # --- who this is ------------------------------------------------------------------------------------------------

    @property
    def device(self) -> bytes:
        """This device's id: the store's, 16 bytes."""
        return bytes.fromhex(self._store.device)

    @property
    def state(self) -> AccountState:
        """What the log we hold adds up to."""
        return self._states[-1]

    @property
    def entries(self) -> tuple[bytes, ...]:
        """The log we hold, from its genesis on."""
        return tuple(self._entries)

    @property
    def home(self) -> bytes:
        """The scope of everything that is bound to no other."""
        return self.state.home

    @property
    def credential(self) -> Credential:
        """What this device asks for tokens with."""
        return self._credential

    def sign(self, message: bytes) -> bytes:
        """Sign as this device."""
        return self._sign(message)

    @property
    def limited(self) -> bool:
        """Whether this device has only some scopes' keys, and no say in the account."""
        own = self.state.devices.get(self.device)
        return own is not None and not own.full

    @property
    def read_only(self) -> bool:
        """Whether this device may push nothing."""
        own = self.state.devices.get(self.device)
        return own is not None and own.read_only

    @property
    def root(self) -> RootKey:
        """The account's root key. Raises DeniedError on a limited device."""
        if self._secrets.root is None:
            raise DeniedError(
                "this is a limited device, which may not change the account", hint="use a device that is not limited"
            )
        return self._secrets.root

    @property
    def keyring(self) -> Keyring:
        """What full devices share. Raises DeniedError on a limited device, UnavailableError before `refresh`."""
        if self._keyring is None:
            _ = self.root
            raise UnavailableError(
                "this device has not fetched the account's keys yet", hint="scrubjay sync fetches them"
            )
        return self._keyring

    # --- scopes -----------------------------------------------------------------------------------------------------

    @property
    def scopes(self) -> tuple[bytes, ...]:
        """The scopes that this device takes part in, home first; deleted ones are not among them."""
        own = self.state.devices.get(self.device)
        mine = None if own is None else own.scopes
        found = [one for one in self.state.scopes.values() if not one.deleted and (mine is None or one.id in mine)]
        return tuple(one.id for one in sorted(found, key=lambda one: not one.home))

    def scope_key(self, scope: bytes, epoch: int) -> bytes:
        """Return the key of a scope at an epoch; empty for a searchable scope, which has none. Raises NotFoundError."""
        if self.suite(scope) == Suite.OPEN:
            return b""
        known = self._scopes.get(scope)
        if known is None or epoch not in known.keys:
            raise NotFoundError(
                f"this device has no key of scope {scope.hex()[:8]}, epoch {epoch}",
                hint="the scope was deleted, or this device was not given it: scrubjay sync scopes list",
            )
        return known.keys[epoch]

    def current_epoch(self, scope: bytes) -> int:
        """Return the epoch that new objects of a scope are sealed under. Raises NotFoundError."""
        return self._scope_state(scope).epoch

    def suite(self, scope: bytes) -> Suite:
        """Return how objects of a scope are protected, for ever as the log declares it. Raises NotFoundError."""
        return Suite(self._scope_state(scope).suite)

    def _scope_state(self, scope: bytes) -> ScopeState:
        found = self.state.scopes.get(scope)
        if found is None:
            raise NotFoundError(f"the account has no scope {scope.hex()[:8]}", hint="scrubjay sync scopes list")
        return found

    @property
    def projects(self) -> Mapping[str, bytes]:
        """The projects that are bound to scopes of their own, as all full devices know them."""
        return {
            project: scope for scope in self.scopes if scope in self._scopes for project in self._scopes[scope].projects
        }

    def scope_name(self, scope: bytes) -> str:
        """Return a scope's name, or the beginning of its id when it has none."""
        known = self._scopes.get(scope)
        return known.name if known is not None and known.name else scope.hex()[:8]

    def device_name(self, device: bytes) -> str:
        """Return a device's name, or the beginning of its id when it has none."""
        return self._names.get(device, "") or device.hex()[:8]

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
            if self._secrets.device != self.device or self.device not in self.state.devices:
                await self._certify(cloud)
            return before != self._followed

    async def _refresh(self, cloud: Cloud) -> None:
        cloud.use(self._asking())
        await self._catch_up(cloud)
        if self.state.head != self._followed:
            await self._follow(cloud)
            self._followed = self.state.head

    def _asking(self) -> Credential:
        """Return who may ask now: until the log certifies a new incarnation, the one before."""
        former = self._secrets.former
        if former is None or self._secrets.device in self.state.devices:
            return self._credential
        return Credential(account=self.account, device=former[0], sign=signer(former[1].sign_seed))

    async def _catch_up(self, cloud: Cloud) -> None:
        last = self.state
        entries, page = await fetch_log(cloud, start=last.seq)
        if page.seq < last.seq:
            raise RolledBackError(
                f"the server's account log ends at entry {page.seq}; it has shown entry {last.seq} before",
                hint="if its operator restored a backup, scrubjay sync puts the rest back; else do not trust it",
            )
        if not entries or entries[0] != self._entries[-1]:
            raise SplitError(
                f"the server shows another entry {last.seq} of the account log than before",
                hint="do not trust it until you know why; scrubjay sync verify on each device compares them",
            )
        states = account_log.extended(self._states, entries[1:], self._now())
        if states[-1].head != page.head:
            raise SplitError(
                "the server names another end of the account log than it hands out", hint="scrubjay sync verify"
            )
        await self._take(states, entries[1:])

    async def _take(self, states: list[AccountState], entries: Sequence[bytes]) -> None:
        """Pin some more entries; `states` are those after all of them."""
        first = len(self._entries)
        if entries:
            await self._store.write(lambda tx: tx.replication.keep_log(first, list(entries)))
            self._entries += entries
            self._states = states

    async def _follow(self, cloud: Cloud) -> None:
        """Fetch the keys that the log we hold speaks of."""
        own = self.state.devices.get(self._asking().device)
        if own is None or own.revoked:
            raise RevokedError(
                "this device was revoked: it syncs no more, and its memories stay here",
                hint="scrubjay logout, then scrubjay login asks to be let in again",
            )
        await self._adopt_wrap(own)
        if not own.full:
            await self._follow_extract(cloud, own)
            return
        rotated = await self._follow_root(cloud, own)
        await self._follow_keyring(cloud, own)
        if rotated:
            await self._renew(cloud)

    async def _adopt_wrap(self, own: Device) -> None:
        renewed = self._secrets.next_wrap
        if renewed is not None and renewed.wrap_pub == own.wrap_pub:
            renewed_keys = replace(self._secrets.keys, wrap=renewed)
            await self._save(replace(self._secrets, keys=renewed_keys, next_wrap=None))

    async def _save(self, secrets: Secrets) -> None:
        await self._vault.save(secrets)
        self._arm(secrets)

    async def _follow_root(self, cloud: Cloud, own: Device) -> bool:
        """Fetch the root key when there is a newer one, and let go of the old. Returns whether one was replaced."""
        root = self._secrets.root
        if root is not None and (root.version, root.ask) == (self.state.version, self.state.ask):
            return False
        for wrap in (await cloud.wraps(own.id)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == self.state.version:
                found = unwrap_root(wrap, account=self.account, target=own.id, holder=self._holder, ask=self.state.ask)
                await self._save(replace(self._secrets, root=found))
                return root is not None
        raise WithheldError(
            "the account's new root key was not wrapped for this device",
            hint="scrubjay account rotate on another device makes a new one for all; without another device:"
            " scrubjay logout --force, then scrubjay login --recovery",
        )

    @property
    def _holder(self) -> DeviceKeys:
        """The keys that wraps for this device open with: while an incarnation waits, those of the one before."""
        former = self._secrets.former
        waits = former is not None and self._secrets.device not in self.state.devices
        return former[1] if former is not None and waits else self._secrets.keys

    async def _follow_keyring(self, cloud: Cloud, own: Device) -> None:
        if self.state.keyring is None:
            raise WithheldError(
                "the account log names no keyring, which every account has", hint="scrubjay sync verify"
            )
        version, digest = self.state.keyring
        sealed = await self._vault.keyring()
        if sealed is None or digest_of(sealed) != digest:
            sealed = await cloud.blob(digest)
        root = self.root
        if epoch_of_keyring(sealed) != root.version:  # entries were voided, and no keyring was written since
            root = await self._earlier_root(cloud, own, epoch_of_keyring(sealed))
        opened = open_keyring(sealed, account=self.account, version=version, digest=digest, root=root)
        await self._vault.keep_keyring(sealed)
        self._keep(opened)
        await self._bind()

    async def _bind(self) -> None:
        """Bind projects in the store as the account has them bound: to what is first written from here on."""
        bound = {one.project: one.scope for one in await self._store.read(lambda q: q.replication.bindings())}
        wanted = dict(self.projects)
        if bound == wanted:
            return

        def bind(tx: Transaction) -> None:
            for project in bound.keys() - wanted.keys():
                tx.replication.unbind(project)
            for project in sorted(wanted):
                if bound.get(project) != wanted[project]:
                    tx.replication.bind(project, wanted[project], self._store.last_seq)

        await self._store.write(bind)

    async def _earlier_root(self, cloud: Cloud, own: Device, version: int) -> RootKey:
        for wrap in (await cloud.wraps(own.id)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == version:
                return unwrap_root(wrap, account=self.account, target=own.id, holder=self._holder)
        raise WithheldError(f"root key {version} was not wrapped for this device", hint="scrubjay sync verify")

    async def _follow_extract(self, cloud: Cloud, own: Device) -> None:
        """Fetch a limited device's keys: the newest ones that the account signed, and none may be missing."""
        for wrap in (await cloud.wraps(own.id)).wraps:
            if wrap.kind == LIMITED_WRAP and self.state.keyring is not None and wrap.version == self.state.keyring[0]:
                extract = unwrap_limited_keyring(
                    wrap, account=self.account, target=own.id, ask=self.state.ask, holder=self._holder
                )
                self._check_extract(extract)
                self._scopes, self._names = extract.scopes, {own.id: extract.name}
                await self._bind()
                return
        raise WithheldError(
            "the server has no keys for this limited device",
            hint="make a new one on another device: scrubjay devices create",
        )

    def _check_extract(self, extract: LimitedKeyring) -> None:
        for scope in self.scopes:
            state = self.state.scopes[scope]
            known = extract.scopes.get(scope)
            if state.suite != Suite.OPEN and (known is None or state.epoch not in known.keys):
                raise WithheldError(
                    f"the newest key of scope {scope.hex()[:8]} was kept from this device", hint="scrubjay sync verify"
                )

    async def _renew(self, cloud: Cloud) -> None:
        """Replace this device's wrap key, so that what was wrapped before a rotation opens nothing that comes after."""
        if self._secrets.next_wrap is None:
            await self._save(replace(self._secrets, next_wrap=WrapKeys.new(self._entropy)))
        renewed = self._secrets.next_wrap
        if renewed is not None:
            device, wrap_pub = self._asking().device, renewed.wrap_pub
            await self._append(cloud, lambda *_: Draft(entries=[(EntryType.DEVICE_REKEY, {1: device, 2: wrap_pub})]))
            await self._adopt_wrap(self.state.devices[device])

    async def _certify(self, cloud: Cloud) -> None:
        """Let the account certify the store's new device id: new keys, and the name of the incarnation before."""
        known = self._secrets
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
            await self._save(
                Secrets(account=self.account, device=self.device, keys=made, root=known.root, former=former)
            )
        cloud.use(self._asking())
        own, name = self._secrets.keys, self.device_name(former[0])
        body = account_log.device_body(self.device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
        await self._append(
            cloud,
            lambda _, ring: Draft(entries=[(EntryType.DEVICE_ADD, body)], keyring=ring.with_device(self.device, name)),
        )
        await self._save(replace(self._secrets, former=None))
        cloud.use(self._credential)

    # --- changing the account -----------------------------------------------------------------------------------------

    async def append(
        self,
        cloud: Cloud,
        draft: Callable[[AccountState, Keyring], Draft],
        *,
        send: Callable[[LogAppend], Awaitable[LogPage]] | None = None,
    ) -> AccountState:
        """Change the account. `draft` is called again with the newer state when another device was quicker.

        `send` takes the place of `cloud.append`. Raises DeniedError on a limited device, LogConflictError when it lost
        `IDENTITY.append_tries` races, and what `refresh` raises.
        """
        async with self._turn:
            await self._refresh(cloud)
            return await self._append(cloud, draft, send or cloud.append)

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
            who = self._asking()
            made = assemble(
                change,
                account=self.account,
                states=self._states,
                root=self.root,
                keyring=self.keyring,
                device=who.device,
                sign=who.sign,
                now=self._now(),
                entropy=self._entropy,
            )
            try:
                await (send or cloud.append)(made.append)
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
            await self._save(replace(self._secrets, root=made.root))
        await self._take(made.states, made.append.entries)
        self._keep(made.keyring)
        self._followed = self.state.head
        await self._bind()

    async def repair_log(self, cloud: Cloud) -> int:
        """Give a server that lost the end of the log (an old backup was restored) what we hold of it.

        Returns how many entries it took back; puts the keyring back too when that is gone. Raises SplitError when its
        log is not the beginning of ours.
        """
        async with self._turn:
            cloud.use(self._asking())
            page = await cloud.log(len(self._entries))
            lost = self._entries[page.seq + 1 :]
            sealed = await self._vault.keyring()
            newest = sealed is not None and self.state.keyring is not None
            newest = newest and digest_of(sealed or b"") == (self.state.keyring or (0, b""))[1]
            if lost:
                if page.seq < 0 or self._states[page.seq].head != page.head:
                    raise SplitError(
                        "the server shows another account log than this device has read before",
                        hint="scrubjay sync verify",
                    )
                whole = self._secrets.root is not None and self._keyring is not None
                await cloud.append(
                    LogAppend(
                        head=page.head,
                        entries=tuple(lost),
                        wraps=wraps_after(None, self.state, root=self.root, keyring=self.keyring) if whole else (),
                        blobs=(sealed,) if sealed is not None and newest else (),
                    )
                )
            elif sealed is not None and newest:
                await self._repair_keyring(cloud, sealed)
            return len(lost)

    async def _repair_keyring(self, cloud: Cloud, sealed: bytes) -> None:
        digest = digest_of(sealed)
        try:
            await cloud.blob(digest)
        except NotFoundError:
            await cloud.put_blob(digest, sealed)
