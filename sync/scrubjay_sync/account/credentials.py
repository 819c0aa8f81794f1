"""What this device signs with, and what opens the keys that are wrapped for it."""

from __future__ import annotations

from dataclasses import replace

from scrubjay_shared.account import AccountState, Device
from scrubjay_sync.account.device_secrets import Secrets, Vault
from scrubjay_sync.cloud.connection import Credential
from scrubjay_sync.keys.keypairs import DeviceKeys, signer


class Credentials:
    """The secrets of a device, saved before they are used.

    A new incarnation keeps the id and the keys of the one before (`secrets.former`) until the log certifies it: until
    then the former one asks for tokens, and wraps are opened with its keys.
    """

    def __init__(self, vault: Vault, secrets: Secrets) -> None:
        self._vault = vault
        self.secrets = secrets
        self.own = _credential(secrets)
        """The credential of the current incarnation."""

    async def save(self, secrets: Secrets) -> None:
        """Replace the secrets, in the vault first."""
        await self._vault.save(secrets)
        self.secrets = secrets
        self.own = _credential(secrets)

    def asking(self, state: AccountState) -> Credential:
        """Return who may ask for tokens now."""
        former = self.secrets.former
        if former is None or self.secrets.device in state.devices:
            return self.own
        return Credential(account=self.secrets.account, device=former[0], sign=signer(former[1].sign_seed))

    def holder(self, state: AccountState) -> DeviceKeys:
        """Return the keys that wraps for this device open with now."""
        former = self.secrets.former
        if former is None or self.secrets.device in state.devices:
            return self.secrets.keys
        return former[1]

    async def adopt_wrap(self, own: Device) -> None:
        """Use the new wrap key once the log names it."""
        renewed = self.secrets.next_wrap
        if renewed is not None and renewed.wrap_pub == own.wrap_pub:
            await self.save(replace(self.secrets, keys=replace(self.secrets.keys, wrap=renewed), next_wrap=None))


def _credential(secrets: Secrets) -> Credential:
    return Credential(account=secrets.account, device=secrets.device, sign=signer(secrets.keys.sign_seed))
