"""Signing up, logging in on another machine, and logging out."""

from __future__ import annotations

import asyncio

from scrubjay_shared.errors import (
    ConflictError,
    NotFoundError,
    RevokedError,
    ScrubjayError,
    UnavailableError,
)
from scrubjay_shared.wire import CheckSignUp
from scrubjay_sync import profile
from scrubjay_sync.account import admission, leaving, limited_devices, machine, registration
from scrubjay_sync.account.admission import Joining
from scrubjay_sync.account.limited_devices import Bundle
from scrubjay_sync.account.member import Member
from scrubjay_sync.api.identity import Nothing, Who, WhoResponse
from scrubjay_sync.api.login import (
    BundleRequest,
    JoiningResponse,
    JoinRequest,
    KdfResponse,
    LogInRequest,
    LogOutRequest,
    LogOutResponse,
    RecoverRequest,
    ServerRequest,
    SignUpCheckRequest,
    SignUpRequest,
)
from scrubjay_sync.keys.password import check_kdf
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.profile import Profile


async def prelogin(client: SyncClient, request: ServerRequest) -> KdfResponse:
    """Say how a name derives its key at a server, and whether one may sign up there."""
    cloud = client.cloud_at(request.origin)
    try:
        caps = await cloud.caps()
        found = await cloud.account.prelogin(request.username)
    finally:
        await cloud.aclose()
    check_kdf(found.kdf)
    before = await machine.account_before(client.store)
    return KdfResponse(origin=cloud.origin, kdf=found.kdf, registration=caps.registration, account_before=before.hex())


async def sign_up_check(client: SyncClient, request: SignUpCheckRequest) -> Nothing:
    """Have the server check a name and an invitation. Raises ConflictError, DeniedError; uses neither up.

    A sign-up before, of which only the answer was lost, is finished first: then this machine is logged in, and the
    ConflictError says so before another recovery code is shown.
    """
    await client.require_logged_out()
    cloud = client.cloud_at(request.origin)
    try:
        member = await registration.finished(client.machine(cloud))
        if member is not None:
            begun = Profile(
                origin=cloud.origin,
                account=member.account,
                username=request.username,
                device_name=member.device_name(member.device),
            )
            await client.begin(begun, member, client.cloud_at(request.origin))
            raise ConflictError(
                "the account was made by the sign-up before, whose answer was lost: this machine is logged in now",
                hint="the recovery code that was shown then is the account's: scrubjay recovery verify checks it",
            )
        await cloud.account.check_sign_up(CheckSignUp(username=request.username, invite=request.invite))
    except NotFoundError:
        pass  # an older server: `sign_up` finds out
    finally:
        await cloud.aclose()
    return Nothing()


async def sign_up(client: SyncClient, request: SignUpRequest) -> WhoResponse:
    """Make an account with this machine as its first device."""
    await client.require_logged_out()
    cloud = client.cloud_at(request.origin)
    try:
        member = await registration.sign_up(
            client.machine(cloud),
            username=request.username,
            auth_key=request.auth_key,
            kdf=request.kdf,
            recovery=RecoveryCode.parse(request.recovery),
            name=request.device_name,
            invite=request.invite,
            bring_all=request.bring_all,
        )
    except BaseException:
        await cloud.aclose()
        raise
    begun = Profile(
        origin=cloud.origin,
        account=member.account,
        username=request.username,
        device_name=request.device_name,
        kdf=request.kdf,
    )
    return WhoResponse(who=await client.begin(begun, member, cloud))


async def log_in(client: SyncClient, request: LogInRequest) -> JoiningResponse:
    """Prove the password and ask to be let in. `poll` or `recover` go on from there."""
    await client.require_logged_out()
    cloud = client.cloud_at(request.origin)
    try:
        joining = await admission.log_in(
            client.machine(cloud),
            username=request.username,
            auth_key=request.auth_key,
            name=request.device_name,
            code=request.code,
            recovery=RecoveryCode.parse(request.recovery) if request.recovery else None,
            bring_all=request.bring_all,
        )
    except BaseException:
        await cloud.aclose()
        raise
    if client.joining is not None:
        await client.joining[0].machine.cloud.aclose()
    pending = Profile(
        origin=cloud.origin,
        account=joining.state.account,
        username=request.username,
        device_name=request.device_name,
        kdf=request.kdf,
    )
    client.joining = joining, pending
    return _joining_response(joining)


async def poll(client: SyncClient, _: Nothing) -> JoiningResponse:
    """Look whether another device has answered this one, or has let it in."""
    joining = client.require_joining()[0]
    await joining.poll()
    return _joining_response(joining)


async def join(client: SyncClient, request: JoinRequest) -> WhoResponse:
    """Join the account that let this machine in, once its words are typed. Raises DeniedError for others."""
    joining, pending = client.require_joining()
    await joining.poll()
    return WhoResponse(who=await _let_in(client, pending, await joining.join(request.proof)))


async def recover(client: SyncClient, request: RecoverRequest) -> WhoResponse:
    """Let this machine in with the recovery code; `void_from` also cancels entries of the account log."""
    joining, pending = client.require_joining()
    code = RecoveryCode.parse(request.code)
    if request.void_from is None:
        member = await joining.recover(code)
    else:
        member = await joining.revert(code, request.void_from)
    return WhoResponse(who=await _let_in(client, profile.checked_recovery(pending, client.now()), member))


async def join_limited(client: SyncClient, request: BundleRequest) -> WhoResponse:
    """Make this machine the limited device of a bundle."""
    await client.require_logged_out()
    bundle = Bundle.parse(request.bundle)
    cloud = client.cloud_at(bundle.origin)
    try:
        member = await limited_devices.join_limited(client.machine(cloud), bundle, bring_all=request.bring_all)
    except BaseException:
        await cloud.aclose()
        raise
    name = member.device_name(member.device)
    begun = Profile(origin=cloud.origin, account=member.account, username="", device_name=name)
    return WhoResponse(who=await client.begin(begun, member, cloud))


async def log_out(client: SyncClient, request: LogOutRequest) -> LogOutResponse:
    """Leave the account; memories stay. Raises ConflictError for unconfirmed changes, unless forced.

    A login whose keys are lost, or whose device was revoked, can be left like any other.
    """
    found = await asyncio.to_thread(profile.required, client.data_dir, client.account)
    try:
        session = await client.session()
    except (NotFoundError, ScrubjayError):
        if not request.force:
            raise
        session = None
    who = client.who_of(found)
    status = None if session is None else await session.engine.status()
    unsent = 0 if status is None else status.pending_ops
    revoked = status is not None and status.error == RevokedError.code
    if unsent and not request.force:
        raise _unsent(unsent, revoked=revoked)
    await client.stop()
    machine = client.machine(client.cloud_at(found.origin) if session is None else session.cloud)
    notified = session is not None and not session.member.limited
    try:
        try:
            await leaving.log_out(machine, None if session is None else session.member)
        except RevokedError:
            notified, revoked = False, True
            await leaving.leave(client.store, client.vault, client.entropy)
        except UnavailableError as error:
            if not request.force:
                raise UnavailableError(
                    f"{error.message}: this machine is still logged in",
                    hint="try again when the server can be reached, or scrubjay logout --force: the account lists"
                    " this device then until another one revokes it",
                    retry_after=error.retry_after,
                ) from error
            notified = False
            await leaving.leave(client.store, client.vault, client.entropy)
        await asyncio.to_thread(profile.erase, client.data_dir)
    finally:
        await machine.cloud.aclose()
    return LogOutResponse(who=who, unsent=unsent, notified=notified, revoked=revoked)


def _unsent(count: int, *, revoked: bool) -> ConflictError:
    """Return what is said to a device that would leave with changes that nobody else has."""
    changes = f"{count} change{'s' * (count != 1)} of this device"
    if revoked:
        return ConflictError(
            f"this device was revoked, and {changes} never reached the server",
            hint="scrubjay logout --force leaves; what was not sent stays here, and goes with the next login",
        )
    return ConflictError(
        f"{changes} did not reach the server yet",
        hint="scrubjay sync sends them; scrubjay logout --force leaves them here for the next login",
    )


async def _let_in(client: SyncClient, pending: Profile, member: Member) -> Who:
    """Begin the session of a machine that was just let in."""
    joining, _ = client.require_joining()
    client.joining = None
    return await client.begin(pending, member, joining.machine.cloud)


def _joining_response(joining: Joining) -> JoiningResponse:
    return JoiningResponse(
        words=joining.words,
        device=joining.machine.device.hex(),
        expires=joining.pending.expires,
        added=joining.added,
    )
