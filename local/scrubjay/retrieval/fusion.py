"""Knowledge first, and conversation as its evidence: memories and events become one order.

Theory of operation. Each kind has an order of its own. Both are merged by how likely each hit answers (`relevance`),
made non-increasing along each order, so that no order within a kind changes: sure and fitting memories come first, weak
ones behind the turn that says more, by what they are worth and not by a number of places. What only repeats a hit above
it, the turn that a memory was read from or the other way about, is left out:
where a memory may well be what answers it stands in place of its turn, which it quotes. In work with agents, where one
turn is often read several times, what another turn tells comes before a further memory of the same one, and the first
hits hold memories: a sentence costs little to read, and where it answers no turn needs to be read at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay.index.documents import EVENT
from scrubjay.policy import AgentWorkPolicy, RecallPolicy, RelevancePolicy
from scrubjay.retrieval import relevance
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.turns import TurnKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the index does not know of a hit: of a memory how sure it is, of an event what kind of turn and how long."""

    confidence: float = 1.0
    turn: TurnKind = TurnKind.STATEMENT
    chars: int = 0


def weighed(hits: Sequence[Hit], known: Mapping[str, Known], policy: RecallPolicy) -> tuple[Hit, ...]:
    """Return hits in a new order: an event loses by what kind of turn it is. One without an entry is gone, left out."""
    lost = {TurnKind.NARRATION: policy.narration, TurnKind.OUTPUT: policy.output}
    found = []
    for hit in hits:
        if hit.id in known:
            loss = lost.get(known[hit.id].turn, 0.0) if hit.kind == EVENT.name else 0.0
            parts = hit.parts | {"turn": -loss} if loss else hit.parts
            found.append(replace(hit, parts=parts, score=0.0 + sum(parts.values())) if loss else hit)
    found.sort(key=lambda hit: (-hit.score, -hit.ts, hit.id))
    return tuple(found)


def judged(
    hits: Sequence[Hit],
    known: Mapping[str, Known],
    policy: RecallPolicy,
    *,
    cosine_baseline: tuple[float, float],
    work: bool = False,
) -> tuple[Hit, ...]:
    """Return hits with their confidence: how likely each answers, of a store of talk or of `work` with agents."""

    def confidence(hit: Hit) -> float:
        one = known[hit.id]
        if hit.kind == EVENT.name:
            weights = policy.agent_work if work else policy.relevance
            return relevance.of_event(hit, one.turn, one.chars, weights)
        if hit.around is not None:
            return relevance.of_sourced(hit, one.confidence, policy, cosine_baseline=cosine_baseline)
        if work and hit.cosine is not None:
            return relevance.of_added(hit, one.confidence, policy, cosine_baseline=cosine_baseline)
        return relevance.of_memory(hit, one.confidence, policy.relevance, cosine_baseline=cosine_baseline)

    return tuple(replace(hit, confidence=confidence(hit)) for hit in hits)


def spread_out(hits: Sequence[Hit], repeats: float) -> tuple[Hit, ...]:
    """Return judged memories, the likeliest first, of which each that was read from a turn told above keeps a share.

    `repeats` is the share of its likelihood: what else is said in a turn is mostly not what another turn would tell.
    """
    left = list(hits)
    told: set[str] = set()
    found: list[Hit] = []
    while left:
        likely = [(hit.confidence or 0.0) * (1.0 if told.isdisjoint(hit.also) else repeats) for hit in left]
        best = max(range(len(left)), key=lambda at: (likely[at], -at))
        found.append(replace(left.pop(best), confidence=likely[best]))
        told.update(found[-1].also)
    return tuple(found)


def of_work(hits: Sequence[Hit], policy: AgentWorkPolicy) -> tuple[Hit, ...]:
    """Return judged hits of work with agents as one order: each kind the likeliest first, memories among the first."""
    events = sorted((hit for hit in hits if hit.kind == EVENT.name), key=lambda hit: -(hit.confidence or 0.0))
    others = spread_out([hit for hit in hits if hit.kind != EVENT.name], policy.repeats)
    found = list(merged([*others, *events], policy, limit=len(hits)))
    standing = [hit for hit in found if hit.kind != EVENT.name and not hit.superseded]
    first = policy.first - min(policy.first_memories, len(standing))
    for last, hit in enumerate(standing[: policy.first_memories], start=first):
        at = found.index(hit)
        if at > last and (hit.confidence or 0.0) >= policy.passing * (found[last].confidence or 0.0):
            found.insert(last, found.pop(at))
    return falling(found)


def told_once(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits without the turns that an exchange above them shows, and without showing a turn again."""
    told: set[str] = set()
    found = []
    for hit in hits:
        if hit.kind == EVENT.name and hit.id in told:
            continue
        told.add(hit.id)
        beside = tuple(side for side in hit.beside if side not in told)
        found.append(hit if beside == hit.beside else replace(hit, beside=beside))
        told.update(hit.beside)
    return tuple(found)


def merged(hits: Sequence[Hit], policy: RelevancePolicy | AgentWorkPolicy, *, limit: int) -> tuple[Hit, ...]:
    """Return the best `limit` of judged hits, which are in order within each kind, as one order; repetitions left out.

    Scores fall along it: where a hit stands above one that scores more, that one has lost the difference as its part
    `below`.
    """
    least: dict[str, float] = {}
    places = []
    for at, hit in enumerate(hits):
        least[hit.kind] = min(least.get(hit.kind, 1.0), hit.confidence or 0.0)
        places.append((-least[hit.kind], hit.kind == EVENT.name, at, hit))
    places.sort(key=lambda place: place[:3])
    read_from: dict[str, Hit] = {}
    for *_, hit in places:
        for source in hit.also if hit.kind != EVENT.name else ():
            read_from.setdefault(source, hit)
    standing: set[str] = set()
    covered: set[str] = set()
    found: list[Hit] = []
    for *_, placed in places:
        if len(found) == limit:
            break
        hit = _known_instead(placed, read_from, policy)
        if hit.id in standing or (hit.kind != EVENT.name and hit.also and standing.issuperset(hit.also)):
            continue
        if hit.kind == EVENT.name and hit.id in covered:
            continue
        standing.add(hit.id)
        covered.update(hit.also)
        found.append(hit)
    return falling(found)


def _known_instead(hit: Hit, read_from: Mapping[str, Hit], policy: RelevancePolicy | AgentWorkPolicy) -> Hit:
    """Return the best memory that was read from a turn in place of the turn, where it may well be what answers.

    Of work it is as likely to answer as its turn, which it shows.
    """
    memory, likely = read_from.get(hit.id), hit.confidence or 0.0
    if memory is None or memory.matched < policy.instead_matched * hit.matched:
        return hit
    if (memory.confidence or 0.0) < policy.instead * likely:
        return hit
    if isinstance(policy, AgentWorkPolicy):
        return replace(memory, confidence=max(memory.confidence or 0.0, likely))
    return memory


def falling(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits in the order given, with scores that do not rise: the part `below` is what a hit lost to others."""
    found: list[Hit] = []
    for hit in hits:
        parts = {name: value for name, value in hit.parts.items() if name != "below"}
        score = 0.0 + sum(parts.values())
        if found and score > found[-1].score:
            parts["below"] = round(found[-1].score - score - 1e-6, 6)  # so that no rounding lifts it again
            score = 0.0 + sum(parts.values())
        found.append(replace(hit, parts=parts, score=score))
    return tuple(found)
