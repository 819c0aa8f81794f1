"""The routes of teams. Only devices that are not limited: a team's keys are in what the others share."""

from __future__ import annotations

from typing import Any

from scrubjay_cloud.decoding import whole
from scrubjay_cloud.endpoint import Admits, Endpoint, Query, Takes
from scrubjay_cloud.lanes.validate import MAX_N
from scrubjay_cloud.teams.lanes import heads, push, read_lane
from scrubjay_cloud.teams.log import append_log, create_team, get_card, list_teams, own_wraps, put_card, read_log
from scrubjay_shared.teams.records import PutTeamCard, TeamAppend, TeamCard, Teams, TeamWraps
from scrubjay_shared.wire import Heads, LogPage, PushAnswer


def _get(path: str, summary: str, handler: Any, answer: type[Any], *query: Query, limit: str = "control") -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        summary=summary,
        handler=handler,
        admits=Admits.FULL,
        answer=answer,
        query=query,
        limit=limit,
    )


def _post(path: str, summary: str, handler: Any, *, status: int = 200) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        summary=summary,
        handler=handler,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=TeamAppend,
        answer=LogPage,
        status=status,
    )


def _from(least: int) -> Query:
    return Query(
        name="from",
        meaning="a number",
        read=whole(least, MAX_N),
        schema={"type": "integer", "minimum": least, "maximum": MAX_N},
        default=least,
    )


ENDPOINTS = (
    _get("/v1/teams", "The teams that the account is in.", list_teams, Teams, limit="pull"),
    _post("/v1/teams", "Make a team.", create_team, status=201),
    _get(
        "/v1/teams/card",
        "The keys under which a person joins teams.",
        get_card,
        TeamCard,
        Query(name="username", meaning="a user name", read=str, schema={"type": "string"}, required=True),
    ),
    Endpoint(
        method="PUT",
        path="/v1/teams/card",
        summary="Keep one's own card.",
        handler=put_card,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=PutTeamCard,
        status=204,
    ),
    _get("/v1/teams/{team}/log", "A team's log from an entry on.", read_log, LogPage, _from(0), limit="pull"),
    _post("/v1/teams/{team}/log", "Append to a team's log.", append_log),
    _get("/v1/teams/{team}/wraps", "The team's keys that are sealed to the account.", own_wraps, TeamWraps),
    _get("/v1/teams/{team}/heads", "Where every lane of a team ends.", heads, Heads, limit="pull"),
    _get(
        "/v1/teams/{team}/lanes/{device}",
        "One lane of a team from a number on.",
        read_lane,
        bytes,
        _from(1),
        limit="pull",
    ),
    Endpoint(
        method="POST",
        path="/v1/teams/{team}/push",
        summary="Append objects to the calling device's lane of a team.",
        handler=push,
        admits=Admits.FULL,
        takes=Takes.OBJECTS,
        answer=PushAnswer,
        limit="push",
    ),
)
