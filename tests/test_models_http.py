"""A model that another process serves."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from scrubjay.models import http, loading, ports
from scrubjay_shared.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from scrubjay.service.application import Application

    Opener = Callable[..., AbstractAsyncContextManager[Application]]

pytestmark = pytest.mark.anyio


class Server(BaseHTTPRequestHandler):
    """Speaks Ollama's and OpenAI's calls; what it should get wrong stands in the server's `fault`."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        shared: Any = self.server
        shared.seen.append((self.path, self.headers["Authorization"], request))
        fault = shared.fault
        rows = [self.vector(text) for text in request["input"]]
        if fault == "nan":
            rows[0][0] = float("nan")
        elif fault == "zero":
            rows[0] = [0.0] * 3
        elif fault == "dimension":
            rows = [[*row, 1.0] for row in rows]
        elif fault == "ragged":
            rows[0] = [1.0]
        elif fault == "count":
            rows = rows[1:]
        if self.path == "/api/embed":
            answer: Any = {"embeddings": rows}
        elif self.path == "/v1/embeddings":
            items = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
            answer = {"data": items[::-1]}  # the order is the index's, not the list's
        else:
            answer, fault = {}, 404
        body = b"<html>" if fault == "html" else json.dumps([] if fault == "shape" else answer).encode()
        self.send_response(fault if isinstance(fault, int) else 200)
        if fault == 302:
            self.send_header("Location", "/api/embed")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def vector(text: str) -> list[float]:
        return [float(len(text)), 2.0, 1.0]

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    running.seen, running.fault = [], None
    running.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def remote(server: Any, api: str = "ollama", key: str = "") -> ports.Embedder:
    url = server.url + ("/v1" if api == "openai" else "")
    return loading.load(Path("unused"), "http:nomic", endpoint=http.Endpoint(url=url, api=api, key=key))


@pytest.mark.parametrize("api", ["ollama", "openai"])
def test_a_server_embeds_in_batches_and_keeps_the_order(server: Any, api: str) -> None:
    texts = ["x" * n for n in range(40)]

    embedder = remote(server, api)
    rows = embedder.embed(texts)

    assert embedder.dimension == 3
    assert embedder.space == f"http:nomic@127.0.0.1:{server.server_port}/3"
    expected = http.unit(np.array([Server.vector(text or " ") for text in texts], np.float32), "")
    np.testing.assert_allclose(expected, rows)
    assert max(len(request["input"]) for _, _, request in server.seen) <= http.REMOTE_BATCH
    assert {"nomic"} == {request["model"] for _, _, request in server.seen}
    assert embedder.embed([]).shape == (0, 3)


def test_the_key_is_sent_and_never_shown(server: Any) -> None:
    endpoint = http.Endpoint(url=server.url, api="ollama", key="k-123")
    embedder = http.HttpEmbedder(endpoint, "nomic")
    server.fault = 401

    with pytest.raises(DeniedError) as caught:
        embedder.embed(["text"])

    assert {"Bearer k-123"} == {authorization for _, authorization, _ in server.seen}
    assert "k-123" not in repr(endpoint) + str(caught.value) + caught.value.hint


def test_a_key_that_is_no_header_is_an_error_that_does_not_quote_it(server: Any) -> None:
    with pytest.raises(UnavailableError) as caught:
        remote(server, key="k-123\r\nX: y")

    assert "k-123" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("nan", CorruptError),
        ("zero", CorruptError),
        ("dimension", UnavailableError),
        ("ragged", UnavailableError),
        ("count", UnavailableError),
        ("html", UnavailableError),
        ("shape", UnavailableError),
        (302, UnavailableError),
        (400, InvalidError),
        (403, DeniedError),
        (404, NotFoundError),
        (429, UnavailableError),
        (500, UnavailableError),
    ],
)
def test_a_server_that_fails_or_answers_nonsense_gives_an_error_and_no_vector(
    server: Any, fault: object, kind: type[ScrubjayError]
) -> None:
    embedder = remote(server)
    server.fault = fault

    with pytest.raises(kind) as caught:
        embedder.embed(["a secret text", "another"])

    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_unavailable(server: Any) -> None:
    embedder = remote(server)
    server.shutdown()
    server.server_close()

    with pytest.raises(UnavailableError, match="did not answer"):
        embedder.embed(["text"])


def test_a_closed_server_connection_says_so(server: Any) -> None:
    embedder = remote(server)
    embedder.close()

    with pytest.raises(UnavailableError, match="closed"):
        embedder.embed(["text"])


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("http://example.org", "ollama"),
        ("ftp://127.0.0.1", "ollama"),
        ("http://", "ollama"),
        ("http://me:pw@127.0.0.1", "ollama"),
        ("http://127.0.0.1", "x"),
    ],
)
def test_memories_are_sent_to_this_machine_or_encrypted_and_nowhere_else(url: str, api: str) -> None:
    with pytest.raises(InvalidError) as caught:
        http.HttpEmbedder(http.Endpoint(url=url, api=api), "m")

    assert "pw" not in str(caught.value)


def test_a_remote_model_needs_a_server() -> None:
    with pytest.raises(InvalidError, match="address"):
        loading.load(Path("unused"), "http:nomic")
