"""The directives of an observer's output, read strictly: what is not tagged is dropped and counted.

`@observe SCOPE` promotes one fact; `@topic`, `@type`, `@turns` and `@supersedes` beside it belong to that fact.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from scrubjay_shared.records import MemoryType, Scope

DIRECTIVE = re.compile(r"^[ \t]*@observe\b", re.MULTILINE | re.IGNORECASE)
"""A text with such a line is an observer's output."""

TAG = re.compile(r"@observe\s+(?P<scope>[A-Za-z]+)(?![\w-])(?:\s*:\s*|\s+|$)(?P<fact>.*)$", re.IGNORECASE)
TOPIC = re.compile(r"@topic\s+(?P<label>\S.{0,63})$", re.IGNORECASE)
TYPE = re.compile(r"@type\s+(?P<type>[A-Za-z_-]+)$", re.IGNORECASE)
TURNS = re.compile(r"@turns?\s+(?P<turns>\d{1,5}(?:\s*[-,\s]\s*\d{1,5}){0,63})$", re.IGNORECASE)
SUPERSEDES = re.compile(r"@supersedes\s+(?P<id>\S{1,64})$", re.IGNORECASE)
ATTRIBUTES = ("@topic", "@type", "@turn", "@supersedes")
SCOPES = {scope.value: scope for scope in Scope}
TYPES = {type_.value: type_ for type_ in MemoryType}
MAX_RANGE = 50
"""Turns that one range may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One fact that was promoted to a scope. The span is that of `content` in the text it was read from.

    `turns` are the numbers that its author cites; they prove nothing. `supersedes` is one of the known ids.
    """

    scope: Scope
    content: str
    span_start: int
    span_end: int
    topic: str | None = None
    type: MemoryType | None = None
    turns: tuple[int, ...] = ()
    supersedes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """What a text promotes, in order, and how many lines were dropped: malformed directives, and untagged lines."""

    observed: tuple[Directive, ...] = ()
    malformed: int = 0
    dropped_untagged: int = 0


def parse_directives(text: str, known: Collection[str] = ()) -> Directives:
    """Read an observer's output: `@observe project|user|session`, attributes before or after it, then the fact.

    The fact is the next line, or the rest of the `@observe` line; each directive promotes one. An attribute belongs to
    the next fact. A line without a directive is dropped. So is a directive with an unknown scope, an unknown type,
    turns that are no numbers, or an id that is not among the `known` ones (and the line after it counts as untagged),
    and one without a fact.
    """
    reader = _Reader(known)
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        if bare := line.strip():
            reader.read(bare, start + len(line) - len(line.lstrip()))
    return reader.found()


@dataclass(slots=True)
class _Reader:
    """What was read so far. `spoiled`: an attribute of the fact to come was malformed, so that it is not taken."""

    known: Collection[str]
    observed: list[Directive] = field(default_factory=list)
    malformed: int = 0
    untagged: int = 0
    scope: Scope | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    spoiled: bool = False

    def read(self, bare: str, begin: int) -> None:
        """Take in one line that is not empty, and where it begins."""
        if tag := TAG.match(bare):
            self.malformed += self.scope is not None  # the one before promoted nothing
            self.scope = SCOPES.get(tag["scope"].lower())
            if self.scope is None:
                self._spoil()
            elif self.spoiled:
                self._reset()
            elif tag["fact"]:
                self._promote(tag["fact"], begin + tag.start("fact"))
        elif bare.lower().startswith(("@observe", *ATTRIBUTES)):
            read = self._attribute(bare)
            if read is None:
                self._spoil(of_next=not bare.lower().startswith(("@observe", "@topic")) and self.scope is None)
            else:
                self.attributes |= read
        elif self.scope is None:
            self.untagged += 1
        else:
            self._promote(bare, begin)

    def found(self) -> Directives:
        """Return what was read."""
        return Directives(
            observed=tuple(self.observed),
            malformed=self.malformed + (self.scope is not None),
            dropped_untagged=self.untagged,
        )

    def _attribute(self, bare: str) -> dict[str, Any] | None:
        """Return what a line says of the next fact, None where it is malformed."""
        if label := TOPIC.match(bare):
            return {"topic": label["label"].lower()}
        if (named := TYPE.match(bare)) and (type_ := TYPES.get(named["type"].lower().replace("-", "_"))):
            return {"type": type_}
        if cited := TURNS.match(bare):
            return {"turns": _numbers(cited["turns"])}
        if (old := SUPERSEDES.match(bare)) and old["id"] in self.known:
            return {"supersedes": old["id"]}
        return None

    def _promote(self, fact: str, begin: int) -> None:
        if self.scope is not None:
            self.observed.append(
                Directive(
                    scope=self.scope,
                    content=fact,
                    span_start=begin,
                    span_end=begin + len(fact),
                    **self.attributes,
                )
            )
        self._reset()

    def _spoil(self, *, of_next: bool = False) -> None:
        self.malformed += 1 + (self.scope is not None)
        self._reset()
        self.spoiled = of_next

    def _reset(self) -> None:
        self.scope = None
        self.attributes = {}
        self.spoiled = False


def _numbers(cited: str) -> tuple[int, ...]:
    """Return the turns of "4, 7-9"."""
    found: list[int] = []
    for part in re.split(r"[,\s]+", re.sub(r"\s*-\s*", "-", cited.strip())):
        first, _, last = part.partition("-")
        if first.isdigit():
            upto = int(last) if last.isdigit() else int(first)
            found += range(int(first), min(upto, int(first) + MAX_RANGE) + 1)
    return tuple(dict.fromkeys(found))
