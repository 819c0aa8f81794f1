"""Messages of MCP that are not as the protocol has them: whoever asks gets an answer with the number of the question."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hook_process import Home
from scrubjay.daemon import control
from scrubjay.policy import DEFAULT, DaemonPolicy
from scrubjay.service.application import Application
from scrubjay.transports.mcp import bridge, messages
from scrubjay.transports.mcp.mount import McpMount

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a daemon."""
    home = Home(tmp_path_factory.mktemp("up"))
    control.start(home.settings, policy=DaemonPolicy(start_seconds=90.0))
    yield home
    control.stop(home.settings)


def answers(home: Home, *lines: bytes) -> list[dict[str, Any]]:
    """Return what a bridge answers to some lines."""
    out = io.BytesIO()
    bridge.Bridge(str(home.data), "/mcp", "", out, lambda: None).run(
        io.BytesIO(b"".join(line + b"\n" for line in lines))
    )
    return [json.loads(line) for line in out.getvalue().splitlines()]


def call(number: str, arguments: str) -> bytes:
    """Return a call of the search with arguments that are spelled in some way."""
    return (
        f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"memory_search","arguments":{arguments}}}}}'
    ).encode()


SERVED = {
    "half of a character": (23, call("23", r'{"query":"half \ud83d"}')),
    "invalid UTF-8": (24, call("24", '{"query":"caf%"}').replace(b"%", b"\xe9")),
    "a raw tab": (25, call("25", '{"query":"a\tb"}')),
    "a byte order mark": (7, b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"ping"}'),
    "no version": (3, b'{"id":3,"method":"ping"}'),
    "parameters as an empty list": (4, b'{"jsonrpc":"2.0","id":4,"method":"tools/list","params":[]}'),
    "parameters of null": (5, b'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":null}'),
    "a fraction as number": (1.5, b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}'),
    "a huge number": (2**70, b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % 2**70),
    "an empty text as number": ("", b'{"jsonrpc":"2.0","id":"","method":"ping"}'),
    "arguments as their JSON": (14, call("14", json.dumps('{"query": "hook"}'))),
}


@pytest.mark.parametrize(("number", "line"), SERVED.values(), ids=SERVED)
async def test_what_can_be_understood_is_served_under_its_number(running: Home, number: Any, line: bytes) -> None:
    [answer] = answers(running, line)

    assert answer["id"] == number
    assert "result" in answer
    assert not answer["result"].get("isError")


def test_a_client_without_the_bridge_is_understood_too(running: Home) -> None:
    record = running.client().running
    assert record is not None
    connection = http.client.HTTPConnection(record.host, record.port, timeout=30)
    headers = {
        "Authorization": f"Bearer {running.settings.agent_token_path.read_text().strip()}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", "/mcp", SERVED["arguments as their JSON"][1], headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()

    assert answer["id"] == 14
    assert not answer["result"].get("isError")


REFUSED = {
    "cut off behind its number": (24, b'{"jsonrpc":"2.0","id":24,"method":"ping","params":{"a":'),
    "cut off, its number first": ("a-1", b'{"id":"a-1","method":"ping"'),
    "arguments that are no JSON": (9, call("9", '"query: hook"')),
    "parameters as a list": (10, b'{"jsonrpc":"2.0","id":10,"method":"tools/list","params":[1]}'),
    "a method that is none": (11, b'{"jsonrpc":"2.0","id":11,"method":5}'),
    "another version": (12, b'{"jsonrpc":"1.0","id":12,"method":"ping"}'),
    "a truth as number": (True, b'{"jsonrpc":"2.0","id":true,"method":"nothing/such"}'),
    "a nesting without an end": (13, b'{"id":13,"method":"ping","params":{"a":' + b"[" * 100_000),
}


@pytest.mark.parametrize(("number", "line"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_understood_is_refused_under_its_number(running: Home, number: Any, line: bytes) -> None:
    [answer] = answers(running, line)

    assert (answer["id"], "error" in answer) == (number, True)


async def test_arguments_of_another_shape_are_refused_with_what_they_should_be(running: Home) -> None:
    [answer] = answers(running, call("9", '["hook"]'))

    assert "`arguments` is an object" in answer["error"]["message"]


VALUES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20) | st.lists(st.text(max_size=5))


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_a_message_as_the_protocol_has_it_is_passed_on_byte_for_byte(params: dict[str, Any]) -> None:
    params.pop("arguments", None)
    message = {"jsonrpc": "2.0", "id": 1, "method": "m"} | ({"params": params} if params else {})
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")

    assert messages.read(data) == (json.loads(data), data)


@given(st.text(st.sampled_from('{}[]",:0123abc\\"id ') | st.characters(codec=None), max_size=60))
def test_the_number_of_what_cannot_be_read_is_told_or_is_not_and_nothing_fails(text: str) -> None:
    found = messages.number_in(text.encode("utf-8", "replace"))

    assert found is None or isinstance(found, int | float | str)


def test_a_number_within_the_parameters_is_not_taken_for_the_messages() -> None:
    assert messages.number_in(b'{"method":"m","params":{"id":5,"x":') is None
    assert messages.number_in(b'{"method":"{\\"id\\":5}","params":') is None


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be deleted there")
def test_the_bridge_serves_in_a_folder_that_was_deleted(running: Home, tmp_path: Path) -> None:
    gone = tmp_path / "worktree"
    gone.mkdir()
    program = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r});from scrubjay.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "--home", str(running.folder), "mcp"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **running.environ},
    )

    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert done.returncode == 0


class NeverStarts:
    """A server of the SDK that fails as it starts."""

    handle = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        raise RuntimeError("it failed to start")
        yield


async def test_a_server_that_cannot_start_fails_each_request_and_holds_nothing_up(
    service: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = McpMount(service, version="x", policy=DEFAULT)
    monkeypatch.setattr(mount, "_load", lambda: {"/mcp": NeverStarts()})

    async with asyncio.timeout(5.0):
        for _ in range(2):
            with pytest.raises(RuntimeError):
                await mount._loaded()
        await mount.close()


async def test_a_request_that_leaves_as_the_servers_start_takes_no_other_along(service: Application) -> None:
    mount = McpMount(service, version="x", policy=DEFAULT)
    leaving = asyncio.create_task(mount._loaded())
    await asyncio.sleep(0.01)
    leaving.cancel()

    async with asyncio.timeout(30.0):
        assert "/mcp" in await mount._loaded()
        await mount.close()


def test_a_daemon_stopped_before_the_machine_slept_stays_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On macOS: the clock of the processor stands still in sleep, that of the machine does not."""
    (tmp_path / "stopped").write_text("mark")
    stopped = time.time() - 40_000.0
    os.utime(tmp_path / "stopped", (stopped, stopped))
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: {time.CLOCK_MONOTONIC: 60_000.0}[clock])
    monkeypatch.setattr(time, "monotonic", lambda: 10_000.0)

    assert bridge.stopped_by_hand(str(tmp_path))
