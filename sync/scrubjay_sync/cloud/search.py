"""The routes of scopes that the server may read: searching them, and the vectors of their memories."""

from __future__ import annotations

from scrubjay_shared import wire
from scrubjay_sync.cloud.connection import Auth, Connection


class SearchRoutes:
    """One method for each route."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def query(self, scope: bytes, request: wire.SearchRequest) -> wire.SearchAnswer:
        """Search a scope that the server may read."""
        return await self._connection.json(
            "POST", f"/v1/search/{scope.hex()}", wire.SearchAnswer, body=request, auth=Auth.DEVICE
        )

    async def wanted_vectors(self, scope: bytes, *, after: str = "") -> wire.WantedVectors:
        """Return which memories of a searchable scope have no vector at the server, a page behind an id."""
        params = {"after": after} if after else None
        path = f"/v1/search/{scope.hex()}/vectors"
        return await self._connection.json("GET", path, wire.WantedVectors, auth=Auth.DEVICE, params=params)

    async def put_vectors(self, scope: bytes, vectors: wire.PutVectors) -> None:
        """Give vectors of a searchable scope's memories."""
        await self._connection.send("PUT", f"/v1/search/{scope.hex()}/vectors", body=vectors, auth=Auth.DEVICE)
