"""How probable it is that a thing will be needed, from what speaks for it, and which things are worth telling. Pure.

Theory of operation. Each candidate has signals in [0, 1]; their weighted sum is a logit. What was told before and how
much of it was used shifts all logits alike (`Record.shift`), so that "one in three" is one in three on this device.
Then nothing below the floor is told; and the floor rises where little of what was told lately was used
(`Record.floor`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrubjay.policy import SurfacingPolicy
from scrubjay.surfacing.situation import Situation, likeness
from scrubjay_shared.clock import DAY_MINUTES, Millis

_DAY_MS = DAY_MINUTES * 60_000
_LEAST = 1e-6

Key = tuple[str, str]
"""The kind and the id of a thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What speaks for a thing, each in [0, 1]; the names are those of the weights in `SurfacingPolicy`."""

    asked: float = 0.0
    like: float = 0.0
    memory: float = 0.0
    paths: float = 0.0
    fresh: float = 0.0
    followed: float = 0.0
    used: float = 0.0
    open: float = 0.0
    branch: float = 0.0
    salience: float = 0.0

    def weighted(self, policy: SurfacingPolicy) -> dict[str, float]:
        """Return what each adds to the logit."""
        return {
            "asked": policy.asked * self.asked,
            "like": policy.like * self.like,
            "memory": policy.memory * self.memory,
            "paths": policy.paths * self.paths,
            "fresh": policy.fresh * self.fresh,
            "followed": policy.followed * self.followed,
            "used": policy.used * self.used,
            "open": policy.open * self.open,
            "branch": policy.branch * self.branch,
            "salience": policy.salience * self.salience,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """That a thing will be needed: how probable that is, and the signal that says most for it."""

    ref: str
    kind: str
    probability: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What became of what was told lately: how many things, how many were used, how many were expected to be."""

    told: int = 0
    used: int = 0
    expected: float = 0.0

    @property
    def hit_rate(self) -> float | None:
        """The share that was used, None where nothing was judged."""
        return self.used / self.told if self.told else None

    def shift(self, policy: SurfacingPolicy) -> float:
        """Return what is added to every logit: how much more, or less, was used than was expected.

        The prior holds it near 0 while little is known: it counts as so many outcomes that were as expected.

        >>> Record().shift(SurfacingPolicy())
        0.0
        """
        usual = self.expected / self.told if self.told else policy.floor
        prior = policy.prior * usual
        return math.log((self.used + prior + _LEAST) / (self.expected + prior + _LEAST))

    def floor(self, policy: SurfacingPolicy) -> float:
        """Return how probable a thing must be to be told.

        >>> policy = SurfacingPolicy()
        >>> Record(told=40, used=20).floor(policy), Record(told=40).floor(policy), Record(told=4).floor(policy)
        (0.03, 0.3, 0.03)
        """
        rate = self.hit_rate
        if rate is None or self.told < policy.judged_least or rate >= policy.good:
            return policy.floor
        share = rate / policy.good
        return share * policy.floor + (1 - share) * policy.floor_most


def nearness(place: int, policy: SurfacingPolicy) -> float:
    """Return how near a hit is to what was asked, in [0, 1], from its place in recall's answer, the first at 0.

    >>> [nearness(place, SurfacingPolicy()) for place in (0, 4, 9)]
    [1.0, 1.0, 0.5]
    """
    return min(1.0, policy.near_places / (place + 1))


def freshness(at: Millis, newest: Millis, policy: SurfacingPolicy) -> float:
    """Return how fresh a thing of one time is, in [0, 1], where the newest of its project is of another."""
    days = max(0, newest - at) / _DAY_MS
    return float(0.5 ** (days / policy.fresh_days))


def followed(now: Situation, before: Iterable[tuple[Situation, Collection[str]]]) -> dict[str, float]:
    """Return how strongly things follow from a situation, in [0, 1].

    `before` are earlier situations with what was used after each. It is the likeness of the likest.
    """
    found: dict[str, float] = {}
    for then, refs in before:
        alike = likeness(now, then) if refs else 0.0
        for ref in refs:
            found[ref] = max(found.get(ref, 0.0), alike)
    return found


def predicted(
    candidates: Mapping[Key, Signals],
    record: Record,
    policy: SurfacingPolicy,
    *,
    turns: Mapping[Key, Collection[str]] | None = None,
) -> list[Prediction]:
    """Return what is predicted of some things by kind and id, what to tell first in front; at most `kept` of them.

    In front is what recall answers first to the session's own prompt: no prediction knows better than the prompt. Then
    the most probable. A turn and a memory that was read from it say the same, so the later of the two is left out;
    `turns` are the ids of the turns that each thing says.
    """
    shift = record.shift(policy)
    found = []
    for (kind, ref), signals in candidates.items():
        parts = signals.weighted(policy)
        probability = 1 / (1 + math.exp(-(policy.certain + sum(parts.values()) + shift)))
        because = max(parts, key=lambda name: parts[name])
        found.append((signals.asked < 1, Prediction(ref=ref, kind=kind, probability=probability, because=because)))
    found.sort(key=lambda one: (one[0], -one[1].probability, one[1].ref))
    return _distinct([one for _, one in found], turns or {})[: policy.kept]


def _distinct(predictions: Iterable[Prediction], turns: Mapping[Key, Collection[str]]) -> list[Prediction]:
    said: dict[str, str] = {}
    kept = []
    for one in predictions:
        says = turns.get((one.kind, one.ref), ())
        if says and all(said.get(turn, one.kind) != one.kind for turn in says):
            continue
        kept.append(one)
        for turn in says:
            said.setdefault(turn, one.kind)
    return kept


def sure(predictions: Sequence[Prediction], record: Record, policy: SurfacingPolicy) -> list[Prediction]:
    """Return those that are probable enough to be told."""
    floor = record.floor(policy)
    return [one for one in predictions if one.probability >= floor]
