"""Reading what a run of consolidation looks at, and what changed since a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay.store import rows
from scrubjay.store.queries.grips import GripQueries
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Memory, speaker_of

_OF_MEMORIES = (OpType.MEMORY, OpType.CLAIM, OpType.UNCLAIM, OpType.FORGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentMemory:
    """A memory that nothing took the place of and nobody put away, with what consolidation weighs.

    `n` is its arrival number, `excerpts` what its sources say and who says it, `helped` how often it helped; `named`
    says whether it has a name or an alias, `undone` whether anything of it was ever taken back.
    """

    n: int
    memory: Memory
    excerpts: tuple[str, ...]
    helped: int
    named: bool
    undone: bool


def _told(excerpt: str, speaker: str, ts: Millis, utc_offset: int) -> str:
    from scrubjay.dates import find_dates  # noqa: PLC0415  # its patterns would be a sixtieth of the daemon's start

    named = [found.phrase for found in find_dates(f"{excerpt}\ntoday", ts, utc_offset)]
    return f"{speaker}: {excerpt} ({', '.join(dict.fromkeys(named))})"


class ConsolidationQueries:
    """The memories that may be consolidated, and the changes that are compared."""

    def __init__(self, fetch: Fetch, grips: GripQueries) -> None:
        self._fetch = fetch
        self._grips = grips

    def current(self, after: int | None, limit: int, *, chars: int) -> tuple[list[CurrentMemory], int | None]:
        """Return a page of current memories that are loaded on search alone, in the order of their arrival.

        No more than `chars` characters of a content are read. Comes with the key to read on after, None at the end.
        What stands in plain files is left out: `compact` of the vault condenses that.
        """
        columns = rows.beginning(rows.prefixed(rows.MEMORY_COLUMNS, "m"), "m.content", chars)
        found = self._fetch(
            f"select {columns}, {rows.ACCESSES}, m.n from memory m"
            " left join access a on a.memory_id = m.id where m.n > ? and m.superseded_by is null"
            " and m.archived_at is null and m.layer = 'archive'"
            " and (m.resource_id is null or m.resource_id < 'vault:' or m.resource_id >= 'vault;')"
            " and (m.review is null or m.review like 'accepted%')"  # the person is asked first
            " order by m.n limit ?",
            (after or 0, limit),
        )
        memories = [(int(row[-1]), rows.memory_of(row[:-1])) for row in found]
        ids = [memory.id for _, memory in memories]
        sources = self.sources(ids)
        named, helped, undone = self._named(ids), self._helped(ids), self.undone(ids)
        page = [
            CurrentMemory(
                n=n,
                memory=memory,
                excerpts=sources.get(memory.id, ()),
                helped=helped.get(memory.id, 0),
                named=memory.name is not None or memory.id in named,
                undone=memory.id in undone,
            )
            for n, memory in memories
        ]
        return page, page[-1].n if page else None

    def old(self, before: Millis, *, chars: int) -> tuple[int, int]:
        """Return how many memories that `current` tells of are no younger, and no longer, and their bytes in all."""
        [(count, octets)] = self._fetch(
            "select count(*), coalesce(sum(length(cast(content as blob))), 0) from memory where created_at < ?"
            " and length(content) <= ? and superseded_by is null and archived_at is null and layer = 'archive'",
            (before, chars),
        )
        return int(count), int(octets)

    def sources(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return what the sources of some memories say, who says it and when: "speaker: words (dates)" of each.

        The dates are the day on which it was said, and those that its words name from there: "last Friday".
        """
        grips = self._grips.of_memories(ids)
        first = {grip.event_id_start for found in grips.values() for grip in found}
        said = {
            str(event_id): (speaker_of(rows.unjson(metadata), role), Millis(ts), int(utc_offset))
            for event_id, role, metadata, ts, utc_offset in self._fetch(
                "select id, role, metadata, ts, utc_offset from event where id in (select value from json_each(?))",
                (rows.array(sorted(first)),),
            )
        }
        return {
            memory_id: tuple(
                _told(grip.excerpt, *said[grip.event_id_start]) if grip.event_id_start in said else grip.excerpt
                for grip in found
            )
            for memory_id, found in grips.items()
        }

    def _named(self, ids: Sequence[str]) -> set[str]:
        found = self._fetch(
            "select distinct memory_id from name where memory_id in (select value from json_each(?))",
            (rows.array(ids),),
        )
        return {str(row[0]) for row in found}

    def _helped(self, ids: Sequence[str]) -> dict[str, int]:
        found = self._fetch(
            "select memory_id, sum(helped) from feedback where memory_id in (select value from json_each(?))"
            " group by memory_id",
            (rows.array(ids),),
        )
        return {str(memory_id): int(helped) for memory_id, helped in found}

    def undone(self, ids: Sequence[str]) -> set[str]:
        """Return which of some memories an undo ever wrote to: what a person took back is not done to them again."""
        found = self._fetch(
            "select distinct o.entity from op o join cause c on c.n = o.cause"
            " where o.entity in (select value from json_each(?)) and c.id like 'undo:%'",
            (rows.array(ids),),
        )
        return {str(row[0]) for row in found}

    def first_stamp(self, cause: int) -> int | None:
        """Return the first stamp of what a cause wrote, by its arrival number; None when nothing is left of it."""
        return self._fetch("select min(hlc) from op where cause = ?", (cause,))[0][0]  # type: ignore[no-any-return]

    def changed(self, since: int, *, after: str | None, limit: int) -> tuple[list[str], str | None]:
        """Return the ids of memories that ops from a stamp on are about, a page in the order of the ids."""
        found = self._fetch(
            "select distinct entity from op where hlc >= ? and type in (?, ?, ?, ?) and entity > ?"
            " order by entity limit ?",
            (since, *(int(kind) for kind in _OF_MEMORIES), after or "", limit + 1),
        )
        ids = [str(row[0]) for row in found[:limit]]
        return ids, ids[-1] if len(found) > limit else None
