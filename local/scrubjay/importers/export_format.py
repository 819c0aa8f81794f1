"""The export format: one JSON object a line, enough to make the same store again. Pure: lines in, records out.

The first line is `{"scrubjay_export": 2, …}`; then events, memories with their names and grips, and at last the op log.
Derived things (full text, vectors, sessions) are left out: they are made again.

Events and memories are there to be read, by a person or by another program, and to be imported as somebody's words. The
log is there to be restored: it says what was said, when and in what order, so that a store made of it equals the one it
was written from. Most of it are events, and of these the line holds the stamp, which with the event gives the op again.
Version 1 had no log.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from scrubjay_shared import ops
from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS, MAX_MILLIS, Millis, ulid_bytes, ulid_text
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event, Grip, Json, Memory

VERSION = 2
READ = (1, 2)
"""Versions that are read."""
FORMAT = "scrubjay"
MARK = b'{"scrubjay_export":'
MAX_SEQ = (1 << 53) - 1
"""The greatest sequence number in a log: what JSON counts to exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A memory with what belongs to it."""

    memory: Memory
    aliases: tuple[str, ...] = ()
    grips: tuple[Grip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the op of an event says beside the event: its place in the log of the event's device, its id, its time."""

    seq: int
    op_id: bytes
    hlc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRecord:
    """One op of a log, as a device would send it. `data` is None for one that was erased."""

    device: str
    seq: int
    data: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line after the first: an event (with its stamp, where that and the event give its op), a memory or an op.

    `cause` is that of the event's op, where it names one.
    """

    event: Event | None = None
    stamp: Stamp | None = None
    cause: str | None = None
    memory: MemoryRecord | None = None
    op: OpRecord | None = None

    def logged(self) -> OpRecord | None:
        """Return the op that this line holds, None when it does not hold an op."""
        if self.event is None or self.stamp is None:
            return self.op
        cause = self.cause if ops.is_cause(self.cause) else None
        body = ops.caused(ops.event_body(self.event), cause)
        data = ops.encode_event_body(body, self.stamp.op_id, self.stamp.hlc)
        return OpRecord(device=self.event.device, seq=self.stamp.seq, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A file that was read: its version, its lines, and how many could not be read."""

    version: int
    lines: tuple[Line, ...]
    bad: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)


def header(store_id: str, now: Millis, *, version: int = VERSION) -> bytes:
    """Return the first line of an export, newline included. Version 1 is for a file of records without a log."""
    return _encoder.encode({"scrubjay_export": version, "store": store_id, "exported_at": now}) + b"\n"


def line(record: Event | MemoryRecord | OpRecord, stamp: Stamp | None = None, cause: str | None = None) -> bytes:
    """Return the line of an event, a memory or an op, newline included. Only an event has a stamp and a cause."""
    if isinstance(record, Event):
        body: Json = (
            {"event": record}
            | ({} if stamp is None else {"stamp": stamp})
            | ({} if cause is None else {"cause": cause})
        )
    else:
        body = {"memory": record} if isinstance(record, MemoryRecord) else {"op": record}
    return _encoder.encode(body) + b"\n"


def is_export(data: bytes) -> bool:
    """Say whether some bytes begin like an export."""
    begin = next((line for line in _lines(data) if line.strip()), b"").lstrip()
    return begin[: len(MARK)].replace(b" ", b"").startswith(MARK)


def read(name: str, data: bytes) -> Export:
    """Return what an export holds. Raises InvalidError for any other file, and for an unknown version."""
    rows = _lines(data)
    try:
        found = msgspec.json.decode(next(rows), type=dict[str, object])
    except (msgspec.MsgspecError, StopIteration, UnicodeDecodeError, RecursionError) as error:
        raise InvalidError(f"{name} is not a scrubjay export", hint="scrubjay export FILE writes one") from error
    version = found.get("scrubjay_export")
    if version not in READ:
        raise InvalidError(
            f"{name} is an export of version {version!r}; this scrubjay reads versions 1 to {VERSION}",
            hint="upgrade scrubjay, then import it again",
        )
    lines: list[Line] = []
    bad = 0
    for row in rows:
        if row.strip():
            try:
                line_ = _decoder.decode(row)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                bad += 1
                continue
            if _sound(line_):
                lines.append(line_)
            else:
                bad += 1
    return Export(version=int(str(version)), lines=tuple(lines), bad=bad)


def memory_of(row: bytes) -> MemoryRecord | None:
    """Return the memory that a line of an export holds; None for a line of another kind. Raises ValueError for none."""
    try:
        return _decoder.decode(row).memory
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("not a line of an export") from error


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield what `data.splitlines()` returns, which keeps other threads waiting while it copies the file."""
    for row in io.BytesIO(data):
        yield from row.splitlines()


def _sound(line: Line) -> bool:
    """Say whether what a line holds can be stored: a file may have been edited, or be somebody else's."""
    if line.op is not None:
        return _is_device(line.op.device) and 0 < line.op.seq <= MAX_SEQ
    stamp = line.stamp
    if stamp is not None and (len(stamp.op_id) != 16 or not 0 < stamp.seq <= MAX_SEQ or not 0 < stamp.hlc < 1 << 63):
        return False
    if line.event is not None:
        event = line.event
        return (
            _is_ulid(event.id)
            and (stamp is None or _is_device(event.device))
            and bool(event.session_id and event.agent and event.dedupe_key)
            and 0 <= event.ts <= MAX_EVENT_MILLIS
            and abs(event.utc_offset) < DAY_MINUTES
            and "\0" not in f"{event.agent}{event.session_id}{event.dedupe_key}{event.project}{event.text}"
        )
    if line.memory is not None:
        memory = line.memory.memory
        times = (memory.created_at, memory.updated_at, memory.valid_from, memory.valid_to, memory.archived_at)
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


def _is_device(text: str) -> bool:
    return len(text) == 32 and all(char in "0123456789abcdef" for char in text)


def _is_ulid(text: str) -> bool:
    try:
        return ulid_text(ulid_bytes(text)) == text
    except ValueError:
        return False
