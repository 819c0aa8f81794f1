"""Where replication stands, from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scrubjay.store.replication_state import Alarm, SyncState
from scrubjay_shared.clock import Millis
from scrubjay_sync.engine.context import Context
from scrubjay_sync.policy import SYNC


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane: `n` held here, `acked` confirmed by the server (own lanes), `missing` places not read yet."""

    scope: bytes
    device: bytes
    own: bool
    n: int
    acked: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What `scrubjay sync status` shows. Times in UTC milliseconds; `pending_ops` wait to be confirmed.

    `clock_offset_ms` is what to add to this device's clock to get the server's; `clock_off` says that it is too much.
    """

    account: bytes
    origin: str
    device: bytes
    sign_key: bytes
    pending_ops: int
    lanes: tuple[LaneStatus, ...]
    round_at: Millis | None
    error_at: Millis | None
    error: str | None
    alarms: tuple[Alarm, ...]
    seen: Mapping[bytes, Millis]
    clock_offset_ms: int | None
    clock_off: bool
    quota_percent: int
    verified_at: Millis | None


async def read_status(context: Context) -> Status:
    """Return where replication stands, from what is stored. Needs no network."""
    state = await context.store.read(lambda q: q.replication.state()) or SyncState(account=context.member.account)
    lanes = await context.store.read(lambda q: q.replication.lanes())
    waiting = context.store.last_seq - state.sealed_seq
    told = []
    for (scope, device), lane in sorted(lanes.items()):
        own = device == context.device
        if own:
            rows = await context.store.read(lambda q: q.replication.sealed(scope, device, after=lane.acked_n))
            waiting += sum(row.seq_high - row.seq_low + 1 for row in rows if row.seq_high)
        told.append(
            LaneStatus(
                scope=scope,
                device=device,
                own=own,
                n=lane.n,
                acked=lane.acked_n if own else lane.n,
                missing=lane.low - 1 + lane.hw_n - lane.n,
            )
        )
    offset = context.cloud.offset_ms
    device_state = context.member.state.device_of(context.device)
    return Status(
        account=context.member.account,
        origin=context.cloud.origin,
        device=context.device,
        sign_key=device_state.sign_pub if device_state is not None else b"",
        pending_ops=waiting,
        lanes=tuple(told),
        round_at=Millis(state.round_at) if state.round_at is not None else None,
        error_at=Millis(state.error_at) if state.error_at is not None else None,
        error=state.error,
        alarms=tuple(await context.store.read(lambda q: q.replication.alarms())),
        seen=await context.store.read(lambda q: q.replication.seen()),
        clock_offset_ms=offset,
        clock_off=offset is not None and abs(offset) > SYNC.clock_off_ms,
        quota_percent=context.cloud.quota_percent,
        verified_at=Millis(state.verified_at) if state.verified_at else None,
    )
