r"""What a person typed, out of what a host made of it: the same for transcripts and for hooks. Pure.

Hosts put around a prompt what their editor shows (`<ide_selection>`, "# Context from my IDE setup"), put the prompt
itself into a tag or under a heading (`<user_query>`, "## My request for Codex:"), write a command of the person's as
tags, and tell what was typed at a tool that was turned down as that tool's output. The words within are the person's,
and nothing else is. What stands in a wrapper may be anybody's (a file, a page): so a wrapper ends with its last closing
tag, and a request begins at its last heading.
"""

from __future__ import annotations

import re

CONTEXT = (
    "additional_data",
    "agent_transcripts",
    "always_applied_workspace_rules",
    "attached_files",
    "cursor_commands",
    "customizationsUpdate",
    "editorContext",
    "environment_context",
    "environment_details",
    "environment_info",
    "explicit_instructions",
    "file_content",
    "folder_content",
    "git_status",
    "hook_context",
    "ide_diagnostics",
    "ide_opened_file",
    "ide_selection",
    "manually_attached_skills",
    "new-diagnostics",
    "open_and_recently_viewed_files",
    "post-tool-use-hook",
    "project_layout",
    "recommended_plugins",
    "reminderInstructions",
    "repoContext",
    "response-annotations",
    "session-start-hook",
    "system-reminder",
    "system_reminder",
    "toolReferences",
    "user-prompt-submit-hook",
    "user_info",
    "workspace_info",
)
"""Tags of hosts around what they add to a prompt: Claude Code, Codex, Cursor, Copilot, Gemini, Cline, Roo."""

_TAG = re.compile(rf"<(?P<close>/)?(?P<name>{'|'.join(CONTEXT)})(?:\s[^<>]{{0,2000}})?>", re.IGNORECASE)
_IMAGE = re.compile(r"<image\b[^<>]{0,2000}>\s{0,20}</image>", re.IGNORECASE)
_QUERY = re.compile(r"<(user_query|userRequest)>", re.IGNORECASE)
"""Tags of hosts around the prompt itself, beside other tags."""

_OTHER = re.compile(r"<([A-Za-z][\w-]{0,60})(?:\s[^<>]{0,2000})?>")
_WHOLE = re.compile(r"<(task|feedback|user_message|user_input|answer)>(?P<said>.*)</\1>", re.IGNORECASE | re.DOTALL)
"""Tags around a prompt that a person may write too: to take them off loses nothing."""

_REQUEST = re.compile(r"^#{1,3} My request(?: for [\w .-]{1,40})?:[ \t]*$", re.IGNORECASE | re.MULTILINE)
_COMMAND = re.compile(r"<command-(?P<part>name|args)>(?P<said>.*)</command-(?P=part)>", re.DOTALL)
_SHELL = re.compile(
    r"<(?P<tag>bash-input|user_shell_command)>\s*(?:<command>(?P<inner>.*)</command>.*|(?P<said>.*))</(?P=tag)>",
    re.DOTALL,
)
_LEAD = (
    r"(?:(?:to tell you how to proceed, )?the user said|the user provided the following reason for the rejection"
    r"|with the following feedback|user feedback):"
)
_LEADS_TO = re.compile(rf"\s*{_LEAD}\s*\Z", re.IGNORECASE)
_REFUSED = re.compile(
    r"(?:Error: )?(?:The user doesn[’']t want to (?:proceed with this tool use|take this action right now)"
    r"|Permission for this tool use was denied|The user rejected (?:permission to use )?this (?:specific )?tool call)"
    rf"\b.{{0,400}}?\b{_LEAD}(?P<said>.*)",
    re.IGNORECASE | re.DOTALL,
)
_REMARK = re.compile(r"\n\s*Note: The user[’']s next message may contain .*", re.DOTALL)
_ASKS_BACK = "The user wants to clarify these questions"
"""What Claude Code writes in the person's place where they want to talk about its questions."""


def typed(text: str) -> str:
    """Return what the person typed of a prompt, as they typed it; the text itself where no host wrapped it.

    A command comes back as it is typed where words follow it, and else as the host wrote it.

    >>> typed("<ide_opened_file>a.py is open</ide_opened_file> Use tabs.")
    'Use tabs.'
    >>> typed("<command-name>/plan</command-name> <command-args>two days</command-args>")
    '/plan two days'
    """
    said = text.strip()
    if said[:1] == "#" and (headings := [*_REQUEST.finditer(said)]):
        said = said[headings[-1].end() :]
    if "<" not in said:
        return said.strip()
    said = _IMAGE.sub("", without_context(said)).strip()
    if said.startswith("<command-"):
        found = {part["part"]: part["said"].strip() for part in _COMMAND.finditer(said)}
        return f"/{found.get('name', '').lstrip('/')} {found['args']}" if found.get("args") else said
    if shell := _SHELL.fullmatch(said):
        return f"! {(shell['inner'] or shell['said'] or '').strip()}"
    if said.startswith("<"):
        said = _asked(said)
    whole = _WHOLE.fullmatch(said)
    return (whole["said"] if whole else said).strip()


def refused(output: str) -> tuple[str, str]:
    """Return what a host says of a tool that the person turned down, and what they said there; "" where nothing is.

    >>> refused("The user rejected this tool call. User feedback: use pnpm")
    ('The user rejected this tool call.', 'use pnpm')
    """
    found = _REFUSED.match(output.strip())
    said = _REMARK.sub("", found["said"]).strip() if found else ""
    if not said or said.startswith(_ASKS_BACK) or found is None:
        return output, ""
    return _LEADS_TO.sub("", output.strip()[: found.start("said")]), said


def without_context(text: str) -> str:
    """Return a text without what a host's tags hold, however often they open and close within; one alone stays."""
    kept: list[str] = []
    name, depth, at = "", 0, 0
    start = ends = 0
    for tag in _TAG.finditer(text):
        this, closes = tag["name"].lower(), bool(tag["close"])
        if depth == 0 and not closes:
            kept.append(text[at : tag.start()])
            name, depth, start, ends = this, 1, tag.start(), 0
        elif this == name and closes:
            depth, ends = max(depth - 1, 0), tag.end()
            at = ends  # also for one too many: then the block went on to here
        elif this == name:
            depth += 1
    return "".join([*kept, text[at if not depth or ends else start :]])


def _asked(said: str) -> str:
    """Return what the last tag of a prompt holds, where there are only tags beside it; else the text itself."""
    openings = [*_QUERY.finditer(said)]
    if not openings:
        return said
    opening = openings[-1]
    end = said.lower().rfind(f"</{opening[1].lower()}>")
    if (
        end < opening.end()
        or _without_tags(said[: opening.start()])
        or _without_tags(said[end + len(opening[0]) + 1 :])
    ):
        return said
    return said[opening.end() : end]


def _without_tags(text: str) -> str:
    """Return what stands beside the tags of a text."""
    left: list[str] = []
    at = 0
    while tag := _OTHER.search(text, at):
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            break
        left.append(text[at : tag.start()])
        at = end + len(tag[1]) + 3
    return "".join([*left, text[at:]]).strip()
