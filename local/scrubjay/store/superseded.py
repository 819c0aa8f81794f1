"""Emptying writes to memories that were superseded: the newest of a field at once, all of them some time later.

Nothing that shows follows from a superseded value (`scrubjay_shared.ops.registers`): only undo looks at it. So the last
few of each field stay until a memory is due, in which time a cause can be taken back, and then all go. What is emptied
keeps its op, with its stamp and what it has seen, on every device and at the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scrubjay.policy import DEFAULT
from scrubjay.store.projections import full_text
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.records import Op

_AT_ONCE = 200
"""Memories emptied in one transaction: some hundredths of a second that other writes wait."""

_RUNS = ("import", "distill", "observe", "compact", "consolidate", "prune", "supersede", "undo", "vault")
"""Kinds of causes of which a person learns later. Whoever asks for a change by name sees it at once."""


class Superseded:
    """The superseded writes to memories within one transaction."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._policy = DEFAULT.undo

    def follow(self, logs: Mapping[str, Sequence[Op]], written: Sequence[Op]) -> None:
        """Empty what is superseded beyond what undo needs, now that some ops were `written`, here or elsewhere.

        `logs` are the ops of the memories that they are about; those without values may be absent where none of the
        written ops can be superseded by them.
        """
        for log in logs.values():
            state = ops.fold(log)
            if any(len(versions) > 1 for versions in state.registers.values()) or state.superseded:
                self._empty(log, ops.to_empty(state, self._policy.kept_versions))
        now = self._context.now
        self._context.run_many(
            "insert into replaced (entity, due) values (?, ?) on conflict do update set due = min(due, excluded.due)",
            [(ops.entity_of(op), now + self._kept_ms(op)) for op in written if ops.is_replacing(op)],
        )

    def _kept_ms(self, op: Op) -> int:
        kind = (ops.cause_of(op) or "").partition(":")[0]
        return self._policy.after_run_ms if kind in _RUNS else self._policy.after_request_ms

    def sweep(self) -> int:
        """Empty everything that is superseded in memories that are due. Returns how many were looked at."""
        context = self._context
        due = [
            str(row[0])
            for row in context.queries.fetch(
                "select entity from replaced where due <= ? order by due limit ?", (context.now, _AT_ONCE)
            )
        ]
        for log in context.queries.ops.of_entities(due).values():
            self._empty(log, ops.to_empty(ops.fold(log), 0))
        context.run_many("delete from replaced where entity = ?", [(memory_id,) for memory_id in due])
        if due:
            full_text.erase_traces(context)
            context.changes.erased = True  # copies of the words are in the log of the file and in the saved index
        return len(due)

    def _empty(self, log: Sequence[Op], places: Mapping[tuple[str, ops.Stamp], frozenset[int]]) -> None:
        """Take values out of some writes; what was sent with words that go is packed anew without them."""
        changed: list[tuple[Any, ...]] = []
        spoken: list[tuple[str, int]] = []
        for op in log if places else ():
            keys = places.get((ops.entity_of(op), (int(op.hlc), op.device)))
            if keys is None or op.type != ops.OpType.MEMORY or (new := ops.emptied(op, keys)) is op:
                continue
            changed.append((ops.encode(new), int(ops.is_hollow(new)), op.device, op.seq))
            if keys & ops.WORDS & set(ops.fields_of(op)) - set(op.body.get(ops.EMPTIED, ())):
                spoken.append((op.device, op.seq))
        self._context.run_many("update op set body = ?, hollow = ? where device = ? and seq = ?", changed)
        if spoken and self._context.queries.replication.state() is not None:
            self._context.run_many("insert or ignore into erased (device, seq) values (?, ?)", spoken)
