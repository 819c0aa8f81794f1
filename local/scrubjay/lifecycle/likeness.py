"""Which texts share most of their telling words: candidates for a closer look, found without comparing all with all."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence

from scrubjay.policy.consolidating import ConsolidationPolicy
from scrubjay_shared.text import analyse


def alike(texts: Sequence[str], asked: Collection[int], policy: ConsolidationPolicy) -> dict[int, list[int]]:
    """Return, for each of the places `asked`, the places of those that share most words with it, rare ones first.

    What a tenth of all say tells nothing. Ties go to the earlier place, so the answer is always the same.
    """
    words = [frozenset(analyse(text)) for text in texts]
    holders: dict[str, list[int]] = {}
    for place, each in enumerate(words):
        for word in each:
            holders.setdefault(word, []).append(place)
    common = max(policy.common_least, math.ceil(policy.common_share * len(texts)))
    weight = {word: 1 / len(held) for word, held in holders.items() if 1 < len(held) <= common}
    found: dict[int, list[int]] = {}
    for place in asked:
        shared: defaultdict[int, float] = defaultdict(float)
        for word in sorted(words[place] & weight.keys()):
            for other in holders[word]:
                shared[other] += weight[word]
        shared.pop(place, None)
        ranked = sorted(shared.items(), key=lambda entry: (-entry[1], entry[0]))
        found[place] = [other for other, _ in ranked[: policy.alike]]
    return found
