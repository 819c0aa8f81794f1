"""What is put away into an archive is spoken of one by one: forgotten, corrected or rejected, never all at once."""

from __future__ import annotations

from scrubjay.store import MemoryWrite, Transaction
from scrubjay_shared.errors import ConflictError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Kind, Memory


def forget_inside(tx: Transaction, memory_id: str) -> list[str]:
    """Erase what was put away into a memory that is about to be forgotten, and what was put away into that.

    Returns the ids. Who forgets a memory means its words, and those that became one with it say the same.
    """
    gone: list[str] = []
    for inside in tx.queries.memories.put_away_into(memory_id):
        gone += forget_inside(tx, inside)
        tx.forget.memory(inside)
        gone.append(inside)
    return gone


def dissolve(tx: Transaction, memory_id: str) -> None:
    """Take apart the archive that a memory was put away into: the others come back as they were.

    The archive's words may be the memory's words. The next run of consolidation compresses the others again.
    """
    archive = tx.queries.memories.held_by(memory_id)
    if archive is None:
        return
    back = [one for one in tx.queries.memories.put_away_into(archive) if one != memory_id]
    fields = {Field.ARCHIVED_AT: None, Field.SUPERSEDED_BY: None}
    tx.memories.write([MemoryWrite(memory_id=one, fields=fields) for one in back])
    tx.forget.memory(archive)


def check_one(tx: Transaction, memory: Memory) -> None:
    """Check that a memory stands for itself. Raises ConflictError for an archive of many: one of them is meant."""
    if memory.kind is Kind.ARCHIVE and (inside := tx.queries.memories.put_away_into(memory.id)):
        raise ConflictError(
            f"memory {memory.id} is an archive of {len(inside)} memories, and not all of them are meant",
            hint="name the one that is: recall finds what is in it one by one",
        )


def taken_out(tx: Transaction, memory_id: str) -> list[MemoryWrite]:
    """Return the writes that take a memory's archive apart, none where it is in no archive: all in it come back.

    The archive may say the memory's words, and is put away by itself. The next run compresses the others again.
    """
    archive = tx.queries.memories.held_by(memory_id)
    if archive is None:
        return []
    back = {Field.ARCHIVED_AT: None, Field.SUPERSEDED_BY: None}
    return [
        MemoryWrite(memory_id=archive, fields={Field.ARCHIVED_AT: int(tx.now)}),
        *(MemoryWrite(memory_id=one, fields=back) for one in tx.queries.memories.put_away_into(archive)),
    ]
