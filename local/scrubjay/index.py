"""The fast path of recall: every event and memory as columns, postings and int8 vectors in memory.

Theory of operation. A document is a row of a `Table`; rows are only ever appended, so a row number names a document
until the table is compacted. Its text is present as token numbers alone, twice: forward (by row, needed to take a
document out again) and inverted (by token, needed to search). The inverted side is log-structured: the newest rows, at
most `_TAIL`, are scanned forward; older rows lie in a few immutable segments, each at least twice as large as the one
after it, which are merged like the carries of a binary counter. So adding one document costs some microseconds, and
adding n of them n log n in all. Removing a document clears its row and vector at once; its numbers stay in the
segments, masked, until a quarter of the rows are dead and the table is compacted.

Events of a session are a linked list through `prev` and `next`, because they may arrive in any order. Links between a
memory and the events it was read from are pairs of rows; a link whose event has not arrived yet waits under its id.

One lock guards it all. Every public method takes it; whoever reads columns (recall) holds `lock` for the whole query.
A search over 100,000 documents holds it for some milliseconds, and an addition waits that long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay_shared import scoring, text
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

Ints = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_TAIL = 1024  # rows scanned forward: 15,000 token numbers, some 20 microseconds; fewer would merge more often
_TAIL_POSTINGS = 65_536  # the same bound where documents are long
_BLOCK = 4096  # rows of vectors allocated together: 1.5 MB at 384 dimensions, so growing copies nothing
_CHUNK = 4096  # documents split into tokens at once: a million strings at a time would cost 100 MB for a moment
_COMPACT_ROWS = 1024  # dead rows below this number cost nothing worth a compaction
_COMPACT_SHARE = 4  # one dead row in four: a search then wastes at most a third of its work
FOREVER = np.iinfo(np.int64).max
"""`valid_to` of a memory whose end is not known; its negation is the unknown `valid_from`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDoc:
    """One event as recall sees it. `order` is its position key within the session, ascending; ties go by id.

    `tokens` are the analysed tokens of "[speaker] text", joined by spaces (`text.analyse`).
    """

    id: str
    session_id: str
    agent: str
    ts: Millis
    order: int
    speaker: str
    type: str
    tokens: str
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDoc:
    """One memory as recall sees it.

    `tokens` are those of content and name, not of aliases. `sources` are the ids of the events its grips cover.
    `session_id`, `project` and `agent` say where it was learned, None when nowhere; `resource_id` whom it is for.
    """

    id: str
    scope: str
    type: str
    kind: str
    layer: str
    salience: float
    created_at: Millis
    updated_at: Millis
    tokens: str
    resource_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    agent: str | None = None
    topic: str | None = None
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    superseded: bool = False
    sources: tuple[str, ...] = ()


class Names(dict[str | None, int]):
    """Small numbers for recurring strings (sessions, speakers, types); -1 for None. Numbers are never reused."""

    def __init__(self) -> None:
        super().__init__({None: -1})
        self.strings: list[str] = []

    def __missing__(self, name: str | None) -> int:
        found = self[name] = len(self.strings)
        self.strings.append(str(name))
        return found

    def codes(self, names: Iterable[str | None]) -> list[int]:
        """Return the numbers of strings, giving new ones the next."""
        return list(map(self.__getitem__, names))

    def find(self, name: str | None) -> int:
        """Return the number of a string, -1 of None, or -2, which no row carries, if it was never seen."""
        return self.get(name, -2)


class Vocabulary(dict[str, int]):
    """Token → number, with how many documents hold it. A token that nobody holds any more is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self._strings: list[str | None] = []
        self._holders = np.zeros(1024, np.int32)

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self._strings)
        self._strings.append(token)
        return number

    def hold(self, numbers: Ints) -> None:
        """Count one more document for each of these tokens."""
        if len(self._strings) > len(self._holders):
            grown = np.zeros(2 * len(self._strings), np.int32)
            grown[: len(self._holders)] = self._holders
            self._holders = grown
        np.add.at(self._holders, numbers, 1)

    def release(self, numbers: Ints) -> None:
        """Count one document less for each of these tokens, and forget those at zero."""
        np.subtract.at(self._holders, numbers, 1)
        for number in np.unique(numbers[self._holders[numbers] == 0]).tolist():
            token = self._strings[number]
            if token is not None:
                del self[token]
                self._strings[number] = None


@dataclass(frozen=True, slots=True)
class _Segment:
    """The inverted side of a range of rows: for `terms[i]`, `rows` and `tfs` from `offsets[i]` to `offsets[i + 1]`."""

    terms: Ints
    offsets: Ints
    rows: Ints
    tfs: npt.NDArray[np.uint16]

    @staticmethod
    def of(terms: Ints, rows: Ints, tfs: npt.NDArray[np.uint16]) -> _Segment:
        """Build from parallel arrays in row order, or from two segments end to end (the sort finds them sorted)."""
        by_term = np.argsort(terms, kind="stable")
        ordered = terms[by_term]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else ordered
        offsets = np.append(starts, len(ordered)).astype(np.int32)
        return _Segment(ordered[starts].copy(), offsets, rows[by_term], tfs[by_term])

    def merged(self, later: _Segment) -> _Segment:
        """Return both as one."""
        return _Segment.of(
            np.concatenate([np.repeat(s.terms, np.diff(s.offsets)) for s in (self, later)]),
            np.concatenate([self.rows, later.rows]),
            np.concatenate([self.tfs, later.tfs]),
        )

    def find(self, term: int) -> slice:
        at = int(np.searchsorted(self.terms, term))
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.offsets[at]), int(self.offsets[at + 1]))


class _Growing:
    """Parallel arrays that grow by a quarter; `self[name]` is a view of the used part and goes stale when one grows."""

    def __init__(self, dtypes: Mapping[str, Any]) -> None:
        self.used = 0
        self._arrays = {name: np.zeros(256, dtype) for name, dtype in dtypes.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self.used]

    def append(self, count: int, values: Mapping[str, Any]) -> None:
        """Add `count` entries; a name without values stays zero."""
        need = self.used + count
        for name, array in self._arrays.items():
            if need > len(array):
                grown = np.zeros(need + need // 4, array.dtype)
                grown[: self.used] = array[: self.used]
                self._arrays[name] = grown
            if name in values:
                self._arrays[name][self.used : need] = values[name]
        self.used = need

    def keep(self, kept: npt.NDArray[np.intp]) -> None:
        """Keep only these entries, in this order."""
        self._arrays = {name: self[name][kept] for name in self._arrays}
        self.used = len(kept)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


_ROW = {"alive": np.bool_, "embedded": np.bool_, "scale": np.float32, "length": np.int32, "start": np.int64,
        "count": np.int32}  # fmt: skip
_EVENT = {"ts": np.int64, "order": np.int64, "session": np.int32, "project": np.int32, "agent": np.int32,
          "speaker": np.int32, "type": np.int32, "prev": np.int32, "next": np.int32}  # fmt: skip
_MEMORY = {"ts": np.int64, "created": np.int64, "valid_from": np.int64, "valid_to": np.int64, "scope": np.int16,
           "resource": np.int32, "session": np.int32, "project": np.int32, "agent": np.int32, "type": np.int32,
           "kind": np.int32, "layer": np.int32, "topic": np.int32, "salience": np.float32,
           "superseded": np.bool_}  # fmt: skip


class Table:
    """The rows of one kind. `table["ts"]` is a column, valid while the index is locked; a dead row is not `alive`."""

    def __init__(self, columns: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self.ids: list[str] = []
        self.rows: dict[str, int] = {}
        self.dead = 0
        self._vocabulary = vocabulary
        self._columns = _Growing({**_ROW, **columns})
        self._forward = _Growing({"term": np.int32, "tf": np.uint16})
        self._segments: list[_Segment] = []
        self._inverted = 0  # rows before this one are in a segment
        self._blocks: list[scoring.Rows] = []

    def __len__(self) -> int:
        """Return the number of rows, dead ones included: the length of every column."""
        return self._columns.used

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    @property
    def nbytes(self) -> int:
        """Bytes of columns, postings and vectors, without ids."""
        segments = sum(a.nbytes for s in self._segments for a in (s.terms, s.offsets, s.rows, s.tfs))
        return self._columns.nbytes + self._forward.nbytes + segments + sum(block.nbytes for block in self._blocks)

    def append(self, ids: Sequence[str], tokens: Sequence[str], columns: Mapping[str, Any]) -> range:
        """Add documents whose ids are new, and return their rows."""
        first = len(self)
        split = [joined.split() for joined in tokens]
        lengths = np.fromiter(map(len, split), np.int64, len(split))
        numbers = map(self._vocabulary.__getitem__, chain.from_iterable(split))
        terms = np.fromiter(numbers, np.int64, lengths.sum())
        width = len(self._vocabulary._strings) or 1  # noqa: SLF001 - one module, one structure
        keys, tfs = np.unique(np.repeat(np.arange(len(split)), lengths) * width + terms, return_counts=True)
        counts = np.bincount(keys // width, minlength=len(split))
        distinct = (keys % width).astype(np.int32)
        self._vocabulary.hold(distinct)
        starts = self._forward.used + np.cumsum(counts) - counts
        self._forward.append(len(keys), {"term": distinct, "tf": np.minimum(tfs, 65_535)})
        self._columns.append(
            len(split), {**columns, "alive": True, "length": lengths, "start": starts, "count": counts}
        )
        self.ids.extend(ids)
        self.rows.update(zip(ids, range(first, len(self)), strict=True))
        self._invert()
        return range(first, len(self))

    def clear(self, row: int) -> None:
        """Forget what a row says. The row stays, dead, until the table is compacted."""
        columns = self._columns
        begin, count = int(columns["start"][row]), int(columns["count"][row])
        self._vocabulary.release(self._forward["term"][begin : begin + count])
        columns["alive"][row] = False
        columns["embedded"][row] = False
        if row // _BLOCK < len(self._blocks):
            self._blocks[row // _BLOCK][row % _BLOCK] = 0
        del self.rows[self.ids[row]]
        self.ids[row] = ""
        self.dead += 1

    def _tail(self) -> slice:
        begin = int(self["start"][self._inverted]) if self._inverted < len(self) else self._forward.used
        return slice(begin, self._forward.used)

    def _invert(self) -> None:
        tail = self._tail()
        if len(self) - self._inverted < _TAIL and tail.stop - tail.start < _TAIL_POSTINGS:
            return
        rows = np.repeat(np.arange(self._inverted, len(self), dtype=np.int32), self["count"][self._inverted :])
        newest = _Segment.of(self._forward["term"][tail], rows, self._forward["tf"][tail])
        while self._segments and len(self._segments[-1].rows) < 2 * len(newest.rows):
            newest = self._segments.pop().merged(newest)
        self._segments.append(newest)
        self._inverted = len(self)

    def postings(self, term: int) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """Return the rows that hold a token, ascending, each once, dead ones included, and how often they hold it."""
        tail = self._tail()
        hits = np.flatnonzero(self._forward["term"][tail] == term)
        rows = [np.searchsorted(self["start"], tail.start + hits, side="right").astype(np.int32) - 1]
        tfs = [self._forward["tf"][tail][hits]]
        for segment in reversed(self._segments):
            found = segment.find(term)
            if found.stop:
                rows.insert(0, segment.rows[found])
                tfs.insert(0, segment.tfs[found])
        return (rows[0], tfs[0]) if len(rows) == 1 else (np.concatenate(rows), np.concatenate(tfs))

    def set_vectors(self, rows: npt.NDArray[np.intp], vectors: scoring.Rows, scales: scoring.Floats) -> None:
        """Put int8 vectors into rows."""
        while len(self._blocks) * _BLOCK < len(self):
            self._blocks.append(np.zeros((_BLOCK, vectors.shape[1]), np.int8))
        blocks = rows // _BLOCK
        for block in np.unique(blocks).tolist():
            chosen = blocks == block
            self._blocks[block][rows[chosen] % _BLOCK] = vectors[chosen]
        self["scale"][rows] = scales
        self["embedded"][rows] = True

    def vectors(self, rows: npt.NDArray[np.intp]) -> scoring.Rows:
        """Return a copy of the int8 vectors of rows that are embedded."""
        width = self._blocks[0].shape[1] if self._blocks else 0
        found = np.zeros((len(rows), width), np.int8)
        blocks = rows // _BLOCK
        for block in np.unique(blocks).tolist():
            chosen = blocks == block
            found[chosen] = self._blocks[block][rows[chosen] % _BLOCK]
        return found

    def clear_vectors(self) -> None:
        """Forget all vectors."""
        self._blocks = []
        self["embedded"][:] = False

    def cosines(self, query: scoring.Rows, query_scale: float, wanted: Mask) -> scoring.Floats:
        """Return float32 [len]: the cosine of each wanted row with the query, 0 for rows that are not embedded."""
        found = np.zeros(len(self), np.float32)
        scales = self["scale"]
        for number, block in enumerate(self._blocks):
            part = slice(number * _BLOCK, min((number + 1) * _BLOCK, len(self)))
            if wanted[part].any():
                found[part] = scoring.cosines(block[: part.stop - part.start], scales[part], query, query_scale)
        return found

    def runs(self) -> Ints:
        """Return the rows where another session begins than the row before is of: few where sessions came in whole."""
        session = self["session"]
        return np.flatnonzero(np.append(True, session[1:] != session[:-1])[: len(self)]).astype(np.int32)

    def worth_compacting(self) -> bool:
        """Whether enough rows are dead."""
        return self.dead > max(_COMPACT_ROWS, len(self) // _COMPACT_SHARE)

    def compact(self) -> Ints:
        """Drop the dead rows, and return int32 [old rows + 1]: the new row of each old one, -1 for dead and for -1."""
        kept = np.flatnonzero(self["alive"])
        moved = np.full(len(self) + 1, -1, np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        embedded = kept[self["embedded"][kept]]
        vectors, scales = self.vectors(embedded), self["scale"][embedded].copy()
        counts = self["count"][kept].astype(np.int64)
        begins = np.cumsum(counts) - counts
        self._forward.keep(np.repeat(self["start"][kept] - begins, counts) + np.arange(counts.sum()))
        self._columns.keep(kept)
        self["start"][:] = begins
        self.ids = [self.ids[row] for row in kept.tolist()]
        self.rows = {id_: row for row, id_ in enumerate(self.ids)}
        self.dead = 0
        self._segments, self._inverted, self._blocks = [], 0, []
        self._invert()
        if len(embedded):
            self.set_vectors(moved[embedded].astype(np.intp), vectors, scales)
        return moved


class Index:
    """Events and memories in memory. All methods may be called from any thread; holding `lock` makes several one.

    The tables, names and links are for recall, which holds `lock` while it reads them.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.vocabulary = Vocabulary()
        self.events = Table(_EVENT, self.vocabulary)
        self.memories = Table(_MEMORY, self.vocabulary)
        self.sessions, self.projects, self.agents, self.types = Names(), Names(), Names(), Names()
        self.speakers, self.scopes, self.resources, self.topics = Names(), Names(), Names(), Names()
        self.kinds, self.layers = Names(), Names()
        self.speaker_tokens: list[frozenset[str]] = []
        """The tokens of each speaker's name, by its number in `speakers`."""
        self.topic_vectors: dict[int, tuple[scoring.Rows, float]] = {}
        """The vector of each topic's label, by its number in `topics`."""
        self._links = _Growing({"memory": np.int32, "event": np.int32})
        self._waiting: dict[str, list[int]] = {}  # event id → memory rows that name it as their source
        self._ends: dict[int, tuple[int, int]] = {}  # session → its first and last row
        self._width: int | None = None

    def __len__(self) -> int:
        """Return the number of documents."""
        with self.lock:
            return len(self.events.rows) + len(self.memories.rows)

    def __contains__(self, id_: object) -> bool:
        with self.lock:
            return id_ in self.events.rows or id_ in self.memories.rows

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the strings of ids and tokens."""
        with self.lock:
            return self.events.nbytes + self.memories.nbytes + self._links.nbytes

    @property
    def embedded(self) -> tuple[int, int]:
        """How many documents have a vector, of how many."""
        with self.lock:
            return int(self.events["embedded"].sum() + self.memories["embedded"].sum()), len(self)

    def add_events(self, docs: Iterable[EventDoc], *, keep_vectors: bool = False) -> None:
        """Add events, or replace those of the same id. A replaced one loses its vector unless `keep_vectors`.

        Sessions and their events may arrive in any order.
        """
        with self.lock:
            last = {doc.id: doc for doc in docs}  # a batch may repeat an id; its last wins
            ordered = sorted(last.values(), key=lambda doc: (doc.session_id, doc.order, doc.id))
            for at in range(0, len(ordered), _CHUNK):
                self._add_events(ordered[at : at + _CHUNK], keep_vectors=keep_vectors)
            self._compact()

    def add_memories(self, docs: Iterable[MemoryDoc], *, keep_vectors: bool = False) -> None:
        """Add memories, or replace those of the same id. A replaced one loses its vector unless `keep_vectors`."""
        with self.lock:
            last = list({doc.id: doc for doc in docs}.values())
            for at in range(0, len(last), _CHUNK):
                self._add_memories(last[at : at + _CHUNK], keep_vectors=keep_vectors)
            self._compact()

    def remove(self, ids: Iterable[str]) -> int:
        """Forget documents with their tokens, vectors and links, and return how many there were."""
        with self.lock:
            found = 0
            for id_ in ids:
                for table in (self.events, self.memories):
                    row = table.rows.get(id_)
                    if row is not None:
                        self._drop(table, row)
                        found += 1
            self._compact()
            return found

    def set_vectors(self, ids: Sequence[str], rows: scoring.Rows, scales: scoring.Floats) -> int:
        """Give documents their vectors (int8 [n, d] and float32 [n]); return how many of the ids were known.

        All vectors of an index have one width, that of the first. Raises InvalidError for another.
        """
        with self.lock:
            self.check_width(rows.shape[1])
            known = 0
            for table in (self.events, self.memories):
                places = [(at, row) for at, id_ in enumerate(ids) if (row := table.rows.get(id_)) is not None]
                if places:
                    chosen, targets = np.array(places, np.intp).T
                    table.set_vectors(targets, rows[chosen], scales[chosen])
                    known += len(places)
            return known

    def set_topics(self, labels: Sequence[str], rows: scoring.Rows, scales: scoring.Floats) -> None:
        """Give topic labels their vectors."""
        with self.lock:
            self.check_width(rows.shape[1])
            for label, row, scale in zip(labels, rows, scales.tolist(), strict=True):
                self.topic_vectors[self.topics[label]] = (row, scale)

    def topics_without_vector(self) -> list[str]:
        """Return the topic labels of memories that were given no vector yet."""
        with self.lock:
            return [
                label for number, label in enumerate(self.topics.strings) if number not in self.topic_vectors and label
            ]

    def check_width(self, width: int) -> None:
        """Raise InvalidError for a vector of another width than the first one set; the first sets it."""
        if self._width is None:
            self._width = width
        if width != self._width:
            raise InvalidError(
                f"a vector of {width} numbers among vectors of {self._width}",
                hint="clear the vectors before another embedding model's are set",
            )

    def clear_vectors(self) -> None:
        """Forget all vectors, as when the embedding model changes: two spaces are never mixed."""
        with self.lock:
            self.events.clear_vectors()
            self.memories.clear_vectors()
            self.topic_vectors.clear()
            self._width = None

    def neighbours(self, event_id: str, *, before: int, after: int) -> tuple[str, ...]:
        """Return the ids around an event in its session, in order, without itself; fewer at the session's ends."""
        with self.lock:
            row = self.events.rows.get(event_id)
            if row is None:
                return ()
            earlier = self._walk("prev", row, before)
            return tuple(self.events.ids[r] for r in [*reversed(earlier), *self._walk("next", row, after)])

    def links(self) -> tuple[Ints, Ints]:
        """Return the rows of memories and of the events they were read from, pair by pair, living ones only."""
        memory, event = self._links["memory"], self._links["event"]
        if self.events.dead or self.memories.dead:
            living = self.events["alive"][event] & self.memories["alive"][memory]
            memory, event = memory[living], event[living]
        return memory, event

    def _add_events(self, batch: Sequence[EventDoc], *, keep_vectors: bool) -> None:
        kept = self._take_out(self.events, [doc.id for doc in batch], keep_vectors=keep_vectors)
        rows = self.events.append(
            [doc.id for doc in batch],
            [doc.tokens for doc in batch],
            {
                "ts": [doc.ts for doc in batch],
                "order": [doc.order for doc in batch],
                "session": self.sessions.codes(doc.session_id for doc in batch),
                "project": self.projects.codes(doc.project for doc in batch),
                "agent": self.agents.codes(doc.agent for doc in batch),
                "speaker": self._speakers(doc.speaker for doc in batch),
                "type": self.types.codes(doc.type for doc in batch),
            },
        )
        self._place(rows)
        for id_, row in zip((doc.id for doc in batch), rows, strict=True):
            for memory in self._waiting.pop(id_, ()):
                self._links.append(1, {"memory": memory, "event": row})
        self._put_back(self.events, kept)

    def _add_memories(self, batch: Sequence[MemoryDoc], *, keep_vectors: bool) -> None:
        kept = self._take_out(self.memories, [doc.id for doc in batch], keep_vectors=keep_vectors)
        rows = self.memories.append(
            [doc.id for doc in batch],
            [doc.tokens for doc in batch],
            {
                "ts": [doc.updated_at for doc in batch],
                "created": [doc.created_at for doc in batch],
                "valid_from": [-FOREVER if doc.valid_from is None else doc.valid_from for doc in batch],
                "valid_to": [FOREVER if doc.valid_to is None else doc.valid_to for doc in batch],
                "scope": self.scopes.codes(doc.scope for doc in batch),
                "resource": self.resources.codes(doc.resource_id for doc in batch),
                "session": self.sessions.codes(doc.session_id for doc in batch),
                "project": self.projects.codes(doc.project for doc in batch),
                "agent": self.agents.codes(doc.agent for doc in batch),
                "type": self.types.codes(doc.type for doc in batch),
                "kind": self.kinds.codes(doc.kind for doc in batch),
                "layer": self.layers.codes(doc.layer for doc in batch),
                "topic": self.topics.codes(doc.topic for doc in batch),
                "salience": [doc.salience for doc in batch],
                "superseded": [doc.superseded for doc in batch],
            },
        )
        pairs = []
        for doc, row in zip(batch, rows, strict=True):
            for source in dict.fromkeys(doc.sources):
                event = self.events.rows.get(source)
                if event is None:
                    self._waiting.setdefault(source, []).append(row)
                else:
                    pairs.append((row, event))
        if pairs:
            both = np.array(pairs, np.int32)
            self._links.append(len(pairs), {"memory": both[:, 0], "event": both[:, 1]})
        self._put_back(self.memories, kept)

    def _speakers(self, names: Iterable[str]) -> list[int]:
        codes = self.speakers.codes(names)
        new = self.speakers.strings[len(self.speaker_tokens) :]
        self.speaker_tokens.extend(frozenset(text.analyse(name)) for name in new)
        return codes

    def _take_out(
        self, table: Table, ids: Sequence[str], *, keep_vectors: bool
    ) -> tuple[list[str], scoring.Rows, scoring.Floats] | None:
        """Remove what will be replaced; return the vectors to put back. Links to an event wait for the new one."""
        old = [(id_, row) for id_ in ids if (row := table.rows.get(id_)) is not None]
        with_vectors = [(id_, row) for id_, row in old if keep_vectors and table["embedded"][row]]
        kept = None
        if with_vectors:
            rows = np.array([row for _, row in with_vectors], np.intp)
            kept = ([id_ for id_, _ in with_vectors], table.vectors(rows), table["scale"][rows].copy())
        for id_, row in old:
            if table is self.events:
                memories, events = self.links()
                waiting = memories[events == row].tolist()
                if waiting:
                    self._waiting.setdefault(id_, []).extend(waiting)
            self._drop(table, row)
        return kept

    def _put_back(self, table: Table, kept: tuple[list[str], scoring.Rows, scoring.Floats] | None) -> None:
        if kept is not None:
            ids, vectors, scales = kept
            table.set_vectors(np.array([table.rows[id_] for id_ in ids], np.intp), vectors, scales)

    def _drop(self, table: Table, row: int) -> None:
        if table is self.events:
            self._unplace(row)
        table.clear(row)

    def _place(self, rows: range) -> None:
        """Put new events, sorted by session and order, into their sessions' lists."""
        events = self.events
        prev, following, order = events["prev"], events["next"], events["order"]
        sessions = events["session"][rows.start :].tolist()
        for row, session in zip(rows, sessions, strict=True):
            ends = self._ends.get(session)
            if ends is None:
                self._ends[session] = (row, row)
                prev[row] = following[row] = -1
                continue
            first, last = ends
            key = (order[row], events.ids[row])
            if key < (order[first], events.ids[first]):
                before, after = -1, first
            else:
                before = last
                while (order[before], events.ids[before]) > key:
                    before = int(prev[before])
                after = int(following[before])
            prev[row], following[row] = before, after
            if before >= 0:
                following[before] = row
            if after >= 0:
                prev[after] = row
            self._ends[session] = (row if before < 0 else first, row if after < 0 else last)

    def _unplace(self, row: int) -> None:
        prev, following = self.events["prev"], self.events["next"]
        before, after, session = int(prev[row]), int(following[row]), int(self.events["session"][row])
        if before >= 0:
            following[before] = after
        if after >= 0:
            prev[after] = before
        first, last = self._ends[session]
        if first == last == row:
            del self._ends[session]
        else:
            self._ends[session] = (after if first == row else first, before if last == row else last)

    def _walk(self, column: str, row: int, steps: int) -> list[int]:
        pointers = self.events[column]
        found: list[int] = []
        while len(found) < steps and (row := int(pointers[row])) >= 0:
            found.append(row)
        return found

    def _compact(self) -> None:
        if self.events.worth_compacting():
            self._relink("event", self.events.compact)
            moved = self._moved
            for column in ("prev", "next"):
                self.events[column][:] = moved[self.events[column]]
            self._ends = {s: (int(moved[a]), int(moved[b])) for s, (a, b) in self._ends.items()}
        if self.memories.worth_compacting():
            self._relink("memory", self.memories.compact)
            moved = self._moved
            waiting = {id_: [int(moved[row]) for row in rows if moved[row] >= 0] for id_, rows in self._waiting.items()}
            self._waiting = {id_: rows for id_, rows in waiting.items() if rows}

    def _relink(self, column: str, compact: Callable[[], Ints]) -> None:
        memory, event = self.links()
        alive = _Growing({"memory": np.int32, "event": np.int32})
        alive.append(len(memory), {"memory": memory, "event": event})
        self._moved = compact()
        alive[column][:] = self._moved[alive[column]]
        self._links = alive
