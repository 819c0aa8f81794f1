"""What runs and requests changed, and taking one of them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """A page of causes, newest first. With a `cause` (its id, or the beginning of it), that one and what it changed."""

    cause: str | None = None
    kind: str | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One run or request that changed something.

    `id` is its kind, a colon and a ULID. `label` says what it was about (the name of a file), on the device where it
    ran. `changes` counts its ops by what they did: write, name, unname, source, forget, event, redact.
    """

    id: str
    kind: str
    label: str
    ts: Millis
    changes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CausedChange:
    """One thing that a cause did: to which memory or event, what, and to which fields."""

    id: str
    change: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResponse:
    """Causes, newest first; of one cause, its changes as well. `next` is the cursor of the page after."""

    causes: tuple[Cause, ...] = ()
    changes: tuple[CausedChange, ...] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRequest:
    """Take back what a cause wrote. `dry_run` says what that would change, and changes nothing."""

    cause: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A memory of which something stays as it is, because it was changed since: `fields`, or `source` if read again."""

    id: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResponse:
    """What was taken back. `undo` is the cause of that, to be undone in its turn; None where nothing was written.

    `archived` are memories that the cause had made, `restored` those that are no longer archived, `reverted` others
    whose fields or names went back. `events` were appended and stay; `forgotten` stay forgotten.
    """

    cause: str
    undo: str | None
    archived: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    reverted: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    events: int = 0
    forgotten: int = 0
