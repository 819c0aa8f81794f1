"""Who has proved nothing keeps nobody from the service: real sockets, the real server, and clients that mean no good."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2 as httpx
import pytest
import uvicorn

from cloud_client import Client, Clock, RefusedError, signed_up
from scrubjay_cloud import database as port
from scrubjay_cloud.app import create_app
from scrubjay_cloud.connections import connection_type
from scrubjay_cloud.policy import DEFAULT, Bucket, CloudPolicy, ConnectionPolicy, LimitPolicy, TurnPolicy
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.turns import Turns
from scrubjay_shared.errors import TooManyError
from scrubjay_shared.wire import Login

pytestmark = [pytest.mark.anyio, pytest.mark.enable_socket]

QUICK = CloudPolicy(
    limits=LimitPolicy(**dict.fromkeys(LimitPolicy.__dataclass_fields__, Bucket(burst=10**9, rate=10**6, draw=10**3))),
    connections=ConnectionPolicy(head_s=0.5, rest_s=0.5, of_network=40),
    hash_memory_kib=64,
    hash_iterations=1,
    open_body_s=0.5,
    body_s=0.5,
    body_rate=10**6,
)
LOGIN = b"POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@dataclass(slots=True)
class Served:
    """A server on loopback, and a client that is honest."""

    port: int
    client: Client
    now: Clock
    server: uvicorn.Server
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def open(self, *pieces: bytes, pause: float = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, and send what is given, piece by piece."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        return reader, writer


@contextlib.asynccontextmanager
async def served(
    folder: Path, policy: CloudPolicy = QUICK, *, proxied: bool = False, most: int = 400
) -> AsyncIterator[Served]:
    now = Clock()
    database = await port.open(folder / "server.db", now=now, entropy=os.urandom)
    proxies = (ipaddress.ip_network("127.0.0.0/8"),) if proxied else ()
    settings = Settings(data=folder, registration="open", proxies=proxies)
    app = create_app(database, settings, now=now, entropy=os.urandom, policy=policy)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    made = connection_type(settings.proxies, most, policy.connections)
    config = uvicorn.Config(
        app, http=made, ws="none", lifespan="on", log_config=None, timeout_keep_alive=5, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    running = asyncio.create_task(server.serve(sockets=[listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with httpx.AsyncClient(base_url=address, timeout=20) as http:
            world = Served(port=listener.getsockname()[1], client=Client(http), now=now, server=server)
            yield world
            for writer in world.writers:
                writer.transport.abort()
    finally:
        app.state.service.stop()
        server.should_exit = True
        await running
        await database.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Return all that comes until the server ends the connection."""
    said = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            while piece := await reader.read(65536):
                said += piece
    return said


async def test_who_sends_thousands_of_requests_ahead_is_not_kept(tmp_path: Path) -> None:
    """The attack: 1,500 small requests in one write, unread, of 400 connections: 400 MB of requests that wait."""
    asked = b"GET /v1/caps HTTP/1.1\r\nHost: x\r\n\r\n"
    async with served(tmp_path) as world:
        few, _ = await world.open(asked * 3, b"GET /v1/caps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        many, _ = await world.open(asked * 1500)

        assert (await ended(few)).count(b"HTTP/1.1 200") == 4
        assert (await ended(many)).count(b"HTTP/1.1 200") <= DEFAULT.connections.ahead
        assert (await world.client.http.get("/v1/caps")).status_code == 200


async def test_bodies_that_are_said_to_come_and_do_not_hold_up_no_member(tmp_path: Path) -> None:
    """The attack: 146 connections that declare 900 KiB each took all memory for bodies, before any token was seen."""
    policy = replace(QUICK, open_body_s=5.0, body_s=5.0, connections=replace(QUICK.connections, of_network=300))
    async with served(tmp_path, policy) as world:
        device = await signed_up(world.client, now=world.now)
        token = device.client.token.encode()
        heads = (
            [LOGIN + b"Content-Length: 921600\r\n\r\n"] * 50  # more than a login may have: refused at once
            + [LOGIN + b"Content-Length: 4096\r\n\r\n"] * 50
            + [LOGIN + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"] * 20
            + [LOGIN + b"Content-Length: 4000\r\nExpect: 100-continue\r\n\r\n"] * 20
            + [LOGIN.replace(b"login", b"register") + b"Content-Length: 65536\r\n\r\n"] * 20
            + [LOGIN.replace(b"login", b"push") + b"Content-Length: 921600\r\n\r\n"] * 20
            + [
                LOGIN.replace(b"login", b"push")
                + b"Authorization: Bearer "
                + token
                + b"\r\nContent-Length: 921600\r\n\r\n"
            ]
            * 20
        )
        for head in heads:
            await world.open(head)

        assert await device.statuses(device.quick(500_000)) == ["ok"]
        await device.account.login(world.client)
        await device.authenticate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "pause", "answer"),
    [
        ((), 0, b""),  # nothing at all
        ((b"GET /v1/caps HTTP/1.1\r\nHost: x\r\n",), 0, b""),  # half of a head
        ((b"\r\n",) * 20, 0.1, b""),  # what may stand before one, for ever
        ((b"GET /v1/caps HTTP/1.1\r\n", *(b"X: y\r\n",) * 20), 0.1, b""),  # a head in drops
        ((b"GET /v1/caps HTTP/1.1\r\nHost: x\r\n\r\n", *(b"G", b"E", b"T") * 6), 0.1, b" 200 OK"),  # a second one so
        ((LOGIN + b"Content-Length: 4000\r\n\r\n", *(b" ",) * 20), 0.1, b" 503 "),  # a body in drops
        ((LOGIN + b"Transfer-Encoding: chunked\r\n\r\n", *(b"1\r\n \r\n",) * 20), 0.1, b" 503 "),
        ((LOGIN + b"Expect: 100-continue\r\nContent-Length: 40\r\n\r\n",), 0, b" 503 "),
        ((b"GET /v1/heads HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", *(b" ",) * 8), 0.2, b" 401 "),
    ],
)
async def test_a_connection_that_sends_too_slowly_is_ended(
    tmp_path: Path, pieces: tuple[bytes, ...], pause: float, answer: bytes
) -> None:
    async with served(tmp_path) as world:

        async def send() -> bytes:
            reader, writer = await world.open()
            said = asyncio.create_task(ended(reader))
            with contextlib.suppress(ConnectionError):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(pause)
            return await said

        async with asyncio.timeout(6):
            assert answer in await send()
        assert (await world.client.call("GET", "/v1/caps")).status_code == 200


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /v1/caps HTTP/1.1\r\nX: ",  # one header
        b"GET /",  # an address
        LOGIN + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",  # what may follow a body
        LOGIN + b"Transfer-Encoding: chunked\r\n\r\n1;",  # what may stand beside a piece
    ],
)
async def test_a_head_without_end_is_cut_off(tmp_path: Path, endless: bytes) -> None:
    policy = replace(QUICK, open_body_s=30.0, connections=replace(QUICK.connections, head_s=30.0, rest_s=30.0))
    async with served(tmp_path, policy) as world:
        reader, writer = await world.open(endless)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 4 * 1024 * 1024 and not reader.at_eof():
                writer.write(b"y" * 16_384)
                await writer.drain()
                sent += 16_384
                await asyncio.sleep(0)

        assert sent < 4 * 1024 * 1024
        assert (await world.client.call("GET", "/v1/caps")).status_code == 200


async def test_idle_connections_of_one_network_leave_room_for_others_and_a_proxys_are_its_own(tmp_path: Path) -> None:
    patient = replace(QUICK, connections=ConnectionPolicy(of_network=30))
    async with served(tmp_path, patient) as world:
        for _ in range(60):
            await world.open()
        await asyncio.sleep(0.2)
        assert len(world.server.server_state.connections) == 30
        device = await signed_up(world.client, now=world.now)
        with_token = b"GET /v1/heads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + device.client.token.encode()
        members = [await world.open(with_token + b"\r\n\r\n") for _ in range(20)]
        for reader, _ in members:
            assert b" 200 OK" in await reader.readuntil(b"\r\n")
        for _ in range(60):
            await world.open()
        await asyncio.sleep(0.2)
        for reader, writer in members:  # who has proved something is not among those that go
            writer.write(with_token + b"\r\n\r\n")
            assert b" 200 OK" in (await reader.readuntil(b"HTTP/1.1")) + await reader.readuntil(b"\r\n")
    (tmp_path / "behind").mkdir()
    async with served(tmp_path / "behind", patient, proxied=True) as world:
        for _ in range(60):
            await world.open()
        await asyncio.sleep(0.2)
        assert len(world.server.server_state.connections) == 60


async def test_all_strangers_together_leave_room_and_the_largest_crowd_gives_way(tmp_path: Path) -> None:
    patient = replace(QUICK, connections=ConnectionPolicy(of_network=30))
    async with served(tmp_path, patient, most=40) as world:
        for _ in range(60):
            await world.open()
        await asyncio.sleep(0.2)

        assert len(world.server.server_state.connections) == 20
        assert (await world.client.call("GET", "/v1/caps")).status_code == 200


async def test_one_account_takes_no_more_than_its_share_of_what_bodies_may_hold(tmp_path: Path) -> None:
    policy = replace(QUICK, bodies_bytes=3_000_000, bodies_share=1_000_000, body_s=5.0)
    async with served(tmp_path, policy) as world:
        greedy = await signed_up(world.client, "mallory", now=world.now)
        other = await signed_up(world.client, "ann", now=world.now)
        head = b"POST /v1/push HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + greedy.client.token.encode()
        for _ in range(5):
            await world.open(head + b"\r\nContent-Length: 900000\r\n\r\n", b"x" * 800_000)
        await asyncio.sleep(0.3)

        with pytest.raises(RefusedError) as caught:
            await greedy.push(greedy.quick(400_000))
        assert (caught.value.problem.status, caught.value.code) == (503, "unavailable")
        assert await other.statuses(other.quick(400_000)) == ["ok"]


# --- turns ------------------------------------------------------------------------------------------------------------


async def taken(turns: Turns, order: list[str], whose: str, *, known: bool = False) -> str:
    try:
        async with turns.taken(whose.rstrip("0123456789").encode(), known=known):
            order.append(whose)
            await asyncio.sleep(0)
    except TooManyError:
        return "busy"
    return "done"


async def test_turns_go_round_the_networks_and_who_is_known_is_first() -> None:
    turns, order = Turns(TurnPolicy(at_once=1, waiting=20, share=8)), list[str]()
    async with turns.taken(b"first"):
        waiting = [asyncio.create_task(taken(turns, order, f"crowd{n}")) for n in range(8)]
        waiting += [asyncio.create_task(taken(turns, order, name)) for name in ("ann1", "bob1", "ann2")]
        waiting.append(asyncio.create_task(taken(turns, order, "owner1", known=True)))
        await asyncio.sleep(0)

    assert {await one for one in waiting} == {"done"}
    assert order[:6] == ["owner1", "crowd0", "ann1", "bob1", "crowd1", "ann2"]
    assert await taken(turns, order, "later") == "done"  # nothing of a turn is left


async def test_a_crowd_waits_in_a_share_of_its_own_and_gives_way_where_all_places_are_taken() -> None:
    turns, order = Turns(TurnPolicy(at_once=1, waiting=4, share=3)), list[str]()
    async with turns.taken(b"first"):
        crowd = [asyncio.create_task(taken(turns, order, f"crowd{n}")) for n in range(5)]
        others = [asyncio.create_task(taken(turns, order, name)) for name in ("ann", "bob", "cat", "dan", "eve")]
        known = asyncio.create_task(taken(turns, order, "owner", known=True))
        await asyncio.sleep(0)

    assert [await one for one in crowd] == ["done", "busy", "busy", "busy", "busy"]
    assert [await one for one in others] == ["done", "done", "done", "busy", "busy"]
    assert await known == "done"


async def test_who_goes_away_gives_a_place_and_a_turn_back() -> None:
    turns, order = Turns(TurnPolicy(at_once=1, waiting=4, share=3)), list[str]()
    for when in range(3):
        tasks = [asyncio.create_task(taken(turns, order, f"one{n}")) for n in range(3)]
        for _ in range(when):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert await taken(turns, order, "later") == "done"


async def test_wrong_logins_of_one_network_hold_up_no_login_of_another(tmp_path: Path) -> None:
    """The attack: 300 wrong logins from 60 addresses of one customer stood in one line, and an honest one behind them."""
    policy = replace(QUICK, hash_memory_kib=DEFAULT.hash_memory_kib, hash_iterations=DEFAULT.hash_iterations)
    async with served(tmp_path, policy, proxied=True) as world:
        device = await signed_up(world.client, now=world.now)
        limits = httpx.Limits(max_connections=400)
        async with httpx.AsyncClient(base_url=world.client.http.base_url, timeout=60, limits=limits) as http:

            async def wrong(n: int) -> httpx.Response:
                content = b'{"username": "x%d", "auth_key": "%s", "code": ""}' % (n, b"A" * 43 + b"=")
                headers = {"X-Forwarded-For": f"2001:db8:1:{n % 60:x}::1", "Content-Type": "application/json"}
                return await http.post("/v1/login", content=content, headers=headers)

            attack = [asyncio.create_task(wrong(n)) for n in range(60)]
            await asyncio.sleep(0.05)
            given = Login(username=device.account.name, auth_key=device.account.auth_key)
            async with asyncio.timeout(5):
                await world.client.call("POST", "/v1/login", given, headers={"X-Forwarded-For": "198.51.100.7"})
            answers = [await one for one in attack]

    assert {one.status_code for one in answers} == {401, 429}
    assert all(int(one.headers["Retry-After"]) >= 1 for one in answers if one.status_code == 429)
