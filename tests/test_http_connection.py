"""Answers leave in one write: what is kept back is written in order, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from scrubjay.transports.http.connection import JOINED_BYTES, JoinedWrites

pytestmark = pytest.mark.anyio


class Counting:
    """Stands between a socket's transport and the kernel: how long each write to it was."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.sizes: list[int] = []
        self._write = transport.write
        transport.write = self.write  # type: ignore[method-assign]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sizes.append(len(data))
        self._write(data)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[JoinedWrites, Counting, Callable[[], bytes]]]:
    """Yield a transport over one end of a socket pair, its writes, and what reads the other end to its end."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    joined = JoinedWrites(transport, loop)

    def received() -> bytes:
        parts = []
        while part := theirs.recv(65_536):
            parts.append(part)
        return b"".join(parts)

    with theirs:
        yield joined, Counting(transport), received
        joined.abort()


async def test_two_writes_of_one_turn_are_one() -> None:
    async with connected() as (joined, written, received):
        joined.write(b"head ")
        joined.write(b"body")
        assert written.sizes == [9]
        joined.close()
        assert await asyncio.to_thread(received) == b"head body"


async def test_a_write_without_another_leaves_at_the_end_of_the_turn() -> None:
    async with connected() as (joined, written, received):
        joined.write(b"head")
        assert (written.sizes, joined.get_write_buffer_size()) == ([], 4)
        await asyncio.sleep(0)
        assert written.sizes == [4]
        joined.close()
        assert await asyncio.to_thread(received) == b"head"


async def test_a_long_body_follows_its_head_without_a_copy() -> None:
    body = b"x" * (JOINED_BYTES + 1)
    async with connected() as (joined, written, received):
        joined.write(b"head")
        joined.write(body)
        assert written.sizes == [4, len(body)]
        joined.close()
        assert await asyncio.to_thread(received) == b"head" + body


async def test_pieces_keep_their_order_over_turns_and_a_close_loses_none() -> None:
    pieces = [b"%d," % number for number in range(101)]
    async with connected() as (joined, _, received):
        for number, piece in enumerate(pieces):
            joined.write(piece)
            if number % 3 == 0:
                await asyncio.sleep(0)
        joined.close()
        assert joined.is_closing()
        assert await asyncio.to_thread(received) == b"".join(pieces)


async def test_what_is_kept_back_at_an_abort_is_not_written() -> None:
    async with connected() as (joined, written, received):
        joined.write(b"head")
        joined.abort()
        await asyncio.sleep(0)
        assert written.sizes == []
        assert await asyncio.to_thread(received) == b""
