"""The keys that this device has opened, and how they follow the account log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scrubjay_shared.account import AccountState, Device
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    RevokedError,
    WithheldError,
)
from scrubjay_shared.wire import LIMITED_WRAP, ROOT_WRAP
from scrubjay_sync.account.credentials import Credentials
from scrubjay_sync.account.device_secrets import Vault
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.keypairs import RootKey
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


class OpenedKeys:
    """The scope keys and names that this device can read, and how they follow the account log.

    Root keys arrive wrapped, the keyring by the hash that the log names; a limited device gets a limited keyring.
    """

    def __init__(self, vault: Vault, credentials: Credentials) -> None:
        self._vault = vault
        self._credentials = credentials
        self.keyring: Keyring | None = None
        self.scopes: Mapping[bytes, ScopeKeys] = {}
        self.names: Mapping[bytes, str] = {}

    def use(self, keyring: Keyring) -> None:
        """Take the keys and names of a keyring."""
        self.keyring, self.scopes, self.names = keyring, keyring.scopes, keyring.devices

    async def open_kept(self, state: AccountState) -> None:
        """Take the kept keyring, if it is the newest one and our root key opens it."""
        kept, root, named = await self._vault.keyring(), self._credentials.secrets.root, state.keyring
        if kept is None or root is None or named is None or digest_of(kept) != named[1]:
            return
        if epoch_of_keyring(kept) == root.version:
            self.use(open_keyring(kept, account=state.account, version=named[0], digest=named[1], root=root))

    async def follow(self, cloud: Cloud, state: AccountState) -> bool:
        """Fetch the keys that the log speaks of. Returns whether our root key was replaced.

        Raises RevokedError when this device was revoked, WithheldError when keys for it are missing.
        """
        own = state.devices.get(self._credentials.asking(state).device)
        if own is None or own.revoked:
            raise RevokedError(
                "this device was revoked: it syncs no more, and its memories stay here",
                hint="scrubjay logout, then scrubjay login asks to be let in again",
            )
        await self._credentials.adopt_wrap(own)
        if not own.full:
            await self._follow_limited(cloud, state, own)
            return False
        rotated = await self._follow_root(cloud, state, own)
        await self._follow_keyring(cloud, state, own)
        return rotated

    async def _follow_root(self, cloud: Cloud, state: AccountState, own: Device) -> bool:
        """Fetch the root key when there is a newer one, and let go of the old. Returns whether one was replaced."""
        root = self._credentials.secrets.root
        if root is not None and (root.version, root.ask) == (state.version, state.ask):
            return False
        for wrap in (await cloud.log.wraps(own.id)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == state.version:
                found = unwrap_root(
                    wrap, account=state.account, target=own.id, holder=self._credentials.holder(state), ask=state.ask
                )
                await self._credentials.save(replace(self._credentials.secrets, root=found))
                return root is not None
        raise WithheldError(
            "the account's new root key was not wrapped for this device",
            hint="scrubjay account rotate on another device makes a new one for all; without another device:"
            " scrubjay logout --force, then scrubjay login --recovery",
        )

    async def _follow_keyring(self, cloud: Cloud, state: AccountState, own: Device) -> None:
        if state.keyring is None:
            raise WithheldError(
                "the account log names no keyring, which every account has", hint="scrubjay sync verify"
            )
        version, digest = state.keyring
        sealed = await self._vault.keyring()
        if sealed is None or digest_of(sealed) != digest:
            sealed = await cloud.log.blob(digest)
        root = self._credentials.secrets.root
        assert root is not None  # noqa: S101 - `_follow_root` fetched it
        if epoch_of_keyring(sealed) != root.version:  # entries were voided, and no keyring was written since
            root = await self._earlier_root(cloud, state, own, epoch_of_keyring(sealed))
        opened = open_keyring(sealed, account=state.account, version=version, digest=digest, root=root)
        await self._vault.keep_keyring(sealed)
        self.use(opened)

    async def _earlier_root(self, cloud: Cloud, state: AccountState, own: Device, version: int) -> RootKey:
        for wrap in (await cloud.log.wraps(own.id)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == version:
                return unwrap_root(wrap, account=state.account, target=own.id, holder=self._credentials.holder(state))
        raise WithheldError(f"root key {version} was not wrapped for this device", hint="scrubjay sync verify")

    async def _follow_limited(self, cloud: Cloud, state: AccountState, own: Device) -> None:
        """Fetch a limited device's keys: the newest ones that the account signed, and none may be missing."""
        for wrap in (await cloud.log.wraps(own.id)).wraps:
            if wrap.kind == LIMITED_WRAP and state.keyring is not None and wrap.version == state.keyring[0]:
                limited = unwrap_limited_keyring(
                    wrap, account=state.account, target=own.id, ask=state.ask, holder=self._credentials.holder(state)
                )
                _check_complete(state, own, limited)
                self.scopes, self.names = limited.scopes, {own.id: limited.name}
                return
        raise WithheldError(
            "the server has no keys for this limited device",
            hint="make a new one on another device: scrubjay devices create",
        )


def _check_complete(state: AccountState, own: Device, limited: LimitedKeyring) -> None:
    """Raise WithheldError when the newest key of one of the device's scopes is missing."""
    for scope in own.scopes or ():
        found = state.scopes.get(scope)
        if found is None or found.deleted or found.suite == Suite.OPEN:
            continue
        known = limited.scopes.get(scope)
        if known is None or found.epoch not in known.keys:
            raise WithheldError(
                f"the newest key of scope {scope.hex()[:8]} was kept from this device", hint="scrubjay sync verify"
            )
