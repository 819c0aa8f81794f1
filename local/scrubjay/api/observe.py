"""One fact that an agent noted: stored where the turns of its session say it."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.api.memories import Entry
from scrubjay_shared.records import Grip, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveRequest:
    """A fact, and where it holds: in the project, for the person everywhere, or in the session alone.

    It is looked for in the last turns of `session_id`, else of the caller's own session, else of the session of the
    project that was heard of last. The project is the caller's own where none is given.
    """

    scope: Scope
    content: str
    topic: str | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveResponse:
    """The memory that says it, new or known (`entry.created`), and the passages of these turns that it was read from.

    Its scope is the one that was asked for, or a narrower one.
    """

    entry: Entry
    grips: tuple[Grip, ...]
