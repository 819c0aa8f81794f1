"""Making a new store of what can still be read in a damaged one: of its events and ops, and of what this device knew.

Theory of operation. A private copy of the file takes in the log beside it, frames behind a bad one too. Its rows are
read table by table; where the structure is damaged, the pages are read as bytes as well, since a page that no tree
leads to still holds its rows (sqlite.org/fileformat.html). What is not derived carries a check sum, so that a row is
taken as it was written or not at all. They go into a new file, and all else is derived there. The old file stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay.store import checksums, file, log_file
from scrubjay.store.damage import reader
from scrubjay.store.lock import StoreLock
from scrubjay.store.queries.op_log import ERASED
from scrubjay.store.sqlite import translated
from scrubjay.store.tables import CHECKSUMMED, TABLES, Role
from scrubjay_io import private_files
from scrubjay_io.sqlite import driver, is_interrupted, undo_interrupted
from scrubjay_shared.clock import Millis, latest, millis_of, uuid7
from scrubjay_shared.errors import CorruptError, NotFoundError
from scrubjay_shared.ops import OpType

_EVENT = int(OpType.EVENT)
REMADE = frozenset(table.name for table in TABLES if table.role in {Role.QUEUE, Role.CONTENTS}) | {"embedding"}
"""The tables whose rows are made again where they are gone."""
_INNER, _INNER_ROWS = 5, 2
_LEAVES = (13, 10, _INNER_ROWS)
"""Kinds of pages that hold rows: of a table with row numbers, and leaves and inner pages of one without."""
_TYPES = {"integer": int, "text": str, "blob": bytes, "real": float}
_REAL = struct.Struct(">d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What was brought over, and what was not.

    `lost` counts, by table, rows that are gone or say something else than was written; `restamped` events whose place
    in the log was lost, and was made again.
    """

    events: int
    ops: int
    lost: Mapping[str, int]
    restamped: int


def salvage(
    path: Path, source: Path, now: Millis, entropy: Callable[[int], bytes], *, losing: bool
) -> tuple[Salvaged, Path | None]:
    """Put a new store in the place of the one at `path`, of what can be read in `source`. Whoever opens it derives.

    Returns what came over, and where the old file is kept. Raises NotFoundError, ConflictError while another process
    has the store open, CorruptError when nothing of a store is there or, unless `losing`, when anything would be lost.
    """
    if not source.is_file():
        raise NotFoundError(f"there is no file {source}", hint="name the file of a damaged store")
    lock = StoreLock(path)
    lock.acquire()
    made, image = file.staged(path), path.with_name(f"{path.name}.part")
    try:
        with file.writing(path):
            file.remove(image)
            file.remove(made)
            found = _made(source, image, made, now, entropy)
            if found.lost and not losing:
                words = ", ".join(f"{count:,} of {table}" for table, count in found.lost.items())
                raise CorruptError(f"rows of {source.name} cannot be read any more: {words}", hint=file.SALVAGE_HINT)
            return found, file.put_in_place(made, path)
    finally:
        file.remove(image)
        file.remove(made)
        lock.release()


def _made(source: Path, image: Path, made: Path, now: Millis, entropy: Callable[[int], bytes]) -> Salvaged:
    version = _copied(source, image)
    file.create(made, [step for step in file.migrations() if step.version <= version], {})
    with (
        translated(made),
        contextlib.closing(driver.connect(str(made), isolation_level=None)) as connection,
    ):
        connection.execute("pragma synchronous = off")  # it is made durable as a whole
        connection.execute("begin")
        lost = _filled(connection, image)
        if not any(connection.execute(f"select 1 from {table}").fetchone() for table in ("meta", "event", "op")):
            raise CorruptError(
                f"nothing of a scrubjay store can be read in {source.name}",
                hint="scrubjay restore FILE brings back a backup; this file is untouched",
            )
        restamped = _closed(connection, lost, now, entropy)
        events, ops = (
            int(connection.execute(f"select count(*) from {what}").fetchone()[0])
            for what in ("event where not forgotten", "op")
        )
        connection.execute("commit")
    gone = {table: count for table, count in lost.items() if count and table not in REMADE}
    return Salvaged(events=events, ops=ops, lost=gone, restamped=restamped)


def _copied(source: Path, image: Path) -> int:
    """Copy a file with all that its log holds into a private one that can be opened. Returns its schema's version."""
    private_files.create(image)
    shutil.copyfile(source, image)
    if is_interrupted(source):
        shutil.copyfile(source.with_name(f"{source.name}-journal"), image.with_name(f"{image.name}-journal"))
        with contextlib.suppress(driver.Error):
            undo_interrupted(image)
    log = log_file.read_log(source)
    newest = file.migrations()[-1].version
    with image.open("r+b") as written:
        if log is not None and log.frames:
            data = source.with_name(f"{source.name}-wal").read_bytes()
            for frame in log.frames:
                if frame.page <= max(each.pages for each in log.frames):
                    written.seek((frame.page - 1) * log.page_size)
                    written.write(data[frame.start : frame.start + log.page_size])
        written.seek(0)
        header = bytearray(written.read(100).ljust(100, b"\0"))
        version = int.from_bytes(header[60:64], "big")
        size = int.from_bytes(header[16:18], "big")
        if size < 512 or size & (size - 1):
            size = 4096
        # What a header says is the same in every store but for its counters: the rows must not be lost with it.
        header[:24] = b"SQLite format 3\0" + size.to_bytes(2, "big") + bytes((1, 1, 0, 64, 32, 32))
        header[28:32] = (os.fstat(written.fileno()).st_size // size).to_bytes(4, "big")
        header[44:48], header[56:60] = (4).to_bytes(4, "big"), (1).to_bytes(4, "big")
        header[68:72] = file.APPLICATION_ID.to_bytes(4, "big")
        written.seek(0)
        written.write(header)
    return version if 0 < version <= newest else newest


def _filled(target: Any, image: Path) -> Counter[str]:
    """Copy every row that passes its check sum. Returns how many of each table did not."""
    shapes = {table: _Shape(target, table) for table in CHECKSUMMED if checksums.columns_of(target, table)}
    lost: Counter[str] = Counter()
    with contextlib.closing(reader(image)) as connection:
        whole = _is_whole(connection)
        for table, shape in shapes.items():
            try:
                for row in connection.execute(f"select {', '.join(shape.columns)} from {table} not indexed"):
                    if shape.holds(row):
                        shape.take(row)
                    else:
                        lost[table] += 1
            except (driver.Error, UnicodeDecodeError):
                whole = False
    if whole:
        return lost
    data = image.read_bytes()
    pages = _Pages(data, int.from_bytes(data[16:18], "big"))
    lost = Counter()
    for number in range(1, pages.count + 1):
        rows: Counter[str] = Counter()
        for cell in pages.cells(number):
            fitting = [(shape, row) for shape in shapes.values() if (row := shape.of_cell(*cell)) is not None]
            if len(fitting) == 1:  # of two tables whose rows look alike nobody can tell which
                shape, row = fitting[0]
                shape.take(row)
                rows[shape.table] += 1
        for table, found in rows.most_common(1):
            lost[table] += max(pages.said(number) - found, 0)
    return lost


def _is_whole(connection: Any) -> bool:
    try:
        return [row[0] for row in connection.execute("pragma integrity_check(1)")] == ["ok"]
    except (driver.Error, UnicodeDecodeError):
        return False


def _closed(connection: Any, lost: Counter[str], now: Millis, entropy: Callable[[int], bytes]) -> int:
    """Make events and ops fit each other again, and the settings whole. Returns how many events got another stamp.

    An op whose event is gone keeps its place, as one that was erased does; so does one of this device that is gone.
    """
    checksums.install(connection)
    meta = dict(connection.execute("select key, value from meta"))
    for key, value in file.created(now, entropy(16).hex(), entropy(16).hex()).items():
        if key not in meta:
            connection.execute("insert into meta (key, value) values (?, ?)", (key, value))
            meta[key] = value
    connection.execute("update meta set value = '' where key = 'projected'")  # all is to be derived again
    gone = connection.execute(
        "select device, seq from op where type = ? and entity not in (select id from event)", (_EVENT,)
    ).fetchall()
    connection.executemany(
        "update op set op_id = zeroblob(16), hlc = 0, type = ?, entity = '', cause = null where device = ? and seq = ?",
        [(ERASED, *place) for place in gone],
    )
    lost["event"] = max(lost["event"], len(gone))
    alone = connection.execute(
        "select id, device, seq, ts from event where id not in (select entity from op where type = ?) order by n",
        (_EVENT,),
    ).fetchall()
    for event_id, device, seq, ts in alone:
        place = seq
        if connection.execute("select 1 from op where device = ? and seq = ?", (device, seq)).fetchone():
            place = 1 + connection.execute("select max(seq) from op where device = ?", (device,)).fetchone()[0]
            connection.execute("update event set seq = ? where id = ?", (place, event_id))
        stamp = latest(Millis(min(ts, now)))
        connection.execute(
            "insert into op (device, seq, op_id, hlc, type, entity) values (?, ?, ?, ?, ?, ?)",
            (device, place, uuid7(millis_of(stamp), entropy(10)), stamp, _EVENT, event_id),
        )
    places = {row[0] for row in connection.execute("select seq from op where device = ?", (meta["device"],))}
    gaps = [seq for seq in range(1, max(places, default=0)) if seq not in places]
    connection.executemany(
        "insert into op (device, seq, op_id, hlc, type, entity) values (?, ?, zeroblob(16), 0, ?, '')",
        [(meta["device"], seq, ERASED) for seq in gaps],
    )
    lost["op"] = max(lost["op"] - len(alone), len(gaps), 0)
    return len(alone)


class _Shape:
    """One table of the new file: which rows fit into it, and how they stand in pages."""

    def __init__(self, target: Any, table: str) -> None:
        info = target.execute("select name, lower(type), dflt_value, pk from pragma_table_info(?, 'main')", (table,))
        named = {name: (kind, default, key) for name, kind, default, key in info.fetchall()}
        self.table = table
        self.columns = tuple(named)
        self._target = target
        self._sealed = self.columns.index("crc") if "crc" in named else None
        self._types = [_TYPES[kind] for kind, _, _ in named.values()]
        self._defaults = [
            target.execute(f"select {default or 'null'}").fetchone()[0] for _, default, _ in named.values()
        ]
        keys = sorted((name for name in named if named[name][2]), key=lambda name: named[name][2])
        sql = str(target.execute("select sql from sqlite_schema where name = ?", (table,)).fetchone()[0])
        self._numbered = "without rowid" not in sql.rpartition(")")[2].lower()
        number = self._numbered and len(keys) == 1 and named[keys[0]][0] == "integer"
        self._number = self.columns.index(keys[0]) if number else None
        """Which column is the row's number: the row does not repeat it."""
        stored = self.columns if self._numbered else (*keys, *(name for name in named if name not in keys))
        self._order = [stored.index(name) for name in self.columns]
        self._insert = f"insert or ignore into {table} ({', '.join(named)}) values ({', '.join('?' * len(named))})"

    def holds(self, row: tuple[Any, ...]) -> bool:
        """Say whether a row is as it was written."""
        if self._sealed is None:
            return True
        return bool(checksums.checksum_of((*row[: self._sealed], *row[self._sealed + 1 :])) == row[self._sealed])

    def take(self, row: tuple[Any, ...]) -> None:
        """Put a row into the new file unless its like is there."""
        with contextlib.suppress(driver.IntegrityError):
            self._target.execute(self._insert, row)

    def of_cell(self, number: int | None, values: list[Any]) -> tuple[Any, ...] | None:
        """Return the row that a cell holds; None where it is not one of this table as it was written."""
        if self._sealed is None or (number is not None) is not self._numbered or len(values) > len(self.columns):
            return None
        row = [
            values[at] if at < len(values) else default for at, default in zip(self._order, self._defaults, strict=True)
        ]
        if self._number is not None:
            row[self._number] = number
        for at, (value, kind) in enumerate(zip(row, self._types, strict=True)):
            if kind is float and isinstance(value, int):  # SQLite stores whole numbers as such
                row[at] = float(value)
            elif value is not None and not isinstance(value, kind):
                return None
        return tuple(row) if self.holds(tuple(row)) else None


class _Pages:
    """A database file as bytes."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self._size = size
        self.count = len(data) // size

    def said(self, number: int) -> int:
        """Return how many cells a page says that it has."""
        head = (number - 1) * self._size + (100 if number == 1 else 0)
        return min(int.from_bytes(self._data[head + 3 : head + 5], "big"), self._size // 4)

    def cells(self, number: int) -> Iterator[tuple[int | None, list[Any]]]:
        """Yield the row number, or None, and the values of every cell of a page that can be read as one."""
        base = (number - 1) * self._size
        head = base + (100 if number == 1 else 0)
        kind = self._data[head]
        if kind in _LEAVES:
            yield from self._cells(base, head, kind, doubted=False)
        elif kind and kind != _INNER and any((kind ^ each).bit_count() == 1 for each in _LEAVES):
            for each in _LEAVES:  # what kind it is of is what was damaged; an overflow page begins with 0
                yield from self._cells(base, head, each, doubted=True)

    def _cells(self, base: int, head: int, kind: int, *, doubted: bool) -> Iterator[tuple[int | None, list[Any]]]:
        pointers = head + (12 if kind == _INNER_ROWS else 8)
        count = self.said(base // self._size + 1)
        begin = int.from_bytes(self._data[head + 5 : head + 7], "big") or self._size
        most = max(count, min((base + begin - pointers) // 2, self._size // 4))
        tried = set()
        for at in range(most):
            place = int.from_bytes(self._data[pointers + 2 * at : pointers + 2 * at + 2], "big")
            cell = None
            if 8 <= place < self._size and place not in tried:
                cell = self._cell(base + place, kind)
                tried.add(place)
            doubted = doubted or (at < count and cell is None)
            if cell is not None:
                yield cell
        if doubted:  # where its cells are is in doubt: they are looked for everywhere
            for place in range(pointers - base, self._size - 4):
                if place not in tried and (cell := self._cell(base + place, kind)) is not None:
                    yield cell

    def _cell(self, start: int, kind: int) -> tuple[int | None, list[Any]] | None:
        try:
            at = start + (4 if kind == _INNER_ROWS else 0)
            payload, at = _varint(self._data, at)
            number = None
            if kind == 13:
                number, at = _varint(self._data, at)
                number -= (number >> 63) << 64
            if payload > len(self._data):
                return None
            return number, _values(self._payload(at, payload, table=kind == 13))
        except (IndexError, ValueError, struct.error):  # not a cell
            return None

    def _payload(self, at: int, payload: int, *, table: bool) -> bytes:
        """Return the bytes of a cell, those on overflow pages too."""
        most = self._size - 35 if table else (self._size - 12) * 64 // 255 - 23
        if payload <= most:
            return self._data[at : at + payload]
        least = (self._size - 12) * 32 // 255 - 23
        local = least + (payload - least) % (self._size - 4)
        local = local if local <= most else least
        found = bytearray(self._data[at : at + local])
        following = int.from_bytes(self._data[at + local : at + local + 4], "big")
        while len(found) < payload:
            base = (following - 1) * self._size
            if base <= 0 or base >= len(self._data):
                raise ValueError
            found += self._data[base + 4 : base + 4 + min(self._size - 4, payload - len(found))]
            following = int.from_bytes(self._data[base : base + 4], "big")
        return bytes(found)


def _values(record: bytes) -> list[Any]:
    """Return the values of a record. Raises ValueError or IndexError where it is none."""
    length, at = _varint(record, 0)
    if length > len(record) or length < 2:
        raise ValueError
    place = length
    values: list[Any] = []
    while at < length:
        kind, at = _varint(record, at)
        if kind in {10, 11}:
            raise ValueError
        if kind == 0:
            values.append(None)
        elif kind in {8, 9}:
            values.append(kind - 8)
        elif kind < 8:
            width = (0, 1, 2, 3, 4, 6, 8, 8)[kind]
            raw = record[place : place + width]
            values.append(_REAL.unpack(raw)[0] if kind == 7 else int.from_bytes(raw, "big", signed=True))
            place += width
        else:
            width = (kind - 12) // 2
            raw = record[place : place + width]
            values.append(raw.decode() if kind % 2 else bytes(raw))
            place += width
    if place != len(record):
        raise ValueError
    return values


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for at in range(9):
        byte = data[place + at]
        if at == 8:
            return (value << 8) | byte, place + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, place + at + 1
    raise ValueError
