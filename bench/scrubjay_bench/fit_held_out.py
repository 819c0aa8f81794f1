"""What the distiller keeps of people that its selector was not fitted to, with all its rules, at several floors.

The weights that ship know all the labelled sessions, so a run of `scrubjay bench devmem` over these is too good. Here
each person's sessions are distilled with a forest of the other people's, whose curve is likewise fitted to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from scrubjay.distill import Observation, distill
from scrubjay.distill.features import features
from scrubjay.distill.forest import Forest
from scrubjay.distill.prose import Span
from scrubjay.policy import DEFAULT
from scrubjay_bench import devmem_scores
from scrubjay_bench.devmem import Project
from scrubjay_bench.devmem_scores import Learned, Values
from scrubjay_shared.records import Event, content_hash

FLOORS = (0.1, 0.15, 0.2, 0.3)
"""Of `DistillPolicy.min_chance`."""

KINDS = ("decision", "preference", "goal", "fact", "insight", "howto")


@dataclass(frozen=True, slots=True)
class Held:
    """A project and the forest that never saw its sessions."""

    project: Project
    forest: Forest


def rows(held: Sequence[Held], floors: Sequence[float] = FLOORS) -> Iterator[dict[str, object]]:
    """Yield what is kept at each floor: of each project, and of all together, as a row of `scrubjay bench devmem`."""
    for floor in floors:
        values = [_values(one, floor) for one in held]
        for one, of_one in zip(held, values, strict=True):
            yield {"floor": floor, "project": one.project.name} | devmem_scores.row(of_one)
        yield {"floor": floor, "project": "all"} | devmem_scores.row(devmem_scores.pooled(values))


def table(found: Sequence[Mapping[str, object]]) -> str:
    """Return rows as a table in markdown."""
    heads = ("floor", "project", "memories", "precision", "cover 2\N{EN DASH}3", "type", "scope", "tempting")
    lines = [f"| {' | '.join(heads)} |", f"|--:|---|{'--:|' * (len(heads) - 2)}"]
    for row in found:
        coverage = row["coverage"]
        shares = (row["precision"], coverage["2-3"], row["type_right"], row["scope_right"], row["tempting_kept"])  # type: ignore[index]
        said = ("" if share is None else f"{share:.3f}" for share in shares)
        lines.append(f"| {row['floor']} | {row['project']} | {row['memories']} | {' | '.join(said)} |")
    return "\n".join(lines)


def kinds(held: Sequence[Held], floor: float = DEFAULT.distill.min_chance) -> str:
    """Return a table in markdown of what kind the learned labels are, by row, and what they are called, by column."""
    counted: Counter[tuple[str, str]] = Counter()
    for one in held:
        learned = _learned_of(one, floor)
        best = devmem_scores.matched(learned, one.project.labels).best
        counted.update((label.type, learned[best[label.id]].type) for label in one.project.labels if label.id in best)
    lines = [f"| label | {' | '.join(KINDS)} |", f"|---|{'--:|' * len(KINDS)}"]
    lines += [f"| {kind} | {' | '.join(str(counted[kind, other]) for other in KINDS)} |" for kind in KINDS]
    return "\n".join(lines)


def _values(held: Held, floor: float) -> Values:
    learned = _learned_of(held, floor)
    return devmem_scores.learning(held.project, learned, devmem_scores.matched(learned, held.project.labels))


def _learned_of(held: Held, floor: float) -> list[Learned]:
    def selector(text: str, sentences: Sequence[Span], *, by_person: bool) -> list[float]:
        if not sentences:
            return []
        return [float(one) for one in held.forest.probabilities(features(text, sentences, by_person=by_person))]

    policy = replace(DEFAULT.distill, min_chance=floor)
    made: dict[str, Observation] = {}
    for _, session in groupby(_events(held.project), key=lambda event: event.session_id):
        for one in distill(list(session), policy=policy, selector=selector).observations:
            made.setdefault(content_hash(one.content), one)
    return [_learned(one) for one in made.values()]


def _events(project: Project) -> Iterator[Event]:
    for turn, ts in sorted(zip(project.turns, project.times, strict=True), key=lambda pair: pair[0].session):
        yield Event(
            id=turn.id,
            device="bench",
            agent="claude-code",
            session_id=turn.session,
            type=turn.event_type,
            role=turn.role,
            text=turn.text,
            ts=ts,
            dedupe_key=turn.id,
            project=turn.project,
            trust=turn.trust,
        )


def _learned(one: Observation) -> Learned:
    return Learned(
        id=f"{one.event_id_start} {one.span_start}",
        content=one.content,
        type=one.type.value,
        scope=one.scope.value,
        trust=one.trust.value,
        turns=frozenset((one.event_id_start, one.event_id_end)),
        excerpt=one.excerpt,
        confidence=one.confidence,
    )
