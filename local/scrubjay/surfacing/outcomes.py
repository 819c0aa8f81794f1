"""Whether what was told ahead was used. Pure.

Used is what the agent recalled afterwards, what an answer cites by its id, what an answer says in its words, and what
somebody says that it helped. What was not used after some answers, or hours, was of no use.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scrubjay.policy import SurfacingPolicy
from scrubjay.retrieval.handing import SHORT
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a session: what was said when, by the agent or to it, and the words of it."""

    at: Millis
    text: str
    words: frozenset[str]
    is_answer: bool


def turn(at: Millis, text: str, *, is_answer: bool) -> Turn:
    """Return a turn with its words."""
    return Turn(at=at, text=text, words=frozenset(query_tokens(text)), is_answer=is_answer)


def outcome(
    told: Told,
    turns: Sequence[Turn],
    uses: Collection[Outcome],
    policy: SurfacingPolicy,
    *,
    now: Millis,
) -> Outcome | None:
    """Return what became of a thing; None while that may still change.

    `turns` are those of its session, oldest first: of those before it was told nothing counts, and what a prompt says
    an answer says in any case. `uses` is what is known of it from elsewhere.
    """
    for use in (Outcome.HELPED, Outcome.RECALLED, Outcome.CITED):
        if use in uses:
            return use
    since = [one for one in turns if one.at >= told.at]
    answers = [one for one in since if one.is_answer]
    if any(told.ref[-SHORT:] in one.text for one in answers):  # of an id, its end is what it was told by
        return Outcome.CITED
    words = set(query_tokens(told.text)).difference(*(one.words for one in since if not one.is_answer))
    least = max(policy.spoken_words, policy.spoken_share * len(words))
    if any(len(words & one.words) >= least for one in answers):
        return Outcome.SPOKEN
    over = len(answers) >= policy.unused_turns or now - told.at > policy.unused_hours * _HOUR_MS
    return Outcome.UNUSED if over else None
