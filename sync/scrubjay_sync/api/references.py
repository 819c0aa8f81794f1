"""Which device, scope or joining machine a person means: by a name, an id, or the beginning of an id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError, ScrubjayError

MIN_PREFIX = 4
"""Characters of an id that may stand for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRequest:
    """One device or scope."""

    ref: str


def one_of(ref: str, names: Mapping[str, str], what: str, command: str) -> str:
    """Return which id a person means by a name, an id or its beginning. Raises NotFoundError, ConflictError.

    `names` are those of the ids; `what` they are, and the `command` that lists them, are for the error.
    """
    fitting = [one for one, name in names.items() if name == ref]
    if not fitting and len(ref) >= MIN_PREFIX:
        fitting = [one for one in names if one.startswith(ref.lower())]
    if not fitting:
        raise NotFoundError(f"the account has no {what} {ref[:60]!r}", hint=f"scrubjay {command} shows them")
    if len(fitting) > 1:
        raise ConflictError(
            f"{len(fitting)} {what}s are called {ref[:60]!r}",
            hint=f"give the beginning of the id instead; scrubjay {command} shows it",
        )
    return fitting[0]


def not_one_asking(count: int) -> ScrubjayError:
    """Return what is said when no machine, or more than one, asks to be added."""
    if count:
        return ConflictError(
            f"{count} machines ask to be added", hint="scrubjay devices list shows them; then devices approve ID"
        )
    return NotFoundError("no machine asks to be added", hint="run scrubjay login on the new machine first")


MAX_NAME = 64
"""Characters of a device's or scope's name: what fits a line."""


def checked_name(name: str) -> str:
    """Return a name for a device or scope. Raises InvalidError when it is empty, long or not printable."""
    cleaned = name.strip()
    if not cleaned or len(cleaned) > MAX_NAME or not cleaned.isprintable():
        raise InvalidError(
            f"a name has 1 to {MAX_NAME} printable characters, got {name[:MAX_NAME]!r} ({len(cleaned)} characters)",
            hint="choose another name",
        )
    return cleaned
