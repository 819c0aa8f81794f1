"""The layers that are always loaded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRequest:
    """One line of the identity or active layer: a key and its value; an empty value removes it."""

    key: str
    value: str


class Section(StrEnum):
    """Why something is handed to an agent.

    As a rule or a decision of its project, as where the last session ended, because it answers what was just asked, or
    because it will probably be needed.
    """

    RULE = "rule"
    DECISION = "decision"
    LEFT_OFF = "left_off"
    RECALLED = "recalled"
    SURFACED = "surfaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One thing that an agent is handed. `ref` is the id of the memory or the event; `kind` says which.

    `probability` is how probable it is that something which was surfaced will be needed; None of everything else.
    """

    ref: str
    kind: str
    section: Section
    text: str
    ts: Millis
    trust: str
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """Who wants the startup context, or with a `prompt` what is handed beside that; within so many tokens."""

    project: str | None = None
    session_id: str | None = None
    prompt: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextResponse:
    """What an agent loads at its start: identity and active layer as text. `cut` names what did not fit.

    `notes` say when nothing belongs to the project that was named. `handed` is the whole of what an agent is given,
    as it is given: a block that says it is recalled, with `items` in it; "" where that is nothing.
    """

    text: str
    tokens: int
    identity: dict[str, str]
    active: dict[str, str]
    cut: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    items: tuple[ContextItem, ...] = ()
    handed: str = ""
