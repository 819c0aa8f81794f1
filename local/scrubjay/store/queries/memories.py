"""Reading memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scrubjay.store import rows
from scrubjay.store.queries.pages import within
from scrubjay.store.queries.review import STATE
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.records import Memory
from scrubjay_shared.text import unbracketed

MIN_PREFIX = 6
"""Characters of an id that may stand for it."""
END = 6
"""Characters of an id's end that name a memory: what agents are handed names it so."""

_NEWEST = "m.created_at"
_HANDED = (
    "case when m.superseded_by is not null or m.trust = 'untrusted'"
    f" or (m.review is not null and {STATE} not in ('accepted', 'disputed')) then 0"
    " when m.layer in ('identity', 'active', 'surfaced') then 3000000"
    f" when m.type in ('preference', 'howto') and (m.trust = 'user' or {STATE} = 'accepted') then 2000000"
    " else 1000000 end + cast(m.salience * m.confidence * 100000 as integer)"
)
"""A number by which memories stand in the order in which agents are handed them, the first the highest.

What is always loaded or pinned, then rules that are the person's or accepted, then by salience times confidence; last
what no agent is handed at all.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Which memories a page holds: all conditions that are given. Times in UTC milliseconds, `until` excluded.

    With a project or a session, the memories of that one and those of the person.
    """

    type: str | None = None
    kind: str | None = None
    layer: str | None = None
    scope: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    project: str | None = None
    session_id: str | None = None
    archived: bool = False
    """Whether the page holds what was archived, and nothing else, or what was not."""

    def clause(self) -> tuple[str, list[object]]:
        """Return the condition over the columns of memory m, and its values."""
        given = (
            ("m.type = ?", self.type),
            ("m.kind = ?", self.kind),
            ("m.layer = ?", self.layer),
            ("m.scope = ?", self.scope),
            ("m.created_at >= ?", self.since),
            ("m.created_at < ?", self.until),
        )
        clauses: list[str] = []
        values: list[object] = []
        for sql, value in given:
            if value is not None:
                clauses.append(sql)
                values.append(value)
        if self.project is not None or self.session_id is not None:
            clauses.append("(m.scope = 'user' or m.resource_id in (?, ?))")
            values += (self.project, self.session_id)
        clauses.append("m.archived_at is not null" if self.archived else "m.archived_at is null")
        return " and ".join(clauses), values


class MemoryQueries:
    """Memories by reference, id, page, layer, content or source."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def resolve(self, ref: str) -> str:
        """Return the id of the memory that `ref` names: an id, a name, an alias, the beginning of an id, or its end.

        Raises NotFoundError, or ConflictError when a beginning fits several.
        """
        found = self._fetch("select id from memory where id = ?", (ref,))
        found = found or self._fetch("select memory_id from name where name = ?", (ref,))
        if not found and (inner := unbracketed(ref)) != ref:
            return self.resolve(inner)
        if not found and len(ref) >= MIN_PREFIX and ref.isalnum():
            low = ref.upper()
            found = self._fetch("select id from memory where id >= ? and id < ? limit 2", (low, low + "["))
            if len(found) > 1:
                raise ConflictError(
                    f"the ids of several memories begin with {ref}", hint="give more characters of the id"
                )
        if not found and len(ref) == END and ref.isalnum():
            found = self._fetch("select id from memory where substr(id, -?) = ? limit 2", (END, ref.upper()))
            if len(found) > 1:
                raise ConflictError(f"the ids of several memories end with {ref}", hint="give the whole id")
        if not found:
            raise NotFoundError(
                f"there is no memory {ref[:60]!r}", hint="scrubjay list shows all memories with their ids"
            )
        return str(found[0][0])

    def by_id(self, ids: Sequence[str], *, chars: int | None = None, archived: bool = False) -> dict[str, Memory]:
        """Return the memories of some ids, by id; unknown ids are absent.

        `chars` reads no more of a content; `archived` leaves out what is not.
        """
        if not ids:
            return {}
        columns = rows.beginning(rows.prefixed(rows.MEMORY_COLUMNS, "m"), "m.content", chars)
        found = self._fetch(
            f"select {columns}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.id in (select value from json_each(?))"
            + (" and m.archived_at is not null" if archived else ""),
            (rows.array(ids),),
        )
        return {row[0]: rows.memory_of(row) for row in found}

    def confidences(self, ids: Sequence[str]) -> dict[str, float]:
        """Return how sure some memories are, by id; unknown ids are absent."""
        found = self._fetch(
            "select id, confidence from memory where id in (select value from json_each(?))", (rows.array(ids),)
        )
        return dict(map(rows.confidence_of, found))

    def get(self, memory_id: str) -> Memory:
        """Return one memory by its id. Raises NotFoundError."""
        found = self.by_id([memory_id])
        if memory_id not in found:
            raise NotFoundError(
                f"there is no memory {memory_id}", hint="scrubjay list shows all memories with their ids"
            )
        return found[memory_id]

    def existing(self, ids: Iterable[str]) -> set[str]:
        """Return which of some memories are there."""
        return {
            str(row[0])
            for row in self._fetch(
                "select id from memory where id in (select value from json_each(?))", (rows.array(ids),)
            )
        }

    def page(
        self,
        chosen: MemoryFilter,
        *,
        after: tuple[int, int] | None,
        limit: int,
        chars: int,
        handed_first: bool = False,
    ) -> tuple[list[Memory], tuple[int, int] | None]:
        """Return a page, newest first or what agents are handed first, and where the next one starts.

        It ends after `limit` memories, or before their contents have more than `chars` characters; it has at least one.
        """
        clause, values = chosen.clause()
        place = _HANDED if handed_first else _NEWEST
        if after:
            clause += f" and ({place}, m.n) < (?, ?)"
            values += after
        places = self._fetch(
            f"select {place}, m.n, length(m.content) from memory m where {clause}"
            f" order by {place} desc, m.n desc limit ?",
            (*values, limit + 1),
        )
        shown = within(places, limit, chars)
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.n in (select value from json_each(?))"
            f" order by {place} desc, m.n desc",
            (rows.array(n for _, n, _ in shown),),
        )
        return [rows.memory_of(row) for row in found], shown[-1][:2] if len(places) > len(shown) else None

    def layer(self, layer: str) -> list[Memory]:
        """Return the memories of a layer that is always loaded, in the order they were made."""
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, {rows.ACCESSES} from memory m"
            " left join access a on a.memory_id = m.id where m.layer = ? and m.layer <> 'archive'"
            " and m.archived_at is null order by m.created_at, m.n",
            (layer,),
        )
        return [rows.memory_of(row) for row in found]

    def with_content(self, content_hashes: Iterable[str]) -> list[Memory]:
        """Return the memories whose content is one of these, by content hash, without those that were archived."""
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
            " where m.content_hash in (select value from json_each(?)) and m.archived_at is null order by m.n",
            (rows.array(content_hashes),),
        )
        return [rows.memory_of(row) for row in found]

    def content_hashes(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the content hash of each of some memories; unknown ids are absent."""
        return {
            str(row[0]): str(row[1])
            for row in self._fetch(
                "select id, content_hash from memory where id in (select value from json_each(?))", (rows.array(ids),)
            )
        }

    def duplicates(self, content_hashes: Iterable[str]) -> list[tuple[str, str, str | None, str]]:
        """Return (content hash, scope, resource id, id) of the live memories that say some contents."""
        return [
            (row[0], row[1], row[2], row[3])
            for row in self._fetch(
                "select content_hash, scope, resource_id, id from memory where superseded_by is null"
                " and archived_at is null and layer not in ('identity', 'active')"
                " and content_hash in (select value from json_each(?)) order by n desc",
                (rows.array(content_hashes),),
            )
        ]

    def short(self, ids: Sequence[str], *, chars: int) -> dict[str, Memory]:
        """Return those of some memories that are not put away and have at most `chars` characters, by id."""
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
            " where m.id in (select value from json_each(?)) and m.archived_at is null and length(m.content) <= ?",
            (rows.array(ids), chars),
        )
        return {row[0]: rows.memory_of(row) for row in found}

    def of_resource(self, project: str) -> list[str]:
        """Return the memories that belong to a project."""
        return [
            str(row[0])
            for row in self._fetch("select id from memory where scope = 'project' and resource_id = ?", (project,))
        ]

    def authored(self) -> list[str]:
        """Return the ids of memories that somebody wrote who is not the store's person or their agent."""
        return [str(row[0]) for row in self._fetch(f"select m.id from memory m where {rows.AUTHORED_M}")]

    def from_sources(self, source_keys: Sequence[str]) -> list[Memory]:
        """Return the memories that came from some places of imported files."""
        keys = rows.array(source_keys)
        select = f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
        found = self._fetch(
            f"{select} where json_extract(m.metadata, '$.source_key') in (select value from json_each(?))", (keys,)
        )
        # A place that is the first of no memory may be one of several of one.
        if len(found) < len(source_keys):
            found += self._fetch(
                f"{select} where m.id in (select memory_id from also_from"
                " where source_key in (select value from json_each(?)))",
                (keys,),
            )
        return list({row[0]: rows.memory_of(row) for row in found}.values())

    def is_named(self, memory_id: str) -> bool:
        """Say whether a memory has a canonical name."""
        return bool(self._fetch("select 1 from memory where id = ? and name is not null", (memory_id,)))

    def is_observation(self, memory_id: str) -> bool:
        """Say whether a memory was distilled, and so rests on its grips."""
        return bool(self._fetch("select 1 from memory where id = ? and kind = 'observation'", (memory_id,)))

    def is_archive(self, memory_id: str) -> bool:
        """Say whether a memory stands for a compacted part of a session, and quotes it by its grips."""
        return bool(self._fetch("select 1 from memory where id = ? and kind = 'archive'", (memory_id,)))

    def successor(self, memory_id: str) -> str | None:
        """Return the id of what took a memory's place, None when nothing did or there is no such memory."""
        found = self._fetch("select superseded_by from memory where id = ?", (memory_id,))
        return found[0][0] if found else None

    def superseded_by(self, memory_id: str) -> list[Memory]:
        """Return the memories whose place a memory took, the last that ended first; none that was archived."""
        found = self._fetch(
            f"select {rows.prefixed(rows.MEMORY_COLUMNS, 'm')}, null, null from memory m"
            " where m.superseded_by = ? and m.archived_at is null"
            " order by coalesce(m.valid_to, m.created_at) desc, m.n desc",
            (memory_id,),
        )
        return [rows.memory_of(row) for row in found]

    def put_away_into(self, memory_id: str) -> list[str]:
        """Return the memories that were put away into one: merged into it, or compressed into an archive."""
        found = self._fetch(
            f"select m.id from memory m where m.superseded_by = ? and {rows.PUT_AWAY_INTO} order by m.n",
            (memory_id,),
        )
        return [str(row[0]) for row in found]

    def held_by(self, memory_id: str) -> str | None:
        """Return the archive that a memory was put away into, whose words may be its words; None where none was."""
        found = self._fetch(
            "select a.id from memory m join memory a on a.id = m.superseded_by where m.id = ?"
            " and m.archived_at is not null and a.kind = 'archive'",
            (memory_id,),
        )
        return str(found[0][0]) if found else None

    def is_imported(self, memory_id: str) -> bool:
        """Say whether a memory is trusted no more than what came from a file."""
        return bool(self._fetch("select 1 from memory where id = ? and trust in ('untrusted', 'import')", (memory_id,)))
