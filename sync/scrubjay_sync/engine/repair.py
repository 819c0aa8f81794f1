"""Giving a server back what it has lost."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.replication_state import Lane
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared.errors import (
    RolledBackError,
)
from scrubjay_sync import planning
from scrubjay_sync.engine import push, refusals
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import short, subject
from scrubjay_sync.engine.results import Progress, Tally
from scrubjay_sync.planning import Outcome


async def repair_server(context: Context, lost: Sequence[tuple[Lane, int]], tally: Tally) -> None:
    """Give the server back what it lost of lanes that we hold, as it was first sent."""
    for lane, n in lost:
        end = min(lane.n, context.counts_to(lane.scope, lane.device))
        kept = await context.store.read(lambda q: q.replication.sealed(lane.scope, lane.device, after=n))
        rows = planning.repairs([row for row in kept if row.n_to <= end], n)
        left = "" if rows and rows[-1].n_to >= end else "; the rest is not kept here"
        error = RolledBackError(
            f"the server had lost places {n + 1} to {end} of lane {short(lane.device)};"
            f" this device gives {len(rows)} objects back{left}",
            hint="the server was restored from a backup: its operator should know",
        )
        # Before anything is given back: after a crash the server has it all, and nobody would be told.
        await context.alarm(tally, error, subject(lane.scope, lane.device), holds=False)
        given = 0
        for batch in planning.batches(rows, context.push_bytes):
            found = [
                wire_envelope.parse(data) for data in await context.store.read(lambda q: q.replication.objects(batch))
            ]
            if not found:
                continue
            for result in await push.send_objects(context, context.cloud.repair, found):
                if planning.outcome(result.status) is not Outcome.TAKEN:
                    await context.refuse(tally, (lane.scope, lane.device), refusals.not_taken_back(lane.device, result))
                    break
                given += 1
            context.on_progress(Progress(step="repair", done=given, total=len(rows)))
        tally.repaired += given
