"""The process: the service on its port, metrics on another, jobs and litestream beside it, and an orderly end.

On the first signal whoever waits for news is answered at once, requests under way are finished, jobs end, the database
is closed, and only then does litestream send what is left and go. On the second the process ends without waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime

import uvicorn
from starlette.types import ASGIApp

from scrubjay_cloud import database
from scrubjay_cloud.app import create_app
from scrubjay_cloud.bodies import open_store
from scrubjay_cloud.bodies.transfer import refuse_without_store
from scrubjay_cloud.connections import connection_type
from scrubjay_cloud.database import Database
from scrubjay_cloud.database.sqlite_file import empty_log, leave_log, limit_log
from scrubjay_cloud.jobs import Jobs
from scrubjay_cloud.litestream import Condition, Replication, State
from scrubjay_cloud.metrics import Measured, Metrics
from scrubjay_cloud.pepper import check_pepper, with_pepper
from scrubjay_cloud.policy import OPERATIONS
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, ScrubjayError, UnavailableError

log = logging.getLogger(__name__)


def wall() -> Millis:
    """Return the time, UTC milliseconds."""
    return Millis(time.time_ns() // 1_000_000)


class LogLines(logging.Formatter):
    """One event a line: time, level, logger, words with fields. What came from outside cannot begin a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        words = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            # Where it happened, and not what the exception says: it may quote what was sent.
            innermost = record.exc_info[2]
            while innermost is not None and innermost.tb_next is not None:
                innermost = innermost.tb_next
            if innermost is not None:
                words += f" at={innermost.tb_frame.f_code.co_filename}:{innermost.tb_lineno}"
        plain = words if words.isprintable() else "".join(one if one.isprintable() else " " for one in words)
        return f"{at}Z {record.levelname} {record.name} {plain}"


def set_up_logging() -> None:
    """Send everything to stderr, as lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # what it says of starting and stopping, we say


async def serve(settings: Settings) -> None:
    """Serve until a signal comes. Raises what keeps the service from starting, before it listens."""
    settings = with_pepper(settings, os.urandom)
    async with AsyncExitStack() as stack:
        # Taken first: who cannot have the port need not open the database.
        public = stack.enter_context(_listening(settings.host, settings.port, shared=settings.workers > 1))
        private = stack.enter_context(_listening(settings.host, settings.metrics_port))
        metrics = Metrics(now=wall, backups=not settings.database_url)
        opened = await stack.enter_async_context(_database(settings, metrics))
        body_store = open_store(settings, metrics.body_moved)
        await refuse_without_store(opened.database, body_store)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        jobs = Jobs(opened.database, settings, metrics, holder=holder, now=wall, body_store=body_store)
        app = create_app(
            opened.database,
            settings,
            now=wall,
            entropy=os.urandom,
            condition=opened.condition,
            problem_now=lambda: jobs.problem,
            body_store=body_store,
        )
        await check_pepper(opened.database, app.state.service.pepper)
        await jobs.start()
        stack.push_async_callback(jobs.stop)
        servers = (
            _server(Measured(app, metrics), settings, secure=True),
            _server(metrics.app(), settings, secure=False),
        )
        with _signals(servers, app.state.service.stop):
            for bound in (public, private):
                bound.listen(OPERATIONS.backlog)
            log.info(
                "listening host=%s port=%d metrics_port=%d database=%s",
                settings.host,
                public.getsockname()[1],
                private.getsockname()[1],
                opened.database.dialect,
            )
            await asyncio.gather(servers[0].serve(sockets=[public]), servers[1].serve(sockets=[private]))
        log.info("stopped serving")


class _Opened:
    """The database, and how its replication stands."""

    def __init__(self, database: Database, replication: Replication | None) -> None:
        self.database = database
        self._replication = replication

    def condition(self) -> Condition:
        """How replication stands."""
        if self._replication is None:
            return Condition(state=State.OFF, words="no replica is set")
        return self._replication.condition


@asynccontextmanager
async def _database(settings: Settings, metrics: Metrics) -> AsyncIterator[_Opened]:
    """Open the database, and keep it replicated: litestream outlives it, to send what was written last."""
    opened = await database.open(settings, now=wall, entropy=os.urandom)
    replication: Replication | None = None
    try:
        if settings.replica and not settings.database_url:

            async def taken_over(by_litestream: bool) -> None:  # noqa: FBT001 - the callback's one word
                with contextlib.suppress(UnavailableError):  # closed already: there is nobody left to checkpoint
                    for step in (leave_log, limit_log) if by_litestream else (empty_log,):
                        await opened.write(step)

            replication = Replication(
                settings.database_path,
                settings.replica,
                OPERATIONS.litestream,
                monotonic=time.monotonic,
                replicating=taken_over,
            )
            await replication.start()
            metrics.watch(lambda: replication.condition)
        yield _Opened(opened, replication)
    finally:
        await opened.close()
        if replication is not None:
            await replication.stop()


@contextmanager
def _listening(host: str, port: int, *, shared: bool = False) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise _not_bound(host, port, error) from error
        yield listener
    finally:
        listener.close()


def _not_bound(host: str, port: int, error: OSError) -> ScrubjayError:
    if isinstance(error, PermissionError):
        return DeniedError(f"this user may not listen on port {port}", hint="choose a port above 1023")
    if isinstance(error, socket.gaierror) or "assign requested address" in str(error):
        return InvalidError(f"{host} is not an address of this machine", hint="check SCRUBJAY_CLOUD_HOST")
    return ConflictError(
        f"port {port} is used by another program",
        hint="stop that program, or choose another with --port or --metrics-port",
    )


def _most_connections() -> int:
    """Return how many connections there may be at once: as many files may be open, but for some of our own."""
    if sys.platform == "win32":  # has no such limit
        return OPERATIONS.connections
    import resource  # noqa: PLC0415 - not there on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPERATIONS.connections + OPERATIONS.own_files
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(allowed - OPERATIONS.own_files, OPERATIONS.own_files)


class _Server(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(app: ASGIApp, settings: Settings, *, secure: bool) -> _Server:
    tls = settings.tls_cert is not None and secure
    return _Server(
        uvicorn.Config(
            app,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=OPERATIONS.backlog,
            limit_concurrency=OPERATIONS.connections,
            http=connection_type(settings.proxies, _most_connections()) if secure else "auto",
            ws="none",
            timeout_keep_alive=OPERATIONS.keep_alive_s,
            timeout_graceful_shutdown=OPERATIONS.drain_s,
            ssl_certfile=settings.tls_cert if tls else None,
            ssl_keyfile=settings.tls_key if tls else None,
        )
    )


@contextmanager
def _signals(servers: tuple[_Server, ...], stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        log.info("stopping signal=%s", number.name)
        if any(server.should_exit for server in servers):
            os._exit(128 + number)  # asked twice: SQLite and litestream survive it, and whoever asks knows
        stop()
        for server in servers:
            server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
