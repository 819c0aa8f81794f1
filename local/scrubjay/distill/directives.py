"""The directives of an observer's output, in the shapes that models give them; what has no tag is dropped and counted.

`@observe SCOPE` promotes one fact; `@topic`, `@type`, `@turns` and `@supersedes` beside it belong to that fact.
`@title` and `@summary` say what all of it was about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay_shared.records import MemoryType, Scope

DIRECTIVE = re.compile(r"^[ \t]*@observe\b", re.MULTILINE | re.IGNORECASE)
"""A text with such a line is an observer's output."""

MARKS = re.compile(r"(?:[-*+•>#]+\s+|\d{1,3}[.)]\s+|\[\d{1,5}\]\s*|[*_`]+)*")
"""What models put before a line: bullets, numbers, a turn in brackets, bold, code."""

NAMED = re.compile(
    r"[*_`]*@(?P<name>observe|topic|type|turns?|supersedes|title|summary)(?![\w-])[*_`]*\s*[:=]?[*_`\s]*", re.IGNORECASE
)
"""The name of a tag, with a colon or without, bold or as code."""

SCOPE = re.compile(r"(?P<scope>[A-Za-z]+)(?![\w-])[*_`]*(?:\s*[:–—]\s*|\s+|$)[*_`]*", re.IGNORECASE)
TYPE = re.compile(r"[A-Za-z_-]+$")
TURNS = re.compile(r"(?:turns?\s*)?\[?(?P<turns>\d{1,5}(?:[\]\[\s]*[-–,\s][\]\[\s]*\d{1,5}){0,63})\]?$", re.IGNORECASE)
CITED = re.compile(r"\s*\[(?:turns?\s*)?(?P<turns>\d{1,5}(?:\s*[-–,]\s*\d{1,5}){0,63})\](?P<stop>\.?)$", re.IGNORECASE)
"""Turns in brackets at the end of a fact."""

ABSENT = frozenset({"none", "-", "n/a", "null", "no"})
"""What models write after `@supersedes` where there is nothing."""

LABEL_CHARS = 64
VALUE_CHARS = 600
"""Of what stands behind a tag, and at the end of a fact, that patterns look at: agents write these lines too."""

WRAP_COLUMN = 60
"""From which a line without a stop goes on in the next one, as in `prose`."""

NEXT = re.compile(
    r"(?<=\s)(?=[*_`]{0,3}@(?:observe|topic|type|turns?|supersedes|title|summary)(?![\w-]))", re.IGNORECASE
)
FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
TELLING = ("title", "summary")
ATTRIBUTES = ("topic", "type", "turns", "supersedes")
FACT_NAMES = ("fact", "content", "text", "statement", "memory")
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
    """What a text promotes, in order, and how many lines were dropped: malformed directives, and untagged lines.

    `unknown_types` were left out, and their facts taken. `told` is what it says under `title` and `summary`.
    """

    observed: tuple[Directive, ...] = ()
    malformed: int = 0
    dropped_untagged: int = 0
    unknown_types: int = 0
    told: Mapping[str, str] = field(default_factory=dict)


def parse_directives(text: str, known: Collection[str] = ()) -> Directives:
    """Read an observer's output: `@observe project|user|session`, attributes before or after it, then the fact.

    The fact is the next line, or the rest of the `@observe` line; each directive promotes one. An attribute belongs to
    the next fact, and several may stand in one line. Bullets, numbers, bold and code around a line do not count, and a
    long line without a stop goes on in the next. A line without a directive is dropped. So is a directive with an
    unknown scope, turns that are no numbers, or an id that is not among the `known` ones (and the line after it counts
    as untagged), and one without a fact. An unknown type is left out. Of titles and summaries the first counts: its
    words stand behind the tag or in the next line.
    """
    reader = _Reader(known)
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        bare = line.strip()
        if any(map(str.isalnum, bare)) and not FENCE.match(bare):
            reader.read(bare, start + len(line) - len(line.lstrip()))
        else:  # empty, or a fence
            reader.wrapped = False
    return reader.found()


def from_json(text: str) -> str | None:
    r"""Return an answer in JSON as directives, None where it is not JSON: a list of facts, or an object that has one.

    >>> from_json('[{"observe": "user", "type": "preference", "turns": [1], "fact": "Tabs."}]')
    '@type preference\n@turns 1\n@observe user\nTabs.\n'
    """
    bare = FENCE.sub("", text).strip()
    if not bare.startswith(("[", "{")):
        return None
    try:
        read = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    lines: list[str] = []
    if isinstance(read, dict):
        given = {str(name).lower().lstrip("@"): value for name, value in read.items()}
        lines += [f"@{name} {_one_line(given[name])}" for name in TELLING if isinstance(given.get(name), str)]
        held = next((value for value in read.values() if isinstance(value, list) and _are_objects(value)), None)
        is_told = bool(lines) and given.keys().isdisjoint((*FACT_NAMES, "observe", "scope"))
        read = held if held is not None else [] if is_told else [read]
    if not isinstance(read, list) or not _are_objects(read):
        return None
    for each in read:
        said = {str(name).lower().lstrip("@"): value for name, value in each.items()}
        fact = next((said[name] for name in FACT_NAMES if isinstance(said.get(name), str)), None)
        turns = said.get("turns", said.get("turn"))
        said["turns"] = ", ".join(map(str, turns)) if isinstance(turns, list) else turns
        lines += [f"@{name} {_one_line(said[name])}" for name in ATTRIBUTES if said.get(name) not in (None, "")]
        lines.append(f"@observe {_one_line(said.get('observe') or said.get('scope') or '?')}")
        lines.append(_one_line(fact or ""))
    return "".join(f"{line}\n" for line in lines)


def _are_objects(values: list[object]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


@dataclass(slots=True)
class _Reader:
    """What was read so far. `spoiled`: an attribute of the fact to come was malformed, so that it is not taken.

    `wrapped`: the last line was a fact that goes on in the next. `awaited`: under which name `told` has the next line.
    """

    known: Collection[str]
    observed: list[Directive] = field(default_factory=list)
    malformed: int = 0
    untagged: int = 0
    unknown_types: int = 0
    scope: Scope | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    spoiled: bool = False
    wrapped: bool = False
    told: dict[str, str] = field(default_factory=dict)
    awaited: str = ""

    def read(self, bare: str, begin: int) -> None:
        """Take in one line that holds something, and where it begins."""
        marks = MARKS.match(bare)
        at = marks.end() if marks else 0
        if NAMED.match(bare, at) is None and not bare[at:].lower().startswith("@observe"):
            if self.awaited:
                self._tell(self.awaited, bare[at:])
            elif self.wrapped and at == 0:
                self._go_on(bare, begin)
            elif self.scope is None:
                self.untagged += 1
                self.wrapped = False
            else:
                self._promote(bare, at, begin)
            return
        self.wrapped, self.awaited = False, ""
        while (named := NAMED.match(bare, at)) is not None:
            at = named.end()
            name = named["name"].lower()
            if name == "observe":
                at = self._observe(bare, at, begin)
                if at >= len(bare):
                    return
                continue
            following = NEXT.search(bare, at)
            upto = following.start() if following else len(bare)
            value = bare[at : min(upto, at + VALUE_CHARS)].strip().rstrip("*_`").strip()
            if name in TELLING:
                self._tell(name, value)
            else:
                self._attribute(name, value)
            at = upto
        if at < len(bare):  # "@observer"
            self._spoil()

    def found(self) -> Directives:
        """Return what was read."""
        return Directives(
            observed=tuple(self.observed),
            malformed=self.malformed + (self.scope is not None),
            dropped_untagged=self.untagged,
            unknown_types=self.unknown_types,
            told=self.told,
        )

    def _tell(self, name: str, value: str) -> None:
        """Take in a title or a summary; without words, those of the next line."""
        self.awaited = "" if value else name
        if value:
            self.told.setdefault(name, value.strip('*_`"“”').strip())

    def _observe(self, bare: str, at: int, begin: int) -> int:
        """Take in a scope, and the fact where it stands behind it. Returns where the line goes on."""
        self.malformed += self.scope is not None  # the one before promoted nothing
        scope = SCOPE.match(bare, at)
        self.scope = SCOPES.get(scope["scope"].lower()) if scope else None
        if scope is None or self.scope is None:
            self._spoil()
            return len(bare)
        if self.spoiled:
            self._reset()
            return len(bare)
        if NAMED.match(bare, scope.end()):
            return scope.end()
        if scope.end() < len(bare):
            self._promote(bare, scope.end(), begin)
        return len(bare)

    def _attribute(self, name: str, value: str) -> None:
        """Take in what is said of the next fact."""
        if name == "topic" and value:
            self.attributes["topic"] = value[:LABEL_CHARS].lower()
        elif name == "type" and TYPE.match(value):
            type_ = TYPES.get(value.lower().replace("-", "_"))
            self.unknown_types += type_ is None
            self.attributes |= {} if type_ is None else {"type": type_}
        elif name in {"turn", "turns"} and (cited := TURNS.match(value)):
            self.attributes["turns"] = _numbers(cited["turns"])
        elif name == "supersedes" and value.lower() in ABSENT:
            pass
        elif name == "supersedes" and value in self.known:
            self.attributes["supersedes"] = value
        else:
            self._spoil(of_next=name != "topic" and self.scope is None)

    def _promote(self, bare: str, at: int, begin: int) -> None:
        """Take in the fact that begins at `at` of a line."""
        fact = bare[at:]
        ends = fact[-1] if fact[-1:] in {"*", "_", "`"} and bare[:at].endswith(fact[-1]) else ""
        fact = fact.rstrip(ends) if ends else fact
        cited = CITED.search(fact, max(len(fact) - VALUE_CHARS, 1))
        if cited:
            self.attributes.setdefault("turns", _numbers(cited["turns"]))
            fact = fact[: cited.start()] + cited["stop"]
        if self.scope is not None and fact:
            self.observed.append(
                Directive(
                    scope=self.scope,
                    content=fact,
                    span_start=begin + at,
                    span_end=begin + at + (cited.start() if cited else len(fact)),
                    **self.attributes,
                )
            )
        self._reset()
        self.wrapped = _runs_on(bare) and not cited

    def _go_on(self, bare: str, begin: int) -> None:
        last = self.observed[-1]
        self.observed[-1] = replace(last, content=f"{last.content} {bare}", span_end=begin + len(bare))
        self.wrapped = _runs_on(bare)

    def _spoil(self, *, of_next: bool = False) -> None:
        self.malformed += 1 + (self.scope is not None)
        self._reset()
        self.spoiled = of_next

    def _reset(self) -> None:
        self.scope = None
        self.attributes = {}
        self.spoiled = False
        self.wrapped = False


def _runs_on(bare: str) -> bool:
    return len(bare) >= WRAP_COLUMN and not bare.rstrip("*_`)]\"'”").endswith((".", "!", "?", ":", ";"))


def _numbers(cited: str) -> tuple[int, ...]:
    """Return the turns of "4, 7-9"."""
    found: list[int] = []
    for part in re.split(r"[,\s\[\]]+", re.sub(r"[\s\[\]]*[-–][\s\[\]]*", "-", cited.strip())):
        first, _, last = part.partition("-")
        if first.isdigit():
            upto = int(last) if last.isdigit() else int(first)
            found += range(int(first), min(upto, int(first) + MAX_RANGE) + 1)
    return tuple(dict.fromkeys(found))
