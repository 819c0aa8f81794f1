"""The HTTP transport in process, and the daemon as a real process: what comes in, who may come in, what survives."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import errno
import http.client
import json
import logging
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.daemon.process import DiscreetFormatter, LoopErrors, Unwritten, _bound, _tcp_socket, _token, _unix_socket
from scrubjay.model_choice import Origin
from scrubjay.policy import DEFAULT, DaemonPolicy, LimitPolicy, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.settings import Settings
from scrubjay.transports.client import STOP_PATH, Client, Running, discover, path_of
from scrubjay.transports.http.app import create_app
from scrubjay.transports.http.decoding import decoded
from scrubjay.transports.http.guard import Guard
from scrubjay.transports.http.routes import ROUTES, Route
from scrubjay.transports.mcp import bridge
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidError,
    ScrubjayError,
    UnavailableError,
)

TOKEN = "t" * 43
AGENT_TOKEN = "agent-" + TOKEN
HOOK_TOKEN = "hook-" + TOKEN
SMALL = MemoryPolicy(limits=LimitPolicy(max_body_bytes=100_000))
HOST = "127.0.0.1:7377"


class Late:
    """An ASGI app that is given after its event loop runs: the service belongs to the loop that serves it."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
        elif self.app is not None:
            await self.app(scope, receive, send)


@contextlib.contextmanager
def opened_client(folder: Path, warnings: Iterable[str] = (), **changes: Any) -> Iterator[TestClient]:
    late = Late()
    client = TestClient(late, base_url=f"http://{HOST}", headers={"Authorization": f"Bearer {TOKEN}"})
    with client:
        assert client.portal is not None
        open_service = partial(Application.open, folder / "memory.db", models_dir=folder / "models", model="none")
        service = client.portal.call(open_service)
        client.app_state["service"] = service

        async def current_warnings() -> list[str]:
            return warnings

        service.warnings.append(current_warnings)
        late.app = create_app(
            service,
            token=TOKEN,
            agent_token=AGENT_TOKEN,
            hook_token=HOOK_TOKEN,
            version="1.2.3",
            instance="this-run",
            **changes,
        )
        try:
            yield client
        finally:
            client.portal.call(service.close)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a service with a body limit of 100 kB and one memory called `cat`."""
    with opened_client(tmp_path_factory.mktemp("http"), policy=SMALL, warnings=("port 7377 is taken",)) as client:
        added = client.post("/v1/memories", json={"content": "The cat is called Mog", "name": "cat"})
        assert added.status_code == 201
        yield client


def event(number: int = 0, **changes: Any) -> dict[str, Any]:
    fields = {"agent": "test", "session_id": "s1", "type": "user_message", "text": f"note {number}"}
    return fields | {"dedupe_key": f"k{number}"} | changes


def assert_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is a whole problem document of this status and code, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    fields: dict[str, Any] = response.json()
    assert set(fields) == {"type", "title", "status", "detail", "instance", "code", "hint"}
    assert (fields["status"], fields["code"], fields["type"]) == (status, code, f"urn:scrubjay:error:{code}")
    assert fields["instance"].endswith(response.headers["x-request-id"])
    assert fields["detail"]
    return fields


# What comes in


def test_a_memory_goes_in_and_comes_back_by_its_name(client: TestClient) -> None:
    answer = client.get("/v1/memories/cat")

    assert answer.status_code == 200
    assert answer.json()["memory"]["content"] == "The cat is called Mog"


@pytest.mark.parametrize("name", ["work/ideas", "100% sure?", "ünïcode 猫 #1", "a b+c", "x/why"])
def test_a_name_with_characters_of_urls_is_reached_by_its_path(client: TestClient, name: str) -> None:
    client.post("/v1/memories", json={"content": f"what {name} says", "name": name})

    answer = client.get(path_of("/v1/memories/{ref}", ref=name))

    assert answer.json()["memory"]["name"] == name


def test_a_query_string_carries_numbers_enums_and_switches(client: TestClient) -> None:
    answer = client.get("/v1/memories?limit=1&type=fact")

    assert answer.status_code == 200
    assert len(answer.json()["entries"]) == 1


def test_events_are_answered_202_with_their_ids(client: TestClient) -> None:
    answer = client.post("/v1/events", json={"events": [event(1), event(2)]})

    assert answer.status_code == 202
    assert len(set(answer.json()["ids"])) == 2


def test_a_lone_surrogate_as_agents_send_it_is_replaced_and_nothing_is_lost(client: TestClient) -> None:
    body = b'{"events":[{"agent":"a","session_id":"lone","type":"note","text":"cut \\ud83d off \\ud83d\\ude00"}]}'

    answer = client.post("/v1/events", content=body)

    assert answer.status_code == 202
    stored = client.get("/v1/events?session_id=lone").json()["events"]
    assert [each["text"] for each in stored] == ["cut \ufffd off \U0001f600"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'"\udc00x"', "\ufffdx"),
        (rb'"\ud800\ud800"', "\ufffd\ufffd"),
        (rb'"\uD83D\uDE00\udfff"', "\U0001f600\ufffd"),
        (rb'"\\ud800 \ud800"', "\\ud800 \ufffd"),
        (rb'"\\\ud800"', "\\\ufffd"),
    ],
)
def test_only_lone_surrogates_are_replaced(text: bytes, value: str) -> None:
    assert decoded(text) == value


def test_a_file_is_imported_as_base64_in_json_or_as_the_body_itself(client: TestClient) -> None:
    text = b"# Notes\n\nWe decided to use SQLite for storage.\n"

    first = client.post("/v1/import", json={"name": "n.md", "data": base64.b64encode(text).decode()})
    again = client.post("/v1/import?name=n.md", content=text, headers={"Content-Type": "text/markdown"})

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["format"] == first.json()["format"]
    assert (again.json()["events"], again.json()["memories"]) == (0, 0)


def test_the_export_is_lines_of_json(client: TestClient) -> None:
    answer = client.get("/v1/export")

    assert answer.headers["content-type"] == "application/x-ndjson"
    assert all(isinstance(json.loads(line), dict) for line in answer.text.splitlines())
    assert "The cat is called Mog" in answer.text


def test_forget_reads_its_switch_from_the_query_and_refuses_a_body_it_would_have_to_ignore(client: TestClient) -> None:
    client.post("/v1/memories", json={"content": "Erase me", "name": "gone"})

    refused = client.request("DELETE", "/v1/memories/gone", json={"keep_sources": True})
    forgotten = client.delete("/v1/memories/gone?keep_sources=true")

    assert_problem(refused, 400, "invalid")
    assert forgotten.status_code == 200
    assert len(forgotten.json()["forgotten"]) == 1


def test_status_carries_the_warnings_of_the_door(client: TestClient) -> None:
    assert "port 7377 is taken" in client.get("/v1/status").json()["warnings"]


def test_the_document_served_is_the_generated_one(client: TestClient) -> None:
    answer = client.get("/openapi.json").json()

    assert answer["info"]["version"] == "1.2.3"
    assert {route.path for route in ROUTES} <= set(answer["paths"])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
def test_every_operation_has_a_route_that_refuses_a_field_it_does_not_have(client: TestClient, route: Route) -> None:
    path = route.path.replace("{ref}", "cat").replace("{key}", "name")

    if route.takes_query:
        answer = client.request(route.method, path, params={"nonsense": "1"})
    else:
        answer = client.request(route.method, path, json={"nonsense": 1})

    assert "nonsense" in assert_problem(answer, 400, "invalid")["detail"]


BIG = "x" * 99_000
BAD_INPUT: list[tuple[str, str, str, bytes | dict[str, Any] | None, int, str]] = [
    ("no route", "GET", "/v1/nothing", None, 404, "not_found"),
    ("slash too many", "GET", "/v1/memories/", None, 404, "not_found"),
    ("wrong method", "PUT", "/v1/recall", {}, 405, "invalid"),
    ("unknown id", "GET", "/v1/memories/01ARYZ6S410000000000000000", None, 404, "not_found"),
    ("unknown name", "GET", "/v1/memories/nobody/why", None, 404, "not_found"),
    ("path not utf-8", "GET", "/v1/memories/%ff%fe", None, 400, "invalid"),
    ("empty body", "POST", "/v1/recall", b"", 400, "invalid"),
    ("not json", "POST", "/v1/recall", b"query=cats", 400, "invalid"),
    ("truncated json", "POST", "/v1/recall", b'{"query":', 400, "invalid"),
    ("trailing junk", "POST", "/v1/recall", b'{"query":"x"} x', 400, "invalid"),
    ("byte order mark", "POST", "/v1/recall", b'\xef\xbb\xbf{"query":"x"}', 400, "invalid"),
    ("an array", "POST", "/v1/recall", b"[]", 400, "invalid"),
    ("null", "POST", "/v1/recall", b"null", 400, "invalid"),
    ("not utf-8", "POST", "/v1/recall", b'{"query":"\xff"}', 400, "invalid"),
    ("utf-16", "POST", "/v1/recall", '{"query":"x"}'.encode("utf-16"), 400, "invalid"),
    ("binary", "POST", "/v1/recall", bytes(range(256)), 400, "invalid"),
    ("nested deeply", "POST", "/v1/recall", b'{"query":' + b"[" * 90_000, 400, "invalid"),
    ("nested objects", "POST", "/v1/events", b'{"a":' * 19_000 + b"1" + b"}" * 4_000, 400, "invalid"),
    ("NaN", "POST", "/v1/recall", b'{"query":"x","min_salience":NaN}', 400, "invalid"),
    ("infinity", "POST", "/v1/recall", b'{"query":"x","min_salience":1e999}', 400, "invalid"),
    ("number for text", "POST", "/v1/recall", {"query": 5}, 400, "invalid"),
    ("text for number", "POST", "/v1/recall", {"query": "x", "limit": "5"}, 400, "invalid"),
    ("fraction for whole", "POST", "/v1/recall", {"query": "x", "limit": 1.5}, 400, "invalid"),
    ("bool for number", "POST", "/v1/recall", {"query": "x", "limit": True}, 400, "invalid"),
    ("negative limit", "POST", "/v1/recall", {"query": "x", "limit": -1}, 400, "invalid"),
    ("huge limit", "POST", "/v1/recall", b'{"query":"x","limit":99999999999999999999}', 400, "invalid"),
    ("huge time", "GET", "/v1/events?since=99999999999999999999", None, 400, "invalid"),
    ("huge time of a memory", "GET", "/v1/memories?until=-99999999999999999999", None, 400, "invalid"),
    ("huge number of tokens", "POST", "/v1/recall", b'{"query":"x","max_tokens":9223372036854775808}', 400, "invalid"),
    ("huge page", "GET", "/v1/memories?limit=99999999999999999999", None, 400, "invalid"),
    ("cursor of nobody", "GET", "/v1/memories?cursor=nonsense", None, 400, "invalid"),
    ("salience above 1", "POST", "/v1/memories", {"content": "x", "salience": 7}, 400, "invalid"),
    ("unknown enum", "POST", "/v1/memories", {"content": "x", "type": "rumour"}, 400, "invalid"),
    ("misspelt field", "POST", "/v1/memories", {"contnet": "x"}, 400, "invalid"),
    ("misspelt inside", "POST", "/v1/events", {"events": [event(9, txt="lost")]}, 400, "invalid"),
    ("no content", "POST", "/v1/memories", {}, 400, "invalid"),
    ("empty content", "POST", "/v1/memories", {"content": "  "}, 400, "invalid"),
    ("text for a list", "POST", "/v1/events", {"events": "all of them"}, 400, "invalid"),
    ("event without agent", "POST", "/v1/events", {"events": [{"session_id": "s", "type": "note"}]}, 400, "invalid"),
    ("deep metadata", "POST", "/v1/events", b'{"events":[{"agent":"a","session_id":"s","type":"note","metadata":'
     + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}]}", 400, "invalid"),
    ("query on a route with a body", "POST", "/v1/recall?limit=5", {"query": "x"}, 400, "invalid"),
    ("body on a route with a query", "GET", "/v1/memories", {"limit": 5}, 400, "invalid"),
    ("path field in body", "PATCH", "/v1/memories/cat", {"ref": "dog", "content": "x"}, 400, "invalid"),
    ("parameter twice", "GET", "/v1/memories?limit=1&limit=2", None, 400, "invalid"),
    ("parameter not a number", "GET", "/v1/memories?limit=ten", None, 400, "invalid"),
    ("parameter unknown", "GET", "/v1/memories?size=1", None, 400, "invalid"),
    ("parameter not utf-8", "GET", "/v1/memories?cursor=%ff", None, 400, "invalid"),
    ("parameters without end", "GET", "/v1/memories?" + "a=1&" * 200, None, 400, "invalid"),
    ("name that clashes", "POST", "/v1/memories", {"content": "Another cat", "name": "cat"}, 409, "conflict"),
    ("import of no name", "POST", "/v1/import", {"data": "eA=="}, 400, "invalid"),
    ("import not base64", "POST", "/v1/import", {"name": "x.md", "data": "*"}, 400, "invalid"),
    ("body too large", "POST", "/v1/recall", {"query": BIG + BIG}, 413, "too_large"),
]  # fmt: skip


@pytest.mark.parametrize("row", BAD_INPUT, ids=[row[0] for row in BAD_INPUT])
def test_bad_input_is_named_and_changes_nothing(client: TestClient, row: tuple[Any, ...]) -> None:
    _, method, path, body, status, code = row
    before = client.get("/v1/stats").json()
    content = json.dumps(body).encode() if isinstance(body, dict) else body

    answer = client.request(method, path, content=content, headers={"Content-Type": "application/json"})

    assert_problem(answer, status, code)
    assert client.get("/v1/stats").json() == before


@pytest.mark.parametrize(
    "query", ['"', "*", "NEAR(", "a NEAR/0 b", "-", "content:x", "') OR 1=1 --", "AND", "^", "{x}", "\x00", "a" * 7_999]
)
def test_search_syntax_in_a_question_is_text(client: TestClient, query: str) -> None:
    assert client.post("/v1/recall", json={"query": query}).status_code == 200


def test_a_body_without_a_length_is_bounded_too(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(50):
            yield b"x" * 10_000

    assert_problem(client.post("/v1/recall", content=endless()), 413, "too_large")


@pytest.mark.parametrize("path", ["/v1/stats", "/v1/memories/cat"], ids=["a fixed path", "one with a parameter"])
def test_head_is_answered_as_get_is(path: str, client: TestClient) -> None:
    got, head = client.get(path), client.head(path)

    assert (got.status_code, head.status_code) == (200, 200)
    assert head.headers["content-type"] == got.headers["content-type"] == "application/json"


def test_no_path_with_a_parameter_is_asked_for_before_a_fixed_one_that_it_covers() -> None:
    """`FixedPaths` finds the fixed ones first, whatever the order of the routes."""
    for route in (route for route in ROUTES if "{" in route.path):
        shape = re.compile(re.sub(r"{\w+}", "[^/]+", route.path))
        assert not [other for other in ROUTES if "{" not in other.path and shape.fullmatch(other.path)]


def test_405_says_what_is_allowed(client: TestClient) -> None:
    answer = client.request("PATCH", "/v1/events")

    assert_problem(answer, 405, "invalid")
    assert {"GET", "POST"} <= {method.strip() for method in answer.headers["allow"].split(",")}


# Who may come in


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_the_probes_answer_without_a_token(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Authorization": ""})

    assert answer.status_code == 200


def test_readyz_says_that_the_store_stopped_writing_after_the_disk_failed(tmp_path: Path) -> None:
    with opened_client(tmp_path) as client:
        assert client.get("/readyz").json() == {"ready": True, "instance": "this-run"}
        assert client.portal is not None
        with pytest.raises(UnavailableError):
            client.portal.call(client.app_state["service"].store.write, lambda tx: tx._context.connection.close())

        answer = client.get("/readyz", headers={"Authorization": ""})

        assert answer.status_code == 503
        assert answer.json()["ready"] is False
        assert "stopped writing memory.db after the disk failed" in answer.json()["reason"]
        assert_problem(client.post("/v1/memories", json={"content": "late"}), 503, "unavailable")


def test_health_says_which_run_this_is(client: TestClient) -> None:
    expected = {"ok": True, "pid": os.getpid(), "version": "1.2.3", "instance": "this-run"}

    assert client.get("/healthz").json() == expected


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, f"Basic {TOKEN}", "Bearer ü"],
    ids=["none", "no value", "empty", "longer", "shorter", "no scheme", "other scheme", "not ascii"],
)
@pytest.mark.parametrize("path", ["/v1/stats", "/v1/export", "/openapi.json", "/nothing", "/healthz/"])
def test_no_token_no_answer(client: TestClient, path: str, authorization: str) -> None:
    answer = client.get(path, headers={b"Authorization": authorization.encode()})

    assert_problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7377", 200),
        ("localhost:7377", 200),
        ("LOCALHOST:7377", 200),
        ("[::1]:7377", 200),
        ("127.0.0.1", 403),
        ("127.0.0.1:80", 403),
        ("evil.example:7377", 403),
        ("localhost.evil.example:7377", 403),
        ("127.0.0.1.evil.example:7377", 403),
        ("user@127.0.0.1:7377", 403),
        ("0.0.0.0:7377", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("path", ["/v1/stats", "/healthz"])
def test_only_a_host_header_that_names_this_daemon_is_served(
    client: TestClient, path: str, host: str, status: int
) -> None:
    answer = client.get(path, headers={"Host": host})

    assert answer.status_code == status
    if status == 403:
        assert_problem(answer, 403, "denied")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:7377", 200),
        ("http://localhost:7377", 200),
        ("null", 403),
        ("", 403),
        ("https://127.0.0.1:7377", 403),
        ("http://127.0.0.1:8000", 403),
        ("http://evil.example", 403),
        ("http://127.0.0.1:7377.evil.example", 403),
        ("chrome-extension://abc", 403),
    ],
)
def test_only_our_own_origin_is_served(client: TestClient, origin: str, status: int) -> None:
    answer = client.get("/v1/stats", headers={"Origin": origin})

    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_gets_no_permission(client: TestClient) -> None:
    answer = client.options(
        "/v1/recall", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    )

    assert_problem(answer, 403, "denied")
    assert not [name for name in answer.headers if name.startswith("access-control")]


# What leaves when something fails


def guarded(app: ASGIApp) -> TestClient:
    return TestClient(
        Guard(app, token=TOKEN, agent_token=AGENT_TOKEN, hook_token=HOOK_TOKEN, version="1.2.3"),
        base_url=f"http://{HOST}",
        headers={"Authorization": f"Bearer {TOKEN}"},
    )


def test_an_unexpected_error_is_a_500_that_keeps_its_words_to_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("the secret of Mog")

    with caplog.at_level(logging.DEBUG):
        fields = assert_problem(guarded(broken).get("/v1/stats"), 500, "internal")

    assert "Mog" not in json.dumps(fields)
    assert "Mog" not in caplog.text
    assert "RuntimeError" in caplog.text
    assert fields["instance"].rsplit(":", 1)[-1] in caplog.text


def test_what_libraries_log_of_our_exceptions_has_a_place_and_no_words() -> None:
    formatter = DiscreetFormatter("%(message)s")
    try:
        int("the secret of Mog")
    except ValueError:
        record = logging.LogRecord("apscheduler", logging.ERROR, "", 0, "job failed", None, sys.exc_info())

    written = formatter.format(record)

    assert written.startswith("job failed\nValueError at ")
    assert "test_daemon.py" in written
    assert "Mog" not in written


def test_that_too_many_files_are_open_is_said_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    told = LoopErrors(0.2)
    full = {"message": "socket.accept() out of system resource", "exception": OSError(errno.EMFILE, "too many")}
    try:
        for _ in range(1_000):
            told(loop, full)
        told(loop, {"message": "something else", "exception": ValueError("x")})
        time.sleep(0.25)
        told(loop, full)
    finally:
        loop.close()

    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "socket.accept() out of system resource (and 0 times since it was last said)",
        "something else",
        "socket.accept() out of system resource (and 999 times since it was last said)",
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_log_that_cannot_be_written_is_said_once_and_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.FileHandler("/dev/full")
    handler.handleError = Unwritten()  # type: ignore[method-assign]  # as `process` does
    record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "words of a memory", (), None)
    for _ in range(100):
        handler.handle(record)
    with contextlib.suppress(OSError):
        handler.close()

    said = capsys.readouterr().err
    assert said == "scrubjay: the log cannot be written (No space left on device): a WARNING is lost\n"


def test_an_answer_that_fails_halfway_has_no_proper_end() -> None:
    sent: list[Message] = []

    async def lines() -> Any:
        yield b"{}\n"
        raise RuntimeError("disk gone")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def heard(message: Message) -> None:
            sent.append(message)
            await send(message)

        await StreamingResponse(lines())(scope, receive, heard)

    guarded(app).get("/v1/export")

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[-1]["more_body"] is True


@pytest.mark.parametrize("kind", [ConflictError, UnavailableError, InvalidError, ScrubjayError])
def test_our_own_errors_keep_their_code_and_their_words(kind: type[ScrubjayError]) -> None:
    async def refusing(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise kind("what", hint="how")

    fields = assert_problem(guarded(refusing).get("/v1/stats"), kind.status, kind.code)

    assert (fields["detail"], fields["hint"]) == ("what", "how")


# The process


def settings_of(home: Path, **environ: str) -> Settings:
    named = {"SCRUBJAY_HOME": str(home), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"}
    return options.load(environ=named | environ)


def begin(chosen: Settings) -> control.Started:
    """Start a daemon, with patience for machines that are busy with other tests."""
    return control.start(chosen, policy=DaemonPolicy(start_seconds=90.0))


def texts_of(client: Client, session: str) -> list[str]:
    """Return the texts of a session's events, page by page."""
    texts: list[str] = []
    cursor: str | None = None
    while True:
        page = client.call("GET", "/v1/events", query={"session_id": session, "limit": 500, "cursor": cursor})
        texts += [each["text"] for each in page["events"]]
        cursor = page["next"]
        if cursor is None:
            return texts


def connected(chosen: Settings) -> Client:
    client = discover(chosen.data_dir)
    assert client is not None
    return client


def kill(record: Running) -> None:
    process = psutil.Process(record.pid)
    os.kill(record.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            return
        time.sleep(0.01)
    raise AssertionError("the killed daemon lives on")


Homes = Callable[..., Settings]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Homes]:
    """Settings of fresh installations; what runs on them at the end is stopped."""
    made: list[Settings] = []

    def make(**environ: str) -> Settings:
        made.append(settings_of(tmp_path / f"h{len(made)}", **environ))
        return made[-1]

    yield make
    for chosen in made:
        control.stop(chosen)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A daemon that runs for all the tests that only ask it something."""
    chosen = settings_of(tmp_path_factory.mktemp("daemon"))
    begin(chosen)
    yield chosen
    control.stop(chosen)


def test_it_starts_serves_and_stops_and_leaves_nothing_behind(home: Homes) -> None:
    chosen = home()

    started = begin(chosen)
    running = control.status(chosen)
    stopped = control.stop(chosen)

    assert not started.already
    assert running.state == control.State.RUNNING
    assert running.answer is not None
    assert running.daemon == started.daemon
    assert running.answer["pid"] == started.daemon.pid
    assert (stopped.daemon, stopped.killed) == (started.daemon, False)
    assert control.status(chosen).state == control.State.STOPPED
    assert not (chosen.data_dir / "daemon.json").exists()
    assert chosen.socket is not None
    assert not chosen.socket.exists()


def test_a_stop_is_asked_for_and_not_only_signalled(home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows a signal ends the daemon at once, and its record and its socket would stay behind."""
    chosen = home()
    begin(chosen)
    monkeypatch.setattr(psutil.Process, "terminate", lambda _: pytest.fail("it was signalled"))

    stopped = control.stop(chosen)

    assert not stopped.killed
    assert control.status(chosen).state == control.State.STOPPED
    assert not chosen.hook_door_path.exists()
    assert bridge.stopped_by_hand(str(chosen.data_dir))


@pytest.mark.parametrize("who", ["agent", "hook", "nobody"])
def test_nobody_but_the_person_stops_the_daemon(daemon: Settings, who: str) -> None:
    tokens = {
        "agent": daemon.agent_token_path.read_text(),
        "hook": daemon.hook_door_path.read_text().splitlines()[0],
        "nobody": "x" * 43,
    }
    running = connected(daemon).running
    assert running is not None
    with (
        Client(token=tokens[who], address=(running.host, running.port)) as client,
        pytest.raises(DeniedError),
    ):
        client.call("POST", STOP_PATH, {})

    assert connected(daemon).running == running


def test_asked_for_the_state_that_holds_it_says_so(home: Homes) -> None:
    chosen = home()

    assert control.stop(chosen).daemon is None
    first = begin(chosen)
    second = begin(chosen)

    assert second.already
    assert second.daemon == first.daemon


def test_its_files_are_its_users_alone(daemon: Settings) -> None:
    assert daemon.socket is not None
    for path in (daemon.socket, daemon.token_path, daemon.data_dir / "daemon.json", daemon.store_path, daemon.log_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_both_doors_open_on_one_store(daemon: Settings) -> None:
    record = Running.of(daemon.data_dir)
    assert record is not None
    token = daemon.token_path.read_text().strip()

    with (
        Client(token=token, socket_path=daemon.socket) as inner,
        Client(token=token, address=(record.host, record.port)) as outer,
    ):
        inner.call("POST", "/v1/memories", {"content": "Seen through both doors", "name": "both"})
        seen = outer.call("GET", "/v1/memories/both")

    assert seen["memory"]["content"] == "Seen through both doors"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Authorization": "Bearer no"}]
)
def test_the_tcp_door_refuses_strangers_on_the_wire(daemon: Settings, headers: dict[str, str]) -> None:
    record = Running.of(daemon.data_dir)
    assert record is not None
    connection = http.client.HTTPConnection(record.host, record.port, timeout=10)
    known = {"Host": f"{record.host}:{record.port}", "Authorization": f"Bearer {daemon.token_path.read_text().strip()}"}

    connection.request("GET", "/v1/stats", headers=known | headers)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()

    assert answer.status in {401, 403}
    assert body["code"] in {"unauthenticated", "denied"}


def test_an_answer_over_tcp_does_not_wait_for_more_to_send() -> None:
    listening = _bound("127.0.0.1", 0)

    async def accepted() -> int:
        opened: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda _, writer: opened.set_result(writer), sock=listening)
        async with server:
            _, mine = await asyncio.open_connection(*listening.getsockname())
            theirs = await opened
            switch: int = theirs.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for writer in (mine, theirs):
                writer.close()
                await writer.wait_closed()
        return switch

    assert asyncio.run(accepted()) != 0


def test_the_unix_door_asks_for_the_token_too(daemon: Settings) -> None:
    with Client(token="wrong", socket_path=daemon.socket) as client, pytest.raises(ScrubjayError) as caught:
        client.call("GET", "/v1/stats")

    assert caught.value.code == "unauthenticated"


def test_a_body_over_the_limit_is_refused_and_the_connection_lives_on(daemon: Settings) -> None:
    with connected(daemon) as client:
        with pytest.raises(InvalidError, match="larger than"):
            client.call("POST", "/v1/events", bytes(DEFAULT.limits.max_body_bytes + 1))

        assert client.call("GET", "/v1/stats")


def test_a_body_without_a_length_is_cut_off_on_the_wire_too(daemon: Settings) -> None:
    record = Running.of(daemon.data_dir)
    assert record is not None
    connection = http.client.HTTPConnection(record.host, record.port, timeout=30)
    chunks = (bytes(1_000_000) for _ in range(DEFAULT.limits.max_body_bytes // 1_000_000 + 2))

    connection.request(
        "POST",
        "/v1/events",
        body=chunks,
        headers={"Authorization": f"Bearer {daemon.token_path.read_text().strip()}"},
        encode_chunked=True,
    )
    answer = connection.getresponse()
    connection.close()

    assert answer.status == 413


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100_000, b"GET " + b"a" * 100_000]
)
def test_what_is_not_http_does_not_disturb_it(daemon: Settings, junk: bytes) -> None:
    record = Running.of(daemon.data_dir)
    assert record is not None
    with (
        contextlib.suppress(OSError),
        socket.create_connection((record.host, record.port), timeout=10) as connection,
    ):
        connection.sendall(junk)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass

    assert control.status(daemon).state == control.State.RUNNING


def test_the_export_streams_through_the_client(daemon: Settings) -> None:
    with connected(daemon) as client:
        client.call("POST", "/v1/events", {"events": [event(number, session_id="exported") for number in range(50)]})
        lines = [json.loads(line) for line in client.lines("/v1/export")]

    assert len(lines) > 50


def test_at_rest_it_uses_no_processor_time(daemon: Settings) -> None:
    record = Running.of(daemon.data_dir)
    assert record is not None
    process = psutil.Process(record.pid)
    with connected(daemon) as client:
        client.call("POST", "/v1/settle", {"timeout_ms": 30_000})
    spent, wakeups = 0.0, 0
    for _ in range(8):  # what the tests before have left to do is done by itself, within some seconds
        before = process.cpu_times()
        wakeups_before = process.num_ctx_switches().voluntary

        time.sleep(2)

        after = process.cpu_times()
        spent = (after.user + after.system) - (before.user + before.system)
        wakeups = process.num_ctx_switches().voluntary - wakeups_before
        if spent <= 0.02 and wakeups <= 8:
            return
    raise AssertionError(f"never at rest: {spent} s of processor time and {wakeups} wake-ups in the last two seconds")


def test_memory_and_token_never_reach_the_log(home: Homes) -> None:
    chosen = home(SCRUBJAY_LOG_LEVEL="debug")
    begin(chosen)
    with connected(chosen) as client:
        client.call("POST", "/v1/memories", {"content": "Quokka paperclip", "name": "zebra-crossing"})
        client.call("POST", "/v1/recall", {"query": "Quokka paperclip"})
        client.call("GET", "/v1/memories/zebra-crossing")
        with pytest.raises(ScrubjayError):
            client.call("POST", "/v1/memories", {"content": "Quokka", "name": "zebra-crossing", "type": "quokka"})
    control.stop(chosen)

    written = "\n".join(control.logs(chosen, 10_000)).lower()

    assert "operation=recall status=200" in written
    for word in ("quokka", "paperclip", "zebra", chosen.token_path.read_text().strip().lower()):
        assert word not in written


def test_a_killed_daemon_is_replaced_and_has_lost_nothing(home: Homes) -> None:
    chosen = home()
    first = begin(chosen).daemon
    with connected(chosen) as client:
        client.call("POST", "/v1/events", {"events": [event(number) for number in range(20)]})
    kill(first)
    assert control.status(chosen).state == control.State.STALE
    assert discover(chosen.data_dir) is None
    assert chosen.socket is not None
    assert chosen.socket.exists()

    second = begin(chosen).daemon

    assert (second.pid, second.instance) != (first.pid, first.instance)
    with connected(chosen) as client:
        assert texts_of(client, "s1") == [f"note {number}" for number in range(20)]


@contextlib.contextmanager
def changing_hands(data_dir: Path, *records: bytes) -> Iterator[None]:
    """Write one record over the other without a pause, as when a daemon dies and another takes its place."""
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            for record in records:
                partial = data_dir / "record.partial"
                partial.write_bytes(record)
                partial.replace(data_dir / "daemon.json")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


@pytest.mark.slow
def test_a_dead_process_is_never_reported_as_the_one_that_serves(home: Homes) -> None:
    chosen = home()
    alive = begin(chosen).daemon
    dead = Running(**dataclasses.asdict(alive) | {"pid": 999_999, "instance": "dead"})

    with changing_hands(chosen.data_dir, dead.encoded(), alive.encoded()):
        serving = [control._serving(chosen) for _ in range(150)]
        healths = [control.status(chosen) for _ in range(50)]
    (chosen.data_dir / "daemon.json").write_bytes(alive.encoded())

    assert {alive} == {found for found in serving if found is not None}
    assert {alive} == {health.daemon for health in healths if health.state == control.State.RUNNING}


def test_a_reused_process_id_is_never_stopped(home: Homes) -> None:
    chosen = home()
    options.ensure_dirs(chosen)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        record = Running(
            pid=stranger.pid,
            create_time=psutil.Process(stranger.pid).create_time() - 60,
            host="127.0.0.1",
            port=9,
            socket=str(chosen.socket),
            version="0",
            instance="dead",
            started=0,
        )
        (chosen.data_dir / "daemon.json").write_bytes(record.encoded())
        (chosen.data_dir / "token").write_text(TOKEN)

        stopped = control.stop(chosen)
        seen = control.status(chosen).state
        started = begin(chosen)

        assert stopped.daemon is None
        assert stranger.poll() is None
        assert seen == control.State.STALE
        assert not started.already
    finally:
        stranger.kill()
        stranger.wait()


def test_a_taken_port_is_replaced_by_a_free_one_and_said(home: Homes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        chosen = home(SCRUBJAY_PORT=str(taken))

        record = begin(chosen).daemon

        assert record.port != taken
        assert any(str(taken) in warning and str(record.port) in warning for warning in record.warnings)
        answer = control.status(chosen).answer
        assert answer is not None
        assert set(record.warnings) <= set(answer["warnings"])


def test_an_address_that_is_not_this_machines_is_refused_with_what_to_set(home: Homes) -> None:
    elsewhere = dataclasses.replace(home(), host="192.0.2.1", port=7377)

    with pytest.raises(UnavailableError, match=r"cannot listen on 192\.0\.2\.1") as caught:
        _tcp_socket(elsewhere, [])

    assert "SCRUBJAY_HOST" in caught.value.hint


def test_a_socket_that_a_dead_process_left_is_taken_over_and_is_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    with _unix_socket(path), socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(path))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_where_the_socket_belongs_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"not a socket")

    with pytest.raises(ConflictError, match="cannot become the daemon's socket"):
        _unix_socket(path)

    assert path.read_bytes() == b"not a socket"


def test_the_socket_of_another_running_daemon_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with _unix_socket(path), pytest.raises(ConflictError, match="another running daemon"):
        _unix_socket(path)

    assert path.is_socket()


def test_a_token_is_made_once_and_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "token"

    made = _token(path)
    path.chmod(0o644)

    assert _token(path) == made == path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(made) >= 43


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40], ids=["empty", "short", "not text"])
def test_a_damaged_token_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)

    with pytest.raises(CorruptError):
        _token(path)

    assert path.read_bytes() == content


def test_a_store_that_is_not_ours_stops_the_start_and_is_left_alone(home: Homes) -> None:
    chosen = home()
    options.ensure_dirs(chosen)
    chosen.store_path.write_bytes(b"my holiday photos " * 100)

    with pytest.raises(ScrubjayError) as caught:
        begin(chosen)

    assert caught.value.code == "corrupt"
    assert caught.value.hint
    assert chosen.store_path.read_bytes() == b"my holiday photos " * 100


def test_a_daemon_that_does_not_serve_in_time_is_left_to_go_on(home: Homes) -> None:
    chosen = home()

    with pytest.raises(UnavailableError, match="has not begun to serve"):
        control.start(chosen, policy=DaemonPolicy(start_seconds=0.0))

    assert begin(chosen).daemon.socket == str(chosen.socket)


@pytest.mark.slow
def test_a_stop_also_ends_a_daemon_that_is_still_on_its_way_in(home: Homes) -> None:
    chosen = home()
    options.ensure_dirs(chosen)
    command = [sys.executable, "-P", "-m", "scrubjay.daemon", control.stop_mark(chosen.data_dir)]
    late = subprocess.Popen(
        command, env=control._environment(chosen, os.environ), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )

    stopped = control.stop(chosen)

    _, said = late.communicate(timeout=60)
    assert stopped.daemon is None
    assert late.returncode == UnavailableError.exit_code
    assert b"told to stop before it began to serve" in said
    assert not (chosen.data_dir / "daemon.json").exists()
    assert not begin(chosen).already


@pytest.mark.slow
def test_two_daemons_started_at_once_become_one(home: Homes) -> None:
    chosen = home()
    options.ensure_dirs(chosen)
    environ = control._environment(chosen, os.environ)
    command = [sys.executable, "-P", "-m", "scrubjay.daemon"]
    both = [
        subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    try:
        deadline = time.monotonic() + 30
        while all(each.poll() is None for each in both) and time.monotonic() < deadline:
            time.sleep(0.05)
        ended = [each for each in both if each.poll() is not None]

        assert len(ended) == 1
        assert ended[0].returncode == 0
        assert ended[0].stderr is not None
        assert "already running" in ended[0].stderr.read()
        record = begin(chosen).daemon
        assert record.pid == next(each for each in both if each.poll() is None).pid
    finally:
        for each in both:
            each.terminate()
            each.wait(20)
            assert each.stderr is not None
            each.stderr.close()


def test_sigterm_under_load_loses_nothing_acknowledged(home: Homes) -> None:
    chosen = home()
    begin(chosen)
    acknowledged: list[list[int]] = [[] for _ in range(4)]
    begun = threading.Barrier(5)

    def write(worker: int) -> None:
        client = connected(chosen)
        begun.wait()
        with client:
            for number in range(worker * 10_000, worker * 10_000 + 10_000):
                try:
                    client.call("POST", "/v1/events", {"events": [event(number)]})
                except UnavailableError:
                    return
                acknowledged[worker].append(number)

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(write, worker) for worker in range(4)]
        begun.wait()
        time.sleep(0.5)
        stopped = control.stop(chosen)
        for each in done:
            each.result()

    assert not stopped.killed
    assert any(acknowledged)
    begin(chosen)
    with connected(chosen) as client:
        stored = texts_of(client, "s1")
    assert {f"note {number}" for each in acknowledged for number in each} <= set(stored)
    assert len(stored) == len(set(stored))


@pytest.mark.slow
def test_sixteen_writers_with_readers_lose_nothing_and_double_nothing(home: Homes) -> None:
    chosen = home()
    begin(chosen)
    script = (
        "import sys, pathlib; from scrubjay.transports.client import discover\n"
        "client = discover(pathlib.Path(sys.argv[1])); base = int(sys.argv[2]) * 1000\n"
        "for n in range(base, base + 500):\n"
        "    e = dict(agent='t', session_id='many', type='user_message', text=f'note {n}', dedupe_key=f'k{n}')\n"
        "    answer = client.call('POST', '/v1/events', {'events': [e]}); assert answer['accepted'] == 1, answer\n"
        "    if n % 50 == 0: client.call('POST', '/v1/recall', {'query': f'note {n}'})\n"
    )

    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(chosen.data_dir), str(number)]) for number in range(16)
    ]
    codes = [writer.wait(300) for writer in writers]

    assert codes == [0] * 16
    with connected(chosen) as client:
        stored = texts_of(client, "many")
    assert sorted(stored) == sorted(f"note {base * 1000 + number}" for base in range(16) for number in range(500))


@pytest.mark.slow
def test_killed_again_and_again_under_load_it_keeps_every_acknowledged_write(home: Homes) -> None:
    chosen = home()
    rounds = int(os.environ.get("SCRUBJAY_TEST_KILLS", "8"))
    acknowledged: set[int] = set()
    number = 0
    for turn in range(rounds):
        record = begin(chosen).daemon
        killer = threading.Timer(0.05 + 0.37 * (turn % 7) / 7, os.kill, (record.pid, signal.SIGKILL))
        killer.start()
        with connected(chosen) as client, contextlib.suppress(UnavailableError):
            while True:
                batch = range(number, number + 1 + turn % 5)
                number = batch.stop
                client.call("POST", "/v1/events", {"events": [event(each) for each in batch]})
                acknowledged.update(batch)
        killer.join()

    last = begin(chosen).daemon
    with connected(chosen) as client:
        stored = texts_of(client, "s1")

    assert acknowledged
    assert {f"note {each}" for each in acknowledged} <= set(stored)
    assert len(stored) == len(set(stored))
    serving = [
        each.pid
        for each in psutil.process_iter()
        if each.status() != psutil.STATUS_ZOMBIE and _works_in(each, chosen.data_dir)
    ]
    assert serving == [last.pid]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd() == str(folder) and "scrubjay.daemon" in process.cmdline()
    except psutil.Error:
        return False


def test_a_daemon_reads_the_models_from_the_settings_file_unless_they_were_named_for_it_alone(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "e5-small-v2"\n', encoding="utf-8")
    home = {"SCRUBJAY_HOME": str(tmp_path)}
    named = home | {"SCRUBJAY_MODEL": "none"}

    by_file = control._environment(options.load({}, home), home)
    by_name = control._environment(options.load({}, named), named)

    assert options.load({}, by_file).model == "e5-small-v2"
    assert options.load({}, by_file).origins["model"] is Origin.FILE
    assert options.load({}, by_name).origins["model"] is Origin.ENVIRONMENT


@pytest.mark.parametrize("config", ["", "port = 0\n"])
def test_a_daemon_reads_the_writer_from_its_own_settings_file_and_from_no_other_homes(
    config: str, tmp_path: Path
) -> None:
    mine = tmp_path / "mine" / "config.toml"
    mine.parent.mkdir()
    if config:
        mine.write_text(config, encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.toml").write_text('writer = "claude"\n', encoding="utf-8")
    found = options.load({}, {"SCRUBJAY_HOME": str(mine.parent)})  # as --home does, which is in nobody's environment

    child = options.load({}, control._environment(found, {"SCRUBJAY_HOME": str(other)}))

    assert (child.writer, child.config_path, child.data_dir) == ("none", mine, found.data_dir)
    options.assign(mine, {"writer": "codex"})
    assert options.writer_reread(child).writer == "codex"
