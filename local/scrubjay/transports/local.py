"""Transports for synchronous callers: in this process behind one portal thread, or through the daemon's socket.

Theory of operation. The service is async and there is one copy of it, so a synchronous caller needs an event loop that
is not its own: the portal, a thread that runs a loop and nothing else. A call hands a coroutine to that loop and waits
for its result; any number of threads may do so, also from inside a running loop of theirs. Which way a file is reached
is settled once, when it is opened: a daemon that has it is asked, else the store is opened here, and the store's own
lock decides when two try at the same moment.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401  # before our exit hook: the last one in runs first, while its threads are there
import contextlib
import os
import string
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from scrubjay import settings
from scrubjay.accounts import MAIN
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.api.operations import OPERATIONS, Operation
from scrubjay.transports import client
from scrubjay.transports.http.routes import BY_OPERATION
from scrubjay_shared.errors import ConflictError, InvalidError, ScrubjayError, UnavailableError

if TYPE_CHECKING:
    from scrubjay.service.application import Application

T = TypeVar("T")
HAND_OVER_S = 2.0
"""How long opening waits for whoever has the store, unless the caller says longer. A daemon that has the lock listens
in well under a second. Nobody waits longer for a script: it may keep the store open for a day."""

SAY_AFTER_S = 1.0
"""From here on a person wonders what is being waited for."""

POLL_S = 0.05
"""Between two looks at who has the lock."""

SLOW_OPERATIONS_S = 24 * 3600.0
"""What an operation may take whose work grows with the store, or is a Writer's: it ends when the work does."""

SETTLE_MARGIN_S = 30.0
"""How much longer than its own limit `settle` may take to answer."""

STREAM_CHUNK = 512
"""Lines of a stream per fetch: enough that crossing threads does not show, little enough to hold."""

SLOW = frozenset({"import", "rebuild", "backup", "run_job", "ask", "try_writer", "relearn"})


class Transport(Protocol):
    """A way to call the operations of one store."""

    @property
    def path(self) -> Path:
        """The store's file."""

    @property
    def through(self) -> str:
        """Whether it leads to the daemon ("daemon") or stays in this process ("process")."""

    def call(self, name: str, request: Any) -> Any:
        """Run an operation. Raises what the operation raises; UnavailableError once closed."""

    def stream(self, name: str, request: Any) -> Iterator[bytes]:
        """Run a stream operation and yield its lines, without their newline. Raises as `call`."""

    def close(self) -> None:
        """Let go of the store. A second close does nothing."""


class Portal:
    """A thread with an event loop, for callers that have none. Ends with `close`, or with the process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        # A daemon thread, and so the threads it starts: none of them may keep a process alive that is done.
        self._thread = threading.Thread(target=self._run, name="scrubjay-portal", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result. An interrupt cancels it and goes on to the caller."""
        if self._pid != os.getpid():
            work.close()
            raise UnavailableError("this store was opened before a fork", hint="open it again in the child process")
        if threading.current_thread() is self._thread:
            work.close()
            raise UnavailableError("a call from inside the store's own loop", hint="call it from another thread")
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:  # the loop is closed
            work.close()
            raise closed() from error
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        with self._closing:
            if self._loop.is_closed() or self._pid != os.getpid():
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())


class Opened:
    """A service, its jobs, and the portal they run behind: what must be closed, also when nobody is left to say so."""

    def __init__(self, path: Path, chosen: settings.Settings, *, background: bool) -> None:
        """Open the store. With `background`, the jobs of the daemon run here too."""
        self._closing = threading.Lock()
        self._closed = False
        self.portal = Portal()
        try:
            self.service = self.portal.run(_open(path, chosen, background=background))
        except BaseException:
            self.portal.close()
            raise
        _opened.add(self)

    def close(self) -> None:
        """Finish what was begun, close the file, end the thread. A second close does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            _opened.discard(self)
            try:
                self.portal.run(_close(self.service))
            finally:
                self.portal.close()

    def abandon(self) -> None:
        """Close from wherever the garbage collector happens to be, which may be the portal's own thread."""
        if not self._closed:
            threading.Thread(target=self.close, name="scrubjay-close").start()


class LocalTransport:
    """The store, opened in this process. Closed when it is collected or the process ends, if not before."""

    through = "process"

    def __init__(
        self, path: Path, chosen: settings.Settings, *, background: bool = True, caller: Caller = PERSON
    ) -> None:
        """Open it. With `background`, the jobs of the daemon run here too. Raises ConflictError when it is in use."""
        self.path = path
        self._caller = caller
        self._opened: Opened | None = Opened(path, chosen, background=background)
        self._finalizer = weakref.finalize(self, self._opened.abandon)
        self._finalizer.atexit = False  # the process's end is `_close_all`'s, in time for what needs threads

    def call(self, name: str, request: Any) -> Any:
        """Run an operation, after the check of the request that the daemon makes of JSON."""
        opened = self._opened
        if opened is None:
            raise closed()
        return opened.portal.run(opened.service.call(self._caller, name, checked(name, request)))

    def stream(self, name: str, request: Any) -> Iterator[bytes]:
        """Yield the lines of a stream, fetched some hundred at a time: each fetch crosses threads."""
        opened = self._opened
        if opened is None:
            raise closed()
        lines = opened.service.stream(self._caller, name, checked(name, request))
        try:
            while chunk := opened.portal.run(_some(lines)):
                yield from chunk
        finally:
            opened.portal.run(lines.aclose())

    def close(self) -> None:
        """Finish what was begun and close the file."""
        opened, self._opened = self._opened, None
        if opened is not None:
            self._finalizer.detach()
            opened.close()


class DaemonTransport:
    """The store, through the daemon that has it."""

    through = "daemon"

    def __init__(self, path: Path, speaker: client.Client) -> None:
        self.path = path
        self.running = speaker.running
        self._client: client.Client | None = speaker

    def call(self, name: str, request: Any) -> Any:
        """Send a request over the daemon's socket: `routes` says where, the registry what its response is read into."""
        if self._client is None:
            raise closed()
        operation, route = known(name), BY_OPERATION[name]
        fields = {key: value for key, value in _plain(request).items() if value is not None}
        in_path = {key: str(fields.pop(key, "")) for _, key, _, _ in string.Formatter().parse(route.path) if key}
        body: dict[str, Any] | bytes | None = fields
        query: dict[str, Any] | None = None
        if route.takes_query:
            body, query = None, fields
        elif isinstance(fields.get("data"), bytes):  # a file travels as it is, not as base64
            body, query = fields.pop("data"), fields
        answer = self._client.call(
            route.method, client.path_of(route.path, **in_path), body, query, timeout=_patience_s(name, request)
        )
        try:
            return msgspec.convert(answer, operation.response)
        except msgspec.ValidationError as error:
            apart = None if self.running is None else client.skew(self.running.version)
            words, hint = apart or ("the daemon is not of this build", "scrubjay daemon restart starts this one")
            raise UnavailableError(f"{words}: its answer to {name} cannot be read ({error})", hint=hint) from error

    def stream(self, name: str, request: Any) -> Iterator[bytes]:
        """Yield the lines of a stream as they come."""
        if self._client is None:
            raise closed()
        lines = self._client.lines(BY_OPERATION[known(name).name].path, _plain(request), timeout=SLOW_OPERATIONS_S)
        return (line.removesuffix(b"\n") for line in lines)

    def close(self) -> None:
        """Close the connection; the daemon goes on."""
        speaker, self._client = self._client, None
        if speaker is not None:
            speaker.close()


def open_file(path: Path | None = None, *, background: bool = True, caller: Caller = PERSON) -> Transport:
    """Open a store by its file, or without one the store of this machine's settings.

    Through the daemon that has it, else here. Models and all else are as the settings say. Raises ConflictError when a
    process has it that is no daemon.
    """
    if path is None:
        chosen = settings.load({}, os.environ)
        return open_store(chosen.store_path, chosen, background=background, caller=caller)
    path = path.expanduser().absolute()
    chosen = settings.load({"data_dir": path.parent}, os.environ)
    return open_store(path, chosen, background=background, caller=caller)


def open_store(
    path: Path,
    chosen: settings.Settings,
    *,
    background: bool = True,
    caller: Caller = PERSON,
    wait_s: float = HAND_OVER_S,
    waiting: Callable[[str], None] = lambda _: None,
) -> Transport:
    """Open the store at `path`: through the daemon that has it, else here.

    Waits up to `wait_s` for a daemon that is starting, or for another command to finish; see `in_turn`.
    """

    def attempt() -> Transport:
        return through_daemon(path, chosen, caller) or LocalTransport(
            path, chosen, background=background, caller=caller
        )

    return in_turn(attempt, wait_s=wait_s, waiting=waiting)


def in_turn(attempt: Callable[[], T], *, wait_s: float, waiting: Callable[[str], None] = lambda _: None) -> T:
    """Return what `attempt` returns, trying it again while another process has the store.

    From the first refusal on it waits up to `wait_s` for a daemon or a command, which come to an end or listen; up to
    `HAND_OVER_S` for a script; never for this process itself. `waiting` is told once, in words, what is waited for,
    when that takes longer than `SAY_AFTER_S`. Raises StoreInUseError of the last try.
    """
    refused: float | None = None
    said = False
    while True:
        try:
            return attempt()
        except ConflictError as error:
            from scrubjay.store import StoreInUseError  # noqa: PLC0415  # loaded by now: the store was just tried

            if not isinstance(error, StoreInUseError):
                raise
            refused = time.monotonic() if refused is None else refused
            waited = time.monotonic() - refused
            patience = wait_s if error.passing else min(wait_s, HAND_OVER_S)
            if waited >= patience or (error.held is not None and error.held.pid == os.getpid()):
                raise
            if waited >= SAY_AFTER_S and not said:
                said = True
                waiting(f"{error.message}; waiting up to {patience:.0f} s for it")
        time.sleep(POLL_S)


def through_daemon(path: Path, chosen: settings.Settings, caller: Caller = PERSON) -> DaemonTransport | None:
    """Return the way through the daemon that has this very file, or None when none does."""
    if path.resolve() != chosen.store_path.resolve():  # a daemon has the stores of its data folder
        return None
    agent = None
    if caller.principal is Principal.AGENT:
        agent = client.Agent(name=caller.agent, project=caller.project, session_id=caller.session_id)
    account = chosen.account if agent is None and "account" in chosen.origins else None
    speaker = client.discover(chosen.data_dir, agent=agent, account=account)
    if speaker is not None and speaker.running is not None and account not in {None, MAIN}:
        client.require_same_version(speaker.running)
    return None if speaker is None else DaemonTransport(path, speaker)


def known(name: str) -> Operation:
    """Return an operation by its name. Raises InvalidError when there is none."""
    found = OPERATIONS.get(name)
    if found is None:
        raise InvalidError(f"no operation is called {name}", hint=f"operations: {', '.join(OPERATIONS)}")
    return found


def checked(name: str, request: Any) -> Any:
    """Return the request if every field has its type; handlers may rely on it. Raises InvalidError."""
    operation = known(name)
    if not isinstance(request, operation.request):
        raise InvalidError(
            f"{name} takes a {operation.request.__name__}, not a {type(request).__name__}", hint="see scrubjay.api"
        )
    try:
        return msgspec.convert(msgspec.to_builtins(request, builtin_types=(bytes,)), operation.request)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidError(f"{name}: {error}", hint="check the type and the range of that field") from error


def closed() -> ScrubjayError:
    """Return the error of a call after `close`."""
    return UnavailableError("this store is closed", hint="open it again")


async def _open(path: Path, chosen: settings.Settings, *, background: bool) -> Application:
    # numpy, the index, the scheduler: who goes through the daemon must not wait for them
    from scrubjay.service.application import Application  # noqa: PLC0415

    service = await Application.configured(chosen, os.environ, path=path)
    if background:
        await service.scheduler.start()
    return service


async def _close(service: Application) -> None:
    try:
        await service.scheduler.stop()
    finally:
        await service.close()


async def _some(lines: AsyncGenerator[bytes, None]) -> list[bytes]:
    chunk: list[bytes] = []
    async for line in lines:
        chunk.append(line.removesuffix(b"\n"))
        if len(chunk) == STREAM_CHUNK:
            break
    return chunk


def _plain(request: Any) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = msgspec.to_builtins(request, builtin_types=(bytes,))
    except TypeError as error:
        raise InvalidError(str(error), hint="send what JSON can hold") from error
    return fields


def _patience_s(name: str, request: Any) -> float | None:
    if name == "settle":
        return float(request.timeout_ms) / 1000 + SETTLE_MARGIN_S
    return SLOW_OPERATIONS_S if name in SLOW else None


_opened: set[Opened] = set()


def _close_all() -> None:
    for opened in tuple(_opened):
        with contextlib.suppress(ScrubjayError):  # the process ends; the store is whole without an orderly close
            opened.close()


# An `atexit` function would come too late: by then the interpreter starts no more threads, and closing the store needs
# them. This hook is where concurrent.futures has its own; where there is none, `atexit` is all there is.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
