"""HTTP requests into the records of `api`, strictly: a wrong type, an unknown field, a field given twice is an error.

Pure. Path and query values are text and are read leniently ("5" is a number); JSON is read as it stands.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from scrubjay.policy import DEFAULT, LimitPolicy
from scrubjay.transports.http import piecewise
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrubjay.api.operations import Operation
    from scrubjay.transports.http.routes import Route

MAX_QUERY_FIELDS = 64
"""Query parameters in one URL: several times the widest request there is."""

MAX_INTEGER = 2**63 - 1
"""JSON has no bounds for whole numbers; the store's columns do."""


class UnknownFieldError(InvalidError):
    """The request has a field that this version does not know: misspelt, or of another version."""


SEE_SCHEMA = "GET /openapi.json describes every field"

# A pair of surrogates, a lone one, or any other escape. Scanned left to right: after an escaped backslash, `ud800` is
# text.
_ESCAPES = re.compile(
    rb"\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


@cache
def takes_file(operation: Operation) -> bool:
    """Tell whether a request may also be a file's bytes as the body, with its other fields in the query string."""
    return any(field.name == "data" for field in dataclasses.fields(operation.request))


def path_fields(route: Route) -> tuple[str, ...]:
    """Return the names of the fields that stand in a route's path."""
    return tuple(re.findall(r"{(\w+)}", route.path))


def read(
    operation: Operation,
    route: Route,
    *,
    path: Mapping[str, str],
    query: str,
    body: bytes,
    media_type: str,
    limits: LimitPolicy = DEFAULT.limits,
) -> Any:
    """Return a request record. `path` and `query` are percent-encoded. Raises InvalidError, TooLargeError.

    A body of `piecewise.LARGE_BYTES` or more is to be read in a thread: it may take a second.
    """
    given: dict[str, Any] = {name: _unquoted(value) for name, value in path.items()}
    asked = _query_fields(query) if query else {}
    raw = takes_file(operation) and media_type != "application/json"
    if route.takes_query:
        if body:
            raise InvalidError(
                f"{route.method} takes its fields from the query string, not from a body", hint=SEE_SCHEMA
            )
        fields: dict[str, Any] = asked
    elif raw:
        fields = asked | {"data": body}
    else:
        if asked:
            raise InvalidError(
                f"{route.method} {route.path} takes its fields from the body, not from the query string",
                hint=SEE_SCHEMA,
            )
        fields = _fields(operation, body, limits) if body else {}
        if not isinstance(fields, dict):
            raise InvalidError("the body is not a JSON object", hint=SEE_SCHEMA)
    if twice := given.keys() & fields.keys():
        raise InvalidError(f"{min(twice)} is given in the path, and again beside it", hint="give it in the path alone")
    given |= fields
    _refuse_unknown(given, operation.request, "")
    record = _record(given, operation.request, strict=not (route.takes_query or raw))
    for name in given:
        value = getattr(record, name)
        if isinstance(value, int) and not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
            raise InvalidError(f"{name} is too large a number", hint="a whole number has at most 64 bits")
    return record


def read_plain(operation: Operation, body: bytes) -> Any:
    """Return the request record of a plugin's operation: a JSON object as its body. Raises InvalidError."""
    try:
        return msgspec.json.decode(body or b"{}", type=operation.request)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # The message of msgspec names fields and types, never values.
        raise InvalidError(
            f"the request to {operation.name} is not valid: {error}",
            hint="if the daemon is of another version than the command: scrubjay daemon restart",
        ) from error


def _fields(operation: Operation, body: bytes, limits: LimitPolicy) -> Any:
    if len(body) < piecewise.LARGE_BYTES:
        return decoded(body)
    shape: type = operation.request
    lists = {name for name, inner in _nested(shape).items() if inner is not None}
    files = {"data"} if takes_file(operation) else set()
    return piecewise.fields(body, lists=lists, files=files, max_items=limits.max_batch, decode=decoded)


def decoded(body: bytes) -> Any:
    """Return the JSON value in `body`. A lone surrogate, which agents do send, becomes U+FFFD. Raises InvalidError."""
    try:
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError:
            if b"\\u" not in body:
                raise
            return msgspec.json.decode(_ESCAPES.sub(lambda found: b"\\ufffd" if found[1] else found[0], body))
    except UnicodeDecodeError as error:
        raise InvalidError("the body is not UTF-8", hint="send JSON as UTF-8") from error
    except RecursionError as error:
        raise InvalidError("the body is nested too deeply", hint="send less deeply nested metadata") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidError(f"the body is not JSON: {error}", hint=SEE_SCHEMA) from error


def _record(given: dict[str, Any], shape: type, *, strict: bool) -> Any:
    try:
        try:
            return msgspec.convert(given, shape, strict=strict)
        except msgspec.ValidationError:
            return msgspec.convert(_whole(given), shape, strict=strict)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise InvalidError(str(error), hint=SEE_SCHEMA) from error


def _whole(value: Any) -> Any:
    """Return a JSON value with 5.0 as 5: JSON has one kind of number, and some languages write all with a point."""
    if isinstance(value, dict):
        return {name: member if name == "metadata" else _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _query_fields(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:
        raise InvalidError("the query string has too many fields, or is not UTF-8", hint=SEE_SCHEMA) from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidError("a query parameter is given twice", hint="give it once")
    return fields


def _unquoted(value: str) -> str:
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise InvalidError("the path is not UTF-8", hint="percent-encode UTF-8") from error


def _refuse_unknown(value: object, shape: type, where: str) -> None:
    """Refuse fields that nobody would read: a misspelt one would be lost without a word."""
    if not isinstance(value, dict):
        return
    nested = _nested(shape)
    for name, member in value.items():
        if name not in nested:
            raise UnknownFieldError(
                f"{where or 'the request'} has no field {name[:80]!r}", hint=f"fields: {', '.join(nested) or 'none'}"
            )
        inner = nested[name]
        if inner is not None and isinstance(member, list):
            for place, item in enumerate(member):
                _refuse_unknown(item, inner, f"{name}[{place}]")


@cache
def _nested(shape: type) -> dict[str, type | None]:
    """Return a record's fields, each with the record type its items have, if any."""
    hints = typing.get_type_hints(shape)
    items = {field.name: next(iter(typing.get_args(hints[field.name])), None) for field in dataclasses.fields(shape)}
    return {name: item if dataclasses.is_dataclass(item) else None for name, item in items.items()}  # type: ignore[misc]
