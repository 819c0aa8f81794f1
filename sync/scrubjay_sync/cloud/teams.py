"""The routes of teams."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_shared import wire
from scrubjay_shared.envelope import MAX_PAGE_BYTES, Envelope, split
from scrubjay_shared.errors import MalformedError
from scrubjay_shared.teams.records import PutTeamCard, TeamAppend, TeamCard, Teams, TeamWraps
from scrubjay_sync.cloud.connection import Auth, Connection
from scrubjay_sync.policy import CLOUD


class TeamRoutes:
    """One method for each route of teams. All ask as a device."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def card(self, username: str) -> TeamCard:
        """Return the card of a user name, as the server has it: people compare its words. Raises NotFoundError."""
        return await self._connection.json(
            "GET", "/v1/teams/card", TeamCard, auth=Auth.DEVICE, params={"username": username}
        )

    async def put_card(self, card: PutTeamCard) -> None:
        """Replace this person's card."""
        await self._connection.send("PUT", "/v1/teams/card", body=card, auth=Auth.DEVICE)

    async def list(self) -> Teams:
        """Return the teams that the server says this account is in."""
        return await self._connection.json("GET", "/v1/teams", Teams, auth=Auth.DEVICE)

    async def create(self, append: TeamAppend) -> wire.LogPage:
        """Make a team."""
        return await self._connection.json("POST", "/v1/teams", wire.LogPage, body=append, auth=Auth.DEVICE)

    async def log(self, team: bytes, start: int = 0) -> wire.LogPage:
        """Return a team's log from entry `start` on. Raises NotFoundError for a team that one was never in."""
        return await self._connection.json(
            "GET",
            f"/v1/teams/{team.hex()}/log",
            wire.LogPage,
            auth=Auth.DEVICE,
            params={"from": str(start)},
            limit=CLOUD.log_page_bytes,
        )

    async def append(self, team: bytes, append: TeamAppend) -> wire.LogPage:
        """Append to a team's log. Raises LogConflictError when it has moved on."""
        return await self._connection.json(
            "POST", f"/v1/teams/{team.hex()}/log", wire.LogPage, body=append, auth=Auth.DEVICE
        )

    async def wraps(self, team: bytes) -> TeamWraps:
        """Return a team's keys that are sealed to this person."""
        return await self._connection.json("GET", f"/v1/teams/{team.hex()}/wraps", TeamWraps, auth=Auth.DEVICE)

    async def heads(self, team: bytes) -> tuple[wire.LaneHead, ...]:
        """Return where every lane of a team ends."""
        found = await self._connection.json("GET", f"/v1/teams/{team.hex()}/heads", wire.Heads, auth=Auth.DEVICE)
        return found.heads

    async def lane(self, team: bytes, device: bytes, start: int) -> tuple[Envelope, ...]:
        """Return objects of a lane in its order, from place `start` on: a page, none when the lane ends before."""
        response = await self._connection.send(
            "GET",
            f"/v1/teams/{team.hex()}/lanes/{device.hex()}",
            auth=Auth.DEVICE,
            params={"from": str(start)},
            limit=MAX_PAGE_BYTES,
        )
        return tuple(split(response.body))

    async def push(self, team: bytes, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send objects of this device's own lane; one result each, in order."""
        raw = b"".join(envelope.data for envelope in objects)
        answer = await self._connection.json(
            "POST", f"/v1/teams/{team.hex()}/push", wire.PushAnswer, raw=raw, auth=Auth.DEVICE
        )
        if [one.n_from for one in answer.results] != [one.header.n_from for one in objects]:
            raise MalformedError(
                f"{self._connection.origin} answered about other objects than were sent",
                hint="the server or a proxy has a fault: tell its operator",
            )
        return answer.results
