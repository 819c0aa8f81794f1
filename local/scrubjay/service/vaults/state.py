"""How a file and the store last agreed, as the store keeps it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from scrubjay import api
from scrubjay.store import VaultFileRow
from scrubjay.vault.layout import VaultFile
from scrubjay.vault.markdown import Entry
from scrubjay.vault.matching import Known, digest
from scrubjay.vault.merge import Merge, Stored
from scrubjay.vault.rendering import Placed
from scrubjay_shared.records import Memory


def known_of(row: VaultFileRow | None) -> tuple[Known, ...]:
    """Return what file and store last agreed on."""
    return () if row is None else tuple(msgspec.json.decode(row.known, type=list[Known]))


def row_of(
    file: VaultFile, known: Sequence[Known], *, problem: str = "", gone: int = 0, conflicts: int = 0
) -> VaultFileRow:
    """Return how a file was merged, as the store keeps it."""
    return VaultFileRow(
        file=file.value,
        known=msgspec.json.encode(known).decode(),
        problem=problem,
        gone=gone,
        conflicts=conflicts,
    )


def state_of(file: VaultFile, row: VaultFileRow | None) -> api.VaultFileState:
    """Return how a file is, for people."""
    if row is None:
        return api.VaultFileState(file=file.file_name)
    known = known_of(row)
    return api.VaultFileState(
        file=file.file_name,
        entries=sum(bool(one.memory_id) for one in known),
        gone=row.gone,
        conflicts=row.conflicts,
        refused=sum(bool(one.refused) for one in known),
        problem=row.problem,
    )


def stored_of(memories: Sequence[Memory], file: VaultFile, file_of: Mapping[str, VaultFile]) -> dict[str, Stored]:
    """Return the memories of a vault as one of its files sees them: those of other files are gone from it."""
    return {
        memory.id: Stored(
            content=memory.content,
            topic=memory.topic or "",
            is_current=memory.archived_at is None and memory.superseded_by is None and file_of[memory.id] is file,
        )
        for memory in memories
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the store took of a file's entries: the memory of each by place, and why others were refused."""

    ids: Mapping[int, str]
    refused: Mapping[int, str]


def known_before(
    known: Sequence[Known], found: Sequence[Entry], merge: Merge, taken: Taken, stored: Mapping[str, Stored]
) -> list[Known]:
    """Return what is agreed on once the store followed the file, and the file does not follow the store yet.

    Where the file is to follow, all stays as it was known, so that after a crash it follows then.
    """
    agreed: list[Known] = []
    for place, entry in enumerate(found):
        if place in merge.edits.replaced or place in merge.edits.removed:
            agreed += [known[merge.pairs[place]]] if place in merge.pairs else []
        elif place in taken.ids or place in taken.refused:
            agreed.append(_agreed(entry, taken.ids.get(place, ""), taken.refused.get(place, ""), stored))
    present = {one.memory_id for one in agreed}
    waiting = {one.key for one in merge.edits.inserted} | set(merge.gone)
    return agreed + [one for one in known if one.memory_id in waiting - present]


def known_after(
    placed: Sequence[Placed], known: Sequence[Known], merge: Merge, taken: Taken, stored: Mapping[str, Stored]
) -> list[Known]:
    """Return what is agreed on once both followed each other."""
    agreed = []
    for one in placed:
        if one.source is None or one.entry.is_kept:
            continue
        memory_id = one.source if isinstance(one.source, str) else taken.ids.get(one.source, "")
        reason = "" if isinstance(one.source, str) else taken.refused.get(one.source, "")
        if memory_id or reason:
            agreed.append(_agreed(one.entry, memory_id, reason, stored))
    present = {one.memory_id for one in agreed}
    return agreed + [known[old] for old in merge.known if known[old].memory_id not in present]


def _agreed(entry: Entry, memory_id: str, refused: str, stored: Mapping[str, Stored]) -> Known:
    memory = stored.get(memory_id)
    return Known(
        memory_id=memory_id,
        section=digest(entry.section),
        text=digest(entry.text),
        topic=digest("" if memory is None else memory.topic),
        content=digest("" if memory is None else memory.content),
        refused=refused,
    )
