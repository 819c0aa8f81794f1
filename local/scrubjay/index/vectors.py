"""int8 vectors by row, and which of them are nearest to a question.

Theory of operation. Vectors are compared exactly in tables up to `EXACT` rows. In larger ones the signs of their
components choose which rows are: Hamming distance over 48 bytes instead of 384. Plain signs, not those around the mean
of all vectors, which choose a little better: a mean would move with every document, and so would the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index.arrays import Arrays, Mask, RowNumbers, Words
from scrubjay_shared import scoring

BLOCK = 16_384  # rows of vectors allocated together, so that growing copies nothing: 6 MB, of which those used count
SIGN_BLOCK = 32_768  # rows whose signs are compared at a time: fewer cost in calls, more do not fit the cache
EXACT = 16_384  # rows: comparing so many exactly takes 1.1 ms, and choosing among them by signs first no less
RESCORED = 4096  # rows compared exactly among more: fewer lose neighbours (docs/decisions.md), more cost 0.2 us each
RESCORED_SHARE = 32  # and among more than 131,072, one in so many: signs alone tell less the more rows there are
_NEVER = np.iinfo(np.uint16).max  # the distance of a row that does not count
_PICKED = 4096  # vectors picked out at a time to be compared: 1.5 MB at 384 dimensions
_SAMPLED = 16  # one distance in so many tells how far the nearest reach


class Vectors:
    """int8 vectors by row in blocks, and the signs of their components as bits, 48 bytes a row for 384 of them."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._words = -(-width // 64)
        self._blocks: list[scoring.Rows] = []
        self._used = 0  # rows before this one may have a vector
        self._signs: list[Words] = []  # [words, SIGN_BLOCK]: one word of many rows lies together
        self._picked = np.empty((_PICKED, width), np.int8)  # used again and again: new memory would cost more than it

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays; rows of a block that were never written to take no memory."""
        return self._used * self.width + sum(block.nbytes for block in self._signs)

    def _parts(self, rows: npt.NDArray[np.intp], size: int) -> Iterator[tuple[int, slice, npt.NDArray[np.intp]]]:
        """Split ascending rows by blocks: the block, the places in `rows`, and the rows within the block."""
        if not len(rows):
            return
        ends = np.searchsorted(rows, np.arange(rows[0] // size + 1, rows[-1] // size + 2) * size).tolist()
        start = 0
        for block, end in enumerate(ends, int(rows[0]) // size):
            if end > start:
                yield block, slice(start, end), rows[start:end] - block * size
            start = end

    def put(self, rows: npt.NDArray[np.intp], vectors: scoring.Rows) -> None:
        """Set the vectors of ascending rows."""
        last = int(rows[-1]) if len(rows) else -1
        self._used = max(self._used, last + 1)
        while len(self._blocks) * BLOCK <= last:
            self._blocks.append(np.zeros((BLOCK, self.width), np.int8))
        while len(self._signs) * SIGN_BLOCK <= last:
            self._signs.append(np.zeros((self._words, SIGN_BLOCK), np.uint64))
        for block, part, within in self._parts(rows, BLOCK):
            self._blocks[block][within] = vectors[part]
        signs = self._signs_of(vectors)
        for block, part, within in self._parts(rows, SIGN_BLOCK):
            self._signs[block][:, within] = signs[part].T

    def _signs_of(self, vectors: scoring.Rows) -> Words:
        padded = np.zeros((len(vectors), self._words * 8), np.uint8)
        packed = np.packbits(vectors > 0, axis=1)
        padded[:, : packed.shape[1]] = packed
        return padded.view(np.uint64)

    def get(self, rows: npt.NDArray[np.intp]) -> scoring.Rows:
        """Return a copy of the vectors of ascending rows, zeros where none was set."""
        found = np.zeros((len(rows), self.width), np.int8)
        self._pick(rows, found)
        return found

    def products(self, rows: npt.NDArray[np.intp], query: scoring.Rows) -> npt.NDArray[np.float64]:
        """Return float64 [rows]: the exact product of each of ascending rows with a query; 0 where none was set."""
        found = np.zeros(len(rows), np.float64)
        used = rows[: np.searchsorted(rows, len(self._blocks) * BLOCK)]
        for at in range(0, len(used), _PICKED):
            some = used[at : at + _PICKED]
            picked = self._picked[: len(some)]
            self._pick(some, picked)
            found[at : at + len(some)] = scoring.products(picked, query)
        return found

    def _pick(self, rows: npt.NDArray[np.intp], into: scoring.Rows) -> None:
        for block, part, within in self._parts(rows, BLOCK):
            if block < len(self._blocks):
                np.take(self._blocks[block], within, axis=0, out=into[part], mode="clip")  # "clip" copies just once

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        """Put what this holds into arrays; return the rest."""
        last = len(self._blocks) - 1
        for at, block in enumerate(self._blocks):
            arrays[f"{prefix}.block.{at}"] = block if at < last else block[: self._used - at * BLOCK]
        arrays.update((f"{prefix}.signs.{at}", block) for at, block in enumerate(self._signs))
        return {"width": self.width, "used": self._used, "blocks": len(self._blocks), "signs": len(self._signs)}

    @staticmethod
    def unpacked(prefix: str, arrays: Arrays, rest: Any) -> Vectors:
        """Return what was packed."""
        made = Vectors(rest["width"])
        made._used = rest["used"]
        for at in range(rest["blocks"]):
            block = arrays[f"{prefix}.block.{at}"]
            if len(block) < BLOCK:
                whole = np.zeros((BLOCK, made.width), np.int8)  # of which the system gives what is written to
                whole[: len(block)] = block
                block = whole
            made._blocks.append(block)
        made._signs = [arrays[f"{prefix}.signs.{at}"] for at in range(rest["signs"])]
        return made

    def block(self, number: int) -> scoring.Rows | None:
        """Return a block itself, None for one that no vector was put into."""
        return self._blocks[number] if number < len(self._blocks) else None

    def distances(self, query: scoring.Rows, count: int) -> npt.NDArray[np.uint16]:
        """Return of each of the first `count` rows in how many signs it differs from the query."""
        wanted = self._signs_of(query[None, :])[0]
        found = np.zeros(count, np.uint16)
        differing = np.empty(SIGN_BLOCK, np.uint64)
        bits, some = np.empty(SIGN_BLOCK, np.uint8), np.empty(SIGN_BLOCK, np.uint8)
        for number, signs in enumerate(self._signs):
            part = found[number * SIGN_BLOCK : (number + 1) * SIGN_BLOCK]
            used = len(part)
            for first in range(0, self._words, 3):  # three words differ in 192 signs at most, which a byte holds
                some[:used] = 0
                for word, value in zip(signs[first : first + 3], wanted[first : first + 3], strict=True):
                    np.bitwise_xor(word[:used], value, out=differing[:used])
                    np.bitwise_count(differing[:used], out=bits[:used])
                    np.add(some[:used], bits[:used], out=some[:used])
                np.add(part, some[:used], out=part)
        return found

    def agreeing(self, query: scoring.Rows, held: Mask | None, count: int, among: int) -> RowNumbers:
        """Return the rows whose signs agree best with the query's, ascending, among the first `count`.

        At least `RESCORED` of them, one in `RESCORED_SHARE` of `among`, and all that agree as well as the last of
        these. `held` says which rows count, `among` of them; None all.
        """
        distances = self.distances(query, count)
        if held is not None:
            distances[~held] = _NEVER
        least = max(RESCORED, among // RESCORED_SHARE)
        # Those that a sample says are twice as many as needed: to count the distances of these is less work.
        sample = np.cumsum(np.bincount(distances[::_SAMPLED], minlength=1))
        bound = min(int(np.searchsorted(sample, 2 * least // _SAMPLED + 8)), self.width)
        near = np.flatnonzero(distances <= bound)
        if len(near) <= least and bound < self.width:
            near = np.flatnonzero(distances <= self.width)
        found = distances[near]
        worst = int(np.searchsorted(np.cumsum(np.bincount(found, minlength=1)), least))
        return near[found <= worst]
