"""Listing, adding, renaming and revoking the devices of the account."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from scrubjay.store.queries.queries import Queries
from scrubjay_shared.account import CODE_AUTHOR
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    ConflictError,
    InvalidError,
    UnavailableError,
)
from scrubjay_shared.wire import Enrolment
from scrubjay_sync.account import account_devices, limited_devices, pairing, shut_out
from scrubjay_sync.account.member import Member
from scrubjay_sync.api.devices import (
    AnswerRequest,
    AnswerResponse,
    ApproveRequest,
    ApproveResponse,
    AskingLine,
    BundleResponse,
    DeviceCreateRequest,
    DeviceLine,
    DevicesResponse,
    NamesResponse,
    RenameRequest,
    RevokeRequest,
)
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.references import checked_name, not_one_asking
from scrubjay_sync.engine import revocation
from scrubjay_sync.operations.client import Session, SyncClient
from scrubjay_sync.operations.ids import device_id, scope_id


async def list_devices(client: SyncClient, _: Nothing) -> DevicesResponse:
    """List the devices of the account, and the machines that ask to be let in."""
    session = await client.require_session()
    member = session.member
    await member.refresh(session.cloud)
    seen = await _last_seen(client, member)
    state = await client.store.read(lambda q: q.replication.state())
    if state is not None and state.round_at is not None:  # nobody sends word that there was nothing to send
        own = member.device if member.certified is None else member.certified.id
        seen[own] = Millis(max(state.round_at, seen.get(own, 0)))
    asking = () if member.limited else (await session.cloud.account.enrolments()).enrolments
    return DevicesResponse(
        who=client.who(session),
        devices=tuple(
            DeviceLine(
                id=one.id.hex(),
                name=member.device_name(one.id),
                this=one == member.certified,
                revoked=one.revoked,
                limited=not one.full,
                read_only=one.read_only,
                scopes=tuple(member.scopes.name(scope) for scope in one.scopes or ()),
                seen=seen.get(one.id),
                added_by="" if one.added_by == CODE_AUTHOR else one.added_by.hex(),
            )
            for one in sorted(member.state.devices.values(), key=lambda one: one.added)
        ),
        asking=tuple(
            AskingLine(
                id=one.id.hex(),
                device=one.device.hex(),
                answered=bool(one.answer),
                expires=one.expires,
            )
            for one in asking
            if not one.approved and one.device not in member.state.devices
        ),
    )


async def _last_seen(client: SyncClient, member: Member) -> dict[bytes, Millis]:
    """Return when each device, or one of its instances, was last heard of."""
    seen: dict[bytes, Millis] = {}
    for writer in await _writers(client, member):
        known = member.state.device_of(writer)
        at = await client.store.read(partial(_active, writer))
        if known is not None and at is not None:
            seen[known.id] = max(at, seen.get(known.id, at))
    return seen


def _active(writer: bytes, queries: Queries) -> Millis | None:
    return queries.replication.active(writer)


async def _writers(client: SyncClient, member: Member) -> set[bytes]:
    """Return the devices of the account, and those of their instances that have written something."""
    return {writer for _, writer in await client.store.read(lambda q: q.replication.lanes())} | set(
        member.state.devices
    )


async def device_names(client: SyncClient, _: Nothing) -> NamesResponse:
    """Say what the devices of the account are called. Needs no network."""
    member = (await client.require_session()).member
    known = await _writers(client, member)
    return NamesResponse(names={one.hex(): member.device_name(one) for one in known})


async def answer(client: SyncClient, request: AnswerRequest) -> AnswerResponse:
    """Answer a machine that asks to be let in, so that it shows its words, and say whether it does by now."""
    session = await client.require_session()
    one = await _one_asking(session, request.ref)
    asking = await pairing.answer(session.member, session.cloud, one, anew=not request.again)
    return AnswerResponse(
        who=client.who(session), id=asking.id.hex(), device=asking.device.hex(), shows=bool(asking.reveal)
    )


async def approve(client: SyncClient, request: ApproveRequest) -> ApproveResponse:
    """Let in the machine that shows these words. Raises DeniedError when they are others."""
    session = await client.require_session()
    asking = await _one_asking(session, request.ref)
    proof = await pairing.approve(session.member, session.cloud, asking, request.words)
    return ApproveResponse(who=client.who(session), device=asking.device.hex(), proof=proof)


async def _one_asking(session: Session, ref: str) -> Enrolment:
    """Return the machine that asks whose request begins so, or the only one. Raises NotFoundError, InvalidError."""
    await session.member.refresh(session.cloud)
    fitting = [
        one
        for one in (await session.cloud.account.enrolments()).enrolments
        if not one.approved and one.device not in session.member.state.devices and ref in {"", one.id.hex()[: len(ref)]}
    ]
    if len(fitting) != 1:
        raise not_one_asking(len(fitting))
    return fitting[0]


async def revoke(client: SyncClient, request: RevokeRequest) -> DevicesResponse:
    """Shut a device out, and replace every key that it knew. What it wrote up to now counts.

    Raises ConflictError while nothing is said about a device that it has let in, and when not all of what it wrote can
    be followed here (`cut` does it all the same). Whatever ends this half-way: the server refuses the device for a
    quarter of an hour, and calling it again finishes it.
    """
    session = await client.require_session()
    member = session.member
    await member.refresh(session.cloud)
    device = device_id(member, request.ref)
    also = tuple(device_id(member, one) for one in request.also)
    said = {*also, *(device_id(member, one) for one in request.keep), member.device}
    for one in account_devices.let_in_by(member.state, device):
        if one.id not in said:
            raise ConflictError(
                f"{member.device_name(device)} has let in {member.device_name(one.id)} ({one.id.hex()[:8]})",
                hint=f"say what to do about it: --also {one.id.hex()[:8]} shuts it out too, --keep {one.id.hex()[:8]}"
                " leaves it",
            )
    if member.device not in {device, *also}:
        for one_id in (device, *also):
            # First: what it pushed after our round would count for those who pulled it, and be missing here for ever.
            await shut_out.refuse(session.cloud, one_id)
    try:
        await client.round()  # what they have pushed is then held and verified here
    except UnavailableError:
        # Whom another device keeps out may still read the log and the lanes, and revoke: what follows does without.
        if not await shut_out.is_refused(member, session.cloud, client.now()):
            raise
    context = session.engine.context
    ends = {one_id: await revocation.verified_ends(context, one_id, cut=request.cut) for one_id in (device, *also)}
    await account_devices.revoke(
        member,
        session.cloud,
        device,
        ends=ends.pop(device),
        entropy=client.entropy,
        also=ends,
    )
    return await list_devices(client, Nothing())


async def rename(client: SyncClient, request: RenameRequest) -> DevicesResponse:
    """Give a device a name."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    device, name = device_id(session.member, request.ref), checked_name(request.name)
    await account_devices.rename_device(session.member, session.cloud, device, name)
    if device == session.member.device:
        await client.save_profile(replace(session.profile, device_name=name))
    return await list_devices(client, Nothing())


async def create_device(client: SyncClient, request: DeviceCreateRequest) -> BundleResponse:
    """Make a limited device for a machine without a person. What it needs is shown once."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    if not request.scopes:
        raise InvalidError("a limited device needs at least one scope", hint="name it with --scope")
    bundle = await limited_devices.create_limited(
        session.member,
        session.cloud,
        name=checked_name(request.name),
        scopes=[scope_id(session.member, ref) for ref in request.scopes],
        read_only=request.read_only,
        entropy=client.entropy,
    )
    return BundleResponse(who=client.who(session), device=bundle.device.hex(), bundle=bundle.text)
