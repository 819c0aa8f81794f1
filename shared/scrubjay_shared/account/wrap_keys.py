"""Public keys that something is wrapped for: whether they are ones. Pure.

Whoever makes a new root key wraps it for every device of the account. One whose key is none would end that for all, so
such a key is refused where it comes in, and passed over where it stands already.
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from scrubjay_shared.account.entries import EntryType, read
from scrubjay_shared.errors import InvalidError

WRAP_PUB_BYTES = 1216
"""ML-KEM-768, then X25519."""
_COEFFICIENT_BYTES = 1152
"""Of an ML-KEM-768 key: 768 numbers of 12 bits; a seed of 32 bytes follows."""
_MODULUS = 3329
_X25519_BYTES = 32
_PLACE = {EntryType.GENESIS: 4, EntryType.DEVICE_ADD: 3, EntryType.DEVICE_REKEY: 2, EntryType.RECOVERY_ROTATE: 2}
"""The field of an entry that holds such a key."""


def is_wrap_pub(key: bytes) -> bool:
    """Say whether something can be wrapped for a public key: FIPS 203's check of its ML-KEM half, and no X25519 point
    of small order, whose shared secret would be zeros.
    """  # noqa: D205 - one thought
    if len(key) != WRAP_PUB_BYTES:
        return False
    packed = int.from_bytes(key[:_COEFFICIENT_BYTES], "little")
    if any((packed >> shift) & 0xFFF >= _MODULUS for shift in range(0, _COEFFICIENT_BYTES * 8, 12)):
        return False
    try:
        X25519PrivateKey.from_private_bytes(b"\1" * _X25519_BYTES).exchange(
            X25519PublicKey.from_public_bytes(key[-_X25519_BYTES:])
        )
    except ValueError:
        return False
    return True


def check_wrap_keys(entries: Iterable[bytes]) -> None:
    """Check the wrap keys that new entries bring. Raises InvalidError, MalformedError."""
    for new in map(read, entries):
        field = _PLACE.get(EntryType(new.type)) if new.type in set(EntryType) else None
        key = None if field is None else new.body.get(field)
        if isinstance(key, bytes) and not is_wrap_pub(key):
            raise InvalidError(
                f"account log entry {new.seq} brings a wrap key that is none: nothing could be encrypted for it",
                hint="make the device, or the code, again with the program that is in use",
            )
