"""Writing memories: their fields, grips and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay.store.op_log import OpLog
from scrubjay.store.projections.memories import Memories
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.ops import Field, OpType, Stamp
from scrubjay_shared.records import Grip, Op


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


class MemoryWrites:
    """What this device writes of memories."""

    def __init__(self, context: WriteContext, log: OpLog, memories: Memories) -> None:
        self._context = context
        self._log = log
        self._memories = memories

    def write(self, writes: Sequence[MemoryWrite]) -> None:
        """Write some registers of some memories (making those that are new), anchor them, and claim names for them.

        Raises ConflictError when a name belongs to another memory, NotFoundError when a memory was forgotten.
        """
        ids = [write.memory_id for write in writes]
        if gone := self._context.queries.ops.forgotten(ids):
            raise NotFoundError(
                f"memory {min(gone)} was forgotten", hint="scrubjay add makes a new memory of the same words"
            )
        logs = self._context.queries.ops.of_entities(ids)
        self._refuse_taken(writes)
        written: list[Op] = []
        for write in writes:
            log = logs.setdefault(write.memory_id, [])
            state = ops.fold(log)
            new: list[Op] = []
            if write.fields:
                bases, also = _seen(state, write)
                floor = Hlc(max((hlc for hlc, _ in bases.values()), default=0))
                body = ops.memory_body(write.memory_id, write.fields, bases, also)
                new.append(self._log.make(OpType.MEMORY, body, floor))
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
        self._memories.project({write.memory_id: logs[write.memory_id] for write in writes})

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
        before = self._context.queries.ops.of_entity(memory_id)
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


def _seen(state: ops.State, write: MemoryWrite) -> tuple[dict[Field, Stamp], dict[Field, tuple[Stamp, ...]]]:
    """Return the stamps of the values that a write replaces, and of those that it settles beside them."""
    bases: dict[Field, Stamp] = {}
    also: dict[Field, tuple[Stamp, ...]] = {}
    for key in write.fields:
        if versions := state.registers.get((write.memory_id, int(key))):
            bases[key] = ops.winner(versions)
            if write.settles and (others := ops.unseen(versions)):
                also[key] = others
    return bases, also
