"""`scrubjay writer`: what is found, what is told before it is on, the test call, and what is written when."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_shell import Shell
from scrubjay import accounts, api, settings
from scrubjay.accounts import Accounts
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.cli import writer_choices
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.writer.budget import Caps
from scrubjay.writer.port import Prompt
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.records import EventType
from service_calls import NOTHING, NOW, Opener, ingest, said
from writer_server import KEY, POLICY, Fault, ModelServer, model_server

pytestmark = pytest.mark.anyio

SAYS = "It listens on port 9417."
TAGS = {
    "models": [
        {"name": "qwen3:8b", "details": {"family": "qwen3"}},
        {"name": "nomic-embed-text:latest", "details": {"family": "nomic-bert"}},
        {"name": "gpt-oss:120b-cloud", "remote_host": "https://ollama.com:443"},
    ]
}
CONFIG = '# mine\nport = 0 # any\nwriter = "none"  # not yet\nlog_level = "info"\n'


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        running.answer = lambda _: SAYS
        running.lists["/api/tags"] = TAGS
        yield running


@pytest.fixture
def here(shell: Shell, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A machine with an Ollama, no agent, no key, and a config file with comments."""
    for variable, _, _ in writer_choices.KEYS.values():
        monkeypatch.delenv(variable, raising=False)
    (shell.home.parent / "bin").mkdir()
    monkeypatch.setenv("PATH", str(shell.home.parent / "bin"))
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setattr(writer_choices, "SERVERS", {})
    shell.home.mkdir(exist_ok=True)
    config(shell).write_text(CONFIG, encoding="utf-8")
    return shell


def config(shell: Shell) -> Path:
    return shell.home / "config.toml"


def program(shell: Shell, name: str, then: str) -> None:
    path = shell.home.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n/bin/cat > /dev/null\n{then}\n", encoding="utf-8")
    path.chmod(0o755)


def named(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {choice["name"]: choice for choice in report["choices"]}


def ledger(shell: Shell) -> list[tuple[str, int, int]]:
    rows = shell.json("cost", "--by", "job")["rows"]
    return [(row["job"], row["calls"], row["failed"]) for row in rows]


# What is found


def test_what_is_found_is_listed_with_where_text_would_go_and_who_pays(
    here: Shell, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(here, "claude", "exit 1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with model_server() as other:
        other.lists["/v1/models"] = {"object": "list", "data": [{"id": "gemma"}, {"id": "text-embedding-nomic"}]}
        monkeypatch.setattr(writer_choices, "SERVERS", {"llama.cpp": other.server_address[1]})
        report = here.json("writer")

    found = named(report)
    assert [*found] == ["ollama", "llama.cpp", "ollama-cloud", "claude", "openai"]
    assert {name: choice["models"] for name, choice in found.items()} == {
        "ollama": ["qwen3:8b"],
        "llama.cpp": ["gemma"],
        "ollama-cloud": ["gpt-oss:120b-cloud"],
        "claude": ["haiku"],
        "openai": [],
    }
    assert {name: (choice["leaves"], choice["paid_by"]) for name, choice in found.items()} == {
        "ollama": (False, "nobody"),
        "llama.cpp": (False, "nobody"),
        "ollama-cloud": (True, "plan"),
        "claude": (True, "plan"),
        "openai": (True, "key"),
    }
    assert found["openai"]["key_env"] == "OPENAI_API_KEY"
    assert KEY not in json.dumps(report), "a key is known by its name alone"
    assert server.asked == [], "no model was asked anything"


@pytest.mark.parametrize("answer", [None, {"data": "no"}, {"models": [{"name": 3}, "x"]}, ["x"]])
def test_what_is_no_server_of_models_is_not_listed(here: Shell, server: ModelServer, answer: object) -> None:
    server.lists["/api/tags"] = answer

    assert here.json("writer", "find")["choices"] == []
    _, shown, _ = here.run("--text", "writer")
    assert "found here: nothing" in shown


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("", 11434),
        ("0.0.0.0:5", 5),
        ("http://localhost:6/", 6),
        ("127.0.0.1", 11434),
        ("other:7", 11434),
        (":99999", 11434),
    ],
)
def test_ollama_is_looked_for_where_it_listens_on_this_machine(host: str, port: int) -> None:
    assert writer_choices._ollama_port({"OLLAMA_HOST": host}) == port


def test_no_line_is_wider_than_the_window(here: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    program(here, "claude", "exit 1")
    for columns in (60, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        _, shown, _ = here.run("--text", "writer")
        assert max(map(len, shown.splitlines())) <= columns
        assert "scrubjay writer on ollama" in shown


# Turning it on


def test_it_is_tested_with_one_call_and_turned_on_and_the_file_keeps_its_comments(
    here: Shell, server: ModelServer
) -> None:
    config(here).chmod(0o644)

    code, out, told = here.run("writer", "on", "ollama", "--yes")

    report = json.loads(out)
    assert code == 0
    assert (report["status"]["writer"], report["status"]["model"], report["status"]["leaves"]) == (
        "openai",
        "qwen3:8b",
        False,
    )
    assert (report["trial"]["answer"], report["daemon"]) == (SAYS, "stopped")
    [asked] = server.asked
    assert "crane server" in asked.text
    assert ledger(here) == [("trial", 1, 0)]
    assert config(here).read_text(encoding="utf-8") == (
        '# mine\nport = 0 # any\nwriter = "openai"  # not yet\nlog_level = "info"\n'
        f'writer_url = "{server.url}/v1"\nwriter_model = "qwen3:8b"\n'
    )
    assert stat.S_IMODE(config(here).stat().st_mode) == 0o644
    for words in ("what was said to your agents", "Redaction", "stays on this machine", "200,000 tokens a day", SAYS):
        assert words in " ".join(told.split())


def test_without_a_yes_nobody_is_asked_and_nothing_is_written(here: Shell, server: ModelServer) -> None:
    code, error = here.error("writer", "on", "ollama")

    assert (code, error["code"]) == (2, "invalid")
    assert "what was said to your agents" in error["message"]
    assert "--yes" in error["hint"]
    assert server.asked == []
    assert config(here).read_text(encoding="utf-8") == CONFIG


@pytest.mark.parametrize("answer", ["n", "", "y"])
def test_a_person_is_asked_after_the_test(
    here: Shell, server: ModelServer, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr("scrubjay.cli.agreeing.can_ask", lambda: True)
    monkeypatch.setattr("scrubjay.cli.commands.writer.can_ask", lambda: True)

    code, _, told = here.run("--quiet", "writer", "on", "ollama", stdin=f"{answer}\n".encode())

    assert told.index(SAYS) < told.index("Turn on ollama as the Writer?")
    assert "Redaction" in told, "whoever wants no remarks is told before they agree all the same"
    assert len(server.asked) == 1
    assert code == (0 if answer == "y" else 2)
    assert (config(here).read_text(encoding="utf-8") == CONFIG) == (answer != "y")


FAILURES: dict[str, tuple[Fault | None, str, str, str]] = {
    "refused": (Fault(status=404), SAYS, "has no such model", "scrubjay writer find"),
    "broken": (Fault(status=500), SAYS, "failed (500)", "log"),
    "cut off": (None, "thinking " * 2_000, "was cut off after", "thinks less"),
    "empty": (None, "  ", "answered nothing", "thinks less"),
    "beside the point": (None, "Ports are lovely.", "did not find 9417", "larger model"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_test_call_that_fails_says_what_to_do_and_leaves_the_settings(
    here: Shell, server: ModelServer, name: str
) -> None:
    fault, says, why, remedy = FAILURES[name]
    server.faults.append(fault)
    server.answer = lambda _: says

    _, _, told = here.run("writer", "on", "ollama", "--yes", "--quiet")

    error = json.loads(told.splitlines()[-1])
    assert "the test call failed, and nothing was changed" in error["message"]
    assert why in error["message"]
    assert remedy in error["hint"]
    assert len(server.asked) == 1, "it is one call, and none is made again"
    assert config(here).read_text(encoding="utf-8") == CONFIG
    assert here.json("writer", "status")["status"]["writer"] == "none"
    assert ledger(here) == [("trial", 1, int(name != "beside the point"))]


def test_a_server_of_ones_own_is_named_by_its_url(here: Shell, server: ModelServer) -> None:
    report = here.json("writer", "on", "--url", f"{server.url}/v1/", "--model", "small", "--yes")
    elsewhere = here.error("writer", "on", "--url", "http://192.168.1.5/v1", "--model", "small", "--yes")
    keyless = here.error("writer", "on", "--url", server.url, "--model", "m", "--key-env", "NO_KEY", "--yes", "-q")

    assert report["status"]["url"] == f"{server.url}/v1"
    assert "another machine" in elsewhere[1]["message"]
    assert "NO_KEY is not set" in keyless[1]["message"]
    assert "scrubjay daemon restart" in keyless[1]["hint"]
    assert len(server.asked) == 1


def test_a_server_that_is_gone_is_said(here: Shell) -> None:
    code, error = here.error("writer", "on", "--url", "http://127.0.0.1:9/v1", "--model", "small", "--yes", "-q")

    assert (code, error["code"]) == (6, "unavailable")
    assert "127.0.0.1:9 cannot be reached" in error["message"]
    assert "start the server" in error["hint"]


def test_an_agent_is_turned_on_with_a_small_model_and_what_was_of_a_server_goes(here: Shell) -> None:
    answer = {"type": "result", "subtype": "success", "is_error": False, "result": SAYS}
    usage = {"modelUsage": {"haiku": {"inputTokens": 90, "outputTokens": 9}}}
    program(here, "claude", f"/bin/cat <<'END'\n{json.dumps(answer | usage)}\nEND")
    here.json("writer", "on", "ollama", "--yes")

    report = here.json("writer", "on", "claude", "--yes")

    assert (report["status"]["writer"], report["status"]["model"]) == ("claude", "haiku")
    assert (report["trial"]["input_tokens"], report["status"]["leaves"]) == (90, True)
    assert config(here).read_text(encoding="utf-8") == (
        '# mine\nport = 0 # any\nwriter = "claude"  # not yet\nlog_level = "info"\nwriter_model = "haiku"\n'
    )


def test_an_agent_that_is_not_logged_in_stays_off(here: Shell) -> None:
    program(here, "codex", "exit 3")

    code, error = here.error("writer", "on", "codex", "--yes", "-q")

    assert code == 6
    assert "codex ended without an answer (exit code 3)" in error["message"]
    assert "run codex in a terminal" in error["hint"]
    assert config(here).read_text(encoding="utf-8") == CONFIG


@pytest.mark.parametrize(
    ("words", "why", "remedy"),
    [
        (("on",), "which Writer?", "found here: ollama, ollama-cloud"),
        (("on", "olama"), "there is no Writer 'olama'", "found here: ollama"),
        (("on", "codex"), "codex is not in PATH", "install it"),
        (("on", "vllm"), "no vllm", "start it"),
        (("on", "mistral"), "MISTRAL_API_KEY is not set", "export MISTRAL_API_KEY"),
        (("on", "ollama", "--key-env", "KEY"), "--key-env is of a server", "--url"),
        (("on", "claude", "--url", "http://localhost/v1"), "claude has no --url", "openai or anthropic"),
    ],
)
def test_a_choice_that_cannot_be_meant_says_what_there_is(
    here: Shell, words: tuple[str, ...], why: str, remedy: str
) -> None:
    _, error = here.error("writer", *words, "--yes")

    assert why in error["message"]
    assert remedy in error["hint"]


def test_a_model_must_be_named_where_there_are_several_or_none_is_known(
    here: Shell, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.lists["/api/tags"] = {"models": [{"name": "b"}, {"name": "a"}]}
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    several = here.error("writer", "on", "ollama", "--yes")[1]
    none = here.error("writer", "on", "anthropic", "--yes")[1]

    assert several == {
        "code": "invalid",
        "message": "which model of ollama? it has b, a",
        "hint": "scrubjay writer on ollama --model b",
    }
    assert (none["message"], "--model NAME" in none["hint"]) == ("which model of api.anthropic.com?", True)


def test_a_variable_of_the_environment_that_outweighs_the_file_is_named(
    here: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRUBJAY_WRITER", "none")

    for words in (("on", "ollama", "--yes"), ("off",)):
        code, error = here.error("writer", *words)
        assert (code, "SCRUBJAY_WRITER is set" in error["message"]) == (2, True)
        assert "unset SCRUBJAY_WRITER" in error["hint"]
    assert config(here).read_text(encoding="utf-8") == CONFIG


# While it is on, and off again


def test_the_bare_verb_shows_what_is_on_and_off_ends_it_and_keeps_the_rest(here: Shell, server: ModelServer) -> None:
    here.json("writer", "on", "ollama", "--yes")

    _, shown, _ = here.run("--text", "writer")
    off = here.json("writer", "off")
    again = here.json("writer", "off")

    spent = server.counted
    assert f"qwen3:8b at 127.0.0.1:{server.server_address[1]}" in shown
    assert ", trial, qwen3:8b-1: answered" in shown
    assert f"{spent:,} of 200,000 tokens" in shown
    assert "found here" not in shown
    assert (off["status"]["writer"], off["daemon"], again["status"]["writer"]) == ("none", "stopped", "none")
    kept = config(here).read_text(encoding="utf-8")
    assert 'writer = "none"  # not yet\n' in kept
    assert 'writer_model = "qwen3:8b"\n' in kept


def test_a_daemon_that_runs_tests_it_and_follows(here: Shell, server: ModelServer) -> None:
    here.json("daemon", "start")
    try:
        on = here.json("writer", "on", "ollama", "--yes")
        status = here.json("daemon", "status")["status"]
        cost = here.json("cost")
        off = here.json("writer", "off")
        after = here.json("cost")
    finally:
        here.json("daemon", "stop")

    assert (on["daemon"], off["daemon"]) == ("follows", "follows")
    assert (cost["writer"], cost["model"], after["writer"]) == ("openai", "qwen3:8b", "none")
    assert status["pid"] > 0
    assert len(server.asked) == 1


def test_a_daemon_whose_environment_says_otherwise_is_to_be_restarted(
    here: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRUBJAY_WRITER_MODEL", "another")
    here.json("daemon", "start")
    monkeypatch.delenv("SCRUBJAY_WRITER_MODEL")
    try:
        report = here.json("writer", "on", "ollama", "--yes")
        _, shown, _ = here.run("--text", "writer", "on", "ollama", "--yes", "-q")
    finally:
        here.json("daemon", "stop")

    assert report["daemon"] == "restart"
    assert "scrubjay daemon restart" in shown


def test_the_writer_is_one_for_all_accounts(here: Shell) -> None:
    accounts.change(here.home / "data", lambda _: Accounts().with_account("work"))

    _, error = here.error("writer", "off", "--account", "work")

    assert "one for all accounts" in error["message"]


async def test_what_the_file_says_holds_for_every_account_that_is_open(tmp_path: Path, server: ModelServer) -> None:
    accounts.change(tmp_path / "data", lambda _: Accounts().with_account("work").with_project("p", "work"))
    found = settings.load({}, {"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_MODEL": "none"})
    there = Caller(principal=Principal.PERSON, account="work")
    service = await Application.configured(found, {})
    try:
        before = await service.call(there, "writer", NOTHING)
        values = {"writer": "openai", "writer_url": f"{server.url}/v1", "writer_model": "m"}
        settings.assign(found.config_path, values)
        await service.call(PERSON, "use_writer", api.UseWriterRequest())
        after = await service.call(there, "writer", NOTHING)
    finally:
        await service.accounts.close()  # type: ignore[union-attr]
        await service.close()

    assert (before.writer, after.writer, after.model) == ("none", "openai", "m")


async def test_whoever_turns_it_off_while_a_call_is_tried_again_is_obeyed(server: ModelServer, opened: Opener) -> None:
    server.faults.extend([Fault(status=500), Fault(status=500), Fault(status=500)])
    caps = Caps(daily=90_000, monthly=90_000)
    async with opened(writer=server.chosen(), caps=caps, policy=MemoryPolicy(writer=POLICY)) as service:

        async def turn_off(_: float) -> None:
            await service.writer.use(None, caps)

        service.writer._sleep = turn_off
        with pytest.raises(UnavailableError, match="no Writer is set"):
            await service.writer.write(Prompt(system="", text="x", max_output_tokens=9), job="ask")

    assert len(server.asked) == 1


# What a day would take


async def test_a_day_is_told_by_what_the_observer_then_asks(server: ModelServer, opened: Opener) -> None:
    server.answer = lambda _: "NONE"
    now = [NOW]
    caps = Caps(daily=900_000, monthly=900_000)
    words = "The crane {0} at the harbour has its own gearbox, which Jonas greases each spring. " * 9
    async with opened(
        writer=server.chosen(), caps=caps, policy=MemoryPolicy(writer=POLICY), now=lambda: now[0]
    ) as service:
        for at in range(40):
            session = f"s{at // 10}"
            now[0] = Millis(now[0] + 60_000)
            await ingest(service, said(words.format(at), session, ts=now[0]))
            now[0] = Millis(now[0] + 1_000)
            stop = {"type": EventType.ASSISTANT_STOP, "ts": now[0]}
            printed = said(words.format(at) * 2, session, ts=now[0], type=EventType.TOOL_RESULT)
            end = said("", session, ts=now[0], type=EventType.SESSION_END)
            await ingest(service, printed, said(words.format(at + 100), session, **stop), end)
            now[0] = Millis(now[0] + 30_000)
            await service.observe.run()
        day = (await service.call(PERSON, "writer", NOTHING)).day

    assert (day.days, day.sessions) == (1, 4)
    asked = [one for one in server.asked if "The crane" in one.text]
    assert day.calls == len(asked) == 40
    chars = sum(len(one.system) + len(one.text) for one in asked)
    memories = day.calls * DEFAULT.observer.memories * DEFAULT.observer.memory_chars // 2
    assert day.input_tokens * DEFAULT.writer.token_chars - memories == pytest.approx(chars, rel=0.1)


async def test_old_events_and_those_not_to_be_learned_from_are_no_part_of_a_day(opened: Opener) -> None:
    async with opened(now=lambda: NOW) as service:
        await ingest(service, said("long ago", ts=Millis(NOW - 11 * 86_400_000)))
        await ingest(service, said("not to be learned", ts=NOW), learn=False)
        day = (await service.call(PERSON, "writer", NOTHING)).day

    assert day == api.WriterDay(looked_at=10, days=0, sessions=0, calls=0, input_tokens=0, output_tokens=0)


def test_what_a_day_costs_is_told_with_what_an_agent_adds_and_where_the_cap_is_less(
    here: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRUBJAY_WRITER_DAILY_TOKENS", "60000")
    program(here, "codex", "exit 3")
    text = "We keep the ferry's timetable in the harbour office, because the captain asks there. " * 40
    lines = [
        {"agent": "a", "session_id": f"s{at}", "type": "assistant_stop", "role": "assistant", "text": f"{at} {text}"}
        for at in range(12)
    ]
    here.json("ingest", "-", stdin="\n".join(map(json.dumps, lines)).encode())

    _, listed, _ = here.run("--text", "writer")
    _, _, told = here.run("--text", "writer", "on", "codex", "--yes")
    read = here.json("writer", "status")["status"]["day"]["input_tokens"]

    plain = " ".join(told.split())
    assert "a day like the last 10 (1 with sessions, 12 each) would take about 12 calls" in " ".join(listed.split())
    assert f"12 calls, {round(read + 12 * 6_200, -3):,} tokens read" in plain
    assert "60,000 tokens a day and 2,000,000 a month, less than that" in plain


# Where it is offered


def test_init_and_setup_end_with_a_line_that_offers_it_where_it_is_off(here: Shell) -> None:
    _, made, _ = here.run("--text", "init", "--no-model")
    _, _, asked = here.run("--text", "setup")
    before = here.json("init", "--no-model")["writer"]
    here.json("writer", "on", "ollama", "--yes")
    _, made_again, _ = here.run("--text", "init", "--no-model")
    _, _, asked_again = here.run("--text", "setup")

    assert "scrubjay writer" in made.splitlines()[-1]
    assert "scrubjay writer" in asked.splitlines()[-1]
    assert (before, here.json("init", "--no-model")["writer"]) == ("none", "openai")
    assert "scrubjay writer" not in made_again + asked_again


def test_the_destination_of_a_model_that_ollama_sends_on_is_said(server: ModelServer) -> None:
    chosen = server.chosen(writer_model="gpt-oss:120b-cloud")
    own = server.chosen()

    assert (chosen.leaves, chosen.destination.endswith("and from there to ollama.com")) == (True, True)
    assert (own.leaves, "ollama.com" in own.destination) == (False, False)
