"""What Prometheus reads: how the service does, never for whom. No label names an account, a device or an address."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay_cloud.guard import ROUTE
from scrubjay_cloud.litestream import Condition, State
from scrubjay_shared.envelope import HEADER_BYTES, SIGNATURE_BYTES

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PUSHES = frozenset({"/v1/push", "/v1/pack", "/v1/heal"})
_PULLS = frozenset({"/v1/pull", "/v1/lanes/{scope}/{device}"})
_POLL, _EVENTS = "/v1/pull", "/v1/events"
_BODY_LENGTH = slice(HEADER_BYTES - 4, HEADER_BYTES)
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What the database was measured to hold. `free_bytes` is of its disk, None where that is not ours."""

    database_bytes: int
    free_bytes: int | None
    accounts: int
    stored_bytes: int
    loose_bodies: int
    generation: int
    backup_at: int | None
    drill_at: int | None
    drill_ok: bool
    drill_ms: int


class Metrics:
    """One process's counters and gauges, in a registry of their own.

    `now` is in UTC milliseconds; `backups` is whether they are ours to make (SQLite). Ages are +Inf
    until the thing has happened once, so that an alarm on them goes off.
    """

    def __init__(self, *, now: Callable[[], int], backups: bool) -> None:
        self._now = now
        self._backups = backups
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"scrubjay_{name}", meaning, labels, registry=registry)

        def gauge(name: str, meaning: str, *labels: str) -> Gauge:
            return Gauge(f"scrubjay_{name}", meaning, labels, registry=registry)

        self.requests = counter("requests", "Requests answered", "method", "route", "status")
        self.seconds = Histogram(
            "scrubjay_request_seconds",
            "Seconds to answer, without requests that wait for news",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.limited = counter("rate_limited", "Requests refused for asking too often", "route")
        self.pushed_bytes = counter("pushed_bytes", "Bytes of objects received")
        self.pushed_objects = counter("pushed_objects", "Objects received")
        self.pulled_bytes = counter("pulled_bytes", "Bytes of objects sent")
        self.pulled_objects = counter("pulled_objects", "Objects sent")
        self.waiting = gauge("waiting", "Requests that wait for news now", "kind")
        for kind in ("poll", "events"):
            self.waiting.labels(kind)
        self.jobs = counter("job_runs", "Background jobs that ended", "job", "result")
        self.job_seconds = gauge("job_seconds", "Seconds that a job's last run took", "job")
        self.database_bytes = gauge("database_bytes", "Bytes of the database's files")
        self.free_bytes = gauge("disk_free_bytes", "Free bytes on the database's disk")
        self.writable = gauge("writable", "1 while the database takes what is written, 0 while not")
        self.accounts = gauge("accounts", "Accounts")
        self.stored_bytes = gauge("stored_bytes", "Bytes of live objects, over all accounts")
        self.body_seconds = Histogram(
            "scrubjay_body_store_seconds",
            "Seconds that the store of bodies took, retries included",
            ("operation", "result"),
            buckets=_SECONDS,
            registry=registry,
        )
        self.body_bytes = counter("body_store_bytes", "Bytes sent to the store of bodies and fetched", "operation")
        self.loose_bodies = gauge("loose_bodies", "Bodies that are to be deleted from their store")
        self.generation = gauge("generation", "Raised by every restore")
        self._backup_at: int | None = None
        self._drill_at: int | None = None
        if backups:
            age = gauge("backup_age_seconds", "Seconds since the last independent backup")
            age.set_function(lambda: self._age(self._backup_at))
            age = gauge("restore_drill_age_seconds", "Seconds since a restore was last tried and held")
            age.set_function(lambda: self._age(self._drill_at))
            self.drill_ok = gauge("restore_drill_ok", "1 when the last drill restored and verified everything")
            self.drill_seconds = gauge("restore_drill_seconds", "Seconds that the last drill's restore took")

    def watch(self, condition: Callable[[], Condition]) -> None:
        """Show how replication stands, asked anew at every scrape. Its lag is +Inf before it was ever proved."""

        def gauge(name: str, meaning: str, value: Callable[[Condition], float]) -> None:
            made = Gauge(f"scrubjay_replica_{name}", meaning, registry=self.registry)
            made.set_function(lambda: value(condition()))

        gauge(
            "lag_seconds",
            "Age of the newest state that is certainly in the replica",
            lambda found: float("inf") if found.lag_seconds is None else found.lag_seconds,
        )
        gauge("up", "1 while litestream replicates, 0 while not", lambda found: found.state is State.REPLICATING)
        gauge("restarts", "How often this process started litestream again", lambda found: found.restarts)

    def _age(self, at: int | None) -> float:
        return float("inf") if at is None else max(0.0, (self._now() - at) / 1000)

    def measured(self, sizes: Sizes) -> None:
        """Take over what the database was measured to hold."""
        self.database_bytes.set(sizes.database_bytes)
        if sizes.free_bytes is not None:
            self.free_bytes.set(sizes.free_bytes)
        self.accounts.set(sizes.accounts)
        self.stored_bytes.set(sizes.stored_bytes)
        self.loose_bodies.set(sizes.loose_bodies)
        self.generation.set(sizes.generation)
        self._backup_at, self._drill_at = sizes.backup_at, sizes.drill_at
        if self._backups:
            self.drill_ok.set(sizes.drill_ok)
            self.drill_seconds.set(sizes.drill_ms / 1000)

    def body_moved(self, operation: str, seconds: float, size: int, held: bool) -> None:  # noqa: FBT001 - `Observed`
        """Count one request to the store of bodies."""
        self.body_seconds.labels(operation, "done" if held else "failed").observe(seconds)
        self.body_bytes.labels(operation).inc(size)

    def answered(self, method: str, route: str, request: _Request, seconds: float | None) -> None:
        """Count one request; `seconds` None is one that waited for news."""
        self.requests.labels(method, route, str(request.status)).inc()
        if seconds is not None:
            self.seconds.labels(route).observe(seconds)
        if request.status == 429:
            self.limited.labels(route).inc()
        if request.status == 200 and route in _PUSHES:
            self.pushed_bytes.inc(request.came.bytes)
            self.pushed_objects.inc(request.came.objects)
        if request.status == 200 and route in _PULLS:
            self.pulled_bytes.inc(request.went.bytes)
            self.pulled_objects.inc(request.went.objects)

    def app(self) -> Starlette:
        """Return the little application that serves GET /metrics, for a port that is not the service's."""

        async def scrape(_request: Request) -> Response:
            return Response(generate_latest(self.registry), media_type=_TEXT)

        return Starlette(routes=[Route("/metrics", scrape)])


class Measured:
    """ASGI middleware around the whole service: counts every request, and the objects inside those that carry some."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics, request = self._metrics, _Request(pushes=scope["path"] in _PUSHES)

        async def received() -> Message:
            message = await receive()
            request.received(message)
            return message

        async def sent(message: Message) -> None:
            request.sent(message)
            await send(message)

        kind, began = _waits(scope), time.perf_counter()
        if kind:
            metrics.waiting.labels(kind).inc()
        try:
            await self._app(scope, received, sent)
        finally:
            if kind:
                metrics.waiting.labels(kind).dec()
            metrics.answered(scope["method"], _route(scope), request, None if kind else time.perf_counter() - began)


class _Request:
    """The bytes that one request brought, and the seconds that it took."""

    def __init__(self, *, pushes: bool) -> None:
        self._pushes = pushes
        self.status = 500
        self.came = _Objects()
        self.went = _Objects()

    def received(self, message: Message) -> None:
        if self._pushes and message["type"] == "http.request":
            self.came.feed(message.get("body", b""))

    def sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and self.status == 200:
            self.went.feed(message.get("body", b""))


def _route(scope: Scope) -> str:
    """Return the pattern of the route that answered; paths themselves hold ids, and there are too many of them."""
    return str(scope.get(ROUTE, "none"))


def _waits(scope: Scope) -> str:
    """Return which kind of waiting a request asks for, or nothing."""
    if scope["path"] == _EVENTS:
        return "events"
    if scope["path"] != _POLL:
        return ""
    wait = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("wait", ["0"])[0]
    return "" if wait in {"", "0"} else "poll"


class _Objects:
    """Counts objects in bytes that come in pieces, without keeping them."""

    def __init__(self) -> None:
        self.bytes = 0
        self.objects = 0
        self._head = b""
        self._skip = 0

    def feed(self, piece: bytes) -> None:
        self.bytes += len(piece)
        at = 0
        while at < len(piece):
            if self._skip:
                step = min(self._skip, len(piece) - at)
                self._skip -= step
                at += step
                continue
            step = min(HEADER_BYTES - len(self._head), len(piece) - at)
            self._head += piece[at : at + step]
            at += step
            if len(self._head) == HEADER_BYTES:
                self._skip = int.from_bytes(self._head[_BODY_LENGTH], "big") + SIGNATURE_BYTES
                self._head = b""
                self.objects += 1
