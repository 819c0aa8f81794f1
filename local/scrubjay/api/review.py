"""Review: which memories wait for the person, and what the person says of them."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.api.history import Place
from scrubjay.api.recall import Quote
from scrubjay_shared.records import Memory, ReviewState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """Which memories: those in a state, newest first. Without one, what waits and what is disputed."""

    state: ReviewState | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A memory in review: its state, why, the words it was read from, and the file where it came from one."""

    memory: Memory
    state: ReviewState
    reasons: tuple[str, ...]
    sources: tuple[Quote, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewResponse:
    """A page of memories in review, where the next one starts, and how many are in each state."""

    entries: tuple[Reviewed, ...]
    counts: dict[str, int]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideRequest:
    """What a person says of memories: that they hold, or that they do not. `every` means all that wait.

    What is accepted is used like any other memory; as a rule too, whoever said it. What is rejected is put away, and
    not learned again from the same words. Both can be undone.
    """

    accept: bool
    refs: tuple[str, ...] = ()
    every: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideResponse:
    """The ids of the memories that this changed, and the cause that `undo` takes back; None where nothing changed."""

    memories: tuple[str, ...]
    accepted: bool
    cause: str | None = None
