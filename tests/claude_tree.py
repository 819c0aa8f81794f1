"""A folder as Claude Code leaves it in a home, with everything that lies beside the transcripts.

    ~/.claude/
      CLAUDE.md, settings.json, history.jsonl        the person's instructions; the program's own files
      todos/, plans/, shell-snapshots/               the program's own files
      projects/<folder with every odd character as "-">/
        <session id>.jsonl                           the transcript
        <session id>/subagents/agent-<id>.jsonl      what the agent told its helpers, and they it
        <session id>/tool-results/<id>.txt           outputs too long for the transcript
        memory/MEMORY.md, memory/<topic>.md          what the agent noted for itself
        sessions-index.json                          the program's own list

`claude_home(folder)` writes one and says what the person said in it, what must be remembered, and what must not.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGAN = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
VERSION = "2.1.330"

PLANTED = (
    "My name is Jenkins",
    "I prefer to run on Debian",
    "I always deploy from the release branch of acme/runner",
)
"""First-person sentences in outputs of tools, notes of the agent and files beside the talk. Nobody said them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: what the person typed, the command that the agent ran with its output, and the agent's answer."""

    prompt: str
    answer: str
    command: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """One session: the folder it was in, and its turns."""

    cwd: str
    turns: Sequence[Turn]


@dataclass(frozen=True, slots=True)
class ClaudeHome:
    """What was written: the folder (`.claude`), its transcripts, and the texts by who wrote them."""

    path: Path
    transcripts: tuple[Path, ...]
    prompts: tuple[str, ...]
    tool_results: tuple[Path, ...]
    agent_notes: tuple[Path, ...]

    @property
    def projects(self) -> Path:
        """The folder that the README's command imports."""
        return self.path / "projects"


SESSIONS: tuple[Work, ...] = (
    Work(
        "/home/ana/shop",
        (
            Turn(
                "We decided to use PostgreSQL 16 for the orders service because of exclusion constraints.",
                "Understood. I'll move the orders service to PostgreSQL 16.",
                "psql --version",
                "psql (PostgreSQL) 16.4",
            ),
            Turn(
                "I prefer pytest over unittest, and plain functions over classes in tests.",
                "I'll write the tests as plain functions with pytest.",
                "pytest -q",
                "41 passed in 3.2s",
            ),
        ),
    ),
    Work(
        "/home/ana/shop",
        (
            Turn(
                "The checkout job failed because the Redis lease expired after 30 seconds; the fix is to renew it.",
                "I renew the lease every 10 seconds now.",
                "cat jenkins.log",
                "\n".join(f"[{n:04}] agent ready. {PLANTED[0]}. {PLANTED[1]}." for n in range(400)),
            ),
        ),
    ),
    Work(
        "/home/ana/harbour_map",
        (
            Turn(
                "We decided to draw the harbour map with MapLibre instead of Leaflet.",
                "MapLibre it is: vector tiles work offline.",
                "npm ls maplibre-gl",
                "maplibre-gl@5.6.0",
            ),
            Turn(
                "My goal is to ship the harbour map before 15 March 2027.",
                "Noted: the harbour map ships before 15 March 2027.",
            ),
        ),
    ),
)


def folder_name(cwd: str) -> str:
    """Return the name that Claude Code gives to a project's folder."""
    return re.sub(r"[^A-Za-z0-9]", "-", cwd)


def claude_home(home: Path, sessions: Sequence[Work] = SESSIONS) -> ClaudeHome:
    """Write `<home>/.claude` with these sessions. The same arguments give the same bytes."""
    path = home / ".claude"
    transcripts: list[Path] = []
    results: list[Path] = []
    notes: list[Path] = []
    for number, work in enumerate(sessions):
        session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number}:{work.cwd}"))
        folder = path / "projects" / folder_name(work.cwd)
        began = BEGAN + timedelta(days=number)
        transcripts.append(_written(folder / f"{session}.jsonl", _lines(transcript(session, work, began))))
        helper = f"agent-{session[:8]}.jsonl"
        _written(folder / session / "subagents" / helper, _lines(sidechain(session, work.cwd, began)))
        for place, turn in enumerate(work.turns):
            if turn.output:
                file = folder / session / "tool-results" / f"toolu_{number:02}{place:02}.txt"
                results.append(_written(file, f"$ {turn.command}\n{turn.output}\n\n{PLANTED[2]}.\n"))
        memory = folder / "memory"
        notes.append(_written(memory / "MEMORY.md", f"# Memory\n\n- [Runner](runner.md)\n- {PLANTED[1]}.\n"))
        notes.append(
            _written(memory / "runner.md", f"---\nname: runner\ntype: user\n---\n{PLANTED[0]}. {PLANTED[2]}.\n")
        )
        _written(folder / "sessions-index.json", json.dumps({"version": 1, "entries": [{"sessionId": session}]}))
    _written(path / "CLAUDE.md", "# House rules\n\n## Style\n\nUse tabs in Makefiles.\n")
    _written(path / "settings.json", json.dumps({"theme": "dark", "hooks": {}}))
    _written(path / "history.jsonl", _lines([{"display": "ship it", "timestamp": 1_794_000_000_000, "project": "/x"}]))
    _written(path / "todos" / f"{uuid.uuid5(uuid.NAMESPACE_URL, 'todo')}.json", json.dumps([{"content": "x"}]))
    _written(path / "plans" / "brisk-fox.md", f"# Plan\n\n{PLANTED[1]}.\n")
    _written(path / "shell-snapshots" / "snapshot-bash-1.sh", "alias ll='ls -l'\n")
    return ClaudeHome(
        path=path,
        transcripts=tuple(transcripts),
        prompts=tuple(turn.prompt for work in sessions for turn in work.turns),
        tool_results=tuple(results),
        agent_notes=tuple(dict.fromkeys(notes)),
    )


def transcript(session: str, work: Work, began: datetime) -> Iterator[dict[str, Any]]:
    """Yield the lines of a transcript, each hanging on the one before."""
    parent: str | None = None
    at = began
    about = {"isSidechain": False, "userType": "external", "cwd": work.cwd, "sessionId": session, "version": VERSION}

    def line(key: str, **fields: Any) -> dict[str, Any]:
        nonlocal parent, at
        own, above = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session}:{key}")), parent
        parent, at = own, at + timedelta(seconds=7)
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {**about, "uuid": own, "parentUuid": above, "gitBranch": "main", "timestamp": stamp, **fields}

    yield {"type": "permission-mode", "permissionMode": "default", "sessionId": session}
    for place, turn in enumerate(work.turns):
        call = f"toolu_{place:02}{session[:6]}"
        yield line(
            f"{place}-prompt", type="user", promptSource="user", message={"role": "user", "content": turn.prompt}
        )
        yield {"type": "file-history-snapshot", "messageId": parent, "snapshot": {}}
        if turn.command:
            use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": turn.command}}
            yield line(f"{place}-use", type="assistant", message=_said(f"m{place}a", use))
            result = {"type": "tool_result", "tool_use_id": call, "content": turn.output[:2_000], "is_error": False}
            yield line(
                f"{place}-result",
                type="user",
                toolUseResult={"stdout": turn.output[:2_000], "stderr": "", "interrupted": False},
                message={"role": "user", "content": [result]},
            )
        thought = {"type": "thinking", "thinking": f"{PLANTED[1]}.", "signature": "x"}
        yield line(f"{place}-thinking", type="assistant", message=_said(f"m{place}b", thought))
        answer = {"type": "text", "text": turn.answer}
        yield line(f"{place}-answer", type="assistant", message=_said(f"m{place}b", answer))


def sidechain(session: str, cwd: str, began: datetime) -> Iterator[dict[str, Any]]:
    """Yield the transcript of a helper: its "user" is the agent."""
    stamp = (began + timedelta(minutes=3)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    about = {"isSidechain": True, "agentId": session[:8], "cwd": cwd, "sessionId": session, "timestamp": stamp}
    yield {
        **about,
        "type": "user",
        "uuid": f"{session}-h1",
        "parentUuid": None,
        "message": {"role": "user", "content": f"Search the tests. {PLANTED[2]}."},
    }
    yield {
        **about,
        "type": "assistant",
        "uuid": f"{session}-h2",
        "parentUuid": f"{session}-h1",
        "message": _said("h", {"type": "text", "text": "Found 41 tests."}),
    }


def two_projects_with_the_same_headings(folder: Path) -> tuple[Path, Path]:
    """Write two checkouts whose READMEs have the same headings and other words. Returns their folders."""
    for name, package in (("alpha", "poetry"), ("beta", "npm")):
        _written(
            folder / name / "README.md",
            f"# README\n\n## Install\n\nInstall {name} with {package}.\n\n## Licence\n\nMIT.\n",
        )
        _written(folder / name / "docs" / "README.md", f"# README\n\n## Install\n\nBuild the docs of {name}.\n")
    return folder / "alpha", folder / "beta"


def _said(message: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"id": message, "role": "assistant", "model": "claude-sonnet-5", "content": list(blocks)}


def _lines(found: Iterator[dict[str, Any]] | Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in found)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
