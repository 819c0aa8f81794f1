"""How the writes of one cause are undone in one memory. Pure: ops in, a plan out.

What a cause wrote goes back to what stood there before, where nobody has changed it since. A memory that the cause made
is archived, unless somebody else has changed it: archiving is a write like any other, so it comes back by another one.
Nothing is forgotten by undoing, and nothing forgotten comes back. The plan is carried out under a cause of its own, so
that undoing that one is undoing the undoing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.lifecycle.replacement import SuccessorOf, closes_circle
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field, OpType, Stamp, State, Version
from scrubjay_shared.records import Op

UNDO = "undo"
"""The kind of the causes that undoing has."""

_NEVER_BACK = frozenset({Field.TRUST, Field.CREATED_AT})
"""Trust only falls, whoever writes it; when a memory was made does not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """What undoing a cause does to one memory: values for its registers, names that it loses and gets.

    `kept` says what stays as it is because somebody else has changed it since: fields, or `source` for a passage that a
    memory was read from again.
    """

    memory_id: str
    fields: Mapping[Field, Any] = field(default_factory=dict)
    unclaimed: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.fields or self.unclaimed or self.claimed)

    @property
    def archives(self) -> bool:
        """Whether the memory is archived."""
        return self.fields.get(Field.ARCHIVED_AT) is not None


def undoing(memory_id: str, log: Sequence[Op], cause: str, now: Millis) -> Undoing:
    """Return how a cause is undone in a memory, given all ops of that memory. `now` is when it counts as archived."""
    state = ops.fold(log)
    if memory_id in state.forgotten:
        return Undoing(memory_id=memory_id)
    registers = _Registers(state, log, cause)
    if registers.is_made:
        kept = (*registers.changed_since(), *(["source"] if _is_read_elsewhere(state, log, cause) else []))
        if kept or registers.shown(Field.ARCHIVED_AT) is not None:
            return Undoing(memory_id=memory_id, kept=kept)
        fields: dict[Field, Any] = {Field.ARCHIVED_AT: int(now)}
        own_name = None
    else:
        fields, kept = registers.reverted()
        own_name = fields.get(Field.NAME, registers.shown(Field.NAME))
    given, taken = _names(state, log, cause)
    return Undoing(
        memory_id=memory_id,
        fields=fields,
        unclaimed=tuple(name for name in given if name != own_name),
        claimed=taken,
        kept=kept,
    )


def was_undone(log: Sequence[Op]) -> bool:
    """Say whether a memory was put away by undoing what made it, given all its ops."""
    put_away = [op for op in log if op.type == OpType.MEMORY and Field.ARCHIVED_AT in ops.fields_of(op)]
    last = max(put_away, key=lambda op: (op.hlc, op.device), default=None)
    return last is not None and (ops.cause_of(last) or "").startswith(f"{UNDO}:")


def without_circles(plans: Sequence[Undoing], successor_of: SuccessorOf) -> list[Undoing]:
    """Return the plans without what would have a memory superseded by itself, directly or through others.

    Such a field stays as it is, and is told as kept: somebody has had the memory take another's place since.
    `successor_of` says what took a memory's place as things stand.
    """
    found = list(plans)
    while True:
        planned = {
            plan.memory_id: plan.fields[Field.SUPERSEDED_BY] for plan in found if Field.SUPERSEDED_BY in plan.fields
        }

        def then(memory_id: str, planned: Mapping[str, str | None] = planned) -> str | None:
            return planned[memory_id] if memory_id in planned else successor_of(memory_id)

        closing = {
            memory_id
            for memory_id, successor in planned.items()
            if successor is not None and closes_circle(memory_id, successor, then)
        }
        if not closing:
            return found
        found = [_keeping_successor(plan) if plan.memory_id in closing else plan for plan in found]


def _keeping_successor(plan: Undoing) -> Undoing:
    fields: dict[Field, Any] = {key: value for key, value in plan.fields.items() if key != Field.SUPERSEDED_BY}
    return replace(plan, fields=fields, kept=(*plan.kept, Field.SUPERSEDED_BY.name.lower()))


class _Registers:
    """The registers of one memory, and which of their versions a cause wrote."""

    def __init__(self, state: State, log: Iterable[Op], cause: str) -> None:
        self._of = {Field(key): found for (_, key), found in state.registers.items() if key in set(Field)}
        self._causes = {(int(op.hlc), op.device): ops.cause_of(op) for op in log if op.type == OpType.MEMORY}
        self._cause = cause

    @property
    def is_made(self) -> bool:
        """Whether the cause made the memory: the first to say when it was made."""
        versions = self._of.get(Field.CREATED_AT)
        return versions is not None and self._wrote(min(versions))

    def shown(self, key: Field) -> Any:
        """Return the value that a register shows."""
        versions = self._of.get(key)
        return ops.ABSENT.get(key) if versions is None else versions[ops.winner(versions)][0]

    def changed_since(self) -> tuple[str, ...]:
        """Return the fields that show something else than the cause wrote. That it was archived is no change."""
        return tuple(
            key.name.lower()
            for key, versions in sorted(self._of.items())
            if key not in {Field.ARCHIVED_AT, *_NEVER_BACK} and not self._stands(key, versions)
        )

    def reverted(self) -> tuple[dict[Field, Any], tuple[str, ...]]:
        """Return the values from before the cause, and the fields that it wrote and others changed since."""
        fields: dict[Field, Any] = {}
        kept: list[str] = []
        for key, versions in sorted(self._of.items()):
            if key in _NEVER_BACK or not any(self._wrote(stamp) for stamp in versions):
                continue
            before = self._before(versions, key)
            if not self._stands(key, versions) or before is None:
                kept.append(key.name.lower())
            elif before[0] != self.shown(key):
                fields[key] = before[0]
        return fields, tuple(kept)

    def _wrote(self, stamp: Stamp) -> bool:
        return self._causes.get(stamp) == self._cause

    def _stands(self, key: Field, versions: Mapping[Stamp, Version]) -> bool:
        """Whether a register shows what the cause wrote, be it that a later change of it was undone."""
        top = ops.winner(versions)
        if self._wrote(top):
            return True
        undone = (self._causes.get(top) or "").startswith(f"{UNDO}:")
        written = [stamp for stamp in versions if self._wrote(stamp)]
        said = versions[max(written)][0] if written else ops.ABSENT.get(key)
        return undone and versions[top][0] == said

    def _before(self, versions: Mapping[Stamp, Version], key: Field) -> tuple[Any] | None:
        """Return the value that stood before the cause wrote; None where none is known and there is none by default."""
        at: Stamp | None = min(stamp for stamp in versions if self._wrote(stamp))
        while at is not None and at in versions:
            if not self._wrote(at):
                return (versions[at][0],)
            replaced = next(iter(versions[at][1]), None)
            # No honest op replaces what is not older than itself; following one that says so might never end.
            at = replaced if replaced is not None and replaced < at else None
        return (ops.ABSENT[key],) if at is None and key in ops.ABSENT else None


def _is_read_elsewhere(state: State, log: Iterable[Op], cause: str) -> bool:
    """Whether another cause anchored the memory in events too."""
    return any(
        op.type == OpType.GRIP and ops.cause_of(op) != cause and ops.grip_of(op) not in state.forgotten for op in log
    )


def _names(state: State, log: Sequence[Op], cause: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that the memory has by a cause alone, and those that it lost by it and nobody gave back."""
    held = {name for name, _, _ in ops.live_claims(state)}
    others = {name for name, _, _ in ops.live_claims(ops.fold(op for op in log if ops.cause_of(op) != cause))}
    return tuple(sorted(held - others)), tuple(sorted(others - held))
