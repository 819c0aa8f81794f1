"""Feedback: whether memories helped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRequest:
    """That memories helped whoever recalled them, did not, or are wrong; `content` is what holds instead of one.

    An agent's "wrong" asks the person (`review`), a person's puts the memory away or lets `content` take its place.
    """

    refs: tuple[str, ...]
    helped: bool
    wrong: bool = False
    content: str | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackResponse:
    """The ids of the memories of which that was counted, and of those that it changed.

    `cause` is what `undo` takes back, None where nothing changed; `corrected` is the memory that took the place.
    """

    memories: tuple[str, ...]
    helped: bool
    wrong: bool = False
    changed: tuple[str, ...] = ()
    cause: str | None = None
    corrected: str | None = None
