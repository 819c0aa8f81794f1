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

    As what a project or its person is, how to work there, what was decided, or what to beware of; as where the last
    session ended, because it answers what was just asked, or because it will probably be needed.
    """

    ABOUT = "about"
    RULE = "rule"
    DECISION = "decision"
    WARNING = "warning"
    LEFT_OFF = "left_off"
    RECALLED = "recalled"
    SURFACED = "surfaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One thing that an agent is handed. `ref` is the id of the memory or the event; `kind` says which.

    `text` is the line, and `words` what is said in it, without the id, the day and whose words they are.
    `probability` is how probable it is that something which was predicted will be needed; None of everything else.
    `worth` is what a memory is worth that is told at a start, `pinned` whether the person picked it.
    """

    ref: str
    kind: str
    section: Section
    text: str
    ts: Millis
    trust: str
    probability: float | None = None
    worth: float | None = None
    pinned: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefRequest:
    """Whose brief is asked for; without a project, that of the project in which something was said last."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefResponse:
    """A project's brief: what it is, how to work there, what was decided, what to beware of.

    Each of the `items` is a memory, in its own words; what the person pinned comes first. `text` is the page, and
    `tokens` of `budget` are what its lines take. `known` is how many memories there are to choose from.
    """

    project: str | None
    items: tuple[ContextItem, ...]
    text: str
    tokens: int
    budget: int
    known: int
    notes: tuple[str, ...] = ()


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
    as it is given: a block that says it is recalled, with `items` in it; "" where that is nothing. Of the `tokens` of
    `text`, `active_tokens` are the active layer's. `project` is whose context it is, None where none was named.
    """

    text: str
    tokens: int
    identity: dict[str, str]
    active: dict[str, str]
    cut: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    items: tuple[ContextItem, ...] = ()
    handed: str = ""
    active_tokens: int = 0
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveLine:
    """One line of the active layer: its key and words, and the memory that holds it. `fits` is whether it is loaded.

    One that does not fit into the layer's budget of tokens is kept and not loaded.
    """

    key: str
    ref: str
    text: str
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A line that is proposed for the active layer. `ref` is the id of a memory, or of an event (`kind` says which).

    `reason` is "goal" (an open one), "decision" (one of late) or "left_off" (what the last session did not finish).
    `tokens` is what it would take of the layer's budget.
    """

    ref: str
    kind: str
    reason: str
    text: str
    ts: Millis
    trust: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRequest:
    """Whose active layer is asked for; without a project, that of the project in which something was said last."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveResponse:
    """The lines of the active layer and what is proposed for it, in a project; `tokens` of `budget` are taken."""

    project: str | None
    active: tuple[ActiveLine, ...]
    proposed: tuple[Proposal, ...]
    tokens: int
    budget: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalsRequest:
    """Which proposals are confirmed or dismissed: by the beginning of their ids, or all of them (`every`).

    What is dismissed may also be a line that is active: it is then taken out of the layer.
    """

    refs: tuple[str, ...] = ()
    every: bool = False
    project: str | None = None
    session_id: str | None = None
