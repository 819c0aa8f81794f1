"""What can be done inside one transaction: every change appends its op, and the projections follow from the ops."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from scrubjay.store import rows
from scrubjay.store.file import fts_erases
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, field_stamp, millis_of, tick, ulid, uuid7
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.ops import Field, OpType, Stamp
from scrubjay_shared.records import Event, EventType, Grip, Memory, Op

if TYPE_CHECKING:
    from scrubjay.store.store import Changes, Store

TITLE_CHARS = 80
"""How much of the first words of a session serves as its title."""


PROJECTED_AT_ONCE = 500
"""Memories whose ops are in memory at one time during a rebuild."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where the log ends: of each device its last op (seq, op id), and the arrival number of the last event."""

    ends: Mapping[str, tuple[int, bytes]]
    events: int


class Transaction:
    """The writes of one submission. Lives until its work function returns; `now` is the one time of all of them.

    Everything here runs in the thread of the connection that may write, so it is plain, not async: one hop between
    threads a group of transactions, instead of one a statement.
    """

    def __init__(
        self,
        store: Store,
        connection: Any,
        changes: Changes,
        now: Millis,
        entropy: Callable[[int], bytes],
    ) -> None:
        self.now = now
        self.changes = changes
        self._store = store
        self._connection = connection
        self._entropy = entropy

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, with what this transaction has written so far."""
        found: list[tuple[Any, ...]] = self._connection.execute(sql, params).fetchall()
        return found

    def _run(self, sql: str, params: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, params)

    def _run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        if values:
            self._connection.executemany(sql, values)

    def new_id(self, at: Millis | None = None) -> str:
        """Return a fresh ULID of a time (now, unless told)."""
        return ulid(self.now if at is None else at, self._entropy(10))

    # --- the log ------------------------------------------------------------------------------------------------------

    def _next_stamp(self) -> Hlc:
        self._store.last_hlc = tick(self._store.last_hlc, self.now)
        return self._store.last_hlc

    def _op(self, op_type: OpType, body: dict[int, Any], floor: Hlc = START) -> Op:
        """Make the next op of this device. `floor` is the greatest stamp among the values it replaces."""
        stamp = field_stamp(self._next_stamp(), floor)
        self._store.last_seq += 1
        return Op(
            device=self._store.device,
            seq=self._store.last_seq,
            op_id=uuid7(millis_of(stamp), self._entropy(10)),
            hlc=stamp,
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
            events=int(self.fetch("select coalesce(max(n), 0) from event")[0][0]),
        )

    # --- events -------------------------------------------------------------------------------------------------------

    def known_events(self, events: Sequence[Event]) -> dict[str, str]:
        """Return the ids of those events that are already there, by dedupe key; forgotten ones count as there.

        An event is there when its key is, or its id (of an import).
        """
        ids = self._which(
            "select id from event where id in (select value from json_each(?))",
            [event.id for event in events if event.id],
        )
        return {event.dedupe_key: event.id for event in events if event.id in ids} | {
            str(key): str(event_id)
            for key, event_id in self.fetch(
                "select dedupe_key, min(id) from event where dedupe_key in (select value from json_each(?)) group by 1",
                (_json(event.dedupe_key for event in events),),
            )
        }

    def append_events(self, events: Sequence[Event], *, learn: bool) -> None:
        """Append events that `known_events` does not know, each with its op, and open or close their sessions."""
        if not events:
            return
        self._log([self._op(OpType.EVENT, ops.event_body(event)) for event in events])
        first = self.fetch("select coalesce(max(n), 0) from event")[0][0] + 1
        self._run_many(
            f"insert into event (n, {rows.EVENT_COLUMNS}) values (?, {rows.placeholders(rows.EVENT_COLUMNS)})",
            [(n, *rows.event_row(event)) for n, event in enumerate(events, first)],
        )
        if not learn:
            self._run_many("insert into unlearned (n) values (?)", [(n,) for n, _ in enumerate(events, first)])
        self._index_events(list(enumerate(events, first)))
        self._extend_sessions(list(enumerate(events, first)))

    def _index_events(self, numbered: Sequence[tuple[int, Event]]) -> None:
        tokens = [(n, event, rows.event_tokens(event)) for n, event in numbered]
        self._run_many(
            "insert into event_fts (rowid, tokens) values (?, ?)", [(n, words) for n, _, words in tokens if words]
        )
        self.changes.events += [rows.event_doc(event, n, words) for n, event, words in tokens if words]

    def _extend_sessions(self, numbered: Sequence[tuple[int, Event]]) -> None:
        """Count new events into their sessions: what `_project_sessions` would say, without reading the old ones."""
        found: dict[str, list[tuple[int, Event]]] = {}
        for n, event in numbered:
            found.setdefault(event.session_id, []).append((n, event))
        self._run_many(
            "insert into session (id, agent, project, start, last, closed, title, events, last_n)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set agent = min(agent, excluded.agent),"
            " project = coalesce(min(project, excluded.project), project, excluded.project),"
            " start = min(start, excluded.start), last = max(last, excluded.last),"
            " closed = coalesce(max(closed, excluded.closed), closed, excluded.closed),"
            " title = iif(title = '', excluded.title, title), events = events + excluded.events,"
            " last_n = excluded.last_n",
            [
                (
                    session_id,
                    min(event.agent for _, event in run),
                    min((event.project for _, event in run if event.project is not None), default=None),
                    min(event.ts for _, event in run),
                    max(event.ts for _, event in run),
                    max((event.ts for _, event in run if event.type == EventType.SESSION_END), default=None),
                    next((event.text[:TITLE_CHARS] for _, event in run if _titles(event)), ""),
                    len(run),
                    run[-1][0],
                )
                for session_id, run in found.items()
            ],
        )

    def _project_sessions(self, session_ids: Iterable[str]) -> None:
        """Make the rows of some sessions again from all their events."""
        self._run(
            "insert or replace into session (id, agent, project, start, last, closed, title, events, last_n)"
            " select session_id, min(agent), min(project), min(ts), max(ts), max(case when type = ?2 then ts end),"
            " coalesce((select substr(text, 1, ?3) from event t where t.session_id = e.session_id and t.type = ?4"
            " and t.text <> '' order by t.n limit 1), ''), count(*), max(n)"
            " from event e where session_id in (select value from json_each(?1)) group by session_id",
            (_json(session_ids), EventType.SESSION_END.value, TITLE_CHARS, EventType.USER_MESSAGE.value),
        )

    def erased_since(self, events: Sequence[Event]) -> bool:
        """Say whether forget has reached into any of some events since they were read."""
        read = {event.id: event.text for event in events}
        found = self.fetch(
            "select id, text from event where erased > 0 and id in (select value from json_each(?))", (_json(read),)
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
        ids = _json(write.memory_id for write in writes)
        buried = self.fetch("select id from tombstone where id in (select value from json_each(?))", (ids,))
        if buried:
            raise NotFoundError(f"memory {buried[0][0]} was forgotten", hint="add it again to keep it after all")
        logs = self._logs(ids)
        self._refuse_taken(writes)
        written: list[Op] = []
        for write in writes:
            log = logs.setdefault(write.memory_id, [])
            state = ops.fold(log)
            new: list[Op] = []
            if write.fields:
                bases = _bases(state, write)
                floor = Hlc(max((hlc for hlc, _ in bases.values()), default=0))
                new.append(self._op(OpType.MEMORY, ops.memory_body(write.memory_id, write.fields, bases), floor))
            held = {name for name, _ in state.claims.keys() - state.unclaimed}
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

    def _logs(self, ids: str) -> dict[str, list[Op]]:
        """Return the ops of some entities (a JSON array of ids) that were not erased."""
        found: dict[str, list[Op]] = {}
        for entity, device, seq, body in self.fetch(
            "select entity, device, seq, body from op where entity in (select value from json_each(?))"
            " and body is not null",
            (ids,),
        ):
            found.setdefault(entity, []).append(ops.decode(body, device=device, seq=seq))
        return found

    def _refuse_taken(self, writes: Sequence[MemoryWrite]) -> None:
        wanted: dict[str, str] = {}
        for write in writes:
            for name in write.names:
                if wanted.setdefault(name, write.memory_id) != write.memory_id:
                    raise ConflictError(f"the name {name!r} is given twice", hint="names are unique: choose another")
        for name, holder in self.fetch(
            "select name, memory_id from name where name in (select value from json_each(?))", (_json(wanted),)
        ):
            if holder != wanted[name]:
                raise ConflictError(
                    f"the name {name!r} belongs to memory {holder}", hint="choose another, or rename that one first"
                )

    def unclaim(self, memory_id: str, name: str) -> None:
        """Take an alias away from a memory. Raises NotFoundError when it has no such alias."""
        before = self.ops_of(memory_id)
        state = ops.fold(before)
        seen = [stamp for (claimed, stamp), entity in state.claims.items() if claimed == name and entity == memory_id]
        held = self.fetch("select canonical from name where name = ? and memory_id = ?", (name, memory_id))
        if not seen or not held:
            raise NotFoundError(f"no alias {name!r} on memory {memory_id}", hint="scrubjay get shows its aliases")
        if held[0][0]:
            raise ConflictError(f"{name!r} is the name of memory {memory_id}", hint="scrubjay rename gives it another")
        op = self._op(OpType.UNCLAIM, ops.unclaim_body(memory_id, name, seen))
        self._log([op])
        self._project({memory_id: [*before, op]})

    def _project(self, logs: Mapping[str, Sequence[Op]]) -> None:
        """Make the rows of some memories again, each from its ops, and tell the index."""
        old = {
            row[0]: (row[1], row[2])
            for row in self.fetch(
                "select id, n, content_hash from memory where id in (select value from json_each(?))", (_json(logs),)
            )
        }
        top = self.fetch("select coalesce(max(n), 0) from memory")[0][0]
        numbered: list[tuple[int, Memory, ops.View]] = []
        for memory_id, log in logs.items():
            view = ops.view(ops.fold(log))
            memory = view.memories.get(memory_id)
            n, content = old.get(memory_id, (None, None))
            if memory is None:
                self._drop(memory_id, n)
                continue
            if n is None:
                top = n = top + 1
            elif content != memory.content_hash:
                self._run("delete from embedding where owner = ?", (memory_id,))
                self.changes.stale.add(memory_id)
            numbered.append((n, memory, view))
        known = [(n, memory) for n, memory, _ in numbered if memory.id in old]
        self._run_many("delete from memory_fts where rowid = ?", [(n,) for n, _ in known])
        for table in ("name", "grip"):
            self._run_many(f"delete from {table} where memory_id = ?", [(memory.id,) for _, memory in known])
        self._run_many(
            f"insert into memory (n, {rows.MEMORY_COLUMNS}) values (?, {rows.placeholders(rows.MEMORY_COLUMNS)})"
            f" on conflict (id) do update set {_assigned(rows.MEMORY_COLUMNS)}",
            [(n, *rows.memory_row(memory)) for n, memory, _ in numbered],
        )
        tokens = {memory.id: rows.memory_tokens(memory) for _, memory, _ in numbered}
        self._run_many(
            "insert into memory_fts (rowid, tokens) values (?, ?)",
            [(n, tokens[memory.id]) for n, memory, _ in numbered],
        )
        self._run_many(
            "insert into name (name, memory_id, created_at, canonical) values (?, ?, ?, ?)",
            [
                *(
                    (memory.name, memory.id, memory.created_at, 1)
                    for _, memory, _ in numbered
                    if memory.name is not None
                ),
                *(
                    (alias.name, alias.memory_id, alias.created_at, 0)
                    for _, _, view in numbered
                    for alias in view.aliases.values()
                ),
            ],
        )
        self._run_many(
            f"insert into grip ({rows.GRIP_COLUMNS}) values ({rows.placeholders(rows.GRIP_COLUMNS)})",
            [rows.grip_row(grip) for _, _, view in numbered for grip in view.grips.values()],
        )
        for _, memory, view in numbered:
            covered = [event_id for grip in view.grips.values() for event_id in self._covered(grip)]
            self.changes.memories.append(rows.memory_doc(memory, tokens[memory.id], tuple(dict.fromkeys(covered))))

    def _covered(self, grip: Grip) -> list[str]:
        if grip.event_id_start == grip.event_id_end:
            return [grip.event_id_start]
        return [row[0] for row in self.fetch(rows.COVERED, (grip.event_id_start, grip.event_id_end))]

    def _drop(self, memory_id: str, n: int | None) -> None:
        for sql in (
            "delete from name where memory_id = ?",
            "delete from grip where memory_id = ?",
            "delete from embedding where owner = ?",
            "delete from access where memory_id = ?",
            "delete from memory where id = ?",
        ):
            self._run(sql, (memory_id,))
        if n is not None:
            self._run("delete from memory_fts where rowid = ?", (n,))
        self.changes.removed.append(memory_id)

    def said(self, content_hashes: Iterable[str]) -> list[tuple[str, str, str | None, str]]:
        """Return (content hash, scope, resource id, id) of the live memories that say some contents."""
        return [
            (row[0], row[1], row[2], row[3])
            for row in self.fetch(
                "select content_hash, scope, resource_id, id from memory where superseded_by is null"
                " and layer not in ('identity', 'active')"
                " and content_hash in (select value from json_each(?)) order by n desc",
                (_json(content_hashes),),
            )
        ]

    def is_named(self, memory_id: str) -> bool:
        """Say whether a memory has a canonical name."""
        return bool(self.fetch("select 1 from memory where id = ? and name is not null", (memory_id,)))

    def is_observation(self, memory_id: str) -> bool:
        """Say whether a memory was distilled, and so rests on its grips."""
        return bool(self.fetch("select 1 from memory where id = ? and kind = 'observation'", (memory_id,)))

    def existing(self, ids: Iterable[str]) -> set[str]:
        """Return which of some memories are there."""
        return self._which("select id from memory where id in (select value from json_each(?))", ids)

    def forgotten(self, ids: Iterable[str]) -> set[str]:
        """Return which of some ids have a tombstone."""
        return self._which("select id from tombstone where id in (select value from json_each(?))", ids)

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
                "select name, memory_id from name where name in (select value from json_each(?))", (_json(names),)
            )
        }

    def _which(self, sql: str, ids: Iterable[str]) -> set[str]:
        return {str(row[0]) for row in self.fetch(sql, (_json(ids),))}

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
            at = 0
            for event_id in self._covered(grip):
                found_text = self.fetch("select text from event where id = ?", (event_id,))
                if not found_text:
                    break  # its event never came here
                length = len(found_text[0][0])
                start, end = max(grip.span_start - at, 0), min(grip.span_end - at, length)
                if start < end:
                    found.setdefault(event_id, []).append((start, end))
                at += length + 1  # the newline between two events
        return found

    def grips_over(self, event_id: str, spans: Sequence[tuple[int, int]] | None) -> list[Grip]:
        """Return the grips that cover any of some spans of an event's text; of all of it when `spans` is None."""
        found = self.fetch(
            f"select {_columns_of('g', rows.GRIP_COLUMNS)} from grip g join event a on a.id = g.event_id_start"
            " join event b on b.id = g.event_id_end join event e on e.id = ? and e.session_id = a.session_id"
            " and (e.ts, e.n) between (a.ts, a.n) and (b.ts, b.n)",
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
        op = self._op(OpType.FORGET, ops.forget_body(memory_id))
        self._bury(memory_id, op)
        n = self.fetch("select n from memory where id = ?", (memory_id,))
        self._drop(memory_id, n[0][0] if n else None)

    def forget_grip(self, grip: Grip) -> None:
        """Erase one grip of a memory that lives on: its excerpt is gone from the log too."""
        log = self.ops_of(grip.memory_id)
        made = [op for op in log if op.type == OpType.GRIP and grip.id in ops.fold((op,)).grips]
        for op in made:
            self._run("update op set body = null where device = ? and seq = ?", (op.device, op.seq))
        buried = self._op(OpType.FORGET, ops.forget_body(grip.id))
        self._bury(grip.id, buried)
        self._project({grip.memory_id: [op for op in log if op not in made]})

    def forget_event(self, event_id: str) -> None:
        """Erase what an event says. Its row stays as a tombstone, so that the same event is never taken in again."""
        self._bury(event_id, self._op(OpType.FORGET, ops.forget_body(event_id)))
        self._rewrite(event_id, "", "{}")

    def blank_event(self, event_id: str, spans: Sequence[tuple[int, int]]) -> None:
        """Erase some passages of an event's text, leaving every other character where it is."""
        found = self.fetch("select text, metadata from event where id = ?", (event_id,))
        if not found:
            return
        op = self._op(OpType.BLANK, ops.blank_body(event_id, spans))
        self._log([op])
        self._rewrite(event_id, ops.blanked(found[0][0], spans), found[0][1])

    def _bury(self, entity: str, op: Op) -> None:
        self._run("update op set body = null where entity = ?", (entity,))
        self._log([op])
        self._run("insert or ignore into tombstone (id, hlc) values (?, ?)", (entity, op.hlc))

    def _rewrite(self, event_id: str, text: str, metadata: str) -> None:
        self._run(
            "update event set text = ?, metadata = ?, erased = erased + 1 where id = ?", (text, metadata, event_id)
        )
        self._run("delete from embedding where owner = ?", (event_id,))
        found = self.fetch(f"select {rows.EVENT_COLUMNS}, n from event where id = ?", (event_id,))
        event, n = rows.event_of(found[0]), found[0][13]
        self._run("delete from event_fts where rowid = ?", (n,))
        self.changes.stale.add(event_id)
        self._index_events([(n, event)])
        if not rows.event_tokens(event):
            self.changes.removed.append(event_id)
        self._project_sessions([event.session_id])

    def erase_traces(self) -> None:
        """Make what FTS5 still holds of deleted rows go, on a SQLite whose FTS5 does not erase by itself."""
        if not fts_erases():
            self._run("insert into event_fts (event_fts) values ('optimize')")
            self._run("insert into memory_fts (memory_fts) values ('optimize')")

    # --- vectors, counts, jobs ----------------------------------------------------------------------------------------

    def space(self, name: str) -> int:
        """Return the number of an embedding space, giving it one if it is new."""
        self._run("insert or ignore into space (name) values (?)", (name,))
        return int(self.fetch("select id from space where name = ?", (name,))[0][0])

    def put_vectors(self, space: int, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Store (owner, content hash, vector) of owners whose text is still the one that was embedded.

        An event's content hash is how often it was erased: nothing else changes it. An owner forgotten meanwhile is
        left out, or its vector would outlive it.
        """
        owners = _json(owner for owner, _, _ in vectors)
        current = dict(
            self.fetch(
                "select id, content_hash from memory where id in (select value from json_each(?1)) union all"
                " select id, cast(erased as text) from event where id in (select value from json_each(?1))",
                (owners,),
            )
        )
        kept = [row for row in vectors if current.get(row[0]) == row[1]]
        self._run_many(
            "insert or replace into embedding (space, owner, content_hash, vector) values (?, ?, ?, ?)",
            [(space, *row) for row in kept],
        )
        self.changes.vectors += [(space, owner, vector) for owner, _, vector in kept]

    def count_accesses(self, found: Mapping[str, tuple[int, Millis]], *, log_after_ms: int) -> None:
        """Add to this device's counts of how often memories were recalled, and when last.

        A total goes into the log at most once in `log_after_ms`, so that recall does not become the log's main load.
        """
        self._run_many(
            "insert into access (memory_id, total, last, logged) select id, ?2, ?3, 0 from memory where id = ?1"
            " on conflict do update set total = total + ?2, last = max(last, ?3)",
            [(memory_id, count, last) for memory_id, (count, last) in found.items()],
        )
        due = self.fetch(
            "select memory_id, total, last from access where logged <= ? and logged < last"
            " and memory_id in (select value from json_each(?))",
            (self.now - log_after_ms, _json(found)),
        )
        self._log(
            [
                self._op(OpType.COUNT, ops.count_body(memory_id, ops.Counter.ACCESS, total, Millis(last)))
                for memory_id, total, last in due
            ]
        )
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

    def set_meta(self, key: str, value: str) -> None:
        """Keep one setting of the file itself."""
        self._run("insert or replace into meta (key, value) values (?, ?)", (key, value))

    # --- rebuilding ---------------------------------------------------------------------------------------------------

    def rebuild(self, *, vectors: bool) -> tuple[int, int]:
        """Make every projection again from events and ops. Returns (memories, events).

        With `vectors`, drops them all too, to be embedded again; else keeps those whose text has not changed.
        """
        for sql in (
            "delete from session",
            "delete from name",
            "delete from grip",
            "delete from memory_fts",
            "delete from event_fts",
            "delete from tombstone",
        ):
            self._run(sql)
        self._run(
            "insert or ignore into tombstone (id, hlc) select entity, min(hlc) from op where type = ? group by entity",
            (int(OpType.FORGET),),
        )
        if vectors:
            self._run("delete from embedding")
        last = 0
        while found := self.fetch(
            f"select {rows.EVENT_COLUMNS}, n from event where n > ? order by n limit 2000", (last,)
        ):
            self._index_events([(row[13], rows.event_of(row)) for row in found])
            last = found[-1][13]
        self._project_sessions([row[0] for row in self.fetch("select distinct session_id from event")])
        held = int(OpType.MEMORY)
        self._run(
            "delete from memory where id not in (select entity from op where type = ? and body is not null)", (held,)
        )
        entities = self.fetch(
            "select entity from op where type = ? and body is not null group by entity order by min(hlc), entity",
            (held,),
        )
        for at in range(0, len(entities), PROJECTED_AT_ONCE):
            self._project(self._logs(_json(row[0] for row in entities[at : at + PROJECTED_AT_ONCE])))
        events = self.fetch("select count(*) from event")[0][0]
        memories = self.fetch("select count(*) from memory")[0][0]
        return memories, events

    def view_digest(self) -> str:
        """Return a digest (hex) of everything a reader can see: memories, names, grips, sessions, events, tokens."""
        total = hashlib.sha256()
        for sql in (
            f"select {rows.MEMORY_COLUMNS} from memory order by id",
            "select name, memory_id, canonical from name order by name",
            f"select {rows.GRIP_COLUMNS} from grip order by id",
            f"select {rows.SESSION_COLUMNS} from session order by id",
            f"select {rows.EVENT_COLUMNS} from event order by id",
            "select e.id, f.tokens from event_fts f join event e on e.n = f.rowid order by e.id",
            "select m.id, f.tokens from memory_fts f join memory m on m.n = f.rowid order by m.id",
        ):
            for row in self.fetch(sql):
                total.update(msgspec.msgpack.encode(row))
        return total.hexdigest()


def _titles(event: Event) -> bool:
    return event.type == EventType.USER_MESSAGE and event.text != ""


def _bases(state: ops.State, write: MemoryWrite) -> dict[Field, Stamp]:
    """Return the stamps of the values that a write replaces."""
    found = {}
    for key in write.fields:
        if versions := state.registers.get((write.memory_id, int(key))):
            found[key] = ops.winner(versions)
    return found


def _columns_of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


def _assigned(columns: str) -> str:
    return ", ".join(f"{column.strip()} = excluded.{column.strip()}" for column in columns.split(","))


def _json(values: Iterable[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
