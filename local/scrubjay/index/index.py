"""The fast path of recall: every event and memory as columns, postings and int8 vectors in memory.

Theory of operation. A document is a row of a `Table`; rows are only ever appended, so a row number names a document
until the table is compacted. Its text is present as token numbers alone, inverted: by token, the rows that hold it. The
newest rows, at most `_TAIL`, are scanned; older ones lie in immutable segments of consecutive rows, which are merged
like the carries of a binary counter until they hold `_SEGMENT` postings, so that no addition waits for a large merge.
Removing a document clears its row, id and vector at once; its numbers stay in the segments, masked, until a quarter of
the rows are dead and the table is compacted. `load_events`, `load_memories` and `loaded` fill an index from a store in
bulk; `packed` and `unpacked` turn it into arrays for a file and back.

Vectors are compared exactly in tables up to `_EXACT` rows. In larger ones the signs of their components choose which
rows are: Hamming distance over 48 bytes instead of 384. Plain signs, not those around the mean of all vectors, which
choose a little better: a mean would move with every document, and so would the answers.

Events of a session are a linked list through `prev` and `next`, because they may arrive in any order. Links between a
memory and the events it was read from are pairs of rows; a link whose event has not arrived yet waits under its id.

One lock guards it all. Every public method takes it; whoever reads columns (recall) holds `lock` for the whole query.
A search over 100,000 documents holds it for some milliseconds, and an addition waits that long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scrubjay_shared import scoring, text
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

Ints = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Arrays = dict[str, npt.NDArray[Any]]

_TAIL = 1024  # rows scanned for a token: 15,000 token numbers, some 10 microseconds; fewer would merge more often
_TAIL_POSTINGS = 65_536  # the same bound where documents are long
_SEGMENT = 1 << 20  # postings that are never merged further: merging so many takes some 20 ms, and nobody waits longer
_BLOCK = 4096  # rows of vectors allocated together: 1.5 MB at 384 dimensions, so growing copies nothing
_SIGN_BLOCK = 32_768  # rows whose signs are compared at a time: fewer cost in calls, more do not fit the cache
_EXACT = 16_384  # rows: comparing so many exactly takes 1.1 ms, and choosing among them by signs first no less
_RESCORED = 4096  # rows compared exactly among more: fewer lose neighbours (docs/decisions.md), more cost 0.2 us each
_RESCORED_SHARE = 32  # and among more than 131,072, one in so many: signs alone tell less the more rows there are
_NEVER = np.iinfo(np.uint16).max  # the distance of a row that does not count
_CHUNK = 4096  # documents split into tokens at once: a million strings at a time would cost 100 MB for a moment
_ID_BYTES = 26  # of a ULID
_RECENT = 16_384  # ids in a dict, 2 MB, before they are sorted in among the others: some 10 ms at a million
_COMPACT_ROWS = 1024  # dead rows below this number cost nothing worth a compaction
_COMPACT_SHARE = 4  # one dead row in four: a search then wastes at most a third of its work
TABLES = 2  # events and memories
FOREVER = np.iinfo(np.int64).max
"""`valid_to` of a memory whose end is not known; its negation is the unknown `valid_from`."""


class EventDoc(NamedTuple):
    """One event as recall sees it. `order` is its position key within the session, ascending; ties go by id.

    `tokens` are the analysed tokens of "[speaker] text", joined by single spaces (`text.analyse`). A tuple, because a
    million of them are made when a store is opened, and turned into columns.
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


class MemoryDoc(NamedTuple):
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
    """Token → number, with how many documents of each table hold it. A token that nobody holds is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self._strings: list[str | None] = []
        self._marks = bytearray()  # what each token says of a text that holds it
        self._holders = np.zeros((TABLES, 1024), np.int32)

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self._strings)
        self._strings.append(token)
        self._marks.append(text.mark_of(token))
        return number

    def numbers(self, tokens: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of tokens, giving new ones the next."""
        found = np.fromiter(map(self.__getitem__, tokens), np.int64, len(tokens))
        if len(self._strings) > self._holders.shape[1]:
            grown = np.zeros((TABLES, 2 * len(self._strings)), np.int32)
            grown[:, : self._holders.shape[1]] = self._holders
            self._holders = grown
        return found

    def marks(self, numbers: Ints) -> npt.NDArray[np.uint8]:
        """Return the `text.Mark` of each of these tokens."""
        return np.frombuffer(self._marks, np.uint8)[numbers]

    def holders(self, table: int, number: int) -> int:
        """Return how many documents of a table hold a token."""
        return int(self._holders[table, number])

    def hold(self, table: int, numbers: Ints) -> None:
        """Count one more document of a table for each of these tokens."""
        distinct, counts = np.unique(numbers, return_counts=True)
        self._holders[table, distinct] += counts.astype(np.int32)

    def release(self, table: int, numbers: Ints) -> None:
        """Count one document of a table less for each of these tokens, and forget those at zero everywhere."""
        np.subtract.at(self._holders[table], numbers, 1)
        # No np.unique: without counts it imports numpy.ma at its first use, 50 ms in which no other thread runs.
        for number in set(numbers[~self._holders[:, numbers].any(axis=0)].tolist()):
            token = self._strings[number]
            if token is not None:
                del self[token]
                self._strings[number] = None

    def pack(self, arrays: Arrays) -> list[str | None]:
        """Put what this holds into arrays, but for the tokens, which are returned: they belong under "tokens"."""
        arrays["marks"] = np.frombuffer(bytes(self._marks), np.uint8)
        arrays["holders"] = self._holders[:, : len(self._strings)].copy()
        return self._strings.copy()

    @classmethod
    def unpacked(cls, arrays: Arrays) -> Vocabulary:
        """Return what was packed."""
        made = cls()
        strings = _strings_of(arrays["tokens"])
        made.update({token: number for number, token in enumerate(strings) if token})
        made._strings = [token or None for token in strings]
        made._marks = bytearray(arrays["marks"])
        made._holders = arrays["holders"]
        return made


def _packed_strings(strings: Sequence[str | None]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("\n".join([string or "" for string in strings]).encode(), np.uint8)


def _strings_of(packed: npt.NDArray[np.uint8]) -> list[str]:
    return packed.tobytes().decode().split("\n") if len(packed) else []


class _Growing:
    """Parallel arrays that grow by a quarter; `self[name]` is a view of the used part and goes stale when one grows."""

    def __init__(self, dtypes: Mapping[str, Any]) -> None:
        self.used = 0
        self._arrays = {name: np.zeros(256, dtype) for name, dtype in dtypes.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self.used]

    def append(self, count: int, values: Mapping[str, Any]) -> None:
        """Add `count` entries; a name without values is zero there."""
        need = self.used + count
        for name, array in self._arrays.items():
            if need > len(array):
                grown = np.zeros(need + need // 4, array.dtype)
                grown[: self.used] = array[: self.used]
                self._arrays[name] = grown
            self._arrays[name][self.used : need] = values.get(name, 0)
        self.used = need

    def keep(self, kept: npt.NDArray[np.intp]) -> None:
        """Keep only these entries, in this order."""
        self._arrays = {name: self[name][kept] for name in self._arrays}
        self.used = len(kept)

    def pack(self, prefix: str, arrays: Arrays) -> None:
        arrays.update((f"{prefix}.{name}", self[name].copy()) for name in self._arrays)

    def unpack(self, prefix: str, arrays: Arrays) -> None:
        (count,) = {len(arrays[f"{prefix}.{name}"]) for name in self._arrays}
        self.append(count, {name: arrays[f"{prefix}.{name}"] for name in self._arrays})  # with room for more

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


class Ids(Mapping[str, int]):
    """The row of each living id. `ids.of(row)` is the other way about, "" for a dead row.

    A million strings in a list and a dict take 210 MB. Here an id is 26 bytes of an array (our own ids are ULIDs),
    found through its hash: a sorted array of all, and a dict of the newest. Ids that do not fit stand beside.
    """

    def __init__(self) -> None:
        self._living = 0
        self._bytes = _Growing({"id": f"S{_ID_BYTES}"})
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


def _places(held: Ints, rows: npt.NDArray[np.intp], first: int, end: int) -> npt.NDArray[np.intp]:
    """Return where in `held`, of rows from `first` to before `end`, some of ascending `rows` stand."""
    inside = rows[rows.searchsorted(first) : rows.searchsorted(end)]
    if len(inside) < 2:
        return np.flatnonzero(held == np.int32(inside[0])) if len(inside) else inside
    chosen = np.zeros(end - first, np.bool_)
    chosen[inside - first] = True
    return np.flatnonzero(chosen[held - np.int32(first)])


@dataclass(frozen=True, slots=True)
class _Segment:
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
    def of(first: int, end: int, terms: Ints, rows: Ints, tfs: npt.NDArray[np.uint16]) -> _Segment:
        """Build from parallel arrays in the order of rows."""
        keys = (terms.astype(np.int64) << 32) | np.arange(len(terms))  # a plain sort of these is the fastest stable one
        keys.sort()
        by_term = keys & 0xFFFFFFFF
        return _Segment.ordered(first, end, (keys >> 32).astype(np.int32), rows[by_term], tfs[by_term])

    @staticmethod
    def ordered(first: int, end: int, terms: Ints, rows: Ints, tfs: npt.NDArray[np.uint16]) -> _Segment:
        """Build from parallel arrays in the order of terms, then rows."""
        starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1])) if len(terms) else np.zeros(0, np.intp)
        return _Segment(first, end, terms[starts], np.append(starts, len(terms)).astype(np.int32), rows, tfs)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.terms, self.offsets, self.rows, self.tfs))

    def merged(self, later: _Segment) -> _Segment:
        """Return this and the segment of the rows after it as one."""
        terms = np.zeros(len(self) + len(later), np.int32)
        rows, tfs = np.zeros_like(terms), np.zeros(len(terms), np.uint16)
        for one, other, side in ((self, later, "left"), (later, self, "right")):
            before = other.offsets[np.searchsorted(other.terms, one.terms, side)]  # type: ignore[call-overload]
            counts = np.diff(one.offsets)
            at = np.arange(len(one)) + np.repeat(before, counts)
            terms[at], rows[at], tfs[at] = np.repeat(one.terms, counts), one.rows, one.tfs
        return _Segment.ordered(self.first, later.end, terms, rows, tfs)

    def moved(self, moved: Ints) -> _Segment:
        """Return this without the rows that `moved` maps to -1, the others under their new numbers."""
        rows = moved[self.rows]
        kept = rows >= 0
        terms = np.repeat(self.terms, np.diff(self.offsets))[kept]
        left = moved[self.first : self.end]
        left = left[left >= 0]
        first, end = (int(left[0]), int(left[-1]) + 1) if len(left) else (0, 0)
        return _Segment.ordered(first, end, terms, rows[kept], self.tfs[kept])

    def pack(self, prefix: str, arrays: Arrays) -> list[int]:
        for name in ("terms", "offsets", "rows", "tfs"):
            arrays[f"{prefix}.{name}"] = getattr(self, name)
        return [self.first, self.end]

    @staticmethod
    def unpacked(prefix: str, arrays: Arrays, rest: list[int]) -> _Segment:
        terms, offsets, rows, tfs = (arrays[f"{prefix}.{name}"] for name in ("terms", "offsets", "rows", "tfs"))
        return _Segment(rest[0], rest[1], terms, offsets, rows, tfs)

    def find(self, term: int) -> slice:
        at = int(self.terms.searchsorted(np.int32(term)))  # of another type, all terms would be converted to it
        if at == len(self.terms) or self.terms[at] != term:
            return slice(0, 0)
        return slice(int(self.offsets[at]), int(self.offsets[at + 1]))

    def terms_of(self, rows: npt.NDArray[np.intp]) -> Ints:
        """Return what some rows hold, rows beyond this segment left out."""
        at = _places(self.rows, rows, self.first, self.end)
        found: Ints = self.terms[np.searchsorted(self.offsets, at.astype(np.int32), side="right") - 1]
        return found


class _Vectors:
    """int8 vectors by row in blocks, and the signs of their components as bits, 48 bytes a row for 384 of them."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._words = -(-width // 64)
        self._blocks: list[scoring.Rows] = []
        self._signs: list[Words] = []  # [words, _SIGN_BLOCK]: one word of many rows lies together

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self._blocks) + sum(block.nbytes for block in self._signs)

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
        while len(self._blocks) * _BLOCK <= last:
            self._blocks.append(np.zeros((_BLOCK, self.width), np.int8))
        while len(self._signs) * _SIGN_BLOCK <= last:
            self._signs.append(np.zeros((self._words, _SIGN_BLOCK), np.uint64))
        for block, part, within in self._parts(rows, _BLOCK):
            self._blocks[block][within] = vectors[part]
        signs = self._signs_of(vectors)
        for block, part, within in self._parts(rows, _SIGN_BLOCK):
            self._signs[block][:, within] = signs[part].T

    def _signs_of(self, vectors: scoring.Rows) -> Words:
        padded = np.zeros((len(vectors), self._words * 8), np.uint8)
        packed = np.packbits(vectors > 0, axis=1)
        padded[:, : packed.shape[1]] = packed
        return padded.view(np.uint64)

    def get(self, rows: npt.NDArray[np.intp]) -> scoring.Rows:
        """Return a copy of the vectors of ascending rows, zeros where none was set."""
        found = np.zeros((len(rows), self.width), np.int8)
        for block, part, within in self._parts(rows, _BLOCK):
            if block < len(self._blocks):
                np.take(self._blocks[block], within, axis=0, out=found[part], mode="clip")  # "clip" copies just once
        return found

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        arrays.update((f"{prefix}.block.{at}", block) for at, block in enumerate(self._blocks))
        arrays.update((f"{prefix}.signs.{at}", block) for at, block in enumerate(self._signs))
        return {"width": self.width, "blocks": len(self._blocks), "signs": len(self._signs)}

    @staticmethod
    def unpacked(prefix: str, arrays: Arrays, rest: Any) -> _Vectors:
        made = _Vectors(rest["width"])
        made._blocks = [arrays[f"{prefix}.block.{at}"] for at in range(rest["blocks"])]
        made._signs = [arrays[f"{prefix}.signs.{at}"] for at in range(rest["signs"])]
        return made

    def block(self, number: int) -> scoring.Rows | None:
        return self._blocks[number] if number < len(self._blocks) else None

    def distances(self, query: scoring.Rows, count: int) -> npt.NDArray[np.uint16]:
        """Return of each of the first `count` rows in how many signs it differs from the query."""
        wanted = self._signs_of(query[None, :])[0]
        found = np.zeros(count, np.uint16)
        differing, bits = np.empty(_SIGN_BLOCK, np.uint64), np.empty(_SIGN_BLOCK, np.uint8)
        for number, signs in enumerate(self._signs):
            part = found[number * _SIGN_BLOCK : (number + 1) * _SIGN_BLOCK]
            used = len(part)
            for word, value in zip(signs, wanted, strict=True):
                np.bitwise_xor(word[:used], value, out=differing[:used])
                np.bitwise_count(differing[:used], out=bits[:used])
                part += bits[:used]
        return found


_ROW = {"alive": np.bool_, "embedded": np.bool_, "scale": np.float32, "length": np.int32, "marks": np.uint8}
_EVENT = {"ts": np.int64, "order": np.int64, "session": np.int32, "project": np.int32, "agent": np.int32,
          "speaker": np.int32, "type": np.int32, "prev": np.int32, "next": np.int32}  # fmt: skip
_MEMORY = {"ts": np.int64, "created": np.int64, "valid_from": np.int64, "valid_to": np.int64, "scope": np.int16,
           "resource": np.int32, "session": np.int32, "project": np.int32, "agent": np.int32, "type": np.int32,
           "kind": np.int32, "layer": np.int32, "topic": np.int32, "salience": np.float32,
           "superseded": np.bool_}  # fmt: skip
_COUNTED = ("type", "speaker")


class _IdColumn(Sequence[str]):
    """The id of each row, "" for a dead one."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return self._ids.count

    def __getitem__(self, row: Any) -> Any:
        return self._ids.of(row)


class Table:
    """The rows of one kind. `table["ts"]` is a column, valid while the index is locked; a dead row is not `alive`.

    `embedded` rows are alive. `ids[row]` is the id of a row, `rows[id]` the row of an id. The counts are kept, not
    counted: `len(rows)` and `embedded` living rows, `tokens` all that they hold together.
    """

    def __init__(self, number: int, columns: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self.rows = Ids()
        self.ids = _IdColumn(self.rows)
        self.dead = 0
        self.embedded = 0
        self.tokens = 0
        self.loading = False
        self._number = number
        self._vocabulary = vocabulary
        self._columns = _Growing({**_ROW, **columns})
        self._counts = {name: np.zeros(64, np.int64) for name in _COUNTED if name in columns}
        self._segments: list[_Segment] = []
        self._tail = _Growing({"term": np.int32, "row": np.int32, "tf": np.uint16})
        self._inverted = 0  # rows before this one are in a segment
        self._vectors: _Vectors | None = None

    def __len__(self) -> int:
        """Return the number of rows, dead ones included: the length of every column."""
        return self._columns.used

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    @property
    def nbytes(self) -> int:
        """Bytes of columns, ids, postings and vectors."""
        segments = sum(segment.nbytes for segment in self._segments)
        vectors = 0 if self._vectors is None else self._vectors.nbytes
        return self._columns.nbytes + self.rows.nbytes + self._tail.nbytes + segments + vectors

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
        self._tail.append(len(starts), {"term": distinct, "row": keys[starts] >> 32, "tf": tfs})
        marks = np.zeros(len(tokens), np.uint8)
        np.bitwise_or.at(marks, (keys[starts] >> 32) - first, self._vocabulary.marks(distinct))
        self._columns.append(len(tokens), {**columns, "alive": True, "length": lengths, "marks": marks})
        self.rows.append(ids)
        rows = range(first, len(self))
        self.tokens += int(lengths.sum())
        self._count(np.arange(rows.start, rows.stop), 1)
        if self._tail.used > (_SEGMENT if self.loading else _TAIL_POSTINGS) or (
            not self.loading and len(self) - self._inverted >= _TAIL
        ):
            self._invert()
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
        waiting = _places(self._tail["row"], rows, self._inverted, len(self))
        held = [self._tail["term"][waiting], *(segment.terms_of(rows) for segment in self._segments)]
        self._vocabulary.release(self._number, np.concatenate(held))
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

    def _invert(self) -> None:
        """Make the tail a segment, and merge it with those before it that are not much larger."""
        tail = self._tail
        newest = _Segment.of(self._inverted, len(self), tail["term"], tail["row"], tail["tf"])
        tail.used = 0
        self._inverted = len(self)
        self._push(newest)

    def _push(self, newest: _Segment) -> None:
        while self._segments:
            last = self._segments[-1]
            if len(last) >= 2 * len(newest) or len(last) + len(newest) > _SEGMENT:
                break
            newest = self._segments.pop().merged(newest)
        self._segments.append(newest)

    def loaded(self) -> None:
        """End a bulk load."""
        self.loading = False
        if self._tail.used > _TAIL_POSTINGS or len(self) - self._inverted >= _TAIL:
            self._invert()

    def postings(self, term: int) -> tuple[Ints, npt.NDArray[np.uint16]]:
        """Return the living rows that hold a token, ascending, each once, and how often they hold it."""
        found = [(s.rows[at], s.tfs[at]) for s in self._segments if (at := s.find(term)).stop]
        hits = np.flatnonzero(self._tail["term"] == term)
        if len(hits) or not found:
            found.append((self._tail["row"][hits], self._tail["tf"][hits]))
        rows, tfs = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
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
            self._vectors = _Vectors(vectors.shape[1])
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
            for number in range(-(-len(self) // _BLOCK)):
                part = slice(number * _BLOCK, min((number + 1) * _BLOCK, len(self)))
                block = self._vectors.block(number)
                if block is not None and wanted[part].any():
                    found[part] = scoring.cosines(block[: part.stop - part.start], scales[part], query, query_scale)
        return found

    def cosines_of(self, rows: npt.NDArray[np.intp], query: scoring.Rows, query_scale: float) -> scoring.Floats:
        """Return float32 [rows]: the cosine of each of these rows with the query, 0 for one that is not embedded."""
        if self._vectors is None:
            return np.zeros(len(rows), np.float32)
        if len(rows) > _BLOCK and 3 * len(rows) > len(self):  # comparing all is cheaper than picking them out
            wanted = np.zeros(len(self), np.bool_)
            wanted[rows] = True
            return self.cosines(query, query_scale, wanted)[rows]
        found = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _BLOCK):  # picking out copies: a block at a time, never all
            part = rows[start : start + _BLOCK]
            found[start : start + _BLOCK] = scoring.cosines(self.vectors(part), self["scale"][part], query, query_scale)
        return found

    def nearest(
        self, query: scoring.Rows, query_scale: float, seen: Mask | None, count: int
    ) -> tuple[npt.NDArray[np.intp], scoring.Floats]:
        """Return the `count` embedded rows nearest to a query, best first, and their cosines; fewer if there are fewer.

        `seen` says which rows count, None all. Among equals the newest come first, then the first ids, so the answer
        depends on what the index holds and not on how it came there. In a table of up to `_EXACT` rows it is exact; in
        a larger one, only the rows whose signs agree best with the query's are compared: at least `_RESCORED` of them,
        one in `_RESCORED_SHARE`, and all that agree as well as the last of these.
        """
        held = self["embedded"] if seen is None or self.embedded == 0 else self["embedded"] & seen
        among = self.embedded if seen is None else int(np.count_nonzero(held))
        if not among or count <= 0 or self._vectors is None:
            return np.zeros(0, np.intp), np.zeros(0, np.float32)
        if len(self) <= _EXACT or among <= 2 * _RESCORED:
            rows = np.flatnonzero(held)
            if 3 * among > len(self):  # then it is cheaper to compare all than to pick them out
                return self._best(rows, self.cosines(query, query_scale, held)[rows], count)
        else:
            distances = self._vectors.distances(query, len(self))
            if among < len(self):
                distances[~held] = _NEVER
            counts = np.cumsum(np.bincount(distances, minlength=1))
            worst = int(np.searchsorted(counts, max(_RESCORED, among // _RESCORED_SHARE)))
            rows = np.flatnonzero(distances <= min(worst, self._vectors.width))
        return self._best(rows, self.cosines_of(rows, query, query_scale), count)

    def _best(
        self, rows: npt.NDArray[np.intp], cosines: scoring.Floats, count: int
    ) -> tuple[npt.NDArray[np.intp], scoring.Floats]:
        ts = self["ts"][rows]
        if count < len(rows):
            at_least = len(rows) - count
            last = np.partition(cosines, at_least)[at_least]
            chosen = np.flatnonzero(cosines >= last)
            surplus = len(chosen) - count
            if surplus:  # of the equals at the end, the newest stay
                equal = cosines[chosen] == last
                newest = np.partition(ts[chosen][equal], surplus)[surplus]
                chosen = chosen[~equal | (ts[chosen] >= newest)]
            rows, cosines, ts = rows[chosen], cosines[chosen], ts[chosen]
        order = np.lexsort((-ts, -cosines))
        rows, cosines, ts = rows[order], cosines[order], ts[order]
        equal = (cosines[1:] == cosines[:-1]) & (ts[1:] == ts[:-1])
        if equal.any():
            ids = list(map(self.ids.__getitem__, rows.tolist()))
            by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.intp)
            order = by_id[np.lexsort((-ts[by_id], -cosines[by_id]))]
            rows, cosines = rows[order], cosines[order]
        return rows[:count], cosines[:count]

    def pack(self, prefix: str, arrays: Arrays) -> Any:
        """Put what this holds into arrays; return the rest, of lists, dicts, strings and numbers."""
        self._columns.pack(f"{prefix}.column", arrays)
        self._tail.pack(f"{prefix}.tail", arrays)
        for name, counts in self._counts.items():
            arrays[f"{prefix}.count.{name}"] = counts.copy()
        return {
            "ids": self.rows.pack(f"{prefix}.ids", arrays),
            "segments": [s.pack(f"{prefix}.segment.{at}", arrays) for at, s in enumerate(self._segments)],
            "inverted": self._inverted,
            "vectors": None if self._vectors is None else self._vectors.pack(f"{prefix}.vectors", arrays),
            "counts": [self.dead, self.embedded, self.tokens],
        }

    def unpack(self, prefix: str, arrays: Arrays, rest: Any) -> None:
        """Become what was packed."""
        self._columns.unpack(f"{prefix}.column", arrays)
        self._tail.unpack(f"{prefix}.tail", arrays)
        self._counts = {name: arrays[f"{prefix}.count.{name}"] for name in self._counts}
        self.rows.unpack(f"{prefix}.ids", arrays, rest["ids"])
        self._segments = [
            _Segment.unpacked(f"{prefix}.segment.{at}", arrays, ends) for at, ends in enumerate(rest["segments"])
        ]
        self._inverted = rest["inverted"]
        if rest["vectors"] is not None:
            self._vectors = _Vectors.unpacked(f"{prefix}.vectors", arrays, rest["vectors"])
        self.dead, self.embedded, self.tokens = rest["counts"]

    def worth_compacting(self) -> bool:
        """Whether enough rows are dead."""
        return self.dead > max(_COMPACT_ROWS, len(self) // _COMPACT_SHARE)

    def compact(self) -> Ints:
        """Drop the dead rows, and return int32 [old rows + 1]: the new row of each old one, -1 for dead and for -1."""
        kept = np.flatnonzero(self["alive"])
        moved = np.full(len(self) + 1, -1, np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        self._invert()
        segments, self._segments = self._segments, []
        for segment in segments:
            self._push(segment.moved(moved))
        self._inverted = len(kept)
        if self._vectors is not None:
            fresh = _Vectors(self._vectors.width)
            embedded = kept[self["embedded"][kept]]
            for at in range(0, len(embedded), _BLOCK):
                some = embedded[at : at + _BLOCK]
                fresh.put(moved[some].astype(np.intp), self._vectors.get(some))
            self._vectors = fresh
        self._columns.keep(kept)
        self.rows.compact(kept, moved)
        self.dead = 0
        return moved


_NAMES = ("sessions", "projects", "agents", "types", "speakers", "scopes", "resources", "topics", "kinds", "layers")


class Index:
    """Events and memories in memory. All methods may be called from any thread; holding `lock` makes several one.

    The tables, names and links are for recall, which holds `lock` while it reads them.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.vocabulary = Vocabulary()
        self.events = Table(0, _EVENT, self.vocabulary)
        self.memories = Table(1, _MEMORY, self.vocabulary)
        self.sessions, self.projects, self.agents, self.types = Names(), Names(), Names(), Names()
        self.speakers, self.scopes, self.resources, self.topics = Names(), Names(), Names(), Names()
        self.kinds, self.layers = Names(), Names()
        self.speaker_tokens: list[frozenset[str]] = []
        """The tokens of each speaker's name, by its number in `speakers`."""
        self.topic_vectors: dict[int, tuple[scoring.Rows, float]] = {}
        """The vector of each topic's label, by its number in `topics`."""
        self._links = _Growing({"memory": np.int32, "event": np.int32})
        self._waiting: dict[str, list[int]] = {}  # event id → memory rows that name it as their source
        self._ends = _Growing({"first": np.int32, "last": np.int32})  # by session, plus 1: 0 is none
        self._width: int | None = None

    def packed(self) -> tuple[Any, Arrays]:
        """Return all of this but the topics' vectors, for a file: what JSON can hold, and arrays by name.

        The arrays stay what they are while the index goes on, but for vectors: a row may be embedded or forgotten.
        """
        with self.lock:
            arrays: Arrays = {}
            tokens = self.vocabulary.pack(arrays)
            self._links.pack("link", arrays)
            self._ends.pack("end", arrays)
            rest = {
                "events": self.events.pack("event", arrays),
                "memories": self.memories.pack("memory", arrays),
                "names": {name: getattr(self, name).strings.copy() for name in _NAMES},
                "waiting": {id_: rows.copy() for id_, rows in self._waiting.items()},
                "width": self._width,
            }
        arrays["tokens"] = _packed_strings(tokens)  # of a million tokens: nobody has to wait for it
        return rest, arrays

    @classmethod
    def unpacked(cls, rest: Any, arrays: Arrays) -> Index:
        """Return the index that was packed; it keeps the arrays. Raises KeyError or ValueError for others."""
        made = cls()
        made.vocabulary = Vocabulary.unpacked(arrays)
        made.events, made.memories = Table(0, _EVENT, made.vocabulary), Table(1, _MEMORY, made.vocabulary)
        made.events.unpack("event", arrays, rest["events"])
        made.memories.unpack("memory", arrays, rest["memories"])
        made._links.unpack("link", arrays)
        made._ends.unpack("end", arrays)
        for name in _NAMES:
            getattr(made, name).codes(rest["names"][name])
        made.speaker_tokens = [frozenset(text.analyse(name)) for name in made.speakers.strings]
        made._waiting = {str(id_): [int(row) for row in rows] for id_, rows in rest["waiting"].items()}
        made._width = rest["width"]
        return made

    def __len__(self) -> int:
        """Return the number of documents; does not wait for the lock, which a question may hold for a tenth second."""
        return len(self.events.rows) + len(self.memories.rows)

    def __contains__(self, id_: object) -> bool:
        with self.lock:
            return id_ in self.events.rows or id_ in self.memories.rows

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the strings of tokens."""
        with self.lock:
            return self.events.nbytes + self.memories.nbytes + self._links.nbytes + self._ends.nbytes

    @property
    def embedded(self) -> tuple[int, int]:
        """How many documents have a vector, of how many."""
        with self.lock:
            return self.events.embedded + self.memories.embedded, len(self)

    def add_events(self, docs: Iterable[EventDoc], *, keep_vectors: bool = False) -> None:
        """Add events, or replace those of the same id. A replaced one loses its vector unless `keep_vectors`.

        Sessions and their events may arrive in any order.
        """
        with self.lock:
            last = {doc.id: doc for doc in docs}  # a batch may repeat an id; its last wins
            ordered = sorted(last.values(), key=lambda doc: (doc.session_id, doc.order, doc.id))
            for at in range(0, len(ordered), _CHUNK):
                batch = ordered[at : at + _CHUNK]
                kept = self._take_out(self.events, [doc.id for doc in batch], keep_vectors=keep_vectors)
                self._place(self._append_events(batch))
                self._put_back(self.events, kept)
            self._compact()

    def add_memories(self, docs: Iterable[MemoryDoc], *, keep_vectors: bool = False) -> None:
        """Add memories, or replace those of the same id. A replaced one loses its vector unless `keep_vectors`."""
        with self.lock:
            last = list({doc.id: doc for doc in docs}.values())
            for at in range(0, len(last), _CHUNK):
                batch = last[at : at + _CHUNK]
                kept = self._take_out(self.memories, [doc.id for doc in batch], keep_vectors=keep_vectors)
                self._append_memories(batch)
                self._put_back(self.memories, kept)
            self._compact()

    def load_events(self, docs: Sequence[EventDoc]) -> None:
        """Add events to an index that is being filled: all of them first, each once. `loaded` must follow."""
        with self.lock:
            self.events.loading = True
            self._append_events(docs)

    def load_memories(self, docs: Sequence[MemoryDoc]) -> None:
        """Add memories to an index that is being filled, after all its events, each once. `loaded` must follow."""
        with self.lock:
            self.memories.loading = True
            self._append_memories(docs)

    def loaded(self) -> None:
        """Finish what `load_events` and `load_memories` left, once for all: order within sessions, the postings."""
        with self.lock:
            self.events.loaded()
            self.memories.loaded()
            self._place_all()

    def remove(self, ids: Iterable[str]) -> int:
        """Forget documents with their tokens, vectors and links, and return how many there were."""
        with self.lock:
            distinct = list(dict.fromkeys(ids))
            found = 0
            for table in (self.events, self.memories):
                rows = table.rows.find(distinct)
                rows = np.sort(rows[rows >= 0])
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
            known = 0
            for table in (self.events, self.memories):
                targets = table.rows.find(ids)
                chosen = np.flatnonzero(targets >= 0)
                table.set_vectors(targets[chosen], rows[chosen], scales[chosen])
                known += len(chosen)
            return known

    def without_vector(self, event_types: Iterable[str]) -> list[str]:
        """Return the ids of memories, and of events of some types, that have no vector."""
        with self.lock:
            bare = [table["alive"] & ~table["embedded"] for table in (self.events, self.memories)]
            bare[0] &= np.isin(self.events["type"], [self.types.find(name) for name in event_types])
            return [
                table.ids[row]
                for table, rows in zip((self.events, self.memories), bare, strict=True)
                for row in np.flatnonzero(rows).tolist()
            ]

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
                f"a vector must have {self._width} numbers, as the others in this index have, got {width}",
                hint="clear the vectors before those of another embedding model are set",
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

    def _append_events(self, docs: Sequence[EventDoc]) -> range:
        if not docs:
            return range(0)
        ids, sessions, agents, ts, order, speakers, types, tokens, projects = zip(*docs, strict=True)
        rows = self.events.append(
            ids,
            tokens,
            {
                "ts": ts,
                "order": order,
                "session": self.sessions.codes(sessions),
                "project": self.projects.codes(projects),
                "agent": self.agents.codes(agents),
                "speaker": self._speakers(speakers),
                "type": self.types.codes(types),
            },
        )
        self._ends.append(len(self.sessions) - 1 - self._ends.used, {})
        if self._waiting:
            for id_, row in zip(ids, rows, strict=True):
                for memory in self._waiting.pop(id_, ()):
                    self._links.append(1, {"memory": memory, "event": row})
        return rows

    def _append_memories(self, docs: Sequence[MemoryDoc]) -> None:
        if not docs:
            return
        columns: list[Sequence[Any]] = list(zip(*docs, strict=True))
        column = dict(zip(MemoryDoc._fields, columns, strict=True))
        rows = self.memories.append(
            column["id"],
            column["tokens"],
            {
                "ts": column["updated_at"],
                "created": column["created_at"],
                "valid_from": [-FOREVER if start is None else start for start in column["valid_from"]],
                "valid_to": [FOREVER if end is None else end for end in column["valid_to"]],
                "scope": self.scopes.codes(column["scope"]),
                "resource": self.resources.codes(column["resource_id"]),
                "session": self.sessions.codes(column["session_id"]),
                "project": self.projects.codes(column["project"]),
                "agent": self.agents.codes(column["agent"]),
                "type": self.types.codes(column["type"]),
                "kind": self.kinds.codes(column["kind"]),
                "layer": self.layers.codes(column["layer"]),
                "topic": self.topics.codes(column["topic"]),
                "salience": column["salience"],
                "superseded": column["superseded"],
            },
        )
        pairs = [
            (row, source) for row, found in zip(rows, column["sources"], strict=True) for source in dict.fromkeys(found)
        ]
        events = self.events.rows.find([source for _, source in pairs])
        for at in np.flatnonzero(events < 0).tolist():
            row, source = pairs[at]
            self._waiting.setdefault(source, []).append(row)
        known = events >= 0
        memories = np.array([row for row, _ in pairs], np.int32)[known]
        self._links.append(len(memories), {"memory": memories, "event": events[known]})

    def _speakers(self, names: Iterable[str]) -> list[int]:
        codes = self.speakers.codes(names)
        new = self.speakers.strings[len(self.speaker_tokens) :]
        self.speaker_tokens.extend(frozenset(text.analyse(name)) for name in new)
        return codes

    def _take_out(
        self, table: Table, ids: Sequence[str], *, keep_vectors: bool
    ) -> tuple[list[str], scoring.Rows, scoring.Floats] | None:
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
            memories, events = self.links()
            linked = np.isin(events, old)
            for memory, event in zip(memories[linked].tolist(), events[linked].tolist(), strict=True):
                self._waiting.setdefault(table.ids[event], []).append(memory)
        self._drop(table, old)
        return kept

    def _put_back(self, table: Table, kept: tuple[list[str], scoring.Rows, scoring.Floats] | None) -> None:
        if kept is not None:
            ids, vectors, scales = kept
            table.set_vectors(table.rows.find(ids), vectors, scales)

    def _drop(self, table: Table, rows: npt.NDArray[np.intp]) -> None:
        if table is self.events:
            for row in rows.tolist():
                self._unplace(row)
        table.clear(rows)

    def _place(self, rows: range) -> None:
        """Put new events, sorted by session and order, into their sessions' lists."""
        prev, following, order = self.events["prev"], self.events["next"], self.events["order"]
        first, last = self._ends["first"], self._ends["last"]
        for row, at in zip(rows, self.events["session"][rows.start :].tolist(), strict=True):
            before, after, place = int(last[at]) - 1, -1, order[row]
            while before >= 0 and (order[before] > place or (order[before] == place and self._is_after(before, row))):
                before, after = int(prev[before]), before
            prev[row], following[row] = before, after
            if before >= 0:
                following[before] = row
            else:
                first[at] = row + 1
            if after >= 0:
                prev[after] = row
            else:
                last[at] = row + 1

    def _is_after(self, one: int, other: int) -> bool:
        """Whether an event comes after another one of its session."""
        order, ids = self.events["order"], self.events.ids
        return bool(order[one] > order[other] or (order[one] == order[other] and ids[one] > ids[other]))

    def _place_all(self) -> None:
        """Make the list of each session at once."""
        events = self.events
        session, order = events["session"], events["order"]
        rows = np.lexsort((order, session))
        rows = rows[events["alive"][rows]]
        key = np.flatnonzero((session[rows[1:]] == session[rows[:-1]]) & (order[rows[1:]] == order[rows[:-1]]))
        for at in key.tolist():  # of equal order, which is rare: let each sink to its place by id
            while at >= 0 and session[rows[at]] == session[rows[at + 1]] and self._is_after(rows[at], rows[at + 1]):
                rows[at], rows[at + 1] = rows[at + 1], rows[at]
                at -= 1  # noqa: PLW2901 - an insertion sort
        same = session[rows[1:]] == session[rows[:-1]]
        events["prev"][:] = events["next"][:] = -1
        events["prev"][rows[1:][same]] = rows[:-1][same]
        events["next"][rows[:-1][same]] = rows[1:][same]
        for name, ends in (("first", np.append(True, ~same)), ("last", np.append(~same, True))):
            some = rows[ends[: len(rows)]]
            self._ends[name][session[some]] = some + 1

    def _unplace(self, row: int) -> None:
        prev, following = self.events["prev"], self.events["next"]
        before, after, session = int(prev[row]), int(following[row]), int(self.events["session"][row])
        if before >= 0:
            following[before] = after
        else:
            self._ends["first"][session] = after + 1
        if after >= 0:
            prev[after] = before
        else:
            self._ends["last"][session] = before + 1

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
            for end in ("first", "last"):
                self._ends[end][:] = moved[self._ends[end] - 1] + 1
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
