"""What a coding agent reports, before anything reads or keeps it: JSON, and without secrets. Pure.

Both ways in take secrets out here before anything else happens to a payload: that of the daemon and that of the spool.
So an event that came by both is the same event, and its second delivery is seen to be one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from scrubjay import redaction
from scrubjay.ingest import intake
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Json

_IDENTIFIERS = ("id", "path", "cwd", "name")
"""How the names of members end that name a session, a call, a file or a tool: random by design, no secret."""

_IDENTIFIER_CHARS = 4_096
"""Of a longer one nobody knows what it is: it is cleaned as any text."""


_LONE_BACKSLASH = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
"""A backslash that begins no escape of JSON, where the first group is empty: hosts paste paths and patterns raw."""

_SPACE = re.compile("[ \t\r\n\0\ufeff]*")
"""What may stand between two payloads: some hosts end each with a zero byte, or begin each with a byte order mark."""


_BEGINNING = re.compile(r"[{\[]")

MOST_STRAYS = 100
"""Brackets in a payload that begin no value: a line of a log has some, and each that fails costs a look at all."""


class UnreadableError(InvalidError):
    """Nothing can be kept of a report. `reason` says why, in one word that holds nothing of it."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message, hint="send what the host wrote to standard input")
        self.reason = reason


def parsed(data: bytes) -> Json:
    """Return the first payload that some bytes hold. Raises UnreadableError where there is none."""
    return all_parsed(data)[0][0]


def all_parsed(data: bytes) -> tuple[list[Json], bool]:
    """Return the payloads that some bytes hold, and whether what follows them could not be read.

    Hosts are not strict, and what they report comes once: raw control characters, backslashes that escape nothing,
    bytes of another encoding, several payloads in one write and stray bytes around them are read all the same. Raises
    UnreadableError where nothing is.

    >>> all_parsed(b'{"a": 1}{"b": 2} oops')
    ([{'a': 1}, {'b': 2}], False)
    """
    wrong = ""
    for encoding in dict.fromkeys((json.detect_encoding(data), "utf-8")):
        found, wrong = _read(data.decode(encoding, "replace"))
        if found:
            return found, bool(wrong)
    raise UnreadableError("the payload is no JSON object", reason=wrong or "not_an_object")


def _read(text: str) -> tuple[list[Json], str]:
    """Return the objects in a text, and in a word why what follows them could not be read."""
    decoder = json.JSONDecoder(strict=False)
    found: list[Json] = []
    escaped, strays, at = False, 0, _next(text, 0)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError:
            return found, "too_deep"
        except ValueError:
            if not escaped:
                text, at, escaped = _LONE_BACKSLASH.sub(_escaped, text[at:]), 0, True
                continue
            strays += 1
            if text[at] == "{" or strays > MOST_STRAYS:
                return found, "not_json"
            at += 1  # a bracket of a line of a log, or a list that breaks off: its whole members count
        else:
            found += _objects(value)
        at = _next(text, at)
    return found, ""


def _next(text: str, at: int) -> int:
    """Return where the next value begins; what is no beginning of an object or a list is skipped."""
    begin = found.end() if (found := _SPACE.match(text, at)) else at
    if at == 0 and text[begin : begin + 1] == '"':  # the whole payload as one string
        return begin
    beginning = _BEGINNING.search(text, begin)
    return len(text) if beginning is None else beginning.start()


def _escaped(match: re.Match[str]) -> str:
    return match[1] or r"\\"


def _objects(value: Any) -> list[Json]:
    """Return the objects that a value is: itself, those of a list, or those that its text holds."""
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list):
        return [each for each in value if isinstance(each, dict)]
    return _read(value)[0] if isinstance(value, str) else []


def cleaned(payload: Json, policy: MemoryPolicy = DEFAULT) -> Json:
    """Return a payload without secrets; cleaning it again changes nothing. Raises InvalidError where it nests too deep.

    >>> cleaned({"session_id": "s1", "prompt": "password = hunter22hunter"})
    {'session_id': 's1', 'prompt': 'password = [REDACTED:password]'}
    """
    names = {name: value for name, value in payload.items() if _is_identifier(name, value)}
    rest = {name: value for name, value in payload.items() if name not in names}
    clean: Json = redaction.clean_json(rest, policy.redact, max_depth=policy.limits.max_metadata_depth).value
    named = {name: intake.identifier(value, policy.redact) for name, value in names.items()}
    return named | clean


def _is_identifier(name: str, value: Any) -> bool:
    return name.lower().endswith(_IDENTIFIERS) and isinstance(value, str) and len(value) <= _IDENTIFIER_CHARS
