"""What a round has done: while it runs, and when it has ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_shared.errors import (
    ScrubjayError,
)
from scrubjay_sync.planning import LaneId


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a long step of a round is, in places: `step` is "push", "snapshot", "bootstrap", "repair" or "pack"."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did. `synced`: the server has echoed everything of ours, and we hold everything it has.

    `errors` are those that held up one lane or one step and not the round; each is kept as an alarm too. `ops_sent`
    and `ops_received` count ops, `repaired` objects given back to the server, `packed` objects that packs replaced.
    `new_incarnation`: this device goes on under a new id, because another wrote under the old one. `erased`: another
    device forgot memories of this store, so that copies beside the store must go too.
    """

    synced: bool
    ops_sent: int = 0
    ops_received: int = 0
    pages: int = 0
    repaired: int = 0
    packed: int = 0
    conflicts: int = 0
    quarantined: int = 0
    new_incarnation: bool = False
    erased: bool = False
    errors: tuple[ScrubjayError, ...] = ()


@dataclass(slots=True)
class Tally:
    """What a round has done so far."""

    ops_sent: int = 0
    ops_received: int = 0
    pages: int = 0
    repaired: int = 0
    packed: int = 0
    conflicts: int = 0
    quarantined: int = 0
    new_incarnation: bool = False
    erased: bool = False
    errors: list[ScrubjayError] = field(default_factory=list)
    held: set[LaneId] = field(default_factory=set)
    """Lanes of which an object was refused in this round."""

    def result(self, *, synced: bool) -> Round:
        """Return what the round has done, once it has ended."""
        return Round(
            synced=synced,
            ops_sent=self.ops_sent,
            ops_received=self.ops_received,
            pages=self.pages,
            repaired=self.repaired,
            packed=self.packed,
            conflicts=self.conflicts,
            quarantined=self.quarantined,
            new_incarnation=self.new_incarnation,
            erased=self.erased,
            errors=tuple(self.errors),
        )


class UnfaithfulSnapshotError(Exception):
    """A lane says otherwise than the snapshot from which this store has its ops."""


class RestartRoundError(Exception):
    """The round found something that changes what it stands on, has dealt with it, and begins anew."""
