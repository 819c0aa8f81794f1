"""How much a memory stands for now: its salience, less what time took, more what use gave back. Pure.

Nothing is written for it: an op for every memory and night would fill the log, and every device would have to agree on
the night. It follows from what is known anyway, and only what comes of it (`consolidation`) is written.
"""

from __future__ import annotations

import math

from scrubjay.policy.consolidating import HALF_LIFE_DAYS, ConsolidationPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Kind, Layer, Memory, Trust

DAY_MS = 86_400_000


def is_by_person(memory: Memory) -> bool:
    """Say whether the person wrote a memory themselves: it was not read from what somebody said."""
    return memory.trust is Trust.USER and memory.kind in {Kind.NOTE, Kind.STORED}


def is_pinned(memory: Memory) -> bool:
    """Say whether a memory is loaded always, or picked for now: age takes nothing of it."""
    return memory.layer is not Layer.ARCHIVE


def age_days(memory: Memory, now: Millis) -> float:
    """Return the days since a memory was made, began to hold or was recalled last, 0 for one of the future."""
    last = max(memory.created_at, memory.valid_from or 0, memory.accessed_at or 0)
    return max(now - last, 0) / DAY_MS


def standing(memory: Memory, now: Millis, policy: ConsolidationPolicy, *, helped: int = 0) -> float:
    """Return the salience that is left of a memory, in [0, 1]: half of it goes with each half-life of its type.

    Each doubling of its recalls lets it live a half-life longer (`helped` counts as recalls, too), and its age begins
    again when it is recalled. What is pinned, and a type without a half-life, keeps its salience; what the person wrote
    keeps at least `person_floor` of it.
    """
    half_life = HALF_LIFE_DAYS[memory.type]
    if half_life is None or is_pinned(memory):
        return memory.salience
    uses = memory.access_count + policy.helped_recalls * helped
    lived = age_days(memory, now) / half_life - policy.use_stretch * math.log2(1 + max(uses, 0))
    left = memory.salience * math.exp2(-max(lived, 0.0))
    return max(left, min(memory.salience, policy.person_floor)) if is_by_person(memory) else left
