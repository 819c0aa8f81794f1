"""What one run of consolidation does: which memories end, become one, become an archive, or are put away. Pure.

Nothing is erased. A memory that goes is put away (`archived_at`) beside what holds it from then on (`superseded_by`),
or ended by what took its place (`valid_to`). The first is found as it was by asking for an earlier moment, and each is
taken back by undoing the run. The same memories and the same moment give the same plan on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from scrubjay.lifecycle import decay
from scrubjay.lifecycle.compression import Archive, Detail, compressed, is_kept, worded
from scrubjay.lifecycle.supersession import Succession, Verdict
from scrubjay.policy.consolidating import ConsolidationPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import TRUST_ORDER, Kind, Memory

KIND = "consolidate"
"""The kind of the causes of runs."""

PRUNE_KIND = "prune"
"""The kind of the causes of runs that only put away what decayed."""

MAY_SUPERSEDE = "may_supersede"
"""The key in a memory's metadata under which the ids of those stand whose place it may take."""

GUESSED = "guessed"
"""The key under which those of them stand of which a fitted chance alone tells (`lifecycle.minds`)."""

MEMBERS = "members"
"""The key in the metadata of an archive under which the number of its members stands; only these archives have it."""


class Action(StrEnum):
    """What a step does with its memories."""

    SUPERSEDE = "supersede"
    QUESTION = "question"
    MERGE = "merge"
    COMPRESS = "compress"
    PRUNE = "prune"


ALL = frozenset(Action)
PRUNING = frozenset({Action.PRUNE})
"""What the job `prune` does: it puts away what decayed. The job `consolidate` does the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory as a run sees it. `excerpts` are what its sources say, `helped` how often somebody said that it helped.

    `settled` ones are left alone: somebody undid what was done to them, or gave them a name to call them by.
    """

    memory: Memory
    excerpts: tuple[str, ...] = ()
    helped: int = 0
    named: bool = False
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, whole or not at all: what becomes of some memories, and what is in their place (None: nothing)."""

    action: Action
    members: tuple[str, ...]
    into: str | None = None
    at: Millis | None = None
    why: str = ""
    archive: Archive | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps of one run, and how many memories are `left` for the next ones because the run has its share.

    `compared` says that none is left because of what another memory says, not even for a run that does other things.
    """

    steps: tuple[Step, ...]
    left: int
    compared: bool
    considered: int


Same = Callable[[Memory, Memory], bool]
"""Says whether the second memory says all that the first does, so that merging into it loses nothing."""


def is_considered(memory: Memory) -> bool:
    """Say whether a run may look at a memory at all: current, and loaded on search alone."""
    return memory.superseded_by is None and memory.archived_at is None and not decay.is_pinned(memory)


def planned(
    candidates: Sequence[Candidate],
    pairs: Iterable[tuple[int, int]],
    ended: Iterable[Succession],
    *,
    now: Millis,
    same: Same,
    policy: ConsolidationPolicy,
    words: Mapping[tuple[str, ...], str] | None = None,
    wanted: Collection[Action] = ALL,
) -> Plan:
    """Return what a run does at a time. `pairs` are places of candidates that are alike, `ended` what was outdated.

    `words` are what a writer says of some groups, by the ids of their members: taken where they lose and add nothing.
    Of all that there is to do, the run does what is `wanted`: what one run would compress, another does not put away.
    """
    by_id = {one.memory.id: one for one in candidates}
    gone: set[str] = set()
    steps = _endings(ended, by_id, gone)
    steps += _merges(candidates, pairs, gone, same)
    steps += _compressions([one for one in candidates if one.memory.id not in gone], now, policy, gone, words or {})
    steps += _prunings(candidates, gone, now, policy)
    most = min(max(policy.least, int(policy.share * len(candidates))), policy.most)
    taken: list[Step] = []
    touched = left = 0
    compared = True
    for step in steps:
        if step.action in wanted and touched + len(step.members) <= most:
            taken.append(step)
            touched += len(step.members)
        else:
            left += len(step.members) if step.action in wanted else 0
            compared &= step.action in {Action.COMPRESS, Action.PRUNE}
    return Plan(steps=tuple(taken), left=left, compared=compared, considered=len(candidates))


def _endings(ended: Iterable[Succession], by_id: Mapping[str, Candidate], gone: set[str]) -> list[Step]:
    """Return what ends because something took its place for sure, and what something else may have outdated."""
    steps = []
    asked: set[tuple[str, str]] = set()
    for one in sorted(ended, key=lambda each: (each.verdict, each.at, each.old, each.new)):
        old, new = by_id.get(one.old), by_id.get(one.new)
        if old is None or new is None or old.settled or new.settled or one.old in gone or one.new in gone:
            continue
        if one.verdict is Verdict.UNSURE:
            if (one.old, one.new) not in asked and one.old not in _noted(new.memory):
                asked.add((one.old, one.new))
                steps.append(Step(action=Action.QUESTION, members=(one.old,), into=one.new, at=one.at, why=one.why))
            continue
        gone.update((one.old, one.new))  # what took a place goes on by itself, in a later run
        steps.append(Step(action=Action.SUPERSEDE, members=(one.old,), into=one.new, at=one.at, why=one.why))
    return steps


def _noted(memory: Memory) -> Sequence[object]:
    """Return the ids of the memories whose place a memory may take, as was noted before."""
    found = memory.metadata.get(MAY_SUPERSEDE)
    return found if isinstance(found, list) else ()


def _merges(
    candidates: Sequence[Candidate], pairs: Iterable[tuple[int, int]], gone: set[str], same: Same
) -> list[Step]:
    """Return which memories become one, by the one that stays: the one believed most, the fuller, then the older."""
    into: dict[str, list[str]] = {}
    held: set[str] = set()
    for first, second in sorted(pairs):
        one, other = candidates[first], candidates[second]
        if one.settled or other.settled or not _may_be_one(one.memory, other.memory):
            continue
        for kept, merged in sorted(((one, other), (other, one)), key=lambda pair: _rank(pair[0].memory)):
            kept_id, merged_id = kept.memory.id, merged.memory.id
            free = not ({kept_id, merged_id} & gone) and merged_id not in held and not merged.named
            believed = TRUST_ORDER.index(kept.memory.trust) >= TRUST_ORDER.index(merged.memory.trust)
            if free and believed and same(merged.memory, kept.memory):
                into.setdefault(kept_id, []).append(merged_id)
                held.add(kept_id)
                gone.add(merged_id)
                break
    gone |= held
    return [Step(action=Action.MERGE, members=tuple(members), into=kept) for kept, members in into.items()]


def _may_be_one(one: Memory, other: Memory) -> bool:
    return (one.scope, one.resource_id, one.valid_from, one.valid_to, one.layer) == (
        other.scope,
        other.resource_id,
        other.valid_from,
        other.valid_to,
        other.layer,
    ) and (one.valid_to is None and Kind.ARCHIVE not in {one.kind, other.kind})


def _rank(memory: Memory) -> tuple[int, int, int, int, str]:
    """Return what sorts the memory first that is to stay."""
    named = 0 if memory.name is not None else 1
    return named, -TRUST_ORDER.index(memory.trust), -len(memory.content), memory.created_at, memory.id


def is_fading(one: Candidate, now: Millis, policy: ConsolidationPolicy) -> bool:
    """Say whether a memory may become part of an archive: read from what was said or kept by a program, and long ago.

    What the person wrote, what is called by a name and what stands in a file that people edit stays as it is.
    """
    memory = one.memory
    return (
        not one.settled
        and not one.named
        and memory.kind in {Kind.OBSERVATION, Kind.STORED}
        and not decay.is_by_person(memory)
        and "source_key" not in memory.metadata
        and len(memory.content) <= policy.longest
        and decay.age_days(memory, now) >= policy.min_age_days
        and decay.standing(memory, now, policy, helped=one.helped) < policy.compress_below
    )


def groups(candidates: Iterable[Candidate], now: Millis, policy: ConsolidationPolicy) -> list[list[Detail]]:
    """Return the memories that may become archives: of one place, trust and quarter of a year, a screen at most."""
    by_key: dict[tuple[str, str, str, str], list[Detail]] = {}
    for one in candidates:
        memory = one.memory
        if is_fading(one, now, policy):
            at = datetime.fromtimestamp(memory.created_at / 1000, UTC)
            key = (f"{at.year:05}-{(at.month - 1) // policy.archive_months}", *_place(memory))
            left = decay.standing(memory, now, policy, helped=one.helped)
            by_key.setdefault(key, []).append(Detail(memory=memory, excerpts=one.excerpts, standing=left))
    found = []
    for key in sorted(by_key):
        ordered = sorted(by_key[key], key=lambda detail: (detail.memory.created_at, detail.memory.id))
        found += [ordered[at : at + policy.max_members] for at in range(0, len(ordered), policy.max_members)]
    return [group for group in found if len(group) >= policy.min_members]


def _compressions(
    candidates: Sequence[Candidate],
    now: Millis,
    policy: ConsolidationPolicy,
    gone: set[str],
    words: Mapping[tuple[str, ...], str],
) -> list[Step]:
    steps = []
    for group in groups(candidates, now, policy):
        said = words.get(tuple(detail.memory.id for detail in group))
        archive = (None if said is None else worded(group, said, policy)) or compressed(group, policy)
        if archive is not None:
            steps.append(Step(action=Action.COMPRESS, members=archive.members, into=archive.id, archive=archive))
            gone.update(archive.members)
    return steps


def _prunings(candidates: Sequence[Candidate], gone: set[str], now: Millis, policy: ConsolidationPolicy) -> list[Step]:
    """Return what is put away into an archive that is there: too few of its time were left to make one of their own.

    Next to nothing is left of it, and its sources say all that it says. Of the archives that are for the same and
    believed as much, the nearest in time takes it; where there is none, it stays.
    """
    archives: dict[tuple[str, str, str], list[Memory]] = {}
    for one in candidates:
        if one.memory.kind is Kind.ARCHIVE and MEMBERS in one.memory.metadata and not one.settled:
            archives.setdefault(_place(one.memory), []).append(one.memory)
    steps = []
    for one in sorted(candidates, key=lambda one: (one.memory.created_at, one.memory.id)):
        memory, near = one.memory, archives.get(_place(one.memory), ())
        if (
            near
            and memory.id not in gone
            and is_fading(one, now, policy)
            and decay.standing(memory, now, policy, helped=one.helped) < policy.prune_below
            and one.excerpts
            and is_kept(memory, one.excerpts, "")
        ):
            into = min(near, key=lambda archive: (abs(archive.created_at - memory.created_at), archive.id))
            steps.append(Step(action=Action.PRUNE, members=(memory.id,), into=into.id))
    return steps


def _place(memory: Memory) -> tuple[str, str, str]:
    """Return whom a memory is for, and how far it is believed: one archive holds what is alike in these."""
    return memory.scope.value, memory.resource_id or "", memory.trust.value
