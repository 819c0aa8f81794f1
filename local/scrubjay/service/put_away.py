"""Forgetting what was put away: no archive and no memory that was merged keeps the words."""

from __future__ import annotations

from scrubjay.store import MemoryWrite, Transaction
from scrubjay_shared.ops import Field


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
