"""One file of a host, and what scrubjay does to it: bytes in, bytes out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay.setup import json_edits, json_source, toml_edits
from scrubjay.setup.json_edits import Hooks, Server
from scrubjay_shared.errors import ConflictError, InvalidError

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One file: `install` returns what it must hold, given what it holds (None: it is not there); `remove` undoes it.

    `remove` is given what the file holds and what it held before us, and returns None where nothing of it would be left
    that was not ours. Both raise InvalidError or ConflictError for a file that they must not touch. An `extra` is a
    command or a skill: where a person has a file of that name, theirs stays and the rest is installed. `instead` are
    other names of the file, of which one that is there is taken.
    """

    path: Path
    what: str
    install: Callable[[bytes | None], bytes]
    remove: Callable[[bytes, bytes | None], bytes | None]
    extra: bool = False
    instead: tuple[Path, ...] = ()


def json_file(
    path: Path,
    what: str,
    *,
    hooks: Hooks | None = None,
    server: Server | None = None,
    comments: bool = True,
    instead: tuple[Path, ...] = (),
) -> Target:
    """Return the target that merges hooks, our server or both into a JSON file of the host's."""

    def install(data: bytes | None) -> bytes:
        text, mark = decoded(data, empty="{}\n")
        json_source.parse(text, comments=comments)
        if hooks is not None:
            text = hooks.installed(text)
        if server is not None:
            text = server.installed(text)
        return mark + text.encode()

    def remove(data: bytes, prior: bytes | None) -> bytes | None:
        text, mark = decoded(data, empty="{}\n")
        before = json_source.parse(decoded(prior, empty="{}\n")[0]).value
        found = json_source.parse(text, comments=comments).value
        if hooks is not None:
            text = json_edits.without_hooks(text, before)
        if server is not None:
            text = server.removed(text, before)
        left = json_source.parse(text, comments=comments).value
        if left == found:
            return data
        if prior is None and isinstance(left, dict) and all(_is_head(hooks, *member) for member in left.items()):
            return None
        return mark + text.encode()

    return Target(path=path, what=what, install=install, remove=remove, instead=instead)


def _is_head(hooks: Hooks | None, key: str, value: Any) -> bool:
    return hooks is not None and hooks.head.get(key) == value


def toml_server(path: Path, command: str, args: Sequence[str]) -> Target:
    """Return the target that holds our server as a table of a TOML file."""

    def install(data: bytes | None) -> bytes:
        text, mark = decoded(data)
        return mark + toml_edits.installed(text, command, args).encode()

    def remove(data: bytes, prior: bytes | None) -> bytes | None:
        text, mark = decoded(data)
        left = toml_edits.removed(text)
        return None if prior is None and not left.strip() else mark + left.encode()

    return Target(path=path, what="MCP server", install=install, remove=remove)


def own_file(path: Path, what: str, content: str, *, mark: str = "scrubjay", extra: bool = True) -> Target:
    """Return the target that is a file of ours alone. `mark` is what every version of ours has in it."""

    def install(data: bytes | None) -> bytes:
        if data is not None and mark.encode() not in data:
            raise ConflictError(
                f"{path} is there already and is not scrubjay's", hint="rename yours to have scrubjay's as well"
            )
        return content.encode()

    def remove(data: bytes, _: bytes | None) -> bytes | None:
        return None if mark.encode() in data else data

    return Target(path=path, what=what, install=install, remove=remove, extra=extra)


def decoded(data: bytes | None, empty: str = "") -> tuple[str, bytes]:
    """Return a file's text and its byte-order mark; `empty` for one that is not there or has nothing in it.

    Raises InvalidError for what is not UTF-8.
    """
    mark = BOM if data is not None and data.startswith(BOM) else b""
    try:
        text = (data or b"").removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise InvalidError(
            f"it is not UTF-8 (byte {error.start})", hint="convert it to UTF-8 first, or move it away"
        ) from None
    return (text if text.strip() else empty or text), mark
