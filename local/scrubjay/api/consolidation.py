"""Consolidation: what a run did or would do, and what changed since a run or a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateRequest:
    """Consolidate now. `dry_run` says what that would change, and changes nothing."""

    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """A memory that a step is about, as it read before: the first thousand characters of it."""

    id: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationStep:
    """One step: `supersede` ends a memory, `question` notes that another may take its place; the others put away.

    `into` is what is in their place, `content` what that says; both are null where nothing is. `why` is a word for the
    evidence that a memory was outdated.
    """

    action: str
    members: tuple[Consolidated, ...]
    into: str | None = None
    content: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateResponse:
    """What a run did, or would do. `cause` is what `undo` takes back, null where nothing was written.

    `considered` memories were current before it, and `touched` of these changed; `left` more would have, but for the
    share of the store that one run may touch: the next run goes on with these. The tokens are those of all that is
    current, before and after.
    """

    cause: str | None
    steps: tuple[ConsolidationStep, ...]
    considered: int
    touched: int
    left: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """Changes of memories from a run or request on (`cause`, its id or the beginning of it), or from a time on.

    The time counts where no run is given; without either, it is all that ever changed. Comes in pages, in the order of
    the ids.
    """

    cause: str | None = None
    since: Millis | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDiff:
    """A field of a memory, before and after. Long texts are cut, and marked so."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDiff:
    """What became of one memory: `made`, `changed`, `archived`, `restored` or `forgotten`.

    Of one that was made, `fields` say no more than what has ended it since.

    `content` is what it says now, "" when it was forgotten. `causes` wrote to it in that time, first the earliest.
    """

    id: str
    change: str
    content: str
    fields: tuple[FieldDiff, ...] = ()
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResponse:
    """What changed from a time on. `next` is the cursor of the page after."""

    since: Millis
    changes: tuple[MemoryDiff, ...]
    next: str | None = None
