"""Reading the ledger of the Writer's calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis

OPEN = "open"
"""The outcome of a call that has not ended, or whose end was never written down."""

GROUPS = {"day": "day", "month": "substr(day, 1, 7)", "job": "job", "writer": "writer", "model": "model"}
"""What calls may be added up by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterCall:
    """A call: which job made it, of which Writer and model, and the most tokens that it can cost."""

    job: str
    writer: str
    model: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterTotal:
    """Calls that have the values of `key` in common. `estimated` are those whose tokens were not all counted."""

    key: tuple[str, ...]
    calls: int
    failed: int
    estimated: int
    input_tokens: int
    output_tokens: int
    last: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCalls:
    """The calls since the last that was answered: how many failed, since when, and the outcome of the last."""

    since: Millis
    calls: int
    outcome: str


class WriterCallQueries:
    """The calls that this device made."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def spent(self, day: str) -> dict[str, int]:
        """Return the tokens counted on a day as `daily`, and in its month as `monthly`."""
        [(daily, monthly)] = self._fetch(
            "select coalesce(sum(iif(day = ?, input + output, 0)), 0), coalesce(sum(input + output), 0)"
            " from writer_call where day >= ? and day < ?",
            (day, f"{day[:7]}-01", f"{day[:7]}-99"),
        )
        return {"daily": daily, "monthly": monthly}

    def mean(self, job: str, *, since: str) -> float | None:
        """Return the tokens of a job's answered call on average, from a day on; None where it had none."""
        [(mean,)] = self._fetch(
            "select avg(input + output) from writer_call where job = ? and outcome = 'done' and day >= ?", (job, since)
        )
        return None if mean is None else float(mean)

    def failing(self) -> FailedCalls | None:
        """Return the calls that failed since the last that was answered, None where none did."""
        [(calls, since, last)] = self._fetch(
            "select count(*), min(at), max(n) from writer_call where outcome not in ('done', ?)"
            " and n > coalesce((select n from writer_call where outcome = 'done' order by n desc limit 1), 0)",
            (OPEN,),
        )
        if not calls:
            return None
        [(outcome,)] = self._fetch("select outcome from writer_call where n = ?", (last,))
        return FailedCalls(since=Millis(since), calls=calls, outcome=outcome)

    def last(self) -> tuple[Millis, WriterCall, str] | None:
        """Return when the last call was made, what it is counted as, and its outcome; None before the first."""
        rows = self._fetch(
            "select at, job, writer, model, input, output, outcome from writer_call order by n desc limit 1", ()
        )
        if not rows:
            return None
        [(at, job, writer, model, read, wrote, outcome)] = rows
        call = WriterCall(job=job, writer=writer, model=model, input_tokens=read, output_tokens=wrote)
        return Millis(at), call, str(outcome)

    def totals(self, by: Sequence[str], *, since: str, until: str, limit: int) -> list[WriterTotal]:
        """Return the calls of some days, added up by some of `GROUPS`, the latest first; without any, all in one."""
        columns = [GROUPS[name] for name in by]
        group = f" group by {', '.join(columns)}" if columns else " having count(*) > 0"
        rows = self._fetch(
            f"select {''.join(f'{column}, ' for column in columns)}count(*), sum(outcome not in ('done', '{OPEN}')),"
            " sum(estimated), sum(input), sum(output), max(at) from writer_call where day >= ? and day <= ?"
            f"{group} order by max(n) desc limit ?",
            (since, until, limit),
        )
        return [
            WriterTotal(
                key=tuple(row[: len(columns)]),
                calls=row[-6],
                failed=row[-5],
                estimated=row[-4],
                input_tokens=row[-3],
                output_tokens=row[-2],
                last=Millis(row[-1]),
            )
            for row in rows
        ]
