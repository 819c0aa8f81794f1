"""The JSON bodies of the service's team routes. Ids are 16 bytes, hex in paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCard:
    """GET /v1/teams/card?username=: the keys under which a person joins teams. Two people compare them in words."""

    account: bytes
    sign_pub: bytes
    wrap_pub: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PutTeamCard:
    """PUT /v1/teams/card: one's own card, in the place of the one before."""

    sign_pub: bytes
    wrap_pub: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamWrap:
    """The key of an epoch of a team, sealed to one member."""

    account: bytes
    epoch: int
    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamWraps:
    """GET /v1/teams/{team}/wraps: the caller's own."""

    wraps: tuple[TeamWrap, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamAppend:
    """POST /v1/teams and /v1/teams/{team}/log: entries that follow `head`, with the wraps that they make necessary."""

    head: bytes
    entries: tuple[bytes, ...]
    wraps: tuple[TeamWrap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamLine:
    """A team that the caller is in: where its log ends, and a number that rises with every object that comes in."""

    team: bytes
    seq: int
    head: bytes
    moved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Teams:
    """GET /v1/teams."""

    teams: tuple[TeamLine, ...]
