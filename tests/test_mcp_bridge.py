"""`scrubjay mcp`: the SDK's client over stdin and stdout, through a real daemon that is up, stopped, or away."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_clients import MODES, over_stdio, said
from scrubjay import api
from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings
from scrubjay.transports import local
from scrubjay.transports.mcp import bridge
from scrubjay_shared.records import Scope, Trust

pytestmark = pytest.mark.anyio
in_both_eras = pytest.mark.parametrize("era", MODES)
PATIENT = DaemonPolicy(start_seconds=90.0)


def settings_in(home: Path) -> Settings:
    chosen = options.load(environ={"SCRUBJAY_HOME": str(home), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"})
    options.ensure_dirs(chosen)
    return chosen


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a daemon that runs."""
    folder = tmp_path_factory.mktemp("home")
    chosen = settings_in(folder)
    control.start(chosen, policy=PATIENT)
    yield folder
    control.stop(chosen)


@in_both_eras
async def test_an_agent_in_a_folder_writes_and_reads_that_project(home: Path, tmp_path: Path, era: str) -> None:
    folder, other = tmp_path / f"my shop ü {era}", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    async with over_stdio(home, folder, era=era, name="opencode") as client:
        await said(client, "memory_add", text=f"the cart of {era} is green", type="decision")
        assert f"the cart of {era}" in await said(client, "memory_search", query="cart")
    async with over_stdio(home, other, era=era) as client:
        assert f"the cart of {era}" not in await said(client, "memory_search", query="cart")

    chosen = settings_in(home)
    person = local.through_daemon(chosen.store_path, chosen)
    assert person is not None
    with contextlib.closing(person):
        [found] = [
            entry.memory for entry in person.call("list", api.ListRequest()).entries if era in entry.memory.content
        ]
    assert (found.scope, found.trust, found.metadata["agent"]) == (Scope.PROJECT, Trust.AGENT, "opencode")


def asked(home: Path, *lines: bytes, start: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
    """Return what a bridge answers to some lines, after which the host closes its end at once."""
    out = io.BytesIO()
    data_dir = str(settings_in(home).data_dir)
    bridge.Bridge(data_dir, "/mcp", "/tmp", out, start).run(io.BytesIO(b"".join(line + b"\n" for line in lines)))  # noqa: S108
    return [json.loads(line) for line in out.getvalue().splitlines()]


PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


async def test_what_was_asked_before_the_host_left_is_answered(home: Path) -> None:
    pings = [PING.replace(b"7", b"%d" % number) for number in range(20)]
    assert {answer["id"] for answer in asked(home, *pings)} == set(range(20))


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b"\xff\xfe", b"[" * 100_000])
async def test_a_line_that_is_no_message_is_refused_and_the_next_one_served(home: Path, line: bytes) -> None:
    first, second = sorted(asked(home, line, PING), key=lambda answer: answer["id"] or 0)
    assert first["error"]["code"] == -32700
    assert (second["id"], second["result"]) == (7, {})


async def test_a_notification_is_never_answered(home: Path) -> None:
    notes = (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b'{"jsonrpc":"2.0","method":"no such thing"}')
    assert [answer["id"] for answer in asked(home, *notes, PING)] == [7]


async def test_what_the_daemon_refuses_is_told_as_an_error_of_that_message(home: Path) -> None:
    [answer] = asked(home, json.dumps({"jsonrpc": "2.0", "id": 3, "method": "x" * 4_200_000}).encode())
    assert answer["id"] == 3
    assert "larger than" in answer["error"]["message"]


async def test_a_daemon_that_the_person_stopped_stays_stopped_and_the_model_is_told(tmp_path: Path) -> None:
    starts: list[int] = []
    control.stop(settings_in(tmp_path))
    [answer] = asked(tmp_path, PING, start=lambda: starts.append(1))
    assert answer["id"] == 7
    assert "scrubjay daemon start" in answer["error"]["message"]
    assert not starts


@pytest.mark.slow
async def test_a_daemon_that_is_away_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRUBJAY_PORT", "0")
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    chosen = settings_in(tmp_path)
    try:
        async with over_stdio(tmp_path, tmp_path) as client:
            assert "0 memories" in await said(client, "memory_status")
    finally:
        control.stop(chosen)


async def test_a_daemon_that_cannot_start_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "START_SECONDS", 0.2)
    starts: list[int] = []
    out = io.BytesIO()
    bridge.Bridge(str(tmp_path), "/mcp", "/", out, lambda: starts.append(1)).run(io.BytesIO((PING + b"\n") * 3))

    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(answers) == 3
    assert all("scrubjay doctor" in answer["error"]["message"] for answer in answers)
    assert len(starts) == 1


async def test_the_token_is_not_told_to_another_process_on_the_daemons_port(tmp_path: Path, home: Path) -> None:
    """A record of a daemon that is gone, whose address somebody else has now: it is not the one that wrote the record."""
    data_dir = settings_in(home).data_dir
    record = json.loads((data_dir / "daemon.json").read_bytes()) | {"instance": "another"}
    (tmp_path / "daemon.json").write_text(json.dumps(record))
    (tmp_path / "agent_token").write_text("secret")
    out = io.BytesIO()
    one = bridge.Bridge(str(tmp_path), "/mcp", "/", out, lambda: None)

    assert one._daemon() is None


def test_the_bridge_loads_nothing_but_pythons_own_library() -> None:
    program = (
        "import sys; from scrubjay.transports.mcp import bridge; "
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in "
        "('msgspec', 'starlette', 'numpy', 'mcp', 'typing', 'asyncio', 'subprocess', 'http', 'psutil')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
