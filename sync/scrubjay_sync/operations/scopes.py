"""Listing, making, deleting and searching the scopes of the account."""

from __future__ import annotations

from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.wire import SearchRequest
from scrubjay_sync import searching
from scrubjay_sync.account import account_scopes
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.references import RefRequest, checked_name
from scrubjay_sync.api.scopes import (
    MODES,
    FindRequest,
    FoundResponse,
    ScopeCreateRequest,
    ScopeDeletedResponse,
    ScopeLine,
    ScopesResponse,
)
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.operations.ids import scope_id


async def list_scopes(client: SyncClient, _: Nothing) -> ScopesResponse:
    """List the scopes of the account."""
    session = await client.require_session()
    member = session.member
    bound: dict[bytes, list[str]] = {}
    for project, scope in sorted(member.scopes.projects.items()):
        bound.setdefault(scope, []).append(project)
    return ScopesResponse(
        who=client.who(session),
        scopes=tuple(
            ScopeLine(
                id=one.id.hex(),
                name=member.scopes.name(one.id),
                mode=_mode(one.suite),
                home=one.home,
                projects=tuple(bound.get(one.id, ())),
                epoch=one.epoch,
                held=one.id in member.scopes.ids,
            )
            for one in member.state.scopes.values()
            if not one.deleted
        ),
    )


async def create_scope(client: SyncClient, request: ScopeCreateRequest) -> ScopesResponse:
    """Make a scope, and bind projects to it."""
    session = await client.require_session()
    if request.mode not in _SUITES:
        raise InvalidError(f"a scope's mode is {' or '.join(MODES)}, got {request.mode[:40]!r}", hint="see --help")
    name = checked_name(request.name)
    await account_scopes.create_scope(
        session.member,
        client.machine(session.cloud),
        name=name,
        suite=_SUITES[request.mode],
        projects=request.projects,
        space=request.space or await searching.space_in_use(client.store) if request.mode == "searchable" else "",
    )
    return await list_scopes(client, Nothing())


async def delete_scope(client: SyncClient, request: RefRequest) -> ScopeDeletedResponse:
    """Delete a scope at the server, and its keys everywhere."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    deleted = await account_scopes.delete_scope(session.member, session.cloud, scope_id(session.member, request.ref))
    return ScopeDeletedResponse(who=client.who(session), objects=deleted.objects)


async def search(client: SyncClient, request: FindRequest) -> FoundResponse:
    """Ask the server about a searchable scope; by meaning, too, if this machine has the scope's model."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    scope = scope_id(session.member, request.ref)
    question = SearchRequest(text=request.text, limit=request.limit, type=request.type, topic=request.topic)
    found = await searching.search_scope(session.member, session.cloud, client.meaning, scope, question)
    return FoundResponse(
        who=client.who(session),
        scope=session.member.scopes.name(scope),
        mode=found.answer.mode,
        note=found.note,
        hits=found.answer.hits,
    )


_SUITES = {"sealed": Suite.SEALED, "searchable": Suite.OPEN}


def _mode(suite: int) -> str:
    return next(mode for mode, known in _SUITES.items() if known == suite)
