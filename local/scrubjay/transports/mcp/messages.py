"""Messages of MCP as clients write them, which is not always as the protocol has them. Standard library only. Pure.

Whoever asks waits for an answer that bears the number of the question: a message is read as far as it can be, and of
one that cannot be read the number still is.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from typing import Any

LARGEST_NUMBER = 2**53
"""Beyond it a number is not the same in every language, and so no number of a message."""

_NUMBER = re.compile(
    r'[\s\ufeff]*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,15}(?:\.\d{1,15})?|"[^"\\]{0,200}")\s*[,}]'
)
"""The number of a message, before anything in which another `id` may stand."""


def read(data: bytes) -> tuple[Any, bytes]:
    """Return a message and the bytes to pass on: those that came, unless something of them had to be mended.

    Raises ValueError or RecursionError for what is no JSON.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        message, strict = json.loads(text), True
    except ValueError:
        message, strict = json.loads(text, strict=False), False
    mended = _mended(message)
    # Halves of characters are JSON to Python and to a browser, and to no other reader.
    if strict and mended == message and "\\ud" not in text.lower() and text.encode() == data:
        return message, data
    return mended, encoded(mended)


def encoded(message: Any) -> bytes:
    """Return a message as one line of UTF-8; half of a character becomes U+FFFD."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def number_in(data: bytes) -> Any:
    """Return the number of a message that cannot be read, None where that cannot be told.

    >>> number_in(b'{"jsonrpc":"2.0","id":24,"method":"ping","params":{"a":')
    24
    """
    found = _NUMBER.match(data[:1_000].decode("utf-8", "replace"))
    return None if found is None else json.loads(found[1])


def is_number(value: Any) -> bool:
    """Say whether the protocol allows a value as the number of a message: a text, or a whole number."""
    return isinstance(value, str) or (type(value) is int and abs(value) <= LARGEST_NUMBER)


def _mended(message: Any) -> Any:
    """Return a message with what some clients leave out, or spell in a way of their own."""
    if not isinstance(message, dict):
        return message
    mended: dict[str, Any] = {"jsonrpc": "2.0"} | message
    params = message.get("params")
    if params is None or params == []:
        mended.pop("params", None)
    elif isinstance(params, dict) and isinstance(given := params.get("arguments"), str):
        try:
            arguments = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            return mended
        mended["params"] = params | {"arguments": arguments}
    return mended
