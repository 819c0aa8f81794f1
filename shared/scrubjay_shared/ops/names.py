"""Which memory holds which name, when several claim it."""

from __future__ import annotations

from scrubjay_shared.clock import Hlc
from scrubjay_shared.ops.stamps import Stamp
from scrubjay_shared.ops.state import State

FIRST_CLAIM = Hlc(1_704_067_200_000 << 16)
"""2024: no device made an op before. An older stamp is of a clock that was not set, and is no reason to hold a name."""


def claimed_in_order(claim: tuple[Stamp, str]) -> tuple[bool, Stamp, str]:
    """Return what claims (stamp, memory) to one name are ordered by: the first holds it.

    Those that a clock stamped which was not set come after all others.
    """
    stamp, entity = claim
    return stamp[0] < FIRST_CLAIM, stamp, entity


def live_claims(state: State) -> list[tuple[str, Stamp, str]]:
    """Return the claims (name, stamp, memory) that were not taken back, of memories that were not forgotten."""
    return [
        (name, stamp, entity)
        for (name, stamp), entity in state.claims.items()
        if (name, stamp) not in state.unclaimed and entity not in state.forgotten
    ]


def holders(state: State) -> dict[str, tuple[str, str]]:
    """Return, for each name shown, the memory it resolves to and the name as it was claimed.

    The two names differ only where the claimed one was already held: the second holder shows as `name~2`, or as the
    next number that nobody holds, claimed or shown.
    """
    live: dict[str, list[tuple[Stamp, str]]] = {}
    for name, stamp, entity in live_claims(state):
        live.setdefault(name, []).append((stamp, entity))
    claimed = {name: sorted(claims, key=claimed_in_order) for name, claims in live.items()}
    in_order = {name: list(dict.fromkeys(entity for _, entity in claims)) for name, claims in claimed.items()}
    names = {name: (entities[0], name) for name, entities in in_order.items()}
    for name in sorted(in_order):  # sorted: which `~2` is free must not depend on the order the ops came in
        place = 2
        for entity in in_order[name][1:]:
            while f"{name}~{place}" in names:
                place += 1
            names[f"{name}~{place}"] = (entity, name)
    return names
