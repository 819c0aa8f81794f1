"""The layers that are always loaded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRequest:
    """One line of the identity or active layer: a key and its value; an empty value removes it."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """Who wants the startup context."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextResponse:
    """What an agent loads at its start: identity and active layer as text. `cut` names what did not fit.

    `notes` say when nothing belongs to the project that was named.
    """

    text: str
    tokens: int
    identity: dict[str, str]
    active: dict[str, str]
    cut: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
