"""Reading what was put away into what: a memory that was merged or compressed, and the one that holds it."""

from __future__ import annotations

from collections.abc import Iterable

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Kind, Memory

_UP = (
    "with recursive up(member, id) as (select m.id, m.superseded_by from memory m"
    " where m.id in (select value from json_each(?)) and m.superseded_by is not null"
    f" and {rows.PUT_AWAY_INTO} and (m.review is null or m.review not like 'rejected%')"
    " union select u.member, m.superseded_by from up u join memory m on m.id = u.id"
    f" where m.superseded_by is not null and {rows.PUT_AWAY_INTO})"
)
"""Some memories that were put away with all that these were put away into, directly or through others."""

_DOWN = (
    "with recursive down(id) as (select value from json_each(?) union"
    f" select m.id from down d join memory m on m.superseded_by = d.id where {rows.PUT_AWAY_INTO})"
    " select id from down"
)


class MemberQueries:
    """Memories that were put away into others, from both sides."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def holders(self, ids: Iterable[str]) -> dict[str, Memory]:
        """Return what holds those of some memories that were put away into another, which was not put away itself.

        What was put away by itself, and what the person rejected, has no holder.
        """
        found = self._fetch(
            f"{_UP} select u.member, {rows.prefixed(rows.MEMORY_COLUMNS, 'h')} from up u join memory h on h.id = u.id"
            " where h.archived_at is null",
            (rows.array(ids),),
        )
        return {str(member): rows.memory_of((*holder, None, None)) for member, *holder in found}

    def within(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of some memories, and of all that was put away into these, directly or through others."""
        return [str(row[0]) for row in self._fetch(_DOWN, (rows.array(ids),))]

    def having(self, memories: Iterable[Memory]) -> set[str]:
        """Return the ids of those of some memories that are archives into which others were put away."""
        archives = [memory.id for memory in memories if memory.kind is Kind.ARCHIVE]
        found = self._fetch(
            f"select m.id from memory m where m.id in (select value from json_each(?)) and {rows.HAS_MEMBERS}",
            (rows.array(archives),),
        )
        return {str(row[0]) for row in found}
