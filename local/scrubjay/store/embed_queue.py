"""The queue of what has no vector in the embedding space in use. Every write keeps it; nothing else looks for work.

Theory of operation. A text enters when it is written, changed or received, and leaves when its vector is stored or it
is forgotten. What was there before a space was entered is looked at in steps of `STEP`, newest first, so that choosing
a model for a million texts holds no writer up: `memories` and `events` of the table `embed_queue` say up to which
arrival numbers that is still to be done. What waits is therefore always the rows of `unembedded` and whatever has no
vector below these two numbers. Without a model in use there is no space, and the queue stays empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from scrubjay.store import rows

STEP = 2_000
"""Arrival numbers looked at in one transaction: about 20 ms of the writer's time."""

_TYPES = ", ".join(f"'{kind.value}'" for kind in sorted(rows.EMBEDDED_TYPES))
EMBEDDABLE = f"type in ({_TYPES}) and trim(text, char(32, 9, 10, 13)) <> ''"
"""Whether a row of `event` gets a vector. Every memory does."""

LOOK = "select exists (select 1 from unembedded) or exists (select 1 from embed_queue where memories > 0 or events > 0)"
"""Whether anything waits, or may wait."""

COUNT = (
    "select (select count(*) from unembedded) + coalesce((select sum(memories + events) from embed_queue), 0),"
    " (select count(*) from refused)"
)
"""How many wait, and how many the model refused. What has not been looked at yet counts as waiting."""

MEMORIES = (
    "select q.n, m.id, m.content_hash, substr(m.content, 1, ?) from unembedded q cross join memory m on m.n = q.n"
    " where q.memory = 1 and q.n < ? order by q.n desc limit ?"
)
EVENTS = (
    f"select q.n, {rows.beginning(rows.prefixed(rows.EVENT_COLUMNS, 'e'), 'e.text', rows.MAX_EMBEDDED_CHARS)}, e.erased"
    " from unembedded q cross join event e on e.n = q.n"
    " where q.memory = 0 and q.n < ? order by q.n desc limit ?"
)

_MISSING = (
    "not exists (select 1 from embedding x where x.space = q.space and x.owner = t.id)"
    " and not exists (select 1 from refused r where r.memory = {0} and r.n = t.n)"
)
WITHOUT_VECTOR = (
    f"select 1, t.n from embed_queue q, memory t where t.n > q.memories and {_MISSING.format(1)}"
    f" union all select 0, t.n from embed_queue q, event t where t.n > q.events and {EMBEDDABLE}"
    f" and {_MISSING.format(0)}"
)
"""What waits, found without the queue: reads every row, which is for a check of the store."""

UNPLACED = 1 << 62
"""Above every arrival number."""


class Place(NamedTuple):
    """Where a text stands in the queue, which is emptied from the greatest place down: memories first, newest first."""

    memory: int
    n: int


FIRST = Place(1, UNPLACED)


class Waiting(NamedTuple):
    """A text that waits for its vector. `said` changes with the text: what `put_vectors` and `refuse` compare."""

    place: Place
    owner: str
    said: str
    text: str


class EmbedQueue:
    """The queue within one transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._space: int | None = None
        self._read = False

    @property
    def space(self) -> int | None:
        """The space in use, None without a model."""
        if not self._read:
            found = self._connection.execute("select space from embed_queue").fetchone()
            self._space, self._read = None if found is None else int(found[0]), True
        return self._space

    def enter(self, space: int) -> None:
        """Make the queue that of a space. Nothing happens when it is so already."""
        if space != self.space:
            self.refill(space)

    def refill(self, space: int | None) -> None:
        """Make the queue again for a space: the first step now, the others by `fill`. None empties it."""
        for table in ("unembedded", "refused", "embed_queue"):
            self._connection.execute(f"delete from {table}")
        self._space, self._read = space, True
        if space is not None:
            self._connection.execute(
                "insert into embed_queue (one, space, memories, events)"
                " values (1, ?, (select coalesce(max(n), 0) from memory), (select coalesce(max(n), 0) from event))",
                (space,),
            )
            if self.fill():
                self.fill()  # memories in the first step, events in the second: a small store is done at once

    def _top(self, memory: int) -> int:
        column = "memories" if memory else "events"
        return int(self._connection.execute(f"select {column} from embed_queue").fetchone()[0])

    def fill(self) -> bool:
        """Look at the next `STEP` of what was there before the space was entered. Returns whether more is left."""
        if self.space is None:
            return False
        memory = int(self._top(1) > 0)
        top = self._top(memory)
        low = max(top - STEP, 0)
        table, wanted, column = ("memory", "1", "memories") if memory else ("event", EMBEDDABLE, "events")
        self._connection.execute(
            f"insert or ignore into unembedded (memory, n) select ?1, n from {table} t where n > ?2 and n <= ?3"
            f" and {wanted} and not exists (select 1 from embedding x where x.space = ?4 and x.owner = t.id)"
            " and not exists (select 1 from refused r where r.memory = ?1 and r.n = t.n)",
            (memory, low, top, self.space),
        )
        self._connection.execute(f"update embed_queue set {column} = ?", (low,))
        return low > 0 or bool(memory and self._top(0) > 0)

    def add_memories(self, numbers: Sequence[int]) -> None:
        """Take in memories that are new, or say something else than before."""
        if self.space is not None and numbers:
            self._connection.executemany(
                "delete from refused where memory = 1 and n = ?", [(number,) for number in numbers]
            )
            self._connection.executemany(
                "insert or ignore into unembedded (memory, n) values (1, ?)", [(number,) for number in numbers]
            )

    def drop_memories(self, numbers: Sequence[int]) -> None:
        """Let go of memories that were forgotten."""
        for table in ("unembedded", "refused"):
            self._connection.executemany(
                f"delete from {table} where memory = 1 and n = ?", [(number,) for number in numbers]
            )

    def drop_absent(self) -> None:
        """Let go of memories that are not there any more."""
        for table in ("unembedded", "refused"):
            self._connection.execute(f"delete from {table} where memory = 1 and n not in (select n from memory)")

    def add_events(self, low: int, high: int) -> None:
        """Take in the new events from one arrival number to another, both included."""
        if self.space is not None:
            self._connection.execute(
                f"insert or ignore into unembedded (memory, n) select 0, n from event where n between ? and ?"
                f" and {EMBEDDABLE}",
                (low, high),
            )

    def change_events(self, ids: str) -> None:
        """Take in or let go of events (a JSON array of ids) whose text changed, as it now is."""
        if self.space is None:
            return
        chosen = "id in (select value from json_each(?))"
        for table in ("unembedded", "refused"):
            self._connection.execute(
                f"delete from {table} where memory = 0 and n in (select n from event where {chosen})", (ids,)
            )
        self._connection.execute(
            f"insert into unembedded (memory, n) select 0, n from event where {chosen} and {EMBEDDABLE}", (ids,)
        )

    def embedded(self, space: int, places: Sequence[Place]) -> None:
        """Let go of texts whose vectors in a space were stored."""
        if space == self.space:
            for table in ("unembedded", "refused"):
                self._connection.executemany(f"delete from {table} where memory = ? and n = ?", places)

    def refuse(self, space: int, refusals: Sequence[tuple[Place, str]]) -> None:
        """Put texts aside that the model of a space refused: (place, reason)."""
        if space == self.space:
            self.embedded(space, [place for place, _ in refusals])
            self._connection.executemany(
                "insert into refused (memory, n, reason) values (?, ?, ?)",
                [(*place, reason) for place, reason in refusals],
            )

    def retry(self) -> int:
        """Queue again what the model refused. Returns how many texts that is."""
        self._connection.execute("insert or ignore into unembedded (memory, n) select memory, n from refused")
        return int(self._connection.execute("delete from refused").rowcount)
