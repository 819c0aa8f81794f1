"""Parts: how an op that no one object could hold, even compressed, is spread over several. Pure.

An object that is marked by the flag `PART` has one entry, whose bytes are two big-endian u32, which part (from 0) and
of how many, and that piece of the zstd frame of the op's bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scrubjay_shared import segment
from scrubjay_shared.envelope import ZSTD
from scrubjay_shared.errors import MalformedError
from scrubjay_shared.segment import Entry

PART = 2
"""Flag: the object's one entry is a part of an op."""
MAX_PARTS = 256
"""Parts of one op: a hundred megabytes, far above the longest text that a store takes."""
_PREFIX = struct.Struct(">II")
_SENDER = "the program that made it has a fault: update scrubjay there"


class Part(NamedTuple):
    """A part of the op at `seq`: the `number`th (from 0) of `total`, and its bytes."""

    seq: int
    number: int
    total: int
    data: bytes


def split(entry: Entry, size: int) -> list[Part]:
    """Return the parts of an op, each of at most `size` bytes, and all alike: none is small enough to be packed."""
    seq, data = entry
    frame, _ = segment.compress(data or b"")
    count = -(-len(frame) // size)
    each = -(-len(frame) // count)
    return [Part(seq, number, count, frame[number * each : (number + 1) * each]) for number in range(count)]


def entry_of(part: Part) -> Entry:
    """Return the entry that stands for a part in its object."""
    return part.seq, _PREFIX.pack(part.number, part.total) + part.data


def part_of(entries: Sequence[Entry]) -> Part:
    """Return the part that an object marked as one holds. Raises MalformedError."""
    seq, data = entries[0] if len(entries) == 1 else (0, None)
    if data is None or len(data) < _PREFIX.size:
        raise MalformedError("an object that is marked as a part of a change holds no part", hint=_SENDER)
    number, count = _PREFIX.unpack_from(data)
    if not number < count <= MAX_PARTS:
        raise MalformedError("a part of a change has a number beyond the count of its parts", hint=_SENDER)
    return Part(seq, number, count, data[_PREFIX.size :])


def joined(pieces: Iterable[bytes]) -> bytes:
    """Return the bytes of an op from those of all its parts, in order. Raises MalformedError."""
    return segment.decompress(b"".join(pieces), ZSTD)
