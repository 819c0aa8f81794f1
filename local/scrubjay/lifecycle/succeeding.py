"""Which of the hits of a question may have taken the place of another one. Pure.

What is sure is settled when a statement is learned (`supersession`). This is for what nobody settled: two turns, a turn
and a memory, two memories in other words. It is a chance, far from sure, and decides nothing but which of two hits is
told first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from scrubjay.lifecycle.readings import ended, telling
from scrubjay.policy import SucceedingPolicy
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.pairs import Pair

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*|#[0-9a-f]{3,8}\b")
_READ = 600
"""Characters of a text in which it says what it ends."""


def chance(pair: Pair, old: str, new: str, policy: SucceedingPolicy, least: float = 0.0) -> float:
    """Return how likely the later of two texts takes the place of the earlier one, in [0, 1].

    Where it cannot reach `least`, whatever the texts say has ended, it is 0: reading that takes most of the time.
    """
    numbers = set(_NUMBER.findall(old)), set(_NUMBER.findall(new))
    another = all(numbers) and numbers[0].isdisjoint(numbers[1])
    evidence = policy.bias + policy.contained * pair.contained + policy.nearest * pair.nearest + policy.number * another
    if _logistic(evidence + policy.ended) < least:
        return 0.0
    gone = ended(new[:_READ])
    share = len(gone & telling(old[:_READ])) / len(gone) if gone else 0.0
    return _logistic(evidence + policy.ended * share)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def successors(
    hits: Sequence[Hit], pairs: Iterable[Pair], texts: Mapping[str, str], policy: SucceedingPolicy, *, asks_now: bool
) -> dict[str, str]:
    """Return, of the first hits in their order, which later hit below each is to be told before it: ids by ids.

    It is the likeliest to have taken its place, where that is likely enough for what is asked. A hit comes up once, and
    what has come up brings up nothing. What is superseded itself takes no place.
    """
    least = policy.chance_now if asks_now else policy.chance
    place = {hit.id: at for at, hit in enumerate(hits)}
    sure = {hit.id: hit.confidence or 0.0 for hit in hits if not hit.superseded}
    after: dict[str, list[tuple[float, int, str]]] = {}
    for pair in pairs:
        old, new = pair.old, pair.new
        if (
            old in sure
            and new in sure
            and place[old] < min(place[new], policy.olds)
            and sure[new] >= policy.likely * sure[old]
        ):
            likely = chance(pair, texts[old], texts[new], policy, least)
            if likely >= least:
                after.setdefault(old, []).append((likely, -place[new], new))
    found: dict[str, str] = {}
    for hit in hits[: policy.olds]:
        left = [one for one in after.get(hit.id, ()) if one[2] not in found.values()]
        if left and hit.id not in found.values():
            found[hit.id] = max(left)[2]
    return found
