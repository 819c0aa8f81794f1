"""`scrubjay-hook` as hosts run it, against a real daemon: what is stored, what is kept, and what nobody can claim."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hook_process import FIXTURES, Home, prompt, tool_result
from kill_hooks import play
from scrubjay import api, spool
from scrubjay.api.caller import HOST, PERSON, Caller, Principal
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.service.application import Application
from scrubjay.service.hooks import OURS, descends
from scrubjay.transports.client import discover
from scrubjay.transports.mcp import bridge
from scrubjay_hook import away as away_module
from scrubjay_shared.errors import DeniedError, InvalidError, UnavailableError
from scrubjay_shared.records import Trust

pytestmark = pytest.mark.anyio

EVENT = "UserPromptSubmit"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a daemon."""
    home = Home(tmp_path_factory.mktemp("up"))
    control.start(home.settings, policy=DaemonPolicy(start_seconds=90.0))
    yield home
    control.stop(home.settings)


@pytest.fixture
def away(tmp_path: Path) -> Home:
    """A home without a daemon."""
    return Home(tmp_path)


# What a hook process does


def test_what_a_person_typed_is_stored_as_theirs_and_nothing_is_printed(running: Home) -> None:
    done = running.hook("claude-code", "UserPromptSubmit", prompt("typed", "We chose SQLite for the cart."))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    [event] = running.events("typed")
    assert (event.agent, event.text, event.trust) == ("claude-code", "We chose SQLite for the cart.", Trust.USER)


def test_an_event_that_is_delivered_twice_is_stored_once(running: Home) -> None:
    for _ in range(2):
        running.hook("claude-code", "UserPromptSubmit", prompt("twice", "Deploy on Fridays only."))

    assert len(running.events("twice")) == 1


def test_every_payload_that_was_recorded_is_taken_without_a_word(running: Home) -> None:
    def taken(line: str) -> tuple[int, bytes, bytes]:
        fixture = json.loads(line)
        done = running.hook(fixture["host"], fixture["event"], fixture["payload"])
        return done.returncode, done.stdout, done.stderr

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(taken, FIXTURES.read_text(encoding="utf-8").splitlines()))

    assert found == {(0, b"", b"")}
    assert not running.spooled()
    assert not (running.data / "hook_error").exists()


def test_an_event_waits_in_the_spool_without_its_secret_until_the_daemon_is_back(away: Home) -> None:
    away.hook("claude-code", "UserPromptSubmit", prompt("kept", f"The token is {SECRET}; keep it out."))
    [path] = away.until_spooled(1)

    assert SECRET not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    with away.daemon():
        [event] = away.until_stored("kept", 1)

        assert event.text == "The token is [REDACTED:github-token]; keep it out."
        assert event.trust is Trust.USER
        assert abs(event.ts - time.time() * 1000) < 600_000
        away.until(lambda: not away.spooled(), "the spool is empty")


def test_a_hook_gives_up_on_a_daemon_that_hangs_and_keeps_the_event(away: Home) -> None:
    away.data.mkdir(parents=True)
    path = away.data / "hung.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        (away.data / "hook_door").write_text("\n".join(["token", str(path), "127.0.0.1", "1", "i"]), encoding="utf-8")
        done = away.hook("claude-code", "UserPromptSubmit", prompt("hung", "Nothing is lost."))

    assert (done.returncode, done.stdout) == (0, b"")
    away.until_spooled(1)


def test_a_door_that_a_dead_daemon_left_is_no_daemon(away: Home) -> None:
    away.data.mkdir(parents=True)
    lines = ["token", str(away.data / "gone.sock"), "127.0.0.1", "1", "i"]
    (away.data / "hook_door").write_text("\n".join(lines), encoding="utf-8")

    away.hook("claude-code", "UserPromptSubmit", prompt("door", "Nothing is lost."))

    away.until_spooled(1)


def test_a_large_payload_goes_by_the_spool_to_a_daemon_that_runs(running: Home) -> None:
    text = "a line of a log\n" * 40_000

    running.hook("claude-code", "PostToolUse", tool_result("large", text))

    [event] = running.until_stored("large", 1)
    assert event.trust is Trust.UNTRUSTED
    assert "a line of a log" in event.text


def test_a_delivery_that_also_went_by_the_spool_is_stored_once(running: Home) -> None:
    payload = {**prompt("both", f"Remember that {SECRET} was leaked."), "prompt_id": None}
    sent = int(time.time() * 1000)
    query = {"event": "UserPromptSubmit", "sent": sent, "project": "/home/ana/shop"}
    running.ask("POST", "/v1/hooks/claude-code", json.dumps(payload).encode(), query=query)
    spool.write(
        running.data,
        spool.Report(
            host="claude-code", event="UserPromptSubmit", sent=sent, project="/home/ana/shop", payload=payload
        ),
    )

    running.until(running.drained, "the spool is empty")
    assert len(running.events("both")) == 1


def test_a_host_that_never_closes_the_pipe_is_not_waited_for(running: Home) -> None:
    payload = json.dumps(prompt("open", "The pipe stays open.")).encode()
    reading, writing = os.pipe()
    try:
        os.write(writing, payload)
        done = subprocess.run(
            running.command("claude-code", "UserPromptSubmit"),
            stdin=reading,
            capture_output=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)

    assert (done.returncode, done.stdout) == (0, b"")
    assert len(running.events("open")) == 1


def test_a_host_that_writes_late_and_in_pieces_loses_nothing(running: Home) -> None:
    """On a busy machine the host needs a second between starting the hook and writing to it."""
    payload = json.dumps(prompt("late", "The payload comes late.")).encode()
    with subprocess.Popen(running.command("claude-code", "UserPromptSubmit"), stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for piece in (payload[:40], payload[40:]):
            time.sleep(0.8)
            process.stdin.write(piece)
            process.stdin.flush()
        process.stdin.close()
        assert process.wait(30) == 0

    assert [event.text for event in running.events("late")] == ["The payload comes late."]


@pytest.mark.parametrize(
    "arguments",
    [(), ("claude-code",), ("inject",), ("no-such-host", "Stop"), ("claude-code", "NoSuchEvent"), ("--home",)],
)
def test_a_command_line_that_means_nothing_ends_well_and_prints_nothing(
    running: Home, arguments: tuple[str, ...]
) -> None:
    done = running.hook(*arguments, payload=prompt("odd", "Hello."))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_person_who_asks_the_hook_for_help_is_told_whose_it_is_and_nothing_is_counted(away: Home) -> None:
    done = away.hook("--help", payload=b"")

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"scrubjay setup" in done.stdout
    assert not (away.data / "hook_error").exists()


def test_the_form_that_hands_over_prints_the_hosts_json_and_stores_the_event(running: Home) -> None:
    running.hook("claude-code", "UserPromptSubmit", prompt("earlier", "We decided to use pnpm for the web shop."))
    running.ask("POST", "/v1/settle", {"timeout_ms": 60_000})

    done = running.hook(
        "inject", "codex", "UserPromptSubmit", payload=prompt("later", "Do we use pnpm for the web shop?")
    )

    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "UserPromptSubmit"
    assert "We decided to use pnpm for the web shop." in answer["additionalContext"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [event.agent for event in running.events("later")] == ["codex"]


def test_an_event_on_trial_is_found_and_leaves_nothing(running: Home) -> None:
    for number in range(2):
        payload = {"session_id": "trial", "turn_id": f"t{number}", "prompt": "On trial."}
        done = running.hook("--check", "gemini", "BeforeAgent", payload=payload)

        assert json.loads(done.stdout) == {"accepted": 1, "duplicates": 0, "dropped": "tried", "output": ""}
    assert not running.events("trial")
    assert not running.spooled()


def test_an_event_on_trial_without_a_daemon_is_answered_by_nobody_and_not_kept(away: Home) -> None:
    done = away.hook("--check", "gemini", "BeforeAgent", payload={"session_id": "trial", "prompt": "On trial."})

    assert (done.returncode, done.stdout) == (0, b"")
    assert not away.spooled()


def started(home: Home) -> bool:
    """Say whether a daemon answers in a home."""
    return discover(home.data) is not None


@pytest.mark.slow
def test_a_hook_starts_a_daemon_that_was_killed_and_its_event_arrives(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.daemon():
        running = home.client().running
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        home.until(lambda: not started(home), "the daemon is gone")

        began = time.monotonic()
        done = home.hook("claude-code", EVENT, prompt("crash", "It goes on by itself."), **home.environ)
        took = time.monotonic() - began

        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert took < 10.0  # on a busy machine; nothing of a start, which takes seconds, is waited for
        home.until(lambda: started(home), "a hook has started the daemon")
        [event] = home.until_stored("crash", 1)
        assert event.text == "It goes on by itself."
    home.hook("claude-code", EVENT, prompt("crash", "It was stopped."), **home.environ)
    home.until_spooled(1)


@pytest.mark.parametrize(
    ("plant", "starts"),
    [
        ("a store", 1),
        ("nothing", 0),
        ("a stop by the person", 0),
        ("a start just now", 0),
        ("a start in the future", 1),  # the clock was set back since
        ("a daemon that is busy", 0),
    ],
)
def test_a_daemon_is_started_once_and_only_where_one_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: str, starts: int
) -> None:
    done: list[str] = []
    monkeypatch.setattr(bridge, "start_daemon", lambda folder, _: done.append(folder))
    if plant != "nothing":
        (tmp_path / "memory.db").touch()
    if plant == "a stop by the person":
        (tmp_path / "stopped").touch()
    if plant == "a start just now":
        (tmp_path / "hook_start").touch()
    if plant == "a start in the future":
        (tmp_path / "hook_start").touch()
        os.utime(tmp_path / "hook_start", (time.time() + 9e6,) * 2)
    if plant == "a daemon that is busy":
        monkeypatch.setattr("scrubjay.transports.client.discover", busy)

    for _ in range(2):
        away_module._start(str(tmp_path), [])

    assert done == [str(tmp_path)] * starts


def busy(_: Path) -> None:
    raise UnavailableError("it does not answer")


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_while_the_daemon_is_killed(tmp_path: Path) -> None:
    outcome = play(tmp_path, events=150, kills=4, seed=11)

    assert outcome.kills == 4
    assert outcome.holds, outcome


def test_the_switch_for_hosts_that_expect_an_answer_prints_it(running: Home) -> None:
    done = running.hook("--cch", "claude-code", "UserPromptSubmit", payload=prompt("cch", "Hello there."))

    assert done.stdout == b'{"continue":true}\n'
    assert len(running.events("cch")) == 1


def test_a_hook_on_the_usual_way_loads_no_module_that_takes_long(running: Home) -> None:
    command = running.command("claude-code", "Stop")
    command[1:1] = ["-X", "importtime"]
    done = subprocess.run(command, input=b'{"session_id": "quick"}', capture_output=True, timeout=30, check=False)

    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert "scrubjay_hook.delivery" in loaded
    assert not loaded & {"socket", "json", "re", "typing", "pathlib", "msgspec", "threading", "enum", "subprocess"}


def mutated(payload: bytes, draw: random.Random) -> bytes:
    """Return a payload with something wrong about it."""
    kind = draw.randrange(7)
    at = draw.randrange(len(payload))
    if kind == 0:
        return payload[:at]
    if kind == 1:
        return payload[:at] + draw.randbytes(draw.randrange(1, 40)) + payload[at:]
    if kind == 2:
        return draw.randbytes(draw.randrange(200))
    fields: dict[str, Any] = json.loads(payload)
    name = draw.choice([*fields, "prompt", "session_id", "tool_response"])
    odd = [None, 1e400, -(2**70), "", "\ud800", "\0" * 9, [], {}, [[[[]]]], True, "x" * 5_000, {"a": {"b": [1]}}]
    if kind == 3:
        fields.pop(name, None)
    else:
        fields[name] = draw.choice(odd)
    if kind == 5:
        fields["deep"] = json.loads("[" * 60 + "]" * 60)
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    "inputs", [60, pytest.param(int(os.environ.get("SCRUBJAY_HOOK_INPUTS", "1500")), marks=pytest.mark.slow)]
)
def test_a_hook_ends_well_and_silently_whatever_it_is_given(running: Home, inputs: int) -> None:
    draw = random.Random(7)
    recorded = [json.loads(line) for line in FIXTURES.read_text(encoding="utf-8").splitlines()]

    def ends(number: int) -> tuple[int, bytes, bytes]:
        fixture = recorded[number % len(recorded)]
        payload = mutated(json.dumps(fixture["payload"]).encode(), random.Random(seeds[number]))
        done = running.hook(fixture["host"], fixture["event"], payload)
        return done.returncode, done.stdout, done.stderr

    seeds = [draw.random() for _ in range(inputs)]
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ends, range(inputs))) == {(0, b"", b"")}
    assert running.ask("GET", "/v1/status")


# Who may


def test_the_hooks_token_opens_that_one_operation_and_no_other(running: Home) -> None:
    token = (running.data / "hook_door").read_text(encoding="utf-8").splitlines()[0]
    assert (running.data / "hook_door").stat().st_mode & 0o077 == 0

    with running.client(token) as client:
        client.call("POST", "/v1/hooks/codex", b"{}", query={"event": "Stop"})
        for method, path in (("GET", "/v1/memories"), ("GET", "/v1/events"), ("GET", "/v1/stats")):
            with pytest.raises(DeniedError):
                client.call(method, path)
        with pytest.raises(DeniedError):
            client.call("POST", "/v1/memories", {"content": "I am the person."})


def test_an_agent_cannot_deliver_what_a_host_delivers(running: Home) -> None:
    agent = running.settings.agent_token_path.read_text(encoding="ascii").strip()

    with running.client(agent) as client, pytest.raises(DeniedError):
        client.call("POST", "/v1/hooks/codex", b"{}", query={"event": "UserPromptSubmit"})


@pytest.mark.parametrize(
    ("event", "fields", "trust"),
    [
        ("PostToolUse", {"tool_name": "Bash", "tool_use_id": "u1", "tool_response": "I prefer tea"}, Trust.UNTRUSTED),
        ("Stop", {"last_assistant_message": "I prefer tea"}, Trust.AGENT),
    ],
)
async def test_a_payload_cannot_raise_its_own_trust(
    service: Application, event: str, fields: dict[str, Any], trust: Trust
) -> None:
    claims = {"trust": "user", "role": "user", "principal": "person", "type": "user_message", "source": "user"}
    payload = {"session_id": "s", "hook_event_name": event, "cwd": "/p"} | claims | fields

    await service.call(HOST, "hook", api.HookRequest(host="claude-code", data=json.dumps(payload).encode()))

    [stored] = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert stored.trust is trust


@pytest.mark.parametrize("source", ["system", "loop_wakeup", "schedule_wakeup", "poll_event"])
async def test_a_prompt_that_a_machine_wrote_is_not_the_persons(service: Application, source: str) -> None:
    payload = prompt("s", "I prefer tabs over spaces.") | {"source": source}

    response = await service.call(HOST, "hook", api.HookRequest(host="claude-code", data=json.dumps(payload).encode()))

    assert response.dropped == "machine_prompt"
    assert not (await service.call(PERSON, "events", api.EventsRequest())).events


@pytest.mark.parametrize("principal", [Principal.AGENT, Principal.IMPORTER])
async def test_only_the_person_and_a_host_may_call_it(service: Application, principal: Principal) -> None:
    with pytest.raises(DeniedError):
        await service.call(Caller(principal=principal), "hook", api.HookRequest(host="codex", data=b"{}"))


# Recursion


def test_nothing_is_sent_for_an_agent_that_scrubjay_started(running: Home) -> None:
    running.hook("claude-code", "UserPromptSubmit", prompt("ours", "Summarise."), SCRUBJAY_HOOK="off")

    assert not running.events("ours")
    assert not running.spooled()


@pytest.fixture
def child() -> Iterator[int]:
    """The number of a process that this one started."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.communicate(b"\n")


async def test_nothing_is_stored_of_a_process_that_the_daemon_started(service: Application, child: int) -> None:
    data = json.dumps(prompt("s", "Summarise.")).encode()

    ours = await service.call(HOST, "hook", api.HookRequest(host="codex", data=data, process=child))
    theirs = await service.call(HOST, "hook", api.HookRequest(host="codex", data=data, process=os.getppid()))

    assert (ours.dropped, ours.accepted) == (OURS, 0)
    assert theirs.accepted == 1


@pytest.mark.parametrize("pid", [0, -1, 2**31 - 1, 2**80])
def test_a_number_that_is_no_process_descends_from_nothing(pid: int) -> None:
    assert not descends(pid, os.getpid())


# The spool


async def test_what_cannot_be_stored_is_put_aside_and_the_rest_is_stored(
    service: Application, store_path: Path
) -> None:
    folder = store_path.parent
    good = spool.Report(host="claude-code", event="", sent=1, project="/p", payload=prompt("s", "Keep this."))
    spool.write(folder, good)
    for name, text in (
        ("0-a", "{"),
        ("0-b", "[]"),
        ("0-c", '{"host": " ", "event": "", "sent": 1, "project": "", "payload": {}}'),
    ):
        (folder / "spool" / f"{name}.json").write_text(text, encoding="utf-8")

    await service.call(PERSON, "run_job", api.JobRequest(name="spool"))

    assert [event.text for event in (await service.call(PERSON, "events", api.EventsRequest())).events] == [
        "Keep this."
    ]
    assert sorted(path.name for path in (folder / "spool").iterdir()) == ["0-a.refused", "0-b.refused", "0-c.refused"]


async def test_a_file_that_was_stored_and_not_removed_is_not_stored_again(
    service: Application, store_path: Path
) -> None:
    report = spool.Report(
        host="codex", event="UserPromptSubmit", sent=1, project="/p", payload={"session_id": "s", "prompt": "Once."}
    )
    path = spool.write(store_path.parent, report)
    kept = path.read_bytes()
    for _ in range(2):
        path.write_bytes(kept)
        await service.call(PERSON, "run_job", api.JobRequest(name="spool"))

    assert len((await service.call(PERSON, "events", api.EventsRequest())).events) == 1
    assert not spool.waiting(store_path.parent)


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000])
async def test_what_is_no_payload_is_refused(service: Application, data: bytes) -> None:
    with pytest.raises(InvalidError):
        await service.call(HOST, "hook", api.HookRequest(host="codex", data=data))


async def test_the_last_words_of_copilot_are_read_from_its_transcript(service: Application, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines: list[dict[str, Any]] = [
        {"type": "user.message", "data": {"content": "Run it."}},
        {"type": "assistant.message", "id": "a1", "data": {"content": "It runs on port 8080."}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    payload = {
        "sessionId": "c1",
        "timestamp": 1_795_165_206_000,
        "cwd": "/p",
        "transcriptPath": str(path),
        "stopReason": "end_turn",
    }

    await service.call(
        HOST, "hook", api.HookRequest(host="copilot", event="agentStop", data=json.dumps(payload).encode())
    )

    [event] = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert (event.text, event.trust, event.session_id) == ("It runs on port 8080.", Trust.AGENT, "c1")


@pytest.mark.slow
async def test_words_that_copilot_writes_after_it_told_of_them_are_stored_too(
    service: Application, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"type": "user.message", "data": {"content": "Run it."}}) + "\n", encoding="utf-8")
    payload = {"sessionId": "c2", "timestamp": 1_795_165_206_000, "cwd": "/p", "transcriptPath": str(path)}
    request = api.HookRequest(host="copilot", event="agentStop", data=json.dumps(payload).encode())

    first = await service.call(HOST, "hook", request)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "assistant.message", "id": "a1", "data": {"content": "It runs."}}) + "\n")

    assert first.accepted == 0
    for _ in range(600):
        if (await service.call(PERSON, "events", api.EventsRequest())).events:
            break
        await asyncio.sleep(0.05)
    [event] = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert (event.text, event.trust) == ("It runs.", Trust.AGENT)
