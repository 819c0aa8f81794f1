"""Agents as Writers: programs that stand in for them here; the real ones are run by `make agents-live`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest

from scrubjay.policy import MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.settings import WRITER_AGENTS, load
from scrubjay.writer import configured, headless
from scrubjay.writer.agents import AGENTS
from scrubjay.writer.budget import Caps
from scrubjay.writer.port import NotReachedError, Prompt
from scrubjay_shared.errors import DeniedError, NotFoundError, ScrubjayError, TooManyError, UnavailableError
from writer_server import with_policy

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="the programs here are scripts")]

Opener = Callable[..., AbstractAsyncContextManager[Application]]
PROMPT = Prompt(system="Say what is so.", text="The magpie nests in the walnut tree.", max_output_tokens=50)
SAID = "It is written."

CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": SAID,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "modelUsage": {
        "sonnet": {"inputTokens": 30, "cacheReadInputTokens": 9, "cacheCreationInputTokens": 1, "outputTokens": 7},
        "haiku": {"inputTokens": 2, "outputTokens": 1},
    },
}
CODEX = [
    {"type": "thread.started", "thread_id": "x"},
    {"type": "item.completed", "item": {"type": "error", "message": "no metadata"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": SAID}},
    {"type": "turn.completed", "usage": {"input_tokens": 42, "cached_input_tokens": 40, "output_tokens": 8}},
]
GEMINI = {
    "response": SAID,
    "stats": {"models": {"flash": {"tokens": {"prompt": 42, "candidates": 5, "thoughts": 3, "tool": 0, "cached": 4}}}},
}
OPENCODE = [
    {"type": "text", "part": {"text": SAID}},
    {
        "type": "step_finish",
        "part": {"tokens": {"input": 32, "output": 5, "reasoning": 3, "cache": {"read": 9, "write": 1}}},
    },
]
PRINTED = {
    "claude": json.dumps(CLAUDE),
    "codex": "\n".join(map(json.dumps, CODEX)),
    "gemini": f"Warning: no colours\n{json.dumps(GEMINI, indent=1)}",
    "opencode": "\n".join(map(json.dumps, OPENCODE)),
}


class Machine:
    """A machine on which programs of the agents' names are installed. Each notes how it was run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        self.environ = {
            "PATH": os.pathsep.join((str(self.bin), "/usr/bin", "/bin")),
            "HOME": str(root / "person"),
            "CLAUDECODE": "1",
            "OWN": "kept",
        }

    def install(self, name: str, then: str) -> None:
        """Install a program that keeps what it was given, and then runs some lines of shell."""
        note = self.root / "run"
        (self.bin / name).write_text(
            f'#!/bin/sh\nmkdir -p {note}\ncat > {note}/stdin\nprintf "%s\\n" "$@" > {note}/arguments\n'
            f"env > {note}/environ\npwd > {note}/cwd\nls -A > {note}/listing\nls -ld .. > {note}/mode\n{then}\n"
        )
        (self.bin / name).chmod(0o755)

    def prints(self, name: str, text: str, *, code: int = 0) -> None:
        (self.root / "answer").write_text(text)
        self.install(name, f"cat {self.root}/answer\nexit {code}")

    def until_it_runs(self) -> None:
        until = time.monotonic() + 30
        while not (self.root / "pids").exists():
            assert time.monotonic() < until, "the program was not started"
            time.sleep(0.01)

    def noted(self, what: str) -> str:
        return (self.root / "run" / what).read_text()

    def options(self, name: str, **numbers: Any) -> dict[str, Any]:
        policy = with_policy(**numbers)
        chosen = configured.chosen(load({"writer": name}, {"SCRUBJAY_HOME": "/nowhere"}), self.environ, policy)
        caps = Caps(daily=1_000_000, monthly=1_000_000)
        return {"writer": chosen, "caps": caps, "policy": MemoryPolicy(writer=policy)}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def last_row(service: Application) -> tuple[Any, ...]:
    return (
        await service.store.read(
            lambda q: q.fetch("select model, input, output, estimated, outcome from writer_call order by n desc")
        )
    )[0]


def test_every_agent_that_can_be_set_is_known() -> None:
    assert set(AGENTS) == set(WRITER_AGENTS) == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
async def test_an_agent_answers_from_an_empty_folder_without_hooks_and_leaves_nothing(
    name: str, machine: Machine, opened: Opener
) -> None:
    machine.prints(name, PRINTED[name])
    async with opened(**machine.options(name)) as service:
        written = await service.writer.write(PROMPT, job="observe")
        row = await last_row(service)

    model = {"claude": "sonnet", "gemini": "flash"}.get(name, name)
    assert (written.text, written.input_tokens, written.output_tokens, written.estimated) == (SAID, 42, 8, False)
    assert row == (model, 42, 8, 0, "done")
    environ = machine.noted("environ").splitlines()
    assert "SCRUBJAY_HOOK=off" in environ
    assert "OWN=kept" in environ
    assert not [line for line in environ if line.startswith("CLAUDECODE=")]
    assert "magpie" in machine.noted("stdin")
    assert "magpie" not in machine.noted("arguments") + machine.noted("environ")
    assert PROMPT.system not in machine.noted("arguments") + machine.noted("environ")
    assert machine.noted("listing") == ""
    assert machine.noted("mode").startswith("drwx------")
    assert not Path(machine.noted("cwd").strip()).parent.exists()


NONSENSE = ("", "{" * 5_000, '{"result": 4, "response": 4}', '{"type": "text", "part": 4}\n{"a"')


@pytest.mark.parametrize("name", PRINTED)
async def test_nonsense_from_an_agent_is_an_error_and_counted(name: str, machine: Machine, opened: Opener) -> None:
    async with opened(**machine.options(name, failures=1_000)) as service:
        for printed in NONSENSE:
            machine.prints(name, printed)
            with pytest.raises(UnavailableError, match="ended without an answer") as caught:
                await service.writer.write(PROMPT, job="observe")
            assert caught.value.hint
            row = await last_row(service)
            assert row[1:] == (PROMPT.bytes + AGENTS[name].framing_tokens, 50, 1, "failed")


async def test_an_agent_that_fails_after_it_has_counted_is_counted_as_it_says(machine: Machine, opened: Opener) -> None:
    machine.prints("claude", json.dumps(CLAUDE | {"is_error": True, "subtype": "error_max_turns"}), code=1)
    async with opened(**machine.options("claude")) as service:
        with pytest.raises(UnavailableError, match="exit code 1"):
            await service.writer.write(PROMPT, job="observe")

        assert (await last_row(service))[1:3] == (42, 8)


@pytest.mark.parametrize(("status", "kind"), [(401, DeniedError), (403, DeniedError), (429, TooManyError)])
async def test_what_the_agents_own_server_refuses_costs_nothing(
    status: int, kind: type[ScrubjayError], machine: Machine, opened: Opener
) -> None:
    machine.prints("claude", json.dumps({"is_error": True, "api_error_status": status, "result": "magpie"}), code=1)
    async with opened(**machine.options("claude", attempts=1)) as service:
        with pytest.raises(kind) as caught:
            await service.writer.write(PROMPT, job="observe")

        assert (await last_row(service))[1:4] == (0, 0, 0)
    assert "magpie" not in caught.value.message + caught.value.hint


async def test_an_agent_that_is_not_installed_costs_nothing(machine: Machine, opened: Opener) -> None:
    async with opened(**machine.options("codex")) as service:
        with pytest.raises(NotFoundError, match="codex is not installed"):
            await service.writer.write(PROMPT, job="observe")

        assert (await last_row(service))[1:4] == (0, 0, 0)


def started(machine: Machine) -> list[int]:
    return [int(word) for word in (machine.root / "pids").read_text().split()]


LINGERS = "sleep 60 & echo $$ $! > {root}/pids.new; mv {root}/pids.new {root}/pids; {then}"


async def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(machine: Machine, opened: Opener) -> None:
    machine.install("claude", LINGERS.format(root=machine.root, then="wait"))
    async with opened(**machine.options("claude", answer_seconds=0.3)) as service:
        with pytest.raises(UnavailableError, match=r"within 0\.3 seconds"):
            await service.writer.write(PROMPT, job="observe")

        assert (await last_row(service))[-1] == "failed"
    assert left_running(machine) == []


async def test_what_an_agent_leaves_running_is_ended_after_its_answer(machine: Machine, opened: Opener) -> None:
    (machine.root / "answer").write_text(PRINTED["claude"])
    then = f"cat {machine.root}/answer; exec >&-"
    machine.install("claude", LINGERS.replace("sleep 60 &", "sleep 60 >&- &").format(root=machine.root, then=then))
    async with opened(**machine.options("claude")) as service:
        assert (await service.writer.write(PROMPT, job="observe")).text == SAID

    assert left_running(machine) == []


async def test_a_run_that_is_called_off_is_ended_and_stays_counted(machine: Machine, opened: Opener) -> None:
    machine.install("claude", LINGERS.format(root=machine.root, then="wait"))
    async with opened(**machine.options("claude", answer_seconds=30)) as service:
        call = asyncio.ensure_future(service.writer.write(PROMPT, job="observe"))
        await asyncio.to_thread(machine.until_it_runs)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert (await last_row(service))[-1] == "open"
    assert left_running(machine) == []


async def test_an_agent_that_prints_without_end_is_stopped(machine: Machine, opened: Opener) -> None:
    machine.install("claude", "yes it is written")
    async with opened(**machine.options("claude")) as service:
        with pytest.raises(UnavailableError, match="printed more than"):
            await service.writer.write(PROMPT, job="observe")


async def test_gemini_is_given_the_persons_login_and_nothing_else_of_its_home(machine: Machine, opened: Opener) -> None:
    person = machine.root / "person/.gemini"
    person.mkdir(parents=True)
    (person / "oauth_creds.json").write_text("{}")
    (person / "settings.json").write_text('{"hooks": {}}')
    machine.prints("gemini", PRINTED["gemini"])
    machine.install(
        "gemini",
        f"ls -A $GEMINI_CLI_HOME/.gemini > {machine.root}/run/home\ncp $GEMINI_CLI_HOME/.gemini/settings.json"
        f" {machine.root}/run/settings\ncat {machine.root}/answer",
    )
    async with opened(**machine.options("gemini")) as service:
        await service.writer.write(PROMPT, job="observe")

    settings = json.loads(machine.noted("settings"))
    assert machine.noted("home").split() == ["oauth_creds.json", "settings.json"]
    assert settings["hooksConfig"] == {"enabled": False}
    assert settings["security"]["auth"]["selectedType"] == "oauth-personal"
    assert (person / "oauth_creds.json").read_text() == "{}"


def left_running(machine: Machine) -> list[int]:
    """Return which of the processes that were started still run, once those that were killed had time to end."""
    until = time.monotonic() + 5
    while (left := [pid for pid in started(machine) if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.01)
    return left


def alive(pid: int) -> bool:
    """Say whether a process runs; one that waits for its parent to see its end does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("refused", [("symlink_to",), ("symlink_to", "hardlink_to")])
def test_a_login_reaches_the_agent_where_links_may_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...]
) -> None:
    """Windows lets few make symbolic links, and hard ones on one disk only."""

    def denied(*_: object) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    for way in refused:
        monkeypatch.setattr(Path, way, denied)
    (tmp_path / "login.json").write_text("token")

    headless._lead(tmp_path / "link", tmp_path / "login.json")

    assert (tmp_path / "link").read_text() == "token"


def test_a_login_that_cannot_be_given_to_the_agent_is_an_error_of_the_writer(tmp_path: Path) -> None:
    with pytest.raises(NotReachedError, match="cannot be given to the agent"):
        headless._lead(tmp_path / "nowhere" / "link", tmp_path / "login.json")


CUT = {
    "claude": json.dumps(CLAUDE | {"stop_reason": "max_tokens"}),
    "codex": "\n".join(map(json.dumps, [*CODEX[:-1], {"type": "turn.failed", "error": {"message": "magpie"}}])),
    "opencode": "\n".join(
        json.dumps(one | {"part": one["part"] | {"reason": "length"}} if one["type"] == "step_finish" else one)
        for one in OPENCODE
    ),
}


@pytest.mark.parametrize("name", CUT)
async def test_an_answer_that_an_agent_did_not_bring_to_its_end_is_a_failure(
    name: str, machine: Machine, opened: Opener
) -> None:
    machine.prints(name, CUT[name])
    async with opened(**machine.options(name)) as service:
        with pytest.raises(UnavailableError, match=r"cut off|without an answer") as caught:
            await service.writer.write(PROMPT, job="observe")
        assert (await last_row(service))[-1] == "failed"
    assert "magpie" not in caught.value.message


async def test_an_agent_that_gave_up_and_counted_nothing_costs_nothing(machine: Machine, opened: Opener) -> None:
    machine.prints("claude", "unknown option --effort", code=1)
    async with opened(**machine.options("claude")) as service:
        with pytest.raises(UnavailableError, match="exit code 1"):
            await service.writer.write(PROMPT, job="observe")
        assert (await last_row(service))[1:] == (0, 0, 0, "failed")
