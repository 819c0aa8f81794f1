"""What makes a history cheap and changes nothing in it: one thread, a plain client, no signature checked twice.

The order of events is the scheduler's alone, so threads would only cost: a hop between two is dearer than the statement
it is for. That the product's threads are safe, and what a real client does, is for the tests of the store and of sync and
for kill rounds to show.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any, TypeVar

import aiosqlite
import httpx2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay.store import preparation, sqlite
from scrubjay.store.received import Ready
from scrubjay_shared import envelope

T = TypeVar("T")

_REPLAY = import_module("scrubjay_shared.account.replay")
"""The module: the package has a function of the same name."""

REMEMBERED = 8_192
"""Signatures whose check is remembered: some histories' worth, a few megabytes."""


class Connection(sqlite.Connection):
    """The store's connection, without its thread: what is asked of it is done at once."""

    def __init__(self, connector: Callable[[], Any], iter_chunk_size: int) -> None:
        self._running = True
        self._connection: Any = None
        self._connector = connector
        self._iter_chunk_size = iter_chunk_size

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._opened().__await__()

    async def _opened(self) -> Connection:
        self._connection = self._connector()
        return self

    async def _execute(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self._connection is None:
            raise ValueError("Connection closed")
        return fn(*args, **kwargs)

    def stop(self) -> None:
        """Do nothing: no thread runs."""

    async def close(self) -> None:
        """Close it; there is no thread to wait for."""
        await aiosqlite.Connection.close(self)


class AtOnce(ThreadPoolExecutor):
    """Runs what is submitted to it in the caller's thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `fn` and return what came of it."""
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            done.set_exception(error)
        return done


@functools.lru_cache(maxsize=REMEMBERED)
def _signed(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


class _Child:
    """Makes ops ready here, by the same code as the other process."""

    def __init__(self) -> None:
        self.sending, self.receiving = asyncio.Lock(), asyncio.Lock()
        self._asked: deque[preparation.Request] = deque()

    def send(self, request: preparation.Request) -> None:
        self._asked.append(request)

    def receive(self) -> Ready:
        return preparation.made(self._asked.popleft())

    def end(self, *, at_once: bool) -> None:
        """Do nothing: there is no process."""


class _Remembering:
    """An Ed25519 key that does not check again what it has checked: every device checks the same objects."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def from_public_bytes(cls, key: bytes) -> _Remembering:
        Ed25519PublicKey.from_public_bytes(key)
        return cls(key)

    def verify(self, signature: bytes, message: bytes) -> None:
        if not _signed(self._key, signature, message):
            raise InvalidSignature


@functools.lru_cache(maxsize=REMEMBERED)
def _url(base: str, path: str, params: tuple[tuple[str, str], ...]) -> httpx2.URL:
    return httpx2.URL(base + path, params=dict(params)) if params else httpx2.URL(base + path)


class Client:
    """`httpx2.AsyncClient` as far as `Cloud` uses it: one request, one answer, and nothing followed or kept."""

    def __init__(
        self, *, base_url: str, transport: httpx2.AsyncBaseTransport, headers: dict[str, str], **_: Any
    ) -> None:
        self._base = base_url
        self._transport = transport
        self._headers = {"Accept": "*/*", "Connection": "keep-alive", **headers}

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None,
        headers: dict[str, str],
        params: dict[str, str] | None,
        timeout: httpx2.Timeout,  # noqa: ASYNC109 - the real one's
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and give its answer."""
        url = _url(self._base, path, tuple((params or {}).items()))
        request = httpx2.Request(method, url, headers={**self._headers, **headers}, content=content)
        yield await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""


@contextmanager
def inline() -> Iterator[None]:
    """Have all of this in the code until the block ends."""
    sites: tuple[tuple[Any, str, Any], ...] = (
        (sqlite, "Connection", Connection),
        (httpx2, "AsyncClient", Client),
        (preparation, "Child", _Child),
        (_REPLAY, "Ed25519PublicKey", _Remembering),
        (envelope, "Ed25519PublicKey", _Remembering),
    )
    before = [getattr(owner, name) for owner, name, _ in sites]
    for owner, name, instead in sites:
        setattr(owner, name, instead)
    try:
        yield
    finally:
        for (owner, name, _), original in zip(sites, before, strict=True):
            setattr(owner, name, original)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to its end, in one thread."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(AtOnce())
        return runner.run(work)
