"""What devices tell each other: taking in ops of others, giving out one's own, and going on as another device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scrubjay.ingest import receipt
from scrubjay.store import rows, sqlite
from scrubjay.store.projection import ERASED, OF_MEMORIES, PROJECTED_AT_ONCE, Projection
from scrubjay_io.sqlite import driver
from scrubjay_shared import clock, ops
from scrubjay_shared.clock import Hlc, Millis, ulid_text
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Event, Op, Scope

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

_Found = tuple[int, bytes, ops.Wire]
"""An op that came: (seq, its bytes, what they say)."""

_AT_ONCE = 512
"""Events of a run whose rows are in memory at one time: few enough for a processor's cache, and to die young."""

_READDRESSED = 64
"""Ops whose bytes are in memory at one time while they change hands: one may be megabytes long."""

_EVENT = int(OpType.EVENT)


class Outgoing(NamedTuple):
    """One op as sync sends it. `data` are its encoded bytes, None when it was erased.

    `entity` is what decides the scope: the op's own, but the memory's for what is about a grip. `project` is the
    project that entity was first written with: of an event its own, of a memory in scope project its resource id; None
    for everything else, and where it is no longer known (the entity was erased). A tuple, because a million of them are
    made when a store is first sent.
    """

    seq: int
    type: int
    entity: str
    data: bytes | None
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of a run of ops of a device. `erased` says that words of this store went: old copies must go too."""

    applied: int = 0
    duplicates: int = 0
    parked: int = 0
    conflicts: int = 0
    erased: bool = False


class Peers(Projection):
    """The part of a transaction that speaks with other devices."""

    # --- receiving ----------------------------------------------------------------------------------------------------

    def receive(self, device: str, run: Sequence[tuple[int, bytes | None]]) -> Received:
        """Take in ops of another device, or of this one's own lane: (seq, encoded op, or None for an erased one).

        They may come in any order, with gaps, and any number of times. What this version cannot apply is parked, never
        raised. What they say is not distilled here: that is done where it was said.
        """
        latest = dict(run)
        known = self.fetch(
            "select seq from op where device = ?1 and seq in (select value from json_each(?2)) union all"
            " select seq from parked where device = ?1 and seq in (select value from json_each(?2))",
            (device, rows.array(latest)),
        )
        for (seq,) in known:
            del latest[seq]
        readable: list[_Found] = []
        refused: list[tuple[int, str | None, bytes, str]] = []
        for seq, data in sorted(latest.items()):
            if data is not None:
                kept, wire, why = _read(device, seq, data)
                if wire is None or why:
                    refused.append((seq, None if wire is None else _about(wire), kept, why))
                else:
                    readable.append((seq, kept, wire))
        self._keep_erased(device, [seq for seq, data in latest.items() if data is None])
        self._park(device, refused)
        applied, conflicts, erased = self._take(device, readable)
        if device == self._store.device and latest:
            self._store.last_seq = max(self._store.last_seq, *latest)
        return Received(
            applied=applied,
            duplicates=len(run) - len(latest),
            parked=len(latest) - applied - sum(data is None for data in latest.values()),
            conflicts=conflicts,
            erased=erased,
        )

    def retry_parked(self) -> Received:
        """Try the ops that could not be applied once more: this version may know them."""
        applied = conflicts = tried = 0
        erased = False
        for (device,) in self.fetch("select distinct device from parked"):
            again = [
                (seq, kept, wire)
                for seq, data in self.fetch("select seq, op from parked where device = ? order by seq", (device,))
                for kept, wire, why in (_read(device, seq, data),)
                if wire is not None and not why
            ]
            self._run_many("delete from parked where device = ? and seq = ?", [(device, seq) for seq, _, _ in again])
            taken, opened, words = self._take(device, again)
            tried, applied, conflicts, erased = tried + len(again), applied + taken, conflicts + opened, erased or words
        return Received(applied=applied, parked=tried - applied, conflicts=conflicts, erased=erased)

    def _keep_erased(self, device: str, seqs: Sequence[int]) -> None:
        self._run_many(
            "insert into op (device, seq, op_id, hlc, type, entity, body) values (?, ?, zeroblob(16), 0, ?, '', null)",
            [(device, seq, ERASED) for seq in seqs],
        )
        self._hear(device, len(seqs))

    def _hear(self, device: str, count: int) -> None:
        if count:
            self._run(
                "insert into heard (device, ops) values (?, ?) on conflict do update set ops = ops + excluded.ops",
                (device, count),
            )

    def _park(self, device: str, refused: Sequence[tuple[int, str | None, bytes, str]]) -> None:
        """Keep ops that cannot be applied: (seq, what it is about, encoded op, why). What was forgotten is not kept."""
        gone = self.forgotten(entity for _, entity, _, _ in refused if entity is not None)
        self._run_many(
            "insert into parked (device, seq, entity, op, why) values (?, ?, ?, ?, ?)",
            [(device, seq, entity, data, why) for seq, entity, data, why in refused if entity not in gone],
        )
        self._keep_erased(device, [seq for seq, entity, _, _ in refused if entity in gone])

    def _take(self, device: str, found: Sequence[_Found]) -> tuple[int, int, bool]:
        """Apply ops that are well formed; park what fails all the same. Returns (applied, conflicts opened, erased)."""
        if not found:
            return 0, 0, False
        held, self.changes = self.changes, type(self.changes)()
        self._run("savepoint taken")
        try:
            conflicts, erased = self._apply(device, found)
        except _NOT_OURS as error:
            self._run("rollback to taken")
            self._run("release taken")
            self.changes = held
            if len(found) == 1:
                seq, data, wire = found[0]
                self._park(device, [(seq, _about(wire), data, f"it cannot be applied: {type(error).__name__}")])
                return 0, 0, False
            each = [self._take(device, [one]) for one in found]
            return sum(one[0] for one in each), sum(one[1] for one in each), any(one[2] for one in each)
        self._run("release taken")
        made, self.changes = self.changes, held
        made.arrived, made.erased = True, erased
        held.follow(made)
        return len(found), conflicts, erased

    def _apply(self, device: str, found: Sequence[_Found]) -> tuple[int, bool]:
        """Apply ops of one device, in order of their seq. Returns how many conflicts opened, and whether words went.

        What was forgotten, now or ever, gets no body and no rows: a tombstone does not care which came first. Of events
        no records are made, only rows: nearly all that a new device reads is events.
        """
        events = [one for one in found if one[2][0] == _EVENT]
        others = [(ops.op_of(wire, device=device, seq=seq), data) for seq, data, wire in found if wire[0] != _EVENT]
        of: dict[int, list[Op]] = {}
        for op, _ in others:
            of.setdefault(op.type, []).append(op)
        forgets = of.get(OpType.FORGET, [])
        entities = {op.seq: ops.entity_of(op) for op, _ in others}
        grips = {op.seq: ops.grip_of(op) for op in of.get(OpType.GRIP, [])}
        buried = {entities[op.seq] for op in forgets}
        gone = self.forgotten({*entities.values(), *grips.values()}) | buried if others else buried

        def erased_before(op: Op) -> bool:
            return op.type != OpType.FORGET and (entities[op.seq] in gone or grips.get(op.seq) in gone)

        self._log_rows(
            (device, op.seq, op.op_id, op.hlc, op.type, entities[op.seq], None if erased_before(op) else data)
            for op, data in others
        )
        self._hear(device, len(found))
        erased = self._bury(forgets) if forgets else False
        for at in range(0, len(events), _AT_ONCE):
            self._receive_events(device, events[at : at + _AT_ONCE])
        blanked = {entities[op.seq] for op in of.get(OpType.BLANK, [])} - gone
        erased = (self._blank(blanked) if blanked else False) or erased
        if erased:
            self.erase_traces()
        self._receive_counts(device, of.get(OpType.COUNT, []), gone)
        touched = dict.fromkeys(
            entities[op.seq]
            for op, _ in others
            if op.type in OF_MEMORIES and op.type != OpType.COUNT and entities[op.seq] not in gone
        )
        conflicts = 0
        memories = list(touched)
        for at in range(0, len(memories), PROJECTED_AT_ONCE):
            conflicts += self._project(self._logs(rows.array(memories[at : at + PROJECTED_AT_ONCE])))
        most = clock.latest(Millis(self.now + clock.MAX_LEAD_MS))
        near = max([wire[3] for _, _, wire in found if wire[3] <= most], default=0)
        self._store.last_hlc = clock.receive(self._store.last_hlc, Hlc(near), self.now)
        return conflicts, erased

    def _log_rows(self, logged: Iterable[tuple[Any, ...]]) -> None:
        self._run_many(
            "insert into op (device, seq, op_id, hlc, type, entity, body) values (?, ?, ?, ?, ?, ?, ?)", list(logged)
        )

    def _receive_events(self, device: str, received: Sequence[_Found]) -> None:
        """Add events to the log, and the rows of those that are new. What they are blanked or buried by is there."""
        ids = [ulid_text(wire[4][ops.ENTITY]) for _, _, wire in received]
        gone, blanks = self.forgotten(ids), self._blanks(ids)
        known = self._which("select id from event where id in (select value from json_each(?))", ids)
        logged: list[tuple[Any, ...]] = []
        fresh: list[tuple[int, sqlite.Row, bool, int]] = []
        twins: list[tuple[int, sqlite.Row]] = []
        for event_id, (seq, data, wire) in zip(ids, received, strict=True):
            _, _, op_id, hlc, body = wire
            row = made = rows.received_row(device, event_id, body)
            kept: bytes | None = data
            spans = blanks.get(event_id)
            if event_id in gone:
                made, kept = (*row[:9], "", "{}", *row[11:]), None
            elif spans is not None:
                made = (*row[:9], ops.blanked(row[9], spans), *row[10:])
                kept = ops.encode(ops.with_blanks(ops.op_of(wire, device=device, seq=seq), spans))
            if kept is not None and ops.is_repeatable(wire, data, rows.unjson(row[10]) if 12 in body else None):
                kept = None
            logged.append((device, seq, op_id, hlc, _EVENT, event_id, kept))
            if event_id in known:
                twins.append((seq, made))
            else:
                known.add(event_id)
                fresh.append((seq, made, event_id in gone, int(made is not row)))
        self._log_rows(logged)
        if fresh:
            self._add_events(fresh, learn=False)
        for seq, made in twins:
            self._receive_twin(seq, rows.event_of(made), forgotten=made[0] in gone)

    def _receive_twin(self, seq: int, event: Event, *, forgotten: bool) -> None:
        """Take in an event that another device has under the same id: the same one of the two counts everywhere."""
        row = self.fetch(f"select {rows.EVENT_COLUMNS} from event where id = ?", (event.id,))[0]
        there = rows.event_of(row)
        if there == event or ops.first_event(event, there) is there:
            return
        self._run(
            f"update event set ({rows.EVENT_COLUMNS}, seq, forgotten) = ({rows.placeholders(rows.EVENT_COLUMNS)}, ?, ?)"
            " where id = ?",
            (*rows.event_row(event), seq, int(forgotten), event.id),
        )
        self._rewrote()
        self._reindex(rows.array([event.id]))
        self._project_sessions([there.session_id])
        self._cover([there.session_id])

    def _receive_counts(self, device: str, counts: Sequence[Op], gone: set[str]) -> None:
        said = [(ops.entity_of(op), *ops.total_of(op)) for op in counts]
        totals = [
            (memory_id, device, total, int(last))
            for memory_id, counter, total, last in said
            if counter == ops.Counter.ACCESS and memory_id not in gone
        ]
        self._count(totals)
        if device == self._store.device:  # its own log, back from the server after a loss
            self._run_many(
                "insert into access (memory_id, total, last, logged) values (?, ?, ?, ?) on conflict do update"
                " set total = max(total, excluded.total), last = max(last, excluded.last)",
                [(memory_id, total, last, last) for memory_id, _, total, last in totals],
            )

    # --- sending ------------------------------------------------------------------------------------------------------

    def unsent(self, after_seq: int, limit: int) -> list[Outgoing]:
        """Return up to `limit` of this device's ops after `after_seq`, in order."""
        return self._outgoing(
            "o.device = ? and o.seq > ? order by o.seq limit ?", (self._store.device, after_seq, limit)
        )

    def ops_between(self, device: str, low: int, high: int) -> list[Outgoing]:
        """Return the ops of a device from `low` to `high`, both included, in order; those that never came are absent.

        Those that could not be applied here are among them.
        """
        found = self._outgoing("o.device = ? and o.seq between ? and ? order by o.seq", (device, low, high))
        for seq, entity, data in self.fetch(
            "select seq, entity, op from parked where device = ? and seq between ? and ?", (device, low, high)
        ):
            found.append(Outgoing(seq=seq, type=ERASED, entity=entity or "", data=data, project=None))
        return sorted(found, key=lambda one: one.seq)

    def _outgoing(self, where: str, params: Sequence[Any]) -> list[Outgoing]:
        columns = rows.prefixed(rows.EVENT_COLUMNS, "e")
        projects: dict[str, str | None] = {}
        found: list[Outgoing] = []
        for seq, op_type, entity, op_id, hlc, body, device, forgotten, *row in self.fetch(
            f"select o.seq, o.type, o.entity, o.op_id, o.hlc, o.body, o.device, e.forgotten, {columns}"
            f" from op o left join event e on e.id = o.entity where {where}",
            params,
        ):
            about, data, is_event = entity, body, row[0] is not None
            if op_type == _EVENT and body is None and is_event and not forgotten:
                data = ops.encode_event_body(rows.event_body(row), op_id, hlc)
            elif op_type == OpType.FORGET and body is not None:
                about = ops.owner_of(ops.decode(body, device=device, seq=seq)) or entity
            if not is_event and about not in projects:
                projects[about] = self._project_of(about)
            found.append(Outgoing(seq, op_type, about, data, row[4] if is_event else projects[about]))
        return found

    def _project_of(self, memory_id: str) -> str | None:
        """Return the project that a memory was first written for."""
        state = ops.fold(self._logs(rows.array([memory_id])).get(memory_id, ()))

        def first(key: Field) -> Any:
            versions = state.registers.get((memory_id, int(key)))
            return versions[min(versions)][0] if versions else None

        project = first(Field.RESOURCE_ID) if first(Field.SCOPE) == Scope.PROJECT else None
        return project if isinstance(project, str) else None

    # --- another incarnation ------------------------------------------------------------------------------------------

    def reincarnate(self, device: str, after_seq: int) -> int:
        """Go on as another device: own ops after `after_seq` become ops 1, 2, … of `device`. Returns how many.

        The others stay with the device that they were sent as, which this store then treats as any other device. Times
        and op ids stay, so that the same change sent under both is the same change.
        """
        old = self._store.device
        mine = [
            (op_type, seq, None if body is None else ops.decode(body, device=old, seq=seq), entity)
            for op_type, seq, body, entity in self.fetch(
                "select type, seq, body, entity from op where device = ? and seq > ? order by seq", (old, after_seq)
            )
        ]
        moved = {stamp for _, _, op, _ in mine if op is not None for stamp in ops.stamps_of(op)}
        acknowledged = self._acknowledged(old, after_seq)
        self._run("update op set device = ?1, seq = seq - ?2 where device = ?3 and seq > ?2", (device, after_seq, old))
        changed = []
        for op_type, seq, op, entity in mine:
            if op is None:
                continue
            new = ops.readdressed(op, device, seq - after_seq, moved)
            if op_type == OpType.COUNT:
                _, total, _ = ops.total_of(op)
                new = ops.counted(new, max(total - acknowledged.get(entity, 0), 0))
            if new.body != op.body:
                changed.append((ops.encode(new), device, new.seq))
        self._run_many("update op set body = ? where device = ? and seq = ?", changed)
        self._run_many(
            "update access set total = max(total - ?, 0) where memory_id = ?",
            [(total, memory_id) for memory_id, total in acknowledged.items()],
        )
        self._run(
            "update event set (device, seq) = (select o.device, o.seq from op o where o.entity = event.id"
            " and o.type = ? order by o.device, o.seq limit 1) where device = ? and seq > ?",
            (int(OpType.EVENT), old, after_seq),
        )
        self.set_meta("device", device)
        self._rewrote()
        self._store.device, self._store.last_seq = device, mine[-1][1] - after_seq if mine else 0
        entities = list(
            dict.fromkeys(entity for op_type, _, op, entity in mine if op is not None and op_type in OF_MEMORIES)
        )
        for at in range(0, len(entities), PROJECTED_AT_ONCE):
            self._project(self._logs(rows.array(entities[at : at + PROJECTED_AT_ONCE])))
        return len(mine)

    def adopt(self) -> int:
        """Make every op of every device this one's own, in the order of their times. Returns how many changed hands.

        For an account that knows none of them: they go to it as this device's, under ids and times that stay. What the
        others counted becomes this device's count. What is parked stays, and is sent by whoever can read it.
        """
        own, at = self._store.device, 0
        self._run(
            "insert into access (memory_id, total, last, logged)"
            " select memory_id, sum(total), max(last), 0 from counted where device <> ? group by memory_id"
            " on conflict do update set total = total + excluded.total, last = max(last, excluded.last), logged = 0",
            (own,),
        )
        self._run("update op set body = null where device <> ? and type = ?", (own, int(OpType.COUNT)))
        self._run("insert or ignore into unlearned (n) select n from event where device <> ?", (own,))
        while found := self.fetch(
            "select device, seq, body from op where device = ? and seq > ? order by seq limit ?",
            (own, at, _READDRESSED),
        ):
            for device, seq, body in found:
                self._readdress(device, seq, body, own, seq)
            at = found[-1][1]
        adopted = self._adopt_others(own, at)
        self._run(
            "update event set (device, seq) = (select o.device, o.seq from op o where o.entity = event.id"
            " and o.type = ? order by o.seq limit 1) where device <> ?",
            (int(OpType.EVENT), own),
        )
        self._run("delete from heard")
        self._rewrote()
        self._store.last_seq = at + adopted
        self.project_all()
        return adopted

    def _adopt_others(self, own: str, last: int) -> int:
        """Put the ops of all other devices after `last` in this one's log. Returns how many.

        Their order is written down first, as it is by times that no index follows, and then a page is held at a time.
        """
        self._run("create temp table adopting (place integer primary key, device text, seq integer)")
        self._run(
            "insert into temp.adopting select row_number() over (order by hlc, device, seq), device, seq"
            " from main.op where device <> ?",
            (own,),
        )
        place = 0
        while found := self.fetch(
            "select a.place, o.device, o.seq, o.body from temp.adopting a join main.op o on o.device = a.device"
            " and o.seq = a.seq where a.place > ? order by a.place limit ?",
            (place, _READDRESSED),
        ):
            for at, device, seq, body in found:
                self._readdress(device, seq, body, own, last + at)
            place = found[-1][0]
        self._run("drop table temp.adopting")
        return place

    def _readdress(self, device: str, seq: int, body: bytes | None, own: str, at: int) -> None:
        new = None if body is None else ops.encode(ops.adopted(ops.decode(body, device=device, seq=seq), own, at))
        if device != own or new != body:
            self._run(
                "update op set device = ?, seq = ?, body = ? where device = ? and seq = ?", (own, at, new, device, seq)
            )

    def _acknowledged(self, device: str, upto: int) -> dict[str, int]:
        """Return what a device's log up to a place says of how often it recalled each memory that is still there."""
        found: dict[str, int] = {}
        for entity, seq, body in self.fetch(
            "select entity, seq, body from op where device = ? and seq <= ? and type = ? and body is not null",
            (device, upto, int(OpType.COUNT)),
        ):
            counter, total, _ = ops.total_of(ops.decode(body, device=device, seq=seq))
            if counter == ops.Counter.ACCESS:
                found[entity] = max(found.get(entity, 0), total)
        return found


def _read(device: str, seq: int, data: bytes) -> tuple[bytes, ops.Wire | None, str]:
    """Return an op of another device without its secrets: its bytes, what they say, and why it cannot be applied.

    What they say is None when they cannot be read.
    """
    try:
        sent = ops.read(data, device=device, seq=seq)
    except CorruptError:
        return receipt.unread(data), None, "it cannot be read"
    wire = receipt.received(sent)
    if wire is not sent:
        data = ops.encode_wire(wire)
    return data, wire, ops.wire_problem(wire)


def _about(wire: ops.Wire) -> str | None:
    """Return the entity of an op that may be not well formed."""
    entity = wire[4].get(ops.ENTITY)
    return ulid_text(entity) if isinstance(entity, bytes) and len(entity) == 16 else None
