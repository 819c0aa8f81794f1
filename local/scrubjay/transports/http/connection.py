"""uvicorn's connections, bounded: how many there are, and how long a client may keep one without doing its part.

An answer's head and body leave in one write: one system call, and one packet.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrubjay.policy import ConnectionPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

JOINED_BYTES = 65_536
"""Longer bodies are written by themselves: to copy them takes longer than a system call."""

FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
"""The answer where every connection that may be open is at work."""


class Connections:
    """The connections of one server, and the clock that looks after them while there are any.

    Each listener has a share of its own, so that strangers on the port keep nobody off the person's own socket. Where a
    share is used up, the connection that has waited for its client the longest makes room for a new one.
    """

    def __init__(self, policy: ConnectionPolicy, *, most: int) -> None:
        self.policy = policy
        self._most = most
        self._open: dict[bool, set[HttpConnection]] = {True: set(), False: set()}
        self._looking: asyncio.TimerHandle | None = None

    def admit(self, connection: HttpConnection) -> bool:
        """Take in a connection, and say whether there is room for it."""
        share = self._open[connection.is_local]
        if len(share) >= self._most:
            waiting = [one for one in share if one.waits_since is not None]
            if not waiting:
                return False
            # One that rests between two requests loses nothing; one that never says what it wants comes to be first.
            min(waiting, key=lambda one: one.waits_since or 0.0).drop()
        share.add(connection)
        if self._looking is None:
            self._look_again(connection.loop)
        return True

    def leave(self, connection: HttpConnection) -> None:
        """Let go of a connection that is lost."""
        self._open[connection.is_local].discard(connection)

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = loop.call_later(self.policy.look_seconds, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = None
        now = loop.time()
        for connection in [one for share in self._open.values() for one in share]:
            connection.look(now)
        if any(self._open.values()):
            self._look_again(loop)


class HttpConnection(HttpToolsProtocol):
    """A connection of a client, which ends when the client does not do its part.

    That is to send the head of a request, to send on with a body, and to read the answer. uvicorn itself ends one that
    rests between two requests, and writes the head of an answer before it has the body.
    """

    def __init__(self, *arguments: Any, connections: Connections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._kept = connections
        self._heard = self.loop.time()
        self._head_since: float | None = self._heard
        self._unread, self._read = 0, self._heard

    @property
    def is_local(self) -> bool:
        """Whether it came by the Unix socket."""
        return self.server is None or self.server[1] is None

    @property
    def waits_since(self) -> float | None:
        """Since when nothing is asked; None while a request is worked at."""
        if self._at_work() is not None:
            return None
        return self._heard if self._head_since is None else self._head_since

    def _at_work(self) -> RequestResponseCycle | None:
        """Return the request that is worked at."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # there is none before the first
        return None if cycle is None or cycle.response_complete else cycle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to serve what comes through a transport, where there is room."""
        super().connection_made(JoinedWrites(transport, self.loop))
        if not self._kept.admit(self):
            self.transport.write(FULL)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self._kept.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        self._heard = self.loop.time()
        if self._head_since is None and self.waits_since is not None:
            self._head_since = self._heard
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Begin with a request: its head is complete."""
        self._head_since = None
        super().on_headers_complete()

    def drop(self) -> None:
        """End at once, and let go of the place."""
        self._kept.leave(self)
        self.transport.abort()

    def look(self, now: float) -> None:
        """End where the client has not done its part in time."""
        policy = self._kept.policy
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread or not unread:
            self._unread, self._read = unread, now
        request = self._at_work()
        sends = request is not None and request.more_body and not request.waiting_for_100_continue
        if request is not None and (not sends or self.flow.read_paused):
            self._heard = now  # the next bytes are not the client's to send
        late = (
            (self._head_since is not None and now - self._head_since > policy.head_seconds)
            or (sends and now - self._heard > policy.body_seconds)
            or now - self._read > policy.unread_seconds
        )
        if late:
            self.drop()


def most_connections(policy: ConnectionPolicy) -> int:
    """Return how many connections one listener may have: what files the process may open, less what it needs itself."""
    if sys.platform == "win32":
        return policy.most
    import resource  # noqa: PLC0415  # there is none on Windows

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return policy.most
    return max(policy.least, min(policy.most, (files - policy.other_files) // 2))


class JoinedWrites(asyncio.Transport):
    """A transport that keeps a write back until the next one, the end of this turn of the loop, or the close."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._kept: bytes | bytearray | memoryview = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write some bytes soon, in the order of the calls."""
        if not self._kept:
            self._kept = data
            self._loop.call_soon(self._flush)
        elif len(data) <= JOINED_BYTES:
            kept, self._kept = self._kept, b""
            self._transport.write(b"".join((kept, data)))
        else:
            self._flush()
            self._transport.write(data)

    def _flush(self) -> None:
        if self._kept:
            kept, self._kept = self._kept, b""
            self._transport.write(kept)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write some pieces, one after another."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """Say that nothing more will be written."""
        self._flush()
        self._transport.write_eof()

    def can_write_eof(self) -> bool:
        """Say whether `write_eof` can be called."""
        return self._transport.can_write_eof()

    def close(self) -> None:
        """Close once everything is written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once; what was not written is lost."""
        self._kept = b""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Say whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what the system knows of the connection."""
        return self._transport.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait to be written."""
        return self._transport.get_write_buffer_size() + len(self._kept)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set from when on the protocol is told to wait, and until when."""
        self._transport.set_write_buffer_limits(high, low)

    def is_reading(self) -> bool:
        """Say whether what comes is read."""
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        """Read nothing for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give what comes to another protocol."""
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return what is given what comes."""
        return self._transport.get_protocol()
