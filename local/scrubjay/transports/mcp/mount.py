"""/mcp: the ASGI app that loads the MCP servers at their first request, and says who calls them.

The SDK takes a second and 60 MB to load, which a daemon that no agent asks should not pay: it is imported in a thread
when the first request comes. Who speaks MCP is an agent, whichever token it brings: a model chose the words.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import Response

from scrubjay.plugins import unloadable
from scrubjay.transports.http.endpoint import header
from scrubjay.transports.http.guard import CALLER, OPERATION, agent_of
from scrubjay.transports.mcp import messages
from scrubjay.transports.mcp.clients import as_called_by, client_of, initializing, session_of
from scrubjay_io.bodies import bounded
from scrubjay_shared.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from scrubjay.policy import MemoryPolicy
    from scrubjay.service.application import Application

PATH = "/mcp"
SESSION_HEADER = "mcp-session-id"

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Of one message: a hundred times the longest that a model writes."""


MENDED_BYTES = 64 * 1024
"""Of a message that is read here to be mended: microseconds. The bridge of `scrubjay mcp` has mended all of its own."""


class McpMount:
    """The MCP servers of one daemon, by their paths. Nothing of them is loaded before the first request."""

    def __init__(self, service: Application, *, version: str, policy: MemoryPolicy) -> None:
        self._service = service
        self._version = version
        self._policy = policy
        self._apps: Mapping[str, ASGIApp] | None = None
        self._loading = asyncio.Lock()
        self._closing = asyncio.Event()
        self._started: asyncio.Future[Mapping[str, ASGIApp]] | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises UnavailableError where the SDK cannot be loaded, TooLargeError for the body."""
        path = scope["path"].rstrip("/")
        scope[OPERATION] = "mcp"
        if scope["method"] != "POST":
            # No stream is kept open for a client, and no session that it could end.
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        body = await bounded(receive, header(scope, b"content-length"), MAX_BODY_BYTES)
        if len(body) <= MENDED_BYTES:
            with contextlib.suppress(ValueError, RecursionError):  # what is no JSON, the SDK refuses in its own words
                _, body = messages.read(body)
        apps = await self._loaded()
        app = apps.get(path)
        if app is None:
            await Response(status_code=404)(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope[CALLER] = as_called_by(agent_of(headers), client_of(headers.get(SESSION_HEADER, "")))
        # White space around a value is no part of it (RFC 9110, section 5.5); the parser leaves what stands after one.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await app(scope, _again(body, receive), _with_session(initializing(body), send))

    async def _loaded(self) -> Mapping[str, ASGIApp]:
        async with self._loading:
            if self._closing.is_set():
                raise UnavailableError("the daemon is stopping", hint="scrubjay daemon start starts it again")
            if self._apps is None:
                if self._started is None or self._started.done():  # not yet, or the last start failed
                    servers = await asyncio.to_thread(self._load)
                    self._started = asyncio.get_running_loop().create_future()
                    self._running = asyncio.create_task(self._run(servers, self._started))
                # Raises what kept a server from starting. Whoever leaves meanwhile does not take the start along.
                self._apps = await asyncio.shield(self._started)
            return self._apps

    def _load(self) -> Any:
        try:
            from scrubjay.transports.mcp.server import servers  # noqa: PLC0415  # a second, and 60 MB
            from scrubjay.transports.mcp.toolsets import TOOLSETS  # noqa: PLC0415  # likewise when it is needed
        except ImportError as error:
            raise unloadable("MCP", "mcp", error) from error
        return servers(
            {f"{PATH}{path}": one for path, one in TOOLSETS.items()},
            self._service,
            version=self._version,
            policy=self._policy,
        )

    async def _run(self, servers: Mapping[str, Any], started: asyncio.Future[Mapping[str, ASGIApp]]) -> None:
        """Serve until `close`: the SDK wants its servers left by the task that entered them."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                for server in servers.values():
                    await stack.enter_async_context(server.running())
                started.set_result({path: server.handle for path, server in servers.items()})
                await self._closing.wait()
        except Exception as error:  # whoever waits for the start is told, and not kept waiting
            if started.done():
                raise
            started.set_exception(error)

    async def close(self) -> None:
        """End what was loaded. A second call does nothing."""
        async with self._loading:
            self._closing.set()
            if self._running is not None:
                await self._running


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read already, then what comes after it."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return left.pop() if left else await receive()

    return received


def _with_session(client: str | None, send: Send) -> Send:
    """Return a `send` that gives a client that names itself the session id which brings its name again."""
    if client is None:
        return send

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            given = (SESSION_HEADER.encode(), session_of(client).encode())
            message["headers"] = [*message.get("headers", ()), given]
        await send(message)

    return sent
