"""What a team's log adds up to: members, their devices, epochs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrubjay_shared.envelope import LIMIT
from scrubjay_shared.teams.entries import TeamRole


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMember:
    """A person in the team, by their account. `added` is the entry that let them in."""

    account: bytes
    sign_pub: bytes
    wrap_pub: bytes
    role: TeamRole
    added: int
    in_force: bool = True

    @property
    def writes(self) -> bool:
        """Whether what they write is taken."""
        return self.in_force and self.role >= TeamRole.WRITER

    @property
    def rules(self) -> bool:
        """Whether they may change who is in."""
        return self.in_force and self.role == TeamRole.ADMIN


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDevice:
    """A device of a member. `end` is how far its lane counts, (n, link); None while it goes on."""

    id: bytes
    account: bytes
    sign_pub: bytes
    end: tuple[int, bytes] | None = None
    in_force: bool = True

    @property
    def counts_to(self) -> int:
        """The last place of its lane that counts."""
        return LIMIT if self.end is None else self.end[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState:
    """What a log adds up to after entry `seq`, whose hash is `head`.

    `commits` are those of the key of each epoch. `key_due` says that somebody left who knows the newest key: nothing is
    sealed before another member has made a new one.
    """

    team: bytes
    seq: int
    head: bytes
    epoch: int
    commits: Mapping[int, bytes]
    members: Mapping[bytes, TeamMember] = field(default_factory=dict)
    devices: Mapping[bytes, TeamDevice] = field(default_factory=dict)
    key_due: bool = False
    key_author: bytes = bytes(16)
    """The account of who made the newest epoch."""

    def active(self) -> tuple[TeamMember, ...]:
        """Return the members in force, in the order they came in."""
        return tuple(sorted((one for one in self.members.values() if one.in_force), key=lambda one: one.added))

    def member(self, account: bytes) -> TeamMember | None:
        """Return a member in force; None for anybody else."""
        found = self.members.get(account)
        return found if found is not None and found.in_force else None

    def devices_of(self, account: bytes) -> tuple[TeamDevice, ...]:
        """Return the devices in force of a member."""
        return tuple(one for one in self.devices.values() if one.account == account and one.in_force)
