"""Entries of a team's log: their bytes, and what each kind says. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import msgspec

from scrubjay_shared.envelope import SIGNATURE_BYTES
from scrubjay_shared.errors import MalformedError

MAX_ENTRY_BYTES = 64 * 1024
ID_BYTES = 16
NEWER = "it may come from a newer version: update scrubjay"


class TeamEntryType(IntEnum):
    """What an entry says. Numbers are wire format: never reused."""

    GENESIS = 1
    MEMBER_ADD = 2
    MEMBER_REMOVE = 3
    ROLE = 4
    LEAVE = 5
    REKEY = 6
    EPOCH = 7
    DEVICE_ADD = 8


class TeamRole(IntEnum):
    """What a member may do; each may what those below it may. Numbers are wire format."""

    READER = 1
    WRITER = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamEntry:
    """One entry, read: not yet verified. `author` is the account of the member who made it."""

    seq: int
    prev: bytes
    type: int
    body: dict[int, Any]
    author: bytes
    data: bytes

    @property
    def text(self) -> bytes:
        """What the signature is over."""
        return self.data[:-SIGNATURE_BYTES]

    @property
    def signature(self) -> bytes:
        """The author's, 64 bytes."""
        return self.data[-SIGNATURE_BYTES:]

    @property
    def hash(self) -> bytes:
        """What the next entry names as `prev`."""
        return hashlib.sha256(b"sjs/1/team/entry" + self.data).digest()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[int, bytes, int, dict[int, Any], bytes])


def entry(
    team: bytes,
    *,
    seq: int,
    prev: bytes,
    type: TeamEntryType,  # noqa: A002 - the field's name everywhere
    body: dict[int, Any],
    author: bytes,
    sign: Callable[[bytes], bytes],
) -> bytes:
    """Return the bytes of a new entry; `sign` makes the Ed25519 signature with the author's key in this team."""
    text = _encoder.encode((seq, prev, int(type), body, author))
    return text + sign(signed_message(team, text))


def genesis(
    account: bytes, *, nonce: bytes, sign_pub: bytes, wrap_pub: bytes, commit: bytes, sign: Callable[[bytes], bytes]
) -> bytes:
    """Return entry 0 of a new team, which its id is made of; `nonce` is 16 random bytes, `commit` that of epoch 0."""
    body = {1: nonce, 2: account, 3: sign_pub, 4: wrap_pub, 5: commit}
    text = _encoder.encode((0, bytes(32), int(TeamEntryType.GENESIS), body, account))
    return text + sign(signed_message(team_id(text), text))


def team_id(text: bytes) -> bytes:
    """Return the id of the team whose genesis has this text: whoever knows the id knows the genesis."""
    return hashlib.sha256(b"sjs/1/team/id" + text).digest()[:ID_BYTES]


def signed_message(team: bytes, text: bytes) -> bytes:
    """Return what the author of an entry signs."""
    return b"sjs/1/team/log" + team + text


def epoch_commit(epoch: int, key: bytes) -> bytes:
    """Return what the log says of an epoch's key, so that nobody is given another one."""
    return hashlib.sha256(b"sjs/1/team/epoch" + epoch.to_bytes(4, "big") + key).digest()


def device_proof(team: bytes, account: bytes, device: bytes) -> bytes:
    """Return what a device signs to write in a team as that member: nobody names another's device as their own."""
    return b"sjs/1/team/device" + team + account + device


def ends_body(ends: Mapping[bytes, tuple[int, bytes]]) -> list[list[Any]]:
    """Return where lanes end, by device (n, link), as an entry says it."""
    return [[device, n, link] for device, (n, link) in sorted(ends.items())]


def read(data: bytes) -> TeamEntry:
    """Return the entry of some bytes, unverified. Raises MalformedError."""
    if not SIGNATURE_BYTES < len(data) <= MAX_ENTRY_BYTES:
        raise MalformedError(
            f"an entry of a team's log has {len(data)} bytes: it has {SIGNATURE_BYTES + 1} to {MAX_ENTRY_BYTES}",
            hint="fetch the log again",
        )
    try:
        seq, prev, kind, body, author = _decoder.decode(data[:-SIGNATURE_BYTES])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("an entry of a team's log is not in the format of this version", hint=NEWER) from error
    if seq < 0 or len(prev) != 32 or len(author) != ID_BYTES:
        raise MalformedError(
            f"an entry of a team's log has number {seq}, a link of {len(prev)} bytes and an author of {len(author)}",
            hint=NEWER,
        )
    return TeamEntry(seq=seq, prev=prev, type=kind, body=body, author=author, data=data)
