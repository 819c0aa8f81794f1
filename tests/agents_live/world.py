"""A home with a real daemon, a real agent in it, and what the stub model was sent."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents_live import stub_model
from agents_live.agents import Agent, Home, environment

SCRUBJAY = Path(sysconfig.get_path("scripts")) / "scrubjay"
RUN_S = 300
SETTLED_S = 30


class World:
    """One home: the agent's settings, scrubjay's daemon, and the log of the model."""

    def __init__(self, home: Home, log: Path) -> None:
        self.home = home
        self.log = log
        self.outputs: list[str] = []

    def scrubjay(self, *words: str, check: bool = True) -> Any:
        """Return the JSON that a command prints."""
        ended = subprocess.run(
            [str(SCRUBJAY), *words],
            env=environment(self.home),
            cwd=self.home.project,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert not check or ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout) if ended.stdout.startswith("{") else ended.stdout

    def run(self, agent: Agent, prompt: str, **environ: str) -> float:
        """Run an agent once in the project; returns the seconds it took."""
        start = time.monotonic()
        ended = subprocess.run(
            agent.command(self.home, prompt),
            env=environment(self.home) | agent.environ(self.home) | environ,
            cwd=self.home.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        self.outputs.append(ended.stdout + ended.stderr)
        assert ended.returncode == 0, (ended.stdout + ended.stderr)[-2000:]
        return time.monotonic() - start

    def settled(self, last_words: str) -> list[dict[str, Any]]:
        """Return every event once the last words of a turn are among them: Copilot writes them after it told of its end.

        The spool is read every few seconds; after half a minute whatever is there is returned.
        """
        until = time.monotonic() + SETTLED_S
        while not any(event["text"] == last_words for event in self.events()) and time.monotonic() < until:
            time.sleep(1)
        return self.events()

    def warm(self) -> None:
        """Let the daemon load what answers MCP, as it has on every day but the first: Codex does not wait for servers."""
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "warm", "version": "1"}}
        ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        told = subprocess.run(
            [str(SCRUBJAY), "mcp"],
            input=json.dumps(ask) + "\n",
            env=environment(self.home),
            cwd=self.home.project,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert '"serverInfo"' in told.stdout, told.stderr

    def asked(self) -> list[dict[str, Any]]:
        """Return what the model was sent: a record a request."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def events(self) -> list[dict[str, Any]]:
        """Return every event of the store, oldest first."""
        found: list[dict[str, Any]] = []
        cursor: list[str] = []
        while True:
            page = self.scrubjay("events", "-n", "200", *cursor)
            found += page["events"]
            if not page.get("next"):
                return sorted(found, key=lambda event: (event["ts"], event["id"]))
            cursor = ["--cursor", page["next"]]


@contextmanager
def world(
    root: Path, packages: Path, models: Path | None, script: Callable[[list[str]], tuple[str, int, int]] | None = None
) -> Iterator[World]:
    """Yield a home with a git project and a stub model that listens; its daemon is stopped at the end."""
    server = stub_model.serve(log=str(root / "model.jsonl"), script=script)
    names = {"SCRUBJAY_MODELS_DIR": str(models)} if models is not None else {"SCRUBJAY_MODEL": "none"}
    home = Home(
        root=root / "home", model=f"http://127.0.0.1:{server.server_address[1]}", packages=packages, names=names
    )
    (home.root / "tmp").mkdir(parents=True)
    home.write("shop/README.md", "A shop.\n")
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=ana", "-c", "user.email=ana@example.org", "commit", "-qm", "first"],
        ["remote", "add", "origin", "https://git.example.org/ana/shop.git"],
    ):
        subprocess.run(["git", *words], cwd=home.project, env=environment(home), check=True)
    made = World(replace(home), root / "model.jsonl")
    try:
        yield made
    finally:
        made.scrubjay("daemon", "stop", check=False)
        server.shutdown()
        server.server_close()


def contents(folder: Path) -> dict[str, bytes]:
    """Return what every file below a folder holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
