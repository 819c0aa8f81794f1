"""A model that another process serves, asked over HTTP. Knows no file and no store."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from scrubjay.models.ports import Vectors, unit
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError, UnavailableError

REMOTE_SECONDS = 30.0  # a server that loads its model first takes some seconds
CONNECT_SECONDS = 5.0  # a server that is there accepts within milliseconds, across the world within one second
REMOTE_BATCH = 16  # texts in one request: bounds one answer to well under a megabyte
REMOTE_CHARS = 8_000  # about 2,000 tokens: the window of the usual served models
REMOTE_BYTES = 16_777_216  # 16 texts x 4,096 numbers x 24 characters, ten times over

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServerFailedError(UnavailableError):
    """An embeddings server answered that it failed (a status of 500 or more)."""


class Calls:
    """The connections on which servers are being asked, so that closing need not wait for one that does not answer."""

    def __init__(self) -> None:
        self._open: set[http.client.HTTPConnection] = set()
        self._guard = threading.Lock()
        self._cut = False

    @contextmanager
    def during(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """Let `cut` end what is asked on this connection. Closes it afterwards."""
        with self._guard:
            if self._cut:
                raise UnavailableError("the store is closed", hint="open it again")
            self._open.add(connection)
        try:
            yield
        finally:
            with self._guard:
                self._open.discard(connection)
            connection.close()

    def cut(self) -> None:
        """End what is being asked, now and from now on."""
        with self._guard:
            self._cut = True
            for connection in self._open:
                if connection.sock is not None:
                    with suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An embeddings server. `api` is `ollama` or `openai`; `key` is sent as a bearer token and never shown."""

    url: str
    api: str
    key: str = ""

    def __repr__(self) -> str:
        """Name the server, not the key."""
        return f"Endpoint(url={self.url!r}, api={self.api!r})"


UNRELATED = (
    "The meeting was moved to Thursday afternoon.",
    "She bought a second-hand bicycle for the commute.",
    "Our cat hides under the sofa when it thunders.",
    "The database migration failed because of a missing index.",
    "He is learning to bake sourdough bread.",
    "They hiked along the coast in the rain.",
    "The invoice for the new laptop is still unpaid.",
    "My grandmother grew up on a farm near the border.",
    "The concert tickets were sold out within minutes.",
    "I prefer tabs over spaces in every project.",
    "The kids planted tomatoes and beans in the garden.",
    "A new manager joins the sales team next month.",
    "The train was delayed because of a broken signal.",
    "We painted the bedroom light blue.",
    "The backup job runs every night at two.",
    "He broke his ankle playing football.",
)
"""Sentences that have nothing to do with each other."""

QUESTIONS_CLOSER = 1.35
"""By how many deviations questions lie closer to talk than these sentences to each other (1.4 in bge, 1.35 in e5)."""

MIN_SPREAD = 0.01  # a server whose vectors are all alike: its cosines mean nothing, and must not count for much


def _spread(probes: Vectors) -> tuple[float, float]:
    """Return the spread of a space from the vectors of `UNRELATED`: their deviation is that of questions and turns."""
    cosines = (probes @ probes.T)[np.triu_indices(len(probes), 1)].astype(np.float64)
    deviation = max(float(cosines.std()), MIN_SPREAD)
    return float(cosines.mean()) + QUESTIONS_CLOSER * deviation, deviation


class HttpEmbedder:
    """A model that another process serves: Ollama, or whatever speaks the OpenAI embeddings call.

    The server's address is part of the space: two servers may run different files under one name. Which host is asked
    was chosen by the user; nothing else is ever contacted, and redirects are not followed.
    """

    def __init__(
        self, endpoint: Endpoint, model: str, *, timeout_s: float = REMOTE_SECONDS, calls: Calls | None = None
    ) -> None:
        """Ask the server for a few vectors, to learn their dimension and spread. Raises as `embed` does."""
        address = urlsplit(endpoint.url)
        if address.scheme not in {"http", "https"} or not address.hostname or "@" in address.netloc:
            # The address itself is not shown: it may hold a password.
            raise InvalidError(
                "embed_url is not the web address of a server", hint="write http://… or https://…, without a password"
            )
        if address.scheme == "http" and address.hostname not in LOOPBACK:
            raise InvalidError(
                f"{address.hostname} is another machine, and http:// would send your memories to it unencrypted",
                hint="set embed_url to an https:// address",
            )
        if endpoint.api not in {"ollama", "openai"}:
            raise InvalidError(
                f"embed_api must be ollama or openai, got {endpoint.api!r}",
                hint="set embed_api in config.toml (SCRUBJAY_EMBED_API)",
            )
        self._endpoint = endpoint
        self._address = address
        self._model = model
        self._timeout_s = timeout_s
        self._calls = Calls() if calls is None else calls
        self._closed = False
        self.dimension = 0
        self.space = f"http:{model}@{address.netloc}"
        probes = self._request(UNRELATED)
        self.dimension = probes.shape[1]
        self.spread = _spread(probes)
        self.space = f"{self.space}/{self.dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length.

        Raises UnavailableError when the server does not answer or answers nonsense, DeniedError when it refuses the
        key, NotFoundError when it has no such model, InvalidError when it refuses the request.
        """
        parts = [self._request(texts[i : i + REMOTE_BATCH]) for i in range(0, len(texts), REMOTE_BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return float32 [d], of unit length; a prefix, if the model wants one, is the server's matter."""
        row: Vectors = self.embed([text])[0]
        return row

    def close(self) -> None:
        """Refuse further calls; no connection is kept between them."""
        self._closed = True

    def _request(self, texts: Sequence[str]) -> Vectors:
        if self._closed:
            raise UnavailableError("the model is closed")
        # Servers refuse an empty text; a lone surrogate is not JSON that they read.
        inputs = [text[:REMOTE_CHARS].encode("utf-8", "replace").decode() or " " for text in texts]
        host, ollama = self._address.netloc, self._endpoint.api == "ollama"
        body: dict[str, object] = {"model": self._model, "input": inputs}
        body |= {"truncate": True} if ollama else {"encoding_format": "float"}
        answer = self._post("/api/embed" if ollama else "/embeddings", json.dumps(body).encode())
        try:
            if ollama:
                rows = answer["embeddings"]
            else:
                rows = [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]
            vectors = np.array(rows, np.float32)
        except (KeyError, TypeError, ValueError) as e:
            raise UnavailableError(
                f"{self._address.netloc} answered without embeddings", hint="check embed_url and embed_api"
            ) from e
        if vectors.ndim != 2 or len(vectors) != len(texts) or (self.dimension and vectors.shape[1] != self.dimension):
            raise UnavailableError(
                f"{host} answered {len(texts)} texts with an array of shape {vectors.shape}",
                hint="check model and embed_api",
            )
        return unit(vectors, self.space)

    def _post(self, path: str, body: bytes) -> Any:
        host = self._address.netloc
        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        try:
            connection = kind(self._address.hostname or "", self._address.port, timeout=CONNECT_SECONDS)
            with self._calls.during(connection):
                connection.connect()
                connection.sock.settimeout(self._timeout_s)
                connection.request("POST", self._address.path.rstrip("/") + path, body, headers)
                response = connection.getresponse()
                content = response.read(REMOTE_BYTES + 1)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise UnavailableError(
                f"{host} did not answer ({type(e).__name__})", hint="start the embeddings server, or check embed_url"
            ) from None  # the cause may quote the header with the key
        # The answer's text is not shown: servers quote the request in it.
        match response.status:
            case 200 if len(content) <= REMOTE_BYTES:
                pass
            case 401 | 403:
                raise DeniedError(f"{host} refused the key", hint="embed_key_env names the variable that holds it")
            case 404:
                raise NotFoundError(
                    f"{host} has no model {self._model}", hint="install the model on that server, or check embed_url"
                )
            case 400 | 413 | 422:
                raise InvalidError(f"{host} refused the request ({response.status})", hint="check model and embed_api")
            case status if status >= 500:
                raise ServerFailedError(f"{host} failed ({status})", hint="see the embeddings server's own log")
            case status:
                raise UnavailableError(f"{host} answered {status}", hint="see the embeddings server's own log")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as e:
            raise UnavailableError(f"{host} answered with something that is not JSON", hint="check embed_url") from e
