"""Which memories say the same as an earlier one, and which nearly so. Pure: told one after another, it finds pairs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from scrubjay.policy.trusting import AuditPolicy
from scrubjay_shared.records import Memory
from scrubjay_shared.text import analyse

Place = tuple[str, str | None]
"""Scope and resource: only there is the same said twice."""


@dataclass(slots=True)
class Repetitions:
    """Looks for repetitions among memories that it is told of. `exact` and `near` are the later ones of each pair."""

    policy: AuditPolicy
    exact: dict[Place, list[str]] = field(default_factory=lambda: defaultdict(list))
    near: dict[Place, list[str]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    _hashes: set[tuple[Place, str]] = field(default_factory=set)
    _stems: dict[str, frozenset[str]] = field(default_factory=dict)
    _holders: dict[tuple[Place, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def tell(self, memory: Memory) -> None:
        """Take one more memory in. A long text counts as another only where its words are the same."""
        place = (memory.scope.value, memory.resource_id)
        self.counts[place] += 1
        if (place, memory.content_hash) in self._hashes:
            self.exact[place].append(memory.id)
            return
        self._hashes.add((place, memory.content_hash))
        stems = frozenset(analyse(memory.content[: self.policy.compared_chars]))
        if self._is_near(place, stems):
            self.near[place].append(memory.id)
        self._stems[memory.id] = stems
        for stem in stems:
            holders = self._holders[place, stem]
            if len(holders) < self.policy.compared:  # a word that more have tells none of them apart
                holders.append(memory.id)

    def _is_near(self, place: Place, stems: frozenset[str]) -> bool:
        if not stems:
            return False
        rare = sorted(stems, key=lambda stem: len(self._holders.get((place, stem), ())))
        looked: set[str] = set()
        for stem in rare[: self.policy.rare_stems]:
            looked.update(self._holders.get((place, stem), ()))
        share = self.policy.near_share
        return any(len(stems & other) >= share * len(stems | other) for other in (self._stems[one] for one in looked))
