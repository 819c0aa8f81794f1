"""What proves who one is, and the two small things the server signs for itself: nonces and cursors. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from scrubjay_cloud.policy import CloudPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, ExpiredError, InvalidError, UnauthenticatedError
from scrubjay_shared.wire import Kdf

AUTH_KEY_BYTES = 32
SALT_BYTES = 16
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-+@")
"""A user name is for typing, and no two may look alike."""

_TAG_BYTES = 16
NONCE_RANDOM_BYTES = 16
TOTP_STEP_S = 30
TOTP_DIGITS = 6
TOTP_NONCE_BYTES = 12
_SEALED_TOTP = b"\0sj\1"
"""How a sealed secret begins."""


def folded(username: str, policy: CloudPolicy) -> str:
    """Return the name that an account is looked up by. Raises InvalidError for what cannot be a user name."""
    name = unicodedata.normalize("NFKC", username).strip().casefold()
    if not 1 <= len(name) <= policy.max_username or not set(name) <= NAME_CHARACTERS:
        raise InvalidError(
            "the user name is not valid",
            hint=f"1 to {policy.max_username} letters a-z, digits and . _ - + @, for example ann",
        )
    return name


def password_hash(auth_key: bytes, salt: bytes, pepper: bytes, policy: CloudPolicy) -> bytes:
    """Return what is stored of a derived key: Argon2id(HMAC(pepper, auth_key)). Costs 43 ms of CPU."""
    return Argon2id(
        salt=salt,
        length=32,
        iterations=policy.hash_iterations,
        lanes=policy.hash_lanes,
        memory_cost=policy.hash_memory_kib,
    ).derive(hmac.digest(pepper, auth_key, "sha256"))


def check_auth_key(auth_key: bytes) -> None:
    """Raise InvalidError when a key cannot be one: said of the request, whatever the account."""
    if len(auth_key) != AUTH_KEY_BYTES:
        raise InvalidError("the key that was derived from the password must have 32 bytes", hint="update scrubjay")


def check_kdf(kdf: Kdf, policy: CloudPolicy) -> None:
    """Raise InvalidError when a client's own derivation is too weak, or its salt has not 16 bytes."""
    if (
        len(kdf.salt) != SALT_BYTES
        or not policy.kdf_min_memory_kib <= kdf.memory_kib < 1 << 22
        or not policy.kdf_min_iterations <= kdf.iterations < 1 << 16
        or not 1 <= kdf.lanes < 1 << 8
    ):
        raise InvalidError(
            "the password derivation is weaker than this server allows",
            hint=f"Argon2id with a salt of 16 bytes, {policy.kdf_min_memory_kib} KiB and "
            f"{policy.kdf_min_iterations} iterations at least",
        )


def fake_kdf(key: bytes, name: str) -> Kdf:
    """Return the parameters of a name that nobody has: always the same, and what a client would have chosen."""
    return Kdf(salt=hmac.digest(key, name.encode(), "sha256")[:SALT_BYTES], memory_kib=64 * 1024, iterations=3, lanes=4)


def totp(secret: bytes, step: int) -> str:
    """Return the code of a time step (RFC 6238, SHA-1, six digits, as every authenticator app has them).

    >>> totp(b"12345678901234567890", 1)
    '287082'
    """
    digest = hmac.digest(secret, step.to_bytes(8, "big"), "sha1")
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFF_FFFF
    return str(number % 10**TOTP_DIGITS).zfill(TOTP_DIGITS)


def sealed_totp(pepper: bytes, account: bytes, secret: bytes, nonce: bytes) -> bytes:
    """Return the secret of a second factor as it is stored: sealed, so that a copy of the database gives no codes."""
    return _SEALED_TOTP + nonce + AESGCMSIV(_totp_key(pepper)).encrypt(nonce, secret, account)


def opened_totp(pepper: bytes, account: bytes, stored: bytes) -> bytes:
    """Return the secret of a second factor; one of before it was sealed is as it was.

    Raises CorruptError when the pepper is not the one that it was sealed under.
    """
    if not stored.startswith(_SEALED_TOTP):
        return stored
    at = len(_SEALED_TOTP) + TOTP_NONCE_BYTES
    try:
        return AESGCMSIV(_totp_key(pepper)).decrypt(stored[len(_SEALED_TOTP) : at], stored[at:], account)
    except InvalidTag as error:
        raise CorruptError(
            "the server cannot open what it keeps of the second factor",
            hint="its operator must set SCRUBJAY_CLOUD_PEPPER to what it was when the account set it up",
        ) from error


def _totp_key(pepper: bytes) -> bytes:
    return hmac.digest(pepper, b"totp", "sha256")


def totp_step(secret: bytes, code: str, now: Millis, last: int) -> int | None:
    """Return the time step that a code is of: this one or a neighbour, after `last`; None for any other."""
    here = now // 1000 // TOTP_STEP_S
    for step in (here, here - 1, here + 1):
        if step > last and hmac.compare_digest(totp(secret, step).encode(), code.encode()):
            return step
    return None


def nonce(key: bytes, device: bytes, now: Millis, random: bytes) -> bytes:
    """Return a nonce for a device to sign: its time and randomness, under the server's own tag. 40 bytes."""
    body = now.to_bytes(8, "big") + random
    return body + hmac.digest(key, device + body, "sha256")[:_TAG_BYTES]


def check_nonce(key: bytes, device: bytes, given: bytes, now: Millis, lifetime_ms: int) -> None:
    """Raise UnauthenticatedError when a nonce is not ours for that device, ExpiredError when it is too old."""
    body, tag = given[:-_TAG_BYTES], given[-_TAG_BYTES:]
    if len(body) != 8 + NONCE_RANDOM_BYTES or not hmac.compare_digest(
        hmac.digest(key, device + body, "sha256")[:_TAG_BYTES], tag
    ):
        raise UnauthenticatedError("the challenge was not made by this server", hint="ask for a new one")
    if not 0 <= now - int.from_bytes(body[:8], "big") <= lifetime_ms:
        raise ExpiredError("the challenge has expired", hint="ask for a new one")


def cursor(key: bytes, account: bytes, gseq: int) -> str:
    """Return the cursor of a position (`gseq`) in an account."""
    position = gseq.to_bytes(8, "big")
    return base64.urlsafe_b64encode(position + _cursor_tag(key, account, position)).decode()


def read_cursor(key: bytes, account: bytes, given: str) -> int:
    """Return the position (`gseq`) of a cursor; "" is the beginning. Raises InvalidError when we did not make it."""
    if not given:
        return 0
    try:
        data = base64.b64decode(given.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError as error:
        raise _foreign_cursor() from error
    if not hmac.compare_digest(_cursor_tag(key, account, data[:8]), data[8:]):
        raise _foreign_cursor()
    return int.from_bytes(data[:8], "big")


def _cursor_tag(key: bytes, account: bytes, position: bytes) -> bytes:
    return hmac.digest(key, account + position, "sha256")[:_TAG_BYTES]


def _foreign_cursor() -> InvalidError:
    return InvalidError("the cursor was not made by this server for this account", hint="begin without a cursor")


def token_hash(token: str) -> bytes:
    """Return what is stored of a token or an invitation: its SHA-256. They are random, so that no salt is needed."""
    return hashlib.sha256(token.encode()).digest()


def token_text(random: bytes) -> str:
    """Return a token of 32 random bytes."""
    return base64.urlsafe_b64encode(random).decode().rstrip("=")
