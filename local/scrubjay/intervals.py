"""What the bounds of a statement say: until when it held, or when something happened, which stays true. Pure."""

from __future__ import annotations

from dataclasses import replace

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Json, Kind, Memory

LONGEST_DAY_MS = 25 * 3_600_000
"""A day on which clocks are put back."""

TOLD = "told_ts"
"""The key of metadata under which a time stands that its sender told and that cannot be: it lay in the future."""


def told(at: Millis | None, now: Millis, skew: int) -> Millis:
    """Return when something was told: now, where nobody says it, and where it would lie in the future.

    >>> told(None, Millis(9), 5), told(Millis(14), Millis(9), 5), told(Millis(15), Millis(9), 5)
    (9, 14, 9)
    """
    return now if at is None or at > now + skew else at


def marked(metadata: Json, at: Millis | None, now: Millis, skew: int) -> Json:
    """Return metadata with the time that was told and cannot be, keys in order; as they are where it can be."""
    return metadata if at is None or at <= now + skew else dict(sorted({**metadata, TOLD: int(at)}.items()))


def dated(memory: Memory, skew: int) -> Memory:
    """Return a memory; one that was told later than it was written down, by what is written, as told when it was.

    Stores of earlier versions and other devices hold such ones.
    """
    at, written = memory.created_at, memory.updated_at
    metadata = marked(memory.metadata, at, written, skew)
    return memory if metadata is memory.metadata else replace(memory, created_at=written, metadata=metadata)


def happened(valid_from: Millis | None, valid_to: Millis | None, said_at: Millis | None) -> bool:
    """Say whether bounds are the time of something that happened: one day, or a time that was over when it was told.

    `said_at` is None for what was not read from talk: somebody set its bounds, and meant them.

    >>> week = 7 * 86_400_000
    >>> happened(Millis(0), Millis(week), Millis(week)), happened(Millis(0), Millis(week), Millis(5))
    (True, False)
    """
    if valid_from is None or valid_to is None:
        return False
    return valid_to - valid_from <= LONGEST_DAY_MS or (said_at is not None and valid_to <= said_at)


def over(valid_from: Millis | None, valid_to: Millis | None, said_at: Millis | None, now: Millis) -> bool:
    """Say whether a statement held until a time that is over. Takes what `happened` does."""
    return valid_to is not None and valid_to <= now and not happened(valid_from, valid_to, said_at)


def ahead(valid_from: Millis | None, said_at: Millis | None, now: Millis) -> bool:
    """Say whether a statement holds only from a time that is to come. What was read from talk names it in its words.

    >>> ahead(Millis(9), None, Millis(5)), ahead(Millis(9), Millis(1), Millis(5)), ahead(Millis(5), None, Millis(5))
    (True, False, False)
    """
    return valid_from is not None and valid_from > now and said_at is None


def said_at(memory: Memory) -> Millis | None:
    """Return when a memory's words were said; None for one that was not read from talk."""
    return memory.created_at if memory.kind is Kind.OBSERVATION else None
