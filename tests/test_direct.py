"""The short way of a command: what it asks for is what the long way asks for, and it stands back where it must."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrubjay import __version__, api, settings
from scrubjay.cli import parser
from scrubjay.cli.commands import add, recall
from scrubjay.daemon import control
from scrubjay.folders import data_folder
from scrubjay.transports import one_request
from scrubjay_shared.records import MemoryDraft

COMMAND = "import sys; from scrubjay.cli import main; code = main(); sys.stderr.write(chr(10).join(sys.modules)); sys.exit(code)"
HEAVY = ("msgspec", "numpy", "rich", "http.client", "dataclasses", "typing", "pathlib", "importlib.metadata", "logging")
COMMANDS = {"add": add, "recall": recall}
REQUESTS = {"add": MemoryDraft, "recall": api.RecallRequest}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of commands beside a daemon that runs."""
    home = tmp_path_factory.mktemp("home")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    chosen = kept | {"SCRUBJAY_HOME": str(home), "SCRUBJAY_MODEL": "none", "SCRUBJAY_PORT": "0"}
    loaded = settings.load({"model": "none", "port": 0}, chosen)
    control.start(loaded)
    yield chosen
    control.stop(loaded)


def command(environ: Mapping[str, str], *arguments: str) -> tuple[int, bytes, list[str]]:
    """Run a command line in a process of its own. Returns its exit code, what it wrote, and what it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], env=dict(environ), capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode().splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ["recall", "which", "boat"],
        ["recall", "boat", "--since", "yesterday", "--type", "fact", "--kind", "memory", "--no-rerank", "-n", "3"],
        ["recall", "boat", "--project", "p", "--session", "s", "--scope", "user", "--agent", "a", "--max-tokens", "9"],
        ["add", "a", "boat"],
        ["add", "a", "boat", "--name", "n", "--alias", "m", "--salience", "0.5", "--topic", "t", "--session", "s"],
        ["add", "a", "boat", "--project", "p", "--layer", "active", "--kind", "note", "--type", "goal"],
    ],
)
def test_what_is_asked_for_is_a_request_of_the_operation(words: list[str]) -> None:
    line = parser.parse(words)

    asked = COMMANDS[line.command].fields(line, "some words")

    assert isinstance(msgspec.convert(asked, REQUESTS[line.command]), REQUESTS[line.command])
    assert asked.keys() <= {field.name for field in dataclasses.fields(REQUESTS[line.command])}


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        ({}, {"HOME": "/h"}),
        ({}, {"HOME": "/h", "XDG_DATA_HOME": "/x"}),
        ({}, {"HOME": "/h", "XDG_DATA_HOME": "relative"}),
        ({}, {"SCRUBJAY_HOME": "/s", "SCRUBJAY_DATA_DIR": ""}),
        ({}, {"SCRUBJAY_HOME": "/s", "SCRUBJAY_DATA_DIR": "/d"}),
        ({"data_dir": "/f"}, {"SCRUBJAY_HOME": "/s", "SCRUBJAY_DATA_DIR": "/d"}),
        ({"data_dir": "relative"}, {"SCRUBJAY_HOME": "/s"}),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the settings alone know the folders")
def test_the_data_folder_is_the_one_of_the_settings(flags: dict[str, str], environ: dict[str, str]) -> None:
    assert data_folder(flags.get("data_dir"), None, environ) == str(settings.load(flags, environ).data_dir)


def test_a_folder_that_only_the_settings_can_tell_is_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('data_dir = "/elsewhere"\n')

    assert data_folder(None, str(tmp_path), {}) is None
    assert data_folder(None, None, {"SCRUBJAY_HOME": "~/x"}) is None
    assert data_folder(None, None, {"SCRUBJAY_HOME": "/x", "SCRUBJAY_DATA_DIR": "relative"}) is None
    assert data_folder(None, None, {"SCRUBJAY_CONFIG": "/x/config.toml"}) is None
    assert data_folder("", None, {}) is None


def test_a_command_through_the_daemon_loads_little_and_prints_what_the_long_way_prints(
    environ: dict[str, str],
) -> None:
    first, _, _ = command(environ, "add", "The boat lies at pontoon C", "--name", "boat")
    code, short, loaded = command(environ, "add", "The boat lies at pontoon C")
    again, long, _ = command(environ | {"SCRUBJAY_CONFIG": _empty(environ)}, "add", "The boat lies at pontoon C")

    assert (first, code, again) == (0, 0, 0)
    assert short == long
    assert not set(HEAVY) & set(loaded)


def test_a_question_through_the_daemon_loads_little(environ: dict[str, str]) -> None:
    command(environ, "add", "The kite hangs in the hall")

    code, answer, loaded = command(environ, "recall", "where does the kite hang?")

    assert code == 0
    assert [hit["text"] for hit in json.loads(answer)["hits"]][:1] == ["The kite hangs in the hall"]
    assert not set(HEAVY) & set(loaded)


def test_what_the_daemon_refuses_is_said_as_the_long_way_says_it(environ: dict[str, str]) -> None:
    code, out, said = command(environ, "add", " ")
    again, _, long = command(environ | {"SCRUBJAY_CONFIG": _empty(environ)}, "add", " ")

    assert (code, out) == (again, b"") == (2, b"")
    assert said[0] == long[0]


def test_a_stranger_at_the_address_is_not_told_the_token(tmp_path: Path) -> None:
    heard: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        record: dict[str, Any] = {"host": "127.0.0.1", "port": listening.getsockname()[1], "socket": None}
        record |= {"version": __version__, "instance": "ours", "pid": 1}
        (tmp_path / "daemon.json").write_text(json.dumps(record))
        (tmp_path / "token").write_text("secret")

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                heard.append(connection.recv(65_536))
                body = b'{"instance": "another", "pid": 1}'
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                heard.append(connection.recv(65_536))

        stranger = threading.Thread(target=answer)
        stranger.start()
        found = one_request.post(str(tmp_path), "/v1/recall", {"query": "x"})
        stranger.join()

    assert found is None
    assert b"GET /healthz" in heard[0]
    assert b"secret" not in b"".join(heard)


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{} \r\n1\r\n \r\n0\r\n\r\n", (200, b"{}  ")),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}", (404, b"{}")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nContent-", None),
        (b"", None),
    ],
)
def test_an_answer_is_whole_or_is_lost(tmp_path: Path, sent: bytes, outcome: tuple[int, bytes] | None) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        record: dict[str, Any] = {"host": "127.0.0.1", "port": listening.getsockname()[1], "socket": None}
        record |= {"version": __version__, "instance": "ours", "pid": 1}
        (tmp_path / "daemon.json").write_text(json.dumps(record))
        (tmp_path / "token").write_text("secret")

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                body = b'{"instance": "ours", "pid": 1}'
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                connection.recv(65_536)
                connection.sendall(sent)

        daemon = threading.Thread(target=answer)
        daemon.start()
        try:
            found: object = one_request.post(str(tmp_path), "/v1/recall", {"query": "x"})
        except one_request.LostError as error:
            found = "late" if error.timed_out else None
        daemon.join()

    assert found == outcome


def _empty(environ: Mapping[str, str]) -> str:
    """Return a config file without a word in it: with it, a command goes the long way."""
    path = Path(environ["SCRUBJAY_HOME"]) / "empty.toml"
    path.write_text("")
    return str(path)
