"""Storing vectors, and keeping the queue of what has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrubjay.store import rows
from scrubjay.store.embed_queue import EmbedQueue, Place
from scrubjay.store.projections.contents import Contents
from scrubjay.store.write_context import WriteContext


class Vectors:
    """The embedding spaces and the vectors in them."""

    def __init__(self, context: WriteContext, queue: EmbedQueue, contents: Contents) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self.queue = queue
        self._contents = contents

    def space(self, name: str) -> int:
        """Return the number of an embedding space, giving it one if it is new."""
        self._run("insert or ignore into space (name) values (?)", (name,))
        return int(self._fetch("select id from space where name = ?", (name,))[0][0])

    def enter_space(self, name: str) -> int:
        """Embed in a space from now on: what has no vector in it waits for one. Returns its number."""
        space = self.space(name)
        if space != self.queue.space:
            self.queue.enter(space)
            self._contents.mark_all(said=False)
        return space

    def leave_space(self) -> None:
        """Embed nothing from now on."""
        if self.queue.space is not None:
            self.queue.refill(None)
            self._contents.mark_all(said=False)

    def put(self, space: int, vectors: Sequence[tuple[str, str, bytes]]) -> None:
        """Store (owner, content hash, vector) of owners whose text is still the one that was embedded.

        An event's content hash is how often it was erased: nothing else changes it. An owner forgotten meanwhile is
        left out, or its vector would outlive it.
        """
        current = self._placed(owner for owner, _, _ in vectors)
        kept = [row for row in vectors if row[:2] in current]
        self._run_many(
            "insert or replace into embedding (space, owner, content_hash, vector) values (?, ?, ?, ?)",
            [(space, *row) for row in kept],
        )
        self.queue.embedded(space, [current[row[:2]] for row in kept])
        self._contents.mark_vectors(row[0] for row in kept)
        self._context.changes.vectors += [(space, owner, vector) for owner, _, vector in kept]

    def refuse(self, space: int, refusals: Sequence[tuple[str, str, str]]) -> None:
        """Note that the model of a space refused texts: (owner, content hash, reason). They wait no longer."""
        current = self._placed(owner for owner, _, _ in refusals)
        self.queue.refuse(space, [(current[row[:2]], row[2]) for row in refusals if row[:2] in current])

    def _placed(self, owners: Iterable[str]) -> dict[tuple[str, str], Place]:
        """Return where some owners stand in the queue, by (owner, content hash)."""
        return {
            (str(owner), str(said)): Place(memory, n)
            for owner, said, memory, n in self._fetch(
                "select id, content_hash, 1, n from memory where id in (select value from json_each(?1)) union all"
                " select id, cast(erased as text), 0, n from event where id in (select value from json_each(?1))",
                (rows.array(owners),),
            )
        }
