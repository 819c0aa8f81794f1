"""Stores with flipped bits: where the live bytes of a SQLite file are, read from the format itself.

A page of a file that is in use still holds bytes that say nothing: the gap between its cells, freed blocks, the tail of
an overflow chain, empty pages. A bit that flips there is no damage. `live_bytes` walks the trees as
sqlite.org/fileformat.html describes them and returns the places that do say something.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from scrubjay_io.sqlite import driver


@dataclass(frozen=True, slots=True)
class Span:
    """Some bytes of the file that belong to one cell of a table or index."""

    tree: str
    start: int
    end: int


def live_bytes(path: Path) -> list[Span]:
    """Return the bytes of the cells of every tree of a file that has no log."""
    data = path.read_bytes()
    with closing(driver.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        trees = [("sqlite_schema", 1), *connection.execute("select name, rootpage from sqlite_schema where rootpage")]
    return [span for name, root in trees for span in _tree(data, name, root)]


def _tree(data: bytes, name: str, root: int) -> Iterator[Span]:
    size = int.from_bytes(data[16:18], "big")
    size = 65_536 if size == 1 else size
    left = [root]
    while left:
        number = left.pop()
        base = (number - 1) * size
        head = base + (100 if number == 1 else 0)
        kind, _, count, _, _ = struct.unpack(">BHHHB", data[head : head + 8])
        inner = kind in {2, 5}
        yield Span(name, head, head + 8)
        pointers = head + (12 if inner else 8)
        if inner:
            left.append(int.from_bytes(data[head + 8 : head + 12], "big"))
            yield Span(name, head + 8, head + 12)
        yield Span(name, pointers, pointers + 2 * count)
        for at in range(count):
            start = base + int.from_bytes(data[pointers + 2 * at : pointers + 2 * at + 2], "big")
            place = start
            if inner:
                left.append(int.from_bytes(data[place : place + 4], "big"))
                place += 4
            payload = 0
            if kind != 5:
                payload, place = _varint(data, place)
            if kind in {5, 13}:
                _, place = _varint(data, place)
            local, more = _local(payload, size, table=kind == 13) if kind != 5 else (0, False)
            yield Span(name, start, place + local + (4 if more else 0))
            if more:
                rest = payload - local
                following = int.from_bytes(data[place + local : place + local + 4], "big")
                while following and rest > 0:
                    base_more = (following - 1) * size
                    part = min(rest, size - 4)
                    yield Span(name, base_more, base_more + 4 + part)
                    rest -= part
                    following = int.from_bytes(data[base_more : base_more + 4], "big")


def _local(payload: int, size: int, *, table: bool) -> tuple[int, bool]:
    """Return how many bytes of a payload are in its cell, and whether the rest is on overflow pages."""
    most = size - 35 if table else (size - 12) * 64 // 255 - 23
    if payload <= most:
        return payload, False
    least = (size - 12) * 32 // 255 - 23
    kept = least + (payload - least) % (size - 4)
    return (kept if kept <= most else least), True


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for at in range(9):
        byte = data[place + at]
        if at == 8:
            return (value << 8) | byte, place + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, place + at + 1
    raise AssertionError


def said_by(path: Path) -> dict[str, list[tuple[object, ...]]] | None:
    """Return every row of every table, as bytes; None when the file cannot be read to its end.

    Without the statistics by which SQLite chooses its plans, which change no answer.
    """
    with closing(driver.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        connection.text_factory = bytes
        try:
            tables = [
                row[0].decode()
                for row in connection.execute(
                    "select name from sqlite_schema where type = 'table' and rootpage and name not like 'sqlite_stat%'"
                )
            ]
            return {table: connection.execute(f"select * from '{table}'").fetchall() for table in tables}
        except (driver.Error, UnicodeDecodeError):
            return None


def flip(path: Path, bits: list[int]) -> None:
    """Flip some bits of a file: bit n is bit n % 8 of byte n // 8."""
    data = bytearray(path.read_bytes())
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
