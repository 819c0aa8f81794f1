"""What a session is handed at its start, and a project's brief, chosen and put in order. Pure.

Theory of operation. Each statement has a worth: how likely somebody would have it told (`handing.worth`), how far its
words are believed, and how much it was used. First comes what the person pinned; then the project's brief, which is the
best of what is known of the project alone; then the best of the rest, which is mostly what holds for the person
everywhere. Nothing below the floor is told, however much room is left: a line that is no help costs the next agent more
than it could have brought.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from scrubjay.api import Section
from scrubjay.distill.sameness import EDGES, same_words
from scrubjay.handing.features import is_outright
from scrubjay.lifecycle.trust import is_believed
from scrubjay.policy import TYPE_SALIENCE, HandingPolicy
from scrubjay.retrieval.doubts import later_first
from scrubjay_shared.records import Kind, Layer, Memory, MemoryType, ReviewState, Scope, Trust, author_of, review_state

SECTIONS = {
    MemoryType.PREFERENCE: Section.RULE,
    MemoryType.HOWTO: Section.RULE,
    MemoryType.DECISION: Section.DECISION,
    MemoryType.INSIGHT: Section.WARNING,
}
"""Under which heading of a brief a memory stands; any other kind says what the project, or the person, is."""

LASTING = frozenset({MemoryType.PREFERENCE, MemoryType.HOWTO})
"""Kinds that are told as long as they hold: a rule that is obeyed leaves no trace of use."""

FILLERS = frozenset({"a", "also", "an", "now", "please", "really", "the"})
"""Words of which a sentence may have one more or less and say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A memory that may be told: its worth, in [0, 1] or a little above, and how probably this session will need it.

    `questioned_by` is a later one that likely tells of a change of mind about it.
    """

    memory: Memory
    worth: float
    probability: float | None = None
    questioned_by: str | None = None

    @property
    def section(self) -> Section:
        """The heading it stands under."""
        return SECTIONS.get(self.memory.type, Section.ABOUT)

    @property
    def is_pinned(self) -> bool:
        """Whether the person pinned it."""
        return is_pinned(self.memory)


def is_pinned(memory: Memory) -> bool:
    """Say whether the person picked a memory to be told first; what is always loaded is told elsewhere.

    What is not their own word they accepted when they pinned it. Agents of earlier versions, and those of a device that
    has one still, put memories of their own into the layer.
    """
    is_chosen = memory.trust is Trust.USER or review_state(memory.review) is ReviewState.ACCEPTED
    return memory.layer is Layer.SURFACED and author_of(memory) is None and is_chosen


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
    known: Sequence[Known], policy: HandingPolicy, may: Callable[[Memory], bool] = lambda _: True
) -> list[Known]:
    """Return what is worth telling, what is pinned first, the rest by merit; of two in the same words, one.

    `may` says whether a memory may be told at all; it is asked only of what comes first. Of what belongs to the project
    and of what does not there are at most `looked_over`, more than any budget holds. What questions a line is told
    before it, and is worth as much: who reads that something may have changed is to read what to.
    """
    worthy = [one for one in known if one.is_pinned or one.worth >= policy.worth_floor]
    lifted = {
        one.questioned_by: max(one.worth, policy.worth_floor) for one in sorted(worthy, key=lambda one: one.worth)
    }
    worthy = [
        replace(one, worth=max(one.worth, lifted.get(one.memory.id, 0.0)))
        for one in known
        if one.is_pinned or one.worth >= policy.worth_floor or one.memory.id in lifted
    ]
    worthy.sort(key=lambda one: (not one.is_pinned, -merit(one, policy), -one.memory.created_at, one.memory.id))
    kept: list[tuple[Known, tuple[str, ...]]] = []
    room = {True: policy.looked_over, False: policy.looked_over}
    for one in worthy:
        is_projects = one.memory.scope is Scope.PROJECT
        if not room[is_projects] or not may(one.memory):
            continue
        said = _words(one.memory.content)
        place = next((n for n, (other, words) in enumerate(kept) if words == said and _is_told_twice(one, other)), None)
        if place is None:
            kept.append((one, said))
            room[is_projects] -= 1
        elif _stands_for(one, kept[place][0]) and (
            kept[place][0].memory.created_at < one.memory.created_at or not _stands_for(kept[place][0], one)
        ):
            kept[place] = (one, said)
    questioned = {one.memory.id: one.questioned_by for one, _ in kept if one.questioned_by}
    return later_first([one for one, _ in kept], questioned, lambda one: one.memory.id)


def merit(one: Known, policy: HandingPolicy) -> float:
    """Return what a line brings for the room it takes: of two that are worth as much, the shorter leaves room for more.

    Nor is that only thrift: what holds for long is said in few words, and a long sentence is mostly of one day.
    """
    length = min(max(len(one.memory.content), policy.shortest_chars), policy.start_line_chars)
    return float(one.worth * length**-policy.thrift)


def brief(best: Iterable[Known], project: str) -> list[Known]:
    """Return what of the best may stand in a project's brief, in its order: what is of this project alone."""
    return [one for one in best if one.memory.resource_id == project]


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text in alphabetical order, but those that change nothing."""
    bare = (word.strip(EDGES) for word in text.casefold().split())
    return tuple(sorted(word for word in bare if word and word not in FILLERS))


def _is_told_twice(one: Known, other: Known) -> bool:
    """Say whether one of two lines with the same words may go: they say the same of the same, in the same order.

    Two sentences that share most of their words differ in a "not", a number or a name as soon as in anything else, and
    no list knows which word that is. So one word more or less makes two, and both are told.
    """
    ours, theirs = one.memory, other.memory
    return (
        (ours.scope, ours.resource_id) == (theirs.scope, theirs.resource_id)
        and same_words(_plain(ours.content), _plain(theirs.content))
        and (_stands_for(one, other) or _stands_for(other, one))
    )


def _plain(text: str) -> str:
    return " ".join(word for word in text.split() if word.casefold().strip(EDGES) not in FILLERS)


def _stands_for(one: Known, other: Known) -> bool:
    """Say whether a line may be told in another's place: as much believed, by no other hand, as a rule for a rule."""
    return (
        is_believed(one.memory.trust, other.memory.trust)
        and author_of(one.memory) in {None, author_of(other.memory)}
        and (one.section is Section.RULE or other.section is not Section.RULE)
        and (one.is_pinned or not other.is_pinned)
    )
