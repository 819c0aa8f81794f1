"""What a memory should never have become: signs of life, words of a prompt, our own block come back. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from scrubjay.redaction import INJECTED_OPEN

_LOOKED_CHARS = 2_000
_HEARTBEAT = re.compile(
    r"\W*(?:heartbeat(?:[_ ]ok)?|ping|pong|ok(?:ay)?|yes|no|continue|go on|proceed|resume|keep going|"
    r"still (?:here|working|running)|status(?: ping| check| update)?|all (?:good|done|systems \w+)|done|ready|idle|"
    r"no (?:changes|updates?|news)|nothing (?:new|to report)|working on it|in progress|alive)"
    r"\W*(?:\d[\d:.%/ -]{0,30})?\W*",
    re.IGNORECASE,
)
_RECALLED = re.compile(r"recalled by scrubjay|\[01[0-9A-HJKMNP-TV-Z]{24}\] \(\d{4}-\d\d-\d\d", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^\s{0,8}@(?:observe|topic)\b", re.IGNORECASE | re.MULTILINE)


class Junk(StrEnum):
    """Kinds of what is no memory."""

    HEARTBEAT = "heartbeat"
    """A sign of life, or a word that keeps an agent going."""
    RECALLED = "recalled"
    """The block of recalled data, or a line of it."""
    DIRECTIVE = "directive"
    """A directive of an observer, as it stands."""


def junk(content: str) -> Junk | None:
    """Return what a text is that is no memory; None for what may be one.

    >>> junk("HEARTBEAT_OK").value, junk("Continue.").value, junk("The port is 8443.")
    ('heartbeat', 'heartbeat', None)
    """
    looked = content[:_LOOKED_CHARS]
    if INJECTED_OPEN in looked or _RECALLED.search(looked):
        return Junk.RECALLED
    if _DIRECTIVE.search(looked):
        return Junk.DIRECTIVE
    return Junk.HEARTBEAT if len(content) <= _LOOKED_CHARS and _HEARTBEAT.fullmatch(looked) else None
