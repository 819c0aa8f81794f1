"""The generated part of docs/agents.md: what the last `make agents-live` found, written where every test passed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_live.agents import PACKAGES

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
CLAIMS = ("setup", "stored once", "context reached the model", "echo not stored", "MCP tools", "removed")
BLOCK = re.compile(r"<!-- live: .*?<!-- /live -->", re.DOTALL)


@dataclass
class Found:
    """What was found of every host, and the story."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    claims: set[tuple[str, str]] = field(default_factory=set)
    told: tuple[str, str, str] = ("", "", "")
    extra: dict[str, int] = field(default_factory=dict)


FOUND = Found()


def ran(host: str, **figures: Any) -> None:
    """Keep the figures of one host's run."""
    FOUND.runs[host] = figures


def passed(host: str, claim: str) -> None:
    """Keep that a claim holds for a host."""
    FOUND.claims.add((host, claim))


def writer(name: str, *, extra: int) -> None:
    """Keep how many bytes an agent adds to a prompt."""
    FOUND.extra[name] = extra


def story(decision: str, later: str, given: str) -> None:
    """Keep what one agent was told and another was given."""
    FOUND.told = (decision, later, given)


def block() -> str:
    """Return the generated part."""
    head = f"| agent | {' | '.join(CLAIMS)} | events | requests | seconds |"
    rows = [head, "|---|" + "---|" * len(CLAIMS) + "--:|--:|--:|"]
    for host, figures in FOUND.runs.items():
        marks = " | ".join("yes" if (host, claim) in FOUND.claims else "**no**" for claim in CLAIMS)
        numbers = f"{figures['events']} | {figures['requests']} | {figures['seconds']:.0f}"
        rows.append(f"| {PACKAGES[host].lstrip('@').replace('@', ' ')} | {marks} | {numbers} |")
    decision, later, given = FOUND.told
    return "\n".join(
        (
            "<!-- live: written by `make agents-live` -->",
            *rows,
            "",
            "The story: on one day a person tells Claude Code",
            "",
            quoted(decision),
            "",
            "The next day they ask Codex, in the same project",
            "",
            quoted(later),
            "",
            "and with that, unasked, Codex's model saw this:",
            "",
            "```",
            given,
            "```",
            "<!-- /live -->",
        )
    )


def quoted(text: str) -> str:
    return f"> {text}"


def write(figures: Mapping[str, Any]) -> None:
    """Put the generated part into the page, when every host was run."""
    if len(figures) == len(PACKAGES) - 1 and FOUND.told[2]:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(lambda _: block(), page), encoding="utf-8")
