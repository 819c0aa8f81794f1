"""A home folder with `scrubjay-hook` processes around it, and its daemon."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from scrubjay import settings as options
from scrubjay import spool
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.transports.client import Client, discover
from scrubjay_shared.records import Event

FIXTURES = Path(__file__).parent / "fixtures" / "host_payloads.jsonl"

PATIENCE_SECONDS = 60.0


def prompt(session: str, text: str, prompt_id: str = "p1") -> dict[str, Any]:
    """Return what Claude Code sends for what a person typed."""
    return {
        "session_id": session,
        "transcript_path": f"/home/ana/.claude/projects/-home-ana-shop/{session}.jsonl",
        "cwd": "/home/ana/shop",
        "prompt_id": prompt_id,
        "hook_event_name": "UserPromptSubmit",
        "prompt": text,
    }


def tool_result(session: str, output: str, call: str = "toolu_1") -> dict[str, Any]:
    """Return what Claude Code sends for what a tool printed."""
    return {
        "session_id": session,
        "cwd": "/home/ana/shop",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "cat log"},
        "tool_use_id": call,
        "tool_response": {"stdout": output, "stderr": ""},
    }


class Home:
    """A home folder for one daemon and the hooks that report to it."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.environ = {"SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"} | environ
        self.settings = options.load(environ=self.environ | {"SCRUBJAY_HOME": str(folder)})
        self.data = self.settings.data_dir

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a hook."""
        return [sys.executable, "-m", "scrubjay_hook", "--home", str(self.folder), *arguments]

    def hook(
        self, *arguments: str | dict[str, Any] | bytes, payload: dict[str, Any] | bytes | None = None, **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a hook to its end; the payload is the last argument, or given by name."""
        words = [each for each in arguments if isinstance(each, str)]
        given = payload if payload is not None else next(each for each in arguments if not isinstance(each, str))
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        return subprocess.run(
            self.command(*words),
            input=data,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            env={**os.environ, **self.environ, **environ},  # a hook may start the daemon
        )

    @contextlib.contextmanager
    def daemon(self) -> Iterator[None]:
        """Run the daemon."""
        options.ensure_dirs(self.settings)
        control.start(self.settings, policy=DaemonPolicy(start_seconds=90.0))
        try:
            yield
        finally:
            control.stop(self.settings)

    def client(self, token: str | None = None) -> Client:
        """Return a client of the daemon, with its own token or another."""
        found = discover(self.data)
        assert found is not None
        if token is None:
            return found
        assert found.running is not None
        return Client(token=token, address=(found.running.host, found.running.port))

    def ask(self, *arguments: Any, **options: Any) -> Any:
        """Ask the daemon once."""
        with self.client() as client:
            return client.call(*arguments, **options)

    def drained(self) -> bool:
        """Have the daemon read the spool now, and say whether it is empty."""
        self.ask("POST", "/v1/jobs/spool/run", {})
        return not self.spooled()

    def events(self, session: str) -> list[Event]:
        """Return the events of a session."""
        page = self.ask("GET", "/v1/events", query={"session_id": session, "limit": 500})
        return [msgspec.convert(event, Event) for event in page["events"]]

    def spooled(self) -> Sequence[Path]:
        """Return the files of the spool."""
        return spool.waiting(self.data)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < ends, what
            time.sleep(0.02)

    def until_spooled(self, number: int) -> Sequence[Path]:
        """Wait until so many events are in the spool, and return them."""
        self.until(lambda: len(self.spooled()) >= number, f"{number} events are spooled")
        return self.spooled()

    def until_stored(self, session: str, number: int) -> list[Event]:
        """Wait until so many events of a session are stored, and return them."""
        self.until(lambda: self.drained() and len(self.events(session)) >= number, f"{number} events are stored")
        return self.events(session)
