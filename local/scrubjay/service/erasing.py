"""Erasing in one transaction: memories and events, the grips on them, and what then rests on nothing any more."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.service import archive_words, put_away
from scrubjay.store import MemoryWrite, Refusal, Transaction
from scrubjay_shared import ops
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Grip, Memory, Op, Scope


def erase(tx: Transaction, memory_id: str, refusal: Refusal | None = None) -> list[str]:
    """Erase a memory and what was put away into it. Returns their ids."""
    inside = put_away.forget_inside(tx, memory_id)
    put_away.dissolve(tx, memory_id)
    tx.forget.memory(memory_id, refusal)
    return [memory_id, *inside]


def drop_grip(
    tx: Transaction, grip: Grip, gone: list[str], quoting: dict[str, None], *, for_good: bool = False
) -> None:
    """Forget a grip, and the memory that then rests on none. An archive is noted in `quoting`: it is written again."""
    tx.forget.grip(grip)
    if tx.queries.memories.is_archive(grip.memory_id):
        quoting[grip.memory_id] = None
    elif not tx.queries.grips.of_memory(grip.memory_id) and tx.queries.memories.is_observation(grip.memory_id):
        memory = tx.queries.memories.get(grip.memory_id)
        refusal = Refusal(texts=(memory.content, grip.excerpt), project=project_of(memory)) if for_good else None
        gone += erase(tx, grip.memory_id, refusal)


def forget_events(tx: Transaction, event_ids: Sequence[str], *, for_good: bool) -> list[str]:
    """Forget whole events, the grips on them, and the memories that rest on them alone. Returns the ids of these."""
    gone: list[str] = []
    quoting: dict[str, None] = {}
    for event_id, event in tx.queries.events.by_id(event_ids).items():
        for grip in tx.queries.grips.over(event_id, None):
            drop_grip(tx, grip, gone, quoting, for_good=for_good)
        tx.forget.event(event_id, Refusal(event=event.text, project=event.project) if for_good else None)
    archive_words.rewrite(tx, quoting)
    return gone


def project_of(memory: Memory) -> str | None:
    """Return the project that a memory is of, None where it is of none."""
    return memory.resource_id if memory.scope is Scope.PROJECT else None


def erase_again(tx: Transaction, erasures: Sequence[Op]) -> None:
    """Erase here what ops of another file of this store erased there, and what here rests on that alone.

    What was put away with a memory that goes stays, and comes back as it was, as it did there.
    """
    quoting: dict[str, None] = {}
    gone = [ops.entity_of(op) for op in erasures if op.type == OpType.FORGET]
    for op in erasures:
        entity = ops.entity_of(op)
        spans = ops.spans_of(op) if op.type == OpType.BLANK else None
        for grip in (*tx.queries.grips.over(entity, spans), tx.queries.grips.by_id(entity)):
            if grip is not None and tx.queries.grips.by_id(grip.id) is not None:  # or it went with a memory before
                drop_grip(tx, grip, [], quoting)
        if op.type == OpType.FORGET and tx.queries.memories.existing([entity]):
            inside = [one for one in tx.queries.memories.put_away_into(entity) if one not in gone]
            tx.memories.write([MemoryWrite(memory_id=one, fields=BACK) for one in inside])
            put_away.dissolve(tx, entity)
    tx.forget.again(erasures)
    archive_words.rewrite(tx, tx.queries.memories.existing(list(quoting)))


BACK = {Field.ARCHIVED_AT: None, Field.SUPERSEDED_BY: None}
"""The fields of a memory that comes out of the archive that it was put away into."""
