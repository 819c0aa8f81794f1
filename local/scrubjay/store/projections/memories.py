"""Memories, and what hangs on them: grips, counts, conflicts, claims; each the fold of the ops of one memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scrubjay.store import rows, tables
from scrubjay.store.changes import Changes
from scrubjay.store.embed_queue import EmbedQueue
from scrubjay.store.projections import full_text
from scrubjay.store.projections.names import Names
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import AUTHOR, Memory, Op

AUTHORS = "authors"
"""The key of the names of authors among the settings of the file."""

PROJECTED_AT_ONCE = 500
"""Memories whose ops are in memory at one time during a rebuild."""

OF_MEMORIES = (OpType.MEMORY, OpType.CLAIM, OpType.UNCLAIM, OpType.COUNT, OpType.GRIP)
"""Ops whose entity is a memory, and that make its rows."""

UNEMBED = "delete from embedding where space in (select id from space) and owner = ?"
"""Drop the vectors of one owner; without the space, which comes first in the key, all vectors would be read."""


class Memories:
    """The tables that follow from the ops of memories."""

    def __init__(self, context: WriteContext, names: Names, queue: EmbedQueue) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._names = names
        self._queue = queue

    def project(self, logs: Mapping[str, Sequence[Op]]) -> int:
        """Make the rows of some memories again, each from its ops, and tell the index.

        Returns how many conflicts opened. A memory whose content has not come yet, or was erased before what replaced
        it came, keeps its claims, grips and counts, which show once it has.
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
            self._fetch(
                "select memory_id, field, hlc, device from conflict"
                " where memory_id in (select value from json_each(?))",
                (ids,),
            )
        )
        named = self._names.release(ids)
        for table in tables.FOLDED:
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
        shown = (memory for view in views.values() for memory in view.memories.values())
        memories = {memory.id: self._named_author(memory) for memory in shown}
        self._hide([memory_id for memory_id in logs if memory_id not in memories])
        renamed = self._names.decide(named | {name for name, _, _ in claims}, memories)
        self.put([replace(memory, name=renamed.pop(memory.id, None)) for memory in memories.values()])
        if renamed:
            self.put([replace(memory, name=renamed[memory.id]) for memory in self._load(renamed)])
        return len(set(conflicts) - listed)

    def _named_author(self, memory: Memory) -> Memory:
        """Return a memory with its author under the name that this account has for them."""
        author = memory.metadata.get(AUTHOR)
        if not isinstance(author, str):
            return memory
        known = json.loads(self._context.queries.meta(AUTHORS) or "{}")
        who, _, where = author.partition("@")
        return replace(memory, metadata={**memory.metadata, AUTHOR: f"{known.get(who, who)}@{where}"})

    def name_authors(self, names: Mapping[str, str]) -> None:
        """Show who wrote what is not this person's under these names, by the short ids of devices and accounts."""
        said = json.dumps(names, sort_keys=True)
        if (self._context.queries.meta(AUTHORS) or "{}") == said:
            return
        self._context.set_meta(AUTHORS, said)
        self.project_again(self._context.queries.memories.authored())

    def project_again(self, ids: Sequence[str]) -> int:
        """Make the rows of some memories again from the log, a few at a time. Returns how many conflicts opened."""
        conflicts = 0
        for at in range(0, len(ids), PROJECTED_AT_ONCE):
            conflicts += self.project(self._context.queries.ops.of_entities(ids[at : at + PROJECTED_AT_ONCE]))
        return conflicts

    def _load(self, ids: Iterable[str]) -> list[Memory]:
        return [
            rows.memory_of((*row, None, None))
            for row in self._fetch(
                f"select {rows.MEMORY_COLUMNS} from memory where id in (select value from json_each(?))",
                (rows.array(ids),),
            )
        ]

    def put(self, memories: Sequence[Memory]) -> None:
        """Write the rows of memories as they now are, with their full text, and tell the index."""
        found = self._fetch(
            "select id, n, content_hash from memory where id in (select value from json_each(?))",
            (rows.array(memory.id for memory in memories),),
        )
        old = {row[0]: (row[1], row[2]) for row in found}
        stale = [
            memory.id for memory in memories if old.get(memory.id, (0, memory.content_hash))[1] != memory.content_hash
        ]
        self._run_many(UNEMBED, [(memory_id,) for memory_id in stale])
        self._context.changes.stale.update(stale)
        top = self._fetch("select coalesce(max(n), 0) from memory")[0][0]
        fresh = iter(range(top + 1, top + 1 + len(memories)))
        numbered = [(old[memory.id][0] if memory.id in old else next(fresh), memory) for memory in memories]
        full_text.remove(self._context, [n for n, _ in old.values()])
        self._run_many(
            f"insert into memory (n, {rows.MEMORY_COLUMNS}) values (?, {rows.placeholders(rows.MEMORY_COLUMNS)})"
            f" on conflict (id) do update set {_assigned(rows.MEMORY_COLUMNS)}",
            [(n, *rows.memory_row(memory)) for n, memory in numbered],
        )
        self._run_many("delete from also_from where memory_id = ?", [(memory_id,) for memory_id in old])
        self._run_many(
            "insert or ignore into also_from (source_key, memory_id) values (?, ?)",
            [(key, memory.id) for memory in memories for key in _also_from(memory)],
        )
        said_anew = {*stale, *(memory.id for memory in memories if memory.id not in old)}
        self._queue.add_memories([n for n, memory in numbered if memory.id in said_anew])
        tokens = [rows.memory_tokens(memory) for memory in memories]
        listed = [
            (n, memory, words)
            for (n, memory), words in zip(numbered, tokens, strict=True)
            if memory.archived_at is None  # what was archived is not looked for among what holds
        ]
        self._run_many("insert into memory_fts (rowid, tokens) values (?, ?)", [(n, words) for n, _, words in listed])
        self._tell(memories, tokens)

    def _tell(self, memories: Sequence[Memory], tokens: Sequence[str]) -> None:
        """Tell the index of memories, of what holds them, whose sources are theirs too, and of what they hold.

        What was put away into a memory is for whom that is for, and leads to it while it is there.
        """
        into = {memory.superseded_by for memory in memories if memory.archived_at is not None}
        ids = {memory.id for memory in memories}
        near = {one for one in into if one is not None}.union(self._context.queries.members.within(ids))
        beside = self._load(near - ids)
        told = [*zip(memories, tokens, strict=True), *((memory, rows.memory_tokens(memory)) for memory in beside)]
        changes, shown = self._context.changes, {memory.id for memory, _ in told}
        changes.memories += self._context.queries.documents.of(told)
        changes.removed[:] = [one for one in changes.removed if one not in shown]  # dropped, and now there again

    def drop(self, ids: Sequence[str]) -> None:
        """Take memories out of every projection, and let others have their names."""
        wanted = rows.array(ids)
        inside = set(self._context.queries.members.within(ids)).difference(ids)
        named = self._names.release(wanted)
        self._hide(ids)
        for table, column in tables.OF_MEMORY.items():
            self._run_many(f"delete from {table} where {column} = ?", [(memory_id,) for memory_id in ids])
        renamed = self._names.decide(named, {})
        self.put([replace(memory, name=renamed[memory.id]) for memory in self._load(renamed)])
        left = self._load(inside)  # nothing holds them any more
        self._tell(left, [rows.memory_tokens(memory) for memory in left])

    def _hide(self, ids: Sequence[str]) -> None:
        """Take away what shows of memories, and what was made of their words. What is said about them stays."""
        found = self._fetch("select n, id from memory where id in (select value from json_each(?))", (rows.array(ids),))
        if not found:
            return
        hidden = [(str(memory_id),) for _, memory_id in found]
        self._run_many("delete from memory where id = ?", hidden)
        self._run_many("delete from also_from where memory_id = ?", hidden)
        self._run_many(UNEMBED, hidden)
        self._queue.drop_memories([n for n, _ in found])
        full_text.remove(self._context, [n for n, _ in found])
        self._context.changes.removed += [memory_id for (memory_id,) in hidden]

    def cover(self, session_ids: Iterable[str]) -> None:
        """Tell the index of memories whose grips may cover other events, now that those of some sessions changed."""
        if not self._fetch("select 1 from grip indexed by grip_long where event_id_start <> event_id_end limit 1"):
            return
        found = self._fetch(
            "select distinct g.memory_id from grip g indexed by grip_long join event a on a.id = g.event_id_start"
            " where g.event_id_start <> g.event_id_end and a.session_id in (select value from json_each(?))",
            (rows.array(session_ids),),
        )
        if found:
            self.put(self._load(row[0] for row in found))

    def count(self, totals: Sequence[tuple[str, str, int, int]]) -> None:
        """Take in what devices say of how often they recalled memories: (memory, device, total, last)."""
        self._run_many(
            "insert into counted (memory_id, device, total, last) values (?, ?, ?, ?) on conflict do update"
            " set total = excluded.total, last = excluded.last where (excluded.total, excluded.last) > (total, last)",
            totals,
        )

    def project_all(self, *, tell: bool) -> None:
        """Make the rows of all memories again from the log; a memory that is still there keeps its arrival number."""
        self._run(
            "delete from memory where id not in (select entity from op where type = ? and body is not null)",
            (int(OpType.MEMORY),),
        )
        self._queue.drop_absent()
        entities = self._fetch(
            "select entity from op where type in (?, ?, ?, ?, ?) and body is not null group by entity"
            " order by min(hlc), entity",
            [int(kind) for kind in OF_MEMORIES],
        )
        for at in range(0, len(entities), PROJECTED_AT_ONCE):
            self.project_again([str(row[0]) for row in entities[at : at + PROJECTED_AT_ONCE]])
            if not tell:  # it would be a copy of everything in memory
                self._context.changes = Changes()


def _also_from(memory: Memory) -> list[str]:
    """Return the keys of the further places of imported files that say the same as a memory."""
    also = memory.metadata.get("also_from")
    places = [place.get("source_key") for place in also if isinstance(place, dict)] if isinstance(also, list) else []
    return [key for key in places if isinstance(key, str)]


def _assigned(columns: str) -> str:
    return ", ".join(f"{column.strip()} = excluded.{column.strip()}" for column in columns.split(","))
