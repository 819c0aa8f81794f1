"""What a call may cost, and whether it fits under the caps. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from scrubjay.policy import WriterPolicy
from scrubjay.writer.port import Prompt, Usage
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import BudgetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most tokens, read and written together, of a civil day and of a civil month."""

    daily: int
    monthly: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The tokens counted in a civil day (`2026-11-23`) and its month, those of calls that have not ended included."""

    day: str
    daily: int
    monthly: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a job would ask now: so many calls, and the most tokens that they read and write, without any framing.

    `whole` is false where more waits than was looked at.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What some calls cost at most, and what is left for them; `fits` says whether they all may be made."""

    calls: int
    input_tokens: int
    output_tokens: int
    left: int
    fits: bool


def asked(prompts: Sequence[Prompt], *, whole: bool = True) -> Asked:
    """Return what some prompts ask, one call for each."""
    return Asked(
        calls=len(prompts),
        input_tokens=sum(prompt.bytes for prompt in prompts),
        output_tokens=sum(prompt.max_output_tokens for prompt in prompts),
        whole=whole,
    )


def most(prompt: Prompt, *, framing_tokens: int) -> Usage:
    """Return the most tokens that a prompt can cost: one for each byte, the framing, and the longest answer."""
    return Usage(input_tokens=prompt.bytes + framing_tokens, output_tokens=prompt.max_output_tokens)


def is_read_in_part(prompt: Prompt, read: int, policy: WriterPolicy) -> bool:
    """Say whether a Writer counted far too few tokens for a prompt: it has lost a part of it without a word.

    >>> policy = WriterPolicy(sparse_chars=7, sparse_from_chars=2_000)
    >>> long = Prompt(system="", text="magpie " * 4_000, max_output_tokens=1)
    >>> is_read_in_part(long, 2_048, policy), is_read_in_part(long, 6_000, policy)
    (True, False)
    """
    chars = len(prompt.system) + len(prompt.text)
    return chars >= policy.sparse_from_chars and read * policy.sparse_chars < chars


def civil_day(at: Millis, utc_offset: int) -> str:
    """Return the day of a time where the clock is so many minutes ahead of UTC.

    >>> civil_day(Millis(0), 60), civil_day(Millis(0), -60)
    ('1970-01-01', '1969-12-31')
    """
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(timezone(timedelta(minutes=utc_offset))).date().isoformat()


def left(caps: Caps, spent: Spent) -> int:
    """Return how many tokens may still be used today."""
    return max(0, min(caps.daily - spent.daily, caps.monthly - spent.monthly))


def check(caps: Caps, spent: Spent, needed: Usage) -> None:
    """Check that a call fits under both caps whatever it turns out to cost. Raises BudgetError."""
    for span, cap, used, key in (
        ("today", caps.daily, spent.daily, "writer_daily_tokens"),
        ("this month", caps.monthly, spent.monthly, "writer_monthly_tokens"),
    ):
        if used + needed.total > cap:
            raise BudgetError(
                f"a call could use {needed.total:,} tokens, and {max(0, cap - used):,} of {cap:,} are left for {span}",
                hint=f"scrubjay cost shows what used them; {key} in config.toml is the cap",
            )
