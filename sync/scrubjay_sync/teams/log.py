"""A team's log as this device has pinned it, and how it is changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared import teams
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    CorruptError,
    DeniedError,
    LogConflictError,
    NotFoundError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    WithheldError,
)
from scrubjay_shared.teams import TeamEntryType, TeamState
from scrubjay_shared.teams.records import TeamAppend, TeamWrap
from scrubjay_sync.account.drafts import Draft as AccountDraft
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.cloud.log import pages_of
from scrubjay_sync.keys.keypairs import Entropy
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys
from scrubjay_sync.policy import IDENTITY, TEAM_CHANGED
from scrubjay_sync.teams.changes import changes_in, entered
from scrubjay_sync.teams.keys import Identity, identities, identity_of, opened

log = logging.getLogger(__name__)

VERIFY = "scrubjay teams list says how this device has the team; do not trust the server until you know why"


@dataclass(slots=True)
class PinnedTeam:
    """A team as far as this device has followed it: what its log adds up to, and the keys that it has opened."""

    team: bytes
    name: str
    state: TeamState
    last: bytes
    """The last entry held."""
    keys: Mapping[int, bytes] = field(default_factory=dict, repr=False)

    def is_at(self, head: bytes) -> bool:
        """Say whether the log ends here at an entry of that hash, and its newest key is open."""
        return self.state.head == head and self.state.epoch in self.keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A change of a team: entries as (type, body), and the wraps that they make necessary."""

    entries: Sequence[tuple[TeamEntryType, dict[int, Any]]] = ()
    wraps: Sequence[TeamWrap] = ()


class TeamContext:
    """One store as one member of an account, as everything about teams sees it; what was read of teams is kept here."""

    def __init__(self, store: Store, member: Member, cloud: Cloud, *, entropy: Entropy) -> None:
        self.store = store
        self.member = member
        self.cloud = cloud
        self.entropy = entropy
        self._pinned: dict[bytes, PinnedTeam] = {}

    @property
    def account(self) -> bytes:
        """The account of this person."""
        return self.member.account

    @property
    def device(self) -> bytes:
        """This device's id."""
        return self.member.device

    @property
    def joined(self) -> Mapping[bytes, ScopeKeys]:
        """The teams that this person is in, by id: their names and projects."""
        return self.member.scopes.teams

    @property
    def people(self) -> Mapping[bytes, str]:
        """What this person calls those whom they let in, by account."""
        return self.member.keyring.devices

    @property
    def identities(self) -> tuple[Identity, ...]:
        """This person's keys in teams, newest first."""
        return identities(self.member.keyring)

    async def pinned(self, team: bytes) -> PinnedTeam | None:
        """Return a team as this device has pinned it; None before it has read its log. Needs no network."""
        found = self._pinned.get(team)
        if found is None:
            entries = await self.store.read(lambda q: q.teams.log(team))
            if not entries:
                return None
            found = PinnedTeam(team, self._name(team), teams.replay(entries), entries[-1])
            self._pinned[team] = found
        return found

    async def follow(self, team: bytes) -> PinnedTeam:
        """Return a team as its log says it is by now, with every key that is sealed to this person.

        Raises RolledBackError and SplitError when the server shows another log than before, WithheldError and
        BadSignatureError when this person was not given the newest key, and what replaying raises.
        """
        found = await self._follow_log(team)
        await self._open_keys(found)
        return found

    async def _follow_log(self, team: bytes) -> PinnedTeam:
        found = await self.pinned(team)
        if found is None:
            entries = await self.fetch(team, 0)
            if not entries or teams.replay(entries).team != team:
                raise SplitError("the server shows another team under this team's id", hint=VERIFY)
            found = await self.pin(team, entries, elsewhere=True)
        else:
            entries = await self.fetch(team, found.state.seq)
            if not entries:
                raise RolledBackError(
                    f"the log of team {found.name} is shorter at the server than it was before", hint=VERIFY
                )
            if entries[0] != found.last:
                raise SplitError(f"the server shows another log of team {found.name} than before", hint=VERIFY)
            await self._extend(found, entries[1:])
        return found

    async def fetch(self, team: bytes, start: int) -> list[bytes]:
        """Return a team's log from an entry on, all its pages. Raises WithheldError, and where it is no chain."""
        entries: list[bytes] = []
        link: bytes | None = None
        async for page in pages_of(partial(self.cloud.teams.log, team), start, "a team's log", hint=VERIFY):
            for new in map(teams.read, page.entries):
                if link is not None and new.prev != link:
                    raise BrokenChainError("the server hands out a team's log that is no chain", hint=VERIFY)
                link = new.hash
            entries += page.entries
        return entries

    async def pin(self, team: bytes, entries: Sequence[bytes], *, elsewhere: bool = False) -> PinnedTeam:
        """Pin a team's log that this device has not read before. What is in it by then is no news.

        That this person is in it is news, where `elsewhere`, on another device of theirs, somebody made or joined it
        after this one had come into the account.
        """
        state, name = teams.replay(entries), self._name(team)

        def keep(tx: Transaction) -> None:
            tx.teams.keep_log(team, 0, entries)
            if elsewhere and tx.queries.replication.has_synced():
                told = entered(name, state, self.account, self.people)
                tx.replication.raise_alarm(TEAM_CHANGED, team.hex(), told.words, told.hint)

        await self.store.write(keep)
        self._pinned[team] = PinnedTeam(team, name, state, entries[-1])
        return self._pinned[team]

    async def forget(self, team: bytes) -> None:
        """Forget a team here and, on all devices of this person, what it is called. Its memories stay, at home."""
        if team in self.joined:
            await self.member.append(
                self.cloud,
                lambda _, ring: keyring_draft(ring.without_scope(team) if team in ring.scopes else None),
            )
        await self.store.write(lambda tx: tx.teams.forget(team))
        self._pinned.pop(team, None)

    async def append(self, team: bytes, draft: Callable[[PinnedTeam, Identity], Draft]) -> PinnedTeam:
        """Change a team. `draft` is called again with the newer state when another member was quicker.

        Who lacks the newest key may do that too: else whoever makes a key and gives others a wrong one would stay.
        Raises DeniedError when this person is not in it, and what the log refuses, before anything is sent.
        """
        for _ in range(IDENTITY.append_tries):
            found = await self._follow_log(team)
            try:
                await self._open_keys(found)
            except CorruptError as error:
                await self.alarm(error, team.hex())
            me = found.state.member(self.account)
            identity = None if me is None else identity_of(self.identities, me)
            if identity is None:
                raise DeniedError(
                    f"you are not in team {found.name}, or this device does not have your keys in it",
                    hint="scrubjay teams list shows who is in",
                )
            change = draft(found, identity)
            if not change.entries:
                return found
            entries = self._signed(found.state, change, identity)
            try:
                await self.cloud.teams.append(
                    team, TeamAppend(head=found.state.head, entries=tuple(entries), wraps=tuple(change.wraps))
                )
            except LogConflictError:
                continue
            await self._extend(found, entries)
            await self._open_keys(found)
            return found
        raise LogConflictError("others changed the team again and again meanwhile", hint="try again in a minute")

    async def alarm(self, error: ScrubjayError, subject: str) -> None:
        """Keep an alarm, once."""
        new = await self.store.write(
            lambda tx: tx.replication.raise_alarm(error.code, subject, error.message, error.hint)
        )
        if new:
            log.warning("sync alarm code=%s subject=%s", error.code, subject[:16])

    def _name(self, team: bytes) -> str:
        known = self.joined.get(team)
        return known.name if known is not None and known.name else team.hex()[:8]

    def _signed(self, state: TeamState, change: Draft, identity: Identity) -> list[bytes]:
        made: list[bytes] = []
        for kind, body in change.entries:
            data = teams.entry(
                state.team,
                seq=state.seq + 1,
                prev=state.head,
                type=kind,
                body=body,
                author=self.account,
                sign=identity.sign,
            )
            after = teams.extended(state, [data])
            assert after is not None  # noqa: S101 - a state with an entry more
            state = after
            made.append(data)
        return made

    async def _extend(self, found: PinnedTeam, entries: Sequence[bytes]) -> None:
        """Pin some more entries. Changes of who is in become alarms."""
        if not entries:
            return
        after = teams.extended(found.state, entries)
        assert after is not None  # noqa: S101 - as above
        told, first = changes_in(found.name, entries, self.account, self.people), found.state.seq + 1

        def keep(tx: Transaction) -> None:
            tx.teams.keep_log(found.team, first, entries)
            # In the same transaction: no crash may leave a change of who is in that nobody is told of.
            for one in told:
                tx.replication.raise_alarm(TEAM_CHANGED, one.subject, one.words, one.hint)

        await self.store.write(keep)
        for one in told:
            log.warning("team changed entry=%d: %s", one.seq, one.words)
        found.state, found.last = after, entries[-1]

    async def _open_keys(self, found: PinnedTeam) -> None:
        """Open the keys that this device lacks.

        Raises BadSignatureError when what was sealed to us as the newest key is another one than the log names,
        WithheldError when nothing was. Keys of before that are missing hold up only what is sealed under them.
        """
        state = found.state
        if state.member(self.account) is None or state.commits.keys() <= found.keys.keys():
            return
        wraps = (await self.cloud.teams.wraps(found.team)).wraps
        found.keys, wrong = opened(state, self.account, self.identities, wraps)
        if state.epoch in found.keys:
            return
        maker = self.people.get(state.key_author) or f"account {state.key_author.hex()[:8]}"
        hint = (
            f"the newest key is by {maker}, who or the server has done this; an admin who takes somebody out makes a"
            " new key for all others"
        )
        if state.epoch in wrong:
            raise BadSignatureError(
                f"the newest key of team {found.name} is not the one that its log names: nothing is written there",
                hint=hint,
            )
        raise WithheldError(f"the newest key of team {found.name} was kept from this device", hint=hint)


def keyring_draft(ring: Keyring | None) -> AccountDraft:
    """Return the change of an account that replaces its keyring and nothing else; None changes nothing."""
    return AccountDraft(keyring=ring)


def no_team(name: str) -> NotFoundError:
    """Return the error for a team that this person is not in."""
    return NotFoundError(f"you are in no team {name!r}", hint="scrubjay teams list shows those that you are in")
