"""Each real agent as a Writer: what comes back, what is counted, and that neither the agent nor scrubjay keeps any of it."""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents_live import report
from agents_live.agents import AGENTS, PROGRAMS, Home, environment
from agents_live.isolation import isolate
from agents_live.world import World, contents, world
from scrubjay.policy import WriterPolicy
from scrubjay.service.application import Application
from scrubjay.settings import WRITER_AGENTS, load
from scrubjay.writer import configured
from scrubjay.writer.agents import AGENTS as WRITERS
from scrubjay.writer.port import Prompt, Written

ROOT = Path(__file__).parents[2]
INSTALLED = Path(os.environ.get("SCRUBJAY_AGENTS", ROOT / ".agents-live"))
pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="as the packages named here"),
]

HOSTS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}
MARK = "magpie-4711"
ANSWER = "@observe project: the walnut-0815 stands in the yard"
PROMPT = Prompt(
    system="You are the observer-2342.", text=f"The {MARK} nests in the walnut tree. " * 400, max_output_tokens=700
)
QUESTION = "Say what the weather is like."
COUNTED = (4321, 87)

TELLING = (MARK, "observer-2342", "walnut-0815")
"""Words of the prompt, of its instructions and of the answer."""

FOLDER = "scrubjay-writer-"

SESSIONS = {
    "claude": (".claude/projects", ".claude/sessions", ".claude/history.jsonl", ".claude/todos"),
    "codex": (".codex/sessions", ".codex/archived_sessions", ".codex/history.jsonl"),
    "gemini": (".gemini/tmp", ".gemini/history", ".gemini/projects.json"),
    "opencode": (".local/share/opencode/storage", ".local/share/opencode/opencode.db"),
}
"""Where the agents keep what was said."""


def script(texts: list[str]) -> tuple[str, int, int]:
    """Answer the Writer's prompt by its script, and everything else plainly."""
    return (ANSWER, *COUNTED) if any(MARK in text for text in texts) else ("It is fair.", 10, 5)


@pytest.fixture(scope="module", autouse=True)
def alone() -> None:
    """Everything here is run in a network of its own."""
    assert INSTALLED.is_dir(), "make agents-live installs the agents first"
    isolate()


@dataclass
class Ran:
    """One agent's run as a Writer, with the files of the home before it and after, and then as the person's agent."""

    name: str
    here: World
    before: dict[str, bytes]
    after: dict[str, bytes]
    temporary: list[str]
    written: Written
    ledger: list[tuple[object, ...]]
    asked: list[dict[str, object]]


def on_path(home: Home, name: str) -> Path:
    """Install the agent as a person has it; Codex is told of the stub model, since as a Writer it reads no config.toml."""
    *interpreter, program = PROGRAMS[HOSTS[name]]
    words = [found for word in interpreter if (found := shutil.which(word))]
    words.append(str(home.packages / HOSTS[name] / "node_modules" / program))
    more = ""
    if name == "codex":
        provider = (
            f'model_providers.stub={{name="stub",base_url="{home.model}/v1",wire_api="responses",env_key="STUB_KEY"}}'
        )
        more = shlex.join(["-c", 'model="stub-1"', "-c", 'model_provider="stub"', "-c", provider])
    folder = home.root / "bin"
    folder.mkdir()
    (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@" {more}\n')
    (folder / name).chmod(0o755)
    return folder


async def asked_of(
    store: Path, settings: dict[str, str], environ: dict[str, str]
) -> tuple[Written, list[tuple[object, ...]]]:
    chosen = configured.chosen(load(settings, {"SCRUBJAY_HOME": str(store.parent)}), environ, WriterPolicy())
    service = await Application.open(store, models_dir=store.parent / "models", model="none", writer=chosen)
    try:
        written = await service.writer.write(PROMPT, job="observe")
        ledger = await service.store.read(
            lambda q: q.fetch("select writer, input, output, estimated, outcome from writer_call")
        )
    finally:
        await service.close()
    return written, ledger


@pytest.fixture(scope="module", params=WRITER_AGENTS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """An agent with scrubjay's hooks, run as a Writer, and then as the person runs it."""
    name = request.param
    agent = AGENTS[HOSTS[name]]
    with world(tmp_path_factory.mktemp(name), INSTALLED, None, script) as here:
        agent.prepare(here.home)
        here.scrubjay("setup", agent.host)
        here.scrubjay("daemon", "start")
        here.warm()
        environ = environment(here.home) | agent.environ(here.home)
        environ["PATH"] = os.pathsep.join((str(on_path(here.home, name)), environ["PATH"]))
        settings = {"writer": name} | ({"writer_model": "gemini-2.5-flash"} if name == "gemini" else {})
        before = contents(here.home.root)
        found = set(Path(tempfile.gettempdir()).glob("scrubjay-writer-*"))
        written, ledger = asyncio.run(asked_of(here.home.root.parent / "ledger" / "memory.db", settings, environ))
        left = set(Path(tempfile.gettempdir()).glob("scrubjay-writer-*")) - found
        after = contents(here.home.root)
        asked = [one for one in here.asked() if one.get("said") == ANSWER]
        here.run(agent, QUESTION)
        yield Ran(
            name=name,
            here=here,
            before=before,
            after=after,
            temporary=sorted(map(str, left)),
            written=written,
            ledger=ledger,
            asked=asked,
        )


def test_the_answer_and_its_tokens_come_back(ran: Ran) -> None:
    assert ran.written.text.strip() == ANSWER
    assert (ran.written.input_tokens, ran.written.output_tokens, ran.written.estimated) == (*COUNTED, False)
    assert ran.ledger == [(ran.name, *COUNTED, 0, "done")]


def test_one_request_is_made_without_tools_and_with_no_more_than_is_reserved_for_it(ran: Ran) -> None:
    [asked] = ran.asked
    size = asked["bytes"]
    assert isinstance(size, int)
    extra = size - PROMPT.bytes
    report.writer(ran.name, extra=extra)

    assert set(asked["tools"]) <= {"request_user_input", "?"}  # Codex's, which asks the person; Gemini's empty list
    assert 0 < extra <= WRITERS[ran.name].framing_tokens


def test_nothing_of_it_is_left_in_the_home_or_elsewhere(ran: Ran) -> None:
    new = {path for path, data in ran.after.items() if ran.before.get(path) != data}
    sessions = [path for path in new if path.startswith(SESSIONS[ran.name])]
    telling = [path for path in new for word in TELLING if word.encode() in ran.after[path]]

    placed = [path for path in new if FOLDER.encode() in ran.after[path]]

    assert sessions == []
    assert set(placed) <= {".local/share/opencode/log/opencode.log"}  # it logs where it was started
    assert telling == []
    assert ran.temporary == []


def test_scrubjay_captures_what_the_person_asks_and_nothing_of_the_writer(ran: Ran) -> None:
    events = ran.here.settled("It is fair.")

    assert [event["text"].strip('"') for event in events if event["type"] == "user_message"] == [QUESTION]
    assert [event for event in events if MARK in event["text"] or "walnut-0815" in event["text"]] == []
