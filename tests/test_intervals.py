"""Bounds of a statement: what ended is handed to nobody, what happened at a time stays as true as it was."""

from __future__ import annotations

import pytest

from scrubjay.api import Hit, Quote
from scrubjay.intervals import happened, over
from scrubjay.retrieval import handing
from scrubjay_shared.clock import Millis

DAY = 24 * 3_600_000
NOW = Millis(100 * DAY)
SAID = Millis(50 * DAY)


@pytest.mark.parametrize(
    ("begins", "ends", "said_at", "is_over"),
    [
        (None, None, SAID, False),
        (40, None, SAID, False),  # "since …"
        (None, 60, SAID, True),  # "until …"
        (None, 120, SAID, False),
        (None, 40, SAID, True),  # ended by hand, before it was said
        (48, 55, SAID, True),  # "this week we freeze the API"
        (60, 67, SAID, True),  # "next week …"
        (40, 47, SAID, False),  # "last week we met at …"
        (49, 50, SAID, False),  # "yesterday …"
        (60, 61, SAID, False),  # "the demo is on …": its day stands in it
        (40, 47, None, True),  # bounds that somebody set
    ],
)
def test_a_time_is_a_bound_or_when_it_happened(
    begins: int | None,
    ends: int | None,
    said_at: Millis | None,
    is_over: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    start, end = (None if day is None else Millis(day * DAY) for day in (begins, ends))

    assert over(start, end, said_at, NOW) is is_over
    assert not (is_over and happened(start, end, said_at))
    said = Quote(event_id="e", session_id="before", ts=SAID, utc_offset=0, speaker="Ana", text="it was so")
    hit = Hit(
        id="m",
        kind="memory",
        text="It was so.",
        score=1.0,
        ts=SAID,
        type="fact",
        trust="user",
        valid_from=start,
        valid_to=end,
        sources=() if said_at is None else (said,),
    )
    assert handing.tells(hit, session_id="now", now=NOW) is not is_over
