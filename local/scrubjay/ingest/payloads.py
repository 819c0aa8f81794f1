"""What a coding agent reports, before anything reads or keeps it: JSON, and without secrets. Pure.

Both ways in take secrets out here before anything else happens to a payload: that of the daemon and that of the spool.
So an event that came by both is the same event, and its second delivery is seen to be one.
"""

from __future__ import annotations

import json
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


def parsed(data: bytes) -> Json:
    """Return a payload as JSON. Raises InvalidError for what is not one object."""
    try:
        value = json.loads(data.removeprefix(b"\xef\xbb\xbf"))  # some hosts write a byte order mark
    except (ValueError, RecursionError) as error:
        raise InvalidError("the payload is not JSON", hint="send what the host wrote to standard input") from error
    if not isinstance(value, dict):
        raise InvalidError("the payload is not a JSON object", hint="send what the host wrote to standard input")
    return value


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
