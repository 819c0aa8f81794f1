"""What became of a memory between two moments: its fields before and after. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scrubjay_shared import ops
from scrubjay_shared.records import Memory, Op

SHOWN = (
    *("content", "name", "type", "kind", "scope", "resource_id", "layer", "salience", "topic", "trust"),
    *("valid_from", "valid_to", "superseded_by", "archived_at", "metadata"),
)
"""The fields that are compared. How often a memory was recalled is no change of it."""

ENDED = ("superseded_by", "archived_at")
"""What is said of a memory that is new: that it is there no more, or that something took its place already."""


class Change(StrEnum):
    """What became of a memory, in a word."""

    MADE = "made"
    CHANGED = "changed"
    ARCHIVED = "archived"
    RESTORED = "restored"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A memory of which something is different: (field, before, after) of each, and the causes in their order."""

    change: Change
    content: str
    fields: tuple[tuple[str, Any, Any], ...] = ()
    causes: tuple[str, ...] = ()


def difference(memory_id: str, log: Sequence[Op], since: int, *, forgotten: bool) -> Difference | None:
    """Return what the ops of a memory from a stamp on changed, None when nothing. `log` are all its ops.

    What a change replaced long ago is no longer kept: such a field was None before, as far as anybody knows.
    """
    if forgotten:
        return Difference(change=Change.FORGOTTEN, content="")
    before = _shown(memory_id, [op for op in log if op.hlc < since])
    after = _shown(memory_id, log)
    if after is None:
        return None
    late = sorted((op for op in log if op.hlc >= since), key=lambda op: (op.hlc, op.device, op.seq))
    causes = tuple(dict.fromkeys(cause for op in late if (cause := ops.cause_of(op)) is not None))
    if before is None:
        ended = tuple((name, None, value) for name in ENDED if (value := getattr(after, name)) is not None)
        return Difference(change=Change.MADE, content=after.content, fields=ended, causes=causes)
    fields = tuple(
        (name, _plain(getattr(before, name)), _plain(getattr(after, name)))
        for name in SHOWN
        if getattr(before, name) != getattr(after, name)
    )
    if not fields:
        return None
    change = Change.CHANGED
    if (before.archived_at is None) != (after.archived_at is None):
        change = Change.RESTORED if after.archived_at is None else Change.ARCHIVED
    return Difference(change=change, content=after.content, fields=fields, causes=causes)


def _shown(memory_id: str, log: Sequence[Op]) -> Memory | None:
    return ops.view(ops.fold(log)).memories.get(memory_id)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value
