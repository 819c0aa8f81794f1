"""Reading what is in review."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store import rows
from scrubjay.store.queries.pages import within
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Memory

STATE = "substr(m.review, 1, instr(m.review || ' ', ' ') - 1)"
"""The word that a review begins with."""


class ReviewQueries:
    """Memories by what a person is asked about them, or said of them."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def page(
        self, states: Sequence[str], *, after: tuple[int, int] | None, limit: int, chars: int
    ) -> tuple[list[Memory], tuple[int, int] | None]:
        """Return a page of memories in some states, newest first, and where the next one starts.

        One that was archived otherwise than by being rejected is left out: nobody need look at it.
        """
        clause = (
            f"m.review is not null and {STATE} in (select value from json_each(?))"
            f" and (m.archived_at is null or {STATE} = 'rejected')"
        )
        values: list[object] = [rows.array(states)]
        if after:
            clause += " and (m.created_at, m.n) < (?, ?)"
            values += after
        places = self._fetch(
            f"select m.created_at, m.n, length(m.content) from memory m where {clause}"
            " order by m.created_at desc, m.n desc limit ?",
            (*values, limit + 1),
        )
        shown = within(places, limit, chars)
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.n in (select value from json_each(?))"
            " order by m.created_at desc, m.n desc",
            (rows.array(n for _, n, _ in shown),),
        )
        return [rows.memory_of(row) for row in found], shown[-1][:2] if len(places) > len(shown) else None

    def waiting(self) -> list[str]:
        """Return the ids of the memories that wait, oldest first."""
        found = self._fetch(
            f"select m.id from memory m where m.review is not null and {STATE} not in"
            " ('accepted', 'rejected', 'disputed') and m.archived_at is null order by m.created_at, m.n"
        )
        return [str(row[0]) for row in found]

    def counts(self) -> dict[str, int]:
        """Return how many memories are in each state; one that was archived counts only as rejected."""
        found = self._fetch(
            f"select {STATE}, count(*) from memory m where m.review is not null"
            f" and (m.archived_at is null or {STATE} = 'rejected') group by 1 order by 1"
        )
        return {str(state): int(count) for state, count in found}

    def rejected(self, content_hashes: Sequence[str]) -> dict[tuple[str, str, str | None], str]:
        """Return the memories of some contents that a person rejected, by (content hash, scope, resource id)."""
        found = self._fetch(
            f"select content_hash, scope, resource_id, id from memory m where m.review is not null"
            f" and {STATE} = 'rejected' and content_hash in (select value from json_each(?))",
            (rows.array(content_hashes),),
        )
        return {(row[0], row[1], row[2]): row[3] for row in found}
