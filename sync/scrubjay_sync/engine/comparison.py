"""Comparing the server's heads with the lanes of this store, at the start of a round."""

from __future__ import annotations

import logging
from dataclasses import replace

from scrubjay.store.replication_state import Lane, SyncState
from scrubjay.store.transaction import Transaction
from scrubjay_shared.wire import Heads
from scrubjay_sync import planning
from scrubjay_sync.engine import forks, refusals, repair
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.results import RestartRoundError, Tally
from scrubjay_sync.planning import Verdict

log = logging.getLogger(__name__)


async def adopt_restored_server(context: Context, state: SyncState, heads: Heads) -> SyncState:
    """Go on from a server that was restored: its cursor is of a place in another order, so lanes are read by place.

    Everything up to the heads' own cursor is then read lane by lane (`_settled`).
    """
    log.info("sync server_changed generation=%s", context.cloud.generation)

    def work(tx: Transaction) -> None:
        tx.replication.set_state(
            cursor=heads.cursor,
            store_id=context.cloud.store_id or "",
            generation=context.cloud.generation or 0,
        )

    await context.store.write(work)
    return replace(
        state,
        cursor=heads.cursor,
        store_id=context.cloud.store_id or "",
        generation=context.cloud.generation or 0,
    )


async def compare_lanes(context: Context, heads: Heads, tally: Tally) -> None:
    """Compare every lane with the server's, and deal with what should not be."""
    there = {(head.scope, head.device): head for head in heads.heads}
    lanes = await context.store.read(lambda q: q.replication.lanes())
    own_ids = {(scope, context.device) for scope in context.scopes}
    lost: list[tuple[Lane, int]] = []
    for lane_id in sorted(lanes.keys() | (own_ids & there.keys())):
        scope, device = lane_id
        if scope not in context.scopes:
            continue
        head = there.get(lane_id)
        lane = lanes.get(lane_id) or context.empty_lane(scope, device)
        n = head.n if head is not None else 0
        if n >= context.counts_to(scope, device):
            continue  # its device was revoked, and the server has all of it that counts
        known = await context.store.read(lambda q: q.replication.link(scope, device, n)) if n < lane.n else None
        verdict = planning.compare(lane, head, own=device == context.device, link_there=known)
        if verdict is Verdict.FORK:
            await forks.new_incarnation(context, tally)
            raise RestartRoundError
        if verdict is Verdict.SPLIT:
            await context.refuse(tally, lane_id, refusals.split(device, n))
        elif verdict is Verdict.LOST:
            lost.append((lane, n))
        elif device == context.device and n > lane.acked_n:  # an answer was lost: it has what we did not know of
            await context.put_lane(replace(lane, acked_n=n))
        if head is not None and verdict in {Verdict.READ, Verdict.SAME} and n < lane.hw_n:
            await context.refuse(tally, lane_id, refusals.rolled_back(device, lane.hw_n, n))
    if lost:
        await repair.repair_server(context, lost, tally)
