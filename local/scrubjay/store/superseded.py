"""Emptying writes to memories that were superseded: the newest of a field at once, all of them some time later.

Nothing that shows follows from a superseded value (`scrubjay_shared.ops.registers`): only undo looks at it. So the last
few causes' of each field stay until they are due, in which time a cause can be taken back. What is emptied keeps its
op, with its stamp and what it has seen, on every device and at the server.
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

_RUNS = ("import", "distill", "observe", "relearn", "compact", "consolidate", "prune", "supersede", "undo", "vault")
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
                causes, most = _causes(log), self._policy.kept_versions
                keep = {key: _within(found, causes, most) for key, found in state.registers.items()}
                self._empty(log, ops.to_empty(state, keep))
        now = self._context.now
        self._context.run_many(
            "insert into replaced (entity, due) values (?, ?) on conflict do update set due = min(due, excluded.due)",
            [(ops.entity_of(op), now + self._kept_ms(ops.cause_of(op))) for op in written if ops.is_replacing(op)],
        )

    def _kept_ms(self, cause: str | None) -> int:
        kind = (cause or "").partition(":")[0]
        return self._policy.after_run_ms if kind in _RUNS else self._policy.after_request_ms

    def sweep(self) -> int:
        """Empty what is superseded for long enough in memories that are due. Returns how many were looked at."""
        context = self._context
        due = [
            str(row[0])
            for row in context.queries.fetch(
                "select entity from replaced where due <= ? order by due limit ?", (context.now, _AT_ONCE)
            )
        ]
        later: list[tuple[int, str]] = []
        for memory_id, log in context.queries.ops.of_entities(due).items():
            causes, state, ends = _causes(log), ops.fold(log), list[int]()
            keep = {key: self._unexpired(found, causes, ends) for key, found in state.registers.items()}
            self._empty(log, ops.to_empty(state, keep))
            if ends:
                later.append((min(ends), memory_id))
        context.run_many("delete from replaced where entity = ?", [(memory_id,) for memory_id in due])
        context.run_many("insert into replaced (due, entity) values (?, ?)", later)
        if due:
            full_text.erase_traces(context)
            context.changes.erased = True  # copies of the words are in the log of the file and in the saved index
        return len(due)

    def _unexpired(
        self, versions: Mapping[ops.Stamp, ops.Version], causes: Mapping[ops.Stamp, str | None], ends: list[int]
    ) -> int:
        """Return how many superseded versions of a register stay, the latest; add to `ends` when that changes.

        A version stays as long as what replaced it can be taken back: a request for a day, a run for longer. With one
        that goes, all go that it replaced. A write from a clock that is ahead is not waited for.
        """
        now, superseded = int(self._context.now), sorted(set(versions) - ops.heads(versions))
        kept = 0
        for stamp in reversed(superseded):
            replacing = min(one for one, (_, seen) in versions.items() if stamp in seen)
            end = (replacing[0] >> 16) + self._kept_ms(causes.get(replacing))
            if end <= now or replacing[0] >> 16 > now:
                break
            kept += 1
            ends.append(end)
        return kept

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


def _causes(log: Sequence[Op]) -> dict[ops.Stamp, str | None]:
    """Return what wrote each version of a memory's registers."""
    return {(int(op.hlc), op.device): ops.cause_of(op) for op in log if op.type == ops.OpType.MEMORY}


def _within(versions: Mapping[ops.Stamp, ops.Version], causes: Mapping[ops.Stamp, str | None], most: int) -> int:
    """Return how many superseded versions of a register stay: those that at most so many causes wrote after.

    All that one run wrote counts once: else its own writes would push out what stood before it.
    """
    shown, later, kept = ops.heads(versions), set[object](), 0
    for stamp in sorted(versions, reverse=True):
        if stamp not in shown:
            if len(later) > most:
                break
            kept += 1
        later.add(causes.get(stamp) or stamp)
    return kept
