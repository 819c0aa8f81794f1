"""The rows of one kind of document: columns, ids, postings and vectors that belong together.

Theory of operation. Rows are only ever appended, so a row number names a document until the table is compacted.
Removing a document clears its row, id and vector at once; its tokens stay in the postings, masked, until a quarter of
the rows are dead and the table is compacted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index import vectors as vector_blocks
from scrubjay.index.arrays import Arrays, Growing, Ints, Mask, floor_of_best
from scrubjay.index.documents import DocumentKind
from scrubjay.index.ids import IdColumn, Ids
from scrubjay.index.postings import Postings
from scrubjay.index.vectors import Vectors
from scrubjay.index.vocabulary import Vocabulary
from scrubjay_shared import scoring

_COMPACT_ROWS = 1024  # dead rows below this number cost nothing worth a compaction
_COMPACT_SHARE = 4  # one dead row in four: a search then wastes at most a third of its work
_PICKED = 4096  # rows up to which they are always picked out
_ROW = {"alive": np.bool_, "embedded": np.bool_, "scale": np.float32, "length": np.int32, "marks": np.uint8}


class Table:
    """The rows of one kind. `table["ts"]` is a column, valid while the index is locked; a dead row is not `alive`.

    `embedded` rows are alive. `ids[row]` is the id of a row, `rows[id]` the row of an id. The counts are kept, not
    counted: `len(rows)` and `embedded` living rows, `tokens` all that they hold together.
    """

    def __init__(self, number: int, kind: DocumentKind, vocabulary: Vocabulary) -> None:
        """Make an empty table; `number` is its own in the vocabulary."""
        self.kind = kind
        self.rows = Ids()
        self.ids = IdColumn(self.rows)
        self.dead = 0
        self.embedded = 0
        self.tokens = 0
        self.postings = Postings()
        self._number = number
        self._vocabulary = vocabulary
        self._columns = Growing({**_ROW, **kind.columns})
        self._counts = {name: np.zeros(64, np.int64) for name in kind.counted}
        self._vectors: Vectors | None = None

    def __len__(self) -> int:
        """Return the number of rows, dead ones included: the length of every column."""
        return self._columns.used

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    @property
    def nbytes(self) -> int:
        """Bytes of columns, ids, postings and vectors."""
        vectors = 0 if self._vectors is None else self._vectors.nbytes
        return self._columns.nbytes + self.rows.nbytes + self.postings.nbytes + vectors

    def append(self, ids: Sequence[str], tokens: Sequence[str], columns: Mapping[str, Any]) -> range:
        """Add documents whose ids are new, and return their rows."""
        first = len(self)
        lengths = np.fromiter((joined.count(" ") + 1 if joined else 0 for joined in tokens), np.int64, len(tokens))
        words = " ".join(filter(None, tokens)).split(" ") if lengths.any() else []
        keys = np.repeat(np.arange(first, first + len(tokens)) << 32, lengths) | self._vocabulary.numbers(words)
        keys.sort()
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.intp)
        distinct = (keys[starts] & 0xFFFFFFFF).astype(np.int32)
        tfs = np.minimum(np.diff(starts, append=len(keys)), 65_535)
        self._vocabulary.hold(self._number, distinct)
        postings = {"term": distinct, "row": keys[starts] >> 32, "tf": tfs}
        marks = np.zeros(len(tokens), np.uint8)
        np.bitwise_or.at(marks, (keys[starts] >> 32) - first, self._vocabulary.marks(distinct))
        self._columns.append(len(tokens), {**columns, "alive": True, "length": lengths, "marks": marks})
        self.rows.append(ids)
        rows = range(first, len(self))
        self.tokens += int(lengths.sum())
        self._count(np.arange(rows.start, rows.stop), 1)
        self.postings.append(len(tokens), postings)
        return rows

    def _count(self, rows: npt.NDArray[np.intp], by: int) -> None:
        for name in self._counts:
            numbers = self[name][rows]
            need = int(numbers.max(initial=0)) + 1
            if need > len(self._counts[name]):
                self._counts[name] = np.append(self._counts[name], np.zeros(2 * need, np.int64))
            np.add.at(self._counts[name], numbers, by)

    def count_of(self, column: str, number: int) -> int:
        """Return how many living rows carry a number (0 or above) in the column `type` or `speaker`."""
        counts = self._counts[column]
        return int(counts[number]) if 0 <= number < len(counts) else 0

    def clear(self, rows: npt.NDArray[np.intp]) -> None:
        """Forget what living rows (ascending) say. They stay, dead, until the table is compacted."""
        if not len(rows):
            return
        self._vocabulary.release(self._number, self.postings.terms_of(rows))
        self._count(rows, -1)
        self.tokens -= int(self["length"][rows].sum())
        self.embedded -= int(np.count_nonzero(self["embedded"][rows]))
        if self._vectors is not None:
            embedded = rows[self["embedded"][rows]]
            self._vectors.put(embedded, np.zeros((len(embedded), self._vectors.width), np.int8))
        self["alive"][rows] = False
        self["embedded"][rows] = False
        self.rows.clear(rows)
        self.dead += len(rows)

    def holders(self, term: int) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """Return the living rows that hold a token, ascending, each once, and how often they hold it."""
        rows, tfs = self.postings.of(term)
        if self.dead:
            living = self["alive"][rows]
            rows, tfs = rows[living], tfs[living]
        return rows, tfs

    def df(self, term: int) -> int:
        """Return how many living documents hold a token."""
        return self._vocabulary.holders(self._number, term)

    def set_vectors(self, rows: npt.NDArray[np.intp], vectors: scoring.Rows, scales: scoring.Floats) -> None:
        """Put int8 vectors into living rows, all different."""
        if not len(rows):
            return
        if self._vectors is None:
            self._vectors = Vectors(vectors.shape[1])
        if not (rows[1:] > rows[:-1]).all():
            order = np.argsort(rows)
            rows, vectors, scales = rows[order], vectors[order], scales[order]
        self._vectors.put(rows, vectors)
        self["scale"][rows] = scales
        self.embedded += int(np.count_nonzero(~self["embedded"][rows]))
        self["embedded"][rows] = True

    def vectors(self, rows: npt.NDArray[np.intp]) -> scoring.Rows:
        """Return a copy of the int8 vectors of rows, in any order, zeros for those that are not embedded."""
        if self._vectors is None:
            return np.zeros((len(rows), 0), np.int8)
        if (rows[1:] >= rows[:-1]).all():
            return self._vectors.get(rows)
        order = np.argsort(rows)
        found = np.empty((len(rows), self._vectors.width), np.int8)
        found[order] = self._vectors.get(rows[order])
        return found

    def clear_vectors(self) -> None:
        """Forget all vectors."""
        self._vectors = None
        self.embedded = 0
        self["embedded"][:] = False

    def cosines(self, query: scoring.Rows, query_scale: float, wanted: Mask) -> scoring.Floats:
        """Return float32 [len]: the cosine of each wanted row with the query, 0 for rows that are not embedded."""
        found = np.zeros(len(self), np.float32)
        if self._vectors is not None:
            scales = self["scale"]
            for number in range(-(-len(self) // vector_blocks.BLOCK)):
                part = slice(number * vector_blocks.BLOCK, min((number + 1) * vector_blocks.BLOCK, len(self)))
                block = self._vectors.block(number)
                if block is not None and wanted[part].any():
                    found[part] = scoring.cosines(block[: part.stop - part.start], scales[part], query, query_scale)
        return found

    def cosines_of(self, rows: npt.NDArray[np.intp], query: scoring.Rows, query_scale: float) -> scoring.Floats:
        """Return float32 [rows]: the cosine of each of these rows with the query, 0 for one that is not embedded."""
        if self._vectors is None:
            return np.zeros(len(rows), np.float32)
        if len(rows) > _PICKED and 3 * len(rows) > len(self):  # cheaper than picking them out
            wanted = np.zeros(len(self), np.bool_)
            wanted[rows] = True
            return self.cosines(query, query_scale, wanted)[rows]
        if not (rows[1:] >= rows[:-1]).all():
            order = np.argsort(rows)
            found = np.empty(len(rows), np.float32)
            found[order] = self.cosines_of(rows[order], query, query_scale)
            return found
        products = self._vectors.products(rows, query)
        return np.asarray(np.asarray(products * query_scale, np.float32) * self["scale"][rows], np.float32)

    def near(
        self, query: scoring.Rows, query_scale: float, seen: Mask | None
    ) -> tuple[npt.NDArray[np.intp], scoring.Floats]:
        """Return the embedded rows that may be nearest to a query, ascending, and their cosines.

        `seen` says which rows count, None all. In a table of up to `EXACT` rows these are all; in a larger one, the
        rows whose signs agree best with the query's: at least `RESCORED` of them, one in `RESCORED_SHARE`, and all that
        agree as well as the last of these.
        """
        held = self["embedded"] if seen is None or self.embedded == 0 else self["embedded"] & seen
        among = self.embedded if seen is None else int(np.count_nonzero(held))
        if not among or self._vectors is None:
            return np.zeros(0, np.intp), np.zeros(0, np.float32)
        if len(self) <= vector_blocks.EXACT or among <= 2 * vector_blocks.RESCORED:
            rows = np.flatnonzero(held)
            if 3 * among > len(self):  # then it is cheaper to compare all than to pick them out
                return rows, self.cosines(query, query_scale, held)[rows]
        else:
            rows = self._vectors.agreeing(query, held if among < len(self) else None, len(self), among)
        return rows, self.cosines_of(rows, query, query_scale)

    def nearest(
        self, query: scoring.Rows, query_scale: float, seen: Mask | None, count: int
    ) -> tuple[npt.NDArray[np.intp], scoring.Floats]:
        """Return the `count` nearest of `near`, in no order, and their cosines; fewer if there are fewer."""
        rows, cosines = self.near(query, query_scale, seen)
        chosen = self.best(cosines, rows, count)
        return rows[chosen], cosines[chosen]

    def best(self, values: npt.NDArray[Any], rows: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
        """Return the places of the `count` highest values among those of `rows`, in no order.

        Among equals the newest come first, then the first ids, so that the answer depends on what the table holds and
        not on how it came there.
        """
        if count >= len(rows):
            return np.arange(len(rows))
        if not count:
            return np.zeros(0, np.intp)
        chosen = np.flatnonzero(values >= floor_of_best(values, count))
        among = values[chosen]
        last = np.sort(among)[-count]  # rather than partitioned: see `floor_of_best`
        above, equal = chosen[among > last], chosen[among == last]
        left = count - len(above)
        if left < len(equal):
            ts = self["ts"][rows[equal]]
            newest = np.partition(ts, len(ts) - left)[len(ts) - left]
            above = np.concatenate([above, equal[ts > newest]])
            equal = equal[ts == newest]
            left = count - len(above)
            if left < len(equal):
                equal = equal[self.rows.order(rows[equal])[:left]]
        return np.concatenate([above, equal])

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        """Put what this holds into arrays; return the rest, of lists, dicts, strings and numbers."""
        self._columns.pack(f"{prefix}.column", arrays)
        for name, counts in self._counts.items():
            arrays[f"{prefix}.count.{name}"] = counts.copy()
        return {
            "ids": self.rows.pack(f"{prefix}.ids", arrays),
            "postings": self.postings.pack(prefix, arrays),
            "vectors": None if self._vectors is None else self._vectors.pack(f"{prefix}.vectors", arrays),
            "counts": [self.dead, self.embedded, self.tokens],
        }

    def unpack(self, prefix: str, arrays: Arrays, rest: Any) -> None:
        """Become what was packed."""
        self._columns.unpack(f"{prefix}.column", arrays)
        self._counts = {name: arrays[f"{prefix}.count.{name}"] for name in self._counts}
        self.rows.unpack(f"{prefix}.ids", arrays, rest["ids"])
        self.postings.unpack(prefix, arrays, rest["postings"])
        if rest["vectors"] is not None:
            self._vectors = Vectors.unpacked(f"{prefix}.vectors", arrays, rest["vectors"])
        self.dead, self.embedded, self.tokens = rest["counts"]

    def worth_compacting(self) -> bool:
        """Whether enough rows are dead."""
        return self.dead > max(_COMPACT_ROWS, len(self) // _COMPACT_SHARE)

    def compact(self) -> Ints:
        """Drop the dead rows, and return int32 [old rows + 1]: the new row of each old one, -1 for dead and for -1."""
        kept = np.flatnonzero(self["alive"])
        moved = np.full(len(self) + 1, -1, np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        self.postings.compact(moved, len(kept))
        if self._vectors is not None:
            fresh = Vectors(self._vectors.width)
            embedded = kept[self["embedded"][kept]]
            for at in range(0, len(embedded), vector_blocks.BLOCK):
                some = embedded[at : at + vector_blocks.BLOCK]
                fresh.put(moved[some].astype(np.intp), self._vectors.get(some))
            self._vectors = fresh
        self._columns.keep(kept)
        self.rows.compact(kept, moved)
        self.dead = 0
        return moved
