"""Running a round, and saying where sync stands."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    RevokedError,
)
from scrubjay_sync import profile
from scrubjay_sync.api.identity import Nothing, WhoResponse
from scrubjay_sync.api.rounds import (
    Fault,
    LaneLine,
    ProgressResponse,
    QuietRequest,
    Renamed,
    SnapshotResponse,
    StatusResponse,
    SyncRequest,
    SyncResponse,
)
from scrubjay_sync.operations.client import SyncClient
from scrubjay_sync.policy import SYNC


async def sync(client: SyncClient, request: SyncRequest) -> SyncResponse:
    """Run one round."""
    done = await client.round(wait_s=min(max(request.wait_s, 0), SYNC.wait_s))
    session = await client.require_session()
    return SyncResponse(
        who=client.who(session),
        synced=done.synced,
        ops_sent=done.ops_sent,
        ops_received=done.ops_received,
        conflicts=done.conflicts,
        healed=done.repaired,
        packed=done.packed,
        reincarnated=done.new_incarnation,
        faults=tuple(Fault(code=one.code, message=one.message, hint=one.hint) for one in done.errors),
        renamed=await _renamed(client) if done.ops_received else (),
    )


async def snapshot(client: SyncClient, _: Nothing) -> SnapshotResponse:
    """Make a snapshot of what this device holds, for new machines to begin with."""
    session = await client.require_session()
    try:
        made = await session.rounds.snapshot()
    finally:
        client.progress = None
    return SnapshotResponse(who=client.who(session), ops=made.ops, chunks=made.chunks, sent=made.sent)


async def progress(client: SyncClient, _: Nothing) -> ProgressResponse:
    """Say how far the round under way is."""
    found = client.progress
    if found is None:
        return ProgressResponse(step="", done=0, total=0)
    return ProgressResponse(step=found.step, done=found.done, total=found.total)


async def status(client: SyncClient, _: Nothing) -> StatusResponse:
    """Say where sync stands. Needs no network."""
    session = await client.require_session()
    member, found = session.member, await session.engine.status()
    only = len([one for one in member.state.active() if one.full]) == 1 and not member.limited
    return StatusResponse(
        who=client.who(session),
        pending_ops=found.pending_ops,
        last_round=found.round_at,
        last_error=found.error,
        last_error_at=found.error_at,
        faults=tuple(Fault(code=one.code, message=one.message, hint=one.hint, at=one.at) for one in found.alarms),
        lanes=tuple(
            LaneLine(
                scope=member.scopes.name(lane.scope),
                device=member.device_name(lane.device),
                own=lane.own,
                n=lane.n,
                acked=lane.acked,
                missing=lane.missing,
            )
            for lane in found.lanes
        ),
        devices=len(member.state.active()),
        limited=member.limited,
        read_only=member.read_only,
        quiet=session.profile.quiet,
        code_unverified=only and session.profile.recovery_checked is None,
        clock_offset_ms=found.clock_offset_ms,
        clock_off=found.clock_off,
        quota_percent=found.quota_percent,
        verified_at=found.verified_at,
        quarantined=len(await client.store.read(lambda q: q.ops.quarantined())),
        unconfirmed_forgets=await client.store.read(
            lambda q: q.tombstones.unconfirmed(Millis(client.now() - SYNC.forget_told_ms), SYNC.forgets_looked_at)
        ),
        renamed=await _renamed(client),
        revoked=found.error == RevokedError.code,
        rotations_left=member.rotations_left,
    )


async def acknowledge(client: SyncClient, _: Nothing) -> WhoResponse:
    """Clear all alarms: a person has read them."""
    session = await client.require_session()
    await session.engine.acknowledge()
    return WhoResponse(who=client.who(session))


async def quiet(client: SyncClient, request: QuietRequest) -> WhoResponse:
    """Send in quarters of an hour only, or soon after each write again. A `sync` asked for is not held back."""
    session = await client.require_session()
    chosen = replace(session.profile, quiet=request.on)
    await asyncio.to_thread(profile.save, client.data_dir, chosen)
    who = client.who(session)
    await client.stop()  # the rounds begin anew, by the other rule
    await session.cloud.aclose()
    await client.session()
    return WhoResponse(who=who)


async def _renamed(client: SyncClient) -> tuple[Renamed, ...]:
    """Return the memories whose name another memory had first."""
    found = await client.store.read(lambda q: q.names.clashes())
    return tuple(Renamed(memory_id=memory_id, name=name, claimed=claimed) for name, claimed, memory_id in found)
