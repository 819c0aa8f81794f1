"""Asking the Writer: a question of the person, and an answer that cites what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.api.recall import Hit
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question that the Writer is to answer from what is remembered, and what may answer it, as in recall."""

    question: str
    project: str | None = None
    session_id: str | None = None
    scope: Scope | None = None
    agent: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    as_of: Millis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of an answer, and the ids of the hits that it cites: at least one, and each was found."""

    text: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskResponse:
    """What the Writer answered. With `known` false, it says that nothing which was found answers the question.

    `hits` are those that are cited, in the order of their first citation. `phrasings` are the wordings that were
    searched, the question itself first, and `found` counts the hits that the Writer read. `dropped` counts what it
    wrote without citing any of them, which is not shown. Tokens and `calls` are what it cost.
    """

    known: bool
    statements: tuple[Statement, ...]
    hits: tuple[Hit, ...]
    phrasings: tuple[str, ...]
    found: int
    dropped: int
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    elapsed_ms: float
    notes: tuple[str, ...] = ()
