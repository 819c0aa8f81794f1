"""`@observe` and `@topic` lines of an observer's output, read strictly: what is not tagged is dropped and counted."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay_shared.records import Scope

DIRECTIVE = re.compile(r"^[ \t]*@observe\b", re.MULTILINE | re.IGNORECASE)
"""A text with such a line is an observer's output."""

TAG = re.compile(r"@observe\s+(?P<scope>[A-Za-z]+)(?![\w-])(?:\s*:\s*|\s+|$)(?P<fact>.*)$", re.IGNORECASE)
TOPIC = re.compile(r"@topic\s+(?P<label>\S.{0,63})$", re.IGNORECASE)
SCOPES = {scope.value: scope for scope in Scope}


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One fact that was promoted to a scope. The span is that of `content` in the text it was read from."""

    scope: Scope
    content: str
    topic: str | None
    span_start: int
    span_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """What a text promotes, in order, and how many lines were dropped: malformed tags, and lines without a tag."""

    observed: tuple[Directive, ...] = ()
    malformed: int = 0
    dropped_untagged: int = 0


def parse_directives(text: str) -> Directives:
    """Read an observer's output: `@observe project|user|session`, an optional `@topic LABEL`, then the fact.

    The fact is the next line, or the rest of the `@observe` line; each directive promotes one. A topic before or after
    the scope belongs to the next fact. A line without a directive is dropped, so is a directive with an unknown scope
    (and the line after it counts as untagged) or without a fact.
    """
    observed: list[Directive] = []
    malformed = untagged = position = 0
    scope: Scope | None = None
    topic: str | None = None
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        bare = line.strip()
        begin = start + len(line) - len(line.lstrip())
        if not bare:
            continue
        if tag := TAG.match(bare):
            malformed += scope is not None  # the one before promoted nothing
            scope, fact = SCOPES.get(tag["scope"].lower()), tag["fact"] or ""
            malformed += scope is None
            topic = topic if scope else None
            if scope is None or not fact:
                continue
            bare, begin = fact, begin + tag.start("fact")
        elif label := TOPIC.match(bare):
            topic = label["label"].lower()
            continue
        elif bare.lower().startswith(("@observe", "@topic")):
            malformed += 1 + (scope is not None)
            scope = topic = None
            continue
        if scope is None:
            untagged += 1
            continue
        observed.append(
            Directive(scope=scope, content=bare, topic=topic, span_start=begin, span_end=begin + len(bare)),
        )
        scope = topic = None
    return Directives(observed=tuple(observed), malformed=malformed + (scope is not None), dropped_untagged=untagged)
