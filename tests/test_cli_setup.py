"""`scrubjay setup` and what the doctor says of agents: real programs, real files, a real daemon."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_shell import Shell
from scrubjay.cli import host_checks
from scrubjay.setup import codex_trust
from scrubjay.setup.hosts import HOSTS
from scrubjay_shared.errors import UnavailableError

VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME", "APPDATA")


@pytest.fixture(autouse=True)
def person(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home, which `setup` writes into: never that of who runs the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert Path.home() == shell.home.parent
    return shell.home.parent


def rows(shell: Shell) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(shell.run("doctor")[1])["checks"]}


def test_a_dry_run_shows_the_change_and_makes_none(shell: Shell, person: Path) -> None:
    (person / ".claude.json").write_bytes(b'{"theme": "dark"}')

    [host] = shell.json("setup", "claude-code", "--dry-run")["hosts"]

    assert {file["action"] for file in host["files"]} == {"create", "change"}
    [servers] = [file for file in host["files"] if file["action"] == "change"]
    assert '+{"theme": "dark", "mcpServers"' in servers["diff"]
    assert (person / ".claude.json").read_bytes() == b'{"theme": "dark"}'
    assert not (person / ".claude").exists()
    assert not shell.home.exists()


def test_lines_of_files_are_shown_unbroken_in_a_narrow_window(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")

    [host] = shell.json("setup", "claude-code", "--dry-run")["hosts"]
    diffs = [line for file in host["files"] for line in file["diff"].splitlines()]
    before = shell.run("setup", "claude-code", "--dry-run", "--text")[1].splitlines()
    after = shell.run("setup", "claude-code", "--text")[1]

    assert [line for line in diffs if len(line) > 40]
    assert [line for line in diffs if line.rstrip() not in before] == []
    assert [file["path"] for file in host["files"] if file["path"] not in after] == []


def test_set_up_told_as_such_and_removed(shell: Shell, person: Path) -> None:
    shell.json("setup", "claude-code")
    hooks = json.loads((person / ".claude/settings.json").read_bytes())["hooks"]
    states = {host["host"]: host["state"] for host in shell.json("setup")["hosts"]}
    shell.json("setup", "--remove", "claude-code")

    program = Path(hooks["Stop"][0]["hooks"][0]["args"][2])
    assert program.name.startswith("scrubjay-hook")
    assert os.access(program, os.X_OK)
    assert hooks["Stop"][0]["hooks"][0]["args"][3:] == ["--data-dir", str(shell.home / "data"), "claude-code", "Stop"]
    assert states == {host: "complete" if host == "claude-code" else "absent" for host in HOSTS}
    assert not (person / ".claude").exists()
    assert not (person / ".claude.json").exists()


def test_all_means_those_that_are_installed(shell: Shell, person: Path) -> None:
    (person / ".gemini").mkdir()
    (person / ".cursor").mkdir()

    done = shell.json("setup", "--all")

    assert [host["host"] for host in done["hosts"]] == ["gemini", "cursor"]
    assert b"BeforeAgent" in (person / ".gemini/settings.json").read_bytes()
    assert not (person / ".codex").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [(["emacs"], "no host 'emacs'"), (["--all", "codex"], "every host"), (["--remove"], "which host")],
)
def test_what_cannot_be_meant_is_refused(shell: Shell, person: Path, line: list[str], said: str) -> None:
    code, error = shell.error("setup", *line)

    assert code == 2
    assert said in error["message"]
    assert list(person.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "beginning"),
    [
        (("setup", "agents-md"), "## Memory\n"),
        (("docs", "guide"), "# "),
        (("docs",), "scrubjay docs guide "),
        (("completion", "bash"), "# AUTOMATICALLY"),
    ],
    ids=" ".join,
)
def test_a_text_goes_into_a_pipe_as_text_and_as_json_on_demand(
    shell: Shell, words: tuple[str, ...], beginning: str
) -> None:
    code, out, _ = shell.run(*words)
    _, on_demand, _ = shell.run(*words, "--json")

    assert code == 0
    assert out.startswith(beginning)
    assert words[0] == "completion" or json.loads(on_demand)


def test_uninstall_asks_a_program_for_a_yes_and_says_what_would_go(shell: Shell, person: Path) -> None:
    (person / ".claude").mkdir()
    (person / ".claude" / "settings.json").write_bytes(b'{"model": "opus"}')
    shell.json("setup", "claude-code")
    there = {path: path.read_bytes() for path in person.rglob("*") if path.is_file()}

    told = shell.json("uninstall")

    assert told["dry_run"] is True
    assert [host["host"] for host in told["hosts"]] == ["claude-code"]
    assert str(shell.home / "data") in told["stays"]
    assert any("uninstall scrubjay" in command for command in told["then"])
    assert {path: path.read_bytes() for path in person.rglob("*") if path.is_file()} == there


def test_uninstall_leaves_nothing_in_any_agents_files_and_every_memory(shell: Shell, person: Path) -> None:
    mine = {
        ".claude/settings.json": b'{"model": "opus"}',
        ".gemini/settings.json": b"{}",
        ".codex/config.toml": b"a = 1",
    }
    for name, data in mine.items():
        (person / name).parent.mkdir(exist_ok=True)
        (person / name).write_bytes(data)
    shell.json("add", "We chose PostgreSQL")
    shell.json("setup", "--all")

    done = shell.json("uninstall", "--yes")

    theirs = [path for path in person.rglob("*") if path.is_file() and not path.is_relative_to(shell.home)]
    assert {host["host"] for host in done["hosts"]} == {"claude-code", "gemini", "codex"}
    assert {str(path.relative_to(person)): path.read_bytes() for path in theirs} == mine
    assert shell.json("stats")["memories"] == 1


def test_a_host_whose_file_cannot_be_changed_does_not_keep_the_others(shell: Shell, person: Path) -> None:
    for host in ("claude-code", "gemini"):
        shell.json("setup", host)
    (person / ".gemini/settings.json").write_bytes(b'{"hooks": scrubjay-hook')

    code, out, _ = shell.run("uninstall", "--yes")

    assert code != 0
    assert [one["path"] for one in json.loads(out)["failed"]] == ["Gemini CLI"]
    assert not (person / ".claude/settings.json").exists()


def test_what_people_see_names_each_file_and_what_is_left_to_do(shell: Shell, person: Path) -> None:
    _, out, _ = shell.run("setup", "codex", "--text")
    _, listed, _ = shell.run("setup", "--text")

    words = "".join(out.split())  # a long path is broken over lines
    assert f"made{person}/.codex/hooks.json(hooks)" in words
    assert "approvethehookswith/hooks" in words
    assert [line.split() for line in listed.splitlines() if line.startswith("codex")] == [
        ["codex", "yes", "yes", "capture,", "context,", "MCP"]
    ]


def test_the_doctor_says_how_far_each_agent_is_set_up(shell: Shell, person: Path) -> None:
    (person / ".gemini").mkdir()
    shell.json("setup", "claude-code")
    shell.json("setup", "zed")
    shell.json("setup", "copilot")
    (person / ".copilot/mcp-config.json").unlink()
    (person / ".cursor").mkdir()
    (person / ".cursor/hooks.json").write_bytes(b"{")

    found = rows(shell)

    assert "set up, no event yet, no daemon runs" in found["claude-code"]["found"]
    assert "not set up" in found["gemini"]["found"]
    assert (found["copilot"]["state"], found["cursor"]["state"], found["zed"]["state"]) == ("warn", "warn", "ok")
    assert "hooks.json: line 1, column 2" in found["cursor"]["found"]
    assert found["hooks"]["found"] == "none has failed"
    assert "opencode" not in found


def test_the_doctor_finds_hooks_that_are_switched_off_doubled_or_slow(shell: Shell, person: Path) -> None:
    for host in ("claude-code", "copilot", "opencode"):
        shell.json("setup", host)
    (person / ".claude/settings.local.json").write_bytes(b'{"disableAllHooks": true}')
    (person / ".copilot/hooks/old.json").write_bytes(b'{"hooks": {"Stop": [{"bash": "scrubjay-hook"}]}}')
    (shell.home / "data/hook_error").write_text("1795446106169 KeyError away.py:12\n")

    found = rows(shell)

    assert "switches all hooks off" in found["claude-code hooks"]["found"]
    assert "arrives twice" in found["copilot hooks"]["found"]
    assert "@opencode-ai/plugin" in found["opencode start"]["todo"]
    assert "KeyError away.py:12" in found["hooks"]["found"]


@pytest.fixture
def daemon(shell: Shell, person: Path) -> Iterator[Shell]:
    """A shell whose daemon runs."""
    assert person.is_dir()
    shell.json("daemon", "start")
    yield shell
    shell.run("daemon", "stop")


def test_the_doctor_sends_an_event_by_the_program_that_is_registered_and_sees_it_arrive_or_not(
    daemon: Shell, person: Path
) -> None:
    daemon.json("setup", "claude-code")
    [hook] = json.loads((person / ".claude/settings.json").read_bytes())["hooks"]["UserPromptSubmit"][0]["hooks"]
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(person), "prompt": "Use tabs."}

    subprocess.run([hook["command"], *hook["args"]], input=json.dumps(prompt).encode(), check=True, timeout=30)
    found = rows(daemon)["claude-code"]

    assert found["state"] == "ok"
    assert "an event sent now arrives" in found["found"]
    assert "last event " in found["found"]
    assert [event["text"] for event in daemon.json("events")["events"]] == ["Use tabs."]

    (daemon.home / "data/hook_door").write_text("wrong\n\n127.0.0.1\n1\nx\n")
    lost = rows(daemon)["claude-code"]

    assert lost["state"] == "fail"
    assert "did not arrive" in lost["found"]


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


ANSWERS = """
import json, sys
for line in sys.stdin:
    ask = json.loads(line)
    if ask.get("method") == "hooks/list":
        hooks = [{"command": "/x/scrubjay-hook codex " + name, "eventName": name, "trustStatus": trust, "enabled": True}
                 for name, trust in (("stop", "trusted"), ("preCompact", "untrusted"), ("sessionStart", "modified"))]
        hooks.append({"command": "other", "eventName": "stop", "trustStatus": "untrusted"})
        print(json.dumps({"method": "configWarning"}))
        print(json.dumps({"id": 2, "result": {"data": [{"cwd": "/", "hooks": hooks}]}}), flush=True)
"""
"""What Codex 0.169 says on the wire."""


@pytest.mark.skipif(sys.platform == "win32", reason="a script that is run by its first line")
def test_codex_is_asked_which_hooks_it_skips(tmp_path: Path) -> None:
    codex = program(tmp_path / "codex", ANSWERS)
    silent = program(tmp_path / "silent", "")

    assert codex_trust.untrusted(str(codex), tmp_path, os.environ) == ["preCompact", "sessionStart"]
    with pytest.raises(UnavailableError, match="does not answer"):
        codex_trust.untrusted(str(silent), tmp_path, os.environ)
    with pytest.raises(UnavailableError, match="does not answer"):
        codex_trust.untrusted(str(tmp_path / "absent"), tmp_path, os.environ)


def test_the_file_of_errors_has_one_name() -> None:
    import scrubjay_hook  # noqa: PLC0415

    assert scrubjay_hook.ERROR_NAME == host_checks.ERROR_NAME
