"""The Anthropic memory tool: six commands over files below /memories, each file one memory.

A file's memory says its path in its first line and the file's text after it, so that no two files are one memory, and
`recall` finds a file by its words and by its name. White space at the ends, which no memory has, is kept beside. What
is answered and what is refused is in the tool's own words, which its users compare.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from scrubjay import api
from scrubjay.transports.mcp.stored import with_metadata
from scrubjay.transports.mcp.tools import Arguments, Tool, ToolContext, Toolset
from scrubjay.transports.mcp.writing_tools import drafted, still_in_copies
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError
from scrubjay_shared.records import Kind, Memory, MemoryType

ROOT = "/memories"
PATH, ENDS = "path_in_memories", "ends"
MAX_LINES = 999_999
UNITS = ("B", "K", "M", "G")
LEVELS = 2
"""How deep a directory is shown."""

SNIPPET_LINES = 2


class Memories(Arguments, frozen=True):
    """Arguments of the tool: which of them a command takes, its name says."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: str = ""
    view_range: Annotated[list[int], Meta(description="[first, last] line, -1 to the end")] = msgspec.field(
        default_factory=list
    )
    file_text: str = ""
    old_str: str = ""
    new_str: str = ""
    insert_line: int = 0
    insert_text: str = ""
    old_path: str = ""
    new_path: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file: the memory that it is, and its text."""

    memory: Memory
    path: str
    text: str


async def run(context: ToolContext, asked: Memories) -> str:
    """Do what a command says. Raises NotFoundError, ConflictError or InvalidError with the words of the tool."""
    match asked.command:
        case "view":
            return await _view(context, _checked(asked.path), asked.view_range)
        case "create":
            return await _create(context, _checked(asked.path), asked.file_text)
        case "str_replace":
            return await _str_replace(context, _checked(asked.path), asked.old_str, asked.new_str)
        case "insert":
            return await _insert(context, _checked(asked.path), asked.insert_line, asked.insert_text)
        case "delete":
            return await _delete(context, _checked(asked.path))
        case "rename":
            return await _rename(context, _checked(asked.old_path), _checked(asked.new_path))


def _checked(path: str) -> str:
    """Return a path below /memories. Raises InvalidError for one that leads out of it."""
    plain = posixpath.normpath(path) if path.startswith("/") else ""
    steps = path.replace("\\", "/").split("/")
    if (plain != ROOT and not plain.startswith(f"{ROOT}/")) or ".." in steps or "%2e" in path.lower() or "\0" in path:
        raise InvalidError(f"Path must start with {ROOT}, got: {path[:200]}", hint=f"give a path below {ROOT}")
    return plain


async def _files(context: ToolContext) -> dict[str, File]:
    """Return all files that the caller sees, by their paths; of two of one path the newer."""
    files: dict[str, File] = {}
    async for memory in with_metadata(context, PATH, kind=Kind.NOTE):
        path, ends = memory.metadata.get(PATH), memory.metadata.get(ENDS)
        if isinstance(path, str) and path not in files:
            body = memory.content.partition("\n")[2]
            before, after = ends if isinstance(ends, list) and len(ends) == 2 else ("", "")
            files[path] = File(memory, path, f"{before}{body}{after}")
    return files


def _found(files: dict[str, File], path: str) -> File:
    if path not in files:
        raise missing(path)
    return files[path]


def missing(path: str) -> NotFoundError:
    """Return the error for a path that is not there."""
    return NotFoundError(f"The path {path} does not exist. Please provide a valid path.")


def _content(path: str, text: str) -> tuple[str, list[str]]:
    """Return what a memory says of a file, and the white space at the ends of its text."""
    body = text.strip()
    if not body:
        return path, ["", text]
    start = text.index(body)
    return f"{path}\n{body}", [text[:start], text[start + len(body) :]]


async def _write(context: ToolContext, file: File, path: str, text: str) -> None:
    content, ends = _content(path, text)
    if text.count("\n") > MAX_LINES:
        raise InvalidError(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
    metadata = file.memory.metadata | {PATH: path, ENDS: ends}
    await context.operation("update", api.UpdateRequest(ref=file.memory.id, content=content, metadata=metadata))


async def _view(context: ToolContext, path: str, lines: Sequence[int]) -> str:
    files = await _files(context)
    if path in files:
        return f"Here's the content of {path} with line numbers:\n" + _numbered(files[path].text, lines)
    below = {name: len(file.text.encode()) for name, file in files.items() if name.startswith(f"{path}/")}
    if not below and path != ROOT:
        raise missing(path)
    sizes: dict[str, int] = {path: sum(below.values())}
    for name, size in below.items():
        steps = name.removeprefix(f"{path}/").split("/")
        if any(step.startswith(".") for step in steps):
            continue
        for depth in range(1, min(len(steps), LEVELS) + 1):
            shown = "/".join((path, *steps[:depth]))
            sizes[shown] = sizes.get(shown, 0) + size
    rows = "\n".join(f"{_size(size)}\t{name}" for name, size in sorted(sizes.items()))
    return f"Here're the files and directories up to {LEVELS} levels deep in {path}, excluding hidden items:\n{rows}"


def _size(size: int) -> str:
    """Return a size as the tool shows it.

    >>> _size(0), _size(4096), _size(1536)
    ('0B', '4K', '1.5K')
    """
    value, unit = float(size), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f}".removesuffix(".0") + UNITS[unit]


def _numbered(text: str, lines: Sequence[int] = ()) -> str:
    rows = text.split("\n")
    first, last = (lines[0], lines[1]) if len(lines) == 2 else (1, -1)
    if lines and (len(lines) != 2 or not 1 <= first <= len(rows) or (last != -1 and not first <= last)):
        raise InvalidError(
            f"Invalid `view_range`: {list(lines)}. It should be two lines within the range [1, {len(rows)}]"
        )
    end = len(rows) if last == -1 else min(last, len(rows))
    return "\n".join(f"{number:6d}\t{rows[number - 1]}" for number in range(first, end + 1))


async def _create(context: ToolContext, path: str, text: str) -> str:
    files = await _files(context)
    if path in files or path == ROOT or any(name.startswith(f"{path}/") for name in files):
        raise ConflictError(f"File {path} already exists")
    content, ends = _content(path, text)
    draft = drafted(context, content, MemoryType.LONG_TERM, "")
    draft = replace(draft, kind=Kind.NOTE, metadata=draft.metadata | {PATH: path, ENDS: ends})
    await context.operation("add", draft)
    return f"File created successfully at: {path}"


async def _str_replace(context: ToolContext, path: str, old: str, new: str) -> str:
    file = _found(await _files(context), path)
    count = file.text.count(old) if old else 0
    if not count:
        raise InvalidError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        at = [number for number, row in enumerate(file.text.split("\n"), 1) if old.split("\n", 1)[0] in row]
        raise InvalidError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, at))}. Please ensure it is unique"
        )
    before = file.text.partition(old)[0]
    text = file.text.replace(old, new)
    await _write(context, file, path, text)
    line = before.count("\n") + 1
    rows = text.split("\n")
    last = min(line + new.count("\n") + SNIPPET_LINES, len(rows))
    snippet = _numbered(text, [max(line - SNIPPET_LINES, 1), last])
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"


async def _insert(context: ToolContext, path: str, line: int, text: str) -> str:
    file = _found(await _files(context), path)
    rows = file.text.split("\n")
    if not 0 <= line <= len(rows):
        raise InvalidError(f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(rows)}].")
    rows.insert(line, text.removesuffix("\n"))
    await _write(context, file, path, "\n".join(rows))
    return f"The file {path} has been edited."


async def _delete(context: ToolContext, path: str) -> str:
    if path == ROOT:
        raise InvalidError(f"The directory {ROOT} itself cannot be deleted", hint="delete what is in it")
    files = await _files(context)
    gone = [file for name, file in files.items() if name == path or name.startswith(f"{path}/")]
    if not gone:
        raise missing(path)
    done = [await context.operation("forget", api.ForgetRequest(ref=file.memory.id, for_good=False)) for file in gone]
    return f"Successfully deleted {path}{still_in_copies(done)}"


async def _rename(context: ToolContext, old: str, new: str) -> str:
    files = await _files(context)
    moved = {name: file for name, file in files.items() if name == old or name.startswith(f"{old}/")}
    if not moved or old == ROOT:
        raise missing(old)
    if new == ROOT or any(name == new or name.startswith(f"{new}/") for name in files):
        raise ConflictError(f"The destination {new} already exists")
    for name, file in moved.items():
        await _write(context, file, new + name.removeprefix(old), file.text)
    return f"Successfully renamed {old} to {new}"


TOOLSET = Toolset(
    name="scrubjay-memories",
    instructions="Files below /memories outlive this session. View the directory before you start, and keep what you "
    "learn there.",
    tools=(
        Tool(
            name="memory",
            title="Memory files",
            description="Read and write files below /memories, which outlive this session: view a directory or a file, "
            "create, str_replace, insert, delete, rename (old_path, new_path).",
            arguments=Memories,
            run=run,
            destructive=True,
        ),
    ),
)
