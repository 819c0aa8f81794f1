"""The one layer around every route: an id for the request, its one log line, and a problem for whatever fails."""

from __future__ import annotations

import ipaddress
import logging
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay_cloud.problem import problem
from scrubjay_cloud.service import Service
from scrubjay_cloud.settings import Network
from scrubjay_shared.errors import DeniedError, ScrubjayError
from scrubjay_shared.wire import GENERATION, STORE

REQUEST_ID = "scrubjay.request"
ADDRESS = "scrubjay.address"
ROUTE = "scrubjay.route"
ACCOUNT = "scrubjay.account"
PROVED = "scrubjay.proved"
"""What to call once a request has brought a valid token, where the server counts connections that have not."""

ADDRESSES = 1_024  # remembered as they were read: the same few come again and again
MAX_FRAMES = 12
"""Frames logged of an unexpected error, innermost first."""
HSTS = b"max-age=31536000"
_GENERATION = GENERATION.lower().encode()
_PLAIN = frozenset({"/healthz", "/readyz"})

log = logging.getLogger(__name__)


class Guard:
    """ASGI middleware. Nothing escapes it but a cancellation."""

    def __init__(self, app: ASGIApp, *, service: Service, monotonic: Callable[[], float] = time.perf_counter) -> None:
        self._app = app
        self._service = service
        self._monotonic = monotonic
        self._fixed = [
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (STORE.lower().encode(), service.store_id.encode()),
        ]
        if service.settings.secure:
            self._fixed.append((b"strict-transport-security", HSTS))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        service = self._service
        request_id = service.entropy(8).hex()
        began, status, received, sent = self._monotonic(), 0, 0, 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def marked(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    *self._fixed,
                    (b"x-request-id", request_id.encode()),
                    (b"date", _date(service.now() // 1000)),
                    (_GENERATION, str(service.generation).encode()),
                ]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        scope[REQUEST_ID] = request_id
        try:
            scope[ADDRESS] = address(scope, service.settings.proxies)
            self._refuse_plain(scope)
            await self._app(scope, counted, marked)
        except ClientDisconnect:
            status = status or 499
        except Exception as error:  # noqa: BLE001 - the last line of defence: a request never ends without an answer
            if not isinstance(error, ScrubjayError):
                _record_failure(request_id, error)
                error = ScrubjayError(
                    "something went wrong inside the server", hint=f"its operator finds it in the log as {request_id}"
                )
            if not status:
                await problem(error, request_id)(scope, counted, marked)
            # Otherwise half an answer is out: returning without its end makes the server cut the connection,
            # which is how the client learns that the rest is missing.
        finally:
            log.info(
                "answered request=%s method=%s route=%s status=%d ms=%.1f in=%d out=%d account=%s",
                request_id,
                scope["method"],
                scope.get(ROUTE, "-"),
                status,
                (self._monotonic() - began) * 1000,
                received,
                sent,
                scope.get(ACCOUNT, "-"),
            )

    def _refuse_plain(self, scope: Scope) -> None:
        """Refuse what a proxy says came to it without TLS: a token has crossed the network in clear."""
        proxies = self._service.settings.proxies
        if not proxies or not self._service.settings.secure or scope["path"] in _PLAIN:
            return
        client = scope.get("client")
        came = Headers(scope=scope).get("x-forwarded-proto", "https")
        if client is not None and _within(client[0], proxies) and came.split(",")[-1].strip().lower() != "https":
            raise DeniedError("the request came without TLS", hint="use the https address of this server")


@lru_cache(maxsize=2)
def _date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()


def address(scope: Scope, proxies: tuple[Network, ...]) -> bytes:
    """Return whom to count requests of nobody yet against: an IPv4 address, or the /64 that a person has of IPv6.

    X-Forwarded-For is read from the right for as long as those who wrote it are trusted.
    """
    client = scope.get("client")
    host = client[0] if client else ""
    if proxies:
        hops = [part.strip() for part in ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")]
        while hops and _within(host, proxies):
            host = hops.pop() or host
    parsed = _parsed(host)
    if parsed is None:  # a Unix socket, or nonsense: one bucket for all of them
        return b""
    if isinstance(parsed, ipaddress.IPv6Address):
        return parsed.ipv4_mapped.packed if parsed.ipv4_mapped else parsed.packed[:8]
    return parsed.packed


@lru_cache(maxsize=ADDRESSES)
def _within(text: str, networks: tuple[Network, ...]) -> bool:
    parsed = _parsed(text)
    return parsed is not None and any(parsed in network for network in networks)


@lru_cache(maxsize=ADDRESSES)
def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _record_failure(request_id: str, error: BaseException) -> None:
    """Log where it happened. Not the exception's own words: they may quote what was sent."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    log.error("failed request=%s error=%s at=%s", request_id, type(error).__qualname__, places)
