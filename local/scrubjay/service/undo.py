"""What runs and requests changed, and taking one of them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.jobs import relearn
from scrubjay.lifecycle.undo import UNDO, Undoing, undoing, without_circles
from scrubjay.policy import MemoryPolicy
from scrubjay.service.history import change_of, changed_fields
from scrubjay.service.paging import cursor, cursor_text, page_limit
from scrubjay.store import CauseRow, MemoryWrite, Queries, Statement, Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field, OpType

AT_ONCE = 500
"""Memories taken back by one transaction: some hundredths of a second, so that others get their turn."""


@dataclass(slots=True)
class _Tally:
    """What became of the memories of a cause so far."""

    archived: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    reverted: list[str] = field(default_factory=list)
    kept: list[api.Kept] = field(default_factory=list)

    def add(self, plans: Sequence[Undoing]) -> None:
        """Count what some plans do."""
        for plan in plans:
            if plan.changes:
                back = Field.ARCHIVED_AT in plan.fields and not plan.archives
                (self.archived if plan.archives else self.restored if back else self.reverted).append(plan.memory_id)
            if plan.kept:
                self.kept.append(api.Kept(id=plan.memory_id, fields=plan.kept))


class Undo:
    """The causes of one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self, store: Store, policy: MemoryPolicy, *, wake: Callable[[str], None], now: Callable[[], Millis]
    ) -> None:
        self._store = store
        self._policy = policy
        self._wake = wake
        self._now = now

    async def history(self, _caller: Caller, request: api.HistoryRequest) -> api.HistoryResponse:
        """Return runs and requests, newest first; or one of them, and a page of what it changed."""
        limit, after = page_limit(self._policy, request.limit), cursor(request.cursor)
        if request.cause is None:
            return await self._store.read(lambda q: _causes(q, request.kind, after, limit))
        ref = request.cause
        return await self._store.read(lambda q: _changes(q, q.causes.resolve(ref), after, limit))

    async def undo(self, _caller: Caller, request: api.UndoRequest) -> api.UndoResponse:
        """Take back what a cause wrote, as `lifecycle.undo` says. It is carried out under a cause of its own.

        A run of many memories is taken back in several transactions: after a crash between two of these, undoing it
        once more takes back the rest. One that is still under way ends here.
        """
        if not request.dry_run:
            await self._store.write(lambda tx: relearn.stop(tx, tx.queries.causes.resolve(request.cause).id))
        found, ids, events, forgotten = await self._store.read(lambda q: _touched(q, request.cause))
        cause = self._store.new_cause(UNDO, label=found.id)
        tally, wrote = _Tally(), False
        for at in range(0, len(ids), AT_ONCE):
            batch = ids[at : at + AT_ONCE]
            if request.dry_run:
                plans = await self._store.read(partial(_planned, ids=batch, cause=found.id, now=self._now()))
            else:
                carry_out = partial(_carry_out, ids=batch, cause=found.id, touched=frozenset(ids))
                plans = await self._store.write(carry_out, cause=cause)
                wrote = wrote or any(plan.changes for plan in plans)
            tally.add(plans)
        if wrote:
            self._wake("embed")
        return api.UndoResponse(
            cause=found.id,
            undo=cause.id if wrote else None,
            archived=tuple(tally.archived),
            restored=tuple(tally.restored),
            reverted=tuple(tally.reverted),
            kept=tuple(tally.kept),
            events=events,
            forgotten=forgotten,
        )


def _causes(queries: Queries, kind: str | None, after: tuple[int, int] | None, limit: int) -> api.HistoryResponse:
    found, more = queries.causes.page(kind=kind, after=after, limit=limit)
    counts = queries.causes.counts([row.n for row in found])
    return api.HistoryResponse(
        causes=tuple(_cause(row, counts.get(row.n, {})) for row in found), next=cursor_text(more)
    )


def _cause(row: CauseRow, counts: Mapping[int, int]) -> api.Cause:
    changes: Counter[str] = Counter()
    for op_type, count in counts.items():
        changes[change_of(op_type)] += count
    return api.Cause(
        id=row.id, kind=row.id.partition(":")[0], label=row.label, ts=row.at, changes=dict(sorted(changes.items()))
    )


def _changes(queries: Queries, row: CauseRow, after: tuple[int, int] | None, limit: int) -> api.HistoryResponse:
    start = 0 if after is None else after[1]
    found, more = queries.causes.ops(row.n, after=start, limit=limit)
    return api.HistoryResponse(
        causes=(_cause(row, queries.causes.counts([row.n]).get(row.n, {})),),
        changes=tuple(
            api.CausedChange(id=entity, change=change_of(op_type), fields=changed_fields(op))
            for entity, op_type, op in found
        ),
        next=None if more is None else cursor_text((0, more)),
    )


def _touched(queries: Queries, ref: str) -> tuple[CauseRow, list[str], int, int]:
    """Return a cause, the memories that it wrote to, and how many events it appended; how much was forgotten."""
    found = queries.causes.resolve(ref)
    counts = queries.causes.counts([found.n]).get(found.n, {})
    return found, queries.causes.memories(found.n), counts.get(OpType.EVENT, 0), queries.causes.forgotten(found.n)


def _planned(queries: Queries, ids: Sequence[str], cause: str, now: Millis) -> list[Undoing]:
    logs = queries.ops.of_entities(ids)
    plans = [undoing(memory_id, logs[memory_id], cause, now) for memory_id in ids if memory_id in logs]
    return without_circles(plans, queries.memories.successor)


def _carry_out(tx: Transaction, ids: Sequence[str], cause: str, touched: frozenset[str]) -> list[Undoing]:
    """Undo a cause in some memories. A name that another memory has by now stays with that one.

    What others than the cause (it is not among the `touched`) put away into a memory that goes comes back with it.
    """
    plans = _planned(tx.queries, ids, cause, tx.now)
    freed = {(name, plan.memory_id) for plan in plans for name in plan.unclaimed}
    holders = tx.queries.names.holders([name for plan in plans for name in plan.claimed])
    taken = {name: holder for name, holder in holders.items() if (name, holder) not in freed}
    writes: list[MemoryWrite] = []
    named: list[MemoryWrite] = []  # a name that the cause gave to another memory is free once that one has lost it
    for plan in plans:
        if plan.changes:
            free = tuple(name for name in plan.claimed if taken.setdefault(name, plan.memory_id) == plan.memory_id)
            fields = dict(plan.fields)
            content = fields.get(Field.CONTENT)
            if isinstance(content, str) and tx.forget.left_of([Statement(text=content)]) != [content]:
                del fields[Field.CONTENT]  # it was forgotten meanwhile, and stays so
            writes.append(MemoryWrite(memory_id=plan.memory_id, fields=fields, unnamed=plan.unclaimed))
            named += [MemoryWrite(memory_id=plan.memory_id, fields={}, names=free)] if free else []
    back = {Field.ARCHIVED_AT: None, Field.SUPERSEDED_BY: None}
    for plan in plans:
        held = tx.queries.memories.put_away_into(plan.memory_id) if plan.archives else []
        writes += [MemoryWrite(memory_id=one, fields=back) for one in held if one not in touched]
    tx.memories.write(writes)
    tx.memories.write(named)
    return plans
