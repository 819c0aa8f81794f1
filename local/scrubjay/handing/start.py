"""What a session is handed at its start, and a project's brief, chosen and put in order. Pure.

Theory of operation. Each statement has a worth: how likely somebody would have it told (`handing.worth`), how far its
words are believed, and how much it was used. First comes what the person pinned; then the project's brief, which is the
best of what is known of the project alone; then the best of the rest, which is mostly what holds for the person
everywhere. Nothing below the floor is told, however much room is left: a line that is no help costs the next agent more
than it could have brought.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scrubjay.api import Section
from scrubjay.handing.features import is_outright
from scrubjay.policy import TYPE_SALIENCE, HandingPolicy
from scrubjay_shared.records import Kind, Layer, Memory, MemoryType, ReviewState, Scope, Trust, author_of, review_state
from scrubjay_shared.text import analyse

SECTIONS = {
    MemoryType.PREFERENCE: Section.RULE,
    MemoryType.HOWTO: Section.RULE,
    MemoryType.DECISION: Section.DECISION,
    MemoryType.INSIGHT: Section.WARNING,
}
"""Under which heading of a brief a memory stands; any other kind says what the project, or the person, is."""

LASTING = frozenset({MemoryType.PREFERENCE, MemoryType.HOWTO})
"""Kinds that are told as long as they hold: a rule that is obeyed leaves no trace of use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A memory that may be told: its worth, in [0, 1] or a little above, and how probably this session will need it."""

    memory: Memory
    worth: float
    probability: float | None = None

    @property
    def section(self) -> Section:
        """The heading it stands under."""
        return SECTIONS.get(self.memory.type, Section.ABOUT)

    @property
    def is_pinned(self) -> bool:
        """Whether the person pinned it."""
        return is_pinned(self.memory)


def is_pinned(memory: Memory) -> bool:
    """Say whether the person picked a memory to be told first; what is always loaded is told elsewhere."""
    return memory.layer is Layer.SURFACED and author_of(memory) is None


def worth(
    memory: Memory, chance: float, policy: HandingPolicy, *, uses: int = 0, probability: float | None = None
) -> float:
    """Return what a memory is worth at a start: importance, times certainty, times use.

    `chance` is how likely its words are worth telling. What somebody wrote down, or the person accepted, was chosen.
    """
    chance = _surer(chance, policy.sureness * (memory.confidence - policy.usual_confidence))
    if chance >= policy.outright_least and is_outright(memory.content):
        chance = max(chance, policy.outright_worth)
    chosen = memory.kind in {Kind.NOTE, Kind.STORED} and memory.trust in {Trust.USER, Trust.AGENT}
    accepted = review_state(memory.review) is ReviewState.ACCEPTED
    importance = policy.chosen_worth + (1 - policy.chosen_worth) * chance if chosen or accepted else chance
    if memory.trust is not Trust.USER and not accepted:
        importance *= policy.lesser_trust
    used = 1 + policy.used_bonus * min(1.0, uses / policy.used_full) + (probability or 0.0)
    # What helped, or what somebody set, is farther from what is usual for its kind than a reading's sureness moves it.
    # Of what somebody else wrote it says nothing: they could put their words before the person's.
    moved = 0.0 if author_of(memory) else memory.salience - TYPE_SALIENCE[memory.type]
    beyond = max(0.0, abs(moved) - policy.salience_spread)
    return max(0.0, importance * used * (1 + policy.salience * (beyond if moved > 0 else -beyond)))


def _surer(chance: float, more: float) -> float:
    """Return a chance whose logit is so much more."""
    return chance / (chance + (1 - chance) * math.exp(-more))


def is_spent(memory: Memory, unused: int, policy: HandingPolicy) -> bool:
    """Say whether a memory was told in so many sessions without use that it is told no more."""
    return unused >= policy.unused_sessions and memory.type not in LASTING and not is_pinned(memory)


def ranked(
    known: Iterable[Known], policy: HandingPolicy, may: Callable[[Memory], bool] = lambda _: True
) -> list[Known]:
    """Return what is worth telling, what is pinned first, the rest by merit; of two that say the same, the newer.

    `may` says whether a memory may be told at all; it is asked only of what comes first. Of what belongs to the project
    and of what does not there are at most `looked_over`, more than any budget holds.
    """
    worthy = [one for one in known if one.is_pinned or one.worth >= policy.worth_floor]
    worthy.sort(key=lambda one: (not one.is_pinned, -merit(one, policy), -one.memory.created_at, one.memory.id))
    kept: list[tuple[Known, frozenset[str]]] = []
    room = {True: policy.looked_over, False: policy.looked_over}
    for one in worthy:
        is_projects = one.memory.scope is Scope.PROJECT
        if not room[is_projects] or not may(one.memory):
            continue
        said = frozenset(analyse(one.memory.content))
        place = next((n for n, (_, other) in enumerate(kept) if _alike(said, other, policy)), None)
        if place is None:
            kept.append((one, said))
            room[is_projects] -= 1
        elif kept[place][0].memory.created_at < one.memory.created_at and not kept[place][0].is_pinned:
            kept[place] = (one, said)
    return [one for one, _ in kept]


def merit(one: Known, policy: HandingPolicy) -> float:
    """Return what a line brings for the room it takes: of two that are worth as much, the shorter leaves room for more.

    Nor is that only thrift: what holds for long is said in few words, and a long sentence is mostly of one day.
    """
    length = min(max(len(one.memory.content), policy.shortest_chars), policy.start_line_chars)
    return float(one.worth * length**-policy.thrift)


def brief(best: Iterable[Known], project: str) -> list[Known]:
    """Return what of the best may stand in a project's brief, in its order: what is of this project alone."""
    return [one for one in best if one.memory.resource_id == project]


def _alike(one: frozenset[str], other: frozenset[str], policy: HandingPolicy) -> bool:
    """Say whether two statements say the same: most of the words of the shorter one are in both."""
    shorter = min(len(one), len(other))
    return shorter > 0 and len(one & other) >= policy.same_share * shorter
