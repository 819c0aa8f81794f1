"""How far what a device wrote counts when it is revoked: to the last place that is signed by it, opened here or not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from scrubjay.store.replication_state import Lane
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared.account import LaneEnd
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.errors import ConflictError
from scrubjay_sync.account.account_devices import Ends
from scrubjay_sync.engine import validation
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED, short
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC

log = logging.getLogger(__name__)


async def verified_ends(context: Context, device: bytes, *, cut: bool = False) -> Ends:
    """Return where the lanes of a device and its instances end, by signature and chain, as the server shows them.

    What this device cannot open counts all the same: others may, and a lane that ended before it would lose good
    history. Raises ConflictError when the server does not show all that it has shown; with `cut`, what is missing does
    not count.
    """
    heads = await context.cloud.heads()
    shown = {(head.scope, head.device): head.n for head in heads.heads}
    lanes = await context.store.read(lambda q: q.replication.lanes())
    ends: dict[LaneId, LaneEnd] = {}
    for lane_id in sorted(lanes.keys() | shown.keys()):
        known = context.member.state.device_of(lane_id[1])
        if known is None or known.id != device or lane_id[0] not in context.scopes:
            continue
        lane = lanes.get(lane_id) or context.empty_lane(*lane_id)
        # Where a lane ends that was not read back to its beginning is the server's word.
        end = await _verified_end(context, lane if lane.low <= 1 else context.empty_lane(*lane_id))
        wanted = max(lane.hw_n, shown.get(lane_id, 0))
        if end[0] < wanted and not cut:
            raise _behind(device, f"can follow lane {short(lane.device)} to place {end[0]} of {wanted}")
        if end[0]:
            ends[lane_id] = end
    return ends


async def _verified_end(context: Context, lane: Lane) -> LaneEnd:
    """Follow a lane from where it ends here, by links and signatures, as far as they hold."""
    n, tip = lane.n, lane.tip
    while page := await context.cloud.lane(lane.scope, lane.device, start=n + 1, limit=SYNC.pull_bytes):
        followed = await _followed(context, replace(lane, n=n, tip=tip), page)
        if followed[0] <= n:
            break
        n, tip = followed
    return n, tip


async def _followed(context: Context, lane: Lane, page: Sequence[Envelope]) -> LaneEnd:
    """Return the last place of a page to which a lane is whole and signed by its device."""
    n, tip = lane.n, lane.tip
    try:
        for envelope in page:
            validation.check_header(context, envelope)
            if envelope.lane != (lane.scope, lane.device):
                break
            if n == lane.n and envelope.header.n_from <= n < envelope.header.n_to:
                await validation.check_over(context, lane, envelope)  # a pack over the end of what we hold
            else:
                wire_envelope.check_run([envelope], n=n, prev=tip, keys=context.keys_of)
            n, tip = envelope.header.n_to, envelope.end
    except REFUSED as error:  # what is not signed, or does not follow, is not its device's
        log.warning("sync lane_end device=%s place=%d code=%s", short(lane.device), n, error.code)
    return n, tip


def _behind(device: bytes, what: str) -> ConflictError:
    return ConflictError(
        f"device {device.hex()[:8]} is not revoked yet: this device {what}",
        hint="run scrubjay sync, then this again; a quarter of an hour long it is refused all the same. If the server"
        " never shows the rest, --cut revokes it, and what is missing is lost",
    )
