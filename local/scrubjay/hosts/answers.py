"""How a host takes text into the model's context: what a hook prints, by tables of hosts. Pure."""

from __future__ import annotations

import json
from types import MappingProxyType

FLAT = MappingProxyType(
    {"copilot": "additionalContext", "opencode": "additionalContext", "cursor": "additional_context"}
)
"""The hosts that take it as one field at the top, and how they call it. The others follow Claude Code."""


NOTICED = frozenset({"claude-code", "gemini"})
"""The hosts that show a person, and not the model, what a hook prints under `systemMessage`."""


def notice(host: str, text: str) -> str:
    """Return the JSON that a hook prints to tell the person something, "" where the host has no place for it.

    >>> notice("claude-code", "off"), notice("codex", "off")
    ('{"systemMessage": "off"}', '')
    """
    return json.dumps({"systemMessage": text}) if host in NOTICED else ""


def answer(host: str, event: str, text: str, *, noticed: str = "") -> str:
    """Return the JSON that a hook prints to hand text to a model, "" for no text. `event` is the host's name of it.

    What the person is to notice stands before the text where the host has no place of its own for it.

    >>> answer("copilot", "sessionStart", "Mog")
    '{"additionalContext": "Mog"}'
    """
    apart = {"systemMessage": noticed} if noticed and host in NOTICED else {}
    if noticed and not apart:
        text = f"{noticed}\n\n{text}".rstrip()
    if not text:
        return json.dumps(apart) if apart else ""
    if host in FLAT:
        return json.dumps({FLAT[host]: text})
    return json.dumps(apart | {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
