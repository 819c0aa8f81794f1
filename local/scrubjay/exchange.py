"""The export format: one JSON object a line, enough to make the same store again. Pure: lines in, records out.

The first line is `{"scrubjay_export": 1, …}`; then events, and memories with their names and grips. Derived things
(full text, vectors, sessions) are left out: they are made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS, MAX_MILLIS, Millis, ulid_bytes, ulid_text
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
                found_line = _decoder.decode(row)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                yield None
            else:
                yield found_line if _sound(found_line) else None


def _sound(line: Line) -> bool:
    """Say whether what a line holds can be stored: a file may have been edited, or be somebody else's."""
    if line.event is not None:
        event = line.event
        return (
            _is_ulid(event.id)
            and bool(event.session_id and event.agent and event.dedupe_key)
            and 0 <= event.ts <= MAX_EVENT_MILLIS
            and abs(event.utc_offset) < DAY_MINUTES
            and "\0" not in f"{event.agent}{event.session_id}{event.dedupe_key}{event.project}{event.text}"
        )
    if line.memory is not None:
        memory = line.memory.memory
        times = (memory.created_at, memory.updated_at, memory.valid_from, memory.valid_to)
        return (
            _is_ulid(memory.id)
            and bool(memory.content)
            and "\0" not in f"{memory.content}{memory.name}{''.join(line.memory.aliases)}"
            and 0 <= memory.salience <= 1
            and 0 <= memory.confidence <= 1
            and all(at is None or 0 <= at <= MAX_MILLIS for at in times)
            and all(_is_anchor(grip, memory.id) for grip in line.memory.grips)
        )
    return False


def _is_anchor(grip: Grip, memory_id: str) -> bool:
    return (
        grip.memory_id == memory_id
        and all(_is_ulid(id_) for id_ in (grip.id, grip.event_id_start, grip.event_id_end))
        and 0 <= grip.span_start <= grip.span_end <= MAX_MILLIS
        and 0 <= grip.created_at <= MAX_MILLIS
    )


def _is_ulid(text: str) -> bool:
    try:
        return ulid_text(ulid_bytes(text)) == text
    except ValueError:
        return False
