"""The inverted side of a table: by token, the rows that hold it and how often.

Theory of operation. The newest rows, at most `_TAIL`, are scanned; older ones lie in immutable segments of consecutive
rows, which are merged like the carries of a binary counter until they hold `_SEGMENT` postings, so that no addition
waits for a large merge. A removed row's numbers stay in the segments until the table is compacted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index.arrays import Arrays, Growing, Ints

_TAIL = 1024  # rows scanned for a token: 15,000 token numbers, some 10 microseconds; fewer would merge more often
_TAIL_POSTINGS = 65_536  # the same bound where documents are long
_SEGMENT = 1 << 20  # postings that are never merged further: merging so many takes some 20 ms, and nobody waits longer


def rows_among(held: Ints, rows: npt.NDArray[np.intp], first: int, end: int) -> npt.NDArray[np.intp]:
    """Return where in `held`, of rows from `first` to before `end`, some of ascending `rows` stand."""
    inside = rows[rows.searchsorted(first) : rows.searchsorted(end)]
    if len(inside) < 2:
        return np.flatnonzero(held == np.int32(inside[0])) if len(inside) else inside
    chosen = np.zeros(end - first, np.bool_)
    chosen[inside - first] = True
    return np.flatnonzero(chosen[held - np.int32(first)])


@dataclass(frozen=True, slots=True)
class Segment:
    """The inverted side of some rows: for `terms[i]`, `rows` and `tfs` from `offsets[i]` to `offsets[i + 1]`.

    The rows are those from `first` to before `end`.
    """

    first: int
    end: int
    terms: Ints
    offsets: Ints
    rows: Ints
    tfs: npt.NDArray[np.uint16]

    @staticmethod
    def of(first: int, end: int, terms: Ints, rows: Ints, tfs: npt.NDArray[np.uint16]) -> Segment:
        """Build from parallel arrays in the order of rows."""
        keys = (terms.astype(np.int64) << 32) | np.arange(len(terms))  # a plain sort of these is the fastest stable one
        keys.sort()
        by_term = keys & 0xFFFFFFFF
        return Segment.ordered(first, end, (keys >> 32).astype(np.int32), rows[by_term], tfs[by_term])

    @staticmethod
    def ordered(first: int, end: int, terms: Ints, rows: Ints, tfs: npt.NDArray[np.uint16]) -> Segment:
        """Build from parallel arrays in the order of terms, then rows."""
        starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1])) if len(terms) else np.zeros(0, np.intp)
        return Segment(first, end, terms[starts], np.append(starts, len(terms)).astype(np.int32), rows, tfs)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (self.terms, self.offsets, self.rows, self.tfs))

    def merged(self, later: Segment) -> Segment:
        """Return this and the segment of the rows after it as one."""
        terms = np.zeros(len(self) + len(later), np.int32)
        rows, tfs = np.zeros_like(terms), np.zeros(len(terms), np.uint16)
        for one, other, side in ((self, later, "left"), (later, self, "right")):
            before = other.offsets[np.searchsorted(other.terms, one.terms, side)]  # type: ignore[call-overload]
            counts = np.diff(one.offsets)
            at = np.arange(len(one)) + np.repeat(before, counts)
            terms[at], rows[at], tfs[at] = np.repeat(one.terms, counts), one.rows, one.tfs
        return Segment.ordered(self.first, later.end, terms, rows, tfs)

    def moved(self, moved: Ints) -> Segment:
        """Return this without the rows that `moved` maps to -1, the others under their new numbers."""
        rows = moved[self.rows]
        kept = rows >= 0
        terms = np.repeat(self.terms, np.diff(self.offsets))[kept]
        left = moved[self.first : self.end]
        left = left[left >= 0]
        first, end = (int(left[0]), int(left[-1]) + 1) if len(left) else (0, 0)
        return Segment.ordered(first, end, terms, rows[kept], self.tfs[kept])

    def pack(self, prefix: str, arrays: Arrays) -> list[int]:
        """Put what this holds into arrays; return the rest."""
        for name in ("terms", "offsets", "rows", "tfs"):
            arrays[f"{prefix}.{name}"] = getattr(self, name)
        return [self.first, self.end]

    @staticmethod
    def unpacked(prefix: str, arrays: Arrays, rest: list[int]) -> Segment:
        """Return what was packed."""
        terms, offsets, rows, tfs = (arrays[f"{prefix}.{name}"] for name in ("terms", "offsets", "rows", "tfs"))
        return Segment(rest[0], rest[1], terms, offsets, rows, tfs)

    def find(self, term: int) -> slice:
        """Return where in `rows` the holders of a token stand; empty for one that nobody holds."""
        at = bisect_left(self.terms.data, term)  # half the time of numpy's, and the interpreter is kept
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.offsets[at]), int(self.offsets[at + 1]))

    def terms_of(self, rows: npt.NDArray[np.intp]) -> Ints:
        """Return what some rows hold, rows beyond this segment left out."""
        at = rows_among(self.rows, rows, self.first, self.end)
        found: Ints = self.terms[np.searchsorted(self.offsets, at.astype(np.int32), side="right") - 1]
        return found


class Postings:
    """The inverted index of one table: segments of its older rows, and a tail of its newest, which is scanned."""

    def __init__(self) -> None:
        self.loading = False
        """Whether rows come in bulk: then the tail grows to a segment's size."""
        self._segments: list[Segment] = []
        self._tail = Growing({"term": np.int32, "row": np.int32, "tf": np.uint16})
        self._inverted = 0  # rows before this one are in a segment
        self._rows = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._tail.nbytes + sum(segment.nbytes for segment in self._segments)

    def append(self, rows: int, postings: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add so many rows; `postings` are `term`, `row` and `tf`, side by side, in the order of rows."""
        self._tail.append(len(postings["term"]), postings)
        self._rows += rows
        if self._tail.used > (_SEGMENT if self.loading else _TAIL_POSTINGS) or (
            not self.loading and self._rows - self._inverted >= _TAIL
        ):
            self._invert()

    def loaded(self) -> None:
        """End a bulk load."""
        self.loading = False
        if self._tail.used > _TAIL_POSTINGS or self._rows - self._inverted >= _TAIL:
            self._invert()

    def of(self, term: int) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """Return the rows that hold a token, ascending, each once, and how often. Removed rows are among them."""
        found = [(s.rows[at], s.tfs[at]) for s in self._segments if (at := s.find(term)).stop]
        hits = np.flatnonzero(self._tail["term"] == term)
        if len(hits) or not found:
            found.append((self._tail["row"][hits], self._tail["tf"][hits]))
        rows, tfs = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
        return rows, tfs

    def terms_of(self, rows: npt.NDArray[np.intp]) -> Ints:
        """Return what some ascending rows hold, each token once for each row that holds it."""
        waiting = rows_among(self._tail["row"], rows, self._inverted, self._rows)
        return np.concatenate([self._tail["term"][waiting], *(segment.terms_of(rows) for segment in self._segments)])

    def compact(self, moved: Ints, kept: int) -> None:
        """Take the new number of each row, -1 for none; `kept` rows are left."""
        self._invert()
        segments, self._segments = self._segments, []
        for segment in segments:
            self._push(segment.moved(moved))
        self._inverted = self._rows = kept

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        """Put what this holds into arrays; return the rest, of lists and numbers."""
        self._tail.pack(f"{prefix}.tail", arrays)
        segments = [s.pack(f"{prefix}.segment.{at}", arrays) for at, s in enumerate(self._segments)]
        return {"segments": segments, "inverted": self._inverted, "rows": self._rows}

    def unpack(self, prefix: str, arrays: Arrays, rest: Any) -> None:
        """Become what was packed."""
        self._tail.unpack(f"{prefix}.tail", arrays)
        self._segments = [
            Segment.unpacked(f"{prefix}.segment.{at}", arrays, ends) for at, ends in enumerate(rest["segments"])
        ]
        self._inverted, self._rows = rest["inverted"], rest["rows"]

    def _invert(self) -> None:
        """Make the tail a segment, and merge it with those before it that are not much larger."""
        tail = self._tail
        newest = Segment.of(self._inverted, self._rows, tail["term"], tail["row"], tail["tf"])
        tail.used = 0
        self._inverted = self._rows
        self._push(newest)

    def _push(self, newest: Segment) -> None:
        while self._segments:
            last = self._segments[-1]
            if len(last) >= 2 * len(newest) or len(last) + len(newest) > _SEGMENT:
                break
            newest = self._segments.pop().merged(newest)
        self._segments.append(newest)
