"""What a tool is: a name, the arguments it takes, what clients may assume of it, and the function that answers.

Free of the SDK and of any network. Arguments are msgspec structs: their schema is what a model reads, and each word of
it is paid for in every session, so it says only what changes a call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scrubjay.api.caller import Caller
from scrubjay.policy import MemoryPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

DROPPED = ("title", "default", "additionalProperties", "$defs", "minimum", "maximum", "maxItems")
"""Keywords of a schema that tell a model nothing: the type of an optional field says what is left out.

Bounds are checked and told by the error to the few calls that pass them; everybody would pay for them in every session.
"""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool. Optional texts are "" rather than null: a schema without unions is understood by all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool acts with: its caller, and the operations of the daemon, called as that caller."""

    caller: Caller
    operation: Callable[[str, Any], Awaitable[Any]]
    now: Millis
    utc_offset: int
    policy: MemoryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool says: text that is enough by itself, and where a client's contract wants it, the same as JSON."""

    text: str
    structured: Mapping[str, Any] | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. `run` gets the arguments as `arguments`; it raises the errors of the operations."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    run: Callable[[ToolContext, Any], Awaitable[str | Answer]]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt that a person picks by name. `text` holds {argument} for each of `arguments` (name, what it is)."""

    name: str
    title: str
    description: str
    text: str
    arguments: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """Something that can be read by its address: `read` gets what stands for the one variable of `template`."""

    template: str
    name: str
    description: str
    read: Callable[[ToolContext, str], Awaitable[str]]

    @property
    def prefix(self) -> str:
        """What stands before the variable."""
        return self.template.partition("{")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """What one path serves: tools, and what a client shows of them."""

    name: str
    instructions: str
    tools: Sequence[Tool]
    prompts: Sequence[Prompt] = ()
    templates: Sequence[ResourceTemplate] = ()
    by_name: Mapping[str, Tool] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {tool.name: tool for tool in self.tools})


def schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, in as few words as it takes.

    >>> class Asked(Arguments):
    ...     query: str
    ...     limit: int = 5
    >>> schema(Asked)
    {'type': 'object', 'properties': {'query': {'type': 'string'}, 'limit': {'type': 'integer'}}, 'required': ['query']}
    """
    whole = msgspec.json.schema(arguments)
    definitions = whole.get("$defs", {})

    def plain(value: Any, *, names: bool = False) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return plain(definitions[value["$ref"].rpartition("/")[2]])
        kept = {
            key: plain(member, names=key == "properties")
            for key, member in value.items()
            if names or key not in DROPPED
        }
        if "enum" in kept and "type" not in kept and not names:
            kept = {"type": "string", **kept}
        return {key: member for key, member in kept.items() if key != "required" or member}

    shown: dict[str, Any] = plain(whole)
    shown.pop("description", None)  # that of the class, which is for readers of the code
    return shown


def arguments(tool: Tool, given: Mapping[str, Any]) -> Any:
    """Return what a tool was called with. Raises InvalidError.

    Models write a list of one as that one, a number as text, and null for nothing: none of it is a reason to refuse.
    """
    fields = {one.encode_name: one for one in msgspec.structs.fields(tool.arguments)}
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name not in fields:
            known = ", ".join(fields) or "none"
            raise InvalidError(f"{tool.name} has no argument {name[:60]!r}", hint=f"its arguments: {known}")
        if value is None and not fields[name].required:
            continue
        is_list = schema(tool.arguments)["properties"][name].get("type") == "array"
        read[name] = [value] if is_list and isinstance(value, str | dict) else value
    try:
        return msgspec.convert(read, tool.arguments, strict=False)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise InvalidError(f"{tool.name}: {error}", hint="call it again with that argument put right") from error
