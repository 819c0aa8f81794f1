"""The cloud as rounds see it: one typed method for each route of objects. Its other routes are parts of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import httpx2

from scrubjay_shared import wire
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import MAX_PAGE_BYTES, Envelope, split
from scrubjay_shared.errors import (
    BY_CODE,
    MalformedError,
)
from scrubjay_sync.cloud.account import AccountRoutes
from scrubjay_sync.cloud.connection import Auth, Connection, Credential
from scrubjay_sync.cloud.log import LogRoutes
from scrubjay_sync.cloud.search import SearchRoutes
from scrubjay_sync.cloud.snapshots import SnapshotRoutes
from scrubjay_sync.cloud.teams import TeamRoutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some objects as the server holds them, where the next page begins, and where everything ends."""

    objects: tuple[Envelope, ...]
    cursor: str
    head: str


class Cloud:
    """One server. Every method raises the kinds of `errors`; UnavailableError when the server cannot be reached.

    `account` has the routes that change the account or who is in it, `log` those of the account log and of the keys
    that it names, `search` those of searchable scopes, `snapshots` those of snapshots, `teams` those of teams.
    """

    def __init__(
        self,
        origin: str,
        *,
        now: Callable[[], Millis],
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`transport` takes the place of the network. Raises InvalidError for an unsafe or missing address."""
        self._connection = Connection(origin, now=now, transport=transport, sleep=sleep)
        self.account = AccountRoutes(self._connection)
        self.log = LogRoutes(self._connection)
        self.search = SearchRoutes(self._connection)
        self.snapshots = SnapshotRoutes(self._connection)
        self.teams = TeamRoutes(self._connection)

    @property
    def origin(self) -> str:
        """The server's address in its one form."""
        return self._connection.origin

    @property
    def store_id(self) -> str | None:
        """Which store the server has, by its last response."""
        return self._connection.store_id

    @property
    def generation(self) -> int | None:
        """The generation of that store: it grows when a backup is restored."""
        return self._connection.generation

    @property
    def offset_ms(self) -> int | None:
        """What to add to this device's clock to get the server's; None before the first response."""
        return self._connection.offset_ms

    @property
    def refused(self) -> int:
        """When the newest refusal of a device of the account ends, by the server's clock; 0 while there is none."""
        return self._connection.refused

    @property
    def username(self) -> str:
        """What the server calls the account, by the last token; empty before, and for a limited device."""
        return self._connection.username

    @property
    def quota_percent(self) -> int:
        """Share of the quota used, in percent, when the server last warned; 0 while it does not."""
        return self._connection.quota_percent

    def use(self, credential: Credential) -> None:
        """Ask as a device of an account from now on. Tokens are fetched when they are needed."""
        self._connection.use(credential)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def caps(self) -> wire.Caps:
        """Return what this server speaks and allows. Raises UpdateNeededError when that is another protocol."""
        caps = await self._connection.json("GET", "/v1/caps", wire.Caps, auth=None)
        if caps.protocol != wire.PROTOCOL:
            raise BY_CODE["update_needed"](
                f"{self._connection.origin} speaks protocol {caps.protocol}, this device {wire.PROTOCOL}",
                hint="update the older of the two",
            )
        self._connection.store_id, self._connection.generation = caps.store_id, caps.generation
        return caps

    async def push(self, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send objects that continue lanes of this device; one result each, in order. TooLargeError: send fewer."""
        return await self._objects("/v1/push", objects)

    async def pack(self, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send packs that take the place of what they cover."""
        return await self._objects("/v1/pack", objects)

    async def repair(self, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send objects of any lane of the account that the server has lost, as they were first sent."""
        return await self._objects("/v1/heal", objects)

    async def pull(
        self, cursor: str, *, limit: int = MAX_PAGE_BYTES, wait_s: float = 0, scopes: Sequence[bytes] = ()
    ) -> Page:
        """Return the objects after a cursor ("" is the beginning), at most `limit` bytes of them.

        With nothing new, the answer comes when there is something, or after `wait_s`. `scopes` empty means all.
        """
        params = {"after": cursor, "limit": str(limit), "wait": str(int(wait_s))}
        if scopes:
            params["scopes"] = ",".join(scope.hex() for scope in scopes)
        response = await self._connection.send(
            "GET", "/v1/pull", auth=Auth.DEVICE, params=params, wait_s=wait_s, limit=max(limit, MAX_PAGE_BYTES)
        )
        try:
            cursor, head = response.headers[wire.CURSOR], response.headers[wire.HEAD]
        except KeyError as error:
            raise MalformedError(
                f"{self._connection.origin} sent a page without the header that says where the next one begins",
                hint="a proxy in between may drop headers: tell the server's operator",
            ) from error
        return Page(objects=tuple(split(response.body)), cursor=cursor, head=head)

    async def lane(
        self, scope: bytes, device: bytes, *, start: int = 1, limit: int = MAX_PAGE_BYTES
    ) -> tuple[Envelope, ...]:
        """Return objects of a lane in its order, from the one that holds place `start` on.

        As many as fit `limit` bytes, but at least one; none when the lane ends before.
        """
        params = {"from": str(start), "limit": str(limit)}
        path = f"/v1/lanes/{scope.hex()}/{device.hex()}"
        response = await self._connection.send(
            "GET", path, auth=Auth.DEVICE, params=params, limit=max(limit, MAX_PAGE_BYTES)
        )
        return tuple(split(response.body))

    async def heads(self) -> wire.Heads:
        """Return where every lane of the account ends."""
        return await self._connection.json("GET", "/v1/heads", wire.Heads, auth=Auth.DEVICE)

    async def _objects(self, path: str, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        raw = b"".join(envelope.data for envelope in objects)
        response = await self._connection.json("POST", path, wire.PushAnswer, raw=raw, auth=Auth.DEVICE)
        asked = [(one.header.scope, one.header.device, one.header.n_from, one.header.n_to) for one in objects]
        if [(one.scope, one.device, one.n_from, one.n_to) for one in response.results] != asked:
            raise MalformedError(
                f"{self._connection.origin} answered about other objects than were sent",
                hint="the server or a proxy has a fault: tell its operator",
            )
        return response.results
