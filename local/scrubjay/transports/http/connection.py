"""uvicorn's connection, with the head and the body of an answer in one write: one system call, and one packet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from collections.abc import Iterable

JOINED_BYTES = 65_536
"""Longer bodies are written by themselves: to copy them takes longer than a system call."""


class HttpConnection(HttpToolsProtocol):
    """A connection of a client. uvicorn writes the head of an answer before it has the body."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to serve what comes through a transport."""
        super().connection_made(JoinedWrites(transport, self.loop))


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
