"""Requests into values: ids in paths, fields of query strings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from scrubjay_cloud.endpoint import Endpoint, Query
from scrubjay_shared.errors import InvalidError

SEE_SCHEMA = "GET /openapi.json describes every field"
MAX_QUERY_FIELDS = 16
"""Several times the widest request there is."""

_HEX = re.compile(r"[0-9a-f]+")


def path_ids(given: Mapping[str, str]) -> dict[str, bytes]:
    """Return the ids in a path. Raises InvalidError."""
    return {name: hex_id(text, 64 if name == "hash" else 32) for name, text in given.items()}


def hex_id(text: str, digits: int = 32) -> bytes:
    """Return the bytes of a lower-case hex id."""
    if len(text) != digits or not _HEX.fullmatch(text):
        raise InvalidError(f"an id has {digits} lower-case hex digits", hint=SEE_SCHEMA)
    return bytes.fromhex(text)


def query_fields(endpoint: Endpoint, query: bytes) -> dict[str, Any]:
    """Return the fields that an endpoint takes from its query string. Raises InvalidError."""
    if not endpoint.query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS
        )
    except ValueError as error:
        raise InvalidError(
            f"the query string has more than {MAX_QUERY_FIELDS} fields, or is not UTF-8", hint=SEE_SCHEMA
        ) from error
    given = dict(pairs)
    if len(given) < len(pairs):
        raise InvalidError("a query parameter is given twice", hint="give it once")
    return {one.name: _field(one, given.get(one.name)) for one in endpoint.query}


def _field(query: Query, text: str | None) -> Any:
    if text is None:
        if query.required:
            raise InvalidError(f"the query parameter {query.name} is missing", hint=SEE_SCHEMA)
        return query.default
    try:
        return query.read(text)
    except ValueError as error:
        raise InvalidError(
            f"the query parameter {query.name} must be {query.meaning}: {error}", hint=SEE_SCHEMA
        ) from error


def whole(low: int, high: int) -> Any:
    """Return a reader of whole numbers within bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= 19 and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read
