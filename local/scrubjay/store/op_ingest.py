"""Taking in the ops of other devices, in any order and any number of times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrubjay.garbage import uncollected
from scrubjay.store import checksums, rows, sqlite
from scrubjay.store.changes import Changes
from scrubjay.store.op_log import OpLog
from scrubjay.store.projections import full_text
from scrubjay.store.projections.memories import OF_MEMORIES, PROJECTED_AT_ONCE
from scrubjay.store.projections.projections import Projections
from scrubjay.store.queries.op_log import ERASED
from scrubjay.store.queries.tombstones import UNSWEPT, Statement
from scrubjay.store.received import Ready, ReadyEvent, Refused, data_of, ready
from scrubjay.store.superseded import Superseded
from scrubjay.store.write_context import WriteContext
from scrubjay_io.sqlite import driver
from scrubjay_shared import clock, ops
from scrubjay_shared.clock import Hlc, Millis
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

BOUNDS_NOTED = "bounds_noted"
"""The setting of the file that says that what others wrote has its bounds noted, whichever version took it in."""

_NOT_OURS = (
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    driver.IntegrityError,
    driver.DataError,
    driver.InterfaceError,
    driver.ProgrammingError,
)
"""What an op's content can be to blame for. Anything else (a full disk) is not, and is raised."""

_AT_ONCE = 512
"""Events of a run whose rows are in memory at one time: few enough for a processor's cache, and to die young."""

_MANY = 256
"""Events from which on it pays to insert without triggers, whose removal and return cost half a millisecond."""

_EVENT = int(OpType.EVENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of a run of ops of a device. `erased` says that words of this store went: old copies must go too."""

    applied: int = 0
    duplicates: int = 0
    quarantined: int = 0
    conflicts: int = 0
    erased: bool = False


class OpIngest:
    """The part of a transaction that takes in ops of other devices."""

    def __init__(self, context: WriteContext, log: OpLog, projections: Projections, superseded: Superseded) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._log = log
        self._projections = projections
        self._superseded = superseded

    def receive(self, device: str, run: Sequence[tuple[int, bytes | None]], *, is_of_person: bool = True) -> Received:
        """Take in ops of another device, or of this one's own lane: (seq, encoded op, or None for an erased one).

        They may come in any order, with gaps, and any number of times. What this version cannot apply is quarantined,
        never raised. What they say is not distilled here: that is done where it was said. Of what others than the
        store's person wrote, nothing is forgotten because this person forgot the same words.
        """
        latest = dict(run)
        known = self.known(device, latest)
        new = self._store_ready(ready(device, sorted((seq, data) for seq, data in latest.items() if seq not in known)))
        if is_of_person:
            new = replace(new, erased=self._forget_again(latest.keys() - known, device) or new.erased)
        return replace(new, duplicates=len(run) - len(latest) + len(known))

    def receive_ready(self, run: Ready) -> Received:
        """Take in ops as `receive` does, that were made ready before."""
        known = self.known(run.device, run.seqs)
        return replace(self.receive_new(run.without(known)), duplicates=len(known))

    def receive_new(self, run: Ready) -> Received:
        """Take in ops as `receive_ready` does, none of which is held."""
        new = self._store_ready(run)
        erased = self._forget_again([seq for seq, _ in run.others], run.device) or new.erased
        return replace(new, erased=erased)

    def _forget_again(self, seqs: Iterable[int], device: str) -> bool:
        """Forget memories that came with the words of forgotten ones. Returns whether any did.

        Their device had not heard of it. What the person wrote down by hand after it was forgotten stays, as if they
        had lifted that: what says so may come later.
        """
        if not self._context.queries.tombstones.any_words():
            return False
        came = self._fetch(
            "select distinct m.id, m.content, iif(m.scope = 'project', m.resource_id, null),"
            " iif(m.kind in ('note', 'stored') and m.trust = 'user', m.created_at, 0)"
            " from op o join memory m on m.id = o.entity where o.device = ? and o.type = ? and m.kind <> 'archive'"
            " and m.layer not in ('identity', 'active') and o.seq in (select value from json_each(?))",
            (device, int(OpType.MEMORY), rows.array(seqs)),
        )
        found = self._context.queries.tombstones.refusing(
            [Statement(text=text, project=project) for _, text, project, _ in came]
        )
        gone = [
            str(memory_id)
            for (memory_id, _, _, by_hand), forgotten in zip(came, found, strict=True)
            if any(by_hand <= at for at in forgotten.values())
        ]
        made = [self._log.make(OpType.FORGET, ops.forget_body(memory_id)) for memory_id in gone]
        self._log.append(made)
        if made:
            self._projections.erasure.tombstone(made)
            full_text.erase_traces(self._context)
            self._context.changes.erased = True
        return bool(made)

    def _sweep_from_here(self) -> None:
        """Let a job compare what comes next with what was forgotten: a joining device reads a million events."""
        if self._context.queries.tombstones.unswept() is None:
            last = self._fetch("select coalesce(max(n), 0) from memory")[0][0]
            self._context.set_meta(UNSWEPT, json.dumps([last, self._context.queries.events.last()]))

    def known(self, device: str, seqs: Iterable[int]) -> set[int]:
        """Return at which of some places an op of a device is held."""
        places = list(seqs)
        if not places or not self._any_between(device, min(places), max(places)):
            return set()  # the usual case of a first reading, and a tenth of its time otherwise
        found = self._fetch(
            "select seq from op where device = ?1 and seq in (select value from json_each(?2)) union all"
            " select seq from parked where device = ?1 and seq in (select value from json_each(?2))",
            (device, rows.array(places)),
        )
        return {int(seq) for (seq,) in found}

    def _any_between(self, device: str, low: int, high: int) -> bool:
        return bool(
            self._fetch(
                "select 1 where exists (select 1 from op where device = ?1 and seq between ?2 and ?3)"
                " or exists (select 1 from parked where device = ?1 and seq between ?2 and ?3)",
                (device, low, high),
            )
        )

    def _store_ready(self, run: Ready) -> Received:
        device, seqs = run.device, run.seqs
        self._keep_erased(device, run.erased)
        self._quarantine(device, run.refused)
        applied, conflicts, erased = self._take_in(run)
        if device == self._context.head.device and seqs:
            self._context.head.seq = max(self._context.head.seq, *seqs)
        return Received(
            applied=applied,
            quarantined=len(seqs) - applied - len(run.erased),
            conflicts=conflicts,
            erased=erased,
        )

    def retry_quarantined(self) -> Received:
        """Try the ops that could not be applied once more: this version may know them."""
        applied = conflicts = tried = 0
        erased = False
        for (device,) in self._fetch("select distinct device from parked"):
            parked = self._fetch("select seq, op from parked where device = ? order by seq", (device,))
            run = ready(device, parked)
            again = [*run.places, *(seq for seq, _ in run.others)]
            self._run_many("delete from parked where device = ? and seq = ?", [(device, seq) for seq in again])
            taken, opened, words = self._take_in(run)
            tried, applied, conflicts, erased = tried + len(again), applied + taken, conflicts + opened, erased or words
        return Received(applied=applied, quarantined=tried - applied, conflicts=conflicts, erased=erased)

    def disown(self, entity: str, devices: Sequence[str]) -> None:
        """Drop what some devices said of an entity, as if it had been erased before it came.

        For those who, as now shows, had no right to: that they forgot it goes too.
        """
        said = [
            (device, seq)
            for device in devices
            for (seq,) in self._fetch("select seq from op where entity = ? and device = ?", (entity, device))
        ]
        self._run_many(
            "update op set op_id = zeroblob(16), hlc = 0, type = ?, entity = '', body = null, cause = null, hollow = 0"
            " where device = ? and seq = ?",
            [(ERASED, *place) for place in said],
        )
        self._run_many("delete from erased where device = ? and seq = ?", said)  # whoever sent it keeps it
        forgot = self._fetch("select 1 from op where entity = ? and type = ? limit 1", (entity, int(OpType.FORGET)))
        if not forgot:
            self._run("delete from tombstone where id = ?", (entity,))
            self._run("delete from tombstone_words where entity = ?", (entity,))
            self._projections.memories.drop([entity])
            self._projections.memories.project_again([entity])

    def note(self, noted: Mapping[str, Sequence[tuple[int, str, bytes]]]) -> None:
        """Put ops as they are taken in now in the place of those that a version kept which noted no bounds.

        Of each device these are (seq, entity, op). `BOUNDS_NOTED` says from then on that it was done.
        """
        for device, kept in noted.items():
            self._run_many(
                "update op set body = ? where device = ? and seq = ?", [(data, device, seq) for seq, _, data in kept]
            )
        self._projections.memories.project_again(
            list(dict.fromkeys(entity for kept in noted.values() for _, entity, _ in kept))
        )
        if noted:
            self._context.note_rewritten()
        self._context.set_meta(BOUNDS_NOTED, "1")

    def number_causes(self) -> int:
        """Give the ops their causes that came before this version knew any. Returns how many there were."""
        numbered, at = 0, ("", 0)
        while found := self._fetch(
            "select device, seq, body from op where (device, seq) > (?, ?) and body is not null and cause is null"
            " order by device, seq limit ?",
            (*at, _AT_ONCE),
        ):
            at = found[-1][:2]
            named = [
                (self._log.cause_number(cause), device, seq)
                for device, seq, body in found
                if (cause := ops.cause_of(ops.decode(body, device=device, seq=seq))) is not None
            ]
            self._run_many("update op set cause = ? where device = ? and seq = ?", named)
            numbered += len(named)
        return numbered

    def _keep_erased(self, device: str, seqs: Sequence[int]) -> None:
        self._log.add([(device, seq, bytes(16), 0, ERASED, "", None, None, 0) for seq in seqs])
        self._count_received(device, len(seqs))

    def _count_received(self, device: str, count: int) -> None:
        if count:
            self._run(
                "insert into heard (device, ops) values (?, ?) on conflict do update set ops = ops + excluded.ops",
                (device, count),
            )

    def _quarantine(self, device: str, refused: Sequence[tuple[int, str | None, bytes, str]]) -> None:
        """Keep ops that cannot be applied: (seq, what it is about, encoded op, why). What was forgotten is not kept."""
        gone = self._context.queries.ops.forgotten(entity for _, entity, _, _ in refused if entity is not None)
        self._run_many(
            "insert into parked (device, seq, entity, op, why) values (?, ?, ?, ?, ?)",
            [(device, seq, entity, data, why) for seq, entity, data, why in refused if entity not in gone],
        )
        self._keep_erased(device, [seq for seq, entity, _, _ in refused if entity in gone])

    def _take_in(self, run: Ready) -> tuple[int, int, bool]:
        """Apply the ops that are well formed; quarantine what fails all the same.

        Returns how many were applied, how many conflicts opened, and whether words went.
        """
        count = run.count
        if not count:
            return 0, 0, False
        held, self._context.changes = self._context.changes, Changes()
        self._run("savepoint taken")
        try:
            with uncollected():
                conflicts, erased = self._apply(run)
        except _NOT_OURS as error:
            self._run("rollback to taken")
            self._run("release taken")
            self._log.rolled_back()
            self._context.changes = held
            if count == 1:
                self._quarantine(run.device, [_failed(run, error)])
                return 0, 0, False
            each = [self._take_in(one) for one in run.each()]
            return sum(one[0] for one in each), sum(one[1] for one in each), any(one[2] for one in each)
        self._run("release taken")
        made, self._context.changes = self._context.changes, held
        made.arrived, made.erased = True, erased
        held.follow(made)
        return count, conflicts, erased

    def _apply(self, run: Ready) -> tuple[int, bool]:
        """Apply ops of one device. Returns how many conflicts opened, and whether words went.

        What was forgotten, now or ever, gets no body and no rows: a tombstone does not care which came first. Of events
        no records are made, only rows: nearly all that a new device reads is events.
        """
        device = run.device
        others = [(ops.decode(data, device=device, seq=seq), data) for seq, data in run.others]
        of: dict[int, list[Op]] = {}
        for op, _ in others:
            of.setdefault(op.type, []).append(op)
        forgets = of.get(OpType.FORGET, [])
        entities = {op.seq: ops.entity_of(op) for op, _ in others}
        grips = {op.seq: ops.grip_of(op) for op in of.get(OpType.GRIP, [])}
        tombstoned = {entities[op.seq] for op in forgets}
        gone = (
            self._context.queries.ops.forgotten({*entities.values(), *grips.values()}) | tombstoned
            if others
            else tombstoned
        )

        def erased_before(op: Op) -> bool:
            return op.type != OpType.FORGET and (entities[op.seq] in gone or grips.get(op.seq) in gone)

        if run.ops and self._context.queries.tombstones.any_words():
            self._sweep_from_here()
        self._log.add(
            [
                (
                    *(device, op.seq, op.op_id, op.hlc, op.type, entities[op.seq]),
                    None if erased_before(op) else data,
                    self._log.cause_number(ops.cause_of(op)),
                    int(ops.is_hollow(op)),
                )
                for op, data in others
            ]
        )
        self._count_received(device, run.count)
        erased = self._projections.erasure.tombstone(forgets) if forgets else False
        if any(ops.words_of(op) is not None for op in forgets):
            self._context.set_meta(UNSWEPT, json.dumps([0, 0]))  # what is here may hold the same words
        many = ("event", "op", "unlearned") if len(run.places) >= _MANY else ()
        with checksums.brought_along(self._context.connection, many):
            if run.ops and not self._receive_as_ready(run):
                events = run.events
                for at in range(0, len(events), _AT_ONCE):
                    self._receive_events(device, events[at : at + _AT_ONCE])
        redacted = {entities[op.seq] for op in of.get(OpType.BLANK, [])} - gone
        erased = (self._projections.events.redact(redacted) if redacted else False) or erased
        if erased:
            full_text.erase_traces(self._context)
        self._receive_counts(device, of.get(OpType.COUNT, []), gone)
        touched = dict.fromkeys(
            entities[op.seq]
            for op, _ in others
            if op.type in OF_MEMORIES and op.type != OpType.COUNT and entities[op.seq] not in gone
        )
        conflicts = self._project([op for op, _ in others if entities[op.seq] in touched], entities, list(touched))
        most = clock.latest(Millis(self._context.now + clock.MAX_LEAD_MS))
        stamps = [*run.stamps, *(int(op.hlc) for op, _ in others)]
        near = max([stamp for stamp in stamps if stamp <= most], default=0)
        head = self._context.head
        head.hlc = clock.receive(head.hlc, Hlc(near), self._context.now)
        return conflicts, erased

    def _project(self, received: Sequence[Op], entities: Mapping[int, str], ids: Sequence[str]) -> int:
        """Make the rows of the memories that some ops are about, and empty what is superseded by them or above them.

        Returns how many conflicts opened. Writes that have no value left are read only where they may have superseded
        what has come: of a memory that was edited a thousand times, an edit that comes reads those that still count.
        """
        last = self._context.queries.ops.emptied_at(ids)
        later = {
            memory_id: all(
                not ops.is_hollow(op) and 0 < op.hlc - last.get(memory_id, 0) < clock.REACH
                for op in received
                if op.type == OpType.MEMORY and entities[op.seq] == memory_id
            )
            for memory_id in last
        }
        conflicts = 0
        for at in range(0, len(ids), PROJECTED_AT_ONCE):
            some = ids[at : at + PROJECTED_AT_ONCE]
            queries = self._context.queries.ops
            logs = queries.whole(one for one in some if later.get(one, True))
            logs |= queries.of_entities(one for one in some if not later.get(one, True))
            conflicts += self._projections.memories.project(logs)
            self._superseded.follow(logs, [op for op in received if entities[op.seq] in logs])
        return conflicts

    def _receive_as_ready(self, run: Ready) -> bool:
        """Add the events of a run as its rows were made ready; returns False, and adds none, where these do not hold.

        They do when none of its events is held, forgotten or erased, and nobody else took its arrival numbers.
        """
        ids, queries = run.ids, self._context.queries
        if not run.numbered or run.numbered != queries.events.last() + 1 or len(set(ids)) < len(ids):
            return False
        if queries.ops.forgotten(ids) or self._projections.events.redactions(ids) or queries.events.held(ids):
            return False
        if run.said:
            self._log.add([self._logged(run.device, event, event.data) for event in run.events])
        else:
            self._log.add_ready(run.device, run.ops)
        self._projections.events.add_ready(run)
        return True

    def _logged(self, device: str, event: ReadyEvent, data: bytes | None) -> tuple[Any, ...]:
        """Return the row of an op that appends an event."""
        number = self._log.cause_number(event.cause)
        return device, event.seq, event.op_id, event.hlc, _EVENT, event.id, data, number, 0

    def _receive_events(self, device: str, received: Sequence[ReadyEvent]) -> None:
        """Add events to the log, and the rows of those that are new. The ops that redact or forget them are there."""
        ids = [event.id for event in received]
        gone, redactions = self._context.queries.ops.forgotten(ids), self._projections.events.redactions(ids)
        known = self._context.queries.events.held(ids)
        logged: list[tuple[Any, ...]] = []
        fresh: list[tuple[int, sqlite.Row, bool, int]] = []
        twins: list[tuple[int, sqlite.Row]] = []
        words: dict[int, tuple[str, str]] = {}
        for event in received:
            seq, event_id, kept, row = event.seq, event.id, event.data, event.row
            made = row
            spans = redactions.get(event_id)
            if event_id in gone:
                made, kept = (*row[:9], "", "{}", *row[11:]), None
            elif spans is not None:
                made = (*row[:9], ops.blanked(row[9], spans), *row[10:])
                if kept is not None:
                    kept = ops.encode(ops.with_blanks(ops.decode(kept, device=device, seq=seq), spans))
            logged.append(self._logged(device, event, kept))
            if event_id in known:
                twins.append((seq, made))
            else:
                known.add(event_id)
                fresh.append((seq, made, event_id in gone, int(made is not row)))
                if made is row:
                    words[seq] = event.found_by
        self._log.add(logged)
        if fresh:
            self._projections.events.add(fresh, learn=False, words=words)
        for seq, made in twins:
            self._projections.events.add_twin(seq, rows.event_of(made), forgotten=made[0] in gone)

    def _receive_counts(self, device: str, counts: Sequence[Op], gone: set[str]) -> None:
        said = [(ops.entity_of(op), *ops.total_of(op)) for op in counts]
        totals = [
            (memory_id, device, total, int(last))
            for memory_id, counter, total, last in said
            if counter == ops.Counter.ACCESS and memory_id not in gone
        ]
        self._projections.memories.count(totals)
        if device == self._context.head.device:  # its own log, back from the server after a loss
            self._run_many(
                "insert into access (memory_id, total, last, logged) values (?, ?, ?, ?) on conflict do update"
                " set total = max(total, excluded.total), last = max(last, excluded.last)",
                [(memory_id, total, last, last) for memory_id, _, total, last in totals],
            )


def _failed(run: Ready, error: Exception) -> Refused:
    """Return the one op of a run as one that could not be applied."""
    why = f"it cannot be applied: {type(error).__name__}"
    for event in run.events:
        return event.seq, event.id, data_of(event), why
    seq, data = run.others[0]
    return seq, ops.entity_of(ops.decode(data, device=run.device, seq=seq)), data, why
