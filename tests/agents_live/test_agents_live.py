"""Each real agent, set up by `scrubjay setup`, beside a real daemon: what it keeps, what it is given, what is left."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents_live import report, stub_model
from agents_live.agents import AGENTS, PACKAGES, PROGRAMS, environment
from agents_live.isolation import isolate
from agents_live.world import World, contents, world
from scrubjay.setup import codex_trust
from scrubjay.setup.hosts import CODEX

ROOT = Path(__file__).parents[2]
INSTALLED = Path(os.environ.get("SCRUBJAY_AGENTS", ROOT / ".agents-live"))
MODELS = os.environ.get("SCRUBJAY_TEST_MODELS")
pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="as the packages named here"),
]

QUESTION = (
    "Which database did we choose for the cart store? Run the command that prints the marker, and say what it printed."
)
KNOWN = "We decided to keep the cart store on SQLite in WAL mode because one writer is enough, heron-7377."
CANARY = "heron-7377"


@pytest.fixture(scope="module", autouse=True)
def alone() -> None:
    """Everything here is run in a network of its own."""
    assert INSTALLED.is_dir(), "make agents-live installs the agents first"
    isolate()


@dataclass
class Ran:
    """One agent's run: the files before, during and after, and what is in the store."""

    host: str
    world: World
    before: dict[str, bytes]
    set_up: dict[str, bytes]
    seconds: float
    events: list[dict[str, Any]]
    asked: list[dict[str, Any]]
    targets: list[str]
    after: dict[str, bytes] = field(default_factory=dict)
    removed: dict[str, bytes] = field(default_factory=dict)

    def texts(self, kind: str) -> list[str]:
        return [event["text"] for event in self.events if event["type"] == kind]


@pytest.fixture(scope="module", params=AGENTS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """An agent that was set up, run once, and removed."""
    host = request.param
    agent = AGENTS[host]
    with world(tmp_path_factory.mktemp(host), INSTALLED, Path(MODELS) if MODELS else None) as here:
        agent.prepare(here.home)
        before = contents(here.home.root)
        done = here.scrubjay("setup", host)
        set_up = contents(here.home.root)
        here.scrubjay("daemon", "start")
        here.scrubjay("add", KNOWN, "--type", "decision", "--project", str(here.home.project))
        here.warm()
        seconds = here.run(agent, QUESTION)
        one = Ran(
            host=host,
            world=here,
            before=before,
            set_up=set_up,
            seconds=seconds,
            events=here.settled(stub_model.ANSWER),
            asked=[asked for asked in here.asked() if asked.get("tools")],
            targets=[str(Path(file["path"]).relative_to(here.home.root)) for file in done["hosts"][0]["files"]],
        )
        one.after = contents(here.home.root)
        here.scrubjay("setup", "--remove", host)
        one.removed = contents(here.home.root)
        report.ran(host, seconds=seconds, events=len(one.events), requests=len(one.asked), memory=first_memory(one))
        yield one


def first_memory(ran: Ran) -> str:
    return next((block for asked in ran.asked for block in asked["memory"] if CANARY in block), "")


def test_setup_writes_what_the_host_reads(ran: Ran) -> None:
    assert ran.targets
    assert all(ran.set_up[path] != ran.before.get(path) for path in ran.targets)
    report.passed(ran.host, "setup")


def test_what_was_said_is_stored_once(ran: Ran) -> None:
    asked = [text for text in ran.texts("user_message") if text.strip('"') == QUESTION]
    answered = [text for text in ran.texts("assistant_message") if text == stub_model.ANSWER]
    printed = [text for text in ran.texts("tool_result") if "scrubjay-live-42" in text]

    assert (len(asked), len(answered), len(printed)) == (1, 1, 1), [(e["type"], e["text"]) for e in ran.events]
    assert {event["agent"] for event in ran.events} == {ran.host}
    assert len({event["session_id"] for event in ran.events}) == 1
    report.passed(ran.host, "stored once")


def test_what_memory_knows_reaches_the_model_unasked(ran: Ran) -> None:
    first = ran.asked[0]

    assert any(CANARY in block for block in first["memory"]), first
    report.passed(ran.host, "context reached the model")


def test_what_memory_said_is_not_stored_as_if_it_had_been_said(ran: Ran) -> None:
    assert [event for event in ran.events if CANARY in event["text"]] == []
    report.passed(ran.host, "echo not stored")


def test_the_memory_tools_are_offered_and_answer(ran: Ran) -> None:
    offered = {tool for asked in ran.asked for tool in asked["tools"]}

    assert [tool for tool in offered if tool.endswith("memory_search")], offered
    report.passed(ran.host, "MCP tools")


def test_removing_puts_the_bytes_back(ran: Ran) -> None:
    for path in ran.targets:
        if ran.after.get(path) == ran.set_up[path]:
            assert ran.removed.get(path) == ran.before.get(path), path
        else:  # the host wrote into it too: then only what is ours is gone
            assert b"scrubjay" not in ran.removed[path].replace(str(ran.world.home.root).encode(), b""), path
            assert json.loads(ran.removed[path]) == without_ours(json.loads(ran.after[path])), path
    report.passed(ran.host, "removed")


def without_ours(value: dict[str, Any]) -> dict[str, Any]:
    servers = {name: server for name, server in value.get("mcpServers", {}).items() if name != "scrubjay"}
    return {key: inner for key, inner in value.items() if key != "mcpServers"} | (
        {"mcpServers": servers} if servers else {}
    )


def test_the_report_names_the_versions_that_are_installed() -> None:
    assert {name: version(name) for name in PACKAGES} == {
        name: spec.rpartition("@")[2] for name, spec in PACKAGES.items()
    }


def version(name: str) -> str:
    package = PACKAGES[name].rpartition("@")[0]
    found = json.loads((INSTALLED / name / "node_modules" / package / "package.json").read_text())
    return str(found["version"])


def test_codex_itself_says_which_hooks_it_skips_until_they_are_approved(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    codex = AGENTS["codex"]
    with world(tmp_path_factory.mktemp("trust"), INSTALLED, None) as here:
        codex.prepare(here.home)
        here.scrubjay("setup", "codex")
        program, *_ = codex.command(here.home, "")

        skipped = codex_trust.untrusted(program, here.home.project, environment(here.home))

    assert len(skipped) == len(CODEX)


def test_claude_code_takes_the_plugin_for_valid(tmp_path: Path) -> None:
    claude = INSTALLED / "claude-code/node_modules" / PROGRAMS["claude-code"][0]
    for folder in (ROOT / "plugins", ROOT / "plugins/claude-code"):
        ended = subprocess.run(
            [str(claude), "plugin", "validate", str(folder)],
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout


# The story.

DECISION = (
    "We decided to move the invoice renderer from wkhtmltopdf to WeasyPrint because wkhtmltopdf is not maintained any more. "
    "Please note it in the README."
)
LATER = "Add page numbers to the invoice renderer."
DAY_MS = 86_400_000


def test_what_one_agent_was_told_another_is_given_the_next_day(tmp_path_factory: pytest.TempPathFactory) -> None:
    claude, codex = AGENTS["claude-code"], AGENTS["codex"]
    with world(tmp_path_factory.mktemp("story"), INSTALLED, Path(MODELS) if MODELS else None) as here:
        for agent in (claude, codex):
            agent.prepare(here.home)
            here.scrubjay("setup", agent.host)
        here.scrubjay("daemon", "start")

        here.run(claude, DECISION, PYTHONPATH=str(Path(__file__).parent / "yesterday"))
        here.scrubjay("jobs", "run", "learn")
        learned = here.scrubjay("list")["entries"]
        sent = len(here.asked())
        here.run(codex, LATER)

        given = [block for asked in here.asked()[sent:] if asked.get("tools") for block in asked["memory"]]
        sessions = {event["agent"]: event for event in here.events() if event["type"] == "user_message"}
        report.story(DECISION, LATER, given[0] if given else "")
        assert [entry for entry in learned if "WeasyPrint" in entry["memory"]["content"]]
        assert [block for block in given if "WeasyPrint" in block], (given, here.outputs[-1][-1500:])
        assert sessions["codex"]["ts"] - sessions["claude-code"]["ts"] >= DAY_MS
