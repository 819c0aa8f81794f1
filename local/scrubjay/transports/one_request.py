"""One request to the running daemon, with the least that it takes: for a process that asks one thing and ends.

`http.client` alone takes three times as long to import as the interpreter takes to start, and so this speaks HTTP/1.1
over a socket itself: only with the daemon that `daemon.json` names, of this very version, and only where it can be
reached at once. In any other case it returns None, and the caller takes the way of `client`, which waits, explains and
repeats.
"""

from __future__ import annotations

import json
import socket

from scrubjay.version import __version__

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost half as much as the interpreter
if TYPE_CHECKING:
    from typing import Any, BinaryIO

RECORD_NAME = "daemon.json"
TOKEN_NAME = "token"  # noqa: S105  # a file's name
VERSION_HEADER = "Scrubjay-Version"
"""The header in which a client says of which version it is: a daemon that does not know a field can then say why."""

TIMEOUT_SECONDS = 30.0
"""How long one read or write may take when the caller does not say: above any operation but `settle` and imports."""

HANDSHAKE_SECONDS = 5.0
"""How long /healthz may take: it answers from memory, in about a millisecond."""


class LostError(Exception):
    """The daemon got the request, or a part of it, and no whole answer came. `timed_out` says whether it was slow."""

    def __init__(self, *, timed_out: bool) -> None:
        super().__init__()
        self.timed_out = timed_out


def post(data_dir: str, target: str, fields: dict[str, Any]) -> tuple[int, bytes] | None:
    """Send one POST with a JSON object to the daemon of a data folder. Returns the status and the body of its answer.

    None where no daemon of this version runs there and answers; then nothing was sent to it. Raises LostError when the
    answer does not come, or breaks off.
    """
    try:
        with open(f"{data_dir}/{RECORD_NAME}", "rb") as file:  # noqa: PTH123  # pathlib takes as long as half of the interpreter
            record = json.loads(file.read())
        with open(f"{data_dir}/{TOKEN_NAME}", encoding="ascii") as file:  # noqa: PTH123  # as above
            token = file.read().strip()
        if record["version"] != __version__:
            return None
        connection = connected(record)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with connection, connection.makefile("rb") as stream:
        try:
            # Whoever answers must be the one that wrote `daemon.json`, or it is not told the token.
            if not greeted(connection, stream, record):
                return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        try:
            connection.settimeout(TIMEOUT_SECONDS)
            payload = json.dumps(fields, ensure_ascii=False).encode()
            headers = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            connection.sendall(sent(f"POST {target}", record, headers, payload))
            return answer(stream)
        except (OSError, ValueError) as error:
            raise LostError(timed_out=isinstance(error, TimeoutError)) from error


def greeted(connection: socket.socket, stream: BinaryIO, record: dict[str, Any]) -> bool:
    """Say whether the daemon that wrote a record is at the other end.

    Raises OSError, ValueError, KeyError or TypeError where what answers is no daemon.
    """
    connection.sendall(sent("GET /healthz", record))
    status, greeting = answer(stream)
    found = json.loads(greeting)
    return status == 200 and (found["instance"], found["pid"]) == (record["instance"], record["pid"])


def connected(record: dict[str, Any]) -> socket.socket:
    """Connect to the daemon that `daemon.json` names. Raises OSError."""
    if record["socket"] is None:
        return socket.create_connection((record["host"], record["port"]), HANDSHAKE_SECONDS)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(HANDSHAKE_SECONDS)
        connection.connect(record["socket"])
    except BaseException:
        connection.close()
        raise
    return connection


def sent(request: str, record: dict[str, Any], headers: str = "", payload: bytes = b"") -> bytes:
    """Return the bytes of a request; `headers` end with a line break each."""
    host = record["host"] if ":" not in record["host"] else f"[{record['host']}]"
    head = (
        f"{request} HTTP/1.1\r\nHost: {host}:{record['port']}\r\nAccept: application/json, application/problem+json\r\n"
        f"{VERSION_HEADER}: {__version__}\r\n{headers}Content-Length: {len(payload)}\r\n\r\n"
    )
    return head.encode() + payload


def answer(stream: BinaryIO, headers: dict[bytes, bytes] | None = None) -> tuple[int, bytes]:
    """Read one answer; `headers` takes its headers, their names in lower case.

    Raises ValueError for one that breaks off or is not HTTP.
    """
    status = int(stream.readline()[9:12])  # HTTP/1.1 200 OK
    length: int | None = None
    while (line := stream.readline()).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        if headers is not None:
            headers[name.lower()] = value.strip()
    if not line:
        raise ValueError("the answer breaks off")
    if length is None:
        return status, b"".join(_chunks(stream))
    body = stream.read(length)
    if len(body) < length:
        raise ValueError("the answer breaks off")
    return status, body


def _chunks(stream: BinaryIO) -> list[bytes]:
    """Read a body in pieces (RFC 9112, section 7.1): each after its length in hexadecimal, the last is empty."""
    chunks: list[bytes] = []
    while length := int(stream.readline().partition(b";")[0], 16):
        chunks.append(stream.read(length))
        if stream.readline() != b"\r\n":
            raise ValueError("the answer breaks off")
    return chunks
