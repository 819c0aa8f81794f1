"""Entries of the account log: their bytes, and what each kind says. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import msgspec

from scrubjay_shared.envelope import SIGNATURE_BYTES, Suite
from scrubjay_shared.errors import MalformedError

MAX_ENTRY_BYTES = 64 * 1024


class EntryType(IntEnum):
    """What an entry says. Numbers are wire format: never reused."""

    GENESIS = 1
    DEVICE_ADD = 2
    DEVICE_REVOKE = 3
    DEVICE_REKEY = 4
    ROTATE = 5
    KEYRING_SET = 6
    SCOPE_CREATE = 7
    SCOPE_DELETE = 8
    EPOCH_ADD = 9
    LANE_ADOPT = 11
    RECOVERY_ROTATE = 12
    ORIGIN_ADD = 13
    VOID = 14
    RECOVERY_CONFIRM = 15
    CHECKPOINT = 20


class Signer(IntEnum):
    """Which key an entry's first signature is of."""

    ASK = 1
    RSK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, read: not yet verified."""

    seq: int
    prev: bytes
    type: int
    body: dict[int, Any]
    signer: int
    author: bytes
    data: bytes

    @property
    def text(self) -> bytes:
        """What both signatures are over."""
        return self.data[:-_SIGNATURES]

    @property
    def signature(self) -> bytes:
        """The signer's, 64 bytes."""
        return self.data[-_SIGNATURES:-SIGNATURE_BYTES]

    @property
    def cosignature(self) -> bytes:
        """The author's, 64 bytes."""
        return self.data[-SIGNATURE_BYTES:]

    @property
    def hash(self) -> bytes:
        """What the next entry names as `prev`."""
        return hashlib.sha256(b"sjs/1/entry" + self.data).digest()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, bytes, int, dict[int, Any], int, bytes])
_first_format = msgspec.msgpack.Decoder(tuple[int, bytes, int, dict[int, Any], int])
_FIVE_ITEMS = 0x95
"""How an entry without an author begins."""
_SIGNATURES = 2 * SIGNATURE_BYTES
CODE_AUTHOR = bytes(16)
"""The author of an entry that the recovery code made, without a device of the account."""
NEWER = "it may come from a newer version: update scrubjay"


def entry(
    account: bytes,
    *,
    seq: int,
    prev: bytes,
    type: EntryType,  # noqa: A002 - the field's name everywhere
    body: dict[int, Any],
    sign: Callable[[bytes], bytes],
    author: bytes,
    cosign: Callable[[bytes], bytes],
    signer: Signer = Signer.ASK,
) -> bytes:
    """Return the bytes of a new entry.

    `sign` makes the Ed25519 signature with the signer's key, `cosign` with that of the device `author`, or with the
    recovery code's where the author is `CODE_AUTHOR`.
    """
    text = _encoder.encode((seq, prev, int(type), body, int(signer), author))
    return text + sign(signed_message(account, text)) + cosign(cosigned_message(account, text))


def signed_message(account: bytes, text: bytes) -> bytes:
    """Return what the signer of an entry signs."""
    return b"sjs/1/log" + account + text


def cosigned_message(account: bytes, text: bytes) -> bytes:
    """Return what the author of an entry signs."""
    return b"sjs/1/author" + account + text


def code_message(account: bytes, prev: bytes, rsk: bytes, recovery_pub: bytes, at: int) -> bytes:
    """Return what a new recovery code signs: the account, its log up to there, and both of its own keys.

    Without it, whoever knows a code's public keys could put them into an account of their own making, and its owner
    would take that account for theirs.
    """
    return b"sjs/1/rec/bind" + account + prev + rsk + recovery_pub + at.to_bytes(8, "big")


def read(data: bytes) -> Entry:
    """Return the entry of some bytes, unverified. Raises MalformedError."""
    if len(data) > SIGNATURE_BYTES and _is_of_first_format(data):
        raise MalformedError(
            "the account was made by an earlier beta, whose accounts do not say who changed them",
            hint="make it anew: scrubjay logout --force, then scrubjay login --sign-up under another name; all memories"
            " stay on this machine",
        )
    if not _SIGNATURES < len(data) <= MAX_ENTRY_BYTES:
        raise MalformedError(
            f"an account log entry has {len(data)} bytes: an entry has {_SIGNATURES + 1} to {MAX_ENTRY_BYTES}",
            hint="fetch the log again",
        )
    try:
        seq, prev, kind, body, signer, author = _decoder.decode(data[:-_SIGNATURES])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("an account log entry is not in the format of this version", hint=NEWER) from error
    if seq < 0 or len(prev) != 32 or len(author) != len(CODE_AUTHOR):
        raise MalformedError(
            f"an account log entry has number {seq}, a link of {len(prev)} bytes and an author of {len(author)}",
            hint=NEWER,
        )
    return Entry(seq=seq, prev=prev, type=kind, body=body, signer=signer, author=author, data=data)


def _is_of_first_format(data: bytes) -> bool:
    if data[0] != _FIVE_ITEMS:
        return False
    try:
        _first_format.decode(data[:-SIGNATURE_BYTES])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def genesis_body(account: bytes, *, ask: bytes, rsk: bytes, recovery_pub: bytes, origin: str) -> dict[int, Any]:
    """Return the body of entry 0: the account's id, its first keys, and the server it was made for."""
    return {1: account, 2: ask, 3: rsk, 4: recovery_pub, 5: [int(suite) for suite in Suite], 6: origin}


def device_body(
    device: bytes, *, sign_pub: bytes, wrap_pub: bytes, scopes: Sequence[bytes] | None = None, read_only: bool = False
) -> dict[int, Any]:
    """Return the body that certifies a device; `scopes` not None makes a limited one."""
    body: dict[int, Any] = {1: device, 2: sign_pub, 3: wrap_pub}
    if scopes is not None:
        body |= {4: list(scopes), 5: read_only}
    return body


def recovery_body(
    account: bytes, prev: bytes, *, rsk: bytes, recovery_pub: bytes, at: int, sign: Callable[[bytes], bytes]
) -> dict[int, Any]:
    """Return the body that puts another recovery code in the place of the last; `sign` is the new code's.

    `prev` is the hash of the entry before, so that the body stands nowhere else.
    """
    return {1: rsk, 2: recovery_pub, 3: at, 4: sign(code_message(account, prev, rsk, recovery_pub, at))}


def revoke_body(device: bytes, ends: Mapping[bytes, tuple[int, bytes]]) -> dict[int, Any]:
    """Return the body that ends a device: its history counts up to `ends`, by scope (n, link)."""
    return {1: device, 2: [[scope, n, tip] for scope, (n, tip) in sorted(ends.items())]}


LANES_AN_ENTRY = 800
"""Ends of lanes that one entry has room for, at 75 bytes each."""


def revoke_bodies(device: bytes, ends: Mapping[tuple[bytes, bytes], tuple[int, bytes]]) -> list[dict[int, Any]]:
    """Return the bodies that end a device: its history counts up to `ends`, (n, link) by (scope, whose lane).

    One body is enough but for a limited device with very many instances.
    """
    own = {scope: end for (scope, writer), end in ends.items() if writer == device}
    others = [[scope, n, tip, writer] for (scope, writer), (n, tip) in sorted(ends.items()) if writer != device]
    bodies = [revoke_body(device, own)]
    bodies[0][2] += others[:LANES_AN_ENTRY]
    starts = range(LANES_AN_ENTRY, len(others), LANES_AN_ENTRY)
    return [*bodies, *({1: device, 2: others[start : start + LANES_AN_ENTRY]} for start in starts)]


def scope_body(scope: bytes, *, suite: Suite, home: bool = False, space: str = "") -> dict[int, Any]:
    """Return the body that makes a scope; its suite is for ever."""
    return {1: scope, 2: int(suite), 3: home, 4: space}
