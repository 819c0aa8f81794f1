"""The operations of one path as an ASGI app: a request is read, the operation run, and its response sent.

No request and no response object of the framework stands between, and paths without a parameter are found in a table
(`FixedPaths`) before its router is asked: for an event that is appended, these took longer than appending it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from scrubjay.api.operations import Kind, Operation
from scrubjay.transports.http.decoding import read, takes_file
from scrubjay.transports.http.guard import CALLER, OPERATION
from scrubjay.transports.http.piecewise import LARGE_BYTES, SENT_BYTES, encoded
from scrubjay_io.bodies import bounded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from scrubjay.policy import MemoryPolicy
    from scrubjay.service.application import Application
    from scrubjay.transports.http.routes import Route

JSON = "application/json"

NDJSON = "application/x-ndjson"

_JSON_HEADER = (b"content-type", JSON.encode())


class Endpoint:
    """The operations of one path, by method."""

    def __init__(
        self, service: Application, methods: Mapping[str, tuple[Operation, Route]], policy: MemoryPolicy
    ) -> None:
        self._service = service
        self._policy = policy
        self.methods = dict(methods)
        if "GET" in self.methods:
            self.methods["HEAD"] = self.methods["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of one of `methods`. Raises what the operation raises, and what a wrong request is."""
        operation, route = self.methods[scope["method"]]
        scope[OPERATION] = operation.name
        media_type = header(scope, b"content-type", JSON).partition(";")[0].strip().lower()
        body = await bounded(receive, header(scope, b"content-length"), _limit(operation, media_type, self._policy))
        reading = partial(
            read,
            operation,
            route,
            path=scope.get("path_params", {}),
            query=scope["query_string"].decode(),
            body=body,
            media_type=media_type,
            limits=self._policy.limits,
        )
        request = await asyncio.to_thread(reading) if len(body) >= LARGE_BYTES else reading()
        caller = scope[CALLER]
        if operation.kind is Kind.STREAM:
            lines = self._service.stream(caller, operation.name, request)
            first = await anext(lines, b"")  # what fails before the first line is still a problem with a status
            await _Streamed(_rejoined(first, lines), media_type=NDJSON)(scope, receive, send)
        else:
            result = await self._service.call(caller, operation.name, request)
            await respond(result, scope, receive, send, status=route.status)


class FixedPaths:
    """ASGI middleware: serves the paths that have no parameter; everything else is the router's."""

    def __init__(self, app: ASGIApp, *, endpoints: Mapping[str, Endpoint]) -> None:
        self._app = app
        self._endpoints = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. A method that its path does not have is refused by the router."""
        endpoint = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is not None and scope["method"] in endpoint.methods:
            await endpoint(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def header(scope: Scope, name: bytes, absent: str = "") -> str:
    """Return the first value of a header; its name in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return absent


async def respond(result: Any, scope: Scope, receive: Receive, send: Send, *, status: int) -> None:
    """Send a response as JSON; a large one is encoded while it is sent, and others get their turn in between."""
    pieces = encoded(result)
    first = next(pieces)
    second = next(pieces, None)
    if second is None:
        headers = [(b"content-length", b"%d" % len(first)), _JSON_HEADER]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": first})
        return

    async def sent() -> AsyncGenerator[bytes, None]:
        for piece in chain((first, second), pieces):
            yield piece
            await asyncio.sleep(0)

    await _Streamed(sent(), status_code=status, media_type=JSON)(scope, receive, send)


class _Streamed(StreamingResponse):
    """An answer that is sent as it is made, and is given up when whoever asked has gone.

    What it inherits does the same with anyio, whose first use imports modules for 90 ms in the event loop.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send all pieces, or as many as somebody waits for."""
        sending = asyncio.create_task(self.stream_response(send))
        gone = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            gone.cancel()
            failed, _ = await asyncio.gather(sending, gone, return_exceptions=True)
        if isinstance(failed, Exception):  # being cancelled is none: nobody is there to tell
            raise failed


def _limit(operation: Operation, media_type: str, policy: MemoryPolicy) -> int:
    is_file = media_type != JSON and takes_file(operation)
    return policy.limits.max_import_bytes if is_file else policy.limits.max_body_bytes


async def _rejoined(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield lines, a large one in pieces: to copy 8 MB to the socket at once takes 30 ms in the event loop."""
    try:
        for piece in _cut(first):
            yield piece
        async for line in rest:
            for piece in _cut(line):
                yield piece
    finally:
        await rest.aclose()


def _cut(line: bytes) -> Iterator[bytes]:
    return (line[start : start + SENT_BYTES] for start in range(0, len(line), SENT_BYTES))
