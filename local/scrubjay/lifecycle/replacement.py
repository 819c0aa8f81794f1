"""What may be said of when a memory held and what took its place. Pure."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError


def check_period(valid_from: Millis | None, valid_to: Millis | None) -> None:
    """Check that a memory did not end to hold before it began. Raises InvalidError."""
    if valid_from is not None and valid_to is not None and valid_from > valid_to:
        raise InvalidError(
            f"valid_from ({valid_from}) is after valid_to ({valid_to})", hint="give the earlier time as valid_from"
        )


def check_successor(memory_id: str, successor: str, successor_of: Callable[[str], str | None]) -> None:
    """Check that a memory is not superseded by itself, directly or through others. Raises InvalidError.

    `successor_of` says what took the place of a memory, None for nothing.
    """
    at: str | None = successor
    seen = {memory_id}
    while at is not None:
        if at in seen:
            raise InvalidError(
                f"memory {successor} is superseded by {memory_id} itself",
                hint="clear superseded_by of the one that counts: scrubjay update REF --clear superseded_by",
            )
        seen.add(at)
        at = successor_of(at)
