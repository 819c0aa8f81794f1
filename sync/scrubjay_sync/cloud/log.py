"""The routes of the account log, and of what its entries name: wrapped keys and keyrings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from scrubjay_shared import wire
from scrubjay_shared.errors import InvalidError, MalformedError, WithheldError
from scrubjay_sync.cloud.connection import Auth, Connection
from scrubjay_sync.policy import CLOUD


async def pages_of(
    page: Callable[[int], Awaitable[wire.LogPage]], start: int, what: str, *, hint: str
) -> AsyncIterator[wire.LogPage]:
    """Yield the pages of a log from an entry on, to where the server says that it ends; `what` is its name.

    Whoever takes them verifies each before the next. Raises WithheldError where the server hands out no more before
    its end, MalformedError where it hands out more than any log has.
    """
    at, size = start, 0
    while True:
        found = await page(at)
        at, size = at + len(found.entries), size + sum(map(len, found.entries))
        if size > CLOUD.log_bytes:
            raise MalformedError(
                f"the server hands out more than {CLOUD.log_bytes >> 20} MB as {what}",
                hint=f"no log is so long: {hint}",
            )
        yield found
        if at > found.seq:
            return
        if not found.entries:
            raise WithheldError(f"the server does not hand out the end of {what}", hint=hint)


class LogRoutes:
    """One method for each route. With `pending`, the token of a device that is being enrolled, they ask as that."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def page(self, start: int = 0, *, pending: str | None = None) -> wire.LogPage:
        """Return the account log from entry `start` on."""
        return await self._connection.json(
            "GET",
            "/v1/log",
            wire.LogPage,
            auth=pending or Auth.DEVICE,
            params={"from": str(start)},
            limit=CLOUD.log_page_bytes,
        )

    async def checkpoint(self, before: int | None = None, *, pending: str | None = None) -> wire.LogCheckpoint:
        """Return the newest checkpoint of the account log, of those up to entry `before`. NotFoundError without one."""
        params = {} if before is None else {"before": str(before)}
        return await self._connection.json(
            "GET", "/v1/log/checkpoint", wire.LogCheckpoint, auth=pending or Auth.DEVICE, params=params
        )

    async def append(self, append: wire.LogAppend, *, pending: str | None = None) -> wire.LogPage:
        """Append to the account log. Raises LogConflictError when it has moved on."""
        try:
            return await self._connection.json(
                "POST", "/v1/log", wire.LogPage, body=append, auth=pending or Auth.DEVICE
            )
        except InvalidError as error:
            if type(error) is not InvalidError:
                raise
            raise InvalidError(
                error.message,
                hint="update scrubjay on one device that is not limited and run scrubjay sync there: where the log is"
                " too long, it makes a checkpoint",
            ) from error

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
