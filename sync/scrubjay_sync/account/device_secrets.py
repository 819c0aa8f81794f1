"""What a device keeps secret, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from scrubjay_sync.keys.keypairs import DeviceKeys, RootKey, WrapKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What a device keeps in the system's keychain.

    `root` is None for a limited device. `next_wrap` is a new wrap key that was sent to the log and not yet seen in it.
    `former` is (id, keys) of the incarnation before this one, until the log certifies this one.
    """

    account: bytes
    device: bytes
    keys: DeviceKeys
    root: RootKey | None = None
    next_wrap: WrapKeys | None = None
    former: tuple[bytes, DeviceKeys] | None = None


class Vault(Protocol):
    """Where a device keeps its secrets, and a sealed copy of the newest keyring in case the server loses it."""

    async def load(self) -> Secrets | None:
        """Return what was saved last, or None."""

    async def save(self, secrets: Secrets) -> None:
        """Replace what is kept; when this returns, it is there."""

    async def keyring(self) -> bytes | None:
        """Return the sealed keyring that was kept last, or None."""

    async def keep_keyring(self, data: bytes) -> None:
        """Replace the sealed keyring."""

    async def erase(self) -> None:
        """Delete all of it. A second call does nothing."""
