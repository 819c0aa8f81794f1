"""How much a memory matters when it is new. A number in [0, 1]; nothing here knows of time or of the store."""

from __future__ import annotations

from scrubjay.policy import TYPE_SALIENCE, DistillPolicy
from scrubjay_shared.records import MemoryType


def initial_salience(type_: MemoryType, confidence: float, policy: DistillPolicy) -> float:
    """Return the salience of a new memory, in [0, 1]: its type's, moved by how sure the reading is.

    Confidence 0.5 leaves the type's value, 0 and 1 move it by `policy.salience_spread` down and up.
    """
    value = TYPE_SALIENCE[type_] + (2 * confidence - 1) * policy.salience_spread
    return round(min(max(value, 0.0), 1.0), 4)
