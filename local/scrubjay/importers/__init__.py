"""What other programs and people wrote, as drafts to import: bytes in, drafts out. Knows no disk and no store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from scrubjay.importers import shapes
from scrubjay.importers.aider import MARK as AIDER_MARK
from scrubjay.importers.aider import parse_aider
from scrubjay.importers.chatgpt import parse_chatgpt
from scrubjay.importers.claude_ai import parse_claude_ai
from scrubjay.importers.claude_code import parse_claude_code
from scrubjay.importers.claude_mem import parse_claude_mem
from scrubjay.importers.codex import parse_codex
from scrubjay.importers.copilot import parse_copilot
from scrubjay.importers.cursor import MARK as CURSOR_MARK
from scrubjay.importers.cursor import parse_cursor
from scrubjay.importers.gemini import parse_gemini
from scrubjay.importers.locomo import parse_locomo
from scrubjay.importers.mcp_memory import parse_mcp_memory
from scrubjay.importers.mem0 import parse_mem0
from scrubjay.importers.notes import parse_markdown, parse_text
from scrubjay.importers.opencode import parse_opencode
from scrubjay.importers.pam import parse_pam
from scrubjay.importers.parsing import FORMATS_HINT, Parsed, SourceFormat, as_utf8, in_order, json_objects, path_of
from scrubjay.importers.specstory import MARK as SPECSTORY_MARK
from scrubjay.importers.specstory import parse_specstory
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType, Trust

__all__ = ["TRANSCRIPTS", "TYPED", "Parsed", "SourceFormat", "detect", "parse"]

TRANSCRIPTS = frozenset(
    (
        SourceFormat.CLAUDE_CODE,
        SourceFormat.CODEX,
        SourceFormat.COPILOT,
        SourceFormat.GEMINI,
        SourceFormat.OPENCODE,
        SourceFormat.CLAUDE_MEM,
        SourceFormat.SPECSTORY,
    )
)
"""Formats of agents whose hooks may have delivered the same turns."""

TYPED = TRANSCRIPTS - {SourceFormat.CLAUDE_MEM, SourceFormat.SPECSTORY}
"""Formats in which an agent's own program keeps what the person typed to it, in the person's home.

Not another program's notes of it, nor histories that stand in repositories and may be anybody's.
"""

MARKDOWN_SUFFIXES = frozenset((".md", ".markdown", ".mdown", ".mkd", ".mdc"))
MARKDOWN_NAMES = frozenset((".cursorrules", ".windsurfrules", ".clinerules"))
LINES = frozenset(
    (
        SourceFormat.CLAUDE_CODE,
        SourceFormat.CODEX,
        SourceFormat.COPILOT,
        SourceFormat.GEMINI,
        SourceFormat.MCP_MEMORY,
    )
)
"""Formats of a record a line: a block of such a file that is lost costs the records in it alone."""

TEXT_SUFFIXES = frozenset(("", ".txt", ".text"))
JSON_SUFFIXES = frozenset((".json", ".jsonl", ".ndjson"))
SPECSTORY_TOP = re.compile(rb"(?:---\n(?:.*\n)*?---\s+)?" + SPECSTORY_MARK)  # a note may quote it further down
BINARY_HEAD = 8_000  # a NUL in the first bytes marks a binary file: git's rule, and its number


class _OfSessions(Protocol):
    def __call__(self, name: str, data: bytes, *, project: str | None) -> Parsed: ...


SESSIONS: Mapping[SourceFormat, _OfSessions] = {
    SourceFormat.AIDER: parse_aider,
    SourceFormat.CHATGPT: parse_chatgpt,
    SourceFormat.CLAUDE_AI: parse_claude_ai,
    SourceFormat.CLAUDE_CODE: parse_claude_code,
    SourceFormat.CLAUDE_MEM: parse_claude_mem,
    SourceFormat.CODEX: parse_codex,
    SourceFormat.COPILOT: parse_copilot,
    SourceFormat.CURSOR: parse_cursor,
    SourceFormat.GEMINI: parse_gemini,
    SourceFormat.MEM0: parse_mem0,
    SourceFormat.OPENCODE: parse_opencode,
    SourceFormat.PAM: parse_pam,
    SourceFormat.SPECSTORY: parse_specstory,
    SourceFormat.TEXT: parse_text,
}
"""Formats that need no more to be read than the project they are for."""


def detect(name: str, head: bytes) -> SourceFormat:
    """Return the format of a file from its first bytes, and from its name where the bytes do not tell.

    The more of the file `head` holds, the surer. Raises InvalidError for an empty, binary or unknown file.
    """
    head = as_utf8(name, head, whole=False)
    if not head or head.isspace():
        raise InvalidError(f"{name} is empty", hint=FORMATS_HINT)
    path = path_of(name)
    suffix = path.suffix.lower()
    if suffix not in MARKDOWN_SUFFIXES and (found := shapes.format_of(head, is_json=suffix in JSON_SUFFIXES)):
        return found
    require_text(name, head)
    begin = head[:BINARY_HEAD].lstrip()
    if begin[:1] in (b"{", b"[") and suffix in JSON_SUFFIXES:
        raise InvalidError(f"{name} is JSON, but not of a format that scrubjay reads", hint=FORMATS_HINT)
    if begin.startswith(AIDER_MARK):
        return SourceFormat.AIDER
    if CURSOR_MARK.match(begin):
        return SourceFormat.CURSOR
    if SPECSTORY_TOP.match(begin):
        return SourceFormat.SPECSTORY
    if suffix in MARKDOWN_SUFFIXES or path.name.lower() in MARKDOWN_NAMES:
        return SourceFormat.MARKDOWN
    if suffix in TEXT_SUFFIXES:
        return SourceFormat.TEXT
    raise InvalidError(f"{name} is not of a format that scrubjay reads", hint=FORMATS_HINT)


def parse(
    name: str,
    data: bytes,
    format: str | None = None,  # noqa: A002 - the word of the command line and the wire
    *,
    only: str | None = None,
    project: str | None = None,
    place: str | None = None,
) -> Parsed:
    """Read a source as drafts, trusted as imports, but for what the person typed to an agent (`TYPED`).

    `name` is the file's name, relative to what is imported; `place` says which file it is, whatever way it was named
    (its absolute path): notes of the same headings in two files are told apart by it. `format` is a `SourceFormat`,
    found out when None. `only` picks one LoCoMo conversation by sample id or place from 1. `project` is who it is all
    for; without one, events of Claude Code belong to the directory they happened in, and the rest to the person.

    Times are in the order of the file (`parsing.in_order`).

    Raises InvalidError for an empty, binary or unknown file, or one that is not in `format`; NotFoundError when `only`
    names nothing. Damage inside a file is counted in `skipped` instead.
    """
    source = detect(name, data) if format is None else named(format)
    data = as_utf8(name, data, whole=True)
    if not (source in LINES and b"\0" in data[:BINARY_HEAD] and holds_records(data)):
        require_text(name, data)
    if only is not None and source is not SourceFormat.LOCOMO:
        raise InvalidError(
            f"--only chooses a conversation of a LoCoMo file, and {name} is not one", hint="leave out --only"
        )
    match source:
        case SourceFormat.LOCOMO:
            parsed = parse_locomo(name, data, only=only, project=project)
        case SourceFormat.MCP_MEMORY:
            parsed = parse_mcp_memory(name, data, project=project, place=place)
        case SourceFormat.MARKDOWN:
            parsed = parse_markdown(name, data, project=project, place=place)
        case _:
            parsed = SESSIONS[source](name, data, project=project)
    events = in_order(parsed.events)
    if source in TYPED:
        events = tuple(
            replace(event, trust=Trust.USER) if event.type is EventType.USER_MESSAGE else event for event in events
        )
    return replace(parsed, events=events)


def named(word: str) -> SourceFormat:
    """Return the format a person named. Raises InvalidError when there is none of that name."""
    try:
        return SourceFormat(word)
    except ValueError as e:
        raise InvalidError(f"{word!r} is not an import format", hint=FORMATS_HINT) from e


def require_text(name: str, data: bytes) -> None:
    """Raise InvalidError when a file is empty or binary."""
    if b"\0" in data[:BINARY_HEAD]:
        raise InvalidError(
            f"{name} is a binary file, not text", hint=f"unpack it first if it is an archive; {FORMATS_HINT}"
        )
    if not data or data.isspace():
        raise InvalidError(f"{name} is empty", hint=FORMATS_HINT)


def tells_more(head: bytes) -> bool:
    """Say whether more of a file may tell its format: all of these bytes are lines of bookkeeping, or one line."""
    head = as_utf8("", head, whole=False)
    begin = head.lstrip(shapes.SEPARATORS)
    return shapes.format_of(head, is_json=True) is None and (
        not begin or (begin.startswith(b"{") and (b"\n" not in begin or shapes.is_lines(begin)))
    )


def holds_records(data: bytes) -> bool:
    """Say whether there are JSON objects among NUL bytes: a transcript that a crash damaged, and nothing binary."""
    return shapes.is_damaged_text(data) and any(True for _ in json_objects(data, Counter()))
