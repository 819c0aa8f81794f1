"""What a person is told of a team's log: every change of who is in, or of what they may do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scrubjay_shared import teams
from scrubjay_shared.teams import TeamEntry, TeamEntryType, TeamRole, TeamState
from scrubjay_sync.account.changes import Change

_ROLES = {TeamRole.READER: "reader", TeamRole.WRITER: "writer", TeamRole.ADMIN: "admin"}


def role_name(role: TeamRole) -> str:
    """Return what a role is called."""
    return _ROLES[role]


def changes_in(name: str, entries: Sequence[bytes], own: bytes, people: Mapping[bytes, str]) -> list[Change]:
    """Return the changes of a team that a person is told of; `name` is what they call it, `own` their account.

    `people` has the names of accounts that they know. Entries were verified before. A new epoch and a member's devices
    are no news.
    """
    found = []
    for one in map(teams.read, entries):
        words = _words(one, own, people)
        if words:
            author = _person(one.author, own, people)
            found.append(
                Change(
                    seq=one.seq,
                    subject=one.hash.hex(),
                    words=f"team {name}: {words}, by {author} (entry {one.seq} of the team's log)",
                    hint="scrubjay teams list shows who is in; if it should not be so, ask whoever did it, and"
                    " scrubjay teams leave takes you out; scrubjay sync acknowledge when you know",
                )
            )
    return found


def entered(name: str, state: TeamState, own: bytes, people: Mapping[bytes, str]) -> Change:
    """Return what a person is told of a team that another device of theirs has brought them into."""
    others = [_person(one.account, own, people) for one in state.active() if one.account != own]
    return Change(
        seq=state.seq,
        subject=state.team.hex(),
        words=f"you are in team {name} with {', '.join(others) or 'nobody else'}, since another device of yours made or"
        " joined it",
        hint=f"if this was you: scrubjay sync acknowledge; if not: scrubjay teams leave {name}, scrubjay sync log shows"
        " which device changed the account, and scrubjay devices revoke shuts it out",
    )


def _words(one: TeamEntry, own: bytes, people: Mapping[bytes, str]) -> str:
    about = one.body.get(1)
    who = _person(about, own, people) if isinstance(about, bytes) else ""
    match one.type:
        case TeamEntryType.MEMBER_ADD:
            return f"{who} came in as {_ROLES[TeamRole(one.body[4])]}"
        case TeamEntryType.MEMBER_REMOVE:
            return f"{who} {'were' if about == own else 'was'} taken out"
        case TeamEntryType.ROLE:
            return f"{who} became {_ROLES[TeamRole(one.body[2])]}"
        case TeamEntryType.LEAVE:
            return f"{_person(one.author, own, people)} left"
        case TeamEntryType.REKEY:
            return "a member's keys were replaced, because a device of theirs was shut out"
        case _:
            return ""


def _person(account: bytes, own: bytes, people: Mapping[bytes, str]) -> str:
    return "you" if account == own else people.get(account) or f"account {account.hex()[:8]}"
