"""The routes of snapshots: a scope's manifest, and the chunks that it names."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay_shared import wire
from scrubjay_sync.cloud.connection import Auth, Connection


class SnapshotRoutes:
    """One method for each route."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def manifest(self, scope: bytes) -> bytes:
        """Return the object of the manifest of a scope's snapshot. NotFoundError where there is none."""
        response = await self._connection.send("GET", f"/v1/snapshots/{scope.hex()}", auth=Auth.DEVICE)
        return response.body

    async def chunk(self, digest: bytes) -> bytes:
        """Return the object stored under a SHA-256; whether it is that one is the caller's to check. NotFoundError."""
        response = await self._connection.send("GET", f"/v1/objects/{digest.hex()}", auth=Auth.DEVICE)
        return response.body

    async def missing(self, scope: bytes, chunks: Sequence[bytes]) -> frozenset[bytes]:
        """Return which of some chunks the server does not have."""
        answer = await self._connection.json(
            "POST",
            f"/v1/snapshots/{scope.hex()}/missing",
            wire.Chunks,
            body=wire.Chunks(chunks=tuple(chunks)),
            auth=Auth.DEVICE,
        )
        return frozenset(answer.chunks)

    async def put_chunk(self, digest: bytes, data: bytes) -> None:
        """Send the object of a chunk."""
        await self._connection.send("PUT", f"/v1/objects/{digest.hex()}", raw=data, auth=Auth.DEVICE)

    async def put(self, scope: bytes, manifest: bytes, chunks: Sequence[bytes]) -> None:
        """Put a snapshot in the place of the one before. NotFoundError when a chunk of it is not there."""
        body = wire.PutSnapshot(manifest=manifest, chunks=tuple(chunks))
        await self._connection.send("PUT", f"/v1/snapshots/{scope.hex()}", body=body, auth=Auth.DEVICE)

    async def delete(self, scope: bytes) -> None:
        """Delete a scope's snapshot."""
        await self._connection.send("DELETE", f"/v1/snapshots/{scope.hex()}", auth=Auth.DEVICE)
