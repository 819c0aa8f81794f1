"""Hybrid logical clock and the ids minted from it. Pure: wall time and randomness come in as arguments.

A stamp is one unsigned 64-bit number: 48 bits of UTC milliseconds, then a 16-bit counter that carries into the
milliseconds when it overflows (docs/protocol.md, 5.1). Stamps of one device only ever rise,
also when its clock jumps back.
"""

from __future__ import annotations

import struct
from typing import NewType

Millis = NewType("Millis", int)
"""UTC milliseconds since 1970-01-01."""

Hlc = NewType("Hlc", int)
"""A hybrid logical clock stamp: `milliseconds << 16 | counter`."""

COUNTER_BITS = 16
MAX_LEAD_MS = 600_000
"""A remote stamp further ahead than this (10 minutes) does not move the device clock; it is merged all the same."""

MAX_MILLIS = (1 << 48) - 1
MAX_EVENT_MILLIS = (1 << 43) - 1
"""The latest time of an event, in the year 2248: recall orders events by time and arrival in one 63-bit number."""
REACH = 1 << 59
"""How far apart two stamps may be to be ordered by their size: 278 years, further than any clock of its time is off."""
DAY_MINUTES = 24 * 60
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ULID_LENGTH = 26
_PAIRS = tuple(high + low for high in CROCKFORD for low in CROCKFORD)
_WORDS = struct.Struct(">HIBIBI")  # 48 bits of time, then 40 and 40: none needs a number of more than two digits inside
_DIGITS = bytes(
    ord("0123456789abcdefghijklmnopqrstuv"[CROCKFORD.index(char)] if char in CROCKFORD else "!")
    for char in map(chr, range(128))
).ljust(256, b"!")
"""From our digits to those of `int(digits, 32)`, which reads a million ids a second; "!" for others."""


def tick(last: Hlc, now: Millis) -> Hlc:
    """Return the next stamp of this device: above `last`, and not below the wall clock `now`.

    A clock beyond 2248 is no clock: what it says would leave no room for later stamps.
    """
    return Hlc(max(last + 1, min(now, MAX_EVENT_MILLIS) << COUNTER_BITS))


def receive(last: Hlc, remote: Hlc, now: Millis) -> Hlc:
    """Return the device clock after seeing `remote`: advanced only when that leads `now` by at most `MAX_LEAD_MS`."""
    return remote if remote > last and millis_of(remote) <= now + MAX_LEAD_MS else last


def field_stamp(clock: Hlc, *replaced: Hlc) -> Hlc:
    """Return the stamp of a field write: above the values it replaces. That floor does not move the device clock.

    A value that stands `REACH` ahead or more is no floor: whoever names it comes after it all the same
    (`ops.supersedes`), and above it there might be no stamp left.
    """
    stamp = clock
    for seen in sorted(replaced):
        if stamp <= seen < stamp + REACH:
            stamp = Hlc(seen + 1)
    return stamp


def millis_of(stamp: Hlc) -> Millis:
    """Return the wall-clock part of a stamp, in UTC milliseconds."""
    return Millis(stamp >> COUNTER_BITS)


def latest(ms: Millis) -> Hlc:
    """Return the last stamp of a millisecond."""
    return Hlc(ms << COUNTER_BITS | (1 << COUNTER_BITS) - 1)


def shown_time(ms: int, *, least: int = 0) -> Millis:
    """Return a time that somebody wrote as a reader can show it: not before `least`, and not after 2248."""
    return Millis(min(max(ms, least), MAX_EVENT_MILLIS))


def ulid(ms: Millis, entropy: bytes) -> str:
    """Return the ULID of a time and 10 bytes of entropy: 26 characters that sort by time.

    `ms` outside 0 … 2^48-1 is clamped, so that a nonsense clock still yields a valid id.

    >>> ulid(Millis(1469918176385), bytes(10))
    '01ARYZ6S410000000000000000'
    """
    if len(entropy) != 10:
        raise ValueError(f"a ULID is made of 10 bytes of entropy, got {len(entropy)}")
    return ulid_text(min(max(ms, 0), MAX_MILLIS).to_bytes(6, "big") + entropy)


def ulid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a ULID. Raises ValueError for any other text."""
    if len(text) != ULID_LENGTH or text[0] > "7":
        raise ValueError("not a ULID")
    try:
        return int(text.encode("ascii").translate(_DIGITS), 32).to_bytes(16, "big")
    except ValueError:
        raise ValueError("not a ULID") from None


def ulid_millis(text: str) -> Millis:
    """Return the time in a ULID. Raises ValueError for any other text."""
    return Millis(int.from_bytes(ulid_bytes(text)[:6], "big"))


def ulid_text(data: bytes) -> str:
    """Return the 26 characters of 16 ULID bytes; the inverse of `ulid_bytes`."""
    high, low, a, b, c, d = _WORDS.unpack(data)  # spelled out: this runs a million times when a device joins
    pairs, time = _PAIRS, high << 32 | low
    return (
        f"{pairs[time >> 40]}{pairs[time >> 30 & 1023]}{pairs[time >> 20 & 1023]}{pairs[time >> 10 & 1023]}"
        f"{pairs[time & 1023]}{pairs[a << 2 | b >> 30]}{pairs[b >> 20 & 1023]}{pairs[b >> 10 & 1023]}{pairs[b & 1023]}"
        f"{pairs[c << 2 | d >> 30]}{pairs[d >> 20 & 1023]}{pairs[d >> 10 & 1023]}{pairs[d & 1023]}"
    )


def uuid7(ms: Millis, entropy: bytes) -> bytes:
    """Return the 16 bytes of a version-7 UUID of a time and 10 bytes of entropy (RFC 9562 §5.7)."""
    number = (min(max(ms, 0), MAX_MILLIS) << 80) | int.from_bytes(entropy, "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    return number.to_bytes(16, "big")


def uuid7_millis(data: bytes) -> Millis:
    """Return the time in a version-7 UUID."""
    return Millis(int.from_bytes(data[:6], "big"))
