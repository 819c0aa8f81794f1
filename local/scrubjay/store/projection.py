"""How the tables follow from the ops: every projection, in one place, whoever wrote the op.

Ops come in any order: a name before its memory, the erasure of an event before the event. So every projection is a
function of the set of ops: of those about one entity where that suffices, of all the claims to a name where it does
not. Only arrival numbers (`n`) depend on the order, and no reader sees them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from scrubjay.store import rows, sqlite
from scrubjay.store.embed_queue import EmbedQueue
from scrubjay.store.file import PROJECTED, fts_erases
from scrubjay_io.sqlite import driver
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, millis_of
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import EventType, Grip, Memory, Op

if TYPE_CHECKING:
    from scrubjay.store.store import Changes, Store

log = logging.getLogger(__name__)

TITLE_CHARS = 80
"""How much of the first words of a session serves as its title."""

PROJECTED_AT_ONCE = 500
"""Memories whose ops are in memory at one time during a rebuild."""

ERASED = 0
"""The type of an op that was erased before it came here: all that is known of it is its place."""

OF_MEMORIES = (OpType.MEMORY, OpType.CLAIM, OpType.UNCLAIM, OpType.COUNT, OpType.GRIP)
"""Ops whose entity is a memory, and that make its rows."""

_SHOWN = (
    f"select {rows.MEMORY_COLUMNS} from memory order by id",
    "select m.id, sum(c.total), max(c.last) from counted c join memory m on m.id = c.memory_id group by 1 order by 1",
    "select name, memory_id, canonical, created_at from name order by name",
    f"select {rows.GRIP_COLUMNS} from grip where memory_id in (select id from memory) order by id",
    f"select {rows.SESSION_COLUMNS} from session order by id",
    f"select {rows.EVENT_COLUMNS} from event where not forgotten order by id",
    "select memory_id, field, hlc, device from conflict where memory_id in (select id from memory) order by 1, 2, 3, 4",
)


class Projection:
    """The tables of one transaction, as far as they follow from ops. `changes` is what the index must learn of it."""

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
        self._queue: EmbedQueue | None = None

    @property
    def queue(self) -> EmbedQueue:
        """What waits to be embedded."""
        if self._queue is None:
            self._queue = EmbedQueue(self._connection)
        return self._queue

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, with what this transaction has written so far."""
        found: list[tuple[Any, ...]] = self._connection.execute(sql, params).fetchall()
        return found

    def _run(self, sql: str, params: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, params)

    def _run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        if values:
            self._connection.executemany(sql, values)

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

    def set_meta(self, key: str, value: str) -> None:
        """Keep one setting of the file itself."""
        self._run("insert or replace into meta (key, value) values (?, ?)", (key, value))

    def _meta(self, key: str, default: str) -> str:
        found = self.fetch("select value from meta where key = ?", (key,))
        return str(found[0][0]) if found else default

    def _rewrote(self) -> None:
        """Note that events changed in a way that the log does not tell a copy of the index."""
        self.set_meta("rewritten", str(int(self._meta("rewritten", "0")) + 1))

    def existing(self, ids: Iterable[str]) -> set[str]:
        """Return which of some memories are there."""
        return self._which("select id from memory where id in (select value from json_each(?))", ids)

    def forgotten(self, ids: Iterable[str]) -> set[str]:
        """Return which of some ids have a tombstone."""
        return self._which("select id from tombstone where id in (select value from json_each(?))", ids)

    def _which(self, sql: str, ids: Iterable[str]) -> set[str]:
        return {str(row[0]) for row in self.fetch(sql, (rows.array(ids),))}

    # --- events -------------------------------------------------------------------------------------------------------

    def _add_events(self, new: Sequence[tuple[int, sqlite.Row, bool, int]], *, learn: bool) -> None:
        """Add rows of events: (seq, row of EVENT_COLUMNS, whether it was forgotten, how often it was erased)."""
        numbered = list(enumerate(new, self._last_event() + 1))
        columns = f"n, {rows.EVENT_COLUMNS}, seq, forgotten, erased"
        self._run_many(
            f"insert into event ({columns}) values ({rows.placeholders(columns)})",
            [(n, *row, seq, gone, erased) for n, (seq, row, gone, erased) in numbered],
        )
        if numbered:
            self.queue.add_events(numbered[0][0], numbered[-1][0])
        if not learn:
            self._run_many("insert into unlearned (n) values (?)", [(n,) for n, _ in numbered])
        live = [(n, seq, row) for n, (seq, row, gone, _) in numbered if not gone]
        self._index_events(live)
        self._extend_sessions(live, learn=learn)
        self._cover({row[3] for _, _, row in live})

    def _last_event(self) -> int:
        return int(self.fetch("select coalesce(max(n), 0) from event")[0][0])

    def _cover(self, session_ids: Iterable[str]) -> None:
        """Tell the index of memories whose grips may cover other events, now that those of some sessions changed."""
        found = self.fetch(
            "select distinct g.memory_id from grip g indexed by grip_long join event a on a.id = g.event_id_start"
            " where g.event_id_start <> g.event_id_end and a.session_id in (select value from json_each(?))",
            (rows.array(session_ids),),
        )
        if found:
            self._put_memories(self._memories(row[0] for row in found))

    def _index_events(self, numbered: Iterable[tuple[int, int, sqlite.Row]]) -> set[str]:
        """Write the full text of events (n, seq, row), and tell the index. Returns the ids of those that have some."""
        found = [(n, doc) for n, seq, row in numbered if (doc := rows.event_doc(row, seq)) is not None]
        self._run_many("insert into event_fts (rowid, tokens) values (?, ?)", [(n, doc.tokens) for n, doc in found])
        docs = [doc for _, doc in found]
        self.changes.events += docs
        return {doc.id for doc in docs}

    def _extend_sessions(self, numbered: Sequence[tuple[int, int, sqlite.Row]], *, learn: bool) -> None:
        """Count new events into their sessions: what `_project_sessions` would say, without reading the old ones."""
        found: dict[str, list[tuple[int, int, sqlite.Row]]] = {}
        for numbers in numbered:
            found.setdefault(numbers[2][3], []).append(numbers)
        columns = "id, agent, project, start, last, closed, title, title_at, events, last_n"
        self._run_many(
            f"insert into session ({columns}) values ({rows.placeholders(columns)})"
            " on conflict (id) do update set agent = min(agent, excluded.agent),"
            " project = coalesce(min(project, excluded.project), project, excluded.project),"
            " start = min(start, excluded.start), last = max(last, excluded.last),"
            " closed = coalesce(max(closed, excluded.closed), closed, excluded.closed),"
            " title = iif(excluded.title <> '' and (title = '' or excluded.title_at < title_at),"
            " excluded.title, title),"
            " title_at = iif(excluded.title <> '' and (title = '' or excluded.title_at < title_at),"
            " excluded.title_at, title_at), events = events + excluded.events, last_n = max(last_n, excluded.last_n)",
            [
                (
                    session_id,
                    min([row[2] for _, _, row in run]),
                    min([row[4] for _, _, row in run if row[4] is not None], default=None),
                    min([row[5] for _, _, row in run]),
                    max([row[5] for _, _, row in run]),
                    max([row[5] for _, _, row in run if row[7] == _CLOSES], default=None),
                    *min(
                        [(row[9][:TITLE_CHARS], _at(seq, row)) for _, seq, row in run if row[7] == _TITLES and row[9]],
                        key=lambda title: title[1],
                        default=("", ""),
                    ),
                    len(run),
                    run[-1][0] if learn else 0,
                )
                for session_id, run in found.items()
            ],
        )

    def _project_sessions(self, session_ids: Iterable[str]) -> None:
        """Make the rows of some sessions again from all their events."""
        ids = rows.array(session_ids)
        self._run("delete from session where id in (select value from json_each(?))", (ids,))
        said = (
            "select {} from event t where t.session_id = e.session_id and t.type = ?4 and t.text <> ''"
            " and not t.forgotten order by t.ts, t.seq, t.id limit 1"
        )
        self._run(
            "insert into session (id, agent, project, start, last, closed, title, title_at, events, last_n)"
            " select session_id, min(agent), min(project), min(ts), max(ts), max(case when type = ?2 then ts end),"
            f" coalesce(({said.format('substr(t.text, 1, ?3)')}), ''), coalesce(({said.format(rows.PLACE)}), ''),"
            " count(*), max(iif(n in (select n from unlearned), 0, n))"
            " from event e where session_id in (select value from json_each(?1)) and not forgotten group by session_id",
            (ids, EventType.SESSION_END.value, TITLE_CHARS, EventType.USER_MESSAGE.value),
        )

    # --- memories -----------------------------------------------------------------------------------------------------

    def _project(self, logs: Mapping[str, Sequence[Op]]) -> int:
        """Make the rows of some memories again, each from its ops, and tell the index.

        Returns how many conflicts opened. A memory whose content has not come yet keeps its claims, grips and counts,
        which show once it has.
        """
        states = {memory_id: ops.fold(log) for memory_id, log in logs.items()}
        views = {memory_id: ops.view(state) for memory_id, state in states.items()}
        ids = rows.array(logs)
        conflicts = [
            (memory_id, key, *stamp)
            for memory_id, state in states.items()
            for (_, key), versions in state.registers.items()
            for stamp in ops.to_settle(versions)
        ]
        listed = set(
            self.fetch(
                "select memory_id, field, hlc, device from conflict"
                " where memory_id in (select value from json_each(?))",
                (ids,),
            )
        )
        named = self._unname(ids)
        for table in ("grip", "counted", "conflict"):
            self._run(f"delete from {table} where memory_id in (select value from json_each(?))", (ids,))
        self._run_many("insert into conflict (memory_id, field, hlc, device) values (?, ?, ?, ?)", conflicts)
        self._run_many(
            "insert into counted (memory_id, device, total, last) values (?, ?, ?, ?)",
            [
                (memory_id, device, total, last)
                for state in states.values()
                for (memory_id, counter, device), (total, last) in state.counters.items()
                if counter == ops.Counter.ACCESS
            ],
        )
        self._run_many(
            # Two memories may claim one grip: as in the fold, the smaller counts, whichever was projected last.
            f"insert into grip ({rows.GRIP_COLUMNS}) values ({rows.placeholders(rows.GRIP_COLUMNS)})"
            f" on conflict (id) do update set {_assigned(rows.GRIP_COLUMNS)} where excluded.memory_id < grip.memory_id",
            [rows.grip_row(grip) for state in states.values() for grip in state.grips.values()],
        )
        claims = [claim for state in states.values() for claim in ops.live_claims(state)]
        self._run_many(
            "insert into claim (name, hlc, device, memory_id) values (?, ?, ?, ?)",
            [(name, hlc, device, memory_id) for name, (hlc, device), memory_id in claims],
        )
        memories = {memory_id: memory for view in views.values() for memory_id, memory in view.memories.items()}
        renamed = self._name(named | {name for name, _, _ in claims}, memories)
        self._put_memories([replace(memory, name=renamed.pop(memory.id, None)) for memory in memories.values()])
        if renamed:
            self._put_memories([replace(memory, name=renamed[memory.id]) for memory in self._memories(renamed)])
        return len(set(conflicts) - listed)

    def _memories(self, ids: Iterable[str]) -> list[Memory]:
        return [
            rows.memory_of((*row, None, None))
            for row in self.fetch(
                f"select {rows.MEMORY_COLUMNS} from memory where id in (select value from json_each(?))",
                (rows.array(ids),),
            )
        ]

    def _put_memories(self, memories: Sequence[Memory]) -> None:
        """Write the rows of memories as they now are, with their full text, and tell the index."""
        old = {
            row[0]: (row[1], row[2])
            for row in self.fetch(
                "select id, n, content_hash from memory where id in (select value from json_each(?))",
                (rows.array(memory.id for memory in memories),),
            )
        }
        stale = [
            memory.id for memory in memories if old.get(memory.id, (0, memory.content_hash))[1] != memory.content_hash
        ]
        self._run_many(_UNEMBED, [(memory_id,) for memory_id in stale])
        self.changes.stale.update(stale)
        top = self.fetch("select coalesce(max(n), 0) from memory")[0][0]
        fresh = iter(range(top + 1, top + 1 + len(memories)))
        numbered = [(old[memory.id][0] if memory.id in old else next(fresh), memory) for memory in memories]
        self._unindex("memory_fts", [n for n, _ in old.values()])
        self._run_many(
            f"insert into memory (n, {rows.MEMORY_COLUMNS}) values (?, {rows.placeholders(rows.MEMORY_COLUMNS)})"
            f" on conflict (id) do update set {_assigned(rows.MEMORY_COLUMNS)}",
            [(n, *rows.memory_row(memory)) for n, memory in numbered],
        )
        said_anew = {*stale, *(memory.id for memory in memories if memory.id not in old)}
        self.queue.add_memories([n for n, memory in numbered if memory.id in said_anew])
        tokens = [rows.memory_tokens(memory) for memory in memories]
        self._run_many(
            "insert into memory_fts (rowid, tokens) values (?, ?)",
            [(n, words) for (n, _), words in zip(numbered, tokens, strict=True)],
        )
        sources = self._sources(memory.id for memory in memories)
        self.changes.memories += [
            rows.memory_doc(memory, words, sources.get(memory.id, ()))
            for memory, words in zip(memories, tokens, strict=True)
        ]

    def _sources(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = {}
        for row in self.fetch(
            f"select {rows.GRIP_COLUMNS} from grip where memory_id in (select value from json_each(?))"
            " order by created_at, id",
            (rows.array(ids),),
        ):
            grip = rows.grip_of(row)
            found.setdefault(grip.memory_id, {}).update(dict.fromkeys(self._covered(grip)))
        return {memory_id: tuple(covered) for memory_id, covered in found.items()}

    def _covered(self, grip: Grip) -> list[str]:
        if grip.event_id_start == grip.event_id_end:
            return [grip.event_id_start]
        return [row[0] for row in self.fetch(rows.COVERED, (grip.event_id_start, grip.event_id_end))]

    def _count(self, totals: Sequence[tuple[str, str, int, int]]) -> None:
        """Take in what devices say of how often they recalled memories: (memory, device, total, last)."""
        self._run_many(
            "insert into counted (memory_id, device, total, last) values (?, ?, ?, ?) on conflict do update"
            " set total = excluded.total, last = excluded.last where (excluded.total, excluded.last) > (total, last)",
            totals,
        )

    # --- names --------------------------------------------------------------------------------------------------------

    def _unname(self, ids: str) -> set[str]:
        """Take the claims of some memories (a JSON array of ids) away. Returns the names that they were to."""
        found = self.fetch(
            "select distinct name from claim where memory_id in (select value from json_each(?))", (ids,)
        )
        if found:
            self._run("delete from claim where memory_id in (select value from json_each(?))", (ids,))
        return {str(row[0]) for row in found}

    def _name(self, names: set[str], memories: Mapping[str, Memory]) -> dict[str, str | None]:
        """Decide again who shows under some names, as `ops.holders` does. Returns the new names of memories.

        `memories` are being written and carry the name that they claim; of others, those whose name changed are
        returned. A claim to `a~2` decides about `a` too: that number is not free to show the second holder of `a`.
        """
        groups = names | {parent for name in names if (parent := rows.parent_of(name)) is not None}
        if not groups:
            return {}
        wanted = rows.array(groups)
        before = self.fetch(
            "select name, memory_id, claimed, canonical from name where claimed in (select value from json_each(?))",
            (wanted,),
        )
        canonical = {(memory_id, claimed) for _, memory_id, claimed, own in before if own and memory_id not in memories}
        canonical |= {(memory.id, memory.name) for memory in memories.values() if memory.name is not None}
        self._run("delete from name where claimed in (select value from json_each(?))", (wanted,))
        order: dict[str, dict[str, int]] = {}
        for name, hlc, memory_id in self.fetch(
            "select name, hlc, memory_id from claim where name in (select value from json_each(?))"
            " order by name, hlc, device, memory_id",
            (wanted,),
        ):
            order.setdefault(name, {}).setdefault(memory_id, hlc)
        visible = memories.keys() | self.existing(memory_id for held in order.values() for memory_id in held)
        shown: list[tuple[str, str, int, bool, str]] = []
        for claimed, held in order.items():
            free = self._free_names(claimed, len(held) - 1)
            for name, (memory_id, hlc) in zip([claimed, *free], held.items(), strict=True):
                if memory_id in visible:
                    own = (memory_id, claimed) in canonical
                    shown.append((name, memory_id, millis_of(Hlc(hlc)), own, claimed))
        self._run_many(
            "insert into name (name, memory_id, created_at, canonical, claimed) values (?, ?, ?, ?, ?)", shown
        )
        was = {memory_id: name for name, memory_id, _, own in before if own}
        now: dict[str, str | None] = {memory_id: name for name, memory_id, _, own, _ in shown if own}
        return {
            memory_id: name for memory_id, name in now.items() if memory_id in memories or was.get(memory_id) != name
        }

    def _free_names(self, name: str, count: int) -> list[str]:
        """Return the first `name~2`, `name~3`, … that nobody claims."""
        if not count:
            return []
        claimed = {
            row[0]
            for row in self.fetch(
                "select distinct name from claim where name > ? and name < ?", (f"{name}~", f"{name}\x7f")
            )
        }
        found: list[str] = []
        place = 2
        while len(found) < count:
            if f"{name}~{place}" not in claimed:
                found.append(f"{name}~{place}")
            place += 1
        return found

    # --- erasing ------------------------------------------------------------------------------------------------------

    def _bury(self, forgets: Sequence[Op]) -> bool:
        """Leave a tombstone of what some ops of type FORGET are about, and erase it. Returns whether words went."""
        self._run_many(
            "insert into tombstone (id, hlc) values (?, ?) on conflict (id) do update set hlc = min(hlc, excluded.hlc)",
            [(ops.entity_of(op), op.hlc) for op in forgets],
        )
        return self._erase([ops.entity_of(op) for op in forgets])

    def _erase(self, ids: Sequence[str]) -> bool:
        """Erase what the store holds of some ids, whatever they are of. Returns whether it held anything."""
        wanted = rows.array(ids)
        forget = int(OpType.FORGET)
        erased = bool(
            self.fetch(
                "select 1 from op where entity in (select value from json_each(?)) and type <> ? and body is not null"
                " limit 1",
                (wanted, forget),
            )
        )
        self._run(
            "update op set body = null where entity in (select value from json_each(?)) and type <> ?"
            " and body is not null",
            (wanted, forget),
        )
        if self.fetch("select 1 from parked where entity in (select value from json_each(?)) limit 1", (wanted,)):
            erased = True
            self._run(
                "insert or ignore into op (device, seq, op_id, hlc, type, entity, body)"
                " select device, seq, zeroblob(16), 0, ?, '', null from parked"
                " where entity in (select value from json_each(?))",
                (ERASED, wanted),
            )
            self._run("delete from parked where entity in (select value from json_each(?))", (wanted,))
        grips = self.fetch("select id, memory_id from grip where id in (select value from json_each(?))", (wanted,))
        if grips:
            erased = True
            gone, owners = {grip_id for grip_id, _ in grips}, rows.array(dict.fromkeys(owner for _, owner in grips))
            logs = self._logs(owners)
            made = [op for log in logs.values() for op in log if op.type == OpType.GRIP and ops.grip_of(op) in gone]
            self._run_many(
                "update op set body = null where device = ? and seq = ?", [(op.device, op.seq) for op in made]
            )
            self._project(self._logs(owners))
        memories = self._which(
            "select id from memory where id in (select value from json_each(?1)) union"
            " select memory_id from claim where memory_id in (select value from json_each(?1)) union"
            " select memory_id from grip where memory_id in (select value from json_each(?1)) union"
            " select memory_id from counted where memory_id in (select value from json_each(?1))",
            ids,
        )
        if memories:
            erased = True
            self._drop_memories([memory_id for memory_id in ids if memory_id in memories])
        events = self.fetch(
            "select id from event where id in (select value from json_each(?)) and not forgotten", (wanted,)
        )
        if events:
            erased = True
            self._rewrite([(event_id, "", "{}", 1) for (event_id,) in events])
        return erased

    def _drop_memories(self, ids: Sequence[str]) -> None:
        """Take memories out of every projection, and let others have their names."""
        wanted = rows.array(ids)
        numbers = self.fetch("select n, id from memory where id in (select value from json_each(?))", (wanted,))
        named = self._unname(wanted)
        for table, column in (
            ("name", "memory_id"),
            ("grip", "memory_id"),
            ("counted", "memory_id"),
            ("conflict", "memory_id"),
            ("access", "memory_id"),
            ("memory", "id"),
        ):
            self._run_many(f"delete from {table} where {column} = ?", [(memory_id,) for memory_id in ids])
        self._run_many(_UNEMBED, [(memory_id,) for memory_id in ids])
        self.queue.drop_memories([n for n, _ in numbers])
        self._unindex("memory_fts", [n for n, _ in numbers])
        self.changes.removed += [memory_id for _, memory_id in numbers]
        renamed = self._name(named, {})
        self._put_memories([replace(memory, name=renamed[memory.id]) for memory in self._memories(renamed)])

    def _blank(self, event_ids: Iterable[str]) -> bool:
        """Erase the passages of some events that ops of type BLANK name. Returns whether any was still there."""
        spans = self._blanks(event_ids)
        found = self.fetch(
            "select id, text, metadata from event where id in (select value from json_each(?)) and not forgotten",
            (rows.array(spans),),
        )
        blanked = [(event_id, ops.blanked(text, spans[event_id]), text, more) for event_id, text, more in found]
        changed = [(event_id, now, more, 0) for event_id, now, text, more in blanked if now != text]
        self._rewrite(changed)
        kept = self.fetch(  # an event that its row cannot repeat byte for byte
            "select entity, device, seq, body from op where entity in (select value from json_each(?)) and type = ?"
            " and body is not null",
            (rows.array(spans), int(OpType.EVENT)),
        )
        self._run_many(
            "update op set body = ? where device = ? and seq = ?",
            [
                (ops.encode(ops.with_blanks(ops.decode(body, device=device, seq=seq), spans[event_id])), device, seq)
                for event_id, device, seq, body in kept
            ],
        )
        return bool(changed)

    def _blanks(self, event_ids: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
        """Return the passages that were erased of each of some events, whether they came already or not."""
        found: dict[str, list[tuple[int, int]]] = {}
        for event_id, body in self.fetch(
            "select entity, body from op indexed by op_erases where entity in (select value from json_each(?))"
            f" and type in (3, 8) and type = {int(OpType.BLANK)} and body is not null",
            (rows.array(event_ids),),
        ):
            found.setdefault(event_id, []).extend(ops.spans_of(ops.decode(body, device="", seq=0)))
        return found

    def _rewrite(self, events: Sequence[tuple[str, str, str, int]]) -> None:
        """Give some events another (text, metadata, whether it is forgotten), and all that follows from these."""
        if not events:
            return
        ids = rows.array(event_id for event_id, *_ in events)
        self._run_many(
            "update event set text = ?, metadata = ?, forgotten = ?, erased = erased + 1 where id = ?",
            [(text, metadata, forgotten, event_id) for event_id, text, metadata, forgotten in events],
        )
        self._reindex(ids)

    def _reindex(self, ids: str) -> None:
        """Tell the full text, the index and the sessions of some events (a JSON array of ids) that changed."""
        self._run(
            "delete from embedding where space in (select id from space) and owner in (select value from json_each(?))",
            (ids,),
        )
        self.queue.change_events(ids)
        found = self.fetch(
            f"select {rows.EVENT_COLUMNS}, n, seq, forgotten from event"
            " where id in (select value from json_each(?)) order by n",
            (ids,),
        )
        self._unindex("event_fts", [row[13] for row in found])
        heard = self._index_events((row[13], row[14], row) for row in found if not row[15])
        self.changes.stale.update(row[0] for row in found)
        self.changes.removed += sorted({row[0] for row in found} - heard)
        self._project_sessions({row[3] for row in found})
        self._cover({row[3] for row in found})

    def _unindex(self, table: str, numbers: Sequence[int]) -> None:
        """Delete the full text of some rows, and have FTS5 write that down before anything else comes.

        SQLite 3.53.4 with `secure-delete` damages the index of a row that is deleted and inserted again within what
        FTS5 still holds in memory, when the places of one word run over the end of a page: the next delete then leaves
        some of them. FTS5 writes down what it holds when a savepoint begins.
        """
        if numbers:
            self._run_many(f"delete from {table} where rowid = ?", [(n,) for n in numbers])
            self._run("savepoint unindexed")
            self._run("release unindexed")

    def erase_traces(self) -> None:
        """Make what FTS5 still holds of deleted rows go, on a SQLite whose FTS5 does not erase by itself."""
        if not fts_erases():
            self._run("insert into event_fts (event_fts) values ('optimize')")
            self._run("insert into memory_fts (memory_fts) values ('optimize')")

    # --- rebuilding ---------------------------------------------------------------------------------------------------

    def rebuild(self, *, vectors: bool) -> tuple[int, int]:
        """Make every projection again from events and ops. Returns (memories, events), counted as `stats` does.

        With `vectors`, drops them all too, to be embedded again; else keeps those whose text has not changed.

        Whoever keeps a copy of it all is told nothing, and must make that again too: it would replace each document.
        """
        self._run("reindex")
        self._run("delete from tombstone")
        self._empty_full_text("event_fts")
        self._run(
            "insert or ignore into tombstone (id, hlc) select entity, min(hlc) from op where type = ? group by entity",
            (int(OpType.FORGET),),
        )
        if vectors:
            self._run("delete from embedding")
        last = 0
        while found := self.fetch(
            f"select {rows.EVENT_COLUMNS}, n, seq, forgotten from event where n > ? order by n limit 2000", (last,)
        ):
            self._index_events((row[13], row[14], row) for row in found if not row[15])
            self.changes.events.clear()
            last = found[-1][13]
        self.project_all()
        for told in (self.changes.memories, self.changes.removed, self.changes.stale):
            told.clear()
        self.queue.refill(self.queue.space)
        events = self.fetch("select count(*) from event where not forgotten")[0][0]
        memories = self.fetch(f"select count(*) from memory where {rows.LISTED}")[0][0]
        return memories, events

    def _empty_full_text(self, table: str) -> None:
        """Make a full-text index anew: of a damaged one nothing can be deleted, and of a large one only slowly."""
        self._run(f"drop table {table}")
        self._run(f"create virtual table {table} using fts5 (tokens, tokenize = 'ascii')")
        if fts_erases():
            self._run(f"insert into {table} ({table}, rank) values ('secure-delete', 1)")

    def project_all(self) -> None:
        """Make sessions, memories and all that hangs on them again, and note that this version did it."""
        self._empty_full_text("memory_fts")
        for table in ("session", "name", "claim", "grip", "counted", "conflict"):
            self._run(f"delete from {table}")
        self._project_sessions([row[0] for row in self.fetch("select distinct session_id from event")])
        self._run(
            "delete from memory where id not in (select entity from op where type = ? and body is not null)",
            (int(OpType.MEMORY),),
        )
        self.queue.drop_absent()
        entities = self.fetch(
            "select entity from op where type in (?, ?, ?, ?, ?) and body is not null group by entity"
            " order by min(hlc), entity",
            [int(kind) for kind in OF_MEMORIES],
        )
        for at in range(0, len(entities), PROJECTED_AT_ONCE):
            self._project(self._logs(rows.array(row[0] for row in entities[at : at + PROJECTED_AT_ONCE])))
        self.set_meta("projected", PROJECTED)

    def view_digest(self) -> str:
        """Return a digest (hex) of everything that is derived: what `state_digest` reads, and the full text.

        Of tables that cannot be read, which a rebuild makes again, it is "unreadable".
        """
        try:
            return self._digest(
                *_SHOWN,
                "select e.id, f.tokens from event_fts f join event e on e.n = f.rowid order by e.id",
                "select m.id, f.tokens from memory_fts f join memory m on m.n = f.rowid order by m.id",
            )
        except driver.DatabaseError as error:
            log.warning("before the rebuild: %s", type(error).__name__)
            return "unreadable"

    def state_digest(self) -> str:
        """Return a digest (hex) of what every device shows that holds the same ops."""
        return self._digest(*_SHOWN)

    def _digest(self, *queries: str) -> str:
        total = hashlib.sha256()
        for sql in queries:
            for row in self.fetch(sql):
                total.update(msgspec.msgpack.encode(row))
        return total.hexdigest()


_UNEMBED = "delete from embedding where space in (select id from space) and owner = ?"
"""Drop the vectors of one owner; without the space, which comes first in the key, all vectors would be read."""

_CLOSES, _TITLES = EventType.SESSION_END.value, EventType.USER_MESSAGE.value


def _at(seq: int, row: sqlite.Row) -> str:
    """Return where an event stands among all, as a text: what `rows.PLACE` says."""
    return f"{row[5]:015d}{seq:019d}{row[0]}"


def _assigned(columns: str) -> str:
    return ", ".join(f"{column.strip()} = excluded.{column.strip()}" for column in columns.split(","))
