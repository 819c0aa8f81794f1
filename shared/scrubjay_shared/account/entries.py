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


class Signer(IntEnum):
    """Whose signature an entry bears."""

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
    data: bytes

    @property
    def hash(self) -> bytes:
        """What the next entry names as `prev`."""
        return hashlib.sha256(b"sjs/1/entry" + self.data).digest()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, bytes, int, dict[int, Any], int])
NEWER = "it may come from a newer version: update scrubjay"


def entry(
    account: bytes,
    *,
    seq: int,
    prev: bytes,
    type: EntryType,  # noqa: A002 - the field's name everywhere
    body: dict[int, Any],
    sign: Callable[[bytes], bytes],
    signer: Signer = Signer.ASK,
) -> bytes:
    """Return the bytes of a new entry; `sign` makes the Ed25519 signature with the signer's key."""
    text = _encoder.encode((seq, prev, int(type), body, int(signer)))
    return text + sign(b"sjs/1/log" + account + text)


def read(data: bytes) -> Entry:
    """Return the entry of some bytes, unverified. Raises MalformedError."""
    if not SIGNATURE_BYTES < len(data) <= MAX_ENTRY_BYTES:
        raise MalformedError(
            f"an account log entry has {len(data)} bytes: an entry has {SIGNATURE_BYTES + 1} to {MAX_ENTRY_BYTES}",
            hint="fetch the log again",
        )
    try:
        seq, prev, kind, body, signer = _decoder.decode(data[:-SIGNATURE_BYTES])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("an account log entry is not in the format of this version", hint=NEWER) from error
    if seq < 0 or len(prev) != 32:
        raise MalformedError(f"an account log entry has number {seq} and a link of {len(prev)} bytes", hint=NEWER)
    return Entry(seq=seq, prev=prev, type=kind, body=body, signer=signer, data=data)


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


def revoke_body(device: bytes, ends: Mapping[bytes, tuple[int, bytes]]) -> dict[int, Any]:
    """Return the body that ends a device: its history counts up to `ends`, by scope (n, link)."""
    return {1: device, 2: [[scope, n, tip] for scope, (n, tip) in sorted(ends.items())]}


def scope_body(scope: bytes, *, suite: Suite, home: bool = False, space: str = "") -> dict[int, Any]:
    """Return the body that makes a scope; its suite is for ever."""
    return {1: scope, 2: int(suite), 3: home, 4: space}
