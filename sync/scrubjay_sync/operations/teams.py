"""Teams: listing, making, letting in, coming in, roles, taking out, leaving. No round runs meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from scrubjay_shared.errors import InvalidError
from scrubjay_shared.teams import TeamRole, TeamState
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.references import RefRequest, checked_name, one_of
from scrubjay_sync.api.teams import (
    ROLES,
    TeamCreateRequest,
    TeamInviteRequest,
    TeamJoinRequest,
    TeamLine,
    TeamMemberLine,
    TeamMemberRequest,
    TeamsResponse,
    TeamWordsResponse,
)
from scrubjay_sync.operations.client import Session, SyncClient
from scrubjay_sync.teams import membership
from scrubjay_sync.teams.changes import role_name
from scrubjay_sync.teams.log import TeamContext
from scrubjay_sync.teams.words import COUNT, card_words, log_words

_ROLES = {role_name(role): role for role in TeamRole}


async def list_teams(client: SyncClient, _: Nothing) -> TeamsResponse:
    """List the teams that this person is in, as this device has them. Needs no network."""
    session = await client.require_session()
    context = session.engine.teams
    lines = []
    for team, kept in sorted(context.joined.items(), key=lambda one: one[1].name):
        found = await context.pinned(team)
        state = None if found is None else found.state
        mine = None if state is None else state.member(context.account)
        lines.append(
            TeamLine(
                id=team.hex(),
                name=kept.name,
                role="" if mine is None else role_name(mine.role),
                epoch=0 if state is None else state.epoch,
                projects=tuple(kept.projects),
                members=() if state is None else _members(context, state),
                words=() if state is None else log_words(team, state.head),
            )
        )
    return TeamsResponse(who=client.who(session), teams=tuple(lines))


async def show_card(client: SyncClient, _: Nothing) -> TeamWordsResponse:
    """Put this person's card at the server, and return its words."""
    session = await client.require_session()
    async with _turn(session):
        card = await membership.own_card(session.engine.teams)
    return TeamWordsResponse(who=client.who(session), words=card_words(card))


async def create_team(client: SyncClient, request: TeamCreateRequest) -> TeamsResponse:
    """Make a team, and bind projects to it."""
    session = await client.require_session()
    async with _turn(session):
        await membership.create(session.engine.teams, checked_name(request.name), request.projects)
    return await list_teams(client, Nothing())


async def invite(client: SyncClient, request: TeamInviteRequest) -> TeamWordsResponse:
    """Let somebody in whose card has these words; return those that they type."""
    session = await client.require_session()
    async with _turn(session):
        words = await membership.invite(
            session.engine.teams,
            _team(session, request.team),
            request.person,
            _role(request.role),
            _words(request.words),
        )
    return TeamWordsResponse(who=client.who(session), words=words)


async def join(client: SyncClient, request: TeamJoinRequest) -> TeamsResponse:
    """Come into the team whose words these are."""
    session = await client.require_session()
    async with _turn(session):
        await membership.join(session.engine.teams, checked_name(request.name), _words(request.words), request.projects)
    return await list_teams(client, Nothing())


async def set_role(client: SyncClient, request: TeamMemberRequest) -> TeamsResponse:
    """Change what a member may do."""
    session = await client.require_session()
    context, team = session.engine.teams, _team(session, request.team)
    async with _turn(session):
        account = await _member(context, team, request.member)
        await membership.set_role(context, team, account, _role(request.role))
    return await list_teams(client, Nothing())


async def remove(client: SyncClient, request: TeamMemberRequest) -> TeamsResponse:
    """Take a member out; what is written from now on has a key that they do not get."""
    session = await client.require_session()
    context, team = session.engine.teams, _team(session, request.team)
    async with _turn(session):
        account = await _member(context, team, request.member)
        await membership.remove(context, team, account)
    return await list_teams(client, Nothing())


async def leave(client: SyncClient, request: RefRequest) -> TeamsResponse:
    """Leave a team. What came from it stays on this person's devices."""
    session = await client.require_session()
    async with _turn(session):
        await membership.leave(session.engine.teams, _team(session, request.ref))
    return await list_teams(client, Nothing())


@asynccontextmanager
async def _turn(session: Session) -> AsyncIterator[None]:
    """Keep rounds from running meanwhile, and ask as this device, as the account says it is by now."""
    async with session.engine.alone:
        await session.member.refresh(session.cloud)
        session.cloud.use(session.member.credential)
        yield


def _members(context: TeamContext, state: TeamState) -> tuple[TeamMemberLine, ...]:
    names = context.people
    return tuple(
        TeamMemberLine(
            account=one.account.hex(),
            name=names.get(one.account, ""),
            role=role_name(one.role),
            you=one.account == context.account,
            devices=len(state.devices_of(one.account)),
        )
        for one in state.active()
    )


def _team(session: Session, ref: str) -> bytes:
    names = {team.hex(): kept.name for team, kept in session.engine.teams.joined.items()}
    return bytes.fromhex(one_of(ref, names, "team", "teams list"))


async def _member(context: TeamContext, team: bytes, ref: str) -> bytes:
    """Return the account of a member by the name that this person knows them by, or by its id."""
    state = (await context.follow(team)).state
    names = {one.account.hex(): context.people.get(one.account, "") for one in state.active()}
    return bytes.fromhex(one_of(ref, names, "member of the team", "teams list"))


def _role(name: str) -> TeamRole:
    if name not in _ROLES:
        raise InvalidError(f"a role is {', '.join(ROLES)}, got {name[:40]!r}", hint="see --help")
    return _ROLES[name]


def _words(given: Sequence[str]) -> tuple[str, ...]:
    words = tuple(" ".join(given).lower().split())
    if len(words) != COUNT:
        raise InvalidError(f"there are {COUNT} words, got {len(words)}", hint="type all of them, in their order")
    return words
