"""Feedback: whether memories helped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRequest:
    """That memories helped whoever recalled them, or did not."""

    refs: tuple[str, ...]
    helped: bool
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackResponse:
    """The ids of the memories of which that was counted."""

    memories: tuple[str, ...]
    helped: bool
