"""The daemon's process: takes the store, opens its two listeners, says where it is, and leaves nothing behind.

Theory of operation. The store's lock decides who is the daemon; the system releases it when its holder dies, however it
dies. Everything else on disk (`daemon.json`, the socket) is a hint that only the lock's holder writes: so a stale hint
is simply written over, and two daemons started at once need no other rule. Order matters at both ends: the lock comes
before the listeners, they before the hint, and on the way out the hint goes first and the lock last. One event loop,
one service, one uvicorn server on two listening sockets; at rest it sleeps until a request, a job, a signal, or its
next look at whether its store and its program are still there (`watch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import logging.handlers
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import psutil
import uvicorn

from scrubjay import garbage
from scrubjay import settings as options
from scrubjay.accounts import MAIN
from scrubjay.daemon import control, other_accounts
from scrubjay.daemon.watch import Change, Watch
from scrubjay.folders import HOOK_DOOR_NAME
from scrubjay.plugins import Plugins
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.spawning import NO_WINDOW
from scrubjay.store import StoreInUseError, gone, identity, replaced
from scrubjay.tracebacks import frames_of
from scrubjay.transports.client import Running, discover
from scrubjay.transports.http.app import create_app
from scrubjay.transports.http.connection import Connections, HttpConnection, most_connections
from scrubjay.transports.mcp.mount import McpMount
from scrubjay.transports.one_request import RECORD_NAME
from scrubjay.version import __version__
from scrubjay_io import private_files
from scrubjay_shared.errors import ConflictError, CorruptError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from pathlib import Path
    from types import TracebackType

    from starlette.applications import Starlette

    from scrubjay.settings import Settings

    ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

TOKEN_BYTES = 32
"""Randomness of the bearer token: as much as of a key."""

INSTANCE_BYTES = 16

UNWRITTEN_SECONDS = 60.0
"""Between two lines on stderr that say that the log cannot be written."""

OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = logging.getLogger(__name__)


def run(
    settings: Settings, *, foreground: bool = True, policy: MemoryPolicy = DEFAULT, stop_mark: str | None = None
) -> Running | None:
    """Serve until SIGTERM or SIGINT. Returns None then, or at once the daemon that already serves this store.

    In the foreground it logs to stderr too. It takes over the process: signals, logging, garbage, modes of new files.
    `stop_mark` is the mark of the last stop when this start was asked for (`control`), None for now; a stop since
    then ends it before it serves. Raises ConflictError when a process that is not a daemon has the store,
    UnavailableError when it was stopped, and what opening the store raises.
    """
    garbage.own()
    os.umask(0o077)  # the store, its snapshots, the log: all of them are the user's alone
    settings = replace(settings, account=MAIN)  # of all accounts, the others beside it
    options.ensure_dirs(settings)
    _log_to(logging.StreamHandler(sys.stderr), settings.log_level)
    if stop_mark is None:
        stop_mark = control.stop_mark(settings.data_dir)
    ended = asyncio.run(_serve(settings, policy, foreground=foreground, stop_mark=stop_mark))
    if ended in {Change.PROGRAM_REPLACED, Change.LOG_GONE}:
        _run_again()
    return ended if isinstance(ended, Running) else None


async def _serve(
    settings: Settings, policy: MemoryPolicy, *, foreground: bool, stop_mark: str
) -> Running | Change | None:
    """Serve; return the daemon that does already, or the change that ended it, None when it was told to end."""
    change: Change | None = None
    asyncio.get_running_loop().set_exception_handler(LoopErrors(policy.connection.full_log_seconds))
    stopping = asyncio.Event()
    with _signals(stopping):
        service = await _open(settings, policy, stopping)
        if isinstance(service, Running):
            return service
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(service.close)
            watch = Watch(settings.store_path)
            if control.stop_mark(settings.data_dir) != stop_mark:
                raise _stopped_early()
            _log_to_file(settings, policy, foreground=foreground)
            token = _token(settings.token_path)
            agent_token = _token(settings.agent_token_path)
            hook_token = secrets.token_urlsafe(TOKEN_BYTES)
            warnings: list[str] = []
            tcp = undo.enter_context(contextlib.closing(_tcp_socket(settings, warnings)))
            listeners = [tcp]
            if settings.socket is not None:
                listeners.append(undo.enter_context(contextlib.closing(_unix_socket(settings.socket))))
                undo.callback(_remove_own, settings.socket, identity(settings.socket))
            host, port = tcp.getsockname()[:2]
            record = Running(
                pid=os.getpid(),
                create_time=psutil.Process().create_time(),
                host=host,
                port=port,
                socket=None if settings.socket is None else str(settings.socket),
                version=__version__,
                instance=secrets.token_hex(INSTANCE_BYTES),
                started=int(time.time() * 1000),
                warnings=tuple(warnings),
            )
            plugins = Plugins(service, settings)
            mcp = McpMount(service, version=record.version, policy=policy)

            async def of_record() -> tuple[str, ...]:
                return record.warnings

            service.warnings += [of_record, plugins.warnings]
            app = create_app(
                service,
                token=token,
                agent_token=agent_token,
                hook_token=hook_token,
                version=record.version,
                instance=record.instance,
                policy=policy,
                plugins=plugins,
                mcp=mcp,
                stop=stopping.set,
            )
            record = await _other_doors(undo, mcp, GrpcDoor(service, settings.grpc_port, token, agent_token), record)
            undo.push_async_callback(service.scheduler.stop)
            undo.push_async_callback(plugins.close)

            async def until_stopped() -> None:
                nonlocal change
                _publish(settings.data_dir, record, hook_token)
                log.info("started pid=%d port=%d instance=%s", record.pid, record.port, record.instance[:8])
                # Requests are answered from here on. What works by itself is loaded and started after that.
                await service.scheduler.start()
                await asyncio.gather(plugins.start(), other_accounts.start(service))
                # What is here now stays. The collector need not walk over it each time that a large request makes it
                # look at everything, 30 ms in which no other thread runs.
                gc.enable()
                garbage.keep()
                # A stop that came too early to find what we just wrote has left its mark.
                if control.stop_mark(settings.data_dir) == stop_mark:
                    change = await _ended(stopping, watch.changed(policy.daemon.watch_seconds))
                app.state.ready = False
                log.info("stopping pid=%d because=%s", record.pid, "told to" if change is None else change.value)
                # While the listeners are open: whoever waits for one is answered, not waited for.
                await asyncio.gather(plugins.close(), other_accounts.close(service))

            undo.callback(_withdraw, settings.data_dir, record)
            await _Server(_config(app, policy), until_stopped).serve(sockets=listeners)
            if change is Change.STORE_GONE:
                _abandon(settings, record)
        log.info("stopped pid=%d", record.pid)
    return change


class GrpcDoor(NamedTuple):
    """What the gRPC interface needs: what it serves, on which port (None for none), and the tokens."""

    service: Application
    port: int | None
    token: str
    agent_token: str


async def _other_doors(undo: contextlib.AsyncExitStack, mcp: McpMount, door: GrpcDoor, record: Running) -> Running:
    """See to MCP's end, and open the gRPC interface where it is asked for. Returns the record, with what went wrong."""
    undo.push_async_callback(mcp.close)
    if door.port is None:
        return record
    try:
        from scrubjay.transports.grpc.server import GrpcServer  # noqa: PLC0415  # 0.1 s and 33 MB, for the few who ask
    except ImportError:
        warning = "grpc_port is set, but gRPC is not installed: pip install 'scrubjay[grpc]'"
        return replace(record, warnings=(*record.warnings, warning))
    server = GrpcServer(door.service, token=door.token, agent_token=door.agent_token)
    undo.push_async_callback(server.close)
    try:
        await server.start(door.port)
    except UnavailableError as error:
        return replace(record, warnings=(*record.warnings, f"{error.message}: {error.hint}"))
    return record


async def _ended(stopping: asyncio.Event, changed: Coroutine[Any, Any, Change]) -> Change | None:
    """Return None when the daemon is told to end, or what has changed under it, whichever comes first."""
    told, watching = asyncio.create_task(stopping.wait()), asyncio.create_task(changed)
    try:
        await asyncio.wait((told, watching), return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        watching.cancel()
    return None if told.done() or not watching.done() else watching.result()


def _abandon(settings: Settings, record: Running) -> NoReturn:
    """End at once, without closing the store: what closing writes beside it could land beside its successor."""
    _withdraw(settings.data_dir, record)
    error = gone(settings.store_path)
    log.error("stopped pid=%d because=%s", record.pid, Change.STORE_GONE.value)
    sys.stderr.write(f"scrubjay: {error.message}\n      {error.hint}\n")
    logging.shutdown()
    sys.stderr.flush()
    os._exit(error.exit_code)


def _run_again() -> NoReturn:
    """Become the version that is installed now: the same command line, in the same process where there is `exec`."""
    command = [sys.executable, *sys.orig_argv[1:]]
    log.info("starting again pid=%d", os.getpid())
    logging.shutdown()
    try:
        if sys.platform == "win32":  # there, exec leaves the console's caller without the process it waits for
            subprocess.Popen(command, creationflags=NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP)  # noqa: S603  # our own command line
            sys.exit(0)
        os.execv(sys.executable, command)  # noqa: S606  # our own command line, as it was given
    except OSError as error:
        raise UnavailableError(
            f"scrubjay was upgraded, and {sys.executable}, which ran it, is gone ({error.strerror})",
            hint="scrubjay daemon start starts the new version",
        ) from error


class _Server(uvicorn.Server):
    """uvicorn without its ten wake-ups a second, and with our signals.

    Its own loop only refreshes a Date header and looks whether to exit; ours awaits `until_stopped`, which runs from
    the moment the listeners are open until they are to be closed.
    """

    def __init__(self, config: uvicorn.Config, until_stopped: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(config)
        self._until_stopped = until_stopped

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the listeners. The system may queue more connections than are taken at a time."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(socket.SOMAXCONN)

    async def main_loop(self) -> None:
        """Return when the listeners are to be closed."""
        await self._until_stopped()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals alone: uvicorn raises them again at its end, before the store would be closed."""
        yield


def _config(app: Starlette, policy: MemoryPolicy) -> uvicorn.Config:
    connections = Connections(policy.connection, most=most_connections(policy.connection))
    return uvicorn.Config(
        app,
        # Its parser is httptools, a third of what h11 takes: 0.1 ms a request. uvloop was no faster here, and loads for
        # 20 ms.
        http=cast("Any", partial(HttpConnection, connections=connections)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nobody stands between us and the client, so nobody may speak for it
        server_header=False,
        date_header=False,
        backlog=policy.connection.waiting,
        timeout_keep_alive=policy.daemon.keep_alive_seconds,
        timeout_graceful_shutdown=policy.daemon.grace_seconds,
    )


async def _open(settings: Settings, policy: MemoryPolicy, stopping: asyncio.Event) -> Application | Running:
    """Open the store, or return the daemon that has it.

    Waits for a daemon or a command that is on its way out, but not for a program that keeps the store open.
    """
    deadline = time.monotonic() + policy.daemon.handover_seconds
    while True:
        try:
            return other_accounts.attended(
                await Application.configured(settings, os.environ, policy=policy), settings, policy
            )
        except StoreInUseError as error:
            found = await asyncio.to_thread(_answering, settings.data_dir)
            if found is not None:
                return found
            if time.monotonic() >= deadline or not error.passing:
                raise
        if stopping.is_set():
            raise _stopped_early()
        await asyncio.sleep(policy.daemon.poll_seconds)


def _stopped_early() -> UnavailableError:
    return UnavailableError(
        "the daemon was told to stop before it began to serve", hint="scrubjay daemon start starts it again"
    )


def _answering(data_dir: Path) -> Running | None:
    try:
        client = discover(data_dir)
    except UnavailableError:
        return None
    return None if client is None else client.running


@contextlib.contextmanager
def _signals(stopping: asyncio.Event) -> Generator[None, None, None]:
    """Set `stopping` at SIGTERM, SIGINT and SIGHUP (the terminal of a foreground daemon closes)."""
    loop = asyncio.get_running_loop()
    names = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
    before = {
        number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopping.set))
        for number in (getattr(signal, name, None) for name in names)
        if number is not None
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tcp_socket(settings: Settings, warnings: list[str]) -> socket.socket:
    """Listen on the configured port, or on any free one when a stranger has it, and say so in `warnings`."""
    host = "127.0.0.1" if settings.host == "localhost" else settings.host
    try:
        return _bound(host, settings.port)
    except OSError as error:
        try:
            listening = _bound(host, 0)
        except OSError:
            raise UnavailableError(
                f"the daemon cannot listen on {host} ({error.strerror})",
                hint="set host (SCRUBJAY_HOST) to 127.0.0.1, or to another address of this machine",
            ) from error
        port = listening.getsockname()[1]
        taken = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        warnings.append(f"port {settings.port} {taken}; the daemon listens on {port} instead")
        log.warning("port not free wanted=%d got=%d", settings.port, port)
        return listening


def _bound(host: str, port: int) -> socket.socket:
    # Only where the protocol is named does asyncio switch off Nagle's algorithm; with it an answer takes 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":
            # There, reusing an address means taking it from whoever has it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(socket.SOMAXCONN)
    except BaseException:
        listening.close()
        raise
    return listening


def _unix_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket of mode 0600. What a dead predecessor left is removed; what answers is not."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            listening.bind(str(path))
        except OSError as error:
            _remove_stale(path, error)
            listening.bind(str(path))
        # Before it listens nobody can connect: no moment at which it is open to others.
        path.chmod(0o600)
        listening.listen(socket.SOMAXCONN)
    except BaseException:
        listening.close()
        raise
    return listening


def _remove_stale(path: Path, reason: OSError) -> None:
    if not path.is_socket():
        raise ConflictError(
            f"{path} cannot become the daemon's socket ({reason.strerror})",
            hint="remove it, or set SCRUBJAY_SOCKET to another path",
        ) from reason
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConflictError(f"{path} is in use", hint="set SCRUBJAY_SOCKET to another path") from error
    raise ConflictError(
        f"{path} belongs to another running daemon", hint="give each data directory its own socket (SCRUBJAY_SOCKET)"
    )


def _token(path: Path) -> str:
    """Return the bearer token, made once. A file that others can read is closed to them; an empty one is refused."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        private_files.write(path, token.encode())
        return token
    except (OSError, ValueError) as error:
        raise CorruptError(
            f"{path} cannot be read as a token", hint="remove it; the next start makes a new one"
        ) from error
    if len(token) < TOKEN_BYTES:
        raise CorruptError(
            f"the token file {path} is empty or damaged", hint="remove it; the next start makes a new one"
        )
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
        log.warning("token file was readable by others; closed it")
    return token


def _remove_own(path: Path, was: tuple[int, int] | None) -> None:
    """Remove our socket, unless another daemon's lies there by now."""
    if not replaced(path, was):
        path.unlink(missing_ok=True)


def _publish(data_dir: Path, record: Running, hook_token: str) -> None:
    door = (hook_token, record.socket or "", record.host, str(record.port), record.instance)
    private_files.write(data_dir / HOOK_DOOR_NAME, "\n".join(door).encode())
    private_files.write(data_dir / RECORD_NAME, record.encoded())


def _withdraw(data_dir: Path, record: Running) -> None:
    """Remove what `_publish` wrote, unless a successor has written its own."""
    found = Running.of(data_dir)
    if found is not None and found.instance == record.instance:
        (data_dir / RECORD_NAME).unlink(missing_ok=True)
        (data_dir / HOOK_DOOR_NAME).unlink(missing_ok=True)


def _log_to_file(settings: Settings, policy: MemoryPolicy, *, foreground: bool) -> None:
    """Log to the rotating file, only now that this is the daemon: two processes would rotate it under each other.

    In the background stderr already is that file, so the file's handler takes the place of stderr's.
    """
    file = logging.handlers.RotatingFileHandler(
        settings.log_path,
        maxBytes=policy.daemon.log_bytes,
        backupCount=policy.daemon.log_files,
        encoding="utf-8",
    )
    if not foreground:
        for handler in logging.getLogger().handlers[:]:
            logging.getLogger().removeHandler(handler)
    _log_to(file, settings.log_level)


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(DiscreetFormatter("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    handler.handleError = Unwritten()  # type: ignore[method-assign]  # the library's way to set it for one handler
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # other people's loggers may say what is wrong, not what they see
    logging.getLogger("scrubjay").setLevel(level.upper())


class Unwritten:
    """Says on stderr that the log cannot be written, once a minute: a full disk lasts longer than that."""

    def __init__(self) -> None:
        self._said: float | None = None

    def __call__(self, record: logging.LogRecord) -> None:
        """Tell of a line that is lost."""
        now = time.monotonic()
        if self._said is not None and now - self._said < UNWRITTEN_SECONDS:
            return
        self._said, error = now, sys.exception()
        reason = error.strerror if isinstance(error, OSError) else type(error).__qualname__
        with contextlib.suppress(OSError, ValueError):  # stderr may be that very file
            sys.stderr.write(f"scrubjay: the log cannot be written ({reason}): a {record.levelname} is lost\n")


class DiscreetFormatter(logging.Formatter):
    """Formats an exception as its kind and its places, without its words, which may quote a memory.

    The libraries we run on log the exceptions of our jobs and tasks; this is where their words end.
    """

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802  # the library's name
        """Return one line: the kind of the exception, and where it came from."""
        error = ei[1]
        return "" if error is None else f"{type(error).__qualname__} at {frames_of(error)}"


class LoopErrors:
    """Logs what nobody awaited. asyncio's own handler would print the exception's words.

    That no connection can be taken in, because too many files are open, comes a thousand times a second: it is said
    once in so many seconds, or it would push everything else out of the log.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._said: float | None = None
        self._more = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log one error."""
        message, error = context.get("message"), context.get("exception")
        if not (isinstance(error, OSError) and error.errno in OUT_OF_FILES):
            log.error("unhandled in the event loop: %s", message, exc_info=error)
            return
        if self._said is not None and loop.time() - self._said < self._seconds:
            self._more += 1
            return
        log.error("unhandled in the event loop: %s (and %d times since it was last said)", message, self._more)
        self._said, self._more = loop.time(), 0
