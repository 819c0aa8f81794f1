"""From a password to the key that proves it to one server."""

from __future__ import annotations

import unicodedata

from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.wire import Kdf
from scrubjay_sync.keys.keypairs import KEY_BYTES, Entropy, derived
from scrubjay_sync.policy import IDENTITY


def new_kdf(entropy: Entropy) -> Kdf:
    """Return the parameters that a new password is derived with, and a fresh salt."""
    return Kdf(
        salt=entropy(16),
        memory_kib=IDENTITY.kdf_memory_kib,
        iterations=IDENTITY.kdf_iterations,
        lanes=IDENTITY.kdf_lanes,
    )


def check_kdf(kdf: Kdf, pinned: Kdf | None = None) -> None:
    """Refuse parameters that would make guessing cheap, or deriving a denial of service.

    `pinned` are those that this device saw before: a server may name stronger ones (the password was changed
    elsewhere), never weaker ones. Raises InvalidError.
    """
    if (
        len(kdf.salt) != 16
        or kdf.memory_kib < IDENTITY.kdf_floor_memory_kib
        or kdf.iterations < IDENTITY.kdf_floor_rounds
    ):
        raise InvalidError(
            "the server asks for a weaker password derivation than is safe",
            hint="nothing was sent; ask its operator, or use another server",
        )
    if kdf.memory_kib > IDENTITY.kdf_ceiling_memory_kib or kdf.iterations > IDENTITY.kdf_ceiling_rounds:
        raise InvalidError(
            "the server asks for a password derivation that would take minutes",
            hint="nothing was sent; ask its operator",
        )
    if not 1 <= kdf.lanes <= IDENTITY.kdf_ceiling_lanes:
        raise InvalidError(
            "the server asks for a password derivation that does not exist", hint="nothing was sent; ask its operator"
        )
    if pinned is not None and (kdf.memory_kib < pinned.memory_kib or kdf.iterations < pinned.iterations):
        raise InvalidError(
            "the server asks for a weaker password derivation than before",
            hint="nothing was sent; if nobody changed the password, the server is not to be trusted",
        )


def auth_key(password: str, kdf: Kdf, origin: str, pinned: Kdf | None = None) -> bytes:
    """Return the 32 bytes that prove a password to one server; it opens no data. Slow on purpose (0.3 s).

    HKDF-SHA256(Argon2id(NFKC(password))), bound to the server's address, so that one server cannot use what another
    was shown. Raises as `check_kdf`; InvalidError for an empty password.
    """
    check_kdf(kdf, pinned)
    words = unicodedata.normalize("NFKC", password)
    if not words:
        raise InvalidError("the password is empty", hint="type the password of the account")
    stretched = Argon2id(
        salt=kdf.salt, length=KEY_BYTES, iterations=kdf.iterations, lanes=kdf.lanes, memory_cost=kdf.memory_kib
    ).derive(words.encode("utf-8", "surrogatepass"))
    return derived(stretched, b"sjs/1/auth" + origin.encode())
