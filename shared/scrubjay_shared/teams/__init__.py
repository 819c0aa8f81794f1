"""The log of a team: who is in it, what each may do, which epochs its key has had. Read and replayed alike everywhere.

`entries` has their bytes, `state` what they add up to, `replay` which may follow which.
"""

from __future__ import annotations

from scrubjay_shared.teams.entries import (
    ID_BYTES,
    TeamEntry,
    TeamEntryType,
    TeamRole,
    device_proof,
    entry,
    epoch_commit,
    genesis,
    read,
    team_id,
)
from scrubjay_shared.teams.replay import extended, replay
from scrubjay_shared.teams.state import TeamDevice, TeamMember, TeamState

__all__ = [
    "ID_BYTES",
    "TeamDevice",
    "TeamEntry",
    "TeamEntryType",
    "TeamMember",
    "TeamRole",
    "TeamState",
    "device_proof",
    "entry",
    "epoch_commit",
    "extended",
    "genesis",
    "read",
    "replay",
    "team_id",
]
