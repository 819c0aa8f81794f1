"""Erasing: tombstones, and everything that the store holds of what they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import rows
from scrubjay.store.projections.events import Events
from scrubjay.store.projections.memories import Memories
from scrubjay.store.queries.op_log import ERASED
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

_AT_ONCE = 512
"""Ops that are in memory at one time while the tombstones are made again."""


class Erasure:
    """What ops of type FORGET do to the tables."""

    def __init__(self, context: WriteContext, events: Events, memories: Memories) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._events = events
        self._memories = memories

    def tombstone(self, forgets: Sequence[Op]) -> bool:
        """Leave a tombstone of what some ops of type FORGET are about, and erase it. Returns whether words went."""
        self._put(forgets)
        return self._erase([ops.entity_of(op) for op in forgets])

    def remake(self) -> None:
        """Make the tombstones again from the log."""
        for table in ("tombstone", "tombstone_key", "tombstone_words"):
            self._run(f"delete from {table}")
        at = ("", 0)
        while found := self._fetch(
            "select device, seq, body from op where type = ? and (device, seq) > (?, ?) and body is not null"
            " order by device, seq limit ?",
            (int(OpType.FORGET), *at, _AT_ONCE),
        ):
            at = found[-1][:2]
            self._put([ops.decode(body, device=device, seq=seq) for device, seq, body in found])

    def _put(self, forgets: Sequence[Op]) -> None:
        """Write the rows of some ops: what each is about, and what is left of its words."""
        self._run_many(
            "insert into tombstone (id, hlc, lifted) values (?, ?, ?) on conflict (id) do update set"
            " hlc = min(hlc, excluded.hlc), lifted = max(lifted, excluded.lifted)",
            [(ops.entity_of(op), op.hlc, int(ops.lifts(op))) for op in forgets],
        )
        keys = [(ops.entity_of(op), key) for op in forgets if (key := ops.new_key_of(op)) is not None]
        # Of two keys under one id, which no honest device makes, the smaller counts, whichever came first.
        self._run_many(
            "insert into tombstone_key (id, key) values (?, ?) on conflict (id) do update set"
            " key = min(key, excluded.key)",
            keys,
        )
        left = [(ops.entity_of(op), words) for op in forgets if (words := ops.words_of(op)) is not None]
        self._run_many(
            "insert or ignore into tombstone_words (digest, entity, key, project) values (?, ?, ?, ?)",
            [(one.hex(), entity, words.key, words.project.hex()) for entity, words in left for one in words.digests],
        )

    def _erase(self, ids: Sequence[str]) -> bool:
        """Erase what the store holds of some ids, whatever they are of. Returns whether it held anything."""
        wanted = rows.array(ids)
        forget = int(OpType.FORGET)
        erased = bool(
            self._fetch(
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
        if self._fetch("select 1 from parked where entity in (select value from json_each(?)) limit 1", (wanted,)):
            erased = True
            self._run(
                "insert or ignore into op (device, seq, op_id, hlc, type, entity, body)"
                " select device, seq, zeroblob(16), 0, ?, '', null from parked"
                " where entity in (select value from json_each(?))",
                (ERASED, wanted),
            )
            self._run("delete from parked where entity in (select value from json_each(?))", (wanted,))
        grips = self._fetch("select id, memory_id from grip where id in (select value from json_each(?))", (wanted,))
        if grips:
            erased = True
            gone, owners = {grip_id for grip_id, _ in grips}, list(dict.fromkeys(owner for _, owner in grips))
            logs = self._context.queries.ops.of_entities(owners)
            made = [op for log in logs.values() for op in log if op.type == OpType.GRIP and ops.grip_of(op) in gone]
            self._run_many(
                "update op set body = null where device = ? and seq = ?", [(op.device, op.seq) for op in made]
            )
            self._memories.project(self._context.queries.ops.of_entities(owners))
        found = self._fetch(
            "select id from memory where id in (select value from json_each(?1)) union"
            " select memory_id from claim where memory_id in (select value from json_each(?1)) union"
            " select memory_id from grip where memory_id in (select value from json_each(?1)) union"
            " select memory_id from counted where memory_id in (select value from json_each(?1))",
            (wanted,),
        )
        memories = {str(row[0]) for row in found}
        if memories:
            erased = True
            self._memories.drop([memory_id for memory_id in ids if memory_id in memories])
        events = self._fetch(
            "select id from event where id in (select value from json_each(?)) and not forgotten", (wanted,)
        )
        if events:
            erased = True
            self._events.rewrite([(event_id, "", "{}", 1) for (event_id,) in events])
        return erased
