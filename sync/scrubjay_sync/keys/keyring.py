"""The keyring that full devices share, and the limited keyring that a limited device gets."""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_shared import envelope, sealing
from scrubjay_shared.envelope import Envelope, Header, ObjectKind
from scrubjay_shared.errors import (
    BadSignatureError,
    CorruptError,
    InvalidError,
    MalformedError,
    UpdateNeededError,
    WrongKeyError,
)
from scrubjay_shared.wire import LIMITED_WRAP, Wrap
from scrubjay_sync.keys.keypairs import Entropy, Opener, RootKey
from scrubjay_sync.keys.wraps import check_wrap, seal_to, wrap_info

KEYRING_FORMAT = 1
"""How a keyring or an extract looks inside; a higher number is refused, because rewriting it would lose fields."""


_NO_SCOPE = bytes(16)
KEYRING_BYTES = envelope.MAX_OBJECT_BYTES - 32 * 1024
"""What a keyring may have: an object's most, without its header, and the 16 KiB that padding may add at that size."""
LIMITED_BYTES = 6_800
"""What the keyring of a limited device may have: a wrap has 8,192 bytes, 1,200 of them for HPKE and the signature."""
KEY_ROOM = 40
"""Bytes that one more key of a scope takes: the key, its epoch, and what MessagePack adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeKeys:
    """What the keyring says of one scope: its name, its key of each epoch, and the projects bound to it.

    A searchable scope has no keys: its objects are not sealed.
    """

    name: str
    keys: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """What full devices share and the server may not see: the keys and names of scopes, and the names of devices."""

    scopes: Mapping[bytes, ScopeKeys] = field(default_factory=dict)
    devices: Mapping[bytes, str] = field(default_factory=dict)
    """Names of devices, by id."""
    format: int = KEYRING_FORMAT

    def with_scope(self, scope: bytes, keys: ScopeKeys) -> Keyring:
        """Return the keyring with a scope added or replaced."""
        return replace(self, scopes={**self.scopes, scope: keys})

    def without_scope(self, scope: bytes) -> Keyring:
        """Return the keyring without a scope: what was sealed in it opens no more."""
        return replace(self, scopes={one: keys for one, keys in self.scopes.items() if one != scope})

    def with_device(self, device: bytes, name: str) -> Keyring:
        """Return the keyring with a device's name."""
        return replace(self, devices={**self.devices, device: name})


def rotations_left(keyring: Keyring) -> int:
    """Return how often every sealed scope can still be given a new key before the keyring is full; below 0 it is.

    Old keys stay in it, because old objects want them: only deleting a scope makes room.
    """
    sealed = sum(bool(scope.keys) for scope in keyring.scopes.values())
    return (KEYRING_BYTES - len(msgspec.msgpack.encode(keyring))) // (KEY_ROOM * max(sealed, 1))


_keyring_decoder = msgspec.msgpack.Decoder(Keyring)


def seal_keyring(
    keyring: Keyring,
    *,
    account: bytes,
    device: bytes,
    version: int,
    root: RootKey,
    entropy: Entropy,
    sign: Callable[[bytes], bytes],
) -> Envelope:
    """Return the object of a keyring: sealed with the root's wrap key, `n` its version, `epoch` the root's."""
    header = Header(
        suite=envelope.Suite.SEALED,
        kind=ObjectKind.KEYRING,
        account=account,
        scope=_NO_SCOPE,
        device=device,
        n_from=version,
        n_to=version,
        prev=envelope.ZERO,
        epoch=root.version,
    )
    payload = msgspec.msgpack.encode(keyring)
    return sealing.seal(header, payload, key=root.wrap_key, salt=entropy(32), sign=sign)


def digest_of(data: bytes) -> bytes:
    """Return the SHA-256 under which the server keeps a keyring, and which the account log names."""
    return hashlib.sha256(data).digest()


def open_keyring(data: bytes, *, account: bytes, version: int, digest: bytes, root: RootKey) -> Keyring:
    """Return the keyring of an object: the very one that the account log names.

    Raises BadSignatureError when it is another one, WrongKeyError when the root key does not open it.
    """
    if not hmac.compare_digest(digest_of(data), digest):
        raise BadSignatureError(
            "the server hands out another keyring than the account log names", hint="scrubjay sync verify"
        )
    sealed = envelope.parse(data)
    header = sealed.header
    if (header.kind, header.account, header.n_from) != (ObjectKind.KEYRING, account, version):
        raise CorruptError("the keyring from the server is of another account or version", hint="scrubjay sync verify")
    if header.epoch != root.version:
        raise WrongKeyError(
            "the keyring was sealed with another root key",
            hint="scrubjay sync fetches it again; if this stays, scrubjay sync verify",
        )
    return _decoded(_keyring_decoder, sealing.unseal(sealed, key=root.wrap_key))


def epoch_of_keyring(data: bytes) -> int:
    """Return the version of the root key that a sealed keyring needs. Raises MalformedError."""
    return envelope.parse(data).header.epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedKeyring:
    """The part of a keyring that a limited device gets: no signing key, only the scopes it was made for."""

    scopes: Mapping[bytes, ScopeKeys]
    name: str = ""
    format: int = KEYRING_FORMAT


_limited_decoder = msgspec.msgpack.Decoder(LimitedKeyring)


_SIGNATURE_BYTES = 64


def _newest(scope: ScopeKeys, count: int) -> ScopeKeys:
    """Return a scope with so many of its keys, the newest."""
    newest = sorted(scope.keys)[max(len(scope.keys) - count, 0) :]
    return replace(scope, keys={epoch: scope.keys[epoch] for epoch in newest})


def limited_keyring_of(keyring: Keyring, device: bytes, scopes: tuple[bytes, ...]) -> LimitedKeyring:
    """Return what a limited device may have of a keyring: of each scope's keys, the newest that there is room for.

    What was sealed under older ones opens no more on that device. Were they all in it, no key could be replaced once
    they fill a wrap: not even to revoke a stolen device. Raises InvalidError for more scopes than one key each of them
    has room for.
    """
    mine = {scope: keyring.scopes[scope] for scope in scopes if scope in keyring.scopes}
    name = keyring.devices.get(device, "")

    def with_newest(count: int) -> LimitedKeyring:
        return LimitedKeyring(scopes={scope: _newest(one, count) for scope, one in mine.items()}, name=name)

    most = max((len(one.keys) for one in mine.values()), default=0)
    too_many = bisect(
        range(most + 1), LIMITED_BYTES, key=lambda count: len(msgspec.msgpack.encode(with_newest(count)))
    )  # the first count of keys that takes more
    if too_many > min(most, 1):
        return with_newest(too_many - 1)
    raise InvalidError(
        f"a limited device cannot hold the keys of {len(mine)} scopes with these names and projects",
        hint="give it fewer scopes: make several devices, each for some of them",
    )


def wrap_limited_keyring(
    extract: LimitedKeyring, *, account: bytes, target: bytes, version: int, wrap_pub: bytes, root: RootKey
) -> Wrap:
    """Return an extract of keyring `version`, signed by the account and sealed to a limited device.

    The signature is part of what is sealed: without it, anybody who knows the device's public key could give it other
    keys.
    """
    payload = msgspec.msgpack.encode(extract)
    signature = root.sign(_signed_message(account, target, version, payload))
    sealed = seal_to(signature + payload, wrap_pub, wrap_info(account, target, LIMITED_WRAP, version))
    return Wrap(target=target, kind=LIMITED_WRAP, version=version, sealed=sealed)


def unwrap_limited_keyring(wrap: Wrap, *, account: bytes, target: bytes, ask: bytes, holder: Opener) -> LimitedKeyring:
    """Return the extract of a wrap, if the account's key `ask` signed it. Raises BadSignatureError, WrongKeyError."""
    check_wrap(wrap, LIMITED_WRAP, target)
    opened = holder.opened(wrap.sealed, wrap_info(account, target, LIMITED_WRAP, wrap.version))
    signature, payload = opened[:_SIGNATURE_BYTES], opened[_SIGNATURE_BYTES:]
    try:
        Ed25519PublicKey.from_public_bytes(ask).verify(
            signature, _signed_message(account, target, wrap.version, payload)
        )
    except InvalidSignature as error:
        raise BadSignatureError(
            "this device's keys were not signed by the account", hint="scrubjay sync verify"
        ) from error
    return _decoded(_limited_decoder, payload)


def _signed_message(account: bytes, target: bytes, version: int, payload: bytes) -> bytes:
    return b"sjs/1/extract" + account + target + version.to_bytes(4, "big") + payload


Shape = TypeVar("Shape", Keyring, LimitedKeyring)


def _decoded(decoder: msgspec.msgpack.Decoder[Shape], payload: bytes) -> Shape:
    try:
        found = decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("the keyring is not in the format of this version", hint="update scrubjay") from error
    if found.format > KEYRING_FORMAT:
        raise UpdateNeededError("the keyring was written by a newer scrubjay", hint="update scrubjay on this device")
    return found
