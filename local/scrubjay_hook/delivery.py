"""One POST to the daemon over its Unix socket, or over loopback where there is none. Built on `_socket` alone.

`socket` adds names for constants to it, and takes eight milliseconds to do so.
"""

from __future__ import annotations

import _socket
import os
import time

from scrubjay.folders import HOOK_DOOR_NAME

TYPE_CHECKING = False  # as type checkers know it
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 0.5
"""How long the daemon may take in all: it answers in some milliseconds, and a person waits."""

SETTLED = (200, 400, 413, 422)
"""Answers after which a payload need not be kept: it is stored, or would be refused again and the daemon counts it."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")


def deliver(folder: str, host: str, fields: Mapping[str, str], payload: bytes) -> bytes | None:
    """Send a payload. Returns the body of the answer, None where the daemon is away, too slow, or not able to store."""
    try:
        with open(f"{folder}/{HOOK_DOOR_NAME}", encoding="utf-8") as file:  # noqa: PTH123  # pathlib takes as long as half of the interpreter
            token, path, name, port, instance = file.read().splitlines()
        until = time.monotonic() + SECONDS
        query = "&".join(f"{key}={quoted(value)}" for key, value in fields.items())
        named = f"[{name}]" if ":" in name else name
        begin = f"HTTP/1.1\r\nHost: {named}:{port}\r\nConnection: close\r\n"
        if not path and not _greeted(name, int(port), begin, instance, until):
            return None
        head = (
            f"POST /v1/hooks/{quoted(host)}?{query} {begin}Authorization: Bearer {token}\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        status, body = _asked(path, name, int(port), head.encode() + payload, until)
    except (OSError, ValueError):
        return None
    # A refusal without a code is not the daemon's but its server's, which counts nothing.
    return body if status == 200 or (status in SETTLED and b'"code":' in body) else None


def quoted(text: str) -> str:
    """Return a text percent-encoded (RFC 3986); slashes stay."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(text))


def _greeted(name: str, port: int, begin: str, instance: str, until: float) -> bool:
    """Say whether the daemon that wrote the door answers at a port, which a stranger may have by now."""
    status, body = _asked("", name, port, f"GET /healthz {begin}\r\n".encode(), until)
    return status == 200 and f'"instance":"{instance}"'.encode() in body


def _asked(path: str, name: str, port: int, request: bytes, until: float) -> tuple[int, bytes]:
    """Send a request and return the status and body of its answer. Raises OSError and ValueError."""
    family = _socket.AF_UNIX if path else _socket.AF_INET6 if ":" in name else _socket.AF_INET
    connection = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_left(until))
        connection.connect(path or (name, port))
        sent = 0
        while sent < len(request):
            connection.settimeout(_left(until))
            sent += connection.send(request[sent : sent + (1 << 18)])
        parts: list[bytes] = []
        while True:
            connection.settimeout(_left(until))
            part = connection.recv(1 << 16)
            if not part:
                break
            parts.append(part)
    finally:
        connection.close()
    head, found, body = b"".join(parts).partition(b"\r\n\r\n")
    if not found:
        raise ValueError("the answer breaks off")
    return int(head[9:12]), body


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
