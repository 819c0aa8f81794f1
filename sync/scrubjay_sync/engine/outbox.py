"""Sealing what this device wrote into objects, and keeping objects as they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from scrubjay.store.replication_state import Sealed
from scrubjay.store.transaction import Transaction
from scrubjay_shared import envelope as wire_envelope
from scrubjay_sync import packing, planning
from scrubjay_sync.engine.context import Context
from scrubjay_sync.packing import Opened, SealContext
from scrubjay_sync.policy import SYNC


def seal_next(context: Context, tx: Transaction) -> int:
    """Seal the next ops into objects that continue our lanes. Returns how many ops."""
    state = tx.queries.replication.state()
    assert state is not None  # noqa: S101 - a round begins with it
    outgoing = tx.queries.ops.unsent(context.store.device, state.sealed_seq, SYNC.seal_ops)
    if not outgoing:
        return 0
    bindings = {one.project: one for one in tx.queries.replication.bindings()}
    placed = tx.queries.replication.placed({one.entity for one in outgoing})
    scopes = {project: one.scope for project, one in bindings.items()}
    plan = partial(
        planning.routed,
        outgoing,
        home=context.default_scope,
        placed=placed,
        bindings=bindings,
        first_op=lambda entity: tx.queries.ops.first_op(entity, context.store.device),
        teams=context.member.scopes.teams,
    )
    routes, new = plan()
    if not context.member.limited and (away := tx.queries.ops.away(outgoing, placed | new, scopes)):
        routes, new = plan(away=away)
        tx.replication.note_sent_home(context.device, away)
    tx.replication.place(new)
    for scope, entries in sorted(routes.items()):
        if scope not in context.scopes:
            continue  # a team's go there; else of a scope that this limited device was never given, or has no more
        for run in planning.cut(entries):
            keep_own(context, tx, scope, packing.segments(next_seal_context(context, tx, scope), run, context.signer))
    last = outgoing[-1].seq
    tx.replication.set_state(sealed_seq=last)
    # What was erased before it was sealed is in no object.
    tx.replication.settle_erased(context.device, [one.seq for one in outgoing])
    return len(outgoing)


def next_seal_context(context: Context, tx: Transaction, scope: bytes) -> SealContext:
    """Return where the next object of our lane of a scope goes, and what it is sealed with."""
    lane = tx.queries.replication.lane(scope, context.device) or context.empty_lane(scope, context.device)
    epoch = context.member.scopes.epoch(scope)
    return SealContext(
        account=context.member.account,
        scope=scope,
        device=context.device,
        n=lane.n + 1,
        prev=lane.tip,
        suite=int(context.member.scopes.suite(scope)),
        epoch=epoch,
        key=context.member.scopes.key(scope, epoch),
    )


def keep_own(context: Context, tx: Transaction, scope: bytes, made: Sequence[Opened]) -> None:
    """Keep objects of our own lane, and move the lane's end behind them."""
    keep_objects(tx, made)
    lane = tx.queries.replication.lane(scope, context.device) or context.empty_lane(scope, context.device)
    n, tip = made[-1].envelope.header.n_to, made[-1].envelope.end
    tx.replication.put_lane(replace(lane, n=n, tip=tip, hw_n=n, hw_tip=tip))


def keep_objects(tx: Transaction, found: Sequence[Opened]) -> None:
    """Keep objects as they are sent, and the links of their ends."""
    for one in found:
        header, (low, high) = one.envelope.header, packing.seqs([one])
        data = one.envelope.data
        tx.replication.keep_sealed(
            Sealed(
                scope=header.scope,
                device=header.device,
                n_from=header.n_from,
                n_to=header.n_to,
                seq_low=low,
                seq_high=high,
                size=len(data),
                tip=one.envelope.end,
            ),
            data,
        )
        tx.replication.keep_link(header.scope, header.device, header.n_to, one.envelope.end)


def reseal(context: Context, tx: Transaction, scope: bytes, after: int) -> None:
    """Seal what the server has not taken again, under the epoch of now: the same ops at the same places."""
    before = [
        packing.opened(envelope, context.key(envelope))
        for envelope in map(wire_envelope.parse, tx.replication.drop_sealed(scope, context.device, after=after))
    ]
    lane = tx.queries.replication.lane(scope, context.device)
    assert lane is not None  # noqa: S101 - something of it was pushed
    tip = before[0].envelope.header.prev if before else lane.tip
    tx.replication.put_lane(replace(lane, n=after, tip=tip, acked_n=after))
    for one in before:
        keep_own(context, tx, scope, packing.resealed(next_seal_context(context, tx, scope), one, context.signer))
