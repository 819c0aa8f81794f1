"""What is added to a host's JSON file and taken out of it again: hooks and the entry of the MCP server. Pure.

Hooks come in two shapes: groups with a list of handlers (Claude Code, Codex, Gemini CLI), and handlers alone (Copilot
CLI, Cursor). Ours are known by the name of the program that they call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scrubjay.setup import json_source
from scrubjay.setup.json_source import Node, Part, Style
from scrubjay_shared.errors import ConflictError, InvalidError

PROGRAM = "scrubjay-hook"
"""What a hook of ours calls: the mark by which it is found again."""

CALLS = ("command", "args", "bash", "powershell", "exec")
"""The fields of a handler that say what it calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks that a file is to hold: for each event the handler; `grouped` says in which of the two shapes.

    `matcher` is put into each group where the host asks for one; `head` are members that the file must have beside.
    """

    handlers: Mapping[str, Mapping[str, Any]]
    grouped: bool = True
    matcher: str | None = None
    head: Mapping[str, Any] = field(default_factory=dict)

    def installed(self, text: str) -> str:
        """Return the text with these hooks, each after those that are there; one that is there is renewed in its place.

        Hooks of ours for other events are taken out. Raises InvalidError where the file is not what hosts read.
        """
        for key, value in self.head.items():
            if root_of(text).member(key) is None:
                text = with_member(text, (key,), value)
        for event in self.handlers:
            text = self._renewed(text, event)
        for event in _events(text):
            if event not in self.handlers:
                text = _without_ours(text, event)
        return text

    def _renewed(self, text: str, event: str) -> str:
        root = root_of(text)
        listed = at(root, ("hooks", event))
        if listed is None:
            return with_member(text, ("hooks", event), [self._entry(event)])
        if not isinstance(listed.value, list):
            raise InvalidError(f"hooks.{event} is not a list", hint="mend it there, then try again")
        ours = _ours(listed)
        if not ours:
            return json_source.added(text, listed, None, self._entry(event), Style.of(text, root))
        for container, part in reversed(ours[1:]):  # the last first: places before it stay where they are
            text = json_source.removed(text, container, part)
        container, part = ours[0]
        alone = self.grouped and container is listed
        wanted = self._entry(event) if alone or not self.grouped else dict(self.handlers[event])
        if alone and part.node.value.get("hooks") == [self.handlers[event]]:
            return text  # a matcher that the person gave our group is theirs
        return (
            text if part.node.value == wanted else json_source.replaced(text, part.node, wanted, Style.of(text, root))
        )

    def _entry(self, event: str) -> dict[str, Any]:
        handler = dict(self.handlers[event])
        if not self.grouped:
            return handler
        return ({"matcher": self.matcher} if self.matcher else {}) | {"hooks": [handler]}


def without_hooks(text: str, prior: Any) -> str:
    """Return the text without hooks of ours; lists that become empty go where `prior` did not have them either."""
    left = text
    for event in _events(text):
        without = _without_ours(left, event)
        left = left if without == left else _without_empty(without, ("hooks", event), prior)
    return text if left == text else _without_empty(left, ("hooks",), prior)


def with_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with a value at a path, its parents made where they are missing; another value is replaced.

    Raises InvalidError where a parent is something else than an object.
    """
    root = root_of(text)
    node = root
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise InvalidError(
                f"{'.'.join(path[:depth]) or 'the file'} is not an object", hint="mend it there, then try again"
            )
        found = node.member(key)
        if found is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return json_source.added(text, node, key, value, Style.of(text, root))
        node = found.node
    return text if node.value == value else json_source.replaced(text, node, value, Style.of(text, root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The entry of our MCP server: its place, what it says, and which of that is the person's once it is there."""

    path: tuple[str, ...]
    entry: Mapping[str, Any]
    theirs: tuple[str, ...] = ("env", "environment", "enabled", "disabled", "timeout", "tools", "trust")

    def installed(self, text: str) -> str:
        """Return the text with the entry. Raises ConflictError where another server has its name."""
        found = at(root_of(text), self.path)
        if found is None:
            return with_member(text, self.path, dict(self.entry))
        if not isinstance(found.value, dict) or "scrubjay" not in str(found.value.get("command", "")):
            name = ".".join(self.path)
            raise ConflictError(
                f"{name} is there already and does not call scrubjay",
                hint="rename or delete that entry, then try again",
            )
        wanted = {key: value for key, value in self.entry.items() if key not in self.theirs or key not in found.value}
        return with_member(text, self.path, found.value | wanted)

    def removed(self, text: str, prior: Any) -> str:
        """Return the text without the entry, and without parents that this leaves empty and `prior` did not have."""
        root = root_of(text)
        parent = at(root, self.path[:-1])
        part = parent.member(self.path[-1]) if parent is not None else None
        if parent is None or part is None or "scrubjay" not in str(_command(part)):
            return text
        text = json_source.removed(text, parent, part)
        for depth in range(len(self.path) - 1, 0, -1):
            text = _without_empty(text, self.path[:depth], prior)
        return text


def root_of(text: str) -> Node:
    """Return the document's root. Raises InvalidError when it is not an object."""
    root = json_source.parse(text)
    if not isinstance(root.value, dict):
        raise InvalidError("the file holds something else than a JSON object", hint="mend it there, then try again")
    return root


def at(root: Node, path: tuple[str, ...]) -> Node | None:
    """Return the value at a path, None where there is none."""
    node: Node | None = root
    for key in path:
        found = node.member(key) if node is not None and isinstance(node.value, dict) else None
        node = found.node if found is not None else None
    return node


def _command(part: Part) -> Any:
    return part.node.value.get("command", "") if isinstance(part.node.value, dict) else ""


def _events(text: str) -> list[str]:
    hooks = at(root_of(text), ("hooks",))
    return [part.key for part in hooks.parts if part.key is not None] if hooks is not None else []


def _ours(listed: Node) -> list[tuple[Node, Part]]:
    """Return the entries of an event's list that are ours, or only our handlers in groups that hold others too."""
    found: list[tuple[Node, Part]] = []
    for part in listed.parts if isinstance(listed.value, list) else ():
        inner = part.node.member("hooks") if isinstance(part.node.value, dict) else None
        handlers = inner.node.parts if inner is not None and isinstance(inner.node.value, list) else (part,)
        ours = [handler for handler in handlers if _calls_us(handler.node.value)]
        whole = len(ours) == len(handlers)
        found += [(listed, part)] if ours and whole else [(inner.node, one) for one in ours if inner is not None]
    return found


def _calls_us(handler: Any) -> bool:
    return isinstance(handler, dict) and any(PROGRAM in str(handler.get(name, "")) for name in CALLS)


def _without_ours(text: str, event: str) -> str:
    listed = at(root_of(text), ("hooks", event))
    for container, part in reversed(_ours(listed) if listed is not None else []):
        text = json_source.removed(text, container, part)
    return text


def _without_empty(text: str, path: tuple[str, ...], prior: Any) -> str:
    """Return the text without what stands empty at a path, unless it was there before us."""
    for key in path:
        prior = prior.get(key) if isinstance(prior, dict) else None
    root = root_of(text)
    parent, node = at(root, path[:-1]), at(root, path)
    part = parent.member(path[-1]) if parent is not None else None
    if parent is None or part is None or node is None or node.parts or prior is not None or node.value not in ({}, []):
        return text
    return json_source.removed(text, parent, part)
