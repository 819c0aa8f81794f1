"""Agents: who contributed, and how much on which days."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scrubjay_shared.clock import Millis


class Bucket(StrEnum):
    """How long one span of activity is, on the person's calendar. Weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsRequest:
    """Which agents contributed to a project, or to everything that the caller sees."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent: its events and sessions, the projects it worked in, and the times of its first and last event."""

    name: str
    events: int
    sessions: int
    projects: tuple[str, ...]
    first: Millis
    last: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsResponse:
    """All agents, the one that was there last first. `notes` say when nothing belongs to the project."""

    agents: tuple[Agent, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRequest:
    """How active agents were, or one of them, from `since` to before `until`; 30 days up to now where `since` is None.

    A day is the person's: that of the clock where the event happened.
    """

    agent: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    bucket: Bucket = Bucket.DAY
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What one agent did on one day or in one week, which begins on `day` (2026-11-23).

    `prompts` are what somebody asked it, of its `events`; `first` and `last` are the times of the first and last event.
    """

    day: str
    agent: str
    events: int
    prompts: int
    sessions: int
    first: Millis
    last: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityResponse:
    """The days or weeks on which something happened, in order, an entry an agent; and the bounds that were used.

    `notes` say when an agent or a project is unknown.
    """

    activity: tuple[Activity, ...]
    bucket: Bucket
    since: Millis
    until: Millis | None
    notes: tuple[str, ...] = ()
