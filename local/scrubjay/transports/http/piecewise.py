"""JSON of any size, in and out, in pieces: no one call into C keeps the other threads waiting for long.

Theory of operation. To decode 32 MB that hold eight million empty lists takes four seconds, and while C code runs no
other thread does, the event loop's neither. So a large body is first cut into its members by Python, which lets others
run every few milliseconds, and each member is decoded by itself. Texts may be large. Any other value may not: one that
is too large, or an item too many, is refused where the cutting meets it, so a hostile body costs no more than an honest
one. An answer is encoded item by item, and sent as it grows.
"""

from __future__ import annotations

import binascii
import dataclasses
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from scrubjay_shared.errors import InvalidError, TooLargeError

LARGE_BYTES = 65_536
"""Bodies from here on are cut into members, in a thread: to decode a smaller one takes 12 ms at the worst."""

MAX_VALUE_BYTES = 262_144
"""Of one value that is not a text: four times the most metadata that is taken. Decoding takes 50 ms at the worst."""

TEXT_BYTES = 256 * 1024
"""How much of a text is decoded at a time: a millisecond. A multiple of 4, as base64 needs it."""

SENT_BYTES = 262_144
"""How much of an answer is encoded at a time: some milliseconds, then other requests get their turn."""

SENT_CHARS = 65_536
"""How much of one text is encoded at a time: such a piece has at most `SENT_BYTES` but for control characters."""

_SPACE = re.compile(rb"[ \t\n\r]*")
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]{0,64}")
_BRACKET = re.compile(rb'["\[\]{}]')
_LOW = re.compile(rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}")
"""The escape of the second half of a character that JSON writes as two escapes, or of such a half alone."""

Decode = Callable[[bytes], Any]


def fields(body: bytes, *, lists: Collection[str], files: Collection[str], max_items: int, decode: Decode) -> Any:
    """Return the JSON object in a large body, with the values that `decode`, made for small ones, gives its members.

    The fields named in `lists` hold arrays of objects, each of any size; those in `files` hold base64, and become
    bytes. Raises InvalidError for what is not JSON, TooLargeError for more than `max_items` in an array or a value that
    is not a text and has more than `MAX_VALUE_BYTES`.
    """
    cutter = _Cutter(body, decode)

    def value(name: str, at: int) -> tuple[Any, int]:
        if name in lists and body[at : at + 1] == b"[":
            return cutter.array(at, name, max_items)
        if name in files and body[at : at + 1] == b'"':
            return cutter.file(at, name)
        return cutter.value(name, at)

    found, end = cutter.object(cutter.after_space(0), value)
    if cutter.after_space(end) != len(body):
        raise cutter.wrong(end)
    return found


class _Cutter:
    """Cuts one body. Every method takes the place where something begins, and returns it with the place of its end."""

    def __init__(self, body: bytes, decode: Decode) -> None:
        self._body = body
        self._decode = decode

    def wrong(self, at: int) -> InvalidError:
        return InvalidError(f"the body is not JSON: unexpected at byte {at}", hint="send one JSON object")

    def after_space(self, at: int) -> int:
        found = _SPACE.match(self._body, at)
        return at if found is None else found.end()

    def _expected(self, at: int, char: bytes) -> int:
        """Return the place after a character and white space, and the space after that."""
        at = self.after_space(at)
        if self._body[at : at + 1] != char:
            raise self.wrong(at)
        return self.after_space(at + 1)

    def object(self, at: int, value: Callable[[str, int], tuple[Any, int]]) -> tuple[dict[str, Any], int]:
        """Return an object with the members that `value` makes of their names and places."""
        found: dict[str, Any] = {}
        at = self._expected(at, b"{")
        while self._body[at : at + 1] != b"}":
            if found:
                at = self._expected(at, b",")
            if self._body[at : at + 1] != b'"':
                raise self.wrong(at)
            end = self._string_end(at)
            if end - at > MAX_VALUE_BYTES:
                raise InvalidError("a field's name is too long", hint="GET /openapi.json describes every field")
            name = self._decode(self._body[at:end])
            found[name], at = value(name, self._expected(end, b":"))
            at = self.after_space(at)
        return found, at + 1

    def array(self, at: int, name: str, max_items: int) -> tuple[list[Any], int]:
        """Return an array of objects, or of whatever stands there instead."""
        found: list[Any] = []
        at = self._expected(at, b"[")
        while self._body[at : at + 1] != b"]":
            if found:
                at = self._expected(at, b",")
            if len(found) == max_items:
                raise TooLargeError(f"more than {max_items} {name} in one request", hint=f"send at most {max_items}")
            where = f"{name}[{len(found)}]"
            if self._body[at : at + 1] == b"{":
                item, at = self.object(at, lambda key, place, where=where: self.value(f"{where}.{key}", place))  # type: ignore[misc]
            else:
                item, at = self.value(where, at)
            found.append(item)
            at = self.after_space(at)
        return found, at + 1

    def value(self, name: str, at: int) -> tuple[Any, int]:
        """Return any value: a text of any size, or else one that is not large."""
        first = self._body[at : at + 1]
        if first == b'"':
            end = self._string_end(at)
            return self._text(at, end), end
        if first in {b"[", b"{"}:
            end = self._brackets_end(name, at)
        else:
            scalar = _SCALAR.match(self._body, at)
            end = at if scalar is None else scalar.end()
            if end == at:
                raise self.wrong(at)
        return self._decode(self._body[at:end]), end

    def file(self, at: int, name: str) -> tuple[bytes, int]:
        """Return what a base64 text says."""
        end = self._string_end(at)
        found: list[bytes] = []
        for start in range(at + 1, end - 1, TEXT_BYTES):
            piece = self._body[start : min(start + TEXT_BYTES, end - 1)].replace(b"\\/", b"/")
            if b"=" in piece[:-2] or (b"=" in piece and start + TEXT_BYTES < end - 1):
                raise InvalidError(f"{name} is not base64", hint="send the file itself as the body")
            try:
                found.append(binascii.a2b_base64(piece, strict_mode=True))
            except binascii.Error as error:
                raise InvalidError(f"{name} is not base64", hint="send the file itself as the body") from error
        return b"".join(found), end

    def _text(self, at: int, end: int) -> str:
        parts: list[str] = []
        start = at + 1
        while end - 1 - start > TEXT_BYTES:
            cut = self._cut(start, start + TEXT_BYTES, end - 1)
            parts.append(self._decode(b'"' + self._body[start:cut] + b'"'))
            start = cut
        parts.append(self._decode(b'"' + self._body[start:end]))
        return "".join(parts)

    def _cut(self, start: int, at: int, end: int) -> int:
        """Return a place near `at` where the text from `start` to before `end` may be cut in two that mean the same.

        Such a place is not within a character, not within an escape, and not between the two escapes of one character.
        """
        body = self._body
        for _ in range(3):  # of the bytes of one character at most three come after its first
            at -= body[at] & 0xC0 == 0x80
        backslash = body.rfind(b"\\", max(start, at - 5), at)
        if backslash >= 0:
            before = body[start : backslash + 1]
            begins = (len(before) - len(before.rstrip(b"\\"))) % 2 == 1  # else it is what another one escapes
            if begins and backslash + (6 if body[backslash + 1] == 0x75 else 2) > at:  # a "u" and four digits
                at = backslash
        second = _LOW.match(body, at, end)
        return at if second is None else second.end()

    def _string_end(self, at: int) -> int:
        """Return the place after the quotation mark that ends the string whose first stands at `at`."""
        place = self._body.find(b'"', at + 1)
        while place > 0:
            first = place
            while self._body[first - 1] == 0x5C:  # a backslash
                first -= 1
            if (place - first) % 2 == 0:
                return place + 1
            place = self._body.find(b'"', place + 1)
        raise self.wrong(len(self._body))

    def _brackets_end(self, name: str, at: int) -> int:
        depth, place = 0, at
        while True:
            found = _BRACKET.search(self._body, place, at + MAX_VALUE_BYTES)
            if found is None:
                if len(self._body) <= at + MAX_VALUE_BYTES:
                    raise self.wrong(len(self._body))
                raise TooLargeError(
                    f"{name} is larger than {MAX_VALUE_BYTES} bytes", hint="only a text may be large: use the text"
                )
            char = found.group()
            place = self._string_end(found.start()) if char == b'"' else found.end()
            if char != b'"':
                depth += 1 if char in b"[{" else -1
            if depth == 0:
                return place


_encoder = msgspec.json.Encoder()


def encoded(answer: Any) -> Iterator[bytes]:
    """Yield the JSON of an answer in pieces of about `SENT_BYTES`."""
    if not dataclasses.is_dataclass(answer):
        yield _encoder.encode(answer)
        return
    parts: list[bytes] = []
    size = 0
    for part in _parts(answer):
        parts.append(part)
        size += len(part)
        if size >= SENT_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _parts(answer: Any) -> Iterator[bytes]:
    """Yield the JSON of an answer, of an item of one, or of a value. What is large comes in parts."""
    if isinstance(answer, str) and len(answer) > SENT_CHARS:
        yield b'"'
        for start in range(0, len(answer), SENT_CHARS):
            yield _encoder.encode(answer[start : start + SENT_CHARS])[1:-1]  # JSON writes each character by itself
        yield b'"'
        return
    if not dataclasses.is_dataclass(answer):
        yield _encoder.encode(answer)
        return
    members = _members_of(answer.__class__)
    for name, beginning in members:
        yield beginning
        value = getattr(answer, name)
        if isinstance(value, tuple) and value:
            for place, item in enumerate(value):
                yield b"," if place else b"["
                yield from _parts(item) if _is_large(item) else (_encoder.encode(item),)
            yield b"]"
        else:
            yield from _parts(value) if _is_large(value) else (_encoder.encode(value),)
    yield b"}" if members else b"{}"


def _is_large(value: Any) -> bool:
    """Say whether a value is a large text, or a record that holds one at any depth."""
    if isinstance(value, str):
        return len(value) > SENT_CHARS
    if isinstance(value, tuple):
        return any(map(_is_large, value))
    return dataclasses.is_dataclass(value) and any(map(_is_large, _values_of(value.__class__)(value)))


@cache
def _values_of(record: type) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of a record of some type."""
    names = [field.name for field in dataclasses.fields(record)]
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


@cache
def _members_of(record: type) -> tuple[tuple[str, bytes], ...]:
    """Return the fields of a record of some type, each with the JSON that goes before its value."""
    names = [field.name for field in dataclasses.fields(record)]
    return tuple(
        (name, b"%c%b:" % (b"," if place else b"{", _encoder.encode(name))) for place, name in enumerate(names)
    )
