"""Looking into payloads that may hold anything: paths with dots, first names that have a value, texts of any shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scrubjay.importers.echo import unwrapped
from scrubjay.importers.parsing import clean

DEEPEST = 6
"""Levels of a tool's structured output that are shown: what is deeper is data for programs."""

MANY = 200
"""Members of one list or object that are shown; a directory's listing has fewer, a table is data."""

BULK = frozenset(
    (
        "base64",
        "blob",
        "gitDiff",
        "isImage",
        "interrupted",
        "metadata",
        "noOutputExpected",
        "oldTodos",
        "originalFile",
        "prompt",
        "returnDisplay",
        "signature",
        "structuredPatch",
        "usage",
        "userModified",
    )
)
"""Members of a tool's output that repeat its input, hold a whole file, or are bookkeeping."""

WORDS = (
    "llmContent",
    "textResultForLlm",
    "text_result_for_llm",
    "stdout",
    "stderr",
    "output",
    "content",
    "text",
    "result",
    "file",
    "error",
    "message",
)
"""Members under which the hosts put what a tool printed, the first ones first."""

TOLD = (
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
    "description",
    "prompt",
)
"""What a tool call was about, by the names of its arguments."""

TYPED = (None, "text", "input_text", "message")
"""`type` of the parts of a prompt or an answer that are words; else they are a picture, a call, a reference."""

SPOKEN = ("text", "content", "prompt", "message", "value")
"""Members under which an object has the words that it stands for."""

LARGE = 10**15
"""Numbers beyond it are shown in no tool's output: they are ids, or made to cost time."""

SUBJECT_CHARS = 2_000
"""Of a command or a file's name in a result's heading: here-documents hold whole files."""

SHELL_NOISE = re.compile(
    r"\n?<shellId: \w+ completed with exit code (?P<copilot>\d+)>\s*\Z"
    r"|(?:\nExit Code: (?P<gemini>\d+))?\nProcess Group PGID: \d+\s*\Z"
)
"""What Copilot CLI and Gemini CLI put behind a shell's output: the only sign there of a command that failed."""

NOISE_CHARS = 200
"""Of an output's end in which that stands."""


RESULTS = ("tool_response", "tool_result", "toolResult", "tool_output", "output")
"""Where a payload has a tool's result."""

SHELL_TEXTS = ("textResultForLlm", "text_result_for_llm", "llmContent")
"""Members of a result under which a shell's output stands."""

FAILURES = frozenset(("failure", "error", "denied", "rejected", "timeout"))
"""Copilot CLI's words for a result that is none."""


def at(payload: Any, path: str) -> Any:
    """Return what stands at a path like `output.parts` or `workspace_roots.0`; None where there is nothing."""
    for step in path.split("."):
        if isinstance(payload, Mapping):
            payload = payload.get(step)
        elif isinstance(payload, list) and step.isdigit():
            payload = payload[int(step)] if int(step) < len(payload) else None
        else:
            return None
    return payload


def word(payload: Any, paths: Sequence[str]) -> str:
    """Return the first name of the paths that has something in it, cleaned; else the empty string."""
    return next((text for path in paths if (text := named(at(payload, path)))), "")


def named(value: Any) -> str:
    """Return a string, or a number as one: some hosts number their sessions and calls.

    >>> named(" s1 "), named(12345), named(12345.0), named(True)
    ('s1', '12345', '12345', '')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return clean(value)
    return str(int(value)) if abs(value) < LARGE and value == int(value) else repr(value)


def anything(payload: Any, paths: Sequence[str]) -> Any:
    """Return the first value of the paths that is there and not empty; else None."""
    found = (at(payload, path) for path in paths)
    return next((value for value in found if value not in (None, "", [], {})), None)


def opened(value: Any) -> Any:
    """Return what a JSON text holds, where the host sends an object as its text; else the value itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return inner if isinstance(inner, dict | list) else value


def said(value: Any, levels: int = DEEPEST) -> str:
    """Return the words of a prompt or an answer: a text, an object around one, or parts of which the typed count."""
    if levels == 0:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (said(part, levels - 1) for part in value[:MANY])))
    if isinstance(value, Mapping):
        if value.get("type") not in TYPED or value.get("synthetic"):
            return ""
        return next((text for name in SPOKEN if (text := said(value.get(name), levels - 1))), "")
    return named(value)


def printed(value: Any) -> str:
    """Return what a tool printed, of whatever shape its host sends it in."""
    return "\n".join(filter(None, _printed(opened(value), DEEPEST))).strip()


def _printed(value: Any, levels: int) -> Iterator[str]:
    if isinstance(value, str):
        yield _without_noise(unwrapped(clean(value)))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value:g}" if abs(value) < LARGE else ""
    elif levels == 0:
        return
    elif isinstance(value, list):
        for part in value[:MANY]:
            if not isinstance(part, Mapping) or part.get("type") in (None, "text"):  # else a picture, or a reference
                yield from _printed(part, levels - 1)
    elif isinstance(value, Mapping):
        yield from _members(value, levels)


def _without_noise(text: str) -> str:
    """Return a shell's output without what its host put behind it."""
    return text[:-NOISE_CHARS] + SHELL_NOISE.sub("", text[-NOISE_CHARS:])


def _members(value: Mapping[str, Any], levels: int) -> Iterator[str]:
    words = [key for key in WORDS if value.get(key) not in (None, "", [], {})]
    for key in [key for key in words if key in ("stdout", "stderr")] or words[:1]:
        yield from _printed(value[key], levels - 1)
    for key in [] if words else list(value)[:MANY]:
        inner = "\n".join(_printed(value[key], levels - 1)) if key not in BULK else ""
        if inner:
            yield f"{clean(key)}: {inner}"


def heading(tool: str, given: Any) -> str:
    """Return what a tool was asked, in one heading: the command as in a shell, or the tool and its subject."""
    given = opened(given)
    if not isinstance(given, Mapping):
        return tool
    command = given.get("command")
    if isinstance(command, list):
        command = command[-1] if command else None
    if text := clean(command):
        return f"$ {text[:SUBJECT_CHARS]}"
    return " ".join(filter(None, (tool, word(given, TOLD)[:SUBJECT_CHARS])))


def failed(payload: Mapping[str, Any]) -> bool:
    """Say whether a tool's result tells that the tool failed, in any of the ways that hosts tell it.

    Codex does not tell it of a shell's command.
    """
    for key in RESULTS:
        result = opened(payload.get(key))
        if isinstance(result, str) and _exit_of(result):
            return True
        if not isinstance(result, Mapping):
            continue
        if result.get("isError") is True or result.get("is_error") is True or result.get("error"):
            return True
        if word(result, ("resultType", "result_type")) in FAILURES:
            return True
        if any(_exit_of(clean(result.get(name))) for name in SHELL_TEXTS):
            return True
        if at(result, "metadata.exit") not in (None, 0):
            return True
    return False


def _exit_of(text: str) -> bool:
    """Say whether a shell's output ends in what its host says of a command that failed."""
    end = SHELL_NOISE.search(unwrapped(text)[-NOISE_CHARS:])
    return end is not None and (end["copilot"] or end["gemini"] or "0") != "0"
