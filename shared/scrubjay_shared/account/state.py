"""What an account log adds up to: keys, devices, scopes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrubjay_shared.errors import InvalidError

_FAMILY_BYTES = 8
"""How much of a limited device's id all its instances share."""
LaneEnd = tuple[int, bytes]
"""Where a lane ends: (n, link)."""


def instance_of(device: bytes, random: bytes) -> bytes:
    """Return the id of one more instance of a limited device, from 8 random bytes.

    Everything that runs with the same bundle signs with the same key, and writes lanes of its own under an id of its
    own: so as many can begin as somebody likes, one after the other or at once, and none needs to be let in again.
    """
    return device[:_FAMILY_BYTES] + random[:_FAMILY_BYTES]


def are_related(device: bytes, other: bytes) -> bool:
    """Say whether one of two ids could be an instance of the other."""
    return device[:_FAMILY_BYTES] == other[:_FAMILY_BYTES]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as the log certifies it.

    `scopes` None means all, with the account's root key; else a limited device, given the keys of these scopes only.
    `ends` is how far its lanes counted when it was revoked, by scope: (n, link); None while it is in force.
    `instance_ends` is the same of a limited device's instances, by (instance, scope).
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
    ends: Mapping[bytes, LaneEnd] | None = None
    instance_ends: Mapping[tuple[bytes, bytes], LaneEnd] = field(default_factory=dict)

    @property
    def revoked(self) -> bool:
        """Whether it may write no more."""
        return self.ends is not None

    @property
    def full(self) -> bool:
        """Whether it holds the account's root key."""
        return self.scopes is None

    def end_of(self, scope: bytes, writer: bytes) -> LaneEnd | None:
        """Return how far a lane counts that this device, or the instance `writer` of it, has in a scope.

        None while the device is in force; (0, b"") for a lane that was not named when it was revoked.
        """
        if self.ends is None:
            return None
        if writer == self.id:
            return self.ends.get(scope, (0, b""))
        return self.instance_ends.get((writer, scope), (0, b""))


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
    checkpoint: int = 0
    """The number of the newest checkpoint entry; 0 while there is none: the genesis is as good as one."""

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

    def device_of(self, writer: bytes) -> Device | None:
        """Return the device that a lane is of: the one with that id, or the limited one that it is an instance of."""
        exact = self.devices.get(writer)
        if exact is not None:
            return exact
        return next((one for one in self.devices.values() if not one.full and are_related(one.id, writer)), None)

    def adopters_of(self, scope: bytes, writer: bytes) -> tuple[bytes, ...]:
        """Return the devices that may pack a lane besides its own."""
        device = self.device_of(writer)
        return () if device is None else self.adopters.get((scope, device.id), ())

    def keys_of(self, scope: bytes, writer: bytes, *, pack: bool = False) -> tuple[bytes, ...]:
        """Return the public keys that may have signed an object of a lane; a pack may be an adopter's."""
        device = self.device_of(writer)
        if device is None:
            return ()
        adopters = self.adopters_of(scope, writer) if pack else ()
        return (device.sign_pub, *(self.devices[one].sign_pub for one in adopters if one in self.devices))
