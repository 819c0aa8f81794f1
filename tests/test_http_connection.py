"""Answers leave in one write, whole; a client that does not do its part keeps no connection."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from hook_process import Home
from scrubjay import settings as options
from scrubjay.policy import ConnectionPolicy
from scrubjay.transports.client import Client
from scrubjay.transports.http.connection import JOINED_BYTES, Connections, HttpConnection, JoinedWrites

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


# Connections whose client does not do its part


QUICK = ConnectionPolicy(head_seconds=0.4, body_seconds=0.4, unread_seconds=0.4, look_seconds=0.05)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer /large without an end, /slow after a second, and anything else at once when its body is there."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await asyncio.sleep(1.0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    gone = asyncio.create_task(receive())
    while scope["path"] == "/large" and not gone.done():
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        await asyncio.sleep(0)
    gone.cancel()
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving(policy: ConnectionPolicy = QUICK, most: int = 100) -> AsyncIterator[Any]:
    """Yield what connects to a server of our connections, and its state."""
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
    config.load()
    connections, state = Connections(policy, most=most), ServerState()
    loop = asyncio.get_running_loop()

    def made() -> HttpConnection:
        return HttpConnection(config=config, server_state=state, app_state={}, _loop=loop, connections=connections)

    server = await loop.create_server(made, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    opened: list[asyncio.StreamWriter] = []

    async def connect(data: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(data)
        opened.append(writer)
        return reader, writer

    yield connect
    for writer in opened:
        writer.transport.abort()
    server.close()
    await server.wait_closed()
    await asyncio.gather(*state.tasks)
    await asyncio.sleep(0.05)


async def is_ended(reader: asyncio.StreamReader) -> bool:
    """Say whether a connection is ended soon."""
    try:
        async with asyncio.timeout(5.0):
            while await reader.read(65_536):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"G",
        b"POST / HTTP/1.1\r\nHost: a\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf",
    ],
    ids=["nothing", "a letter", "half a head", "half a body"],
)
async def test_who_does_not_send_on_is_ended(begun: bytes) -> None:
    async with serving() as connect:
        reader, _ = await connect(begun)

        assert await is_ended(reader)


async def test_a_stray_line_after_a_request_keeps_no_connection() -> None:
    async with serving() as connect:
        reader, writer = await connect(GET)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(0.1)
        writer.write(b"\r\n")

        assert await is_ended(reader)


async def test_who_sends_a_head_byte_by_byte_is_ended_all_the_same() -> None:
    async with serving() as connect:
        reader, writer = await connect(b"GET / HTTP/1.1\r\n")
        ended = asyncio.create_task(is_ended(reader))
        for _ in range(60):
            if ended.done():
                break
            writer.write(b"A: b\r\n")
            await asyncio.sleep(0.05)

        assert ended.done()
        assert await ended


async def test_who_does_not_read_an_answer_is_ended_and_the_answer_with_it() -> None:
    async with serving() as connect:
        reader, writer = await connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        writer.transport.pause_reading()
        await asyncio.sleep(1.5)
        writer.transport.resume_reading()

        assert await is_ended(reader)


async def test_who_reads_slowly_keeps_the_connection() -> None:
    async with serving() as connect:
        reader, _ = await connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(12):  # longer than an answer may lie unread
            for _ in range(40):
                assert await reader.read(65_536)
            await asyncio.sleep(0.1)


async def test_a_body_in_parts_and_an_answer_that_takes_its_time_keep_the_connection() -> None:
    async with serving() as connect:
        reader, writer = await connect(b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
        for _ in range(6):
            writer.write(b"x")
            await asyncio.sleep(0.15)

        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_half_open_connections_make_room_for_one_that_asks() -> None:
    async with serving(ConnectionPolicy(), most=5) as connect:
        held = [await connect(b"GET / HTTP/1.1\r\n") for _ in range(40)]
        reader, _ = await connect(GET)

        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert await is_ended(held[0][0])


async def test_where_all_are_at_work_one_more_is_told_so() -> None:
    async with serving(ConnectionPolicy(), most=3) as connect:
        busy = [await connect(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(3)]
        await asyncio.sleep(0.1)
        reader, _ = await connect(GET)

        assert (await reader.readline()).startswith(b"HTTP/1.1 503")
        assert (await busy[0][0].readline()).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_half_open_connections_do_not_make_the_daemon_deaf(tmp_path: Path) -> None:
    """A process of 256 files with 600 half-open connections answers by both doors, and says little of it."""
    home = Home(tmp_path)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256));"
    program = f"{limit} import runpy; runpy.run_module('scrubjay.daemon', run_name='__main__')"
    options.ensure_dirs(home.settings)
    environ = {**os.environ, **home.environ, "SCRUBJAY_HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environ, stderr=subprocess.PIPE) as process:
        try:
            home.until((home.data / "daemon.json").exists, "the daemon serves")
            port = home.client().running.port  # type: ignore[union-attr]
            held = []
            for _ in range(600):
                one = socket.create_connection(("127.0.0.1", port), 5)
                one.sendall(b"GET / HTTP/1.1\r\n")
                held.append(one)

            for door in ({"socket_path": str(home.settings.socket)}, {"address": ("127.0.0.1", port)}):
                token = home.settings.token_path.read_text().strip()
                with Client(token=token, timeout=5.0, **door) as client:  # type: ignore[arg-type]
                    assert client.call("GET", "/v1/stats")["events"] == 0
            for one in held:
                one.close()
        finally:
            process.terminate()
            _, said = process.communicate(timeout=30)
    assert len(said.splitlines()) < 20
