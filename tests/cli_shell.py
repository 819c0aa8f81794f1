"""Command lines on a store of their own, in this process or in one of their own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scrubjay.cli import main

ROOT = Path(__file__).parent.parent


class Shell:
    """Runs command lines on a store of its own, in this process or in one of their own."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._capture = capture
        self._patch = patch

    def run(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr of one command line."""
        if stdin is not None:
            self._patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = main([*arguments])
        written = self._capture.readouterr()
        return code, written.out, written.err

    def json(self, *arguments: str, stdin: bytes | None = None) -> Any:
        """Return the JSON of a command line that must succeed."""
        code, out, err = self.run(*arguments, stdin=stdin)
        assert code == 0, err
        return json.loads(out)

    def error(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, dict[str, str]]:
        """Return exit code and error of a command line that must fail with JSON."""
        code, out, err = self.run(*arguments, stdin=stdin)
        assert out == ""
        assert err.count("\n") == 1, err
        return code, json.loads(err)

    def process(
        self, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command line in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "scrubjay.cli", *arguments],
            input=stdin,
            capture_output=True,
            env=environment(self.home) | (env or {}),
            timeout=120,
            check=False,
        )


def environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    paths = os.pathsep.join(str(ROOT / part) for part in ("local", "shared", "bench"))
    return kept | {
        "HOME": str(home.parent),
        "SCRUBJAY_HOME": str(home),
        "SCRUBJAY_MODEL": "none",
        "SCRUBJAY_PORT": "0",
        "PYTHONPATH": paths,
    }


def shell_in(home: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> Shell:
    """Return a shell whose settings are those of `home` and nothing of the person who runs the tests."""
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        patch.delenv(name)
    patch.setenv("SCRUBJAY_HOME", str(home))
    home.parent.mkdir(parents=True, exist_ok=True)
    patch.chdir(home.parent)  # no repository: what is added there is of the person everywhere
    patch.setenv("HOME", str(home.parent))  # what hosts read, and `doctor` looks at, is below it
    patch.setenv("SCRUBJAY_MODEL", "none")
    patch.setenv("SCRUBJAY_PORT", "0")
    return Shell(home, capture, patch)


EVENTS = "\n".join(
    json.dumps({"agent": "a", "session_id": "s", "type": "user_message", "text": text, "ts": 1_764_000_000_000 + n})
    for n, text in enumerate(["We decided to use PostgreSQL for the bookings.", "ok", "I prefer tabs in Makefiles."])
).encode()


def checks(shell: Shell) -> tuple[int, dict[str, str]]:
    """Return the exit code of the doctor and the state of each of its checks."""
    code, out, err = shell.run("doctor")
    assert out, err
    return code, {check["name"]: check["state"] for check in json.loads(out)["checks"]}
