"""Making a team, letting in, coming in, roles, taking out and leaving; and what follows from these by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scrubjay_shared import teams
from scrubjay_shared.account import AccountState
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, NotFoundError, WithheldError
from scrubjay_shared.teams import TeamEntryType, TeamMember, TeamRole, TeamState
from scrubjay_shared.teams.entries import ends_body
from scrubjay_shared.teams.records import PutTeamCard, TeamAppend, TeamCard, TeamWrap
from scrubjay_sync.account.drafts import Draft as AccountDraft
from scrubjay_sync.keys.keypairs import KEY_BYTES
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys
from scrubjay_sync.teams.keys import Identity, identity_of, with_new_identity, wrapped
from scrubjay_sync.teams.log import Draft, PinnedTeam, TeamContext, keyring_draft
from scrubjay_sync.teams.words import card_words, join_words


async def own_card(context: TeamContext) -> TeamCard:
    """Return this person's card, made and put at the server if need be."""
    await context.member.refresh(context.cloud)
    identity = await _identity(context)
    made = PutTeamCard(sign_pub=identity.sign_pub, wrap_pub=identity.wrap.wrap_pub)
    await context.cloud.teams.put_card(made)
    return TeamCard(account=context.account, sign_pub=made.sign_pub, wrap_pub=made.wrap_pub)


async def create(context: TeamContext, name: str, projects: Sequence[str]) -> PinnedTeam:
    """Make a team with this person as its only member, an admin; return it.

    What is first written about `projects` from now on goes to it. Raises ConflictError when the name or a project is
    taken.
    """
    await context.member.refresh(context.cloud)
    _check_free(context, name, projects)
    identity, key = await _identity(context), context.entropy(KEY_BYTES)
    first = teams.genesis(
        context.account,
        nonce=context.entropy(teams.ID_BYTES),
        sign_pub=identity.sign_pub,
        wrap_pub=identity.wrap.wrap_pub,
        commit=teams.epoch_commit(0, key),
        sign=identity.sign,
    )
    state = teams.replay([first])
    wrap = wrapped(state.team, state.members[context.account], 0, key)
    await context.cloud.teams.create(TeamAppend(head=bytes(32), entries=(first,), wraps=(wrap,)))
    await _enter(context, state.team, name, projects)
    await context.pin(state.team, [first])
    return await context.follow(state.team)


async def invite(
    context: TeamContext, team: bytes, username: str, role: TeamRole, words: Sequence[str]
) -> tuple[str, ...]:
    """Let a person in whose card has these words; return the words that they type in turn.

    Raises NotFoundError when nobody of that name has a card, DeniedError when the words are another card's: then
    somebody has put other keys in between.
    """
    card = await context.cloud.teams.card(username)
    if tuple(words) != card_words(card):
        raise DeniedError(
            f"those are not the words of the card that the server has of {username}: nobody was let in",
            hint="have them read the words of scrubjay teams card again; if they differ, do not trust the server",
        )
    member = TeamMember(account=card.account, sign_pub=card.sign_pub, wrap_pub=card.wrap_pub, role=role, added=0)

    def draft(found: PinnedTeam, _: Identity) -> Draft:
        if found.state.member(card.account) is not None:
            raise ConflictError(f"{username} is in team {found.name} already", hint="scrubjay teams role changes roles")
        if found.state.epoch not in found.keys:
            raise WithheldError(
                f"this device lacks the newest key of team {found.name}, which whoever comes in needs",
                hint="scrubjay sync status says why",
            )
        body = {1: card.account, 2: card.sign_pub, 3: card.wrap_pub, 4: int(role)}
        wraps = [wrapped(team, member, epoch, key) for epoch, key in sorted(found.keys.items())]
        return Draft(entries=[(TeamEntryType.MEMBER_ADD, body)], wraps=wraps)

    def name(_: AccountState, ring: Keyring) -> AccountDraft:
        known = ring.devices.get(card.account) == username
        return keyring_draft(None if known else ring.with_device(card.account, username))

    await context.member.append(context.cloud, name)  # first, so that what is told of it has the name
    found = await context.append(team, draft)
    return join_words(team, await _added_by(context, found.state, card.account), found.state.members[card.account])


async def join(context: TeamContext, name: str, words: Sequence[str], projects: Sequence[str]) -> PinnedTeam:
    """Come into the team whose words these are, and call it `name` from now on; return it.

    Raises DeniedError when no team that the server shows has these words.
    """
    await context.member.refresh(context.cloud)
    _check_free(context, name, projects)
    for line in (await context.cloud.teams.list()).teams:
        if line.team in context.joined:
            continue
        entries = await context.fetch(line.team, 0)
        state = teams.replay(entries)
        me = state.member(context.account)
        if me is None or state.team != line.team or identity_of(context.identities, me) is None:
            continue
        if tuple(words) == join_words(state.team, teams.read(entries[me.added]).hash, me):
            await _enter(context, state.team, name, projects)
            await context.pin(state.team, entries)
            return await context.follow(state.team)
    raise DeniedError(
        "no team that lets you in has those words: nothing was done",
        hint="have whoever let you in read them again; if they differ, do not trust the server",
    )


async def set_role(context: TeamContext, team: bytes, account: bytes, role: TeamRole) -> PinnedTeam:
    """Change what a member may do. What a reader had written before counts as far as this device has read it."""
    ends = await _ends(context, team)

    def draft(found: PinnedTeam, _: Identity) -> Draft:
        member = _other(found, account)
        if member.role == role:
            return Draft()
        body = {1: account, 2: int(role), 3: ends_body(_of(found.state, account, ends))}
        return Draft(entries=[(TeamEntryType.ROLE, body)])

    return await context.append(team, draft)


async def remove(context: TeamContext, team: bytes, account: bytes) -> PinnedTeam:
    """Take a member out, with a new key for what is written from now on.

    What they had written counts as far as this device has read it.
    """
    if account == context.account:
        raise InvalidError("that is you", hint="scrubjay teams leave takes yourself out")
    ends, key = await _ends(context, team), context.entropy(KEY_BYTES)

    def draft(found: PinnedTeam, _: Identity) -> Draft:
        _other(found, account)
        epoch = found.state.epoch + 1
        body = {
            1: account,
            2: ends_body(_of(found.state, account, ends)),
            3: epoch,
            4: teams.epoch_commit(epoch, key),
        }
        stay = [one for one in found.state.active() if one.account != account]
        return Draft(entries=[(TeamEntryType.MEMBER_REMOVE, body)], wraps=_for_all(team, stay, epoch, key))

    return await context.append(team, draft)


async def leave(context: TeamContext, team: bytes) -> None:
    """Leave a team; the last member's leaving ends it. What came from it stays in this person's stores."""
    ends = await _ends(context, team)

    def draft(found: PinnedTeam, _: Identity) -> Draft:
        return Draft(entries=[(TeamEntryType.LEAVE, {1: ends_body(_of(found.state, context.account, ends))})])

    if (known := await context.pinned(team)) is None or known.state.member(context.account) is not None:
        await context.append(team, draft)
    await context.forget(team)


# --- what follows by itself -------------------------------------------------------------------------------------------


async def follow_up(context: TeamContext, found: PinnedTeam) -> None:
    """Do what a team needs of this person's devices: shut out one of theirs, make a key that is due, name this one."""
    state, account = found.state, context.account
    gone = _shut_out(context.member.state, state, account)
    me = state.member(account)
    if gone and me is not None:
        await _renew_identity(context, me)
        ends, key = await _ends(context, found.team), context.entropy(KEY_BYTES)
        newest = context.identities[0]

        def rekey(found: PinnedTeam, _: Identity) -> Draft:
            mine, epoch = found.state.member(account), found.state.epoch + 1
            if mine is None or mine.sign_pub == newest.sign_pub:
                return Draft()
            shut = {device: ends.get(device, (0, bytes(32))) for device in gone}
            renewed = TeamMember(
                account=account,
                sign_pub=newest.sign_pub,
                wrap_pub=newest.wrap.wrap_pub,
                role=mine.role,
                added=mine.added,
            )
            body = {1: renewed.sign_pub, 2: renewed.wrap_pub, 3: ends_body(shut), 4: epoch}
            others = [one for one in found.state.active() if one.account != account]
            return Draft(
                entries=[(TeamEntryType.REKEY, {**body, 5: teams.epoch_commit(epoch, key)})],
                wraps=_for_all(found.team, [*others, renewed], epoch, key),
            )

        await context.append(found.team, rekey)
    if found.state.key_due:
        fresh = context.entropy(KEY_BYTES)

        def renew(found: PinnedTeam, _: Identity) -> Draft:
            epoch = found.state.epoch + 1
            if not found.state.key_due:
                return Draft()
            return Draft(
                entries=[(TeamEntryType.EPOCH, {1: epoch, 2: teams.epoch_commit(epoch, fresh)})],
                wraps=_for_all(found.team, found.state.active(), epoch, fresh),
            )

        await context.append(found.team, renew)
    if writes(context, found.state) and not _named(context, found.state):

        def name_device(found: PinnedTeam, _: Identity) -> Draft:
            if _named(context, found.state):
                return Draft()
            own = context.member.state.devices[context.device]
            proof = context.member.sign(teams.device_proof(found.team, account, context.device))
            return Draft(entries=[(TeamEntryType.DEVICE_ADD, {1: context.device, 2: own.sign_pub, 3: proof})])

        await context.append(found.team, name_device)


def writes(context: TeamContext, state: TeamState) -> bool:
    """Say whether this person may write in a team."""
    me = state.member(context.account)
    return me is not None and me.writes


def _named(context: TeamContext, state: TeamState) -> bool:
    known = state.devices.get(context.device)
    return known is not None and known.in_force and known.account == context.account


def _shut_out(account: AccountState, state: TeamState, own: bytes) -> tuple[bytes, ...]:
    """Return the devices that write in the team as this person and that their account has shut out since."""
    return tuple(
        one.id for one in state.devices_of(own) if one.id not in account.devices or account.devices[one.id].revoked
    )


async def _renew_identity(context: TeamContext, me: TeamMember) -> None:
    """Have a newer identity than the one that a team knows, as all devices of this person have it."""

    def draft(_: AccountState, ring: Keyring) -> AccountDraft:
        found = context.identities
        return keyring_draft(with_new_identity(ring, context.entropy) if found[0].sign_pub == me.sign_pub else None)

    await context.member.append(context.cloud, draft)


async def _identity(context: TeamContext) -> Identity:
    """Return this person's newest identity, made if there is none."""

    def draft(_: AccountState, ring: Keyring) -> AccountDraft:
        return keyring_draft(None if context.identities else with_new_identity(ring, context.entropy))

    if not context.identities:
        await context.member.append(context.cloud, draft)
    return context.identities[0]


async def _enter(context: TeamContext, team: bytes, name: str, projects: Sequence[str]) -> None:
    """Have all devices of this person know a team by a name."""

    def draft(_: AccountState, ring: Keyring) -> AccountDraft:
        _check_free(context, name, projects)
        return keyring_draft(ring.with_scope(team, ScopeKeys(name=name, projects=tuple(projects))))

    await context.member.append(context.cloud, draft)


def _check_free(context: TeamContext, name: str, projects: Sequence[str]) -> None:
    if any(known.name == name for known in context.member.keyring.scopes.values()):
        raise ConflictError(f"you have a scope or a team {name!r} already", hint="choose another name for it here")
    taken = sorted(set(projects) & context.member.scopes.projects.keys())
    if taken:
        raise ConflictError(
            f"project {taken[0]} belongs to another scope already", hint="scrubjay sync scopes list shows them"
        )


def _other(found: PinnedTeam, account: bytes) -> TeamMember:
    member = found.state.member(account)
    if member is None:
        raise NotFoundError(f"no such member in team {found.name}", hint="scrubjay teams list shows who is in")
    return member


def _for_all(team: bytes, members: Sequence[TeamMember], epoch: int, key: bytes) -> list[TeamWrap]:
    return [wrapped(team, one, epoch, key) for one in members]


async def _ends(context: TeamContext, team: bytes) -> Mapping[bytes, tuple[int, bytes]]:
    return await context.store.read(lambda q: q.teams.lanes(team))


def _of(state: TeamState, account: bytes, ends: Mapping[bytes, tuple[int, bytes]]) -> dict[bytes, tuple[int, bytes]]:
    return {one.id: ends[one.id] for one in state.devices_of(account) if one.id in ends}


async def _added_by(context: TeamContext, state: TeamState, account: bytes) -> bytes:
    """Return the hash of the entry that let a member in."""
    entries = await context.store.read(lambda q: q.teams.log(state.team))
    return teams.read(entries[state.members[account].added]).hash
