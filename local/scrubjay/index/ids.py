"""The ids of rows, both ways, in a tenth of the memory of strings in a dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scrubjay.index.arrays import Arrays, Growing, Ints, Words

_ID_BYTES = 26  # of a ULID
_RECENT = 16_384  # ids in a dict, 2 MB, before they are sorted in among the others: some 10 ms at a million


class Ids(Mapping[str, int]):
    """The row of each living id. `ids.of(row)` is the other way about, "" for a dead row.

    A million strings in a list and a dict take 210 MB. Here an id is 26 bytes of an array (our own ids are ULIDs),
    found through its hash: a sorted array of all, and a dict of the newest. Ids that do not fit stand beside.
    """

    def __init__(self) -> None:
        self._living = 0
        self._bytes = Growing({"id": f"S{_ID_BYTES}"})
        self._recent: dict[str, int] = {}
        self._unsorted: list[tuple[Words, Ints]] = []
        self._hashes, self._rows = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        self._long: dict[int, str] = {}
        self._long_rows: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many rows are alive."""
        return self._living

    def __iter__(self) -> Iterator[str]:
        return filter(None, map(self.of, range(self._bytes.used)))

    def __getitem__(self, id_: str) -> int:
        found = self._recent.get(id_, self._long_rows.get(id_))
        if found is None:
            found = int(self.find([id_])[0])
        if found < 0:
            raise KeyError(id_)
        return found

    @property
    def count(self) -> int:
        """How many rows there are, dead ones included."""
        return self._bytes.used

    def of(self, row: int) -> str:
        """Return the id of a row."""
        found: bytes = self._bytes["id"][row]
        return found.decode() or self._long.get(row, "")

    def of_all(self, rows: npt.NDArray[np.intp]) -> list[str]:
        """Return the ids of some rows."""
        found: list[bytes] = self._bytes["id"][rows].tolist()
        return [id_.decode() or self._long.get(row, "") for id_, row in zip(found, rows.tolist(), strict=True)]

    def find(self, ids: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the rows of ids, -1 for one that is not there."""
        self._sort()
        found = np.full(len(ids), -1, np.intp)
        if len(self._hashes) and len(ids):
            fixed = _fixed(ids)
            hashes = _hashes(fixed)
            at = np.searchsorted(self._hashes, hashes)
            open_ = np.flatnonzero(fixed != b"")
            while len(open_):  # once, but for ids of equal hash: removed ones that came back
                open_ = open_[at[open_] < len(self._hashes)]
                open_ = open_[self._hashes[at[open_]] == hashes[open_]]
                rows = self._rows[at[open_]]
                same = self._bytes["id"][rows] == fixed[open_]
                found[open_[same]] = rows[same]
                open_ = open_[~same]
                at[open_] += 1
        if self._recent or self._long_rows:
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = self._recent.get(ids[place], self._long_rows.get(ids[place], -1))
        return found

    def order(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the places of living rows in the order of their ids."""
        if self._long:
            return np.array(sorted(range(len(rows)), key=lambda at: self.of(int(rows[at]))), np.intp)
        words = np.zeros((len(rows), 4), ">u8")  # numbers are sorted five times as fast as strings
        words.view(np.uint8)[:, :_ID_BYTES] = self._bytes["id"][rows].view(np.uint8).reshape(len(rows), _ID_BYTES)
        columns = [column for column in words.astype(np.uint64).T if (column != column[:1]).any()]
        if not columns:
            return np.arange(len(rows))
        order = np.argsort(columns[0])
        ordered = columns[0][order]
        return np.lexsort(columns[::-1]) if (ordered[1:] == ordered[:-1]).any() else order

    def append(self, ids: Sequence[str]) -> None:
        """Give the next rows these ids, all of which are new."""
        first = self._bytes.used
        fixed = _fixed(ids)
        self._bytes.append(len(ids), {"id": fixed})
        self._living += len(ids)
        for at in np.flatnonzero(fixed == b"").tolist():
            self._long[first + at] = ids[at]
            self._long_rows[ids[at]] = first + at
        if len(ids) > _RECENT // 4:
            self._unsorted.append((_hashes(fixed), np.arange(first, first + len(ids), dtype=np.int32)))
            return
        self._recent.update(zip(ids, range(first, first + len(ids)), strict=True))
        if len(self._recent) > _RECENT:
            self._merge()

    def clear(self, rows: npt.NDArray[np.intp]) -> None:
        """Forget the ids of some living rows."""
        for row in rows.tolist():
            id_ = self.of(row)
            self._recent.pop(id_, None)
            if self._long.pop(row, None) is not None:
                del self._long_rows[id_]
        self._bytes["id"][rows] = b""
        self._living -= len(rows)

    def compact(self, kept: npt.NDArray[np.intp], moved: Ints) -> None:
        """Keep only these rows, in this order; `moved` tells the new number of each old one, -1 for none."""
        self._merge()
        self._bytes.keep(kept)
        self._long = {int(moved[row]): id_ for row, id_ in self._long.items()}
        self._long_rows = {id_: row for row, id_ in self._long.items()}
        rows = moved[self._rows]
        self._hashes, self._rows = self._hashes[rows >= 0], rows[rows >= 0]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._bytes.nbytes + self._hashes.nbytes + self._rows.nbytes

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        """Put what this holds into arrays; return the rest, of lists, dicts, strings and numbers."""
        self._merge()
        self._bytes.pack(prefix, arrays)
        arrays[f"{prefix}.hashes"], arrays[f"{prefix}.rows"] = self._hashes, self._rows
        return {"long": [[row, id_] for row, id_ in self._long.items()], "living": self._living}

    def unpack(self, prefix: str, arrays: Arrays, rest: Any) -> None:
        """Become what was packed."""
        self._bytes.unpack(prefix, arrays)
        self._hashes, self._rows = arrays[f"{prefix}.hashes"], arrays[f"{prefix}.rows"]
        self._long = dict(rest["long"])
        self._long_rows = {id_: row for row, id_ in rest["long"]}
        self._living = rest["living"]

    def _merge(self) -> None:
        """Sort the newest in among all."""
        if self._recent:
            rows = np.fromiter(self._recent.values(), np.int32, len(self._recent))
            self._unsorted.append((_hashes(self._bytes["id"][rows]), rows))
            self._recent = {}
        self._sort()

    def _sort(self) -> None:
        if self._unsorted:
            hashes, rows = (np.concatenate(parts) for parts in zip(*self._unsorted, strict=True))
            self._unsorted = []
            order = np.argsort(hashes)
            at = np.searchsorted(self._hashes, hashes[order])
            self._hashes = np.insert(self._hashes, at, hashes[order])
            self._rows = np.insert(self._rows, at, rows[order])


class IdColumn(Sequence[str]):
    """The id of each row, "" for a dead one."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return self._ids.count

    def __getitem__(self, row: Any) -> Any:
        return self._ids.of(row)


def _hashes(fixed: npt.NDArray[np.bytes_]) -> Words:
    """Return a number for each id of `_fixed`: the same in every process, which Python's own is not."""
    words = np.zeros((len(fixed), 4), np.uint64)
    words.view(np.uint8)[:, :_ID_BYTES] = np.ascontiguousarray(fixed).view(np.uint8).reshape(len(fixed), _ID_BYTES)
    found = np.zeros(len(fixed), np.uint64)
    for column in words.T:
        found = (found ^ column) * np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, as in Fibonacci hashing
        found ^= found >> np.uint64(29)
    return found


def _fixed(ids: Sequence[str]) -> npt.NDArray[np.bytes_]:
    """Return ids as bytes of one width, "" for those that do not fit."""
    if "".join(ids).isascii() and max(map(len, ids), default=0) <= _ID_BYTES and "\0" not in "".join(ids):
        return np.array(ids, f"S{_ID_BYTES}")
    return np.array([_fitting(id_) for id_ in ids], f"S{_ID_BYTES}")


def _fitting(id_: str) -> bytes:
    encoded = id_.encode("utf-8", "replace")
    fits = len(encoded) <= _ID_BYTES and b"\0" not in encoded and encoded.decode() == id_
    return encoded if fits else b""
