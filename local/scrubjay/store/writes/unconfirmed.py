"""What came from a snapshot, until the lanes have said it too.

A snapshot is another device's word for what all of them wrote. So each op that is taken from one is noted, struck off
when the object comes in which its own device signed it, and compared with that. What differs, or is left over when
every lane was read, was never said: then everything that came from elsewhere is thrown away, and read from the lanes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from scrubjay.store import rows
from scrubjay.store.op_ingest import OpIngest, Received
from scrubjay.store.projections.projections import Projections
from scrubjay.store.received import Ready, ReadyEvent
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType

RUN = 4_096
"""Places noted in one row: half a kilobyte."""

_KEPT = ("event_is_kept",)
"""Triggers that keep events from being deleted, which nothing else ever is allowed to."""


class Unconfirmed:
    """The table `unconfirmed`, within one transaction."""

    def __init__(self, context: WriteContext, ingest: OpIngest, projections: Projections) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._ingest = ingest
        self._projections = projections

    def take(self, run: Ready) -> Received:
        """Take in ops that a snapshot has. Those that are known stay as they are, and so do events that are."""
        known = self._ingest.known(run.device, run.seqs)
        there = self._context.queries.events.held(run.ids)
        known |= {seq for seq, one in zip(run.places, run.ids, strict=True) if one in there} if there else set()
        new = run.without(known)
        received = self._ingest.receive_new(new)
        for base, places in _runs(new.seqs):
            held = self._bits(run.device, base)
            self._keep(run.device, base, held | _bits_of(base, places))
        return received

    def confirm(self, said: Ready) -> bool:
        """Strike off ops that a lane says, as they were made ready to be stored. Returns False if ours say otherwise.

        What has been forgotten since may say less here than there. A write to a memory of which either has lost values
        is taken out again where they differ, for the lane's to be taken in, and so is what could not be applied.
        """
        waiting: set[int] = set()
        for base, places in _runs(said.seqs):
            held = self._bits(said.device, base)
            marks = held.to_bytes(RUN // 8, "little")
            mine = [place for place in places if marks[place - base >> 3] >> (place - base & 7) & 1]
            if mine:
                waiting |= set(mine)
                self._keep(said.device, base, held & ~_bits_of(base, mine))
        return not waiting or self._agrees(said, waiting)

    def discard(self) -> None:
        """Throw away all that came from other devices, to be read again: this device's own stays.

        An event of its own that another device had too is its own again. Lanes are forgotten, and no snapshot is used
        any more.
        """
        own = self._context.head.device
        self._run(
            "update event set (device, seq) = (select o.device, o.seq from op o where o.entity = event.id"
            " and o.device = ?1 and o.type = ?2) where device <> ?1 and id in"
            " (select entity from op where device = ?1 and type = ?2)",
            (own, int(OpType.EVENT)),
        )
        gone = [str(row[0]) for row in self._fetch("select id from event where device <> ?", (own,))]
        kept = [
            (name, sql)
            for name in _KEPT
            for (sql,) in self._fetch("select sql from sqlite_schema where type = 'trigger' and name = ?", (name,))
        ]
        for name, _ in kept:
            self._run(f"drop trigger {name}")
        self._run("delete from event where device <> ?", (own,))
        for _, sql in kept:
            self._run(sql)
        others = [
            str(row[0])
            for row in self._fetch(
                "select id from memory where id in (select entity from op where device <> ? and type = ?)",
                (own, int(OpType.MEMORY)),
            )
        ]
        self._projections.memories.drop(others)  # what this device wrote of them may not be enough to show one
        for table in ("op", "parked", "part"):
            self._run(f"delete from {table} where device <> ?", (own,))
        self._run("delete from heard")
        self._run("delete from unlearned where n not in (select n from event)")
        self._run("delete from unembedded where memory = 0 and n not in (select n from event)")
        self._run("delete from refused where memory = 0 and n not in (select n from event)")
        self._run("delete from erased where device <> ?", (own,))
        for table in ("lane", "sealed", "link"):
            self._run(f"delete from {table} where lower(hex(device)) <> ?", (own,))
        self._run("delete from unconfirmed")
        self._run("update sync_state set cursor = '', snapshot = 'refused'")
        self._projections.project_all(tell=True)
        after = {str(row[0]) for row in self._fetch("select id from memory")}
        self._run(
            "delete from embedding where owner not in (select id from event) and owner not in (select id from memory)"
        )
        self._context.changes.removed += gone
        self._context.changes.removed[:] = [one for one in self._context.changes.removed if one not in after]
        self._context.note_rewritten()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _bits(self, device: str, base: int) -> int:
        found = self._fetch("select bits from unconfirmed where device = ? and base = ?", (device, base))
        return int.from_bytes(found[0][0], "big") if found else 0

    def _keep(self, device: str, base: int, bits: int) -> None:
        self._run("delete from unconfirmed where device = ? and base = ?", (device, base))
        if bits:
            self._run(
                "insert into unconfirmed (device, base, bits) values (?, ?, ?)",
                (device, base, bits.to_bytes(RUN // 8, "big")),
            )

    def _agrees(self, said: Ready, places: set[int]) -> bool:
        columns = rows.prefixed(rows.EVENT_COLUMNS, "e")
        stored = {
            int(row[0]): row[1:]
            for row in self._fetch(
                "select o.seq, o.type, o.entity, o.op_id, o.hlc, o.body, c.id, e.erased, e.forgotten, e.seq,"
                f" {columns} from op o left join event e on e.id = o.entity and o.type = ?3"
                " left join cause c on c.n = o.cause"
                " where o.device = ?1 and o.seq in (select value from json_each(?2))",
                (said.device, rows.array(sorted(places)), int(OpType.EVENT)),
            )
        }
        events = {event.seq: event for event in said.events}
        others = dict(said.others)
        erased = set(said.erased)
        spans = self._projections.events.redactions(str(row[1]) for row in stored.values())
        changed: list[int] = []
        self._run_many(  # what could not be applied is kept beside the log, and is left to the lane to say
            "delete from parked where device = ? and seq = ?",
            [(said.device, place) for place in sorted(places - stored.keys())],
        )
        for place, ours in sorted(stored.items()):
            if place in erased:
                if not _is_erased(ours):
                    return False
            elif place in events:
                if not _is_same_event(events[place], ours, said.device, spans.get(str(ours[1]), ())):
                    return False
            elif place not in others or not _is_same(others[place], ours):
                return False
            elif ours[4] is not None and bytes(ours[4]) != others[place]:
                changed.append(place)
        self._take_out(said.device, changed)
        return True

    def _take_out(self, device: str, places: list[int]) -> None:
        self._run_many("delete from op where device = ? and seq = ?", [(device, place) for place in places])
        self._run("update heard set ops = ops - ? where device = ?", (len(places), device))


def _is_same(said: bytes, ours: tuple[Any, ...]) -> bool:
    """Whether an op that appends no event says what a lane says. What was erased here says nothing."""
    body = ours[4]
    return bool(ours[0] != OpType.EVENT and (body is None or ops.agree(said, bytes(body))))


def _is_erased(ours: tuple[Any, ...]) -> bool:
    """Whether an op is erased here too that its device has erased in its lane.

    What says that it was forgotten is known by now: words leave a lane half a day after it, and what is newer than a
    snapshot is read before it. An op that is left says what nobody can compare any more.
    """
    return bool(ours[7]) if ours[0] == OpType.EVENT else ours[4] is None


def _is_same_event(said: ReadyEvent, ours: tuple[Any, ...], device: str, spans: Collection[tuple[int, int]]) -> bool:
    """Whether a row and the op of its event say what a lane says, without the passages that were erased since."""
    place, op_id, hlc, data, cause, row, _ = said
    op_type, entity, our_id, our_hlc, body, our_cause, erased, forgotten, seq, *stored = ours
    if (op_type, entity, bytes(our_id), our_hlc) != (OpType.EVENT, row[0], op_id, hlc):
        return False
    if forgotten:
        return True
    if erased is None or our_cause != cause or (body is None) != (data is None):
        return False
    if spans:
        row = (*row[:_TEXT], ops.blanked(row[_TEXT], spans), *row[_TEXT + 1 :])
        data = None if data is None else ops.encode(ops.with_blanks(ops.decode(data, device=device, seq=place), spans))
    twin = stored[1] != device or seq != place  # the row is that of another op, which has a lane of its own
    return twin or (tuple(stored) == tuple(row) and (body is None or bytes(body) == data))


def _bits_of(base: int, places: Sequence[int]) -> int:
    """Return a number with one bit for each of some places in order, that of `base` the lowest."""
    if places[-1] - places[0] + 1 == len(places):  # nearly always: without gaps
        return ((1 << len(places)) - 1) << (places[0] - base)
    marks = bytearray(RUN // 8)
    for place in places:
        marks[place - base >> 3] |= 1 << (place - base & 7)
    return int.from_bytes(marks, "little")


_TEXT = 9
"""The place of the text in `rows.EVENT_COLUMNS`."""


def _runs(seqs: Iterable[int]) -> list[tuple[int, list[int]]]:
    """Return some places, in order, by the row that notes them: (the place of its first bit, places)."""
    places = sorted(seqs)
    found = []
    at = 0
    while at < len(places):
        base = places[at] - places[at] % RUN
        end = bisect_left(places, base + RUN, at)
        found.append((base, places[at:end]))
        at = end
    return found
