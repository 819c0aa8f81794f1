"""Whether what was told ahead was used. Pure.

Used is what the agent recalled afterwards, what an answer cites by its id, what an answer says in its words, and what
somebody says that it helped. What was not used after some answers, or hours, was of no use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scrubjay.policy import SurfacingPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.text import query_tokens

_HOUR_MS = 3_600_000


class Outcome(StrEnum):
    """What became of a thing that was told. All but the last are uses."""

    HELPED = "helped"
    RECALLED = "recalled"
    CITED = "cited"
    SPOKEN = "spoken"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A thing that a session was told ahead, and when. `text` are its own words."""

    ref: str
    at: Millis
    text: str = ""


def outcome(
    told: Told,
    answers: Sequence[tuple[Millis, str]],
    asked: Iterable[str],
    uses: Collection[Outcome],
    policy: SurfacingPolicy,
    *,
    now: Millis,
) -> Outcome | None:
    """Return what became of a thing; None while that may still change.

    `answers` are what the agent said since, oldest first; `asked` the prompts since, whose words an answer would hold
    in any case; `uses` what is known of it from elsewhere.
    """
    for use in (Outcome.HELPED, Outcome.RECALLED, Outcome.CITED):
        if use in uses:
            return use
    since = [text for at, text in answers if at >= told.at]
    if any(told.ref in text for text in since):
        return Outcome.CITED
    words = set(query_tokens(told.text)) - {word for text in asked for word in query_tokens(text)}
    if len(words) >= policy.spoken_words:
        for text in since:
            said = words & set(query_tokens(text))
            if len(said) >= max(policy.spoken_words, policy.spoken_share * len(words)):
                return Outcome.SPOKEN
    over = len(since) >= policy.unused_turns or now - told.at > policy.unused_hours * _HOUR_MS
    return Outcome.UNUSED if over else None
