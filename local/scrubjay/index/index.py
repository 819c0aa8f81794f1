"""The fast path of recall: every document as columns, postings and int8 vectors in memory.

Theory of operation. Each kind of document (`documents.KINDS`) has a `Table`; all share the vocabulary and the numbers
of recurring names. Events of a session are a linked list (`SessionSequence`); documents that were read from events are
linked to them (`Links`). `load` and `loaded` fill an index from a store in bulk; `packed` and `unpacked` turn it into
arrays for a file and back.

One lock guards it all. Every public method takes it; whoever reads columns (recall) holds `lock` while it does.
A search over 100,000 documents holds it for some milliseconds, and an addition waits that long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from scrubjay.index.arrays import Arrays, RowNumbers, packed_strings
from scrubjay.index.documents import EVENT, KIND_OF, KINDS, MEMORY, NameTables
from scrubjay.index.links import Links
from scrubjay.index.sequence import SessionSequence
from scrubjay.index.table import Table
from scrubjay.index.vocabulary import Vocabulary
from scrubjay_shared import scoring
from scrubjay_shared.errors import InvalidError

_CHUNK = 4096  # documents split into tokens at once: a million strings at a time would cost 100 MB for a moment
_Vectors = tuple[list[str], scoring.Rows, scoring.Floats]


class Index:
    """Documents in memory. All methods may be called from any thread; holding `lock` makes several one.

    The tables, names and links are for recall, which holds `lock` while it reads them.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.names = NameTables()
        self.topic_vectors: dict[int, tuple[scoring.Rows, float]] = {}
        """The vector of each topic's label, by its number in `names.topics`."""
        self.version = 0
        """Raised by every change: what was read of the index under another number may have changed."""
        self._width: int | None = None
        self._start(Vocabulary(len(KINDS)))

    def _start(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.tables = {kind.name: Table(number, kind, vocabulary) for number, kind in enumerate(KINDS)}
        self.events, self.memories = self.tables[EVENT.name], self.tables[MEMORY.name]
        self.links = {kind.name: Links(self.tables[kind.name], self.events) for kind in KINDS if kind.sourced}
        """By the name of each kind that was read from events."""
        self._sequence = SessionSequence(self.events)

    def packed(self) -> tuple[Any, Arrays]:
        """Return all of this but the topics' vectors, for a file: what JSON can hold, and arrays by name.

        The arrays stay what they are while the index goes on, but for vectors: a row may be embedded or forgotten.
        """
        with self.lock:
            arrays: Arrays = {}
            tokens = self.vocabulary.pack(arrays)
            self._sequence.pack("end", arrays)
            rest = {
                "tables": {name: table.pack(name, arrays) for name, table in self.tables.items()},
                "links": {name: links.pack(f"link.{name}", arrays) for name, links in self.links.items()},
                "names": self.names.pack(),
                "width": self._width,
            }
        arrays["tokens"] = packed_strings(tokens)  # of a million tokens: nobody has to wait for it
        return rest, arrays

    @classmethod
    def unpacked(cls, rest: Any, arrays: Arrays) -> Index:
        """Return the index that was packed; it keeps the arrays. Raises KeyError or ValueError for others."""
        made = cls()
        made._start(Vocabulary.unpacked(arrays))
        for name, table in made.tables.items():
            table.unpack(name, arrays, rest["tables"][name])
        for name, links in made.links.items():
            links.unpack(f"link.{name}", arrays, rest["links"][name])
        made._sequence.unpack("end", arrays)
        made.names = NameTables.unpacked(rest["names"])
        made._width = rest["width"]
        return made

    def __len__(self) -> int:
        """Return the number of documents; does not wait for the lock, which a question may hold for a tenth second."""
        return sum(len(table.rows) for table in self.tables.values())

    def __contains__(self, id_: object) -> bool:
        with self.lock:
            return any(id_ in table.rows for table in self.tables.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the strings of tokens."""
        with self.lock:
            tables, links = self.tables.values(), self.links.values()
            return sum(table.nbytes for table in tables) + sum(each.nbytes for each in links) + self._sequence.nbytes

    @property
    def embedded(self) -> tuple[int, int]:
        """How many documents have a vector, of how many."""
        with self.lock:
            return sum(table.embedded for table in self.tables.values()), len(self)

    def add(self, docs: Iterable[Any], *, keep_vectors: bool = False) -> None:
        """Add documents of any kinds, or replace those of the same id, which lose their vectors unless `keep_vectors`.

        Sessions and their events may arrive in any order. A batch may repeat an id; its last document wins.
        """
        with self.lock:
            self.version += 1
            last = {doc.id: doc for doc in docs}
            for table in self.tables.values():
                own = [doc for doc in last.values() if KIND_OF[type(doc)] is table.kind]
                if table.kind.sequenced:
                    own.sort(key=lambda doc: (doc.session_id, doc.order, doc.id))
                for at in range(0, len(own), _CHUNK):
                    batch = own[at : at + _CHUNK]
                    kept = self._take_out(table, [doc.id for doc in batch], keep_vectors=keep_vectors)
                    rows = self._append(table, batch)
                    if table.kind.sequenced:
                        self._sequence.place(rows)
                    if kept is not None:
                        ids, vectors, scales = kept
                        table.set_vectors(table.rows.find(ids), vectors, scales)
            self._compact()

    def load(self, docs: Sequence[Any]) -> None:
        """Add documents of one kind to an index that is being filled, each once. `loaded` must follow.

        All events come first: the others are linked to them.
        """
        if docs:
            with self.lock:
                table = self.tables[KIND_OF[type(docs[0])].name]
                table.postings.loading = True
                self._append(table, docs)

    def loaded(self) -> None:
        """Finish what `load` left, once for all: order within sessions, the postings."""
        with self.lock:
            self.version += 1
            for table in self.tables.values():
                table.postings.loaded()
            self._sequence.place_all()

    def remove(self, ids: Iterable[str]) -> int:
        """Forget documents with their tokens, vectors and links, and return how many there were.

        A document that stays and names a forgotten event is linked again should the event come back.
        """
        with self.lock:
            self.version += 1
            distinct = list(dict.fromkeys(ids))
            found = 0
            for table in sorted(self.tables.values(), key=lambda table: table is self.events):
                rows = table.rows.find(distinct)
                rows = np.sort(rows[rows >= 0])
                if table is self.events and len(rows):
                    for links in self.links.values():
                        links.wait(rows)
                self._drop(table, rows)
                found += len(rows)
            self._compact()
            return found

    def set_vectors(self, ids: Sequence[str], rows: scoring.Rows, scales: scoring.Floats) -> int:
        """Give documents their vectors (int8 [n, d] and float32 [n]); return how many of the ids were known.

        All vectors of an index have one width, that of the first. Raises InvalidError for another.
        """
        with self.lock:
            self.check_width(rows.shape[1])
            self.version += 1
            known = 0
            for table in self.tables.values():
                targets = table.rows.find(ids)
                chosen = np.flatnonzero(targets >= 0)
                table.set_vectors(targets[chosen], rows[chosen], scales[chosen])
                known += len(chosen)
            return known

    def without_vector(self, event_types: Iterable[str]) -> list[str]:
        """Return the ids of documents that have no vector; of events, only those of some types."""
        with self.lock:
            found: list[str] = []
            for table in self.tables.values():
                bare = table["alive"] & ~table["embedded"]
                if table is self.events:
                    bare &= np.isin(table["type"], [self.names.types.find(name) for name in event_types])
                found += [table.ids[row] for row in np.flatnonzero(bare).tolist()]
            return found

    def set_topics(self, labels: Sequence[str], rows: scoring.Rows, scales: scoring.Floats) -> None:
        """Give topic labels their vectors."""
        with self.lock:
            self.check_width(rows.shape[1])
            self.version += 1
            for label, row, scale in zip(labels, rows, scales.tolist(), strict=True):
                self.topic_vectors[self.names.topics[label]] = (row, scale)

    def topics_without_vector(self) -> list[str]:
        """Return the topic labels of memories that were given no vector yet."""
        with self.lock:
            return [
                label
                for number, label in enumerate(self.names.topics.strings)
                if number not in self.topic_vectors and label
            ]

    def check_width(self, width: int) -> None:
        """Raise InvalidError for a vector of another width than the first one set; the first sets it."""
        if self._width is None:
            self._width = width
        if width != self._width:
            raise InvalidError(
                f"a vector must have {self._width} numbers, as the others in this index have, got {width}",
                hint="clear the vectors before those of another embedding model are set",
            )

    def clear_vectors(self) -> None:
        """Forget all vectors, as when the embedding model changes: two spaces are never mixed."""
        with self.lock:
            self.version += 1
            for table in self.tables.values():
                table.clear_vectors()
            self.topic_vectors.clear()
            self._width = None

    def neighbours(self, event_id: str, *, before: int, after: int) -> tuple[str, ...]:
        """Return the ids around an event in its session, in order, without itself; fewer at the session's ends."""
        with self.lock:
            row = self.events.rows.get(event_id)
            if row is None:
                return ()
            return tuple(map(self.events.ids.__getitem__, self._sequence.around(row, before=before, after=after)))

    def _append(self, table: Table, docs: Sequence[Any]) -> range:
        fields = dict(zip(table.kind.document._fields, zip(*docs, strict=True), strict=True))
        ids = fields["id"]
        rows = table.append(ids, fields["tokens"], table.kind.encode(self.names, fields))
        if table.kind.sourced:
            self.links[table.kind.name].add(rows, fields["sources"])
        if table is self.events:
            self._sequence.sessions(len(self.names.sessions.strings))
            for links in self.links.values():
                links.arrived(ids, rows)
        return rows

    def _take_out(self, table: Table, ids: Sequence[str], *, keep_vectors: bool) -> _Vectors | None:
        """Remove what will be replaced; return the vectors to put back. Links to an event wait for the new one."""
        found = table.rows.find(ids)
        old = np.sort(found[found >= 0])
        if not len(old):
            return None
        kept = None
        if keep_vectors:
            rows = old[table["embedded"][old]]
            kept = ([table.ids[row] for row in rows.tolist()], table.vectors(rows), table["scale"][rows].copy())
        if table is self.events:
            for links in self.links.values():
                links.wait(old)
        self._drop(table, old)
        return kept

    def _drop(self, table: Table, rows: RowNumbers) -> None:
        if table.kind.sequenced:
            for row in rows.tolist():
                self._sequence.take_out(row)
        table.clear(rows)

    def _compact(self) -> None:
        for table in self.tables.values():
            if table.worth_compacting():
                pairs = {name: links.pairs() for name, links in self.links.items()}
                moved = table.compact()
                for name, links in self.links.items():
                    links.compact(table, moved, pairs[name])
                if table.kind.sequenced:
                    self._sequence.compact(moved)
