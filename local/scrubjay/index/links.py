"""Which documents of a kind were read from which events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scrubjay.index.arrays import Arrays, Growing, Ints, RowNumbers
from scrubjay.index.table import Table


class Links:
    """Pairs of rows of two tables. A link to an event that has not arrived yet waits under the event's id."""

    def __init__(self, documents: Table, events: Table) -> None:
        self._documents = documents
        self._events = events
        self._pairs = Growing({"document": np.int32, "event": np.int32})
        self._waiting: dict[str, list[int]] = {}  # event id → rows of documents that name it as their source

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._pairs.nbytes

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the rows of documents and of the events they were read from, pair by pair, living ones only."""
        document, event = self._pairs["document"], self._pairs["event"]
        if self._events.dead or self._documents.dead:
            living = self._events["alive"][event] & self._documents["alive"][document]
            document, event = document[living], event[living]
        return document, event

    def add(self, rows: range, sources: Sequence[Sequence[str]]) -> None:
        """Link new documents to the events of these ids, each once."""
        named = [(row, source) for row, found in zip(rows, sources, strict=True) for source in dict.fromkeys(found)]
        events = self._events.rows.find([source for _, source in named])
        for at in np.flatnonzero(events < 0).tolist():
            row, source = named[at]
            self._waiting.setdefault(source, []).append(row)
        known = events >= 0
        documents = np.array([row for row, _ in named], np.int32)[known]
        self._pairs.append(len(documents), {"document": documents, "event": events[known]})

    def arrived(self, ids: Sequence[str], rows: range) -> None:
        """Make the links that waited for these events."""
        if self._waiting:
            for id_, row in zip(ids, rows, strict=True):
                for document in self._waiting.pop(id_, ()):
                    self._pairs.append(1, {"document": document, "event": row})

    def wait(self, events: RowNumbers) -> None:
        """Let the links to events that are about to leave wait for events of the same ids."""
        documents, linked = self.pairs()
        chosen = np.isin(linked, events)
        for document, event in zip(documents[chosen].tolist(), linked[chosen].tolist(), strict=True):
            self._waiting.setdefault(self._events.ids[event], []).append(document)

    def compact(self, table: Table, moved: Ints, pairs: tuple[Ints, Ints]) -> None:
        """Take the new number of each row of a table that was compacted; `pairs` are those from before."""
        documents, events = pairs
        if table is self._documents:
            documents = moved[documents]
            waiting = {id_: [int(moved[row]) for row in rows if moved[row] >= 0] for id_, rows in self._waiting.items()}
            self._waiting = {id_: rows for id_, rows in waiting.items() if rows}
        if table is self._events:
            events = moved[events]
        self._pairs = Growing({"document": np.int32, "event": np.int32})
        self._pairs.append(len(documents), {"document": documents, "event": events})

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        """Put the pairs into arrays; return what waits."""
        self._pairs.pack(prefix, arrays)
        return {id_: rows.copy() for id_, rows in self._waiting.items()}

    def unpack(self, prefix: str, arrays: Arrays, rest: Any) -> None:
        """Become what was packed."""
        self._pairs.unpack(prefix, arrays)
        self._waiting = {str(id_): [int(row) for row in rows] for id_, rows in rest.items()}
