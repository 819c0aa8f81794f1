"""Checkpoints: what a device has seen, published for the others to compare with what the server shows them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scrubjay.store.replication_state import Lane
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    SplitError,
)
from scrubjay_sync import packing
from scrubjay_sync.engine import outbox, push
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import VERIFY, short, subject
from scrubjay_sync.engine.results import Tally
from scrubjay_sync.packing import Checkpoint
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC


async def compare(context: Context, device: bytes, checkpoint: Checkpoint, tally: Tally) -> None:
    """Compare what another device has seen with what the server showed us.

    What a limited device says counts for its own scopes only, and no further than we have read: it could hold up
    everybody with places that nobody ever wrote.
    """
    author = context.member.state.device_of(device)
    given = None if author is None else author.scopes
    why = "the server shows different histories" if given is None else "the server, or that limited device, lies"
    lanes = await context.store.read(lambda q: q.replication.lanes())
    unseen: list[Lane] = []
    for (scope, owner), (n, tip) in sorted(checkpoint.heads.items()):
        lane = lanes.get((scope, owner))
        if not context.reads(scope) or (given is not None and scope not in given):
            continue
        known = await context.store.read(lambda q: q.replication.link(scope, owner, n))
        if known is not None and known != tip:
            error = SplitError(
                f"device {short(device)} was shown another lane of {short(owner)} than this one",
                hint=f"{why}: {VERIFY}",
            )
            await context.alarm(tally, error, subject(scope, owner))
        elif given is None and n > (lane.hw_n if lane is not None else 0) and owner != context.device:
            # It has seen more than the server shows us; if that stays so, `_settled` says it.
            unseen.append(replace(lane or context.empty_lane(scope, owner), hw_n=n, hw_tip=tip))
    for lane in unseen:
        await context.put_lane(lane)
    if checkpoint.log_seq > context.member.state.seq:
        await context.member.refresh(context.cloud)
    entry = await context.store.read(lambda q: q.replication.account_entry(checkpoint.log_seq))
    # Nothing to hold against it: from before this device began to read, or what a limited device says is still to come.
    unread = entry is None and (given is not None or checkpoint.log_seq <= context.member.state.seq)
    if not unread and (entry is None or account_log.read(entry).hash != checkpoint.log_head):
        error = SplitError(
            f"device {short(device)} was shown another account log than this one",
            hint=f"{why}: {VERIFY}",
        )
        await context.alarm(tally, error, "log")


async def publish(context: Context, tally: Tally) -> None:
    """Tell the other devices, once a day and once in a thousand objects, what this one has seen."""
    state = await context.store.read(lambda q: q.replication.state())
    assert state is not None  # noqa: S101 - a round begins with it
    await context.store.write(lambda tx: tx.receipts.wait_for(one.id.hex() for one in context.member.state.active()))
    scopes = audiences(context.member.state, context.member.home, context.scopes)
    if not scopes:
        return
    lane = await context.own_lane(scopes[0])
    if context.member.limited and not state.beacon_at:
        # Most live for minutes, in a pipeline: what they have seen is in the next one's first round again.
        await context.store.write(lambda tx: tx.replication.set_state(beacon_at=context.now(), beacon_n=lane.n))
        return
    fresh = 0 <= context.now() - state.beacon_at < SYNC.checkpoint_ms
    if state.beacon_at and fresh and lane.n - state.beacon_n < SYNC.checkpoint_places:
        return
    lanes = await context.store.read(lambda q: q.replication.lanes())
    held = {lane_id: (one.n, one.tip) for lane_id, one in lanes.items() if one.n and one.low <= one.n}
    at = context.now()

    def work(tx: Transaction) -> None:
        for scope in reversed(scopes):  # the first one's place last: it counts until the next time
            heads = held if scope == context.member.home else {one: end for one, end in held.items() if one[0] == scope}
            seen = Checkpoint(
                at=at,
                heads=some_of(heads, context.member.state, at),
                log_seq=context.member.state.seq,
                log_head=context.member.state.head,
            )
            place = outbox.next_seal_context(context, tx, scope)
            outbox.keep_own(context, tx, scope, [packing.checkpoint(place, seen, context.signer)])
            tx.replication.set_state(beacon_at=at, beacon_n=place.n)

    await context.store.write(work)
    await push.send_sealed(context, tally)


def audiences(state: AccountState, home: bytes, mine: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the scopes in which a device that takes part in `mine` tells what it has seen.

    Home, where it has that, and each sealed one that is given to a limited device without home; else all of its own.
    """
    sealed = [scope for scope in mine if state.scopes[scope].suite == Suite.SEALED]
    if home not in mine:
        return tuple(sealed)
    without = {
        scope for one in state.active() if not one.full and home not in (one.scopes or ()) for scope in one.scopes or ()
    }
    return (home, *(scope for scope in sealed if scope in without))


def some_of(
    heads: Mapping[LaneId, tuple[int, bytes]], state: AccountState, at: Millis
) -> dict[LaneId, tuple[int, bytes]]:
    """Return as many lanes as one checkpoint has room for: devices' own, then instances', others each time."""

    def order(lane_id: LaneId) -> tuple[bool, bytes]:
        return lane_id[1] not in state.devices, hashlib.sha256(at.to_bytes(8, "big") + b"".join(lane_id)).digest()

    return {one: heads[one] for one in sorted(heads, key=order)[: SYNC.checkpoint_lanes]}
