"""The export format: one JSON object a line, enough to make the same store again. Pure: lines in, records out.

The first line is `{"scrubjay_export": 1, …}`; then events, and memories with their names and grips. Derived things
(full text, vectors, sessions) are left out: they are made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event, Grip, Json, Memory

VERSION = 1
FORMAT = "scrubjay"
MARK = b'{"scrubjay_export":'


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A memory with what belongs to it."""

    memory: Memory
    aliases: tuple[str, ...] = ()
    grips: tuple[Grip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line after the first: an event or a memory."""

    event: Event | None = None
    memory: Kept | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)


def header(store_id: str, now: Millis) -> bytes:
    """Return the first line of an export, newline included."""
    return _encoder.encode({"scrubjay_export": VERSION, "store": store_id, "exported_at": now}) + b"\n"


def line(record: Event | Kept) -> bytes:
    """Return the line of an event or a memory, newline included."""
    body: Json = {"event": record} if isinstance(record, Event) else {"memory": record}
    return _encoder.encode(body) + b"\n"


def is_export(data: bytes) -> bool:
    """Say whether some bytes begin like an export."""
    return data.lstrip()[: len(MARK)].replace(b" ", b"").startswith(MARK)


def read(name: str, data: bytes) -> Iterator[Line | None]:
    """Yield the lines of an export; None for one that cannot be read. Raises InvalidError for another version."""
    rows: Iterable[bytes] = data.splitlines()
    rows = iter(rows)
    try:
        found = msgspec.json.decode(next(rows), type=dict[str, object])
    except (msgspec.MsgspecError, StopIteration, UnicodeDecodeError) as error:
        raise InvalidError(f"{name}: not a scrubjay export", hint="scrubjay export FILE writes one") from error
    if found.get("scrubjay_export") != VERSION:
        raise InvalidError(
            f"{name}: export version {found.get('scrubjay_export')!r}, this scrubjay reads {VERSION}",
            hint="upgrade scrubjay",
        )
    for row in rows:
        if row.strip():
            try:
                yield _decoder.decode(row)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                yield None
