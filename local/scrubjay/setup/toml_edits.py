"""The table of our MCP server in Codex's config.toml: appended, renewed in its place, taken out. Pure.

Only whole lines of that table are touched. What this cannot do by lines (the table written inline) is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scrubjay_shared.errors import ConflictError, InvalidError

TABLE = "mcp_servers"
HEADER = re.compile(r"^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*\"?scrubjay\"?[ \t]*\][ \t]*(?:#.*)?\r?$", re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*\[", re.MULTILINE)
_BY_HAND = "write the table [mcp_servers.scrubjay] by hand, or as lines of its own, then try again"


def parsed(text: str) -> dict[str, Any]:
    """Return what a document says. Raises InvalidError that names the place of what is wrong."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidError(f"it is not valid TOML: {error}", hint="mend it there, then try again") from None


def server(document: Mapping[str, Any]) -> Any:
    """Return the entry of our server, None where there is none."""
    tables = document.get(TABLE)
    return tables.get("scrubjay") if isinstance(tables, dict) else None


def installed(text: str, command: str, args: Sequence[str]) -> str:
    """Return the text with the table.

    Raises ConflictError where another server has its name, InvalidError where the table cannot be added by lines.
    """
    before = parsed(text)
    found = server(before)
    if found is not None and "scrubjay" not in str(found.get("command", "")):
        raise ConflictError(
            "mcp_servers.scrubjay is there already and does not call scrubjay",
            hint="rename or delete that table, then try again",
        )
    if found is not None and found.get("command") == command and found.get("args") == list(args):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = "".join(f"{line}{newline}" for line in (f"command = {_quoted(command)}", f"args = [{_list(args)}]"))
    wanted = {**(found or {}), "command": command, "args": list(args)}
    whole = {**before, TABLE: {**before.get(TABLE, {}), "scrubjay": wanted}}
    if found is None:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return _that_says(whole, [f"{text}{gap}[mcp_servers.scrubjay]{newline}{lines}"])
    return _that_says(whole, (_renewed(text, start, end, lines) for start, end in _spans(text)))


def removed(text: str) -> str:
    """Return the text without the table and the empty line before it. Raises InvalidError where it is inline."""
    before = parsed(text)
    if server(before) is None or "scrubjay" not in str(server(before).get("command", "")):
        return text
    tables = {name: value for name, value in before[TABLE].items() if name != "scrubjay"}
    rest = {name: value for name, value in before.items() if name != TABLE}
    return _that_says(
        rest | ({TABLE: tables} if tables else {}), (_without(text, start, end) for start, end in _spans(text))
    )


def _renewed(text: str, start: int, end: int, lines: str) -> str:
    head, *rest = text[start:end].splitlines(keepends=True)
    kept = "".join(line for line in rest if line.partition("=")[0].strip().strip("\"'") not in {"command", "args"})
    return text[:start] + head + lines + kept + text[end:]


def _without(text: str, start: int, end: int) -> str:
    head, tail = text[:start], text[end:]
    for line in ("\r\n", "\n"):
        if head.endswith(line * 2) or head == line:
            return head.removesuffix(line) + tail
        if not head and tail.startswith(line):
            return tail.removeprefix(line)
    return head + tail


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where lines that look like the table begin and end: up to the comments and empty lines before a header."""
    for header in HEADER.finditer(text):
        following = _NEXT.search(text, header.end())
        end = following.start() if following else len(text)
        lines = text[header.start() : end].splitlines(keepends=True)
        while len(lines) > 1 and following and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            end -= len(lines.pop())
        yield header.start(), end


def _that_says(wanted: Mapping[str, Any], texts: Iterable[str]) -> str:
    """Return the first text that says exactly that: lines are edited, meaning is compared. Raises InvalidError."""
    for text in texts:
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue  # those lines stood in a text, not in a table
        if not found.get(TABLE, True):
            found.pop(TABLE)
        if found == wanted:
            return text
    raise InvalidError("mcp_servers.scrubjay is not a table of lines of its own", hint=_BY_HAND)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # TOML's basic strings have JSON's escapes


def _list(values: Sequence[str]) -> str:
    return ", ".join(map(_quoted, values))
