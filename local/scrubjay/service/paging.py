"""Pages of a listing: their limits, cursors and periods, checked as a request gives them."""

from __future__ import annotations

from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy
from scrubjay_shared.clock import MAX_MILLIS, Millis
from scrubjay_shared.errors import InvalidError

CURSOR_HINT = "give the cursor as the page before gave it, or leave it out for the first page"


def page_limit(policy: MemoryPolicy, limit: int) -> int:
    """Return the limit of a page. Raises InvalidError for one that is out of bounds."""
    if not 1 <= limit <= policy.work.page:
        raise InvalidError(
            f"limit must be between 1 and {policy.work.page}, got {limit}",
            hint="ask for the rest with the cursor that the answer gives",
        )
    return limit


def check_times(since: Millis | None, until: Millis | None) -> None:
    """Check the bounds of a period. Raises InvalidError."""
    intake.check_time("since", since)
    intake.check_time("until", until)


def cursor(text: str | None) -> tuple[int, int] | None:
    """Return the place where a page begins. Raises InvalidError for a text that no page gave."""
    if text is None:
        return None
    try:
        at, n = (int(part) for part in text.split("-"))
    except ValueError as error:
        raise InvalidError(f"{text[:60]!r} is not a cursor", hint=CURSOR_HINT) from error
    if max(at, n) > MAX_MILLIS:  # SQLite counts in 64 bits
        raise InvalidError(f"{text[:60]!r} is not a cursor", hint=CURSOR_HINT)
    return at, n


def cursor_text(at: tuple[int, int] | None) -> str | None:
    """Return the cursor of the page that begins at a place."""
    return None if at is None else f"{at[0]}-{at[1]}"
