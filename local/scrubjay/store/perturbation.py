"""Falsifying a copy of a store on purpose, for experiments: what an agent does with it, and what `verify` notices.

Three depths say how careful a forger is. `row` changes what is shown and nothing else, as a careless program or a disk
does. `op` changes the log that it is derived from, and leaves its check sum. `sealed` changes the log with its check
sums and derives everything again, as whoever can write the file and knows the format does.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from scrubjay.store import checksums
from scrubjay.store.projections.projections import Projections
from scrubjay.store.queries import Queries
from scrubjay.store.write_context import LogHead, WriteContext
from scrubjay_io.sqlite import driver
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis, ulid
from scrubjay_shared.errors import ConflictError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.ops.schema import FIELDS
from scrubjay_shared.records import Op


class Kind(StrEnum):
    """What is done: a memory's text changed, two exchanged, one made up; or an event rewritten that one is from."""

    CORRUPT = "corrupt"
    SWAP = "swap"
    FORGE = "forge"
    REWRITE = "rewrite"


class Depth(StrEnum):
    """How far down it is done."""

    ROW = "row"
    OP = "op"
    SEALED = "sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """One thing that was falsified: the memories or the event by id, and their texts before and after.

    `marks` are what a finding calls it by, and `also` what does not fit because of it, though it may for others' sake.
    """

    kind: Kind
    depth: Depth
    ids: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    marks: tuple[str, ...]
    also: tuple[str, ...] = ()


def perturb(path: Path, wanted: Sequence[tuple[Kind, Depth]], seed: int) -> tuple[Perturbation, ...]:
    """Falsify a store's file, the same for the same seed. Call it on copies only: nothing brings back what was there.

    Raises ConflictError where the store has too few memories.
    """
    chosen = sorted(wanted, key=lambda one: one[1] is not Depth.SEALED)  # deriving again would undo the others
    with contextlib.closing(driver.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        work = _Perturbing(connection, random.Random(seed))  # noqa: S311  # the same again is what is wanted
        done = []
        sealed = True
        for kind, depth in chosen:
            if sealed and depth is not Depth.SEALED:
                work.derive()
                sealed = False
            done.append(work.do(kind, depth))
        if sealed and chosen:
            work.derive()
        connection.execute("commit")
        connection.execute("pragma wal_checkpoint(truncate)")
    return tuple(done)


class _Perturbing:
    """The falsifications of one file, in its transaction."""

    def __init__(self, connection: Any, chance: random.Random) -> None:
        self._connection = connection
        self._chance = chance
        self._queries = Queries(connection)
        self._memories = dict(
            connection.execute(
                "select id, content from memory where superseded_by is null and archived_at is null order by id"
            ).fetchall()
        )
        self._cited = [
            row[0]
            for row in connection.execute(
                "select distinct e.id from event e join grip g on g.event_id_start = e.id and g.event_id_end = e.id"
                " where not e.forgotten and length(e.text) > 0 order by e.id"
            )
        ]
        self._do: Mapping[Kind, Callable[[Depth], Perturbation]] = {
            Kind.CORRUPT: self._corrupt,
            Kind.SWAP: self._swap,
            Kind.FORGE: self._forge,
            Kind.REWRITE: self._rewrite,
        }

    def do(self, kind: Kind, depth: Depth) -> Perturbation:
        """Falsify one thing, which was not falsified yet."""
        return self._do[kind](depth)

    def derive(self) -> None:
        """Derive everything again from the falsified log, as its check sums now say it is right."""
        checksums.install(self._connection)
        context = WriteContext(self._connection, self._queries, LogHead(), Millis(0), self._chance.randbytes)
        Projections(context).project_all(tell=False)
        made = self._connection.execute("select name from sqlite_temp_schema where type = 'trigger'").fetchall()
        for (name,) in made:
            self._connection.execute(f"drop trigger temp.{name}")

    def _taken(self) -> tuple[str, str]:
        if not self._memories:
            raise ConflictError(
                "the store has too few memories to falsify so many", hint="ask for fewer, or fill the store first"
            )
        memory_id = self._chance.choice(list(self._memories))
        return memory_id, self._memories.pop(memory_id)

    def _corrupt(self, depth: Depth) -> Perturbation:
        memory_id, before = self._taken()
        after = self._changed(before)
        marks = self._say(memory_id, before, after, depth)
        return Perturbation(
            kind=Kind.CORRUPT, depth=depth, ids=(memory_id,), before=(before,), after=(after,), marks=marks
        )

    def _swap(self, depth: Depth) -> Perturbation:
        one, text = self._taken()
        other, said = self._taken()
        marks = (*self._say(one, text, said, depth), *self._say(other, said, text, depth))
        return Perturbation(
            kind=Kind.SWAP, depth=depth, ids=(one, other), before=(text, said), after=(said, text), marks=marks
        )

    def _forge(self, depth: Depth) -> Perturbation:
        """Make up a memory after the picture of another: with its own op, and no passage that it was read from."""
        model, text = self._taken()
        after = self._changed(text)
        forged = ulid(Millis(self._newest()), self._chance.randbytes(10))
        marks: tuple[str, ...] = (forged,)
        if depth is Depth.ROW:
            columns = [row[1] for row in self._connection.execute("pragma table_info(memory)") if row[1] != "n"]
            values = ["?" if name in {"id", "content"} else "null" if name == "name" else name for name in columns]
            given = [{"id": forged, "content": after}[name] for name in columns if name in {"id", "content"}]
            self._connection.execute(
                f"insert into memory ({', '.join(columns)}) select {', '.join(values)} from memory where id = ?",
                (*given, model),
            )
        else:
            op = self._op_of(model, text)
            fields = self._fields(model) | {Field.CONTENT: after}
            seq = self._connection.execute("select max(seq) from op where device = ?", (op.device,)).fetchone()[0] + 1
            made = replace(op, seq=seq, op_id=self._chance.randbytes(16), body=ops.memory_body(forged, fields))
            row = (made.device, seq, made.op_id, int(made.hlc), made.type, forged, ops.encode(made), None, 0)
            crc = checksums.checksum(*row) if depth is Depth.SEALED else 0
            self._connection.execute(
                "insert into op (device, seq, op_id, hlc, type, entity, body, cause, hollow, crc)"
                " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, crc),
            )
            marks = (forged, f"op {seq} of device {op.device[:8]}")
        return Perturbation(
            kind=Kind.FORGE,
            depth=depth,
            ids=(forged,),
            before=("",),
            after=(after,),
            marks=marks,
            also=("the queue of texts to embed",),
        )

    def _rewrite(self, depth: Depth) -> Perturbation:
        """Change the text of an event that a memory was read from. Its row is a source: row and op are one depth."""
        if not self._cited:
            raise ConflictError("no memory of the store was read from an event", hint="leave out --rewrite")
        event_id = self._cited.pop(self._chance.randrange(len(self._cited)))
        before, session_id = self._connection.execute(
            "select text, session_id from event where id = ?", (event_id,)
        ).fetchone()
        after = self._changed(before, everywhere=True)
        guards = self._connection.execute(
            "select name, sql from sqlite_schema where type = 'trigger' and tbl_name = 'event'"
        ).fetchall()
        for name, _ in guards:
            self._connection.execute(f"drop trigger {name}")
        self._connection.execute("update event set text = ? where id = ?", (after, event_id))
        if depth is Depth.SEALED:
            self._seal("event", "id = ?", (event_id,))
        for _, definition in guards:
            self._connection.execute(definition)
        grips = self._connection.execute("select id from grip where event_id_start = ?", (event_id,)).fetchall()
        return Perturbation(
            kind=Kind.REWRITE,
            depth=depth,
            ids=(event_id,),
            before=(before,),
            after=(after,),
            marks=(event_id, *(grip_id for (grip_id,) in grips)),
            also=(f"session {session_id}",),
        )

    def _say(self, memory_id: str, before: str, after: str, depth: Depth) -> tuple[str, ...]:
        """Have a memory say something else. Returns what a finding may call it by."""
        if depth is Depth.ROW:
            self._connection.execute("update memory set content = ? where id = ?", (after, memory_id))
            return (memory_id,)
        op = self._op_of(memory_id, before)
        body = ops.encode(replace(op, body=_replaced(op.body, before, after)))
        self._connection.execute("update op set body = ? where device = ? and seq = ?", (body, op.device, op.seq))
        if depth is Depth.SEALED:
            self._seal("op", "device = ? and seq = ?", (op.device, op.seq))
        return memory_id, f"op {op.seq} of device {op.device[:8]}"

    def _op_of(self, memory_id: str, content: str) -> Op:
        """Return the op that says what a memory says now."""
        log = self._queries.ops.of_entities([memory_id])[memory_id]
        return next(
            op
            for op in reversed(log)
            if op.type == OpType.MEMORY and Field.CONTENT in ops.fields_of(op) and content in _strings(op.body)
        )

    def _fields(self, memory_id: str) -> dict[Field, Any]:
        """Return what the log says of each field of a memory, the latest of each."""
        log = self._queries.ops.of_entities([memory_id])[memory_id]
        written = [op for op in log if op.type == OpType.MEMORY]
        return {key: op.body[FIELDS][key] for op in written for key in ops.fields_of(op) if key in op.body[FIELDS]}

    def _seal(self, table: str, where: str, key: tuple[Any, ...]) -> None:
        columns = checksums.columns_of(self._connection, table)
        row = self._connection.execute(f"select {', '.join(columns)} from {table} where {where}", key).fetchone()
        crc = checksums.checksum(*row)
        self._connection.execute(f"update {table} set crc = ? where {where}", (crc, *key))

    def _newest(self) -> int:
        return int(self._connection.execute("select max(created_at) from memory").fetchone()[0] or 0)

    def _changed(self, text: str, *, everywhere: bool = False) -> str:
        """Return a text with a word (of a passage: every word) that says something else."""
        words = text.split(" ")
        places = range(len(words)) if everywhere else [self._chance.randrange(len(words))]
        for place in places:
            words[place] = "".join(reversed(words[place])) + str(self._chance.randrange(10))
        return " ".join(words)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(inner, old, new) for key, inner in value.items()}
    return new if isinstance(value, str) and value == old else value


def _strings(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _strings(inner)]
    return [value] if isinstance(value, str) else []
