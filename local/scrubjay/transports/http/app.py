"""The HTTP door: one route per verb of `api.VERBS`, generated from that table. It decides nothing."""

from __future__ import annotations

import asyncio
import dataclasses
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

from scrubjay.api import VERBS, ImportRequest, StatusAnswer, Verb
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.transports.http.decoding import read
from scrubjay.transports.http.guard import REQUEST_ID, VERB, Guard, explained
from scrubjay.transports.http.openapi import document
from scrubjay.transports.http.piecewise import LARGE_BYTES, SENT_BYTES, encoded
from scrubjay.transports.http.problem import problem
from scrubjay_io.bodies import bounded_body
from scrubjay_shared.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

    from starlette.requests import Request

    from scrubjay.plugins import Workers
    from scrubjay.service.service import Service

JSON = "application/json"

NDJSON = "application/x-ndjson"


def create_app(
    service: Service,
    *,
    token: str,
    version: str,
    instance: str = "",
    warnings: Callable[[], Iterable[str]] = tuple,
    policy: MemoryPolicy = DEFAULT,
    workers: Workers | None = None,
) -> Starlette:
    """Return the ASGI app over an open service; opening and closing that is the caller's.

    `instance` names this run to clients, `warnings()` is added to the answer of `status`, `workers` answer the requests
    of other packages' commands. `app.state.ready` is what /readyz tells, unless the store stopped writing; the caller
    takes it back when it begins to stop.
    """
    by_path: dict[str, dict[str, Verb]] = {}
    for verb in VERBS:
        by_path.setdefault(verb.path, {})[verb.method] = verb

    def route(path: str, verbs: dict[str, Verb]) -> Route:
        async def answer(request: Request) -> Response:
            verb = verbs["GET" if request.method == "HEAD" else request.method]
            request.scope[VERB] = verb.name
            media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
            body = await bounded_body(request, _limit(verb, media_type, policy))
            reading = partial(
                read,
                verb,
                path=request.path_params,
                query=request.url.query,
                body=body,
                media_type=media_type,
                limits=policy.limits,
            )
            record = await asyncio.to_thread(reading) if len(body) >= LARGE_BYTES else reading()
            result = await getattr(service, verb.name)(record)
            if isinstance(result, StatusAnswer):
                result = dataclasses.replace(result, warnings=(*result.warnings, *warnings()))
            return await _answer(result, status=verb.status)

        return Route(path, answer, methods=list(verbs))

    async def export(request: Request) -> Response:
        request.scope[VERB] = "export"
        lines = service.export()
        first = await anext(lines, b"")  # what fails before the first line is still a problem with a status
        return _Streamed(_rejoined(first, lines), media_type=NDJSON)

    async def healthz(_: Request) -> Response:
        return _json({"ok": True, "pid": os.getpid(), "version": version, "instance": instance})

    @cache
    def described() -> bytes:
        return msgspec.json.encode(document(version))

    async def openapi(_: Request) -> Response:
        return Response(await asyncio.to_thread(described), media_type=JSON)

    app = Starlette(
        routes=[
            *(route(path, verbs) for path, verbs in by_path.items()),
            Route("/v1/export", export),
            Route("/v1/workers/{name}/{verb}", partial(_work, workers, policy), methods=["POST"]),
            Route("/healthz", healthz),
            Route("/readyz", partial(_readyz, service, instance)),
            Route("/openapi.json", openapi),
        ],
        middleware=[Middleware(Guard, token=token, version=version)],
        exception_handlers={HTTPException: partial(_no_route, version)},
    )
    app.router.redirect_slashes = False
    app.state.ready = True
    return app


async def _readyz(service: Service, instance: str, request: Request) -> Response:
    """Answer whether requests are served, and where nothing can be stored any more, why."""
    failure = service.failure
    if failure is not None:
        return _json({"ready": False, "instance": instance, "reason": failure.message}, status=503)
    ready = bool(request.app.state.ready)
    return _json({"ready": ready, "instance": instance}, status=200 if ready else 503)


async def _work(workers: Workers | None, policy: MemoryPolicy, request: Request) -> Response:
    """Answer a request of another package's command. Not in the OpenAPI document: it is between those two alone."""
    request.scope[VERB] = "work"
    if workers is None:
        raise NotFoundError("there is no such route", hint="GET /openapi.json lists the routes")
    body = await bounded_body(request, policy.limits.max_body_bytes)
    answer = await workers.call(request.path_params["name"], request.path_params["verb"], body)
    return Response(answer, media_type=JSON)


def _json(value: Any, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


async def _answer(result: Any, *, status: int) -> Response:
    """Return an answer as JSON; a large one is encoded while it is sent, and others get their turn in between."""
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


def _limit(verb: Verb, media_type: str, policy: MemoryPolicy) -> int:
    is_file = verb.request is ImportRequest and media_type != JSON
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
