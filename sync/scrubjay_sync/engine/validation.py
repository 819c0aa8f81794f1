"""The checks that an object must pass before it is opened or applied."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.replication_state import Lane
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared.envelope import Envelope, ObjectKind, lane_root, signed_by
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    MalformedError,
    RevokedError,
    ScrubjayError,
    WrongKeyError,
)
from scrubjay_sync import packing
from scrubjay_sync.engine import refusals
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED, VERIFY, short
from scrubjay_sync.engine.results import RestartRoundError, Tally
from scrubjay_sync.packing import Opened


async def check_own(context: Context, lane: Lane, run: Sequence[Envelope]) -> None:
    """Compare objects of our own lane with what we sent."""
    for envelope in run:
        n = envelope.header.n_to
        ours = (
            lane.tip
            if n == lane.n
            else await context.store.read(lambda q: q.replication.link(lane.scope, lane.device, n))
        )
        if ours is not None and ours != envelope.end:
            raise BrokenChainError(f"the server holds another place {n} of this device's own lane", hint=VERIFY)
        if n > lane.n:
            check_header(context, envelope)
            if not signed_by(envelope, context.keys_of(envelope)):
                raise BadSignatureError(f"place {n} of this device's own lane is not signed by it", hint=VERIFY)
            raise RestartRoundError  # a copy of this store wrote it meanwhile: the heads show it now


async def check_new(context: Context, lane: Lane, run: Sequence[Envelope], tally: Tally) -> list[Opened]:
    """Return what of a run of one lane holds and is new, opened. Raises when its first new object is refused."""
    new: list[Envelope] = []
    for envelope in run:
        check_header(context, envelope)
        if envelope.header.n_to <= lane.n:
            known = await context.store.read(
                lambda q: q.replication.link(lane.scope, lane.device, envelope.header.n_to)
            )
            if known is not None and known != envelope.end:
                raise refusals.split(lane.device, envelope.header.n_to)
        else:
            new.append(envelope)
    if not new or new[0].header.n_from > lane.n + 1:
        return []  # a hole: `_settled` reads the lane from where it begins
    first: list[Envelope] = []
    if new[0].header.n_from <= lane.n:  # a pack over the end of what we hold
        first = [new.pop(0)]
        await check_over(context, lane, first[0])
    n, prev = (first[0].header.n_to, first[0].end) if first else (lane.n, lane.tip)
    good, error = _good(context, new, n, prev)
    opened: list[Opened] = []
    for envelope in first + good:
        try:
            opened.append(packing.opened(envelope, context.key(envelope)))
        except REFUSED as refusal:
            error = refusal
            break
        await context.sleep(0)
    if error is not None:
        if not opened:
            raise error
        await context.refuse(tally, (lane.scope, lane.device), error)
    return opened


def _good(
    context: Context, run: Sequence[Envelope], n: int, prev: bytes
) -> tuple[list[Envelope], ScrubjayError | None]:
    """Return the objects of a run up to the first that does not hold, and why that one does not."""
    if not run:
        return [], None
    try:
        wire_envelope.check_run(run, n=n, prev=prev, keys=context.keys_of)
    except REFUSED as error:
        # The last signature vouched for all of them. Without it each has to stand for itself.
        for place in range(len(run)):
            try:
                wire_envelope.check_run(run[place : place + 1], n=n, prev=prev, keys=context.keys_of)
            except REFUSED as first:
                return list(run[:place]), first
            n, prev = run[place].header.n_to, run[place].end
        return list(run), error
    return list(run), None


async def check_over(context: Context, lane: Lane, pack: Envelope) -> None:
    """Check a pack that begins within what we hold and ends beyond it."""
    header = pack.header
    if header.kind != ObjectKind.PACK or not signed_by(pack, context.keys_of(pack)):
        raise BadSignatureError(
            f"place {header.n_from} of lane {short(lane.device)} is not signed by its device", hint=VERIFY
        )
    before = await context.store.read(lambda q: q.replication.link(lane.scope, lane.device, header.n_from - 1))
    if header.n_from == 1:
        before = lane_root(header.account, header.scope, header.device)
    if before is not None and before != header.prev:
        raise refusals.split(lane.device, header.n_from)


def check_header(context: Context, envelope: Envelope) -> None:
    """Check that an object may stand where it stands: this account, a known device, the scope's own mode."""
    header, state = envelope.header, context.member.state
    where = f"place {header.n_from} of lane {short(header.device)}"
    if header.account != context.member.account:
        raise BrokenChainError(f"{where} is of another account", hint=VERIFY)
    scope, device = state.scopes.get(header.scope), state.device_of(header.device)
    if device is None or scope is None:
        raise BadSignatureError(f"{where} is of a device or scope that the account does not know", hint=VERIFY)
    if not device.full and (device.read_only or header.scope not in (device.scopes or ())):
        raise BadSignatureError(
            f"{where} is in a scope in which its device may not write",
            hint="somebody has that device's keys, and the server has let it through: scrubjay devices revoke",
        )
    if header.suite != scope.suite:
        raise BadSignatureError(f"{where} has another encryption than its scope has", hint=VERIFY)
    if header.kind not in wire_envelope.LANE_KINDS:
        raise MalformedError(f"{where} is of a kind that this version does not expect there", hint="update scrubjay")
    if header.epoch > scope.epoch:
        raise WrongKeyError(f"{where} is sealed under an epoch that the account does not know", hint=VERIFY)
    end = device.end_of(header.scope, header.device)
    if end is not None and header.n_to == end[0] and envelope.end != end[1]:
        raise refusals.split(header.device, header.n_to)
    if header.n_to > context.counts_to(header.scope, header.device):
        raise RevokedError(
            f"{where} was written after its device was revoked, and is not read",
            hint="nothing needs to be done; scrubjay sync acknowledge clears the alarm",
        )


async def check_below(context: Context, lane: Lane, envelope: Envelope, above: int, prev: bytes) -> None:
    """Check that an object leads to place `above`, which names `prev` as the link before it."""
    header = envelope.header
    check_header(context, envelope)
    broken = header.n_to < above - 1 or (header.n_to == above - 1 and envelope.end != prev)
    if envelope.lane != (lane.scope, lane.device) or broken or header.n_from >= above:
        raise BrokenChainError(
            f"place {header.n_to} of lane {short(lane.device)} does not lead to place {above}", hint=VERIFY
        )
    if header.n_to >= above:  # packed since we read what stands above it
        known = await context.store.read(lambda q: q.replication.link(lane.scope, lane.device, header.n_to))
        if header.kind != ObjectKind.PACK or (known is not None and known != envelope.end):
            raise refusals.split(lane.device, header.n_to)
    # Whatever a checked object names as `prev` is vouched for; a pack's link says nothing of its body.
    vouched = above <= lane.n and header.kind != ObjectKind.PACK
    if not vouched and not signed_by(envelope, context.keys_of(envelope)):
        raise BadSignatureError(
            f"place {header.n_to} of lane {short(lane.device)} is not signed by its device", hint=VERIFY
        )
    if header.n_from == 1 and header.prev != lane_root(header.account, header.scope, header.device):
        raise BrokenChainError(f"lane {short(lane.device)} does not begin at its first place", hint=VERIFY)
