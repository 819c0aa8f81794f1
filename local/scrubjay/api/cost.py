"""What the Writer's calls cost, and what is left of the caps."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis

COST_GROUPS = ("day", "month", "job", "writer", "model")
"""What calls can be added up by."""

COST_BY = "^(({0})(,({0}))*)?$".format("|".join(COST_GROUPS))
COST_DAY = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
"""What `by` and a day look like. Of a month with fewer days the last ones have no calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRequest:
    """The calls of the civil days from `since` to `until`, both included (`2026-11-23`); the last 30 days unless told.

    `by` names what they are added up by, separated by commas: day, month, job, writer, model; with nothing, all in one.
    """

    by: str = "day,job,model"
    since: str | None = None
    until: str | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """Calls added up: null stands for what they were not told apart by.

    `failed` calls had no answer; `estimated` are calls whose tokens are an upper bound, since nobody counted them all.
    """

    calls: int
    failed: int
    estimated: int
    input_tokens: int
    output_tokens: int
    last: Millis
    day: str | None = None
    month: str | None = None
    job: str | None = None
    writer: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostResponse:
    """What calls cost, the latest first, with their sum in `total` (null when there were none).

    `writer` is "none" while no Writer is set; `destination` says where prompts go, "" when nowhere. `daily_tokens` and
    `monthly_tokens` are the caps, `used_today` and `used_this_month` what is counted against them, and `left` what may
    still be used today. Tokens are those read and written together.
    """

    writer: str
    destination: str
    day: str
    daily_tokens: int
    monthly_tokens: int
    used_today: int
    used_this_month: int
    left: int
    rows: tuple[CostRow, ...]
    total: CostRow | None = None
    model: str | None = None
