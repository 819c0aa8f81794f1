"""The routes of the account log, and of what its entries name: wrapped keys and keyrings."""

from __future__ import annotations

from scrubjay_shared import wire
from scrubjay_sync.cloud.connection import Auth, Connection


class LogRoutes:
    """One method for each route. With `pending`, the token of a device that is being enrolled, they ask as that."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def page(self, start: int = 0, *, pending: str | None = None) -> wire.LogPage:
        """Return the account log from entry `start` on."""
        return await self._connection.json(
            "GET", "/v1/log", wire.LogPage, auth=pending or Auth.DEVICE, params={"from": str(start)}
        )

    async def checkpoint(self, before: int | None = None, *, pending: str | None = None) -> wire.LogCheckpoint:
        """Return the newest checkpoint of the account log, of those up to entry `before`. NotFoundError without one."""
        params = {} if before is None else {"before": str(before)}
        return await self._connection.json(
            "GET", "/v1/log/checkpoint", wire.LogCheckpoint, auth=pending or Auth.DEVICE, params=params
        )

    async def append(self, append: wire.LogAppend, *, pending: str | None = None) -> wire.LogPage:
        """Append to the account log. Raises LogConflictError when it has moved on."""
        return await self._connection.json("POST", "/v1/log", wire.LogPage, body=append, auth=pending or Auth.DEVICE)

    async def wraps(self, target: bytes, *, pending: str | None = None) -> wire.Wraps:
        """Return the keys sealed to a device, or to the recovery code (`wire.RECOVERY_TARGET`), newest first."""
        return await self._connection.json("GET", f"/v1/wraps/{target.hex()}", wire.Wraps, auth=pending or Auth.DEVICE)

    async def blob(self, digest: bytes, *, pending: str | None = None) -> bytes:
        """Return the object stored under a SHA-256; whether it is that one is the caller's to check. NotFoundError."""
        response = await self._connection.send("GET", f"/v1/objects/{digest.hex()}", auth=pending or Auth.DEVICE)
        return response.body

    async def put_blob(self, digest: bytes, data: bytes) -> None:
        """Store an object under its SHA-256."""
        await self._connection.send("PUT", f"/v1/objects/{digest.hex()}", raw=data, auth=Auth.DEVICE)
