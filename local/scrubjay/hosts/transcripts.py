"""Where the hosts keep the transcripts of their sessions, as a table. Pure: it names folders and looks into none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcripts:
    """Where one host keeps them: `patterns` below `folder` of the home, or below what `variable` names.

    `below` is the part of `folder` that stays where the variable names only what is above it.
    """

    folder: str
    patterns: tuple[str, ...]
    variable: str = ""
    below: str = ""

    def within(self, home: PurePath, environ: Mapping[str, str]) -> PurePath:
        """Return the folder on this machine."""
        named = environ.get(self.variable, "") if self.variable else ""
        return PurePath(named, self.below) if named else home / self.folder


TRANSCRIPTS: MappingProxyType[str, Transcripts] = MappingProxyType(
    {
        "claude-code": Transcripts(
            folder=".claude", variable="CLAUDE_CONFIG_DIR", patterns=("projects/*/????????-????-*.jsonl",)
        ),
        "codex": Transcripts(
            folder=".codex",
            variable="CODEX_HOME",
            patterns=(
                "sessions/*/*/*/rollout-*.jsonl",
                "sessions/*/*/*/rollout-*.jsonl.zst",  # packed once they are a week old
                "archived_sessions/rollout-*.jsonl",
                "archived_sessions/rollout-*.jsonl.zst",
            ),
        ),
        "gemini": Transcripts(folder=".gemini", patterns=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json")),
        "copilot": Transcripts(folder=".copilot", variable="COPILOT_HOME", patterns=("session-state/*/events.jsonl",)),
        "opencode": Transcripts(
            folder=".local/share/opencode",
            variable="XDG_DATA_HOME",
            below="opencode",
            patterns=("opencode.db", "opencode-*.db"),  # a channel of releases has a database of its own
        ),
    }
)
"""By host. What an agent's helpers said lies deeper and is left out, as their hooks are. Cursor's form is not known."""
