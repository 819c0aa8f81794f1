"""Fields of an account log entry's body, each of its type. Pure; every function raises InvalidError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrubjay_shared.errors import InvalidError

LIMIT = 1 << 63
"""Numbers are below this: databases count in 64 bits with a sign."""

_NEWER = "it may come from a newer version: update scrubjay"


def bytes_of(body: Mapping[int, Any], key: int) -> bytes:
    """Return a field of bytes."""
    value = body.get(key)
    if not isinstance(value, bytes):
        raise _wrong_type(key)
    return value


def text_of(body: Mapping[int, Any], key: int) -> str:
    """Return a field of text."""
    value = body.get(key)
    if not isinstance(value, str):
        raise _wrong_type(key)
    return value


def int_of(body: Mapping[int, Any], key: int) -> int:
    """Return a whole number from 0, below `LIMIT`."""
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LIMIT:
        raise _wrong_type(key)
    return value


def flag_of(body: Mapping[int, Any], key: int) -> bool:
    """Return a flag; False where there is none."""
    value = body.get(key, False)
    if not isinstance(value, bool):
        raise _wrong_type(key)
    return value


def list_of(body: Mapping[int, Any], key: int) -> list[Any]:
    """Return a list, its items unchecked."""
    value = body.get(key)
    if not isinstance(value, list):
        raise _wrong_type(key)
    return value


def id_of(value: Any) -> bytes:
    """Return an id, which has 16 bytes."""
    if not isinstance(value, bytes):
        raise InvalidError("an account log entry holds an id that is not 16 bytes", hint=_NEWER)
    check_length(value, 16)
    return value


def lane_end_of(item: Any) -> tuple[bytes, tuple[int, bytes], bytes | None]:
    """Return where a lane of a revoked device ends: scope, (n, link), and the instance of the device whose lane it is.

    The instance is None for the device's own lane.
    """
    match item:
        case [bytes(scope), int(n), bytes(tip), *rest] if (
            not isinstance(n, bool) and 0 <= n < LIMIT and len(tip) == 32 and len(rest) <= 1
        ):
            return id_of(scope), (n, tip), id_of(rest[0]) if rest else None
    raise InvalidError(
        "an account log entry revokes a device and names the ends of its lanes in another format", hint=_NEWER
    )


def check_length(value: bytes, length: int) -> None:
    """Raise InvalidError when a key or an id has another length."""
    if len(value) != length:
        raise InvalidError(
            f"a key or id in an account log entry must have {length} bytes, got {len(value)}", hint=_NEWER
        )


def _wrong_type(key: int) -> InvalidError:
    return InvalidError(f"field {key} of an account log entry is missing or not of its type", hint=_NEWER)
