"""What stands inside a snapshot: the events and other ops of a scope as a device has them, for a new one to begin with.

A chunk (kind 3) has the payload {1: device, 2: [event, …], 3: [[seq, op], …]}: ops of one device, each list in the
order of `seq`. An event is an op that appends one, as an array: [seq, op id, stamp, cause | nil, event id, agent,
session, type, role, text, time, dedupe key, project | nil, offset, trust, metadata | nil]. Every other op stands as its
bytes. The manifest (kind 4) has {1: when, 2: [[scope, device, n, link], …], 3: seq, 4: hash} as a checkpoint has, which
says what its maker had seen, and {5: [[SHA-256 of the chunk's object, device, first seq, last seq, ops], …]}, newest
first. Pure. Specification: docs/protocol.md, 10.9.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from scrubjay_shared.bounds import LIMIT, MAX_ENTRIES
from scrubjay_shared.errors import MalformedError

MAX_CHUNKS = 5_000
"""Of one snapshot: 20,000,000 ops, named in the half megabyte of one manifest."""

_ID, _HASH = 16, 32
_HINT = "the snapshot's maker may be newer: update scrubjay on this device; it reads the lanes instead"


class ImagedEvent(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """An op that appends an event. `entity` is the event's id, 16 bytes; the other names are those of the event."""

    seq: int
    op_id: bytes
    hlc: int
    cause: str | None
    entity: bytes
    agent: str
    session_id: str
    type: str
    role: str
    text: str
    ts: int
    dedupe_key: str
    project: str | None
    utc_offset: int
    trust: str
    metadata: dict[str, Any] | None

    @property
    def body(self) -> dict[int, Any]:
        """The body of the op, without its cause."""
        body: dict[int, Any] = {
            1: self.entity,
            2: self.agent,
            3: self.session_id,
            4: self.type,
            5: self.role,
            6: self.text,
            7: self.ts,
            8: self.dedupe_key,
        }
        if self.project is not None:
            body[9] = self.project
        if self.utc_offset:
            body[10] = self.utc_offset
        body[11] = self.trust
        if self.metadata:
            body[12] = self.metadata
        return body


class ImagedColumns(NamedTuple):
    """The values of some events, column by column; the names are those of `ImagedEvent`."""

    seqs: tuple[int, ...]
    op_ids: tuple[bytes, ...]
    hlcs: tuple[int, ...]
    causes: tuple[str | None, ...]
    entities: tuple[bytes, ...]
    agents: tuple[str, ...]
    sessions: tuple[str, ...]
    types: tuple[str, ...]
    roles: tuple[str, ...]
    texts: tuple[str, ...]
    times: tuple[int, ...]
    keys: tuple[str, ...]
    projects: tuple[str | None, ...]
    offsets: tuple[int, ...]
    trusts: tuple[str, ...]
    metadata: tuple[dict[str, Any] | None, ...]


def columns_of(events: Sequence[ImagedEvent]) -> ImagedColumns:
    """Return some events, of which there is one at least, column by column."""
    return ImagedColumns(*zip(*map(msgspec.structs.astuple, events), strict=True))


class Chunk(NamedTuple):
    """Ops of one device: those that append events, and the bytes of the others by `seq`."""

    device: bytes
    events: list[ImagedEvent]
    others: list[tuple[int, bytes]]


class ChunkRef(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A chunk as the manifest names it: its object's SHA-256, whose ops it holds, from which to which, how many."""

    hash: bytes
    device: bytes
    low: int
    high: int
    ops: int


_encoder = msgspec.msgpack.Encoder()
_parts_decoder = msgspec.msgpack.Decoder(dict[int, msgspec.Raw])
_events = msgspec.msgpack.Decoder(list[ImagedEvent])
_others = msgspec.msgpack.Decoder(list[tuple[int, bytes]])


def encode_chunk(chunk: Chunk) -> bytes:
    """Return the payload of a chunk."""
    return _encoder.encode({1: chunk.device, 2: chunk.events, 3: chunk.others})


def decode_chunk(payload: bytes) -> Chunk:
    """Return the chunk of a payload. Raises MalformedError for what is none; whether the ops hold is not looked at."""
    raw = _parts(payload)
    if set(raw) != {1, 2, 3}:
        raise MalformedError("a chunk of a snapshot has other parts than this version knows", hint=_HINT)
    try:
        device = msgspec.msgpack.decode(raw[1], type=bytes)
        if _count(raw[2]) + _count(raw[3]) > MAX_ENTRIES:
            raise MalformedError(f"a chunk of a snapshot may hold {MAX_ENTRIES} changes", hint=_HINT)
        events, others = _events.decode(raw[2]), _others.decode(raw[3])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("a chunk of a snapshot cannot be read", hint=_HINT) from error
    _check_ids(device, [one.op_id for one in events], [one.entity for one in events])
    for seqs in ([one.seq for one in events], [seq for seq, _ in others]):
        last = 0
        for seq in seqs:
            if not last < seq < LIMIT:
                raise MalformedError("the changes in a snapshot are not in order", hint=_HINT)
            last = seq
    if len({one.seq for one in events} & {seq for seq, _ in others}):
        raise MalformedError("a snapshot says one change twice", hint=_HINT)
    return Chunk(device=device, events=events, others=others)


def count_of_events(payload: bytes) -> int:
    """Return how many events a chunk says it has. Raises MalformedError for what is none."""
    events = _parts(payload).get(2)
    return 0 if events is None else _count(events)


def _parts(payload: bytes) -> dict[int, msgspec.Raw]:
    try:
        return _parts_decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("a snapshot cannot be read", hint=_HINT) from error


def _count(raw: msgspec.Raw) -> int:
    """Return how many elements a list says it has, before any of them is made."""
    data = bytes(memoryview(raw)[:5])
    first = data[0]
    if 0x90 <= first <= 0x9F:
        return first & 0x0F
    if first == 0xDC:
        return int.from_bytes(data[1:3], "big")
    return int.from_bytes(data[1:5], "big") if first == 0xDD else 0


def _check_ids(device: bytes, *ids: Sequence[bytes]) -> None:
    if len(device) != _ID or any(len(one) != _ID for some in ids for one in some):
        raise MalformedError("a snapshot has an id that is none", hint=_HINT)


def encode_refs(refs: Sequence[ChunkRef]) -> msgspec.Raw:
    """Return what stands under 5 in the payload of a manifest."""
    return msgspec.Raw(_encoder.encode(refs))


def decode_refs(payload: bytes) -> list[ChunkRef]:
    """Return the chunks that the payload of a manifest names. Raises MalformedError."""
    raw = _parts(payload).get(5)
    if raw is None or _count(raw) > MAX_CHUNKS:
        raise MalformedError("a manifest names no chunks, or more than there can be", hint=_HINT)
    try:
        msgspec.msgpack.decode(payload, type=dict[int, object])  # what stands beside is looked at too
        refs = msgspec.msgpack.decode(raw, type=list[ChunkRef])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("a manifest cannot be read", hint=_HINT) from error
    for one in refs:
        whole = len(one.hash) == _HASH and len(one.device) == _ID and 0 < one.low <= one.high < LIMIT
        if not whole or not 0 < one.ops <= MAX_ENTRIES:
            raise MalformedError("a manifest names a chunk that cannot be", hint=_HINT)
    return refs


def salt_of(payload: bytes, key: bytes) -> bytes:
    """Return the salt that a chunk is sealed with: the same content becomes the same object, and is sent once.

    HMAC-SHA256(key, "sjs/1/snapshot", SHA-256(payload)): nobody without the key can tell which content has which salt.
    """
    return hmac.digest(key, b"sjs/1/snapshot" + hashlib.sha256(payload).digest(), "sha256")
