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
from collections.abc import Generator, Iterator, Mapping, Sequence
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

NUL_BLOCK = re.compile(rb"\0{512,}")
"""What a crash leaves of a block that was not written yet: disks have no smaller ones. Around it lie two records."""

RECORD = re.compile(rb'\s*\{\s*"')
VALUE = re.compile(r'\s*[\["\dtfn-]')
OPENING = re.compile(r'\{(?=\s*["}])')
BETWEEN = re.compile(r"[\s,\[\]\x1e\ufeff]*")
SPACE = re.compile(r"\s*")
MARKS = re.compile(r'["{}\[\]]')
STRING_END = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
ERROR_REACH = 8
"""Characters behind an error in which the next record may begin: an escape that was torn is six long."""

JOINED_CHARS = 8 << 20
"""Of lines that are taken as one record: the longest texts that hosts write are below."""

WORK = 64
"""Readings of each character of a file, on average, before damage in it is left alone: made-up files ask for more."""

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
    events to those that earlier versions gave them, where these differ. `keys_begin` is set where a format has ways to
    tell one session under different keys: how those of this way begin. `taken_back` are the person's words on branches
    that they left, which are not read: whoever imports is told which.
    """

    format: SourceFormat
    events: tuple[EventDraft, ...] = ()
    memories: tuple[MemoryDraft, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    earlier_keys: Mapping[str, str] = field(default_factory=dict)
    keys_begin: str = ""
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


def rows(text: str) -> Iterator[str]:
    """Yield the lines of a text without their line feeds, one by one."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def json_value(data: bytes, *, strict: bool = True) -> Any:
    """Return the JSON value in `data`; bytes that are not UTF-8 become U+FFFD. Raises ValueError for anything else.

    Unless `strict`, line feeds and tabs may stand in strings as they are.
    """
    try:
        if len(data) <= LARGE_JSON:
            return json.loads(data.decode(errors="replace"), strict=strict)
        return _InTurns(strict=strict).decode(decoded(data, errors="replace"))
    except RecursionError as e:
        raise ValueError("nested too deeply") from e


class _InTurns(json.JSONDecoder):
    """Reads JSON in Python, all but its strings: other threads get their turn, and it takes ten times as long."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__(strict=strict)
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


_LENIENT = json.JSONDecoder(strict=False)


def json_objects(data: bytes, skipped: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line, and those that damage left whole on lines that hold more, or less, than one.

    What is lost is counted: `torn_line` at the very end, else `bad_json`; `lost_block` where NUL bytes stand.
    """
    damaged = _DamagedLines(skipped, work=WORK * len(data))
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)]
        start += len(line) + 1
        if damaged.goes_on(line):
            yield from damaged.read(line)
        elif stripped := line.strip():
            try:
                value = json_value(stripped)
            except ValueError:
                yield from damaged.read(line)
                continue
            yield from damaged.end()
            members = value if isinstance(value, list) else [value]  # a whole file may be one list of its records
            records = [each for each in members if isinstance(each, dict)]
            yield from records
            skipped["not_object"] += len(members) - len(records) if records else 1
    torn = damaged.is_open and not data.rstrip(b"\0 \t\r").endswith(b"\n")
    yield from damaged.end()
    if torn:
        skipped["bad_json"] -= 1
        skipped["torn_line"] += 1


class _DamagedLines:
    """Reads lines that are not one JSON value each, and counts what cannot be read. Bounds its work.

    A crash or a second writer leaves two records on a line, the beginning of one before a whole one, a line feed amid a
    string, or NUL bytes. A record that is open at the end of its line is held: it goes on while lines follow that do
    not begin as records do, for a quote within a string is escaped.
    """

    def __init__(self, skipped: Counter[str], *, work: int) -> None:
        self._skipped = skipped
        self._work = work
        self._held: list[str] = []
        self._size = 0
        self._depth = 0
        self._in_string = False
        self.is_open = False

    def goes_on(self, line: bytes) -> bool:
        """Say whether a line may be the rest of a record that is held."""
        return bool(self._held) and not RECORD.match(line)

    def read(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Yield the records that a line holds or ends."""
        for number, piece in enumerate(NUL_BLOCK.split(line)):
            if number:
                self._skipped["lost_block"] += 1
                yield from self.end()
            text = decoded(piece, errors="replace")
            if "\0" in text:
                self._skipped["lost_block"] += 1
                text = text.replace("\0", "")
            if self.goes_on(piece) and (text.strip() or not number):
                yield from self._go_on(text)
            elif text.strip():
                yield from self.end()
                yield from self._values(text, 0)

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield what is whole in lines that were held and did not make a record."""
        held, self._held = self._held, []
        self.is_open = False
        self._skipped["bad_json"] += bool(held)
        for line in held[1:]:  # the first one was looked through before it was held
            if "{" not in line and not VALUE.match(line):
                self._skipped["bad_json"] += bool(line.strip())
                continue
            rest = yield from self._whole(line, 0)
            while rest is not None:
                self._skipped["bad_json"] += 1
                following = self._next_record(line, rest) if "{" in line else None
                rest = None if following is None else (yield from self._whole(line, following))

    def _go_on(self, text: str) -> Iterator[dict[str, Any]]:
        """Take a line as what follows a line feed within a string, if that makes a record."""
        end = self._end_of_value(text, 0)
        self._held.append(text if end is None else text[:end])
        self._size += len(text) + 1
        if end is not None:
            value, after = self._decoded(joined := "\n".join(self._held), 0)
            if isinstance(value, dict) and after == len(joined):
                self._held = []
                yield value
                yield from self._values(text, end)
                return
            self._held[-1] = text
        if end is not None or self._size > JOINED_CHARS:
            yield from self.end()

    def _values(self, text: str, at: int) -> Iterator[dict[str, Any]]:
        """Yield the records of a line from a place on; hold the last one if it is open."""
        rest = yield from self._whole(text, at)
        while rest is not None:
            following = self._next_record(text, rest)
            if following is None:
                break
            self._skipped["bad_json"] += 1
            rest = yield from self._whole(text, following)
        self.is_open = rest is not None
        if rest is None:
            return
        self._depth, self._in_string = 0, False
        if text[rest] == "{" and self._end_of_value(text, rest) is None and len(text) - rest <= JOINED_CHARS:
            self._held, self._size = [text[rest:]], len(text) - rest
        else:
            self._skipped["bad_json"] += 1

    def _whole(self, text: str, at: int) -> Generator[dict[str, Any], None, int | None]:
        """Yield the records that follow each other from a place on. Return where one fails, None at the end."""
        while (at := _behind(BETWEEN, text, at)) < len(text):
            value, end = self._decoded(text, at)
            if end <= at:
                return at
            if isinstance(value, dict):
                yield value
            elif _behind(BETWEEN, text, end) < len(text):
                return at
            else:
                self._skipped["not_object"] += 1
            at = end
        return None

    def _next_record(self, text: str, failed: int) -> int | None:
        """Return where the next whole record begins behind a place where none does.

        An object within a torn record is no record: what follows it shows that, for another record begins or the line
        ends behind each of those.
        """
        _, reached = self._decoded(text, failed)
        near = text.rfind('{"', failed + 1, max(-reached, failed + 1) + ERROR_REACH)
        if near > 0 and self._is_record(text, near)[0]:
            return near
        at = failed + 1
        while self._work > 0 and (opening := OPENING.search(text, at)):
            is_record, end = self._is_record(text, opening.start())
            if is_record:
                return opening.start()
            at = max(end, opening.start() + 1)
        return None

    def _is_record(self, text: str, at: int) -> tuple[bool, int]:
        value, end = self._decoded(text, at)
        following = _behind(SPACE, text, end) if end > at else at
        return isinstance(value, dict) and (following == len(text) or text[following] in "{\0"), end

    def _decoded(self, text: str, at: int) -> tuple[Any, int]:
        """Return the value at a place and where it ends; where there is none, minus the place where that shows."""
        if self._work <= 0:
            return None, -at
        decoder = _LENIENT if len(text) - at <= LARGE_JSON else _InTurns(strict=False)
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as e:
            self._work -= e.pos - at + e.pos // 16 + 1  # the error counts the lines from the beginning on
            return None, -e.pos
        except RecursionError:
            self._work -= len(text) - at
            return None, -at
        self._work -= end - at
        return value, end

    def _end_of_value(self, text: str, at: int) -> int | None:
        """Return where the brackets that are open are closed again, None where they are not."""
        while at < len(text):
            if self._in_string:
                string = STRING_END.match(text, at)
                if string is None:
                    return None
                at, self._in_string = string.end(), False
            mark = MARKS.search(text, at)
            if mark is None:
                return None
            at = mark.end()
            self._in_string = mark[0] == '"'
            self._depth += (mark[0] in "{[") - (mark[0] in "}]")
            if self._depth <= 0 and not self._in_string:
                return at
        return None


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


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
