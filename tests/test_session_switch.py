"""`SCRUBJAY_USE_MEMORY=0`: of a session that is started with it nothing is stored, whichever way it comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from hook_process import Home, prompt
from scrubjay import api, spool
from scrubjay.api.caller import HOST, PERSON
from scrubjay.policy import MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.writer.budget import Caps
from service_calls import NOTHING, NOW, Opener, listed
from writer_server import POLICY, ModelServer, model_server

pytestmark = pytest.mark.anyio

TOLD = "I always deploy the harbour crane from the branch release, never from main."
MINUTE = 60_000


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        running.answer = lambda _: f"@topic deploy\n@observe user\n{TOLD}"
        yield running


def start(session: str) -> dict[str, Any]:
    return {"session_id": session, "hook_event_name": "SessionStart", "source": "startup", "cwd": "/home/ana/shop"}


def stop(session: str, text: str) -> dict[str, Any]:
    payload = {"session_id": session, "hook_event_name": "Stop", "prompt_id": "p1", "cwd": "/home/ana/shop"}
    return payload | {"last_assistant_message": text}


def line(session: str, uuid: str, text: str, at: int) -> str:
    """Return a line of a transcript of Claude Code."""
    stamp = datetime.fromtimestamp(at / 1000, UTC).isoformat().replace("+00:00", "Z")
    told = {"type": "user", "uuid": uuid, "sessionId": session, "cwd": "/home/ana/shop", "timestamp": stamp}
    return json.dumps(told | {"message": {"role": "user", "content": text}})


async def told(service: Application, payload: dict[str, Any], *, at: int, use_memory: bool) -> api.HookResponse:
    request = api.HookRequest(
        host="claude-code", data=json.dumps(payload).encode(), sent=at, inject=True, use_memory=use_memory
    )
    answer: api.HookResponse = await service.call(HOST, "hook", request)
    return answer


async def test_nothing_of_a_session_is_stored_or_observed_while_memory_is_off_nor_read_from_its_transcript(
    server: ModelServer, opened: Opener
) -> None:
    now = [NOW]
    caps = Caps(daily=1_000_000, monthly=1_000_000)
    policy = MemoryPolicy(writer=POLICY)
    async with opened(writer=server.chosen(), caps=caps, policy=policy, now=lambda: now[0]) as service:
        began = await told(service, start("s"), at=NOW, use_memory=False)
        now[0] = NOW + MINUTE
        asked = await told(service, prompt("s", TOLD), at=now[0], use_memory=False)
        answered = await told(service, stop("s", "Then from release."), at=now[0], use_memory=False)
        off = (await service.call(PERSON, "status", NOTHING)).notes
        lines = [line("s", "u1", TOLD, NOW - 2_000), line("s", "u2", TOLD + " Please.", NOW + MINUTE)]
        transcript = api.ImportRequest(name="s.jsonl", data="\n".join(lines).encode(), format="claude-code")
        read = await service.call(PERSON, "import", transcript)
        await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=20_000))

        assert "memory is off" in json.loads(began.output)["systemMessage"]
        assert (asked.accepted, asked.dropped, asked.output) == (0, "memory_off", "")
        assert answered.dropped == "memory_off"
        assert any("1 of claude-code" in warning for warning in off)
        assert (read.events, {one.reason: one.count for one in read.skipped}["memory_off"]) == (0, 2)
        assert not (await service.call(PERSON, "events", api.EventsRequest())).events
        assert not (await service.call(PERSON, "sessions", NOTHING)).sessions
        assert (await listed(service), server.asked) == ([], [])

        now[0] = NOW + 2 * MINUTE  # resumed without the switch: from here on it is stored, and what was off stays away
        on = await told(service, prompt("s", "Which branch?", "p2"), at=now[0], use_memory=True)
        again = await service.call(PERSON, "import", transcript)
        assert (on.accepted, again.events) == (1, 0)
        assert not [one for one in (await service.call(PERSON, "status", NOTHING)).notes if "memory is off" in one]
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert (await service.call(PERSON, "import", transcript)).events == 0


async def test_an_event_that_waited_from_before_does_not_switch_memory_on_again(opened: Opener) -> None:
    async with opened(now=lambda: NOW + MINUTE) as service:
        await told(service, start("s"), at=NOW, use_memory=False)
        late = await told(service, prompt("s", "Said before.", "p0"), at=NOW - MINUTE, use_memory=True)
        transcript = line("s", "u1", TOLD, NOW + MINUTE).encode()
        request = api.ImportRequest(name="s.jsonl", data=transcript, format="claude-code")
        read = await service.call(PERSON, "import", request)
        asked = await told(service, prompt("s", TOLD), at=NOW + 1, use_memory=False)
        other = await told(service, prompt("other", "Not switched."), at=NOW, use_memory=True)
        events = (await service.call(PERSON, "events", api.EventsRequest())).events

    assert (late.accepted, read.events, asked.accepted, other.accepted) == (1, 0, 0, 1)
    assert sorted(event.text for event in events) == ["Not switched.", "Said before."]


@pytest.mark.slow
def test_a_person_switches_memory_off_for_an_agent_by_its_environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Home(tmp_path_factory.mktemp("switch"))
    home.hook("claude-code", "SessionStart", start("away"), SCRUBJAY_USE_MEMORY="0")
    home.hook("claude-code", "UserPromptSubmit", prompt("away", TOLD), SCRUBJAY_USE_MEMORY="off")
    for path in home.until_spooled(2):
        kept = spool.read(path, now=NOW)
        assert (kept.payload, kept.use_memory) == ({"session_id": "away"}, False)
        assert b"crane" not in path.read_bytes()

    with home.daemon():
        assert home.drained()
        shown = home.hook("inject", "claude-code", "SessionStart", start("up"), SCRUBJAY_USE_MEMORY="0")
        for value in ("0", "false", " No "):
            home.hook("claude-code", "UserPromptSubmit", prompt("up", TOLD, value), SCRUBJAY_USE_MEMORY=value)
        home.hook("claude-code", "UserPromptSubmit", prompt("away", "Late.", "p9"), SCRUBJAY_USE_MEMORY="0")
        home.hook("claude-code", "UserPromptSubmit", prompt("on", TOLD), SCRUBJAY_USE_MEMORY="1")
        home.until_stored("on", 1)
        notes = home.ask("GET", "/v1/status")["notes"]

        assert "memory is off in this session" in json.loads(shown.stdout)["systemMessage"]
        assert (home.events("up"), home.events("away")) == ([], [])
        assert any("2 of claude-code" in note for note in notes)
        home.hook("claude-code", "UserPromptSubmit", prompt("up", "Now it is on.", "p4"))
        assert [event.text for event in home.until_stored("up", 1)] == ["Now it is on."]
    held = b"".join(path.read_bytes() for path in home.data.rglob("*") if path.is_file())
    assert b"Late." not in held
    assert b"Now it is on." in held
