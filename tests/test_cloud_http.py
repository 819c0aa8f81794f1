"""The HTTP transport of the cloud service: its document, its headers, whom it believes about addresses, and settings."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import AsyncIterator, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2 as httpx
import hypothesis
import msgspec
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error

from cloud_client import ORIGIN, Account, Client, Clock, RefusedError, World, opened, signed_up
from scrubjay_cloud import database as port
from scrubjay_cloud.app import ENDPOINTS, create_app
from scrubjay_cloud.endpoint import Admits
from scrubjay_cloud.guard import address
from scrubjay_cloud.policy import Bucket, CloudPolicy, LimitPolicy
from scrubjay_cloud.settings import OPTIONS, Settings, load
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.wire import MEDIA, PROBLEM, LogPage, Problem

WIDE = Bucket(burst=10**9, rate=10**6, draw=10**6)
OPEN = CloudPolicy(
    limits=LimitPolicy(
        **dict.fromkeys(LimitPolicy.__dataclass_fields__, WIDE),
    ),
    hash_memory_kib=64,
    hash_iterations=1,
    max_wait_s=0.01,
    keepalive_s=0.01,
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with opened(tmp_path / "server.db", policy=OPEN) as found:
        yield found


# --- every route ------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_every_route_that_asks_for_a_token_refuses_who_has_none(world: World) -> None:
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{hash}", "00" * 32)
        for name in ("target", "device", "scope", "id"):
            path = path.replace(f"{{{name}}}", "00" * 16)
        response = await world.client.http.request(endpoint.method, path)
        expected = {400, 200} if endpoint.admits is Admits.ANYONE else {401}
        assert response.status_code in expected, (endpoint.method, path, response.text)


@pytest.mark.anyio
async def test_an_unknown_path_and_an_unknown_method_are_problems(world: World) -> None:
    for method, path, status, code in (
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/caps/", 404, "not_found"),
        ("POST", "/v1/caps", 405, "invalid"),
        ("GET", "/v1/lanes/xx/yy", 401, "unauthenticated"),
    ):
        response = await world.client.http.request(method, path)
        found = msgspec.json.decode(response.content, type=Problem)
        assert (response.status_code, found.code, response.headers["content-type"]) == (status, code, PROBLEM)


BAD_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "a wrong type": b'{"username": 1, "auth_key": ""}',
    "no base64": b'{"username": "ann", "auth_key": "%%%"}',
    "no UTF-8": b'{"username": "\xff", "auth_key": ""}',
    "a lone surrogate": b'{"username": "\\ud800", "auth_key": ""}',
    "too deep": b"[" * 4_000,
    "a field missing": b'{"username": "ann"}',
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_body_that_is_no_record_is_malformed(world: World, case: str) -> None:
    with pytest.raises(RefusedError) as caught:
        await world.client.call("POST", "/v1/login", BAD_BODIES[case])

    assert (caught.value.problem.status, caught.value.code) == (400, "malformed")


@pytest.mark.anyio
async def test_unknown_fields_are_ignored_so_that_clients_may_be_newer(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    given = msgspec.to_builtins(await device.token_request()) | {"later": {"a": 1}}

    response = await world.client.http.post("/v1/auth/token?later=1", content=msgspec.json.encode(given))

    assert response.status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=1&limit=2", "wait=-1", "scopes=zz", "limit=" + "9" * 30]
)
async def test_a_query_that_is_none_is_invalid(world: World, query: str) -> None:
    device = await signed_up(world.client, now=world.now)

    with pytest.raises(RefusedError) as caught:
        await device.client.call("GET", f"/v1/pull?{query}")

    assert (caught.value.problem.status, caught.value.code) == (400, "invalid")


@pytest.mark.anyio
async def test_answers_tell_the_servers_time_and_database_and_are_not_cached(world: World) -> None:
    response = await world.client.http.get("/v1/caps")
    refused = await world.client.http.get("/v1/heads")

    for one in (response, refused):
        assert parsedate_to_datetime(one.headers["date"]).timestamp() * 1000 == world.now()
        assert one.headers["scrubjay-store"] == world.service.store_id
        assert one.headers["scrubjay-generation"] == "1"
        assert one.headers["cache-control"] == "no-store"
        assert len(one.headers["x-request-id"]) == 16
    assert refused.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.anyio
async def test_a_fault_inside_is_a_problem_that_tells_nothing(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: Any) -> Any:
        raise RuntimeError("canary")

    monkeypatch.setattr(world.database, "read", broken)

    with pytest.raises(RefusedError) as caught:
        await world.client.call("GET", "/v1/caps")

    assert (caught.value.problem.status, caught.value.code) == (500, "internal")
    assert "canary" not in caught.value.response.text + caplog.text
    assert caught.value.problem.request_id in caplog.text


@pytest.mark.anyio
async def test_a_log_page_ends_and_the_next_begins_there(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    for _ in range(5):
        device.account.scope()
        await device.append(device.account.entries[-1])

    page = await device.client.call("GET", "/v1/log?from=4", answer=LogPage)

    assert list(page.entries) == device.account.entries[4:]
    assert page.seq == 7


# --- who is believed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "forwarded", "expected"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.2", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "1.2.3.4, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.2", "198.51.100.1, 10.0.0.7", "198.51.100.1"),
        ("10.0.0.2", "", "10.0.0.2"),
        ("10.0.0.2", "nonsense", ""),
        ("2001:db8:1:2:3:4:5:6", "", "2001:db8:1:2::"),
        ("::ffff:203.0.113.9", "", "203.0.113.9"),
    ],
)
def test_only_trusted_proxies_say_whom_they_speak_for(client: str, forwarded: str, expected: str) -> None:
    scope = {"type": "http", "client": (client, 1), "headers": [(b"x-forwarded-for", forwarded.encode())]}
    parsed = ipaddress.ip_address(expected) if expected else None
    wanted = b"" if parsed is None else parsed.packed[:8] if parsed.version == 6 else parsed.packed

    assert address(scope, (ipaddress.ip_network("10.0.0.0/8"),)) == wanted


@pytest.mark.anyio
async def test_what_a_proxy_took_in_clear_is_refused(tmp_path: Path) -> None:
    settings = {"origin": "https://sync.test", "proxies": load({"data": "x", "proxies": "127.0.0.0/8"}).proxies}
    async with opened(tmp_path / "server.db", policy=OPEN, **settings) as world:
        plain = await world.client.http.get("/v1/caps", headers={"X-Forwarded-Proto": "http"})
        tls = await world.client.http.get("/v1/caps", headers={"X-Forwarded-Proto": "https"})
        health = await world.client.http.get("/healthz")

    assert [plain.status_code, tls.status_code, health.status_code] == [403, 200, 200]
    assert "max-age" in tls.headers["strict-transport-security"]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_flags_win_over_the_environment() -> None:
    environ = {"SCRUBJAY_CLOUD_DATA": "/srv", "SCRUBJAY_CLOUD_PORT": "1", "SCRUBJAY_CLOUD_REGISTRATION": "open"}

    found = load({"port": "2", "host": None}, environ)

    assert (found.data, found.port, found.registration, found.host) == (Path("/srv"), 2, "open", "127.0.0.1")


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"SCRUBJAY_CLOUD_PORT": "x"}, "SCRUBJAY_CLOUD_PORT"),
        ({"SCRUBJAY_CLOUD_PORT": "70000"}, "SCRUBJAY_CLOUD_PORT"),
        ({"SCRUBJAY_CLOUD_REGISTRATION": "all"}, "SCRUBJAY_CLOUD_REGISTRATION"),
        ({"SCRUBJAY_CLOUD_ORIGIN": "sync.test"}, "SCRUBJAY_CLOUD_ORIGIN"),
        ({"SCRUBJAY_CLOUD_ORIGIN": "https://sync.test/path"}, "SCRUBJAY_CLOUD_ORIGIN"),
        ({"SCRUBJAY_CLOUD_ORIGIN": "http://sync.test"}, "must be https"),
        ({"SCRUBJAY_CLOUD_PROXIES": "here"}, "SCRUBJAY_CLOUD_PROXIES"),
        ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL"),
        ({"SCRUBJAY_CLOUD_QUOTA_BYTES": "0"}, "SCRUBJAY_CLOUD_QUOTA_BYTES"),
        ({"SCRUBJAY_CLOUD_HOST": "0.0.0.0"}, "not a loopback address"),  # noqa: S104 - what is refused
        (
            {"SCRUBJAY_CLOUD_HOST": "192.0.2.1", "SCRUBJAY_CLOUD_ORIGIN": "https://sync.test"},
            "not a loopback address",
        ),
        ({"SCRUBJAY_CLOUD_TLS_CERT": "/a"}, "a certificate and its key"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(environ: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidError) as caught:
        load({}, {"SCRUBJAY_CLOUD_DATA": "/srv"} | environ)

    assert words in caught.value.message


def test_another_address_is_listened_on_behind_a_proxy_or_with_tls() -> None:
    outside = {"SCRUBJAY_CLOUD_DATA": "/srv", "SCRUBJAY_CLOUD_HOST": "192.0.2.1"}
    proxied = {"SCRUBJAY_CLOUD_ORIGIN": "https://sync.test", "SCRUBJAY_CLOUD_PROXIES": "192.0.2.0/24"}

    assert load({}, outside | proxied).secure
    assert load({"tls_cert": "/a", "tls_key": "/b"}, outside).secure


def test_secrets_do_not_show() -> None:
    shown = repr(load({"data": "x", "pepper": "canary", "database_url": "postgres://u:canary@h/d"}))

    assert "canary" not in shown
    assert len({option.variable for option in OPTIONS}) == len(OPTIONS)


# --- the document -----------------------------------------------------------------------------------------------------


def _objects() -> st.SearchStrategy[bytes]:
    """Bodies of the data plane: noise, and objects that are almost right."""
    account = Account.make("ann", now=Clock())
    device = account.device(Client(httpx.AsyncClient()))
    good = [device.quick(40).data for _ in range(3)]
    return st.one_of(
        st.binary(max_size=1_000),
        st.sampled_from([*good, b"".join(good)]),
        st.tuples(st.sampled_from(good), st.integers(0, 311), st.integers(0, 255)).map(
            lambda one: one[0][: one[1]] + bytes([one[2]]) + one[0][one[1] + 1 :]
        ),
    )


schemathesis.openapi.media_type(MEDIA, _objects())


async def made(folder: Path) -> tuple[Any, str]:
    """An app that runs on whatever event loop calls it, and a token of a device."""
    now = Clock()
    database = await port.open(folder / "server.db", now=now, entropy=os.urandom, inline=True)

    async def here(work: Any) -> Any:
        return work()

    settings = Settings(data=folder, registration="open")
    app = create_app(database, settings, now=now, entropy=os.urandom, policy=OPEN, offload=here)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=ORIGIN) as http:
        device = await signed_up(Client(http), now=now)
        return app, device.client.token


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[Any, str]]:
    app, token = asyncio.run(made(tmp_path))
    yield app, token
    asyncio.run(app.state.service.database.close())


def ask_everything(app: Any, token: str, examples: int) -> int:
    """Send what the document allows, and what it does not; return how many requests that were."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    count = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path == "/v1/events":
            continue  # it does not end

        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            nonlocal count
            count += 1
            headers = {"Authorization": f"Bearer {token}"}
            case.call_and_validate(headers=headers, checks=[not_a_server_error])

        ask()
    return count


@pytest.mark.slow
def test_nothing_the_document_allows_makes_the_server_fail(asked: tuple[Any, str]) -> None:
    assert ask_everything(*asked, examples=4) > 60


@pytest.mark.slow
def test_nothing_the_document_allows_makes_the_server_fail_at_length(asked: tuple[Any, str]) -> None:
    assert ask_everything(*asked, examples=100) > 1_500


@pytest.mark.anyio
async def test_the_document_lists_every_route(world: World) -> None:
    document = (await world.client.http.get("/openapi.json")).json()

    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    assert len(ENDPOINTS) == len(listed)
