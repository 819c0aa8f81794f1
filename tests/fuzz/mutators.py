"""Damage that keeps to a format's structure, so that it gets past the first check: bytes, trees, MessagePack, headers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    1 << 31,
    1 << 32,
    1 << 53,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    -1,
    -2,
    -128,
    -(1 << 31),
    -(1 << 63),
)
FLOATS = (0.0, -0.0, 1.0, 0.5, 4.0, 1e308, float("inf"), float("-inf"), float("nan"), 5e-324)
TEXTS = (
    "",
    "x",
    "\0",
    "a\0b",
    "user",
    "é",
    "e\u0301",
    "\U0001f426",
    "░",
    "x" * 300,
    "\u202e",
    "01K742SG02GQ46YMHEWT3J0PQK",
    "anna~2",
)
BINARIES = (b"", b"\0", bytes(15), bytes(16), bytes(17), bytes(31), bytes(32), b"\xff" * 16, b"\xff" * 32, bytes(1216))


class Ext(bytes):
    """A MessagePack extension: first its type, then its data."""


def scalar(rng: Random) -> Any:
    """Return a value that formats trip over."""
    return rng.choice(
        (
            lambda: rng.choice(NUMBERS),
            lambda: rng.choice(FLOATS),
            lambda: rng.choice(TEXTS),
            lambda: rng.choice(BINARIES),
            lambda: rng.choice((None, True, False)),
            lambda: Ext(rng.choice((b"\x05abcd", b"\xff\0\0\0\1", b"\xff" + bytes(8), b"\x00"))),
            lambda: rng.randbytes(rng.choice((4, 16, 32))),
        )
    )()


def value(rng: Random, depth: int = 0) -> Any:
    """Return a tree of such values."""
    if depth > 3 or rng.random() < 0.6:
        return scalar(rng)
    if rng.random() < 0.05:
        found: Any = scalar(rng)
        for _ in range(rng.choice((5, 60, 1100))):
            found = [found]
        return found
    if rng.random() < 0.5:
        return [value(rng, depth + 1) for _ in range(rng.randrange(5))]
    return Map((value(rng, depth + 1), value(rng, depth + 1)) for _ in range(rng.randrange(4)))


class Map(list):  # type: ignore[type-arg]
    """A map as its pairs in order: keys may repeat, and may be what no dict could hold."""


def as_tree(given: Any) -> Any:
    """Return plain data with every dict as a `Map`."""
    if isinstance(given, dict):
        return Map((as_tree(key), as_tree(item)) for key, item in given.items())
    if isinstance(given, list | tuple) and not isinstance(given, Map):
        return [as_tree(item) for item in given]
    return given


def mutated(tree: Any, rng: Random) -> Any:
    """Return a tree with something changed somewhere in it."""
    if not isinstance(tree, list) or not tree or rng.random() < 0.15:
        return _replaced(tree, rng)
    if isinstance(tree, Map):
        pairs = Map(tree)
        at = rng.randrange(len(pairs))
        key, item = pairs[at]
        match rng.randrange(8):
            case 0:
                del pairs[at]
            case 1:
                pairs.append((value(rng), value(rng)))
            case 2:
                pairs.append((key, value(rng)))
            case 3:
                pairs[at] = (_replaced(key, rng), item)
            case _:
                pairs[at] = (key, mutated(item, rng))
        return pairs
    items = list(tree)
    at = rng.randrange(len(items))
    match rng.randrange(10):
        case 0:
            del items[at]
        case 1:
            items.insert(at, value(rng))
        case 2:
            items.append(items[at])
        case 3:
            other = rng.randrange(len(items))
            items[at], items[other] = items[other], items[at]
        case _:
            items[at] = mutated(items[at], rng)
    return items


def _replaced(given: Any, rng: Random) -> Any:
    if isinstance(given, bool) or given is None:
        return value(rng)
    if isinstance(given, int) and rng.random() < 0.6:
        return max(
            -(1 << 63),
            min((1 << 64) - 1, rng.choice((given + 1, given - 1, -given, given << 16, given ^ 1 << rng.randrange(63)))),
        )
    if isinstance(given, bytes) and not isinstance(given, Ext) and given and rng.random() < 0.5:
        return rng.choice((given[:-1], given + b"\0", flipped(given, rng), given * 2))
    if isinstance(given, str) and rng.random() < 0.5:
        return rng.choice((given[:-1], given + "\0", given * 3, given.upper(), given.encode()))
    return value(rng)


def flipped(data: bytes, rng: Random) -> bytes:
    """Return bytes with one of them changed."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]


def scrambled(data: bytes, rng: Random) -> bytes:
    """Return bytes cut, repeated, overwritten and flipped, without regard to what they are."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 64))
        match rng.randrange(7):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[at + size :]
            case 2:
                data = data[:at] + rng.randbytes(size) + data[at:]
            case 3:
                data = data[:at] + data[at : at + size] * rng.choice((2, 3, 50)) + data[at + size :]
            case 4:
                data = (
                    data[:at]
                    + rng.choice(
                        (
                            b"\xff",
                            b"\0",
                            b"\xdd\xff\xff\xff\xff",
                            b"\xdf\0\1\0\0",
                            b"\xc6\x7f\xff\xff\xff",
                            b"\xcb\x7f\xf8" + bytes(6),
                            b"\x91" * 1200,
                        )
                    )
                    + data[at + size :]
                )
            case _:
                data = flipped(data, rng) if data else rng.randbytes(3)
    return data


def msgpack(tree: Any) -> bytes:
    """Return a tree as MessagePack. Any key may be written, and any twice."""
    out = bytearray()
    work: list[Any] = [tree]
    while work:  # not recursive: trees here may be a thousand deep
        one = work.pop()
        if isinstance(one, Map):
            out += _counted(len(one), 0x80, 0xDE, 15)
            for key, item in reversed(one):
                work += [item, key]
        elif isinstance(one, list | tuple):
            out += _counted(len(one), 0x90, 0xDC, 15)
            work += reversed(one)
        else:
            out += _scalar(one)
    return bytes(out)


def _counted(count: int, small: int, large: int, most: int) -> bytes:
    if count <= most:
        return bytes([small | count])
    return (
        bytes([large]) + count.to_bytes(2, "big") if count < 1 << 16 else bytes([large + 1]) + count.to_bytes(4, "big")
    )


def _scalar(one: Any) -> bytes:
    if one is None or isinstance(one, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[one]
    if isinstance(one, float):
        return b"\xcb" + struct.pack(">d", one)
    if isinstance(one, Ext):
        return b"\xc7" + bytes([len(one) - 1]) + one
    if isinstance(one, bytes):
        return b"\xc6" + len(one).to_bytes(4, "big") + one
    if isinstance(one, str):
        text = one.encode("utf-8", "surrogatepass")
        return b"\xdb" + len(text).to_bytes(4, "big") + text
    if 0 <= one < 128:
        return bytes([one])
    return b"\xcf" + one.to_bytes(8, "big") if one >= 0 else b"\xd3" + one.to_bytes(8, "big", signed=True)


def json_text(tree: Any, rng: Random) -> bytes:
    """Return a tree as JSON, or nearly: numbers of any length, keys twice, brackets by the thousand."""
    out: list[str] = []
    _json(tree, out, rng, 0)
    text = "".join(out).encode("utf-8", "surrogatepass")
    if rng.random() < 0.03:
        text = text.replace(b":", b":" + b"[" * rng.choice((50, 3000)), 1)
    return text


def _json(one: Any, out: list[str], rng: Random, depth: int) -> None:
    if depth > 40:
        out.append("[" * 60)
    elif isinstance(one, Map):
        out.append("{")
        for place, (key, item) in enumerate(one):
            out.append(("," if place else "") + _quoted("" if isinstance(key, list) else str(key), rng) + ":")
            _json(item, out, rng, depth + 1)
        out.append("}")
    elif isinstance(one, list):
        out.append("[")
        for place, item in enumerate(one):
            out.append("," if place else "")
            _json(item, out, rng, depth + 1)
        out.append("]")
    elif one is None or isinstance(one, bool):
        out.append({None: "null", False: "false", True: "true"}[one])
    elif isinstance(one, bytes):
        out.append(_quoted(one.decode("latin-1"), rng))
    elif isinstance(one, int | float):
        out.append(
            rng.choice((str(one), str(one) + "0" * 40, f"{one}e5", f"-{one}")) if rng.random() < 0.1 else str(one)
        )
    else:
        out.append(_quoted(one, rng))


def _quoted(text: str, rng: Random) -> str:
    if rng.random() < 0.02:
        return '"' + rng.choice(("\\ud800", "\\u0000", "\\q", "\n", "\\udc00\\ud800", "=", "A", "AA", "AAA=A")) + '"'
    return '"' + "".join(f"\\u{ord(one):04x}" if one in '"\\' or ord(one) < 32 else one for one in text) + '"'


def any_of(rng: Random, *ways: Callable[[], bytes]) -> bytes:
    """Return what one of some ways makes."""
    return rng.choice(ways)()
