"""What can be done inside one transaction: every change appends its op, and the projections follow from the ops.

The writes of this device are here; `peers` takes in those of others, `projection` makes the tables of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.store import rows
from scrubjay.store.embed_queue import Place
from scrubjay.store.peers import Peers
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, field_stamp, millis_of, tick, ulid, uuid7
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.ops import Field, OpType, Stamp
from scrubjay_shared.records import Event, Grip, Op

START = Hlc(0)


ENDS = (
    "with recursive known(device) as (select min(device) from op union all"
    " select (select min(op.device) from op where op.device > known.device) from known where known.device is not null)"
    " select op.device, op.seq, op.op_id, op.hlc from known join op on op.device = known.device"
    " and op.seq = (select max(last.seq) from op last where last.device = known.device)"
)
"""The last op of each device: (device, seq, op id, hlc). Plain `distinct` and `max(hlc)` would read the whole log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWrite:
    """New values for some registers of one memory, new grips, and names to claim for it."""

    memory_id: str
    fields: Mapping[Field, Any]
    grips: tuple[Grip, ...] = ()
    names: tuple[str, ...] = ()
    settles: bool = False
    """Whether the writer decides: open conflicts of these fields are then closed, here and everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Up to where a copy of the store speaks.

    `ends` is the last op (seq, op id) of each device, `heard` how many of its ops were received by then: gaps may be
    filled later. `events` is the arrival number of the last event, `rewritten` how often earlier ones were changed.
    """

    ends: Mapping[str, tuple[int, bytes]]
    events: int
    heard: Mapping[str, int] = field(default_factory=dict)
    rewritten: int = 0


class Transaction(Peers):
    """The writes of one submission. Lives until its work function returns; `now` is the one time of all of them.

    Everything here runs in the thread of the connection that may write, so it is plain, not async: one hop between
    threads a group of transactions, instead of one a statement.
    """

    def new_id(self, at: Millis | None = None) -> str:
        """Return a fresh ULID of a time (now, unless told)."""
        return ulid(self.now if at is None else at, self._entropy(10))

    # --- the log ------------------------------------------------------------------------------------------------------

    def _next_stamp(self) -> Hlc:
        self._store.last_hlc = tick(self._store.last_hlc, self.now)
        return self._store.last_hlc

    def _op(self, op_type: OpType, body: dict[int, Any], floor: Hlc = START) -> Op:
        """Make the next op of this device. `floor` is the greatest stamp among the values it replaces."""
        now = self._next_stamp()
        self._store.last_seq += 1
        return Op(
            device=self._store.device,
            seq=self._store.last_seq,
            # The time of the device clock, not of a stamp that had to be above another one: after a restart the clock
            # is read from here, and a floor must not move it.
            op_id=uuid7(millis_of(now), self._entropy(10)),
            hlc=field_stamp(now, floor),
            type=int(op_type),
            body=body,
        )

    def _log(self, written: Sequence[Op]) -> None:
        self._run_many(
            "insert into op (device, seq, op_id, hlc, type, entity, body) values (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    op.device,
                    op.seq,
                    op.op_id,
                    op.hlc,
                    op.type,
                    ops.entity_of(op),
                    None if op.type == OpType.EVENT else ops.encode(op),
                )
                for op in written
            ],
        )

    def ops_of(self, entity: str) -> list[Op]:
        """Return the ops of an entity that were not erased."""
        return [
            ops.decode(body, device=device, seq=seq)
            for device, seq, body in self.fetch(
                "select device, seq, body from op where entity = ? and body is not null", (entity,)
            )
        ]

    def position(self) -> Position:
        """Return where the log ends."""
        return Position(
            ends={str(device): (int(seq), bytes(op_id)) for device, seq, op_id, _ in self.fetch(ENDS)},
            events=self._last_event(),
            heard=dict(self.fetch("select device, ops from heard")),
            rewritten=int(self._meta("rewritten", "0")),
        )

    # --- events -------------------------------------------------------------------------------------------------------

    def known_events(self, events: Sequence[Event]) -> dict[str, str]:
        """Return the ids of those events that are already there, by dedupe key; forgotten ones count as there.

        An event is there when its key is, or its id (of an import).
        """
        ids = self._which(
            "select id from event where id in (select value from json_each(?1)) union"
            " select id from tombstone where id in (select value from json_each(?1))",
            [event.id for event in events if event.id],
        )
        return {event.dedupe_key: event.id for event in events if event.id in ids} | {
            str(key): str(event_id)
            for key, event_id in self.fetch(
                "select dedupe_key, min(id) from event where dedupe_key in (select value from json_each(?)) group by 1",
                (rows.array(event.dedupe_key for event in events),),
            )
        }

    def append_events(self, events: Sequence[Event], *, learn: bool) -> None:
        """Append events that `known_events` does not know, each with its op, and open or close their sessions."""
        if not events:
            return
        blanks = self._blanks(event.id for event in events)  # of one that comes back from an export
        events = [
            replace(event, text=ops.blanked(event.text, blanks.get(event.id, ())), device=self._store.device)
            for event in events
        ]
        written = [self._op(OpType.EVENT, ops.event_body(event)) for event in events]
        self._log(written)
        self._add_events(
            [
                (op.seq, rows.event_row(event), False, int(event.id in blanks))
                for op, event in zip(written, events, strict=True)
            ],
            learn=learn,
        )

    def erased_since(self, events: Sequence[Event]) -> bool:
        """Say whether forget has reached into any of some events since they were read."""
        read = {event.id: event.text for event in events}
        found = self.fetch(
            "select id, text from event where erased > 0 and id in (select value from json_each(?))",
            (rows.array(read),),
        )
        return any(read[event_id] != text for event_id, text in found)

    def learned(self, session_id: str, n: int) -> None:
        """Note that the events of a session up to arrival number `n` have been distilled."""
        self._run(
            "insert into learned (session_id, n) values (?1, ?2) on conflict do update set n = max(n, ?2)",
            (session_id, n),
        )

    # --- memories -----------------------------------------------------------------------------------------------------

    def write_memories(self, writes: Sequence[MemoryWrite]) -> None:
        """Write some registers of some memories (making those that are new), anchor them, and claim names for them.

        Raises ConflictError when a name belongs to another memory, NotFoundError when a memory was forgotten.
        """
        ids = rows.array(write.memory_id for write in writes)
        buried = self.fetch("select id from tombstone where id in (select value from json_each(?))", (ids,))
        if buried:
            raise NotFoundError(
                f"memory {buried[0][0]} was forgotten", hint="scrubjay add makes a new memory of the same words"
            )
        logs = self._logs(ids)
        self._refuse_taken(writes)
        written: list[Op] = []
        for write in writes:
            log = logs.setdefault(write.memory_id, [])
            state = ops.fold(log)
            new: list[Op] = []
            if write.fields:
                bases, also = _seen(state, write)
                floor = Hlc(max((hlc for hlc, _ in bases.values()), default=0))
                body = ops.memory_body(write.memory_id, write.fields, bases, also)
                new.append(self._op(OpType.MEMORY, body, floor))
            held = {name for name, _, _ in ops.live_claims(state)}
            new += [
                self._op(OpType.CLAIM, ops.claim_body(write.memory_id, name))
                for name in write.names
                if name not in held
            ]
            new += [self._op(OpType.GRIP, ops.grip_body(grip)) for grip in write.grips]
            log += new
            written += new
        self._log(written)
        self._project({write.memory_id: logs[write.memory_id] for write in writes})

    def _refuse_taken(self, writes: Sequence[MemoryWrite]) -> None:
        wanted: dict[str, str] = {}
        for write in writes:
            for name in write.names:
                if wanted.setdefault(name, write.memory_id) != write.memory_id:
                    raise ConflictError(
                        f"the name {name!r} is given twice",
                        hint="a name belongs to one memory: choose another for the second",
                    )
        for name, holder in self.fetch(
            "select name, memory_id from name where name in (select value from json_each(?))", (rows.array(wanted),)
        ):
            if holder != wanted[name]:
                raise ConflictError(
                    f"the name {name!r} belongs to memory {holder}", hint="choose another, or rename that one first"
                )

    def unclaim(self, memory_id: str, name: str) -> None:
        """Take an alias away from a memory. Raises NotFoundError when it has no such alias."""
        before = self.ops_of(memory_id)
        state = ops.fold(before)
        held = self.fetch("select canonical, claimed from name where name = ? and memory_id = ?", (name, memory_id))
        seen = [stamp for claimed, stamp, _ in ops.live_claims(state) if held and claimed == held[0][1]]
        if not seen:
            raise NotFoundError(
                f"memory {memory_id} has no alias {name!r}", hint=f"scrubjay get {memory_id} shows its aliases"
            )
        if held[0][0]:
            raise ConflictError(
                f"{name!r} is the name of memory {memory_id}, not an alias",
                hint="scrubjay rename gives it another name",
            )
        op = self._op(OpType.UNCLAIM, ops.unclaim_body(memory_id, held[0][1], seen))
        self._log([op])
        self._project({memory_id: [*before, op]})

    def said(self, content_hashes: Iterable[str]) -> list[tuple[str, str, str | None, str]]:
        """Return (content hash, scope, resource id, id) of the live memories that say some contents."""
        return [
            (row[0], row[1], row[2], row[3])
            for row in self.fetch(
                "select content_hash, scope, resource_id, id from memory where superseded_by is null"
                " and layer not in ('identity', 'active')"
                " and content_hash in (select value from json_each(?)) order by n desc",
                (rows.array(content_hashes),),
            )
        ]

    def is_named(self, memory_id: str) -> bool:
        """Say whether a memory has a canonical name."""
        return bool(self.fetch("select 1 from memory where id = ? and name is not null", (memory_id,)))

    def is_observation(self, memory_id: str) -> bool:
        """Say whether a memory was distilled, and so rests on its grips."""
        return bool(self.fetch("select 1 from memory where id = ? and kind = 'observation'", (memory_id,)))

    def anchored(self, grips: Mapping[str, Sequence[Grip]]) -> set[str]:
        """Return which of some grips, by memory, are there already or were forgotten."""
        ids = [grip.id for found in grips.values() for grip in found]
        return self._which("select id from grip where id in (select value from json_each(?))", ids) | self.forgotten(
            ids
        )

    def holders(self, names: Iterable[str]) -> dict[str, str]:
        """Return which memory each of some names resolves to."""
        return {
            row[0]: row[1]
            for row in self.fetch(
                "select name, memory_id from name where name in (select value from json_each(?))", (rows.array(names),)
            )
        }

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def grips_of(self, memory_id: str) -> list[Grip]:
        """Return the grips of a memory."""
        return [
            rows.grip_of(row)
            for row in self.fetch(f"select {rows.GRIP_COLUMNS} from grip where memory_id = ? order by id", (memory_id,))
        ]

    def passages(self, grips: Iterable[Grip]) -> dict[str, list[tuple[int, int]]]:
        """Return the spans of each event's own text that some grips cover."""
        found: dict[str, list[tuple[int, int]]] = {}
        for grip in grips:
            if grip.event_id_start == grip.event_id_end:  # whether it has come here yet or not
                if grip.span_start < grip.span_end:
                    found.setdefault(grip.event_id_start, []).append((grip.span_start, grip.span_end))
                continue
            at = 0
            for event_id in self._covered(grip):
                length = len(self.fetch("select text from event where id = ?", (event_id,))[0][0])
                start, end = max(grip.span_start - at, 0), min(grip.span_end - at, length)
                if start < end:
                    found.setdefault(event_id, []).append((start, end))
                at += length + 1  # the newline between two events
        return found

    def holds(self, grip: Grip) -> bool:
        """Say whether the events of a grip say its excerpt at its place, and not only the grip."""
        texts = [self.fetch("select text from event where id = ?", (event_id,)) for event_id in self._covered(grip)]
        said = "\n".join(found[0][0] for found in texts if found)
        return bool(grip.excerpt) and said[grip.span_start : grip.span_end] == grip.excerpt

    def grips_over(self, event_id: str, spans: Sequence[tuple[int, int]] | None) -> list[Grip]:
        """Return the grips that cover any of some spans of an event's text; of all of it when `spans` is None."""
        found = self.fetch(
            f"select {rows.prefixed(rows.GRIP_COLUMNS, 'g')} from grip g join event a on a.id = g.event_id_start"
            " join event b on b.id = g.event_id_end and b.session_id = a.session_id"
            " join event e on e.id = ? and e.session_id = a.session_id"
            " and (e.ts, e.seq, e.id) between (a.ts, a.seq, a.id) and (b.ts, b.seq, b.id)",
            (event_id,),
        )
        return [
            grip
            for grip in map(rows.grip_of, found)
            if spans is None
            or any(
                start < high and low < end
                for low, high in self.passages([grip]).get(event_id, ())
                for start, end in spans
            )
        ]

    def forget_memory(self, memory_id: str) -> None:
        """Erase a memory: its rows, its vector, and the contents of its ops. A tombstone keeps it gone."""
        self._forget(memory_id)

    def forget_grip(self, grip: Grip) -> None:
        """Erase one grip of a memory that lives on: its excerpt is gone from the log too."""
        self._forget(grip.id, owner=grip.memory_id)

    def forget_event(self, event_id: str) -> None:
        """Erase what an event says. Its row stays as a tombstone, so that the same event is never taken in again."""
        self._forget(event_id)

    def blank_event(self, event_id: str, spans: Sequence[tuple[int, int]]) -> None:
        """Erase some passages of an event's text, leaving every other character where it is.

        An event that has not come here yet is blanked when it comes.
        """
        self._log([self._op(OpType.BLANK, ops.blank_body(event_id, spans))])
        self._blank([event_id])

    def _forget(self, entity: str, owner: str | None = None) -> None:
        op = self._op(OpType.FORGET, ops.forget_body(entity, owner))
        self._log([op])
        self._bury([op])

    # --- vectors, counts, jobs ----------------------------------------------------------------------------------------

    def space(self, name: str) -> int:
        """Return the number of an embedding space, giving it one if it is new."""
        self._run("insert or ignore into space (name) values (?)", (name,))
        return int(self.fetch("select id from space where name = ?", (name,))[0][0])

    def enter_space(self, name: str) -> int:
        """Embed in a space from now on: what has no vector in it waits for one. Returns its number."""
        space = self.space(name)
        self.queue.enter(space)
        return space

    def leave_space(self) -> None:
        """Embed nothing from now on."""
        if self.queue.space is not None:
            self.queue.refill(None)

    def put_vectors(self, space: int, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Store (owner, content hash, vector) of owners whose text is still the one that was embedded.

        An event's content hash is how often it was erased: nothing else changes it. An owner forgotten meanwhile is
        left out, or its vector would outlive it.
        """
        current = self._placed(owner for owner, _, _ in vectors)
        kept = [row for row in vectors if row[:2] in current]
        self._run_many(
            "insert or replace into embedding (space, owner, content_hash, vector) values (?, ?, ?, ?)",
            [(space, *row) for row in kept],
        )
        self.queue.embedded(space, [current[row[:2]] for row in kept])
        self.changes.vectors += [(space, owner, vector) for owner, _, vector in kept]

    def refuse(self, space: int, refusals: Sequence[tuple[str, str, str]]) -> None:
        """Note that the model of a space refused texts: (owner, content hash, reason). They wait no longer."""
        current = self._placed(owner for owner, _, _ in refusals)
        self.queue.refuse(space, [(current[row[:2]], row[2]) for row in refusals if row[:2] in current])

    def _placed(self, owners: Iterable[str]) -> dict[tuple[str, str], Place]:
        """Return where some owners stand in the queue, by (owner, content hash)."""
        return {
            (str(owner), str(said)): Place(memory, n)
            for owner, said, memory, n in self.fetch(
                "select id, content_hash, 1, n from memory where id in (select value from json_each(?1)) union all"
                " select id, cast(erased as text), 0, n from event where id in (select value from json_each(?1))",
                (rows.array(owners),),
            )
        }

    def count_accesses(self, found: Mapping[str, tuple[int, Millis]], *, log_after_ms: int) -> None:
        """Add to this device's counts of how often memories were recalled, and when last.

        A total goes into the log at most once in `log_after_ms`, so that recall does not become the log's main load.
        """
        self._run_many(
            "insert into access (memory_id, total, last, logged) select id, ?2, ?3, 0 from memory where id = ?1"
            " on conflict do update set total = total + ?2, last = max(last, ?3)",
            [(memory_id, count, last) for memory_id, (count, last) in found.items()],
        )
        self._log_counts(
            self.fetch(
                "select memory_id, total, last from access where logged <= ? and logged < last"
                " and memory_id in (select value from json_each(?))",
                (self.now - log_after_ms, rows.array(found)),
            )
        )

    def log_counts(self) -> None:
        """Put every count into the log that is ahead of it: before a copy is made that holds the log alone."""
        self._log_counts(self.fetch("select memory_id, total, last from access where logged < last"))

    def _log_counts(self, due: Sequence[tuple[Any, ...]]) -> None:
        self._log(
            [
                self._op(OpType.COUNT, ops.count_body(memory_id, ops.Counter.ACCESS, total, Millis(last)))
                for memory_id, total, last in due
            ]
        )
        self._count([(memory_id, self._store.device, total, last) for memory_id, total, last in due])
        self._run_many("update access set logged = ? where memory_id = ?", [(self.now, row[0]) for row in due])

    def take_lease(self, job: str, holder: str, lease_ms: int) -> bool:
        """Take the lease of a job, unless somebody else holds one that has not run out."""
        self._run("insert or ignore into job (name, runs, failures) values (?, 0, 0)", (job,))
        held = self.fetch("select holder, until from job where name = ?", (job,))[0]
        if held[0] not in {None, holder} and held[1] > self.now and held[1] <= self.now + lease_ms:
            return False
        self._run(
            "update job set holder = ?, until = ?, last_start = ? where name = ?",
            (holder, self.now + lease_ms, self.now, job),
        )
        return True

    def end_lease(self, job: str, took_ms: int, error: str | None) -> None:
        """Give a lease back and note how the job went."""
        self._run(
            "update job set holder = null, until = null, runs = runs + 1, failures = failures + ?, last_ms = ?,"
            " last_error = ? where name = ?",
            (int(error is not None), took_ms, error, job),
        )

    def drop_leases(self) -> None:
        """Give back all leases: whoever opens the store is alone, so they are a dead process's."""
        self._run("update job set holder = null, until = null where holder is not null")

    def tidy(self) -> None:
        """Let SQLite renew its statistics where they have gone stale, and merge a little of the full text."""
        self._run("pragma optimize")
        for table in ("event_fts", "memory_fts"):
            self._run(f"insert into {table} ({table}, rank) values ('merge', 200)")


def _seen(state: ops.State, write: MemoryWrite) -> tuple[dict[Field, Stamp], dict[Field, tuple[Stamp, ...]]]:
    """Return the stamps of the values that a write replaces, and of those that it settles beside them."""
    bases: dict[Field, Stamp] = {}
    also: dict[Field, tuple[Stamp, ...]] = {}
    for key in write.fields:
        if versions := state.registers.get((write.memory_id, int(key))):
            bases[key] = ops.winner(versions)
            if write.settles and (others := ops.unseen(versions)):
                also[key] = others
    return bases, also
