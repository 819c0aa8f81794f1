"""Writing memories: their fields, grips and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrubjay.store.op_log import OpLog
from scrubjay.store.projections.memories import Memories
from scrubjay.store.queries.tombstones import Statement
from scrubjay.store.superseded import Superseded
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.errors import ConflictError, DeniedError, NotFoundError
from scrubjay_shared.ops import Field, OpType, Stamp
from scrubjay_shared.records import Grip, Op, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWrite:
    """New values for some registers of one memory, new grips, and names to claim for it."""

    memory_id: str
    fields: Mapping[Field, Any]
    grips: tuple[Grip, ...] = ()
    names: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    """Names that the memory loses, its own name too. One that it does not have is passed over."""
    settles: bool = False
    """Whether the writer decides: open conflicts of these fields are then closed, here and everywhere."""


class ForgottenWordsError(DeniedError):
    """Words that were forgotten for good were to be written. `said` are the texts that say them."""

    def __init__(self, said: tuple[Statement, ...]) -> None:
        super().__init__(
            "these words were forgotten for good, and are not stored again",
            hint="if they shall be remembered after all, the person says so with: scrubjay add",
        )
        self.said = said


class MemoryWrites:
    """What this device writes of memories."""

    def __init__(self, context: WriteContext, log: OpLog, memories: Memories, superseded: Superseded) -> None:
        self._context = context
        self._log = log
        self._memories = memories
        self._superseded = superseded

    def name_authors(self, names: Mapping[str, str]) -> None:
        """Show who wrote what is not this person's under these names, by the short ids of devices and accounts."""
        self._memories.name_authors(names)

    def write(self, writes: Sequence[MemoryWrite]) -> None:
        """Write some registers of some memories (making those that are new), anchor them, and claim names for them.

        Raises ConflictError when a name belongs to another memory, NotFoundError when a memory was forgotten,
        ForgottenWordsError when words were forgotten: whoever writes asks `Forgetting.left_of` before, or lifts that.
        """
        ids = [write.memory_id for write in writes]
        self._refuse_forgotten(writes)
        if gone := self._context.queries.ops.forgotten(ids):
            raise NotFoundError(
                f"memory {min(gone)} was forgotten", hint="scrubjay add makes a new memory of the same words"
            )
        logs = self._context.queries.ops.whole(ids)
        self._refuse_taken(writes)
        written: list[Op] = []
        for write in writes:
            log = logs.setdefault(write.memory_id, [])
            state = ops.fold(log)
            new: list[Op] = []
            if write.fields:
                new += self._fields(write, state)
            held = {name for name, _, _ in ops.live_claims(state)}
            new += [
                self._log.make(OpType.CLAIM, ops.claim_body(write.memory_id, name))
                for name in write.names
                if name not in held
            ]
            for name in write.unnamed:
                if seen := [stamp for claimed, stamp, _ in ops.live_claims(state) if claimed == name]:
                    new.append(self._log.make(OpType.UNCLAIM, ops.unclaim_body(write.memory_id, name, seen)))
            new += [self._log.make(OpType.GRIP, ops.grip_body(grip)) for grip in write.grips]
            log += new
            written += new
        self._log.append(written)
        logs = {write.memory_id: logs[write.memory_id] for write in writes}
        self._memories.project(logs)
        self._superseded.follow(logs, written)

    def _fields(self, write: MemoryWrite, state: ops.State) -> list[Op]:
        """Return the ops of new values: one, unless no stamp comes after all that it replaces.

        What clocks centuries apart have stamped is then replaced each by an op of its own.
        """
        bases, also, above = _seen(state, write, self._log.next_hlc)
        made = self._log.make(OpType.MEMORY, ops.memory_body(write.memory_id, write.fields, bases, also), above)
        stamp = (int(made.hlc), made.device)
        if len(write.fields) == 1 or all(ops.supersedes(stamp, seen) for seen in bases.values()):
            return [made]
        self._log.unmake(made)
        return [
            op for key, value in write.fields.items() for op in self._fields(replace(write, fields={key: value}), state)
        ]

    def _refuse_forgotten(self, writes: Sequence[MemoryWrite]) -> None:
        said = [write for write in writes if isinstance(write.fields.get(Field.CONTENT), str)]
        found = self._context.queries.tombstones.left_of([statement_of(write) for write in said]) if said else []
        refused = [one for one, left in zip(said, found, strict=True) if left != one.fields[Field.CONTENT]]
        if refused:
            raise ForgottenWordsError(tuple(statement_of(one) for one in refused))

    def _refuse_taken(self, writes: Sequence[MemoryWrite]) -> None:
        wanted: dict[str, str] = {}
        for write in writes:
            for name in write.names:
                if wanted.setdefault(name, write.memory_id) != write.memory_id:
                    raise ConflictError(
                        f"the name {name!r} is given twice",
                        hint="a name belongs to one memory: choose another for the second",
                    )
        for name, holder in self._context.queries.names.holders(wanted).items():
            if holder != wanted[name]:
                raise ConflictError(
                    f"the name {name!r} belongs to memory {holder}", hint="choose another, or rename that one first"
                )

    def unclaim(self, memory_id: str, name: str) -> None:
        """Take an alias away from a memory. Raises NotFoundError when it has no such alias."""
        before = self._context.queries.ops.whole([memory_id]).get(memory_id, [])
        state = ops.fold(before)
        held = self._context.queries.fetch(
            "select canonical, claimed from name where name = ? and memory_id = ?", (name, memory_id)
        )
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
        op = self._log.make(OpType.UNCLAIM, ops.unclaim_body(memory_id, held[0][1], seen))
        self._log.append([op])
        self._memories.project({memory_id: [*before, op]})


def statement_of(write: MemoryWrite) -> Statement:
    """Return what a write says, and of which project as far as the write tells."""
    is_of_project = write.fields.get(Field.SCOPE) == Scope.PROJECT.value
    return Statement(
        text=str(write.fields.get(Field.CONTENT, "")),
        project=write.fields.get(Field.RESOURCE_ID) if is_of_project else None,
    )


def _seen(state: ops.State, write: MemoryWrite, clock: int) -> tuple[_Bases, _Also, list[Stamp]]:
    """Return what a write replaces, what it settles beside that, and all that it must stand above to show.

    What stands where no clock does (`clock` is this device's) is settled in any case.
    """
    bases: dict[Field, Stamp] = {}
    also: dict[Field, tuple[Stamp, ...]] = {}
    above: list[Stamp] = []
    for key in write.fields:
        if versions := state.registers.get((write.memory_id, int(key))):
            bases[key] = ops.winner(versions)
            others = ops.unseen(versions)
            if settled := others if write.settles else ops.out_of_reach(versions, clock):
                also[key] = settled
            above += (bases[key], *others)
    return bases, also, above


_Bases = dict[Field, Stamp]
_Also = dict[Field, tuple[Stamp, ...]]
