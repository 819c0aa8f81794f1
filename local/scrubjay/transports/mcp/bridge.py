"""MCP over stdio, passed on to the daemon: one message a line in, one POST each, one line out. Standard library only.

Hosts start a process for every session and wait for it before they ask their model anything: this one costs what bare
Python costs, where the SDK's own server costs a second and 60 MB each. Both eras of the protocol pass: what one of
2026-07-28 says in its `_meta` is said again in the headers that the transport wants; of an older client, what its
`initialize` settled is remembered. A daemon that is away is started, unless the person stopped it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from scrubjay.spawning import NO_WINDOW
from scrubjay.transports import one_request
from scrubjay.transports.mcp import messages

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO

AGENT_TOKEN_NAME = "agent_token"  # noqa: S105  # a file's name
STOP_NAME = "stopped"
VERSION_META = "io.modelcontextprotocol/protocolVersion"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods of which a header tells the thing that they are about, and the parameter that has it."""

START_SECONDS = 20.0
"""How long the first message waits for a daemon that had to be started: a large store is read in some seconds."""

PATIENCE_SECONDS = 60.0
"""For so long after a daemon did not start, messages are answered at once rather than by another try."""

POLL_SECONDS = 0.05
END_SECONDS = 30.0
"""How long what was asked before the host closed its end may still take to be answered."""

AWAY = -32000
PARSE_ERROR = -32700
AWAY_TEXT = "scrubjay's daemon does not answer, so nothing can be remembered or found now. Tell the person to run: {}"


class AwayError(Exception):
    """No daemon answers. `command` is what the person can do."""

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.command = command


class Bridge:
    """Passes messages on to the daemon of a data folder. `start` starts it, and returns before it serves."""

    def __init__(self, data_dir: str, path: str, project: str, out: BinaryIO, start: Callable[[], None]) -> None:
        self._data_dir = data_dir
        self._path = path
        self._project = quoted(project)
        self._out = out
        self._writing = threading.Lock()
        self._start = start
        self._starting = threading.Lock()
        self._patient_from = 0.0
        self._version = ""
        self._session = ""

    def run(self, lines: BinaryIO) -> None:
        """Serve until the host closes its end."""
        asked: list[threading.Thread] = []
        for line in iter(lines.readline, b""):
            if not line.strip():
                continue
            if b'"initialize"' in line:
                self._pass_on(line)  # what follows needs what its answer settles
            else:
                asked = [thread for thread in asked if thread.is_alive()]
                asked.append(threading.Thread(target=self._pass_on, args=(line,), daemon=True))
                asked[-1].start()
        deadline = time.monotonic() + END_SECONDS
        for thread in asked:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _pass_on(self, line: bytes) -> None:
        try:
            message, data = messages.read(line.strip())
        except (ValueError, RecursionError):
            self._fail(messages.number_in(line), PARSE_ERROR, "a message is one line of JSON")
            return
        if not isinstance(message, dict):
            self._fail(None, PARSE_ERROR, "a message is one JSON object: batches are not part of the protocol")
            return
        number = message.get("id")
        if "id" in message and not messages.is_number(number):
            # The SDK takes such a message for one that wants no answer.
            data = messages.encoded(message | {"id": json.dumps(number)})
        headers: dict[bytes, bytes] = {}
        try:
            status, body = self._posted(data, self._headers(message), headers)
        except AwayError as error:
            self._fail(number, AWAY, AWAY_TEXT.format(error.command))
            return
        except (OSError, ValueError) as error:
            told = f"the daemon did not answer ({type(error).__name__}); scrubjay daemon status says why"
            self._fail(number, AWAY, told)
            return
        if message.get("method") == "initialize" and status == 200:
            result = json.loads(body).get("result") or {}
            self._version = str(result.get("protocolVersion") or "")
            self._session = headers.get(b"mcp-session-id", b"").decode("latin-1")
        if not body or "id" not in message:
            return
        if b"problem+json" in headers.get(b"content-type", b""):
            told = json.loads(body)
            self._fail(number, AWAY, f"{told.get('detail', status)}. {told.get('hint', '')}".rstrip())
        elif status == 200 and messages.is_number(number) and b'"error":' not in body:
            self._write(body)
        else:
            self._write(messages.encoded(_answered(json.loads(body), message)))

    def _headers(self, message: dict[str, Any]) -> str:
        params = message.get("params")
        given = params if isinstance(params, dict) else {}
        meta = given.get("_meta")
        modern = meta.get(VERSION_META) if isinstance(meta, dict) else None
        headers: dict[str, object] = {"Scrubjay-Project": self._project}
        if modern:
            method = message.get("method")
            headers |= {"MCP-Protocol-Version": modern, "Mcp-Method": method}
            if name := given.get(NAMED.get(str(method), "")):
                headers["Mcp-Name"] = name
        elif message.get("method") != "initialize":
            headers |= {"MCP-Protocol-Version": self._version, "Mcp-Session-Id": self._session}
        return "".join(f"{name}: {sendable(value)}\r\n" for name, value in headers.items() if value)

    def _posted(self, line: bytes, headers: str, answered: dict[bytes, bytes]) -> tuple[int, bytes]:
        """Post one message. Raises AwayError before it is sent; OSError or ValueError after that."""
        record, token, connection, stream = self._reached()
        with connection, stream:
            connection.settimeout(one_request.TIMEOUT_SECONDS)
            accepted = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            bearer = f"Authorization: Bearer {token}\r\n"
            try:  # noqa: SIM105  # contextlib takes as long to load as the connection
                connection.sendall(one_request.sent(f"POST {self._path}", record, bearer + accepted + headers, line))
            except (BrokenPipeError, ConnectionResetError):
                pass  # a refusal is sent before the body has been read: why it broke off may be waiting
            return one_request.answer(stream, answered)

    def _reached(self) -> tuple[dict[str, Any], str, Any, Any]:
        """Return a connection to the daemon, which is started where it does not run. Raises AwayError."""
        found = self._daemon()
        if found is not None:
            return found
        with self._starting:
            if (found := self._daemon()) is not None:  # another message had it started
                return found
            if stopped_by_hand(self._data_dir):
                raise AwayError("scrubjay daemon start")
            if time.monotonic() >= self._patient_from:
                self._start()
                deadline = time.monotonic() + START_SECONDS
                while time.monotonic() < deadline:
                    if (found := self._daemon()) is not None:
                        return found
                    time.sleep(POLL_SECONDS)
                self._patient_from = time.monotonic() + PATIENCE_SECONDS
        raise AwayError("scrubjay doctor")

    def _daemon(self) -> tuple[dict[str, Any], str, Any, Any] | None:
        """Return the daemon's record, the agent's token and an open connection; None where none answers."""
        try:
            with open(f"{self._data_dir}/{one_request.RECORD_NAME}", "rb") as file:  # noqa: PTH123  # pathlib takes as long as half of the interpreter
                record = json.loads(file.read())
            with open(f"{self._data_dir}/{AGENT_TOKEN_NAME}", encoding="ascii") as file:  # noqa: PTH123  # as above
                token = file.read().strip()
            connection = one_request.connected(record)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        stream = connection.makefile("rb")
        try:
            # Whoever answers must be the one that wrote `daemon.json`, or it is not told the token.
            if one_request.greeted(connection, stream, record):
                return record, token, connection, stream
        except (OSError, ValueError, KeyError, TypeError):
            pass
        stream.close()
        connection.close()
        return None

    def _fail(self, number: object, code: int, text: str) -> None:
        if number is None and code != PARSE_ERROR:  # nobody waits for the answer to a notification
            return
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}
        self._write(json.dumps(error, separators=(",", ":")).encode())

    def _write(self, body: bytes) -> None:
        line = body if b"\n" not in body else json.dumps(json.loads(body), separators=(",", ":")).encode()
        with self._writing:
            self._out.write(line + b"\n")
            self._out.flush()


def _answered(answer: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with the number of the message, which the SDK leaves out of some errors, and with a hint."""
    params, error = message.get("params"), answer.get("error")
    given = params.get("arguments") if isinstance(params, dict) else None
    if isinstance(error, dict) and given is not None and not isinstance(given, dict):
        error = error | {"message": f"{error.get('message')}: `arguments` is an object, by the names of the arguments"}
        answer = answer | {"error": error}
    return answer | {"id": message["id"]}


def quoted(text: str) -> str:
    """Return a text percent-encoded, as our headers have it.

    >>> quoted("/home/ana/my shop")
    '/home/ana/my%20shop'
    """
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in os.fsencode(text))


def sendable(value: object) -> str:
    """Return a header's value in the characters that a header may have; a host's words may hold any.

    >>> sendable("a" + chr(10) + "b")
    'ab'
    """
    return "".join(character for character in str(value) if character.isprintable() and character.isascii())


def stopped_by_hand(data_dir: str) -> bool:
    """Say whether the person stopped the daemon since the machine started, and has not started it again."""
    try:
        stopped = os.stat(f"{data_dir}/{STOP_NAME}").st_mtime  # noqa: PTH116  # as above
    except OSError:
        return False
    up = uptime()
    return stopped > time.time() - up and not os.path.exists(f"{data_dir}/{one_request.RECORD_NAME}")  # noqa: PTH110  # as above


def uptime() -> float:
    """Return the seconds since the machine started, those in which it slept included.

    Linux counts them by CLOCK_BOOTTIME. On macOS CLOCK_MONOTONIC does, and `time.monotonic` stands still in sleep.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return time.monotonic() if clock is None else time.clock_gettime(clock)  # Windows has but that one, and it counts


def start_daemon(data_dir: str, flags: Sequence[str] = ()) -> None:
    """Start the daemon of a data folder, and do not wait for it. `flags` name its home, where the command line did."""
    import subprocess  # noqa: PLC0415  # a daemon that runs needs no start, and this takes as long as all the rest

    environ = os.environ | {"SCRUBJAY_DATA_DIR": data_dir}
    command = [sys.executable, "-P", "-m", "scrubjay.cli", *flags, "daemon", "start"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603  # our own module
        command, stdin=quiet, stdout=quiet, stderr=quiet, env=environ, creationflags=NO_WINDOW
    )
    threading.Thread(target=process.wait, daemon=True).start()
