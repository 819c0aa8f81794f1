"""How what memory told an agent comes back, in hooks and in transcripts, and how it is known. Pure.

What was recalled is known already: learning it again would double it, and make the agent's words the person's. It
comes back in four ways, and each has its mark: our own fence, plain or escaped as HTML; the tags in which a host wraps
what hooks add; the name of our MCP server beside a tool's result; and the names that hosts give to our tools. A shell
command that runs this very program is a fifth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scrubjay.redaction.blocks import (
    CLOSING,
    HOST_CLOSING,
    HOST_OPENING,
    OPENING,
    REST_OF_OPENING,
    TAG_REACH,
    may_hold_tag,
)
from scrubjay.redaction.windows import scan

OUR_TOOL = re.compile(
    r"(?:functions\.)?(?:mcp__(?:plugin_[\w-]*_)?scrubjay__|mcp_scrubjay_|scrubjay[-_.:/])", re.IGNORECASE
)
"""How the hosts call our tools: Claude Code and Codex, Gemini CLI, Copilot CLI, OpenCode."""

OUR_SERVER = re.compile(r"(?:plugin[:_][\w-]+[:_])?scrubjay", re.IGNORECASE)

OUR_COMMAND = re.compile(r"\s*(?:\w+=\S*\s+)*(?:\S*[/\\])?scrubjay(?:\.exe)?(?:\s|$)")
"""A shell's command that begins by running this program, with variables set before it at most."""

FENCE = re.compile(OPENING, re.IGNORECASE)
"""Where our fence opens, however it was escaped on the way."""

_TAGS = re.compile(
    rf"(?P<open>{OPENING})|(?P<close>{CLOSING})|(?P<wrap_open>{HOST_OPENING})|(?P<wrap_close>{HOST_CLOSING})",
    re.IGNORECASE,
)
_BEGINNING = re.compile(r"\A(?:<|\\u003c|&(?:amp;)?lt;)", re.IGNORECASE)
_UNTRUSTED = ("<untrusted_context>", "</untrusted_context>")
_PASSES = 16
"""Removals of what earlier ones joined. Ordinary text takes one; of what takes more, only the beginning is kept."""


def is_our_tool(tool: str, server: str = "") -> bool:
    """Say whether a tool is one of ours, by its name, or by its server's where the host tells that."""
    return bool(OUR_TOOL.match(tool) or OUR_SERVER.fullmatch(server))


def is_our_command(given: Any) -> bool:
    """Say whether a tool was asked to run this program in a shell, whose output is then what memory told."""
    command = given.get("command") if isinstance(given, Mapping) else None
    if isinstance(command, list):
        command = command[-1] if command else None
    return isinstance(command, str) and bool(OUR_COMMAND.match(command))


def without_echo(text: str) -> str:
    """Return a text without what hooks added to it: our fence, and the tags that hosts wrap it in, with all they hold.

    A fence that was cut off (it opens at the end of a line and is never closed) runs to the end; a mere mention of one
    stays, with its `<` made `‹`: no fence is left in any case.
    """
    if not may_hold_tag(text):
        return text
    for _ in range(_PASSES):
        spans = _spans(text)
        if not spans:
            return FENCE.sub(lambda mention: _BEGINNING.sub("‹", mention[0]), text)
        kept, end = [], 0
        for start, after in spans:
            kept.append(text[end:start])
            end = after
        text = "".join([*kept, text[end:]])
    tag = _TAGS.search(text)
    return text[: tag.start()] if tag else text


def _spans(text: str) -> list[tuple[int, int]]:
    """Return what is to be cut out of a text, in order, none within another."""
    found: list[tuple[int, int]] = []
    fences: list[re.Match[str]] = []
    wraps: list[int] = []
    for tag in scan(_TAGS, text, TAG_REACH):
        if tag["open"]:
            fences.append(tag)
        elif tag["wrap_open"]:
            wraps.append(tag.start())
        elif tag["close"] and fences:
            found.append((fences.pop().start(), tag.end()))
        elif tag["wrap_close"] and wraps:
            found.append((wraps.pop(), tag.end()))
    if cut_off := next((tag for tag in fences if REST_OF_OPENING.match(text, tag.end())), None):
        around = next((span for span in sorted(found) if span[0] < cut_off.start() < span[1]), None)
        found.append(around or (cut_off.start(), len(text)))
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if outermost and start <= outermost[-1][1]:
            outermost[-1] = (outermost[-1][0], max(outermost[-1][1], end))
        else:
            outermost.append((start, end))
    return outermost


def unwrapped(text: str) -> str:
    """Return what Gemini CLI's tag around each tool's output holds, or the text itself."""
    opening, closing = _UNTRUSTED
    inner = text.strip()
    if not (inner.startswith(opening) and inner.endswith(closing) and len(inner) >= len(opening) + len(closing)):
        return text
    return inner[len(opening) : -len(closing)].removeprefix("\n").removesuffix("\n")
