"""Which folders an agent made for itself, by what is in them. Knows names and first bytes, and reads no disk.

Claude Code keeps in one folder a project: a transcript a session, named by its id; beside each a folder of that name
with outputs of tools and the talk with helpers; and `memory`, its own notes. Only the transcripts hold what the person
said. Outputs stand in the transcripts as well, helpers are spoken to by the agent, and the notes are the agent's
conclusions, in a format that is its maker's to change: all of these are left out when a folder is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scrubjay.importers.parsing import SourceFormat, path_of

SESSION = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
HELPER = re.compile(r"agent-[\w-]+")
SLUG = re.compile(r"-[\w-]*|[A-Za-z]--[\w-]*")
"""How Claude Code names a project's folder: the path with "-" for what is no letter or digit. It begins with "-", or
with a drive's letter."""

PROJECTS = "projects"
NOTES = "memory"
INSTRUCTIONS = "CLAUDE.md"
"""What the person wrote in the agent's home: the instructions for all projects."""

KINDS = {
    ".codex": (re.compile(r"(?:archived_)?sessions/(?:.*/)?rollout-[^/]+\.jsonl(?:\.zst)?"), "AGENTS.md"),
    ".gemini": (re.compile(r"tmp/[^/]+/chats/session-[^/]+\.jsonl?"), "GEMINI.md"),
    ".copilot": (re.compile(r"session-state/[^/]+/events\.jsonl"), "copilot-instructions.md"),
}
"""Homes of other agents, by the folder's name: which files in them are sessions, and what the person wrote there."""

FORMATS = {".codex": SourceFormat.CODEX, ".gemini": SourceFormat.GEMINI, ".copilot": SourceFormat.COPILOT}

INSTRUCTION_FILES = frozenset((INSTRUCTIONS, "CLAUDE.local.md", "AGENTS.md", *(name for _, name in KINDS.values())))
"""Files in which people instruct agents, by name: whatever they no longer say holds no longer."""

TOOL_RESULTS, AGENT_NOTES, AGENT_FILES, HELPERS = "tool_results", "agent_notes", "agent_files", "subagents"
"""Why a file is left out."""


def is_session(name: str, source: SourceFormat | None) -> bool:
    """Say whether a file, of this format by its first bytes, is a transcript where the agent put it."""
    path = path_of(name)
    return source is SourceFormat.CLAUDE_CODE and path.suffix == ".jsonl" and bool(SESSION.fullmatch(path.stem))


def format_at(parts: tuple[str, ...]) -> SourceFormat | None:
    """Return the format of a session by where an agent put it and what it called it; `parts` are those of its path."""
    *folders, name = parts
    if folders[-2:-1] == [PROJECTS] and SLUG.fullmatch(folders[-1]) and is_session(name, SourceFormat.CLAUDE_CODE):
        return SourceFormat.CLAUDE_CODE
    homes = [number for number, folder in enumerate(folders) if folder in KINDS]
    if homes and KINDS[home := folders[homes[-1]]][0].fullmatch("/".join(parts[homes[-1] + 1 :])):
        return FORMATS[home]
    return None


def is_project(name: str, folders: Iterable[str], *, has_session: bool, has_notes: bool) -> bool:
    """Say whether a folder is an agent's, of one project: it has a transcript; or its name and its folders say so.

    The second is one whose transcripts were deleted, as Claude Code does after a month.
    """
    return has_session or bool(SLUG.fullmatch(name) and (has_notes or any(map(SESSION.fullmatch, folders))))


def left_out(below: tuple[str, ...]) -> str:
    """Return why a file in the folder of a project is not read; "" for one that is. `below` is its path from there."""
    *folders, name = below
    if not folders:
        if HELPER.fullmatch(path_of(name).stem) and name.endswith(".jsonl"):
            return HELPERS
        return AGENT_FILES if name.endswith(".json") else ""
    if folders[0] == NOTES:
        return AGENT_NOTES
    if SESSION.fullmatch(folders[0]):
        return {"tool-results": TOOL_RESULTS, "subagents": HELPERS}.get(folders[1] if folders[1:] else "", AGENT_FILES)
    return ""


def left_out_of_home(below: tuple[str, ...]) -> str:
    """Return why a file in the agent's home, not below `projects`, is not read; "" for the person's instructions."""
    return "" if below == (INSTRUCTIONS,) else AGENT_FILES


def kind_of(folder: str) -> str:
    """Return which agent's home a folder is, by its name; "" for any other folder."""
    return folder if folder in KINDS else ""


def left_out_of_kind(kind: str, below: tuple[str, ...]) -> str:
    """Return why a file in such a home is not read; "" for a session, and for the person's instructions."""
    if not kind:
        return ""
    sessions, instructions = KINDS[kind]
    return "" if sessions.fullmatch("/".join(below)) or below == (instructions,) else AGENT_FILES
