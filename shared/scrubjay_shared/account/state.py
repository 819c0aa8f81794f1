"""What an account log adds up to: keys, devices, scopes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrubjay_shared.errors import InvalidError


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as the log certifies it.

    `scopes` None means all, with the account's root key; else a limited device, given the keys of these scopes only.
    `ends` is how far its lanes counted when it was revoked, by scope: (n, link); None while it is in force.
    `added` is the entry that added it, `added_by` the device that made that entry (its own id for the first one of an
    account), 16 zeros for the recovery code.
    """

    id: bytes
    sign_pub: bytes
    wrap_pub: bytes
    added: int
    added_by: bytes = bytes(16)
    scopes: tuple[bytes, ...] | None = None
    read_only: bool = False
    ends: Mapping[bytes, tuple[int, bytes]] | None = None

    @property
    def revoked(self) -> bool:
        """Whether it may write no more."""
        return self.ends is not None

    @property
    def full(self) -> bool:
        """Whether it holds the account's root key."""
        return self.scopes is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeState:
    """A scope as the log declares it. Its mode never changes; `space` is the embedding space of a searchable one."""

    id: bytes
    suite: int
    home: bool
    epoch: int = 0
    deleted: bool = False
    space: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """What a log adds up to after entry `seq`, whose hash is `head`."""

    account: bytes
    genesis: bytes
    seq: int
    head: bytes
    ask: bytes
    version: int
    rsk: bytes
    recovery_pub: bytes
    origins: tuple[str, ...]
    devices: Mapping[bytes, Device] = field(default_factory=dict)
    scopes: Mapping[bytes, ScopeState] = field(default_factory=dict)
    keyring: tuple[int, bytes] | None = None
    adopters: Mapping[tuple[bytes, bytes], tuple[bytes, ...]] = field(default_factory=dict)
    waiting_recovery: tuple[bytes, bytes, int] | None = None
    """A change of the recovery key that an entry may confirm later: (RSK public, wrap public, from when)."""

    @property
    def home(self) -> bytes:
        """The id of the home scope. Raises InvalidError before there is one."""
        for scope in self.scopes.values():
            if scope.home:
                return scope.id
        raise InvalidError("the account log makes no home scope, which every account has", hint="sign up again")

    def active(self) -> tuple[Device, ...]:
        """Return the devices in force, in the order they were added."""
        return tuple(
            sorted((device for device in self.devices.values() if not device.revoked), key=lambda one: one.added)
        )

    def keys_of(self, scope: bytes, device: bytes, *, pack: bool = False) -> tuple[bytes, ...]:
        """Return the public keys that may have signed an object of a lane; a pack may be an adopter's."""
        owners = (device, *(self.adopters.get((scope, device), ()) if pack else ()))
        return tuple(self.devices[one].sign_pub for one in owners if one in self.devices)
