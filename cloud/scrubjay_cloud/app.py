"""The HTTP transport of the service: each endpoint of the table behind the same checks in one order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from scrubjay_cloud import accounts, devices, lanes, search, teams
from scrubjay_cloud.admission import admitted
from scrubjay_cloud.bodies import BodyStore
from scrubjay_cloud.database.port import Database
from scrubjay_cloud.decoding import path_ids, query_fields
from scrubjay_cloud.endpoint import Admits, Answer, Call, Caller, Endpoint, Takes
from scrubjay_cloud.guard import ACCOUNT, ADDRESS, PROVED, REQUEST_ID, ROUTE, Guard
from scrubjay_cloud.limits import Limits, network_of
from scrubjay_cloud.litestream import Condition, as_record
from scrubjay_cloud.materialise import Offload
from scrubjay_cloud.materialise_queue import MaterialiseQueue
from scrubjay_cloud.notifier import Notifier
from scrubjay_cloud.openapi import document
from scrubjay_cloud.policy import DEFAULT, CloudPolicy
from scrubjay_cloud.problem import problem
from scrubjay_cloud.service import Bodies, Service
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.turns import Turns
from scrubjay_io.bodies import bounded
from scrubjay_shared import wire
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError, UnavailableError
from scrubjay_shared.wire import MEDIA, PROTOCOL, Caps

JSON = "application/json"


async def caps(service: Service, _call: Call) -> Answer:
    """Say what this server speaks and allows."""
    row = await service.database.read(lambda tx: tx.row("select v from meta where k = 'generation'"))
    service.generation = int(row[0]) if row else service.generation
    return Answer(
        record=Caps(
            protocol=PROTOCOL,
            store_id=service.store_id,
            generation=service.generation,
            time=service.now(),
            max_body=service.policy.max_body_bytes,
            max_object=service.policy.max_object_bytes,
            registration=service.settings.registration,
            features=("search",) if service.database.searches else (),
        )
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/v1/caps",
        summary="What this server speaks and allows.",
        handler=caps,
        admits=Admits.ANYONE,
        answer=Caps,
    ),
    *lanes.ENDPOINTS,  # first what is asked for most: routes are tried in order
    *accounts.ENDPOINTS,
    *devices.ENDPOINTS,
    *search.ENDPOINTS,
    *teams.ENDPOINTS,
)
"""Every route under /v1."""


def create_app(
    database: Database,
    settings: Settings,
    *,
    now: Callable[[], Millis],
    entropy: Callable[[int], bytes],
    policy: CloudPolicy = DEFAULT,
    offload: Offload = asyncio.to_thread,
    condition: Callable[[], Condition] | None = None,
    problem_now: Callable[[], str] | None = None,
    body_store: BodyStore | None = None,
) -> Starlette:
    """Return the ASGI app over an open database; opening and closing that is the caller's.

    `now` is the clock in UTC milliseconds, which answers carry as `Date` too; `entropy` gives random bytes; `offload`
    runs what costs CPU away from the event loop; `condition` says how the replica does, and `problem_now` why nothing
    can be written ("" while it can), for /readyz;
    `body_store` is where the bodies of large objects stand, None for the database.
    `app.state.service` is the `Service`: call its `stop` before anything else when the process is to end, so that
    nobody who waits for news holds it up.
    """
    meta = database.meta
    secret = bytes.fromhex(meta["secret"])
    service = Service(
        database=database,
        settings=settings,
        policy=policy,
        now=now,
        entropy=entropy,
        offload=offload,
        store_id=meta["store_id"],
        secret=secret,
        generation=int(meta["generation"]),
        limits=Limits(database, now=now, key=secret),
        notifier=Notifier(database, policy, sender=entropy(8).hex() if database.channel else ""),
        materialising=MaterialiseQueue(database, policy.search, offload=offload),
        bodies=Bodies(policy.bodies_bytes, policy.bodies_share),
        sign_ups=Bodies(policy.sign_up_bytes, policy.sign_up_share),
        hashing=Turns(policy.turns),
        body_store=body_store,
    )

    async def healthz(request: Request) -> Response:
        request.scope[ROUTE] = "/healthz"
        return _json({"ok": True})

    async def readyz(request: Request) -> Response:
        request.scope[ROUTE] = "/readyz"
        why = "the service is stopping" if not service.ready else problem_now() if problem_now is not None else ""
        if not why:
            await database.read(lambda tx: tx.row("select 1"))
        said: dict[str, Any] = {"ready": not why} | ({"problem": why} if why else {})
        if condition is not None:
            said["replica"] = as_record(condition())
        return _json(said, status=503 if why else 200)

    @cache
    def described() -> bytes:
        return msgspec.json.encode(document(ENDPOINTS, version("scrubjay")))

    async def openapi(request: Request) -> Response:
        request.scope[ROUTE] = "/openapi.json"
        return Response(described(), media_type=JSON)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.stop()

    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    app = Starlette(
        routes=[
            *(
                Route(path, _PathEndpoints(service, methods), methods=list(methods))
                for path, methods in by_path.items()
            ),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/openapi.json", openapi),
        ],
        middleware=[Middleware(Guard, service=service)],
        exception_handlers={HTTPException: _no_route},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


class _PathEndpoints:
    """What serves one path: who calls, how often, with what; then the endpoint itself.

    An ASGI application of its own: around a function Starlette puts a layer for what `Guard` does for all.
    """

    def __init__(self, service: Service, by_method: dict[str, Endpoint]) -> None:
        self._service = service
        self._by_method = by_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        response = await self._served(Request(scope, receive))
        await response(scope, receive, send)

    async def _served(self, request: Request) -> Response:
        service, scope = self._service, request.scope
        endpoint = self._by_method["GET" if request.method == "HEAD" else request.method]
        scope[ROUTE] = endpoint.path
        who = None
        if endpoint.admits is not Admits.ANYONE:
            who = await admitted(
                service, request.headers.get("authorization", ""), endpoint.admits, refused=endpoint.refused
            )
            scope[ACCOUNT] = who.account.hex()[:8]
            whose = who.spends_as if endpoint.refused else who.account
            await service.limits.spend(endpoint.limit, whose, getattr(service.policy.limits, endpoint.limit))
        path, query = path_ids(request.path_params), query_fields(endpoint, scope["query_string"])
        if who is not None and PROVED in scope:
            scope[PROVED]()
        with _held(service, scope[ADDRESS], endpoint, who) as count:
            body = await _body(service, request, endpoint, who, count)
            call = Call(
                request_id=scope[REQUEST_ID], address=scope[ADDRESS], path=path, query=query, body=body, who=who
            )
            return _response(endpoint, await endpoint.handler(service, call))


def _held(
    service: Service, address: bytes, endpoint: Endpoint, who: Caller | None
) -> AbstractContextManager[Callable[[int], None]]:
    """Return what counts a request's body: by account, and a sign-up by network. A small one is not counted."""
    if who is not None:
        return service.bodies.held(who.account)
    if _most(service.policy, endpoint) > service.policy.max_open_bytes:
        return service.sign_ups.held(network_of(address))
    return nullcontext(lambda _: None)


def _most(policy: CloudPolicy, endpoint: Endpoint) -> int:
    """Return how many bytes a request's body may have."""
    if endpoint.most:
        return int(getattr(policy, endpoint.most))
    if endpoint.admits is Admits.ANYONE:
        return policy.max_open_bytes
    return policy.max_json_bytes if endpoint.takes is Takes.JSON else policy.max_body_bytes


async def _body(
    service: Service, request: Request, endpoint: Endpoint, who: Caller | None, count: Callable[[int], None]
) -> Any:
    if endpoint.takes is Takes.NOTHING:
        return None
    policy, began, size = service.policy, asyncio.get_running_loop().time(), 0

    async def receive() -> Message:
        """Return the next piece, counted; raise UnavailableError where it comes too slowly, or there is no room."""
        nonlocal size
        due = began + (policy.open_body_s if who is None else policy.body_s + size / policy.body_rate)
        try:
            async with asyncio.timeout_at(due):
                message = await request.receive()
        except TimeoutError as error:
            raise UnavailableError("the body of the request came too slowly", hint="try again") from error
        came = len(message.get("body", b""))
        count(came)
        size += came
        return message

    body = await bounded(receive, request.headers.get("content-length", ""), _most(policy, endpoint))
    if endpoint.takes is Takes.OBJECTS:
        if who is not None:
            await service.limits.spend("traffic", who.account, policy.limits.traffic, len(body))
        return body
    return None if endpoint.optional and not body else wire.read(body, endpoint.record or object)


def _response(endpoint: Endpoint, answer: Answer) -> Response:
    if answer.response is not None:
        return answer.response
    if answer.objects is not None:
        return Response(b"".join(answer.objects), headers=dict(answer.headers), media_type=MEDIA)
    if endpoint.answer is None:
        return Response(status_code=endpoint.status, headers=dict(answer.headers))
    return _json(answer.record, status=endpoint.status, headers=answer.headers)


def _json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, headers=dict(headers or {}), media_type=JSON)


async def _no_route(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: no such path, no such method on it."""
    request_id = str(request.scope[REQUEST_ID])
    if isinstance(error, HTTPException) and error.status_code != 404:
        return problem(
            InvalidError(f"{request.method} is not allowed on this path", hint="GET /openapi.json lists the routes"),
            request_id,
            status=error.status_code,
            headers=error.headers,
        )
    return problem(
        NotFoundError("this server has no such route", hint="GET /openapi.json lists the routes"), request_id
    )
