"""Reading what a search index holds: documents of events and memories, and vectors, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.store import rows, sqlite
from scrubjay.store.queries.grips import GripQueries
from scrubjay.store.queries.members import MemberQueries
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.records import Memory

PAGE = 1_000
"""Documents or vectors that the index takes at a time."""


_TYPES = ", ".join(f"'{kind.value}'" for kind in sorted(rows.SEARCHED_TYPES))
_SEARCHED = f"e.type in ({_TYPES}) and e.text <> '' and not e.forgotten"
"""Which events recall can return, but for those of which no token remains."""


class DocumentQueries:
    """Everything that recall searches. A page comes with the key to read on after, None at the end."""

    def __init__(self, fetch: Fetch, grips: GripQueries, members: MemberQueries) -> None:
        self._fetch = fetch
        self._grips = grips
        self._members = members

    def events(self, after: int | None) -> tuple[list[EventDoc], int | None]:
        """Return searchable events in the order of their arrival, after an arrival number."""
        found = self._fetch(
            f"select {rows.EVENT_DOC_COLUMNS}, e.n from event e where e.n > ? and {_SEARCHED} order by e.n limit ?",
            (after or 0, PAGE),
        )
        docs = [doc for row in found if (doc := rows.event_doc_of(row)) is not None]
        return docs, int(found[-1][-1]) if found else None

    def memories(self, after: int | None) -> tuple[list[MemoryDoc], int | None]:
        """Return memories in the order of their arrival, after an arrival number."""
        found = self._fetch(
            f"select {rows.DOC_COLUMNS}, m.n from memory_fts_content f"
            " join memory m on m.n = f.id where f.id > ? order by f.id limit ?",
            (after or 0, PAGE),
        )
        return self._memory_docs(found), int(found[-1][-1]) if found else None

    def archived(self, after: int | None) -> tuple[list[MemoryDoc], int | None]:
        """Return memories that were put away, in the order of their arrival, after an arrival number."""
        found = self._fetch(
            f"select {rows.MEMORY_COLUMNS}, n from memory where archived_at is not null and n > ? order by n limit ?",
            (after or 0, PAGE),
        )
        return self._archived_docs(found), int(found[-1][-1]) if found else None

    def _archived_docs(self, found: Sequence[sqlite.Row]) -> list[MemoryDoc]:
        """Return put away memories of rows of `MEMORY_COLUMNS`: full text does not hold their tokens."""
        memories = [rows.memory_of((*row[: rows.MEMORY_COLUMNS.count(",") + 1], None, None)) for row in found]
        return self.of([(memory, rows.memory_tokens(memory)) for memory in memories])

    def of(self, told: Sequence[tuple[Memory, str]]) -> list[MemoryDoc]:
        """Return memories, each with its tokens, as the index holds them."""
        ids = [memory.id for memory, _ in told]
        sources, having = self._grips.sources(ids), self._members.having(memory for memory, _ in told)
        holders = self._members.holders(memory.id for memory, _ in told if memory.archived_at is not None)
        return [
            rows.memory_doc(
                memory,
                tokens,
                sources.get(memory.id, ()),
                holder=holders.get(memory.id),
                has_members=memory.id in having,
            )
            for memory, tokens in told
        ]

    def memories_by_id(self, ids: Sequence[str]) -> list[MemoryDoc]:
        """Return some memories; unknown ids are absent."""
        listed = self._fetch(
            f"select {rows.DOC_COLUMNS} from memory m join memory_fts_content f on f.id = m.n"
            " where m.id in (select value from json_each(?))",
            (rows.array(ids),),
        )
        archived = self._fetch(
            f"select {rows.MEMORY_COLUMNS} from memory where archived_at is not null"
            " and id in (select value from json_each(?))",
            (rows.array(ids),),
        )
        return [*self._memory_docs(listed), *self._archived_docs(archived)]

    def _memory_docs(self, found: Sequence[sqlite.Row]) -> list[MemoryDoc]:
        sources = self._grips.sources([row[0] for row in found])
        return [rows.memory_doc_of(row, sources.get(row[0], ())) for row in found]

    def vectors(self, space: int, after: str | None) -> tuple[list[tuple[str, bytes]], str | None]:
        """Return the (owner, vector) of a space in the order of the owners' ids, after an id."""
        found = [
            (str(owner), bytes(vector))
            for owner, vector in self._fetch(
                "select owner, vector from embedding where space = ? and owner > ? order by owner limit ?",
                (space, after or "", PAGE),
            )
        ]
        return found, found[-1][0] if found else None

    def vectors_of(self, space: int, owners: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return (owner, vector) of those owners that have one in a space."""
        return [
            (str(owner), bytes(vector))
            for owner, vector in self._fetch(
                "select owner, vector from embedding where space = ? and owner in (select value from json_each(?))",
                (space, rows.array(owners)),
            )
        ]

    def vectors_of_owners(self, owners: Sequence[str]) -> list[tuple[int, str, bytes]]:
        """Return the (space, owner, vector) of some owners, of every space that has one."""
        if not owners:
            return []
        return [
            (int(space), str(owner), bytes(vector))
            for space, owner, vector in self._fetch(
                "select space, owner, vector from embedding where space in (select id from space)"
                " and owner in (select value from json_each(?))",
                (rows.array(owners),),
            )
        ]

    def embedded(self, space: int | None) -> int:
        """Return how many owners have a vector in a space: none where there is no space."""
        return int((self._fetch("select count(*) from embedding where space = ?", (space,)))[0][0])

    def vectors_in_scope(self, space: int, scope: bytes, owners: Sequence[str]) -> list[tuple[str, str, bytes]]:
        """Return the (owner, content hash, vector) of those of some owners that were placed in a scope."""
        return [
            (str(owner), str(said), bytes(vector))
            for owner, said, vector in self._fetch(
                "select e.owner, e.content_hash, e.vector from embedding e join placed p on p.entity = e.owner"
                " where e.space = ? and p.scope = ? and e.owner in (select value from json_each(?))",
                (space, scope, rows.array(owners)),
            )
        ]

    def most_used_space(self) -> str:
        """Return the name of the space that has most vectors, "" when there are none."""
        found = self._fetch(
            "select s.name from space s join embedding e on e.space = s.id group by s.id"
            " order by count(*) desc, s.id limit 1"
        )
        return str(found[0][0]) if found else ""
