"""What stands inside a segment or a pack before it is sealed: ops in order, compressed, padded. Pure.

Payload: MessagePack `[[seq, op | nil], …]`, op being the bytes of `ops.encode`; nil stands for an op whose content was
erased before it was sent. Compressed with zstd, then, in sealed scopes, a 4-byte length, the data, and zeros up to the
Padmé length, so that a size tells little.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import zstandard

from scrubjay_shared import bounds
from scrubjay_shared.envelope import LIMIT, ZSTD
from scrubjay_shared.errors import MalformedError, TooLargeError

LEVEL = 3
"""zstd's own default: higher levels cost four times the time for 3 % of the size."""
MAX_PAYLOAD_BYTES = 32 * 1024 * 1024
"""What a payload may unpack to: an object of half a megabyte that claims more is a bomb."""
MAX_ENTRIES = bounds.MAX_ENTRIES
"""The ops of one object: each costs a hundred bytes of memory, even where two bytes say that it was erased."""
FLOOR_BYTES = 512
"""The least padded length: one short op and ten look alike."""

Entry = tuple[int, bytes | None]
"""(seq, encoded op); None for one that was erased."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[tuple[int, bytes | None]])


_SENDER = "the program that made it has a fault: update scrubjay there"


def encode(entries: Sequence[Entry]) -> bytes:
    """Return the payload of some ops, in the order of their places. Raises TooLargeError above `MAX_ENTRIES`."""
    if len(entries) > MAX_ENTRIES:
        raise TooLargeError(
            f"one object may hold {MAX_ENTRIES} changes, got {len(entries)}", hint="write fewer at once"
        )
    return _encoder.encode(entries)


def decode(payload: bytes) -> list[Entry]:
    """Return the ops of a payload. Raises MalformedError when it is not a list of ops in order."""
    if _count(payload) > MAX_ENTRIES:
        raise MalformedError(f"one object may hold {MAX_ENTRIES} changes, and this one holds more", hint=_SENDER)
    try:
        entries = _decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise MalformedError(
            "the content of an object is not a list of changes", hint="update scrubjay: the sender may be newer"
        ) from error
    last = 0
    for seq, _ in entries:
        if not last < seq < LIMIT:
            raise MalformedError("the changes in an object are not in order", hint=_SENDER)
        last = seq
    return entries


def _count(payload: bytes) -> int:
    """Return how many entries a payload says it has, before any is made: 30 million empty ones are a bomb too."""
    if payload[:1] == b"\xdd":
        return int.from_bytes(payload[1:5], "big")
    return 0  # the shorter forms cannot say more than 65,535


def compress(payload: bytes) -> tuple[bytes, int]:
    """Return a payload as it is sealed, and the flag that says how. Raises TooLargeError."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise TooLargeError(
            f"the content of an object may have {MAX_PAYLOAD_BYTES} bytes, got {len(payload)}",
            hint="write less at once",
        )
    return zstandard.ZstdCompressor(level=LEVEL, write_content_size=True).compress(payload), ZSTD


def unpacked_size(data: bytes, flags: int) -> int:
    """Return how many bytes unsealed bytes say that their payload has. Raises MalformedError for a bomb."""
    if not flags & ZSTD:
        return len(data)
    try:
        size = zstandard.frame_content_size(data)
    except zstandard.ZstdError as error:
        raise MalformedError("the content of an object cannot be decompressed", hint=_SENDER) from error
    if not 0 <= size <= MAX_PAYLOAD_BYTES:
        raise MalformedError(f"the content of an object may have {MAX_PAYLOAD_BYTES} bytes, got {size}", hint=_SENDER)
    return size


def decompress(data: bytes, flags: int) -> bytes:
    """Return the payload of unsealed bytes. Raises MalformedError for what zstd refuses, and for a bomb."""
    if not flags & ZSTD:
        return data
    try:
        unpacked_size(data, flags)
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_PAYLOAD_BYTES, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise MalformedError("the content of an object cannot be decompressed", hint=_SENDER) from error


def padme(length: int) -> int:
    """Return the Padmé length of a length: at most 12 % more, and the few sizes there are tell little.

    Source: Nikitin et al., PETS 2019.

    >>> [padme(n) for n in (9, 100, 1_000, 100_000)]
    [10, 104, 1024, 100352]
    """
    if length < 2:
        return length
    exponent = length.bit_length() - 1
    mask = (1 << (exponent - exponent.bit_length())) - 1
    return (length + mask) & ~mask


def pad(data: bytes) -> bytes:
    """Return a 4-byte length, the data, and zeros up to the padded length."""
    length = max(FLOOR_BYTES, padme(4 + len(data)))
    return (len(data).to_bytes(4, "big") + data).ljust(length, b"\0")


def unpad(padded: bytes) -> bytes:
    """Return what was padded. Raises MalformedError when length or zeros are not as `pad` makes them."""
    if len(padded) < 4:
        raise MalformedError("the content of an object is shorter than the length that it states", hint=_SENDER)
    data = padded[4 : 4 + int.from_bytes(padded[:4], "big")]
    if pad(data) != padded:
        raise MalformedError("the padding of an object is not the one that its length prescribes", hint=_SENDER)
    return data
