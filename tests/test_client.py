"""The client against scripted strangers: every way a daemon can be absent, slow, broken, or somebody else."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrubjay.transports.client import JOINED_BYTES, Client, Running, discover, path_of
from scrubjay_shared.errors import (
    KINDS,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

TOKEN = "the-token"
OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"ok": 1 }'
Script = Callable[[socket.socket, int], None]


class Stranger:
    """A server that does what its script says with each connection, and remembers every byte it was sent."""

    def __init__(self, listening: socket.socket, script: Script) -> None:
        self.connections = 0
        self.closed = threading.Semaphore(0)
        self.heard: list[bytes] = []
        self._listening = listening
        self._script = script
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def hear(self, connection: socket.socket) -> bytes:
        """Read one request without a body."""
        received = b""
        while b"\r\n\r\n" not in received:
            part = connection.recv(65_536)
            if not part:
                break
            received += part
        self.heard.append(received)
        return received

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with connection, contextlib.suppress(OSError):
                self._script(connection, self.connections)
            self.closed.release()


@pytest.fixture
def strangers(tmp_path: Path) -> Iterator[Callable[[Script], tuple[Stranger, Client]]]:
    opened: list[Stranger | Client] = []

    def begin(script: Script) -> tuple[Stranger, Client]:
        path = tmp_path / f"s{len(opened)}"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen()
        stranger = Stranger(listening, script)
        client = Client(token=TOKEN, socket_path=path, timeout=5)
        opened.extend([client, stranger])
        return stranger, client

    yield begin
    for each in opened:
        each.close()


def answering(*answers: bytes) -> Script:
    """Answer request after request of a connection, then close it."""

    def script(connection: socket.socket, _: int) -> None:
        for answer in answers:
            if b"\r\n\r\n" not in connection.recv(65_536):
                return
            connection.sendall(answer)

    return script


def http(status: int, body: bytes, media_type: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_a_connection_is_kept_for_the_next_call(strangers: Any) -> None:
    stranger, client = strangers(answering(OK, OK, OK))

    answers = [client.call("GET", "/v1/stats") for _ in range(3)]

    assert answers == [{"ok": 1}] * 3
    assert stranger.connections == 1


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors have no such numbers there")
def test_a_kept_connection_is_used_in_a_process_of_many_open_files(strangers: Any) -> None:
    import resource  # noqa: PLC0415  # there is none on Windows

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4_096), before[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        _, client = strangers(answering(http(200, b'{"n": 1}'), http(200, b'{"n": 2}')))
        with client:
            assert [client.call("GET", "/v1/stats")["n"] for _ in range(2)] == [1, 2]
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_connection_that_the_daemon_closed_meanwhile_is_replaced_for_any_method(strangers: Any) -> None:
    stranger, client = strangers(answering(OK))

    for number in (1, 2, 3):
        assert client.call("POST", "/v1/memories", {"content": "x"}) == {"ok": 1}
        assert stranger.closed.acquire(timeout=5)  # a request right before that may or may not have been heard
        assert stranger.connections == number


@pytest.mark.parametrize(
    ("method", "path", "repeatable"),
    [
        ("GET", "/v1/stats", True),
        ("PUT", "/v1/identity/name", True),
        ("POST", "/v1/events", True),
        ("POST", "/v1/recall", True),
        ("POST", "/v1/memories", False),
        ("PATCH", "/v1/memories/x", False),
    ],
)
def test_what_dies_under_a_request_is_sent_again_only_if_twice_is_once(
    strangers: Any, method: str, path: str, *, repeatable: bool
) -> None:
    def second_request_dies(connection: socket.socket, _: int) -> None:
        stranger.hear(connection)
        connection.sendall(OK)
        stranger.hear(connection)  # and the daemon is killed before it answers

    stranger, client = strangers(second_request_dies)
    client.call("GET", "/v1/status")

    with contextlib.nullcontext() if repeatable else pytest.raises(UnavailableError):
        client.call(method, path)

    requests = [heard for heard in stranger.heard if heard.startswith(f"{method} {path} ".encode())]
    assert len(requests) == (2 if repeatable else 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"half":',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n',
        b"SSH-2.0-OpenSSH_9.6\r\n",
        http(200, b"<html>not ours</html>", "text/html"),
        http(200, b"[1]"),
        http(502, b"<html>bad gateway</html>", "text/html"),
        b"\x00" * 70_000,
    ],
    ids=["nothing", "half a head", "half a body", "half a chunk", "ssh", "html", "no object", "gateway", "zeros"],
)
def test_a_half_or_foreign_answer_is_unavailable(strangers: Any, answer: bytes) -> None:
    _, client = strangers(answering(answer))

    with pytest.raises(UnavailableError) as caught:
        client.call("GET", "/v1/stats")

    assert "scrubjay daemon start" in caught.value.hint


def test_silence_ends_at_the_timeout_and_the_next_call_opens_another_connection(strangers: Any) -> None:
    def silent_once(connection: socket.socket, number: int) -> None:
        stranger.hear(connection)
        if number == 1:
            connection.recv(1)  # until the client gives up
        else:
            connection.sendall(OK)

    stranger, client = strangers(silent_once)

    with pytest.raises(UnavailableError, match="in time"):
        client.call("GET", "/v1/stats", timeout=0.05)

    assert client.call("GET", "/v1/stats") == {"ok": 1}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_an_error_crosses_the_wire_as_itself(strangers: Any, kind: type[ScrubjayError]) -> None:
    body = json.dumps({"status": kind.status, "code": kind.code, "detail": "what", "hint": "how"}).encode()
    _, client = strangers(answering(http(kind.status, body, "application/problem+json")))

    with pytest.raises(ScrubjayError) as caught:
        client.call("GET", "/v1/stats")

    assert (kind, "what", "how") == (type(caught.value), caught.value.message, caught.value.hint)


def test_a_refusal_sent_before_the_body_was_read_is_still_heard(strangers: Any) -> None:
    refusal = http(413, b'{"code": "too_large", "detail": "too much", "hint": ""}', "application/problem+json")

    def refuse(connection: socket.socket, _: int) -> None:
        connection.recv(1_000)
        connection.sendall(refusal)

    _, client = strangers(refuse)

    with pytest.raises(InvalidError, match="too much"):
        client.call("POST", "/v1/import", b"x" * 8_000_000, {"name": "big"})


def test_the_request_carries_the_token_the_query_and_a_body_without_lone_surrogates(strangers: Any) -> None:
    def echo(connection: socket.socket, _: int) -> None:
        received = stranger.hear(connection)
        while not received.endswith(b"}"):
            received += connection.recv(65_536)
        stranger.heard.append(received)
        connection.sendall(OK)

    stranger, client = strangers(echo)

    client.call("POST", "/v1/x", {"text": "a\ud800b\U0001f600"}, {"keep": True, "none": None, "q": "ä b\udcff"})

    head, _, body = stranger.heard[-1].partition(b"\r\n\r\n")
    assert b"POST /v1/x?keep=true&q=%C3%A4+b%3F HTTP/1.1" in head
    assert b"Authorization: Bearer the-token" in head
    assert json.loads(body) == {"text": "a\ufffdb\U0001f600"}


@pytest.mark.parametrize(
    ("size", "at_once"), [(10, True), (JOINED_BYTES, True), (JOINED_BYTES + 1, False), (3_000_000, False)]
)
def test_a_short_body_comes_with_its_head_and_a_long_one_after_it(size: int, at_once: bool, strangers: Any) -> None:  # noqa: FBT001
    firsts: list[int] = []

    def echo(connection: socket.socket, _: int) -> None:
        for _ in range(2):  # what the first request kept must not go out with the second
            time.sleep(0.05)  # until all that is sent at once is there
            received = connection.recv(1_000_000)
            firsts.append(len(received.partition(b"\r\n\r\n")[2]))
            while len(received.partition(b"\r\n\r\n")[2]) < size:
                received += connection.recv(1_000_000)
            stranger.heard.append(received.partition(b"\r\n\r\n")[2])
            connection.sendall(OK)

    stranger, client = strangers(echo)

    for fill in (b"a", b"b"):
        client.call("POST", "/v1/import", fill * size)

    assert stranger.heard == [b"a" * size, b"b" * size]
    assert not at_once or firsts == [size, size]


@pytest.mark.parametrize("body", [{"n": float("nan")}, {"n": float("inf")}], ids=["nan", "infinity"])
def test_numbers_that_json_has_not_are_refused_before_anything_is_sent(strangers: Any, body: dict[str, Any]) -> None:
    stranger, client = strangers(answering(OK))

    with pytest.raises(InvalidError):
        client.call("POST", "/v1/recall", body)

    assert stranger.connections == 0


def test_endless_nesting_is_refused_before_anything_is_sent(strangers: Any) -> None:
    stranger, client = strangers(answering(OK))
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}

    with pytest.raises(InvalidError):
        client.call("POST", "/v1/recall", nested)

    assert stranger.connections == 0


@pytest.mark.parametrize(
    ("ref", "expected"),
    [("abc", "abc"), ("a/b", "a%2Fb"), ("ü?#%", "%C3%BC%3F%23%25"), ("..", "%2E%2E"), (".", "%2E"), ("v1.2", "v1.2")],
)
def test_a_name_in_a_path_stays_one_segment(ref: str, expected: str) -> None:
    assert f"/v1/memories/{expected}/why" == path_of("/v1/memories/{ref}/why", ref=ref)


def test_streamed_lines_arrive_whole(strangers: Any) -> None:
    chunks = (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n6\r\n1}\n{"b\r\n5\r\n":2}\n\r\n0\r\n\r\n'
    )
    _, client = strangers(answering(chunks))

    assert list(client.lines("/v1/export")) == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize(
    "tail", [b"", b'7\r\n{"half"\r\n', b'3\r\n{"h\r\n0\r\n\r\n'], ids=["between lines", "within a line", "no newline"]
)
def test_a_stream_that_is_cut_off_says_so_after_its_last_whole_line(strangers: Any, tail: bytes) -> None:
    head = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{"a":1}\n\r\n'
    _, client = strangers(answering(head + tail))
    lines = client.lines("/v1/export")

    assert next(lines) == b'{"a":1}'

    with pytest.raises(UnavailableError):
        next(lines)


def test_a_stream_that_is_refused_raises_the_refusal(strangers: Any) -> None:
    refusal = http(404, b'{"code": "not_found", "detail": "no", "hint": ""}', "application/problem+json")
    _, client = strangers(answering(refusal))

    with pytest.raises(NotFoundError):
        next(client.lines("/v1/export"))


def test_no_socket_is_unavailable_and_says_what_to_do(tmp_path: Path) -> None:
    client = Client(token=TOKEN, socket_path=tmp_path / "nothing")

    with pytest.raises(UnavailableError) as caught:
        client.call("GET", "/v1/stats")

    assert caught.value.hint == "scrubjay daemon start"


def write_record(data_dir: Path, **changes: Any) -> Running:
    fields: dict[str, Any] = {
        "pid": 1,
        "create_time": 1.5,
        "host": "127.0.0.1",
        "port": 9,
        "socket": None,
        "version": "0",
        "instance": "this-run",
        "started": 0,
    }
    record = Running(**(fields | changes))
    (data_dir / "daemon.json").write_bytes(record.encoded())
    (data_dir / "token").write_text(TOKEN + "\n")
    return record


def test_what_a_daemon_writes_about_itself_reads_back(tmp_path: Path) -> None:
    record = write_record(tmp_path, warnings=("port 7377 is taken",), socket="/x/y")

    assert record == Running.of(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"pid": "x"}', b"\xff\xfe", b"null"])
def test_a_damaged_record_is_no_daemon(tmp_path: Path, content: bytes) -> None:
    write_record(tmp_path)
    (tmp_path / "daemon.json").write_bytes(content)

    assert Running.of(tmp_path) is None
    assert discover(tmp_path) is None


def test_no_record_no_token_or_nobody_listening_is_no_daemon(tmp_path: Path) -> None:
    assert discover(tmp_path) is None

    write_record(tmp_path, socket=str(tmp_path / "gone"))
    assert discover(tmp_path) is None

    (tmp_path / "token").unlink()
    assert discover(tmp_path) is None


@pytest.mark.parametrize(
    "greeting",
    [
        http(200, b'{"ok": true, "pid": 1, "instance": "another-run"}'),
        http(200, b"[]"),
        http(404, b"not here", "text/plain"),
        b"220 mail ready\r\n",
        b"",
    ],
    ids=["another run", "no object", "another service", "another protocol", "hangs up"],
)
def test_a_stranger_on_our_port_is_no_daemon_and_never_sees_the_token(tmp_path: Path, greeting: bytes) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def script(connection: socket.socket, _: int) -> None:
        heard.append(connection.recv(65_536))
        connection.sendall(greeting)

    stranger = Stranger(listening, script)
    write_record(tmp_path, port=listening.getsockname()[1])
    try:
        assert discover(tmp_path) is None
    finally:
        stranger.close()

    assert heard
    assert TOKEN.encode() not in b"".join(heard)


def test_the_run_that_wrote_the_record_is_found(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    greeting = http(200, b'{"ok": true, "pid": 1, "version": "0", "instance": "this-run"}')
    stranger = Stranger(listening, answering(greeting))
    write_record(tmp_path, port=listening.getsockname()[1])
    try:
        client = discover(tmp_path)
    finally:
        stranger.close()

    assert isinstance(client, Client)


def test_importing_the_client_loads_nothing_but_the_standard_library_and_the_errors() -> None:
    script = (
        "import sys; before = set(sys.modules); import scrubjay.transports.client; "
        "print(*sorted({n.split('.')[0] for n in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["scrubjay", "scrubjay_shared"]
