"""Other packages in the daemon and at the command line: what is broken in them stays theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay import settings as options
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings
from scrubjay.transports.client import discover
from scrubjay_shared.errors import UnavailableError

PACKAGES = {
    "broken": 'raise ImportError("libssl.so.3: cannot open shared object file")',
    "missing": "import a_library_that_nobody_has",
    "buggy": 'raise RuntimeError("the secret of Mog")',
    "late": 'async def start(service, settings):\n    raise ValueError("the secret of Mog")',
    "sync": 'raise ImportError("libssl.so.3: cannot open shared object file")',
}
"""Modules that cannot be used, by the name under which each announces a plugin and a command."""

SOUND = """
from scrubjay.jobs.registry import Trigger
from scrubjay.plugins import Plugin
class Job:
    name = "sound"
    trigger = Trigger(seconds=3600, gathers=False)
    async def due(self): return False
    async def pending(self): return 7
    async def run(self): pass
async def close(): pass
async def start(service, settings): return Plugin(operations=[], close=close, jobs=[Job()])
"""
"""A module that can be used, and brings a job."""

COMMANDS = {"sync": "login"}
"""The commands that are called otherwise than the package that announces them."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings of an installation with broken packages beside it, each of them in use."""
    site = tmp_path / "site"
    for name, code in {**PACKAGES, "sound": SOUND}.items():
        info = site / f"{name}_package-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 1\n")
        (info / "entry_points.txt").write_text(
            f"[scrubjay.plugins]\n{name} = {name}_package:start\n"
            f"[scrubjay.commands]\n{COMMANDS.get(name, name)} = {name}_package:COMMAND\n"
        )
        (site / f"{name}_package.py").write_text(code + "\n")
    named = {"SCRUBJAY_HOME": str(tmp_path / "home"), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"}
    for variable, value in named.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    chosen = options.load(environ=named)
    options.ensure_dirs(chosen)
    for name in (*PACKAGES, "sound"):
        (chosen.data_dir / f"{name}.json").write_text("{}")
    yield chosen
    control.stop(chosen)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scrubjay.cli", *words], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_daemon_serves_without_the_plugins_that_are_broken_and_says_which(home: Settings) -> None:
    control.start(home, policy=DaemonPolicy(start_seconds=90))

    with (client := discover(home.data_dir)) or pytest.fail("no daemon"):
        warnings = " | ".join(client.call("GET", "/v1/status")["warnings"])
        with pytest.raises(UnavailableError, match="cannot be loaded: libssl"):
            client.call("POST", "/v1/workers/broken/anything", {})

    assert "broken does not run: broken cannot be loaded: libssl.so.3" in warnings
    assert "missing does not run: missing needs the extra 'missing', which is not installed" in warnings
    assert "(a_library_that_nobody_has is missing)" in warnings
    assert "buggy does not run: buggy cannot be started (RuntimeError)" in warnings
    assert "late does not run: late cannot be started (ValueError)" in warnings
    written = "\n".join(control.logs(home, 1_000))
    assert "late_package.py:2 start" in written
    assert "Mog" not in written + warnings


def test_the_job_of_a_plugin_is_listed_run_and_paused_like_the_daemons_own(home: Settings) -> None:
    control.start(home, policy=DaemonPolicy(start_seconds=90))

    with (client := discover(home.data_dir)) or pytest.fail("no daemon"):
        client.call("GET", "/v1/status")  # is answered when each plugin was tried
        before = {job["name"]: job for job in client.call("GET", "/v1/jobs")["jobs"]}
        ran = client.call("POST", "/v1/jobs/sound/run")
        paused = {job["name"]: job for job in client.call("POST", "/v1/jobs/sound/pause")["jobs"]}
        runs = client.call("GET", "/v1/jobs/runs?name=sound")["runs"]

    assert (before["sound"]["pending"], before["sound"]["runs"]) == (7, 0)
    assert ran.get("error") is None
    assert runs == [ran]
    assert {name for name, job in paused.items() if job.get("paused")} == {"sound"}


@pytest.mark.slow
def test_doctor_tells_of_a_plugin_that_does_not_run(home: Settings) -> None:
    control.start(home, policy=DaemonPolicy(start_seconds=90))

    assert "broken does not run" in command("doctor", "--text").stdout


def test_a_broken_package_breaks_its_own_commands_and_no_other(home: Settings) -> None:
    login, listing = command("login", "--text"), command("list", "--json")

    assert login.returncode == UnavailableError.exit_code
    assert "login cannot be loaded: libssl.so.3: cannot open shared object file" in login.stderr
    assert "Traceback" not in login.stderr
    assert listing.returncode == 0, listing.stderr
    assert home.store_path.exists()
