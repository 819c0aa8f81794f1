"""JSON as a person wrote it: comments and trailing commas allowed, every value with its place in the text. Pure.

An edit changes the characters of what it adds or takes out and no other: what a person wrote stays as it stands.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from scrubjay_shared.errors import InvalidError

DEPTH = 200
"""Values inside one another that are read: settings have ten; Python's stack ends at a thousand."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `text[start:end]`. `parts` are the members of an object or the items of a list."""

    start: int
    end: int
    value: Any
    parts: tuple[Part, ...] = ()

    def member(self, key: str) -> Part | None:
        """Return the member of that name; the last one where it is there twice, as JSON readers take it."""
        return next((part for part in reversed(self.parts) if part.key == key), None)


@dataclass(frozen=True, slots=True)
class Part:
    """A member of an object or an item of a list: from its key, or its value, to the end of its value."""

    start: int
    key: str | None
    node: Node

    @property
    def end(self) -> int:
        """Where its value ends."""
        return self.node.end


def parse(text: str, *, comments: bool = True) -> Node:
    """Return the root value of a document. Raises InvalidError that names line and column of what is wrong."""
    reader = _Reader(text, comments=comments)
    start = reader.skip(0)
    root = reader.value(start, 0)
    end = reader.skip(root.end)
    if end != len(text):
        raise reader.wrong(end, "text after the end of the value")
    return root


class _Reader:
    """Reads one document."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments

    def wrong(self, at: int, what: str) -> InvalidError:
        line, column = self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)
        return InvalidError(f"line {line}, column {column}: {what}", hint="mend it there, then try again")

    def skip(self, at: int) -> int:
        """Return where the next thing begins, after spaces and comments."""
        while True:
            at = _SPACE.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing too
            comment = _COMMENT.match(self.text, at)
            if comment is None:
                return at
            if not self.comments:
                raise self.wrong(at, "a comment, which the program that reads this file does not allow")
            at = comment.end()

    def value(self, at: int, depth: int) -> Node:
        """Return the value that begins here."""
        first = self.text[at : at + 1]
        if depth > DEPTH:
            raise self.wrong(at, f"values stand more than {DEPTH} deep in one another")
        if first in {"{", "["}:
            return self.container(at, depth, "}" if first == "{" else "]")
        if first == '"':
            return self.string(at)
        found = _WORD.match(self.text, at)
        if found is None:
            raise self.wrong(at, "no JSON value" if first else "the file ends in the middle of a value")
        try:
            return Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.wrong(at, "a number that is too long") from None

    def string(self, at: int) -> Node:
        """Return the string that begins here."""
        found = _STRING.match(self.text, at)
        try:
            return Node(at, found.end(), json.loads(found[0]))  # type: ignore[union-attr,index]  # caught below
        except (AttributeError, TypeError, ValueError):
            raise self.wrong(at, "a string that is not closed or not valid") from None

    def container(self, start: int, depth: int, closer: str) -> Node:
        """Return the object or the list that begins here."""
        parts: list[Part] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != closer:
            begin, key = at, None
            if closer == "}":
                if self.text[at : at + 1] != '"':
                    raise self.wrong(at, f"a key in double quotes or {closer} is missing")
                name = self.string(at)
                key, at = str(name.value), self.skip(name.end)
                if self.text[at : at + 1] != ":":
                    raise self.wrong(at, "a colon is missing")
                at = self.skip(at + 1)
            parts.append(Part(begin, key, self.value(at, depth + 1)))
            at = self.skip(parts[-1].end)
            if self.text[at : at + 1] == ",":
                comma, at = at, self.skip(at + 1)
                if self.text[at : at + 1] == closer and not self.comments:
                    raise self.wrong(comma, "a comma after the last value")
            elif self.text[at : at + 1] != closer:
                raise self.wrong(at, f"a comma or {closer} is missing")
        values = [part.node.value for part in parts]
        value = {part.key: part.node.value for part in parts} if closer == "}" else values
        return Node(start, at + 1, value, tuple(parts))


@dataclass(frozen=True, slots=True)
class Style:
    """How a document is laid out: what ends its lines, and one step of indentation; "" where it is on one line."""

    newline: str
    indent: str

    @classmethod
    def of(cls, text: str, root: Node) -> Style:
        """Read it from the first line end and the first member that stands on a line of its own."""
        newline = "\r\n" if "\r\n" in text else "\n"
        if not root.parts:
            return cls(newline, "  ")
        lead = text[root.start + 1 : root.parts[0].start]
        if "\n" in lead:
            return cls(newline, _line_indent(text, root.parts[0].start) or "  ")
        return cls(newline, "  " if "\n" in text[root.start : root.end] else "")

    def written(self, value: Any, base: str) -> str:
        """Return a value as this document would have it, its first line left as it is and the others behind `base`."""
        if not self.indent:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self.indent).split("\n")
        return f"{self.newline}{base}".join(lines)


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _between(text: str, at: int, end: int) -> tuple[int | None, int, bool]:
    """Return what stands between two values: the comma's place, where comma and comments end, and whether a `//` does.

    None for a comma that is missing.
    """
    comma, last, line = None, at, False
    while True:
        at = _SPACE.match(text, at, end).end()  # type: ignore[union-attr]  # it matches nothing too
        found = _COMMENT.match(text, at, end)
        if found is not None:
            at = last = found.end()
            line = found[0].startswith("//")
        elif text[at:end].startswith(","):
            comma, at, last, line = at, at + 1, at + 1, False
        else:
            return comma, last, line


def added(text: str, container: Node, key: str | None, value: Any, style: Style) -> str:
    """Return the text with one member (or, without a key, one item) more, after the last one and its comments."""
    closer = container.end - 1
    last = container.parts[-1] if container.parts else None
    place = last.end if last else container.start + 1
    comma, rest, _ = _between(text, place, closer)
    lined = bool(style.indent) and (last is None or "\n" in text[container.start : container.end])
    base = _line_indent(text, last.start if last and lined else container.start)
    inner = base if last else base + style.indent
    lead = f"{style.newline}{inner}" if lined else (" " if last else "")
    name = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    new = f"{lead}{name}{style.written(value, inner if lined else '')}"
    missing = "," if last and comma is None else ""
    trailing = "," if last and comma is not None else ""
    after = text[rest:]
    if last is None and lined and "\n" not in text[rest:closer]:
        after = f"{style.newline}{base}{text[closer:]}"
    return f"{text[:place]}{missing}{text[place:rest]}{new}{trailing}{after}"


def removed(text: str, container: Node, part: Part) -> str:
    """Return the text without one member or item, and without the comma and the line that it had."""
    closer = container.end - 1
    place = container.parts.index(part)
    before = container.parts[place - 1].end if place else container.start + 1
    following = container.parts[place + 1].start if place + 1 < len(container.parts) else closer
    earlier, start, line = _between(text, before, part.start)
    comma, _, _ = _between(text, part.end, following)
    end = part.end if comma is None else comma + 1
    head, tail = text[:start], text[end:]
    if place and comma is None and earlier is not None:  # the last one: the comma before it goes too
        head = text[:earlier] + text[earlier + 1 : start]
    elif len(container.parts) == 1 and not line and not text[end:closer].strip():
        tail = text[closer:]
    if line and "\n" not in tail[: len(tail) - len(tail.lstrip())]:
        tail = f"\n{tail}"  # or what follows would become part of the comment
    return head + tail


def replaced(text: str, node: Node, value: Any, style: Style) -> str:
    """Return the text with another value in this place."""
    return text[: node.start] + style.written(value, _line_indent(text, node.start)) + text[node.end :]
