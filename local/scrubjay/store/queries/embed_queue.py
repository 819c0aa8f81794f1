"""Reading the queue of texts that wait for a vector (`store/embed_queue.py` says how it is kept)."""

from __future__ import annotations

from scrubjay.store import embed_queue, rows
from scrubjay.store.embed_queue import Place, Waiting
from scrubjay.store.sqlite import Fetch


class EmbedQueueQueries:
    """What waits to be embedded, and in which space."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def space(self) -> tuple[int, str] | None:
        """Return the number and the name of the space that the queue is about, None while no model is in use."""
        found = self._fetch("select s.id, s.name from embed_queue q join space s on s.id = q.space")
        return (int(found[0][0]), str(found[0][1])) if found else None

    def space_number(self, name: str) -> int | None:
        """Return the number of an embedding space, None when nothing was ever embedded in it."""
        found = self._fetch("select id from space where name = ?", (name,))
        return int(found[0][0]) if found else None

    def may_wait(self) -> bool:
        """Say whether something may wait to be embedded: one look, however large the store is."""
        return bool((self._fetch(embed_queue.LOOK))[0][0])

    def counts(self) -> tuple[int, int]:
        """Return how many texts wait to be embedded, and how many the model refused.

        What was there when the space was entered, and was not looked at yet, counts as waiting.
        """
        waiting, refused = (self._fetch(embed_queue.COUNT))[0]
        return int(waiting), int(refused)

    def is_filling(self) -> bool:
        """Say whether texts from before the space was entered have not been looked at yet."""
        return bool(self._fetch("select 1 from embed_queue where memories > 0 or events > 0"))

    def texts(self) -> int:
        """Return how many texts may be waiting in a space that was never entered: no fewer than there are."""
        found = self._fetch("select coalesce((select max(n) from memory), 0) + coalesce((select max(n) from event), 0)")
        return int(found[0][0])

    def first(self, limit: int, below: Place = embed_queue.FIRST) -> list[Waiting]:
        """Return the first that wait to be embedded, below a place in the queue: memories first, newest first."""
        found: list[Waiting] = []
        if below.memory:
            found += [
                Waiting(Place(1, n), owner, said, text)
                for n, owner, said, text in self._fetch(embed_queue.MEMORIES, (rows.MAX_EMBEDDED_CHARS, below.n, limit))
            ]
        if len(found) < limit:
            for n, *row, erased in self._fetch(
                embed_queue.EVENTS, (embed_queue.UNPLACED if below.memory else below.n, limit - len(found))
            ):
                event = rows.event_of(tuple(row))
                found.append(Waiting(Place(0, n), event.id, str(erased), rows.event_words(event)))
        return found
