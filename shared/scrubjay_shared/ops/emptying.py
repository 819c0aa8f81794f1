"""Which writes to memories have nothing to say any more."""

from __future__ import annotations

from scrubjay_shared.ops.registers import heads
from scrubjay_shared.ops.schema import LASTING, Field
from scrubjay_shared.ops.stamps import Stamp
from scrubjay_shared.ops.state import State


def to_empty(state: State, keep: int) -> dict[tuple[str, Stamp], frozenset[int]]:
    """Return the registers to empty of the writes in a state, by (entity, stamp).

    Of each register these are all superseded versions but the latest `keep`, and all that a write without a value saw.
    """
    found: dict[tuple[str, Stamp], set[int]] = {}
    for (entity, key), versions in state.registers.items():
        if len(versions) > 1 and key in _EMPTYING:
            for stamp in sorted(set(versions) - heads(versions))[: -keep or None]:
                found.setdefault((entity, stamp), set()).add(key)
    for (entity, key), stamps in state.superseded.items():
        for stamp in stamps:
            found.setdefault((entity, stamp), set()).add(key)
    return {place: frozenset(keys) for place, keys in found.items()}


_EMPTYING = frozenset(Field) - LASTING
