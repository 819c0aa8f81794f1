"""Checkpoints: what a device has seen, published for the others to compare with what the server shows them."""

from __future__ import annotations

from dataclasses import replace

from scrubjay.store.replication_state import Lane
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared.errors import (
    SplitError,
)
from scrubjay_sync import packing
from scrubjay_sync.engine import outbox, push
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import VERIFY, short, subject
from scrubjay_sync.engine.results import Tally
from scrubjay_sync.packing import Checkpoint
from scrubjay_sync.policy import SYNC


async def compare(context: Context, device: bytes, checkpoint: Checkpoint, tally: Tally) -> None:
    """Compare what another device has seen with what the server showed us."""
    lanes = await context.store.read(lambda q: q.replication.lanes())
    unseen: list[Lane] = []
    for (scope, owner), (n, tip) in sorted(checkpoint.heads.items()):
        lane = lanes.get((scope, owner))
        if not context.reads(scope):
            continue
        known = await context.store.read(lambda q: q.replication.link(scope, owner, n))
        if known is not None and known != tip:
            error = SplitError(
                f"device {short(device)} was shown another lane of {short(owner)} than this one",
                hint="the server shows different histories: " + VERIFY,
            )
            await context.alarm(tally, error, subject(scope, owner))
        elif n > (lane.hw_n if lane is not None else 0) and owner != context.device:
            # It has seen more than the server shows us; if that stays so, `_settled` says it.
            unseen.append(replace(lane or context.empty_lane(scope, owner), hw_n=n, hw_tip=tip))
    for lane in unseen:
        await context.put_lane(lane)
    if checkpoint.log_seq > context.member.state.seq:
        await context.member.refresh(context.cloud)
    entry = await context.store.read(lambda q: q.replication.account_entry(checkpoint.log_seq))
    before = entry is None and checkpoint.log_seq <= context.member.state.seq  # from before this device began to read
    if not before and (entry is None or account_log.read(entry).hash != checkpoint.log_head):
        error = SplitError(
            f"device {short(device)} was shown another account log than this one",
            hint="the server shows different histories: " + VERIFY,
        )
        await context.alarm(tally, error, "log")


async def publish(context: Context, tally: Tally) -> None:
    """Tell the other devices, once a day and once in a thousand objects, what this one has seen."""
    state = await context.store.read(lambda q: q.replication.state())
    assert state is not None  # noqa: S101 - a round begins with it
    home = context.member.home
    if home not in context.scopes:
        return
    lane = await context.own_lane(home)
    fresh = 0 <= context.now() - state.beacon_at < SYNC.checkpoint_ms
    if state.beacon_at and fresh and lane.n - state.beacon_n < SYNC.checkpoint_places:
        return
    lanes = await context.store.read(lambda q: q.replication.lanes())
    seen = Checkpoint(
        at=context.now(),
        heads={lane_id: (one.n, one.tip) for lane_id, one in lanes.items() if one.n and one.low <= one.n},
        log_seq=context.member.state.seq,
        log_head=context.member.state.head,
    )

    def work(tx: Transaction) -> None:
        place = outbox.next_seal_context(context, tx, home)
        outbox.keep_own(context, tx, home, [packing.checkpoint(place, seen, context.signer)])
        tx.replication.set_state(beacon_at=seen.at, beacon_n=place.n)

    await context.store.write(work)
    await push.send_sealed(context, tally)
