"""Requests and responses about teams."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_sync.api.identity import Who

ROLES = ("reader", "writer", "admin")
"""What a member may do: read; write too; let in, take out and change roles too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMemberLine:
    """A member of a team. `name` is what this person knows them by, empty for who others let in."""

    account: str
    name: str
    role: str
    you: bool
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamLine:
    """A team as this device has it; before its first round it has no members yet.

    `words` stand for its log: members who have seen the same changes show the same six.
    """

    id: str
    name: str
    role: str
    epoch: int
    projects: tuple[str, ...]
    members: tuple[TeamMemberLine, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsResponse:
    """The teams that this person is in."""

    who: Who
    teams: tuple[TeamLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamWordsResponse:
    """Words that one person reads to another: of one's own card, or of somebody's coming into a team."""

    who: Who
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCreateRequest:
    """A new team, and the projects whose new memories go there."""

    name: str
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamInviteRequest:
    """Somebody to let in, by user name, with the words of their card."""

    team: str
    person: str
    role: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamJoinRequest:
    """The words that whoever let this person in has read, and what to call the team here."""

    name: str
    words: tuple[str, ...]
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMemberRequest:
    """A member of a team; `role` is the new one, where that is what is asked for."""

    team: str
    member: str
    role: str = ""
