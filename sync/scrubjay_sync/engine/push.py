"""Sending sealed objects, and acting on what the server says of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from scrubjay.store.replication_state import Lane
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared.envelope import Envelope
from scrubjay_shared.errors import (
    MalformedError,
    TooLargeError,
)
from scrubjay_shared.wire import Pushed
from scrubjay_sync import planning
from scrubjay_sync.engine import forks, outbox, refusals
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import subject
from scrubjay_sync.engine.results import Progress, RestartRoundError, Tally
from scrubjay_sync.planning import Outcome


async def push_all(context: Context, tally: Tally) -> None:
    """Seal and send until the server has confirmed everything that this device wrote."""
    while True:
        await send_sealed(context, tally)
        sealed = await context.store.write(partial(outbox.seal_next, context))
        if not sealed:
            return
        tally.ops_sent += sealed


async def send_sealed(context: Context, tally: Tally) -> None:
    """Send what is sealed and not confirmed."""
    for scope in context.scopes:
        while True:
            lane = await context.own_lane(scope)
            rows = await context.store.read(lambda q: q.replication.sealed(scope, context.device, after=lane.acked_n))
            if not rows:
                break
            batch = planning.batches(rows, context.push_bytes)[0]
            found = [
                wire_envelope.parse(data) for data in await context.store.read(lambda q: q.replication.objects(batch))
            ]
            results = await send_objects(context, context.cloud.push, found)
            await _take_results(context, lane, found, results, tally)
            context.on_progress(Progress(step="push", done=results[-1].n, total=lane.n))


async def send_objects(
    context: Context, send: Callable[[Sequence[Envelope]], Awaitable[tuple[Pushed, ...]]], found: Sequence[Envelope]
) -> tuple[Pushed, ...]:
    """Send objects, in halves when something on the way refuses the body's size, and remember what passed."""
    try:
        return await send(found)
    except TooLargeError:
        if len(found) == 1:
            raise
    half = len(found) // 2
    size = sum(len(one.data) for one in found[:half])
    context.push_bytes = max(size, 1)
    first = await send_objects(context, send, found[:half])
    if any(planning.outcome(one.status) is not Outcome.TAKEN for one in first):
        return first
    return first + await send_objects(context, send, found[half:])


async def _take_results(
    context: Context, lane: Lane, sent: Sequence[Envelope], results: Sequence[Pushed], tally: Tally
) -> None:
    """Take over what the server confirms of a lane of ours, and act on what it does not."""
    failed = next((one for one in results if planning.outcome(one.status) is not Outcome.TAKEN), None)
    last = failed or results[-1]
    echoed = (
        lane.tip
        if last.n == lane.n
        else await context.store.read(lambda q: q.replication.link(lane.scope, lane.device, last.n))
    )
    forked = last.n > lane.n or (last.n > 0 and echoed is not None and echoed != last.tip)
    if forked or (failed is not None and planning.outcome(failed.status) is Outcome.FORK):
        await forks.new_incarnation(context, tally)
        raise RestartRoundError
    if failed is None and last.n < results[-1].n_to:
        raise MalformedError(
            f"{context.cloud.origin} took objects, and then said that it does not have them",
            hint="tell its operator; nothing was counted as sent",
        )
    if last.n != lane.acked_n:
        if last.n < lane.acked_n:
            tally.repaired += lane.acked_n - last.n
            error = refusals.rolled_back(lane.device, lane.acked_n, last.n)
            await context.alarm(tally, error, subject(lane.scope, lane.device), holds=False)
        await context.put_lane(replace(lane, acked_n=last.n))
    if failed is None:
        return
    what = planning.outcome(failed.status)
    if what is Outcome.RESEAL:
        await context.member.refresh(context.cloud)
        epoch = context.member.scopes.epoch(lane.scope)
        if any(one.header.n_from == failed.n_from and one.header.epoch == epoch for one in sent):
            raise refusals.not_taken(failed)
        await context.store.write(lambda tx: outbox.reseal(context, tx, lane.scope, last.n))
    elif what is Outcome.STOP:
        raise refusals.not_taken(failed)
    elif last.n == lane.acked_n:  # a gap right behind what it has: it contradicts itself
        raise MalformedError(
            f"{context.cloud.origin} refuses the object that follows the last one it says it has",
            hint="tell its operator; nothing was counted as sent",
        )


async def skip_own_objects(context: Context) -> bool:
    """Move the cursor behind what this device has just sent, if nothing of another stands before it."""
    heads = await context.cloud.heads()
    lanes = await context.store.read(lambda q: q.replication.lanes())
    for head in heads.heads:
        lane = lanes.get((head.scope, head.device))
        if context.reads(head.scope) and (lane is None or (head.n, head.tip) != (lane.n, lane.tip)):
            return False
    await context.store.write(lambda tx: tx.replication.set_state(cursor=heads.cursor))
    return True
