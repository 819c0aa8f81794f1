"""Talks to the running daemon. Standard library only and cheap to import: agents' hooks and the CLI start through it.

The daemon says where it is in `daemon.json` of the data directory and lets in whoever can read `token` beside it.
A client is one keep-alive connection behind a lock: any thread may call it, one call at a time.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import selectors
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from scrubjay.transports.one_request import (
    HANDSHAKE_SECONDS,
    RECORD_NAME,
    TIMEOUT_SECONDS,
    TOKEN_NAME,
    VERSION_HEADER,
)
from scrubjay.version import __version__
from scrubjay_shared.errors import (
    DeniedError,
    InvalidError,
    ScrubjayError,
    UnavailableError,
    from_code,
)

STOP_NAME = "stopped"
STOP_PATH = "/v1/daemon/stop"
"""The request by which the person has the daemon end; between its commands and it alone."""

START_HINT = "scrubjay daemon start"
LATE = "the daemon did not answer in time"
LATE_HINT = "scrubjay daemon status says how it is; scrubjay daemon restart ends it and starts another"
NO_ANSWER = "the daemon closed the connection without an answer"
AGENT_TOKEN_NAME = "agent_token"  # noqa: S105  # a file's name: who sends it is an agent, not the person

AGENT_HEADER = "Scrubjay-Agent"
PROJECT_HEADER = "Scrubjay-Project"
SESSION_HEADER = "Scrubjay-Session"
"""The headers in which an agent's connection says who it is and what it is bound to, percent-encoded UTF-8 each.

They are read beside the agent's token alone: the person's sees everything.
"""

ACCOUNT_HEADER = "Scrubjay-Account"
"""The header in which the person says whose store is meant, where a home has several accounts. It is not read of an
agent, whose project says it."""

JOINED_BYTES = 65_536
"""A longer body is sent by itself, after the head: to copy it takes longer than a system call."""

READ_BYTES = 65_536
"""How much of a streamed answer is taken at once: a pipe's worth."""

_REPEATABLE_METHODS = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_REPEATABLE_POSTS = frozenset({"/v1/events", "/v1/recall"})  # ingest is idempotent by dedupe key; recall only reads
_PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What a daemon writes about itself once it listens. `instance` is a nonce of this run; `started` is UTC ms.

    `create_time` is the process's start as the system tells it (seconds): with `pid` it names one process, ever.
    `socket` is None where there are no Unix sockets. `port` may differ from the configured one when that was taken.
    """

    pid: int
    create_time: float
    host: str
    port: int
    socket: str | None
    version: str
    instance: str
    started: int
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, data_dir: Path) -> Running | None:
        """Return what the last daemon on this directory wrote, or None. It may be long dead; damage is absence."""
        try:
            fields = json.loads((data_dir / RECORD_NAME).read_bytes())
            return cls(
                pid=int(fields["pid"]),
                create_time=float(fields["create_time"]),
                host=str(fields["host"]),
                port=int(fields["port"]),
                socket=None if fields["socket"] is None else str(fields["socket"]),
                version=str(fields["version"]),
                instance=str(fields["instance"]),
                started=int(fields["started"]),
                warnings=tuple(str(warning) for warning in fields["warnings"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def encoded(self) -> bytes:
        """Return the bytes that `of` reads."""
        return json.dumps(asdict(self)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent as the caller of a daemon: its name, and the project and session that it is bound to."""

    name: str | None = None
    project: str | None = None
    session_id: str | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers that tell the daemon."""
        given = {AGENT_HEADER: self.name, PROJECT_HEADER: self.project, SESSION_HEADER: self.session_id}
        return {key: quote(value, safe="/", errors="replace") for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What goes over the wire. `repeatable`: sent twice, it does what it does once."""

    method: str
    target: str
    payload: bytes | None
    headers: dict[str, str]
    repeatable: bool


class _TcpConnection(http.client.HTTPConnection):
    """HTTP over TCP. A short body is sent with its head: one system call, and the daemon has all of it at once."""

    _body = b""

    def endheaders(self, message_body: Any = None, *, encode_chunked: bool = False) -> None:
        if isinstance(message_body, bytes) and len(message_body) <= JOINED_BYTES:
            self._body, message_body = message_body, None
        super().endheaders(message_body, encode_chunked=encode_chunked)

    def send(self, data: Any) -> None:
        if self._body:
            body, self._body = self._body, b""
            data += body
        super().send(data)


class _UnixConnection(_TcpConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self.timeout)
            connection.connect(self._path)
        except BaseException:
            connection.close()
            raise
        self.sock = connection


class Client:
    """A connection to one daemon: through `socket_path` where the platform has Unix sockets, else `address`.

    Errors the daemon answers with come back as themselves (`scrubjay_shared.errors`). One that cannot be reached,
    does not answer in time, or stops in the middle of an answer is an UnavailableError.
    `running` is what the daemon wrote about itself, where the client was found by that (`discover`).
    """

    def __init__(
        self,
        *,
        token: str,
        socket_path: str | os.PathLike[str] | None = None,
        address: tuple[str, int] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        running: Running | None = None,
        agent: Agent | None = None,
        account: str | None = None,
    ) -> None:
        self.running = running
        self._caller_headers = {} if agent is None else agent.headers()
        if account is not None:
            self._caller_headers[ACCOUNT_HEADER] = account
        self._socket_path = os.fspath(socket_path) if socket_path and hasattr(socket, "AF_UNIX") else None
        if self._socket_path is None and address is None:
            raise InvalidError("a client needs a Unix socket or a TCP address", hint=START_HINT)
        self._address = address
        self._token = token
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Send one request and return the answer's JSON object.

        `path` is already quoted (see `path_of`). A mapping goes out as JSON, bytes as they are; `query` leaves out
        values that are None. `timeout` is in seconds and bounds each read and write, not their sum. A request that
        met a connection the daemon had meanwhile closed is sent once more if doing it twice is doing it once.
        """
        request = self._request(method, path, body, query)
        with self._lock:
            response = self._sent(request, timeout or self._timeout)
            content = self._read(response)
        return _answer(response, content)

    def lines(self, path: str, query: Mapping[str, Any] | None = None, timeout: float | None = None) -> Iterator[bytes]:
        """Yield the lines of a streamed answer (NDJSON) as they come, without their newline.

        It has a connection of its own. An answer that stops early raises UnavailableError after its last whole line.
        """
        request = self._request("GET", path, None, query)
        connection = self._opened(timeout or self._timeout)
        try:
            response = _exchange(connection, request)
            if response.status != http.client.OK:
                _answer(response, self._read(response))
            rest = b""
            while part := _read_part(response):
                *whole, rest = (rest + part).split(b"\n")
                yield from whole
            if rest:
                raise UnavailableError("the daemon stopped in the middle of a line", hint=START_HINT)
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connection. The client stays usable: the next call opens another."""
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | bytes | None, query: Mapping[str, Any] | None
    ) -> _Request:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": f"application/json, {_PROBLEM}",
            VERSION_HEADER: __version__,
            **self._caller_headers,
        }
        payload: bytes | None = None
        if isinstance(body, bytes):
            payload, headers["Content-Type"] = body, "application/octet-stream"
        elif body is not None:
            payload, headers["Content-Type"] = _encoded(body), "application/json"
        given = {name: _plain(value) for name, value in (query or {}).items() if value is not None}
        return _Request(
            method=method,
            target=f"{path}?{urlencode(given, errors='replace')}" if given else path,
            payload=payload,
            headers=headers,
            repeatable=method in _REPEATABLE_METHODS or path in _REPEATABLE_POSTS,
        )

    def _sent(self, request: _Request, timeout: float) -> http.client.HTTPResponse:
        reused = self._usable(timeout)
        if reused is not None:
            try:
                return _exchange(reused, request)
            except UnavailableError as error:
                self._drop()
                gone = isinstance(error.__cause__, ConnectionError | http.client.BadStatusLine)
                if not (gone and request.repeatable):
                    raise
        self._connection = self._opened(timeout)
        try:
            return _exchange(self._connection, request)
        except BaseException:
            self._drop()
            raise

    def _usable(self, timeout: float) -> http.client.HTTPConnection | None:
        """Return the kept connection unless the daemon has closed it: then it has something to read, its end."""
        connection = self._connection
        if connection is None or connection.sock is None:
            return None
        if _is_readable(connection.sock):
            self._drop()
            return None
        connection.sock.settimeout(timeout)
        return connection

    def _opened(self, timeout: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._socket_path is not None:
            where = self._socket_path
            connection = _UnixConnection(where, timeout)
        elif self._address is not None:
            where = f"{self._address[0]}:{self._address[1]}"
            connection = _TcpConnection(*self._address, timeout=timeout)
        try:
            connection.connect()
        except PermissionError as error:
            raise DeniedError(
                f"{where} belongs to somebody else", hint="run the command as the user who started the daemon"
            ) from error
        except OSError as error:
            raise UnavailableError(f"no daemon answers at {where}", hint=START_HINT) from error
        return connection

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise UnavailableError("the daemon stopped in the middle of an answer", hint=START_HINT) from error
        if response.will_close:
            self._drop()
        return content

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def discover(data_dir: Path, *, agent: Agent | None = None, account: str | None = None) -> Client | None:
    """Return a client of the daemon that runs on `data_dir`, or None when none does. Its `running` is that daemon.

    With `agent` it calls as that agent, else as the person; with `account` about the store of that account.

    The one that answers must be the one that wrote `daemon.json`, by its nonce: another process on the same port is
    never sent the token's bearer. Raises UnavailableError when it is there but does not answer in time.
    """
    record = Running.of(data_dir)
    while record is not None:
        if greeting(record) is not None:
            return _client_of(record, data_dir, agent, account)
        later = Running.of(data_dir)
        # While the dead one was asked, a successor may have written its own.
        record = None if later == record else later
    return None


def _client_of(record: Running, data_dir: Path, agent: Agent | None, account: str | None) -> Client | None:
    try:
        token = (data_dir / (TOKEN_NAME if agent is None else AGENT_TOKEN_NAME)).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    address = (record.host, record.port)
    return Client(token=token, socket_path=record.socket, address=address, running=record, agent=agent, account=account)


def greeting(record: Running) -> dict[str, Any] | None:
    """Return what /healthz of this very run says, or None when that run is over. Sends no token.

    Raises UnavailableError when something accepts the connection and then stays silent.
    """
    stranger = Client(
        token="", socket_path=record.socket, address=(record.host, record.port), timeout=HANDSHAKE_SECONDS
    )
    try:
        with stranger:
            answer = stranger.call("GET", "/healthz")
    except UnavailableError as error:
        if isinstance(error.__cause__, TimeoutError):
            raise
        return None
    except ScrubjayError:
        return None
    return answer if (answer.get("instance"), answer.get("pid")) == (record.instance, record.pid) else None


def skew(daemon: str, own: str = __version__) -> tuple[str, str] | None:
    """Return what to say of a daemon of another version than `own`, and what to do; None when they are the same.

    >>> skew("0.9.0", own="0.10.0")
    ('the running daemon is scrubjay 0.9.0, this one is 0.10.0', 'scrubjay daemon restart starts the newer one')
    """
    if daemon == own:
        return None
    words = f"the running daemon is scrubjay {daemon}, this one is {own}"
    if _order(daemon) > _order(own):
        return words, "this one is the older: upgrade it"
    return words, "scrubjay daemon restart starts the newer one"


def require_same_version(running: Running) -> None:
    """Raise UnavailableError for a daemon of another version: it may not know of accounts, and would take main's."""
    apart = skew(running.version)
    if apart is not None:
        raise UnavailableError(f"{apart[0]}, and an account is named", hint=apart[1])


def _order(version: str) -> tuple[int, ...]:
    """Return what tells which of two versions is the newer: the release's numbers, one in the making before it.

    >>> _order("0.1.0") < _order("0.2.0.dev0") < _order("0.2.0") < _order("0.10.0")
    True
    """
    release = re.match(r"\d{1,9}(?:\.\d{1,9})*", version)
    numbers = tuple(int(number) for number in release[0].split(".")) if release else ()
    return (*numbers, int(release is not None and release[0] == version))


def path_of(template: str, **fields: str) -> str:
    """Return a route with its fields filled in, quoted: `path_of("/v1/memories/{ref}", ref="a/b")`.

    A field that is only dots is escaped too, or a proxy would walk up the path with it.
    """
    quoted = {name: quote(value, safe="", errors="replace") for name, value in fields.items()}
    return template.format_map(
        {name: value.replace(".", "%2E") if set(value) == {"."} else value for name, value in quoted.items()}
    )


def _is_readable(connection: socket.socket) -> bool:
    """Say whether something waits to be read. (`select` itself fails at descriptors of 1,024 and more.)."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(0))


def _exchange(connection: http.client.HTTPConnection, request: _Request) -> http.client.HTTPResponse:
    try:
        # A refusal is sent before the body has been read: what breaks while sending may have its reason waiting.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(request.method, request.target, body=request.payload, headers=request.headers)
        return connection.getresponse()
    except TimeoutError as error:
        raise UnavailableError(LATE, hint=LATE_HINT) from error
    except (http.client.InvalidURL, UnicodeError) as error:
        raise InvalidError(
            "the path holds characters that an address cannot have", hint="percent-encode them (path_of does)"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(NO_ANSWER, hint=START_HINT) from error


def _read_part(response: http.client.HTTPResponse) -> bytes:
    """Return what has come, b"" only at the proper end. (`readline` takes a cut connection for an end.)."""
    try:
        return response.read1(READ_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError("the daemon stopped in the middle of an answer", hint=START_HINT) from error


def _answer(response: http.client.HTTPResponse, content: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(content)
    except ValueError as error:
        raise UnavailableError(
            f"the answer (HTTP {response.status}) is not JSON, so it is not the daemon's", hint=START_HINT
        ) from error
    if not isinstance(fields, dict):
        raise UnavailableError("the answer is not a JSON object, so it is not the daemon's", hint=START_HINT)
    if response.status < http.client.BAD_REQUEST:
        return fields
    raise from_code(
        str(fields.get("code", "internal")),
        str(fields.get("detail", f"HTTP {response.status}")),
        str(fields.get("hint", "")),
    )


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Return JSON as UTF-8. A lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except RecursionError as error:
        raise InvalidError("the request is nested too deeply", hint="send less deeply nested metadata") from error
    except ValueError as error:
        raise InvalidError("NaN and infinity are not numbers in JSON", hint="send null or a finite number") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
