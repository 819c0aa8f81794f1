"""HTTP: one route an operation, generated from the registry and `routes`. It decides nothing."""

from __future__ import annotations

import asyncio
import os
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from scrubjay.api.operations import OPERATIONS, Kind, Operation
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.transports.http.decoding import read, read_plain, takes_file
from scrubjay.transports.http.guard import CALLER, OPERATION, REQUEST_ID, Guard, explained
from scrubjay.transports.http.openapi import document
from scrubjay.transports.http.piecewise import LARGE_BYTES, SENT_BYTES, encoded
from scrubjay.transports.http.problem import problem
from scrubjay.transports.http.routes import PLUGIN_PATH, ROUTES
from scrubjay.transports.http.routes import Route as Path
from scrubjay_io.bodies import bounded_body
from scrubjay_shared.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from starlette.requests import Request

    from scrubjay.plugins import Plugins
    from scrubjay.service.application import Application

JSON = "application/json"

NDJSON = "application/x-ndjson"

OLD_PLUGIN_PATH = "/v1/workers/{plugin}/{name}"
"""Where commands before 0.3 ask for an operation of their package: a daemon may be newer than they for a moment."""


def create_app(
    service: Application,
    *,
    token: str,
    agent_token: str,
    version: str,
    instance: str = "",
    policy: MemoryPolicy = DEFAULT,
    plugins: Plugins | None = None,
) -> Starlette:
    """Return the ASGI app over an open service; opening and closing that is the caller's.

    Whoever sends `token` is the person, whoever sends `agent_token` an agent. `instance` names this run to clients,
    `plugins` run the operations of other packages. `app.state.ready` is what /readyz tells, unless the store stopped
    writing; the caller takes it back when it begins to stop.
    """
    by_path: dict[str, dict[str, tuple[Operation, Path]]] = {}
    for path in ROUTES:
        by_path.setdefault(path.path, {})[path.method] = (OPERATIONS[path.operation], path)

    def route(path: str, methods: dict[str, tuple[Operation, Path]]) -> Route:
        async def respond(request: Request) -> Response:
            operation, found = methods["GET" if request.method == "HEAD" else request.method]
            request.scope[OPERATION] = operation.name
            media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
            body = await bounded_body(request, _limit(operation, media_type, policy))
            reading = partial(
                read,
                operation,
                found,
                path=request.path_params,
                query=request.url.query,
                body=body,
                media_type=media_type,
                limits=policy.limits,
            )
            record = await asyncio.to_thread(reading) if len(body) >= LARGE_BYTES else reading()
            caller = request.scope[CALLER]
            if operation.kind is Kind.STREAM:
                lines = service.stream(caller, operation.name, record)
                first = await anext(lines, b"")  # what fails before the first line is still a problem with a status
                return _Streamed(_rejoined(first, lines), media_type=NDJSON)
            return await _response(await service.call(caller, operation.name, record), status=found.status)

        return Route(path, respond, methods=list(methods))

    async def healthz(_: Request) -> Response:
        return _json({"ok": True, "pid": os.getpid(), "version": version, "instance": instance})

    @cache
    def described() -> bytes:
        return msgspec.json.encode(document(version))

    async def openapi(_: Request) -> Response:
        return Response(await asyncio.to_thread(described), media_type=JSON)

    app = Starlette(
        routes=[
            *(route(path, methods) for path, methods in by_path.items()),
            Route(PLUGIN_PATH, partial(_call_plugin, service, plugins, policy), methods=["POST"]),
            Route(OLD_PLUGIN_PATH, partial(_call_plugin, service, plugins, policy), methods=["POST"]),
            Route("/healthz", healthz),
            Route("/readyz", partial(_readyz, service, instance)),
            Route("/openapi.json", openapi),
        ],
        middleware=[Middleware(Guard, token=token, agent_token=agent_token, version=version)],
        exception_handlers={HTTPException: partial(_no_route, version)},
    )
    app.router.redirect_slashes = False
    app.state.ready = True
    return app


async def _readyz(service: Application, instance: str, request: Request) -> Response:
    """Answer whether requests are served, and where nothing can be stored any more, why."""
    failure = service.failure
    if failure is not None:
        return _json({"ready": False, "instance": instance, "reason": failure.message}, status=503)
    ready = bool(request.app.state.ready)
    return _json({"ready": ready, "instance": instance}, status=200 if ready else 503)


async def _call_plugin(
    service: Application, plugins: Plugins | None, policy: MemoryPolicy, request: Request
) -> Response:
    """Run an operation of another package. Not in the OpenAPI document: it is between its commands and it alone."""
    given = request.path_params
    name = f"{given['plugin']}.{given['name']}" if "plugin" in given else given["name"]
    request.scope[OPERATION] = name[:80]
    if plugins is None:
        raise NotFoundError("there is no such route", hint="GET /openapi.json lists the routes")
    body = await bounded_body(request, policy.limits.max_body_bytes)
    operation = await plugins.find(name)
    return await _response(await service.call(request.scope[CALLER], name, read_plain(operation, body)), status=200)


def _json(value: Any, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


async def _response(result: Any, *, status: int) -> Response:
    """Return a response as JSON; a large one is encoded while it is sent, and others get their turn in between."""
    pieces = encoded(result)
    first = next(pieces)
    second = next(pieces, None)
    if second is None:
        return Response(first, status_code=status, media_type=JSON)

    async def sent() -> AsyncGenerator[bytes, None]:
        for piece in chain((first, second), pieces):
            yield piece
            await asyncio.sleep(0)

    return _Streamed(sent(), status_code=status, media_type=JSON)


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
    is_file = takes_file(operation) and media_type != JSON
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


async def _no_route(version: str, request: Request, error: Exception) -> Response:
    """Answer what the router refuses: no such path, no such method on it."""
    request_id = str(request.scope[REQUEST_ID])
    if isinstance(error, HTTPException) and error.status_code != 404:
        return problem(
            InvalidError(f"{request.method} is not a method of this path", hint="GET /openapi.json lists the routes"),
            request_id,
            status=error.status_code,
            headers=error.headers,
        )
    missing = NotFoundError("there is no such route", hint="GET /openapi.json lists the routes")
    return problem(explained(missing, request.headers, version), request_id)
