"""Listing, adding, renaming and revoking the devices of the account."""

from __future__ import annotations

from dataclasses import replace

from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.wire import Enrolment
from scrubjay_sync.account import account_devices, limited_devices, pairing
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
)
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.references import RefRequest, checked_name, not_one_asking
from scrubjay_sync.operations.client import Session, SyncClient
from scrubjay_sync.operations.ids import device_id, scope_id


async def list_devices(client: SyncClient, _: Nothing) -> DevicesResponse:
    """List the devices of the account, and the machines that ask to be let in."""
    session = await client.require_session()
    member = session.member
    await member.refresh(session.cloud)
    seen = {
        one: at
        for one in member.state.devices
        if (at := await client.store.read(lambda q: q.replication.active(one))) is not None
    }
    state = await client.store.read(lambda q: q.replication.state())
    if state is not None and state.round_at is not None:  # nobody sends word that there was nothing to send
        seen[member.device] = Millis(max(state.round_at, seen.get(member.device, 0)))
    asking = () if member.limited else (await session.cloud.account.enrolments()).enrolments
    return DevicesResponse(
        who=client.who(session),
        devices=tuple(
            DeviceLine(
                id=one.id.hex(),
                name=member.device_name(one.id),
                this=one.id == member.device,
                revoked=one.revoked,
                limited=not one.full,
                read_only=one.read_only,
                scopes=tuple(member.scopes.name(scope) for scope in one.scopes or ()),
                seen=seen.get(one.id),
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


async def device_names(client: SyncClient, _: Nothing) -> NamesResponse:
    """Say what the devices of the account are called. Needs no network."""
    member = (await client.require_session()).member
    return NamesResponse(names={one.hex(): member.device_name(one) for one in member.state.devices})


async def answer(client: SyncClient, request: AnswerRequest) -> AnswerResponse:
    """Answer a machine that asks to be let in, so that it shows its words, and say whether it does by now."""
    session = await client.require_session()
    asking = await pairing.answer(session.member, session.cloud, await _one_asking(session, request.ref))
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


async def revoke(client: SyncClient, request: RefRequest) -> DevicesResponse:
    """Shut a device out, and replace every key that it knew. What it wrote up to now counts."""
    session = await client.require_session()
    await session.member.refresh(session.cloud)
    device = device_id(session.member, request.ref)
    if device != session.member.device:
        # First: what it pushed after our round would count for those who pulled it, and be missing here for ever.
        await session.cloud.account.delete_device(device)
    await client.round()  # what it has pushed is then held and verified here
    await account_devices.revoke(
        session.member,
        session.cloud,
        device,
        ends=await account_devices.ends_of(client.store, device),
        entropy=client.entropy,
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
