"""The recovery code, the keys, the password and the second factor of the account; deleting it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from scrubjay_shared.errors import (
    ScrubjayError,
)
from scrubjay_shared.wire import Login, SetName, SetPassword, SetTotp
from scrubjay_sync import profile
from scrubjay_sync.account import leaving, recovery, reversal, rotation
from scrubjay_sync.api.account import (
    AccountRenameRequest,
    DeletedResponse,
    DeleteRequest,
    PasswordRequest,
    ProofRequest,
    RecoveryCheckRequest,
    RecoveryReplaceRequest,
    RecoveryResponse,
    RecoveryVoidRequest,
    TotpRequest,
)
from scrubjay_sync.api.identity import Nothing, WhoResponse
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.operations.client import SyncClient


async def check_recovery(client: SyncClient, request: RecoveryCheckRequest) -> RecoveryResponse:
    """Say whether a code that a person typed is the account's, and note that they have it."""
    session = await client.require_session()
    valid = recovery.is_recovery(session.member.state, request.rsk)
    if valid:
        await client.save_profile(profile.checked_recovery(session.profile, client.now()))
    return RecoveryResponse(who=client.who(await client.require_session()), valid=valid)


async def replace_recovery(client: SyncClient, request: RecoveryReplaceRequest) -> RecoveryResponse:
    """Put a new recovery code in the place of the old, and replace the keys that the old one opened."""
    session = await client.require_session()
    await recovery.replace_recovery(
        session.member,
        session.cloud,
        RecoveryCode.parse(request.new),
        old=RecoveryCode.parse(request.old) if request.old else None,
        now=client.now,
        entropy=client.entropy,
    )
    await client.save_profile(profile.checked_recovery(session.profile, client.now()))
    waiting = session.member.state.waiting_recovery
    return RecoveryResponse(
        who=client.who(await client.require_session()), valid=True, from_at=None if waiting is None else waiting[2]
    )


async def void(client: SyncClient, request: RecoveryVoidRequest) -> WhoResponse:
    """Undo every change of the account from an entry on. See `reversal.void`."""
    session = await client.require_session()
    await reversal.void(
        session.member, session.cloud, RecoveryCode.parse(request.code), request.start, entropy=client.entropy
    )
    await client.save_profile(profile.checked_recovery(session.profile, client.now()))
    return WhoResponse(who=client.who(await client.require_session()))


async def rotate(client: SyncClient, _: Nothing) -> WhoResponse:
    """Replace the root key and every scope's key for what is written from now on."""
    session = await client.require_session()
    await rotation.rotate(session.member, session.cloud, entropy=client.entropy)
    return WhoResponse(who=client.who(session))


async def prove(client: SyncClient, request: ProofRequest) -> WhoResponse:
    """Say that the password is right: somebody who knows it is at this machine. Raises CredentialsError."""
    session = await client.require_session()
    await session.cloud.account.login(
        Login(username=session.profile.username, auth_key=request.auth_key, code=request.code)
    )
    return WhoResponse(who=client.who(session))


async def password(client: SyncClient, request: PasswordRequest) -> WhoResponse:
    """Change the password. No data is touched."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    await session.cloud.account.set_password(
        SetPassword(auth_key=request.auth_key, new_kdf=request.new_kdf, new_auth_key=request.new_auth_key)
    )
    await client.save_profile(replace(session.profile, kdf=request.new_kdf))
    return WhoResponse(who=client.who(await client.require_session()))


async def rename(client: SyncClient, request: AccountRenameRequest) -> WhoResponse:
    """Give the account another user name. No data is touched; the other devices are told with their next token."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    named = await session.cloud.account.set_name(SetName(auth_key=request.auth_key, username=request.username))
    await client.save_profile(replace(session.profile, username=named.username))
    return WhoResponse(who=client.who(await client.require_session()))


async def totp(client: SyncClient, request: TotpRequest) -> WhoResponse:
    """Set or take away the second factor."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    await session.cloud.account.set_totp(SetTotp(auth_key=request.auth_key, secret=request.secret, code=request.code))
    return WhoResponse(who=client.who(session))


async def delete_account(client: SyncClient, request: DeleteRequest) -> DeletedResponse:
    """Delete the account at the server, and leave it. Memories stay here."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    who = client.who(session)
    await client.stop()
    try:
        deleted = await leaving.delete_account(client.machine(session.cloud), request.auth_key)
    except ScrubjayError:
        client.start(session.profile, session.member, session.cloud)
        raise
    await asyncio.to_thread(profile.erase, client.data_dir)
    await session.cloud.aclose()
    return DeletedResponse(who=who, objects=deleted.objects, left=deleted.left)
