"""From bytes to lines, JSON objects, valid text and times, and what a source gave. Knows nothing of any one format."""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import json.scanner
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import MAX_MILLIS, Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, MemoryDraft

UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
SURROGATE = re.compile("[\ud800-\udfff]")
PIECE = 262_144
"""Bytes or characters of a file that one call into C works on: other threads wait a millisecond for it."""

LARGE_JSON = 1_048_576
"""Bytes of one JSON value from which on it is read in turns with other threads: to read so many takes 20 ms."""

SECONDS_BELOW = 100_000_000_000  # a number below this is epoch seconds (until the year 5138), above it milliseconds


class SourceFormat(StrEnum):
    """What can be imported. The value is the word a person types after `--format`."""

    AIDER = "aider"
    CHATGPT = "chatgpt"
    CLAUDE_AI = "claude-ai"
    CLAUDE_CODE = "claude-code"
    CLAUDE_MEM = "claude-mem"
    CODEX = "codex"
    COPILOT = "copilot"
    CURSOR = "cursor"
    GEMINI = "gemini"
    LOCOMO = "locomo"
    MARKDOWN = "markdown"
    MCP_MEMORY = "mcp-memory"
    MEM0 = "mem0"
    OPENCODE = "opencode"
    PAM = "pam"
    SPECSTORY = "specstory"
    TEXT = "text"


FORMATS_HINT = f"--format takes one of: {', '.join(sorted([*SourceFormat, 'scrubjay']))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a source holds, in its own order. `skipped` counts what was left out by reason, sorted by reason.

    Events carry a `dedupe_key` and memories a `metadata["source_key"]`; both come from ids of the source, or from
    content where it has none, so that the same source gives the same keys on every import. `earlier_keys` maps keys of
    events to those that earlier versions gave them, where these differ. `taken_back` are the person's words on branches
    that they left, which are not read: whoever imports is told which.
    """

    format: SourceFormat
    events: tuple[EventDraft, ...] = ()
    memories: tuple[MemoryDraft, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    earlier_keys: Mapping[str, str] = field(default_factory=dict)
    taken_back: tuple[str, ...] = ()


def in_order(events: Sequence[EventDraft], latest: int = MAX_MILLIS) -> tuple[EventDraft, ...]:
    """Return events of sessions, in their order, with times in that order: the one rule for all formats.

    A line without a time was said when the line before it was, or the first one after that has one. So was a line that
    is dated beyond `latest`, if any other is not, or more than a day after lines that follow it and fit to those before
    it. A line dated before the one above it was said no earlier: the clock was set back, and the file knows better.
    """
    ahead = DEFAULT.limits.clock_skew_ms
    earliest: dict[tuple[str, str], int] = {}  # of what follows, from the end upwards
    follows: list[int | None] = []
    for event in reversed(events):
        session = event.agent, event.session_id
        follows.append(earliest.get(session))
        if event.ts is not None and event.ts <= latest:
            earliest[session] = min(event.ts, earliest.get(session, event.ts))
    last: dict[tuple[str, str], int] = {}
    found: list[EventDraft] = []
    for event, after in zip(events, reversed(follows), strict=True):
        session = event.agent, event.session_id
        before = last.get(session)
        ts: int | None = event.ts if event.ts is not None and event.ts <= latest else None
        if ts is not None and after is not None and ts > after + ahead and (before is None or before <= after):
            ts = None
        if ts is None:
            ts = before if before is not None else after
        elif before is not None:
            ts = max(ts, before)
        if ts is not None:
            last[session] = ts
        found.append(event if ts in (None, event.ts) else replace(event, ts=Millis(ts)))
    return tuple(found)


def counted(skipped: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Return the reasons and their counts, sorted by reason."""
    return tuple(sorted((+skipped).items()))


def as_utf8(name: str, data: bytes, *, whole: bool) -> bytes:
    """Return `data` without its byte order mark, and in UTF-8 where the mark says UTF-16 (PowerShell writes that).

    Raises InvalidError when the mark promises UTF-16 and the bytes break the promise; not when `data` is only the
    beginning of a file, which may end amid a character.
    """
    if data.startswith(UTF8_BOM):
        return data[len(UTF8_BOM) :]
    if data.startswith(UTF16_BOMS):
        try:
            errors = "strict" if whole else "ignore"
            return b"".join(piece.encode() for piece in _decoded(data, "utf-16", errors))
        except UnicodeDecodeError as e:
            raise InvalidError(
                f"{name} begins like UTF-16 text, but cannot be read as such", hint="save it as UTF-8"
            ) from e
    return data


def prose(name: str, data: bytes) -> str:
    """Return a text file as a string whose lines end in a line feed alone.

    Raises InvalidError when it is not UTF-8 or holds NUL bytes: guessing an encoding would store wrong words.
    """
    one_ending = io.IncrementalNewlineDecoder(None, translate=True)
    found: list[str] = []
    read = 0
    try:
        for piece in _decoded(data, "utf-8", "strict"):
            if "\0" in piece:
                raise InvalidError(f"{name} is a binary file, not text", hint=FORMATS_HINT)
            found.append(one_ending.decode(piece))
            read += len(piece.encode())
    except UnicodeDecodeError as e:
        raise InvalidError(
            f"{name} is not UTF-8 text: its byte {read + e.start} cannot be read",
            hint="save it as UTF-8, for instance with: iconv -f WINDOWS-1252 -t UTF-8",
        ) from e
    return "".join([*found, one_ending.decode("", final=True)])


def decoded(data: bytes, *, errors: str) -> str:
    """Return what `data.decode(errors=errors)` does, letting other threads run meanwhile."""
    return "".join(_decoded(data, "utf-8", errors))


def _decoded(data: bytes, encoding: str, errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    for start in range(0, len(data), PIECE):
        yield decoder.decode(data[start : start + PIECE])
    yield decoder.decode(b"", final=True)


def pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of which each can be worked on in one call into C."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines of `data` stripped of white space, without copying the whole."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            end = len(data)
        yield data[start:end].strip()
        start = end + 1


def rows(text: str) -> Iterator[str]:
    """Yield the lines of a text without their line feeds, one by one."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def json_value(data: bytes) -> Any:
    """Return the JSON value in `data`; bytes that are not UTF-8 become U+FFFD. Raises ValueError for anything else."""
    try:
        if len(data) <= LARGE_JSON:
            return json.loads(data.decode(errors="replace"))
        return _InTurns().decode(decoded(data, errors="replace"))
    except RecursionError as e:
        raise ValueError("nested too deeply") from e


class _InTurns(json.JSONDecoder):
    """Reads JSON in Python, all but its strings: other threads get their turn, and it takes ten times as long."""

    def __init__(self) -> None:
        super().__init__()
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def json_objects(data: bytes, skipped: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line; any other line is counted: `torn_line` at the very end, else `bad_json`."""
    torn = False
    for line in lines(data):
        if not line:
            continue
        torn = False
        try:
            value = json_value(line)
        except ValueError:
            skipped["bad_json"] += 1
            torn = not data.endswith(b"\n")
            continue
        if isinstance(value, dict):
            yield value
        else:
            skipped["not_object"] += 1
    if torn:
        skipped["bad_json"] -= 1
        skipped["torn_line"] += 1


def clean(value: Any) -> str:
    """Return a string as valid Unicode, outer white space removed; the empty string for anything else."""
    if not isinstance(value, str):
        return ""
    valid = (
        value
        if value.isascii()
        else "".join([SURROGATE.sub("\N{REPLACEMENT CHARACTER}", piece) for piece in pieces(value)])
    )
    return valid.strip()


def first(found: dict[str, Any], *keys: str) -> str:
    """Return the first of `keys` that holds a string with something in it, cleaned; else the empty string."""
    return next((text for key in keys if (text := clean(found.get(key)))), "")


def millis(value: Any) -> Millis | None:
    """Return a time as UTC milliseconds: ISO 8601 (naive is UTC), epoch seconds, or epoch milliseconds; else None."""
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        return bounded(seconds * 1000)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return bounded(value * 1000 if abs(value) < SECONDS_BELOW else value)


def bounded(ms: float) -> Millis | None:
    """Return whole milliseconds when a ULID can hold them (from 1970 on), else None: such a time is not known."""
    return Millis(round(ms)) if 0 <= ms <= MAX_MILLIS else None


def digest(*parts: str) -> str:
    """Return 128 bits of SHA-256 over the parts, in hex: the same parts give the same key on every machine."""
    said = hashlib.sha256()
    for index, part in enumerate(parts):
        said.update(b"\0" if index else b"")
        for piece in pieces(part):
            said.update(piece.encode(errors="replace"))
    return said.hexdigest()[:32]


def path_of(name: str) -> PurePosixPath:
    """Return a file's name as a path with forward slashes, whichever system it came from."""
    return PurePosixPath(clean(name).replace("\\", "/").replace("\0", ""))
