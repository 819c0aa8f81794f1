"""Which writes to memories have nothing to say any more."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay_shared.ops.registers import heads
from scrubjay_shared.ops.schema import LASTING, Field
from scrubjay_shared.ops.stamps import Stamp
from scrubjay_shared.ops.state import State


def to_empty(state: State, keep: int | Mapping[tuple[str, int], int]) -> dict[tuple[str, Stamp], frozenset[int]]:
    """Return the registers to empty of the writes in a state, by (entity, stamp).

    Of each register these are all superseded versions but the latest `keep` (which may say it for each register, and of
    those that it does not name none), and all that a write without a value saw.
    """
    found: dict[tuple[str, Stamp], set[int]] = {}
    for (entity, key), versions in state.registers.items():
        if len(versions) > 1 and key in _EMPTYING:
            kept = keep if isinstance(keep, int) else keep.get((entity, key), 0)
            for stamp in sorted(set(versions) - heads(versions))[: -kept or None]:
                found.setdefault((entity, stamp), set()).add(key)
    for (entity, key), stamps in state.superseded.items():
        for stamp in stamps:
            found.setdefault((entity, stamp), set()).add(key)
    return {place: frozenset(keys) for place, keys in found.items()}


_EMPTYING = frozenset(Field) - LASTING
