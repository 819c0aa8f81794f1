"""Ops of other devices made ready to be stored: read, without secrets, events as rows. Pure; any process can do it.

This is two thirds of the work of taking in what another device wrote, and needs nothing of the store: what is known
there already, forgotten or erased is for `op_ingest` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from scrubjay.ingest import receipt
from scrubjay.store import rows
from scrubjay_shared import ops
from scrubjay_shared.clock import ulid_text
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import OpType
from scrubjay_shared.snapshot import Chunk

ReadyEvent = tuple[int, bytes, int, bytes | None, str | None, tuple[Any, ...], tuple[str, str]]
"""An op that appends an event: (seq, op id, stamp, its bytes where the row does not say them, cause, row, found by).

The row has the values of `rows.EVENT_COLUMNS`; the last are its speaker and its tokens.
"""

Refused = tuple[int, str | None, bytes, str]
"""An op that this version cannot apply: (seq, what it is about as far as that can be read, its bytes, why)."""

_EVENT = int(OpType.EVENT)


class Ready(msgspec.Struct, array_like=True, frozen=True):
    """A run of ops of one device, ready to be stored. `others` are ops of other types than events: (seq, bytes)."""

    device: str
    events: list[ReadyEvent]
    others: list[tuple[int, bytes]]
    refused: list[Refused]
    erased: list[int]
    """Ops that were erased before they were sent."""

    @property
    def seqs(self) -> list[int]:
        """The places of all of them."""
        return [
            *(one[0] for one in self.events),
            *(one[0] for one in self.others),
            *(one[0] for one in self.refused),
            *self.erased,
        ]

    def without(self, seqs: set[int]) -> Ready:
        """Return the run without the ops at some places."""
        if not seqs:
            return self
        return Ready(
            device=self.device,
            events=[one for one in self.events if one[0] not in seqs],
            others=[one for one in self.others if one[0] not in seqs],
            refused=[one for one in self.refused if one[0] not in seqs],
            erased=[seq for seq in self.erased if seq not in seqs],
        )

    def each(self) -> Iterator[Ready]:
        """Yield each op that can be applied as a run of its own."""
        for event in self.events:
            yield Ready(device=self.device, events=[event], others=[], refused=[], erased=[])
        for other in self.others:
            yield Ready(device=self.device, events=[], others=[other], refused=[], erased=[])


def ready(device: str, run: Sequence[tuple[int, bytes | None]]) -> Ready:
    """Return a run of ops ready to be stored: (seq, encoded op, or None for an erased one), of any place once."""
    made = Ready(device=device, events=[], others=[], refused=[], erased=[seq for seq, data in run if data is None])
    sent = [(seq, data, _wire(device, seq, data)) for seq, data in run if data is not None]
    harmless = receipt.harmless_words([wire for _, _, wire in sent])
    for (seq, data, came), is_harmless in zip(sent, harmless, strict=True):
        if came is None:
            made.refused.append((seq, None, receipt.unread(data), "it cannot be read"))
            continue
        wire = receipt.received(came, harmless=is_harmless)
        kept = data if wire is came else ops.encode_wire(wire)
        if why := ops.wire_problem(wire):
            made.refused.append((seq, _about(wire), kept, why))
        elif wire[0] == _EVENT:
            made.events.append(_event(device, seq, kept, wire))
        else:
            made.others.append((seq, kept))
    return made


def ready_chunk(chunk: Chunk) -> Ready:
    """Return the ops of a chunk of a snapshot ready to be stored; those that this version cannot apply are left out.

    Its events are rows of a store that took their secrets out, and are not screened again here: their ops are, when the
    lanes are read that they came from (`unconfirmed`).
    """
    device = chunk.device.hex()
    made = ready(device, chunk.others)
    made.refused.clear()
    for one in chunk.events:
        body = one.body
        caused = ops.caused(body, one.cause)
        if ops.wire_problem((_EVENT, ops.VERSION, one.op_id, one.hlc, caused)):
            continue
        if one.cause is not None and ops.cause_in(caused) != one.cause:
            continue
        row = rows.received_row(device, ulid_text(one.entity), body)
        # Where a device once wrote more trust than the role allows, its lane has bytes that the row does not say.
        data = None if row[12] == one.trust else ops.encode_event_body(caused, one.op_id, one.hlc)
        made.events.append((one.seq, one.op_id, one.hlc, data, one.cause, row, rows.received_words(row, one.metadata)))
    return made


def _event(device: str, seq: int, data: bytes, wire: ops.Wire) -> ReadyEvent:
    _, _, op_id, hlc, body = wire
    row = rows.received_row(device, ulid_text(body[ops.ENTITY]), body)
    repeatable = ops.is_repeatable(wire, data, rows.unjson(row[10]) if 12 in body else None)
    found_by = rows.received_words(row, body.get(12))
    return seq, op_id, hlc, None if repeatable else data, ops.cause_in(body), row, found_by


def data_of(event: ReadyEvent) -> bytes:
    """Return the bytes of the op that appends an event."""
    _, op_id, hlc, data, cause, row, _ = event
    return ops.encode_event_body(ops.caused(rows.event_body(row), cause), op_id, hlc) if data is None else data


def _wire(device: str, seq: int, data: bytes) -> ops.Wire | None:
    try:
        return ops.read(data, device=device, seq=seq)
    except CorruptError:
        return None


def _about(wire: ops.Wire) -> str | None:
    """Return the entity of an op that may be not well formed."""
    entity = wire[4].get(ops.ENTITY)
    return ulid_text(entity) if isinstance(entity, bytes) and len(entity) == 16 else None
