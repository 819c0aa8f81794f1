"""Without an extra's libraries a command says in two lines what is missing and what adds it; never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BARE = """
import sys
for name in ("cryptography", "httpx2", "keyring", "prometheus_client", "psycopg", "uvloop", "zstandard"):
    sys.modules[name] = None
from importlib.metadata import entry_points
[script] = entry_points(group="console_scripts", name=sys.argv.pop(1))
sys.exit(script.load()())
"""
"""Runs an installed script as an installation has it that was made without extras: their libraries are not found."""


def bare(home: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"SCRUBJAY_HOME": str(home), "SCRUBJAY_MODEL": "none"}
    return subprocess.run(
        [sys.executable, "-c", BARE, script, *words], capture_output=True, text=True, env=environ, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "words", "extra"),
    [
        ("scrubjay-cloud", ("--help",), "cloud"),
        ("scrubjay-cloud", ("serve",), "cloud"),
        ("scrubjay", ("--text", "login"), "sync"),
        ("scrubjay", ("--text", "sync", "status"), "sync"),
    ],
)
def test_a_command_without_its_extra_names_what_to_install(
    tmp_path: Path, script: str, words: tuple[str, ...], extra: str
) -> None:
    done = bare(tmp_path, script, *words)

    assert done.returncode == 6
    assert done.stdout == ""
    message, hint = done.stderr.splitlines()
    assert message.startswith(f"{script}: ")
    assert f"needs the extra '{extra}', which is not installed" in message
    assert "install" in hint
    assert f"[{extra}]" in hint


def test_a_program_is_told_the_same_in_json(tmp_path: Path) -> None:
    for script, words in (("scrubjay-cloud", ("check", "--json")), ("scrubjay", ("sync", "status"))):
        told = json.loads(bare(tmp_path, script, *words).stderr)

        assert told["code"] == "unavailable"
        assert "install" in told["hint"]


def test_completion_is_silent_about_extras_that_nobody_installed(tmp_path: Path) -> None:
    done = bare(tmp_path, "scrubjay", "completion", "bash")

    assert (done.returncode, done.stderr) == (0, "")
    assert "login" in done.stdout
