"""How a JSON file tells its format: by the keys at its top, or at the top of its first lines or elements.

What stands within a text or within what a tool was given may be another program's file: it tells nothing. So a value is
sketched: the outer levels of it, as far as the first bytes of a file show them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

from scrubjay.importers.parsing import SourceFormat, clean
from scrubjay_shared.records import Json

LEVELS = 4
"""Levels of a value that are looked at: an element of a list, and an object in a list in that."""

ELEMENTS = 20
"""Elements of a list that are asked at most where the first ones do not tell."""

MOST_BYTES = 16 << 20
"""Of lines, some of which hold a file each. A transcript begins with bookkeeping."""

SKETCHED_BYTES = 4 << 20
"""Of a document: to look at so much takes half a second. Its keys stand at its beginning, or behind small values."""

NAME_BYTES = 200
"""The longest strings that tell something."""

TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},:]|[^\s"\[\]{},:]++', re.DOTALL)
LINE = re.compile(rb"\{(?<![^\n\0]\{)")
LINE_END = re.compile(rb"[\n\0]")
SEPARATORS = b" \t\r\n\0,\x1e"

OPENING, CLOSING, BETWEEN = (b"{", b"["), (b"}", b"]"), (b",", b":")

CLAUDE_LINES = frozenset(("file-history-snapshot", "queue-operation"))
CODEX_LINES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"))
COPILOT_LINES = frozenset(("session.start", "session.resume", "user.message", "assistant.message"))
GEMINI_LINES = frozenset(("user", "gemini"))
LOCOMO_KEY = re.compile(r"session_\d{1,6}(?:_date_time)?")
CLAUDE_MEM_LISTS = ("observations", "summaries", "prompts", "sessions")
MEM0_LISTS = ("results", "memories", "history")


def _elements(found: Any) -> list[Json]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _object(found: Any) -> Json:
    return found if isinstance(found, dict) else {}


def _is_claude_code(found: Json) -> bool:
    return bool({"parentUuid", "leafUuid"} & found.keys()) or (
        clean(found.get("type")) in CLAUDE_LINES and bool({"sessionId", "messageId"} & found.keys())
    )


def _is_copilot(found: Json) -> bool:
    return isinstance(found.get("data"), dict) and clean(found.get("type")) in COPILOT_LINES and "id" in found


def _is_gemini(found: Json) -> bool:
    is_message = clean(found.get("type")) in GEMINI_LINES and {"id", "timestamp", "content"} <= found.keys()
    return is_message or {"sessionId", "projectHash"} <= found.keys()


def _is_opencode(found: Json) -> bool:
    session = clean(_object(found.get("info")).get("id"))
    return session.startswith("ses_") or bool(session and isinstance(found.get("messages"), list))


def _is_claude_ai(found: Json) -> bool:
    named = {"conversations_memory", "project_memories", "prompt_template"}
    return isinstance(found.get("chat_messages"), list) or bool(named & found.keys())


def _is_locomo(found: Json) -> bool:
    talk = found.get("conversation", found)
    asked = any({"question", "evidence"} <= each.keys() for each in _elements(found.get("qa")))
    return asked or any(LOCOMO_KEY.fullmatch(key) for key in _object(talk))


def _is_claude_mem(found: Json) -> bool:
    of_its_own = {"memory_session_id", "content_session_id"}
    listed = [key for key in CLAUDE_MEM_LISTS if isinstance(found.get(key), list)]
    return (
        "totalObservations" in found
        or any(of_its_own & each.keys() for key in listed for each in _elements(found[key]))
        or len(listed) == len(CLAUDE_MEM_LISTS)
    )


def _is_mem0(found: Json) -> bool:
    if isinstance(found.get("memory"), str) or {"old_memory", "text_lemmatized"} & found.keys():
        return True
    if isinstance(found.get("results"), list) and isinstance(found.get("relations"), list):
        return True
    return any(_is_mem0(each) for key in MEM0_LISTS for each in _elements(found.get(key)))


def _is_graph(found: Json) -> bool:
    if isinstance(found.get("entities"), list) or isinstance(found.get("relations"), list):
        return True
    return clean(found.get("type")) in ("entity", "relation") or {"name", "entityType", "observations"} <= found.keys()


SHAPES: tuple[tuple[SourceFormat, Callable[[Json], bool]], ...] = (
    (SourceFormat.PAM, lambda found: found.get("schema") == "portable-ai-memory"),
    (SourceFormat.CLAUDE_CODE, _is_claude_code),
    (SourceFormat.CODEX, lambda found: isinstance(found.get("payload"), dict) and found.get("type") in CODEX_LINES),
    (SourceFormat.COPILOT, _is_copilot),
    (SourceFormat.GEMINI, _is_gemini),
    (SourceFormat.OPENCODE, _is_opencode),
    (SourceFormat.CHATGPT, lambda found: isinstance(found.get("mapping"), dict)),
    (SourceFormat.CLAUDE_AI, _is_claude_ai),
    (SourceFormat.LOCOMO, _is_locomo),
    (SourceFormat.CLAUDE_MEM, _is_claude_mem),
    (SourceFormat.MEM0, _is_mem0),
    (SourceFormat.MCP_MEMORY, _is_graph),
)
"""How an object tells its format by its own keys, the first that does."""


def format_of(head: bytes, *, is_json: bool) -> SourceFormat | None:
    """Return the format of JSON or JSON lines by their shape, as far as the beginning of a file shows it.

    `is_json` says that it is called so: then the beginning of its first line may be lost.
    """
    if b"\0" in head and not is_damaged_text(head):
        return None
    start = len(head) - len(head.lstrip(SEPARATORS))
    if head[start : start + 1] not in {b"{", b"["}:
        return _of_lines(head) if is_json else None
    value, end = sketch(head, start)
    if found := _of_value(value):
        return found
    return None if end is not None and not head[end:].strip(SEPARATORS) else _of_lines(head)


def is_lines(head: bytes) -> bool:
    """Say whether a file begins with a JSON object that ends on the first line, with another one behind it."""
    first, feed, rest = head.partition(b"\n")
    begin = first.lstrip(SEPARATORS)
    return (
        bool(feed)
        and begin[:1] == b"{"
        and rest.lstrip(SEPARATORS)[:1] in {b"{", b""}
        and sketch(begin, 0)[1] == len(begin.rstrip())
    )


def is_damaged_text(data: bytes) -> bool:
    """Say whether NUL bytes stand in blocks, as a crash leaves them: in what is binary they stand everywhere."""
    head = data[:SKETCHED_BYTES]
    return sum(1 for _ in islice(re.finditer(rb"\0++", head), len(head) // 16 + 1)) <= len(head) // 16


def sketch(data: bytes, start: int) -> tuple[Any, int | None]:
    """Return the value that begins at a place, its outer levels alone, and where it ends, if that is seen."""
    top: list[Any] = []
    levels: list[Any] = [top]
    depth, key = 0, b""
    before = b""
    for token in TOKEN.finditer(data, start, min(len(data), start + SKETCHED_BYTES)):
        mark = token[0]
        if mark in CLOSING:
            if 0 < depth <= LEVELS:
                levels.pop()
            depth -= 1
            if depth <= 0:
                return top[0] if top else None, token.end()
        elif mark in OPENING:
            depth += 1
            if depth <= LEVELS:
                levels.append(_put(levels[-1], key, {} if mark == b"{" else []))
        elif depth <= LEVELS and mark not in BETWEEN:
            if isinstance(levels[-1], dict) and before != b":":
                key = mark[:NAME_BYTES]
            else:
                is_text = mark.startswith(b'"')
                _put(levels[-1], key, _text(mark) if is_text else None)
        before = mark
    return top[0] if top else None, None


def _put(within: Any, key: bytes, value: Any) -> Any:
    if isinstance(within, dict):
        within[_text(key)] = value
    elif len(within) < ELEMENTS:
        within.append(value)
    return value


def _text(mark: bytes) -> str:
    return mark[1:NAME_BYTES].removesuffix(b'"').decode(errors="replace")


def _of_value(value: Any) -> SourceFormat | None:
    for found in value if isinstance(value, list) else [value]:
        if isinstance(found, dict) and (source := next((name for name, tells in SHAPES if tells(found)), None)):
            return source
    return None


def _of_lines(head: bytes) -> SourceFormat | None:
    """Return the format that the first lines tell. Those of a document that lie deeper in it are indented."""
    for found in LINE.finditer(head, 0, MOST_BYTES):
        end = LINE_END.search(head, found.start())
        value, _ = sketch(head[found.start() : end.start() if end else len(head)], 0)
        if source := _of_value(value):
            return source
    return None
