"""Ops of other devices made ready to be stored: read, without secrets, events as rows. Pure; any process can do it.

This is two thirds of the work of taking in what another device wrote, and needs nothing of the store: what is known
there already, forgotten or erased is for `op_ingest` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

import msgspec

from scrubjay.ingest import receipt
from scrubjay.store import checksums, event_columns, rows
from scrubjay.store.session_counts import SessionCount, session_counts
from scrubjay_shared import ops, snapshot
from scrubjay_shared.clock import ulid_text
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import OpType
from scrubjay_shared.snapshot import Chunk, ImagedColumns, ImagedEvent


class ReadyEvent(NamedTuple):
    """An op that appends an event: its place, id and stamp, its cause, the event's row as `rows.EVENT_COLUMNS`.

    `data` are the op's bytes where the row does not say them, `found_by` are its speaker and its tokens.
    """

    seq: int
    op_id: bytes
    hlc: int
    data: bytes | None
    cause: str | None
    row: tuple[Any, ...]
    found_by: tuple[str, str]

    @property
    def id(self) -> str:
        """The event's id."""
        return str(self.row[0])


_ready = partial(tuple.__new__, ReadyEvent)
"""Makes a `ReadyEvent` of its values as a tuple, without a call of Python: a million when a device joins."""

EVENT_VALUES, _ID, SESSION, AGENT, PROJECT, TIME, TYPE, _AFTER_ROW = 15, 1, 3, 2, 4, 5, 7, 13
"""How many values an event's row has in `Ready.rows`, and which of them is what; its op's place is after those."""

OP_VALUES, _ENTITY = 5, 3
"""The same of an op's row in `Ready.ops`."""

Refused = tuple[int, str | None, bytes, str]
"""An op that this version cannot apply: (seq, what it is about as far as that can be read, its bytes, why)."""

_EVENT = int(OpType.EVENT)


class Ready(msgspec.Struct, array_like=True, frozen=True):
    """A run of ops of one device, ready to be stored. `others` are ops of other types than events: (seq, bytes).

    Events stand in it as the values of their rows, one row after the other, as they are bound: some hundred thousand
    tuples would be made, sent and looked at by the collector for nothing. Of table `event` that is the arrival number,
    the columns of `rows.EVENT_COLUMNS` without the device, the place of the op, and the check sum of a row of which
    nothing was erased. Of table `op`: place, id, stamp, event, and the check sum of an op of neither bytes nor cause.
    Numbers and sums hold only in a run that is `numbered`.
    """

    device: str
    rows: list[Any]
    ops: list[Any]
    said: dict[int, tuple[bytes | None, str | None]]
    """By place, of the ops that append events: the bytes that the row does not say, and the cause, where there are."""
    speakers: list[str]
    tokens: list[str]
    """What recall finds each event by."""
    others: list[tuple[int, bytes]]
    refused: list[Refused]
    erased: list[int]
    """Ops that were erased before they were sent."""
    numbered: int = 0
    """The arrival number of the first of its events; 0 where they have none."""
    sessions: list[SessionCount] = []
    """What the events add to their sessions, where they are numbered."""

    @property
    def ids(self) -> list[str]:
        """The ids of its events."""
        return self.rows[_ID::EVENT_VALUES]

    @property
    def places(self) -> list[int]:
        """The places of the ops that append events."""
        return self.ops[::OP_VALUES]

    @property
    def stamps(self) -> list[int]:
        """The stamps of the ops that append events."""
        return self.ops[2::OP_VALUES]

    @property
    def seqs(self) -> list[int]:
        """The places of all of them."""
        return [
            *self.places,
            *(one[0] for one in self.others),
            *(one[0] for one in self.refused),
            *self.erased,
        ]

    @property
    def count(self) -> int:
        """How many of them can be applied."""
        return len(self.ops) // OP_VALUES + len(self.others)

    @property
    def events(self) -> list[ReadyEvent]:
        """The ops that append events, one by one."""
        width, found = OP_VALUES, []
        for at, found_by in enumerate(zip(self.speakers, self.tokens, strict=True)):
            seq, op_id, hlc, event_id, _ = self.ops[at * width : at * width + width]
            first = at * EVENT_VALUES + _ID + 1
            row = (event_id, self.device, *self.rows[first : first + _AFTER_ROW - _ID - 1])
            found.append(ReadyEvent(seq, op_id, hlc, *self.said.get(seq, (None, None)), row, found_by))
        return found

    def without(self, seqs: set[int]) -> Ready:
        """Return the run without the ops at some places."""
        if not seqs:
            return self
        left = set(self.places) - seqs
        return run_of(
            self.device,
            [one for one in self.events if one.seq in left] if left else [],
            others=[one for one in self.others if one[0] not in seqs],
            refused=[one for one in self.refused if one[0] not in seqs],
            erased=[seq for seq in self.erased if seq not in seqs],
        )

    def each(self) -> Iterator[Ready]:
        """Yield each op that can be applied as a run of its own."""
        for event in self.events:
            yield run_of(self.device, [event])
        for other in self.others:
            yield run_of(self.device, [], others=[other])


def run_of(
    device: str,
    events: Sequence[ReadyEvent],
    *,
    others: Sequence[tuple[int, bytes]] = (),
    refused: Sequence[Refused] = (),
    erased: Sequence[int] = (),
    number: int = 0,
) -> Ready:
    """Return a run of these ops. Events are numbered from `number` on, unless that is 0."""
    run = Ready(device, [], [], {}, [], [], list(others), list(refused), list(erased), number)
    for at in range(0, len(events), _AT_ONCE):
        seqs, op_ids, hlcs, data, causes, made, found_by = zip(*events[at : at + _AT_ONCE], strict=True)
        said = zip(seqs, data, causes, strict=True)
        run.said.update({seq: (one, cause) for seq, one, cause in said if one is not None or cause is not None})
        speakers, tokens = zip(*found_by, strict=True)
        _add(run, (seqs, op_ids, hlcs), list(zip(*made, strict=True)), speakers, tokens)
    if number:
        run.sessions.extend(session_counts([(one.seq, one.row) for one in events]))
    return run


def _add(
    run: Ready,
    places: tuple[Sequence[int], Sequence[bytes], Sequence[int]],
    columns: Sequence[Sequence[Any]],
    speakers: Sequence[str],
    tokens: Sequence[str],
) -> None:
    """Add some events to a run: their ops' places, ids and stamps, the columns of `rows.EVENT_COLUMNS`, `found_by`."""
    (seqs, op_ids, hlcs), ids, device, count = places, columns[0], run.device, len(run.speakers)
    numbers = range(run.numbered + count, run.numbered + count + len(seqs))
    row_sums = op_sums = [0] * len(seqs)
    if run.numbered:
        nought, none, of, kind = repeat(0), repeat(None), repeat(device), repeat(_EVENT)
        row_sums = checksums.sums(zip(numbers, *columns, nought, seqs, nought, strict=False))
        op_sums = checksums.sums(zip(of, seqs, op_ids, hlcs, kind, ids, none, none, nought, strict=False))
    run.rows.extend(chain.from_iterable(zip(numbers, ids, *columns[2:], seqs, row_sums, strict=True)))
    run.ops.extend(chain.from_iterable(zip(seqs, op_ids, hlcs, ids, op_sums, strict=True)))
    run.speakers.extend(speakers)
    run.tokens.extend(tokens)


_AT_ONCE = 512
"""Events whose columns are made together: few enough for a processor's cache."""


def ready(device: str, run: Sequence[tuple[int, bytes | None]], number: int = 0) -> Ready:
    """Return a run of ops ready to be stored: (seq, encoded op, or None for an erased one), of any place once.

    Their events are numbered from `number` on, unless that is 0.
    """
    sent = [(seq, data, _wire(device, seq, data)) for seq, data in run if data is not None]
    harmless = receipt.harmless_words([wire for _, _, wire in sent])
    events: list[ReadyEvent] = []
    others: list[tuple[int, bytes]] = []
    refused: list[Refused] = []
    for (seq, data, came), is_harmless in zip(sent, harmless, strict=True):
        if came is None:
            refused.append((seq, None, receipt.unread(data), "it cannot be read"))
            continue
        wire = receipt.received(came, harmless=is_harmless)
        kept = data if wire is came else ops.encode_wire(wire)
        if why := ops.wire_problem(wire):
            refused.append((seq, _about(wire), kept, why))
        elif wire[0] == _EVENT:
            events.append(_event(device, seq, kept, wire))
        else:
            others.append((seq, kept))
    erased = [seq for seq, data in run if data is None]
    return run_of(device, events, others=others, refused=refused, erased=erased, number=number)


def ready_chunk(chunk: Chunk, number: int = 0) -> Ready:
    """Return the ops of a chunk of a snapshot ready to be stored; those that this version cannot apply are left out.

    Its events are rows of a store that took their secrets out, and are not screened again here: their ops are, when the
    lanes are read that they came from (`unconfirmed`). They are numbered from `number` on, unless that is 0.
    """
    device = chunk.device.hex()
    said = ready(device, chunk.others)
    if not said.ops and (made := _imaged(run_of(device, [], others=said.others, number=number), chunk.events)):
        return made
    events = said.events
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
        found_by = rows.received_words(row, one.metadata)
        events.append(_ready((one.seq, one.op_id, one.hlc, data, one.cause, row, found_by)))
    return run_of(device, events, others=said.others, number=number)


def _are_plain(events: ImagedColumns) -> bool:
    """Whether each of some events can be applied, and its row says all that its op says."""
    said = set(zip(events.roles, events.trusts, strict=True))
    return (
        ops.all_events_fit(
            hlcs=events.hlcs,
            agents=events.agents,
            sessions=events.sessions,
            types=events.types,
            roles=events.roles,
            times=events.times,
            keys=events.keys,
            projects=events.projects,
            offsets=events.offsets,
            trusts=events.trusts,
            metadata=events.metadata,
        )
        and all(cause is None or ops.is_cause(cause) for cause in set(events.causes))
        and all(ops.trust_word({5: role, 11: trust}) == trust for role, trust in said)
    )


def _imaged(run: Ready, imaged: Sequence[ImagedEvent]) -> Ready | None:
    """Return a run that has no events with those of a chunk; None where one needs to be looked at by itself."""
    counted: list[tuple[int, tuple[Any, ...]]] = []
    for at in range(0, len(imaged), _AT_ONCE):
        events = snapshot.columns_of(imaged[at : at + _AT_ONCE])
        if not _are_plain(events):
            return None
        run.said.update({seq: (None, cause) for seq, cause in zip(events.seqs, events.causes, strict=True) if cause})
        columns = (
            event_columns.ulid_texts(events.entities),
            [run.device] * len(events.seqs),
            events.agents,
            events.sessions,
            events.projects,
            events.times,
            events.offsets,
            events.types,
            events.roles,
            events.texts,
            [rows.json(more) if more else "{}" for more in events.metadata],
            events.keys,
            events.trusts,
        )
        found_by = event_columns.found_by(events.types, events.roles, events.texts, events.metadata)
        _add(run, (events.seqs, events.op_ids, events.hlcs), columns, *found_by)
        counted += zip(events.seqs, zip(*columns, strict=True), strict=True)
    if run.numbered:
        run.sessions.extend(session_counts(counted))
    return run


def _event(device: str, seq: int, data: bytes, wire: ops.Wire) -> ReadyEvent:
    _, _, op_id, hlc, body = wire
    row = rows.received_row(device, ulid_text(body[ops.ENTITY]), body)
    repeatable = ops.is_repeatable(wire, data, rows.unjson(row[10]) if 12 in body else None)
    found_by = rows.received_words(row, body.get(12))
    return _ready((seq, op_id, hlc, None if repeatable else data, ops.cause_in(body), row, found_by))


def data_of(event: ReadyEvent) -> bytes:
    """Return the bytes of the op that appends an event."""
    if event.data is not None:
        return event.data
    return ops.encode_event_body(ops.caused(rows.event_body(event.row), event.cause), event.op_id, event.hlc)


def _wire(device: str, seq: int, data: bytes) -> ops.Wire | None:
    try:
        return ops.read(data, device=device, seq=seq)
    except CorruptError:
        return None


def _about(wire: ops.Wire) -> str | None:
    """Return the entity of an op that may be not well formed."""
    entity = wire[4].get(ops.ENTITY)
    return ulid_text(entity) if isinstance(entity, bytes) and len(entity) == 16 else None
