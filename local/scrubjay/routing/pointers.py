"""From events that layers found to places in the table of contents: one for each talk of a day, best first.

Each layer's list is read by rank, so that scores of different kinds need not be compared. What several layers found,
and a talk of which several turns were found, comes first; a talk that lies outside of the time that the question names
counts less, the further the less: what happened on a day is often told some days later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scrubjay.policy import RoutingPolicy
from scrubjay.routing.timespans import Timespan

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where an event stands: the time it was said at, its civil day, session, and segment (None: not cut yet)."""

    ts: int
    day: str
    session_id: str
    agent: str
    segment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A talk that was found: its best segment (None where it has none), day and session, and its best events."""

    segment: str | None
    day: str
    session_id: str
    score: float
    events: tuple[str, ...]
    agents: tuple[str, ...]
    layers: tuple[str, ...]
    first: int
    last: int


def scores(found: Mapping[str, Sequence[str]], policy: RoutingPolicy) -> dict[str, float]:
    """Return the score of each event that layers found. `found` has the events of each layer, best first."""
    summed: dict[str, float] = {}
    for layer, events in found.items():
        for rank, event in enumerate(events):
            summed[event] = summed.get(event, 0.0) + policy.weight(layer) / (policy.rank_constant + rank)
    return summed


def spots(
    found: Mapping[str, Sequence[str]],
    placed: Mapping[str, Placed],
    times: Sequence[Timespan],
    policy: RoutingPolicy,
) -> list[Spot]:
    """Return the talks that hold what layers found, best first; an event of which no place is known is left out."""
    summed = scores(found, policy)
    talks: dict[tuple[str, str], list[str]] = {}
    for event in sorted(summed, key=lambda event: -summed[event]):
        if event in placed:
            talks.setdefault((placed[event].day, placed[event].session_id), []).append(event)
    talk = _Talks(summed=summed, found=found, placed=placed, times=times, policy=policy)
    made = [talk.spot(events) for events in talks.values()]
    return sorted(made, key=lambda spot: (-spot.score, -spot.last, spot.session_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Talks:
    """What the talks of one question are made of."""

    summed: Mapping[str, float]
    found: Mapping[str, Sequence[str]]
    placed: Mapping[str, Placed]
    times: Sequence[Timespan]
    policy: RoutingPolicy

    def spot(self, events: Sequence[str]) -> Spot:
        """Return a talk by its events, best first."""
        placed, policy = self.placed, self.policy
        segments: dict[str | None, float] = {}
        for event in events:
            segment = placed[event].segment
            segments[segment] = segments.get(segment, 0.0) + self.summed[event]
        best = max(segments, key=lambda segment: (segments[segment], segment or ""))
        inside = [event for event in events if placed[event].segment == best]
        moments = [placed[event].ts for event in inside]
        score = sum(self.summed[event] * policy.further_turn**at for at, event in enumerate(events))
        return Spot(
            segment=best,
            day=placed[events[0]].day,
            session_id=placed[events[0]].session_id,
            score=round(score * nearness(min(moments), self.times, policy), 6),
            events=tuple(inside),
            agents=tuple(sorted({placed[event].agent for event in inside})),
            layers=tuple(layer for layer, ids in self.found.items() if not {*ids}.isdisjoint(events)),
            first=min(moments),
            last=max(moments),
        )


def nearness(at: int, times: Sequence[Timespan], policy: RoutingPolicy) -> float:
    """Return how much a moment counts, 1 within one of some times (or where there are none) and less outside."""
    if not times or any(span.holds(at) for span in times):
        return 1.0
    days = min(_days_outside(at, span) for span in times)
    return max(policy.outside * (1 - days / policy.outside_days), policy.far_outside)


def _days_outside(at: int, span: Timespan) -> float:
    if span.until is not None and at >= span.until:
        return (at - span.until) / DAY_MS
    # Before it began, hardly anybody tells of it.
    return 2 * ((span.since or 0) - at) / DAY_MS
