"""Key pairs and secrets: the account's root key, a device's keys, and what they are derived from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    Suite,
)
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from scrubjay_shared.errors import (
    WrongKeyError,
)

KEY_BYTES = 32


MLKEM_SEED_BYTES = 64


MLKEM_PUB_BYTES = 1184


WRAP_PUB_BYTES = MLKEM_PUB_BYTES + 32


HPKE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


Entropy = Callable[[int], bytes]
"""Gives that many random bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootKey:
    """What full devices share, of one version: a random secret, and the key that signs the account log (ASK).

    The two are made, wrapped and replaced together. Whoever wraps a root key must know ASK's seed, so that the public
    half in the log proves a wrap before anything is opened with it.
    """

    version: int
    secret: bytes = field(repr=False)
    ask_seed: bytes = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy, version: int) -> RootKey:
        """Return a fresh one: at sign-up and at a rotation, and nowhere else."""
        return cls(version=version, secret=entropy(KEY_BYTES), ask_seed=entropy(KEY_BYTES))

    @property
    def wrap_key(self) -> bytes:
        """The key that the keyring is sealed with."""
        return derived(self.secret, b"sjs/1/wrapkey")

    @property
    def ask(self) -> bytes:
        """The public half of the key that signs the account log."""
        return public_of(self.ask_seed)

    def sign(self, message: bytes) -> bytes:
        """Sign for the account."""
        return signer(self.ask_seed)(message)


class Opener(Protocol):
    """Whoever holds an HPKE key pair: a device, or the recovery code."""

    @property
    def wrap_pub(self) -> bytes:
        """The public half, 1,216 bytes: ML-KEM-768, then X25519."""

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to it. Raises WrongKeyError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapKeys:
    """An HPKE key pair (X-Wing: ML-KEM-768 and X25519), as the two seeds that it is made from."""

    mlkem_seed: bytes = field(repr=False)
    x25519_seed: bytes = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy) -> WrapKeys:
        """Return fresh ones."""
        return cls(mlkem_seed=entropy(MLKEM_SEED_BYTES), x25519_seed=entropy(KEY_BYTES))

    @property
    def wrap_pub(self) -> bytes:
        """The public half, 1,216 bytes."""
        mlkem, x25519 = self._halves()
        return mlkem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw()

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to these keys for this purpose. Raises WrongKeyError."""
        try:
            return HPKE.decrypt(sealed, MLKEM768X25519PrivateKey(*self._halves()), info=info)
        except InvalidTag as error:
            raise WrongKeyError(
                "a key from the server was not encrypted for this device or code", hint="scrubjay sync verify"
            ) from error

    def _halves(self) -> tuple[MLKEM768PrivateKey, X25519PrivateKey]:
        return MLKEM768PrivateKey.from_seed_bytes(self.mlkem_seed), X25519PrivateKey.from_private_bytes(
            self.x25519_seed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKeys:
    """A device's own keys: one signs what it writes, the other opens what is wrapped for it."""

    sign_seed: bytes = field(repr=False)
    wrap: WrapKeys = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy) -> DeviceKeys:
        """Return fresh ones."""
        return cls(sign_seed=entropy(KEY_BYTES), wrap=WrapKeys.new(entropy))

    @property
    def sign_pub(self) -> bytes:
        """The Ed25519 public key, 32 bytes."""
        return public_of(self.sign_seed)

    @property
    def wrap_pub(self) -> bytes:
        """The HPKE public key, 1,216 bytes."""
        return self.wrap.wrap_pub

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to this device. Raises WrongKeyError."""
        return self.wrap.opened(sealed, info)


def signer(seed: bytes) -> Callable[[bytes], bytes]:
    """Return what signs messages with an Ed25519 seed."""
    return Ed25519PrivateKey.from_private_bytes(seed).sign


def public_of(seed: bytes) -> bytes:
    """Return the Ed25519 public key of a seed."""
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def derived(secret: bytes, info: bytes, length: int = KEY_BYTES) -> bytes:
    """Return a key derived from a secret for one purpose (HKDF-SHA256)."""
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=info).derive(secret)
