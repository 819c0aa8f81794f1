"""The bytes of ops: `[type, version, op_id, hlc, body]` in MessagePack (docs/protocol.md, 5)."""

from __future__ import annotations

from typing import Any

import msgspec

from scrubjay_shared.clock import Hlc
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops.bodies import event_body, trust_word
from scrubjay_shared.ops.causes import cause_in
from scrubjay_shared.ops.schema import CAUSE, EMPTIED, FIELDS, VERSION, WORDS, OpType, Wire
from scrubjay_shared.records import Event, Op

_encoder = msgspec.msgpack.Encoder()


_decoder = msgspec.msgpack.Decoder(Wire)


def encode(op: Op) -> bytes:
    """Return the bytes of an op as sync sends them.

    Maps are written in their own order: the body builders above always give the same one, and metadata is kept with
    its keys sorted, so that an event's bytes can be made again from its row.
    """
    return encode_wire((op.type, op.version, op.op_id, op.hlc, op.body))


def encode_wire(wire: Wire) -> bytes:
    """Return the bytes that say what some bytes said, as `read` gave it."""
    return _encoder.encode(wire)


def decode(data: bytes, *, device: str, seq: int) -> Op:
    """Return the op of some bytes; its device and place in the lane stand outside them. Raises CorruptError."""
    return op_of(read(data, device=device, seq=seq), device=device, seq=seq)


def read(data: bytes, *, device: str, seq: int) -> Wire:
    """Return what some bytes say; of a million events no records are made. Raises CorruptError as `decode` does."""
    try:
        wire: Wire = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptError(
            f"op {seq} of device {device[:8]} cannot be read", hint="scrubjay restore FILE brings back a backup"
        ) from error
    return wire


def op_of(wire: Wire, *, device: str, seq: int) -> Op:
    """Return the op that was read of some bytes."""
    op_type, version, op_id, hlc, body = wire
    return Op(device=device, seq=seq, op_id=op_id, hlc=Hlc(hlc), type=op_type, body=body, version=version)


def says_no_more(said: bytes | None, now: bytes | None) -> bool:
    """Whether what some bytes say of an op holds no words that are gone from what it says now. None: all is gone."""
    if said is None or said == now:
        return True
    if now is None:
        return False
    try:
        before, after = (_decoder.decode(data) for data in (said, now))
        words = [{key for key in wire[4][FIELDS] if key in WORDS} for wire in (before, after)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return False
    return bool(before[0] == after[0] == OpType.MEMORY and before[2] == after[2] and words[0] <= words[1])


def agree(one: bytes, other: bytes) -> bool:
    """Whether two texts of an op say the same, but for values of a write to a memory that either says it has lost."""
    if one == other:
        return True
    try:
        first, second = _decoder.decode(one), _decoder.decode(other)
        if first[0] != OpType.MEMORY or first[:4] != second[:4]:
            return False
        left = [{key: value for key, value in wire[4].items() if key not in _LOSES} for wire in (first, second)]
        here, there = first[4][FIELDS], second[4][FIELDS]
        lost = {*first[4].get(EMPTIED, ()), *second[4].get(EMPTIED, ())}
        return bool(
            left[0] == left[1]
            and all(here[key] == there[key] for key in here.keys() & there.keys())
            and here.keys() ^ there.keys() <= lost
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError, AttributeError):
        return False


_LOSES = frozenset({FIELDS, EMPTIED})


def is_repeatable(wire: Wire, data: bytes, metadata: object) -> bool:
    """Whether the bytes of an op of type EVENT are those that `encode_event_body` gives again of the event's row.

    `metadata` is what the row gives back of the body's, None where the body has none. A cause is kept beside the row.
    """
    op_type, _, op_id, hlc, body = wire
    if tuple(body) not in _PLAIN or (9 in body and body[9] is None) or (10 in body and body[10] == 0):
        return False
    if trust_word(body) != body[11]:
        return False  # the row says what its role allows
    if CAUSE in body and cause_in(body) is None:
        return False
    if 12 in body:
        if not metadata:
            return False
        body = {**body, 12: metadata}
    return _encoder.encode((op_type, VERSION, op_id, hlc, body)) == data


_PLAIN = frozenset(
    (*range(1, 9), *project, *offset, 11, *metadata, *cause)
    for project in ((), (9,))
    for offset in ((), (10,))
    for metadata in ((), (12,))
    for cause in ((), (CAUSE,))
)
"""The keys of an event in their order: with and without a project, an offset, metadata, a cause."""


def encode_event(event: Event, op_id: bytes = b"", hlc: int = 0) -> bytes:
    """Return the bytes of the op that appended an event, made again from the event."""
    return encode_event_body(event_body(event), op_id, hlc)


def encode_event_body(body: dict[int, Any], op_id: bytes, hlc: int) -> bytes:
    """Return the bytes of the op that appended an event, made again from what `event_body` gives of it."""
    return _encoder.encode((_EVENT, VERSION, op_id, hlc, body))


_EVENT = int(OpType.EVENT)
