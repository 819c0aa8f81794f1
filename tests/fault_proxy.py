"""A reverse proxy on loopback between devices and a service, which loses, delays, cuts, refuses and repeats requests.

It runs in a thread of its own and reads whole requests and answers, so that each fault is of one request: `odds` says how
often each happens, `on_stage` is told where every request is, at the moments at which a process may have to die.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

HEAD_BYTES = 64 * 1024
DELAY_S = 0.4  # the longest of a delayed request
REPEATABLE = ("/v1/push", "/v1/heal", "/v1/pack")
"""What a proxy on the way may send twice: these are idempotent by the protocol."""


class Fault(StrEnum):
    """What may happen to one request."""

    DROPPED = "request dropped"
    HALVED = "request cut in the middle"
    DELAYED = "answer delayed"
    LOST = "answer lost"
    CUT = "answer cut in the middle"
    REFUSED = "answered 503"
    REPEATED = "request sent twice"


ALL_FAULTS: Mapping[Fault, float] = dict.fromkeys(Fault, 0.04)
"""A bad line: a quarter of all requests meet something."""


class Stage(StrEnum):
    """Where a request is: nothing of it was sent on; all was, and no answer is there; one is; the client has it."""

    ASKED = "asked"
    SENT = "sent"
    ANSWERED = "answered"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """One request at one stage. `port` is the client's; `answer_bytes` are those of the answer's body, once known."""

    stage: Stage
    method: str
    path: str
    port: int
    answer_bytes: int = 0


class _CutError(Exception):
    """The connection ends here."""


@dataclass(slots=True, kw_only=True)
class FaultProxy:
    """`port` is where devices connect, `target` where the service is. Use as a context manager."""

    target: int
    roll: random.Random
    odds: Mapping[Fault, float] = field(default_factory=dict)
    hanging: bool = False
    """Whether new requests are taken and never answered."""
    on_stage: Callable[[Passing], None] | None = None
    port: int = 0
    met: Counter[Fault] = field(default_factory=Counter)
    requests: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Requests whose answer was delivered, by path without what is of one request."""
    canary: bytes = b""
    leaked: int = 0
    """Messages, both ways, in which `canary` stood."""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        listening = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), name="fault-proxy", daemon=True)
        self._thread.start()
        listening.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()

    def _run(self, listening: threading.Event) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._accepted, "127.0.0.1", self.port))
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._ended(server))
        self._loop.close()

    async def _ended(self, server: asyncio.Server) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await server.wait_closed()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(_CutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._served(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on the requests of one client connection, each over a connection of its own."""
        port = writer.get_extra_info("peername")[1]
        while True:
            head, body = await _message(reader)
            method, path = head.split(b"\r\n", 1)[0].decode().split(" ")[:2]
            self.requests += 1
            if self.hanging:
                await asyncio.Event().wait()

            route = "/".join(path.partition("?")[0].split("/")[:3])

            def at(stage: Stage, answer_bytes: int = 0, *, method: str = method, path: str = path) -> None:
                if self.on_stage is not None:
                    self.on_stage(Passing(stage=stage, method=method, path=path, port=port, answer_bytes=answer_bytes))

            await self._passed(head, body, writer, at, repeatable=route in REPEATABLE)
            self.asked[route] += 1

    async def _passed(
        self,
        head: bytes,
        body: bytes,
        writer: asyncio.StreamWriter,
        at: Callable[..., None],
        *,
        repeatable: bool,
    ) -> None:
        fault = self._fault(repeatable=repeatable)
        self._look(head + body)
        at(Stage.ASKED)
        if fault is Fault.DROPPED:
            raise _CutError
        if fault is Fault.REFUSED:
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nRetry-After: 0\r\n\r\nbusy")
            await writer.drain()
            return
        if fault is Fault.HALVED:
            await self._asked(head, body[: len(body) // 2], None)
            raise _CutError
        if fault is Fault.REPEATED:
            await self._asked(head, body, lambda: None)
        answer_head, answer = await self._asked(head, body, lambda: at(Stage.SENT))
        self._look(answer_head + answer)
        at(Stage.ANSWERED, len(answer))
        if fault is Fault.DELAYED:
            await asyncio.sleep(self.roll.random() * DELAY_S)
        if fault is Fault.LOST:
            raise _CutError
        whole = answer_head + answer
        writer.write(whole[: len(answer_head) + len(answer) // 2] if fault is Fault.CUT else whole)
        await writer.drain()
        if fault is Fault.CUT:
            raise _CutError
        at(Stage.DELIVERED, len(answer))

    async def _asked(self, head: bytes, body: bytes, sent: Callable[[], None] | None) -> tuple[bytes, bytes]:
        """Return the service's answer; with `sent` None, go away without waiting for it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target, limit=HEAD_BYTES)
        try:
            writer.write(head + body)
            await writer.drain()
            if sent is None:
                return b"", b""
            sent()
            return await _message(reader)
        finally:
            writer.close()

    def _fault(self, *, repeatable: bool) -> Fault | None:
        for fault, odds in self.odds.items():
            if (fault is not Fault.REPEATED or repeatable) and self.roll.random() < odds:
                self.met[fault] += 1
                return fault
        return None

    def _look(self, data: bytes) -> None:
        self.leaked += bool(self.canary) and self.canary in data


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read one HTTP message: its head with the empty line, and its body as it came."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise _CutError from error
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:] if line)
    }
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        return head, await _chunks(reader.readuntil, reader.readexactly)
    return head, await reader.readexactly(int(fields.get(b"content-length", b"0")))


async def _chunks(line: Callable[[bytes], Awaitable[bytes]], exactly: Callable[[int], Awaitable[bytes]]) -> bytes:
    """Read a body in chunks, with their frames."""
    found = b""
    while True:
        size = await line(b"\r\n")
        chunk = await exactly(int(size.split(b";")[0], 16) + 2)
        found += size + chunk
        if chunk == b"\r\n":
            return found
