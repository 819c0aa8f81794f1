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


SuccessorOf = Callable[[str], str | None]
"""Says what took the place of a memory: its id, None when nothing did."""


def check_successor(memory_id: str, successor: str, successor_of: SuccessorOf) -> None:
    """Check that a memory is not superseded by itself, directly or through others. Raises InvalidError."""
    if closes_circle(memory_id, successor, successor_of):
        raise InvalidError(
            f"memory {successor} is superseded by {memory_id} itself",
            hint="clear superseded_by of the one that counts: scrubjay update REF --clear superseded_by",
        )


def closes_circle(memory_id: str, successor: str, successor_of: SuccessorOf) -> bool:
    """Say whether a memory would be superseded by itself, directly or through others, if `successor` took its place.

    Memories may stand in a circle already, where two devices wrote half of it each; it ends the search.
    """
    at: str | None = successor
    passed = set[str]()
    while at is not None and at not in passed:
        if at == memory_id:
            return True
        passed.add(at)
        at = successor_of(at)
    return False
