"""HTTP: one route an operation, generated from the registry and `routes`. It decides nothing."""

from __future__ import annotations

import asyncio
import os
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route

from scrubjay.api.caller import Principal
from scrubjay.api.operations import OPERATIONS, Operation
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.transports.client import STOP_PATH
from scrubjay.transports.http.decoding import read_plain
from scrubjay.transports.http.endpoint import JSON, Endpoint, FixedPaths, header, respond
from scrubjay.transports.http.guard import CALLER, OPERATION, REQUEST_ID, Guard, explained
from scrubjay.transports.http.openapi import document
from scrubjay.transports.http.problem import problem
from scrubjay.transports.http.routes import PLUGIN_PATH, ROUTES
from scrubjay.transports.http.routes import Route as Path
from scrubjay.transports.mem0 import Mem0
from scrubjay_io.bodies import bounded
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from scrubjay.plugins import Plugins
    from scrubjay.service.application import Application
    from scrubjay.transports.mcp.mount import McpMount

MCP_PATHS = ("/mcp", "/mcp/", "/mcp/{toolset}", "/mcp/{toolset}/")

OLD_PLUGIN_PATH = "/v1/workers/{plugin}/{name}"
"""Where commands before 0.3 ask for an operation of their package: a daemon may be newer than they for a moment."""


def create_app(
    service: Application,
    *,
    token: str,
    agent_token: str,
    hook_token: str,
    version: str,
    instance: str = "",
    policy: MemoryPolicy = DEFAULT,
    plugins: Plugins | None = None,
    mcp: McpMount | None = None,
    stop: Callable[[], None] | None = None,
) -> Starlette:
    """Return the ASGI app over an open service; opening and closing that is the caller's.

    Whoever sends `token` is the person, whoever sends `agent_token` an agent, whoever sends `hook_token` an agent's
    host. `instance` names this run to clients, `plugins` run the operations of other packages, `mcp` serves the tools
    of agents, `stop` has the daemon end as it does at a signal. `app.state.ready` is what /readyz tells, unless the
    store stopped writing; the caller takes it back when it begins to stop.
    """
    by_path: dict[str, dict[str, tuple[Operation, Path]]] = {}
    for path in ROUTES:
        by_path.setdefault(path.path, {})[path.method] = (OPERATIONS[path.operation], path)
    endpoints = {path: Endpoint(service, methods, policy) for path, methods in by_path.items()}

    async def healthz(_: Request) -> Response:
        return _json({"ok": True, "pid": os.getpid(), "version": version, "instance": instance})

    @cache
    def described() -> bytes:
        return msgspec.json.encode(document(version))

    async def openapi(_: Request) -> Response:
        return Response(await asyncio.to_thread(described), media_type=JSON)

    async def stopping(request: Request) -> Response:
        if request.scope[CALLER].principal is not Principal.PERSON:
            raise DeniedError("only the person may stop the daemon", hint="scrubjay daemon stop")
        request.scope[OPERATION] = "stop"
        assert stop is not None  # noqa: S101  # or there is no such route
        stop()
        return _json({"stopping": True, "instance": instance})

    app = Starlette(
        routes=[
            *(Route(path, endpoint, methods=list(endpoint.methods)) for path, endpoint in endpoints.items()),
            Route(PLUGIN_PATH, _PluginEndpoint(service, plugins, policy), methods=["POST"]),
            Route(OLD_PLUGIN_PATH, _PluginEndpoint(service, plugins, policy), methods=["POST"]),
            *([] if mcp is None else [Route(path, mcp) for path in MCP_PATHS]),
            *Mem0(service, policy).routes(),
            *([] if stop is None else [Route(STOP_PATH, stopping, methods=["POST"])]),
            Route("/healthz", healthz),
            Route("/readyz", partial(_readyz, service, instance)),
            Route("/openapi.json", openapi),
        ],
        middleware=[
            Middleware(Guard, token=token, agent_token=agent_token, hook_token=hook_token, version=version),
            Middleware(FixedPaths, endpoints=endpoints),
        ],
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


class _PluginEndpoint:
    """The operations of other packages. Not in the OpenAPI document: it is between their commands and them alone."""

    def __init__(self, service: Application, plugins: Plugins | None, policy: MemoryPolicy) -> None:
        self._service = service
        self._plugins = plugins
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the operation that the path names."""
        given = scope["path_params"]
        name = f"{given['plugin']}.{given['name']}" if "plugin" in given else given["name"]
        scope[OPERATION] = name[:80]
        if self._plugins is None:
            raise NotFoundError("there is no such route", hint="GET /openapi.json lists the routes")
        body = await bounded(receive, header(scope, b"content-length"), self._policy.limits.max_body_bytes)
        operation = await self._plugins.find(name)
        result = await self._service.call(scope[CALLER], name, read_plain(operation, body))
        await respond(result, scope, receive, send, status=200)


def _json(value: Any, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


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
