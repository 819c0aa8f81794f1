"""Reading a snapshot: what another device has, all at once, before the lanes are read that it follows from.

It is a head start, and no proof. It is read only above what its maker had seen (so that what was forgotten since is
forgotten already), and every op that comes from it is compared with the lane of its own device as that is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from hashlib import sha256

from scrubjay.store.preparation import Preparation
from scrubjay.store.received import Ready
from scrubjay.store.replication_state import Lane
from scrubjay.store.transaction import Transaction
from scrubjay_shared import sealing
from scrubjay_shared.envelope import Envelope, ObjectKind, Suite, parse, signed_by
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    CorruptError,
    NotFoundError,
    ScrubjayError,
)
from scrubjay_shared.snapshot import ChunkRef
from scrubjay_sync import packing
from scrubjay_sync.engine import checkpoints, refusals
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED, short
from scrubjay_sync.engine.results import Progress, Tally
from scrubjay_sync.packing import Manifest
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC

log = logging.getLogger(__name__)

_READ = "nothing is lost: the lanes are read instead"


async def offered(context: Context, tally: Tally) -> Manifest | None:
    """Return the snapshot that the server has of the home scope; None without one that a first reading may use."""
    state = await context.store.read(lambda q: q.replication.state())
    if state is None or state.snapshot not in {"", "loading"} or not has_snapshots(context):
        return None
    try:
        return await manifest_of(context)
    except NotFoundError:
        return None  # nobody has made one, or the server is older
    except REFUSED as error:
        await _refuse(context, tally, error)
        return None


def has_snapshots(context: Context) -> bool:
    """Say whether this device has a home scope, sealed, of which there are snapshots."""
    home = context.member.home
    return home in context.scopes and context.member.scopes.suite(home) == Suite.SEALED


async def manifest_of(context: Context) -> Manifest:
    """Return the manifest of the home scope's snapshot, checked. Raises NotFoundError, and one of REFUSED."""
    envelope = parse(await context.cloud.snapshots.manifest(context.member.home))
    if context.ahead_of_log(envelope):
        await context.member.refresh(context.cloud)
    _check_header(context, envelope, ObjectKind.SNAPSHOT_MANIFEST, envelope.header.device)
    maker = context.member.state.devices.get(envelope.header.device)
    if maker is None or not maker.full or maker.revoked:
        raise BadSignatureError(
            f"the server has a snapshot of device {short(envelope.header.device)}, which is no full device in force",
            hint=_READ,
        )
    if not signed_by(envelope, (maker.sign_pub,)):
        raise BadSignatureError(f"the snapshot of device {short(maker.id)} is not signed by it", hint=_READ)
    return packing.opened_manifest(envelope, context.key(envelope))


def _check_header(context: Context, envelope: Envelope, kind: ObjectKind, maker: bytes) -> None:
    header, scope = envelope.header, context.member.state.scopes[context.member.home]
    if (header.account, header.scope, header.device) != (context.member.account, scope.id, maker):
        raise BrokenChainError("the server has something else than a snapshot of this account there", hint=_READ)
    if header.kind != kind or header.suite != scope.suite or header.epoch > scope.epoch:
        raise BrokenChainError("the server has something else than a snapshot of this scope there", hint=_READ)


def above(context: Context, manifest: Manifest, lanes: Mapping[LaneId, Lane]) -> dict[LaneId, int]:
    """Return down to which place each lane of the scope is read before the snapshot: what its maker had seen of it."""
    home = context.member.home
    return {
        lane_id: min(manifest.seen.heads.get(lane_id, (0, b""))[0], lane.n)
        for lane_id, lane in lanes.items()
        if lane_id[0] == home
    }


async def load(
    context: Context, manifest: Manifest, lanes: Mapping[LaneId, Lane], preparation: Preparation, tally: Tally
) -> None:
    """Take in a snapshot, newest first, when all that its maker had not seen was read. What is refused is told."""
    before = len(tally.errors)
    await checkpoints.compare(context, manifest.maker, manifest.seen, tally)
    if len(tally.errors) > before:
        return  # it was shown other lanes, or another account log
    chunks = [one for one in manifest.chunks if await _follows(context, manifest, lanes, one.device, tally)]
    await context.store.write(lambda tx: tx.replication.set_state(snapshot="loading", snapshot_maker=manifest.maker))
    try:
        await _load(context, manifest, chunks, preparation, tally)
    except NotFoundError:
        log.info("the snapshot was replaced while it was read")
    except REFUSED as error:
        await _refuse(context, tally, error)
    await context.store.write(lambda tx: tx.replication.set_state(snapshot="loaded"))


async def _follows(
    context: Context, manifest: Manifest, lanes: Mapping[LaneId, Lane], device: bytes, tally: Tally
) -> bool:
    """Say whether a device's ops may be taken from a snapshot: it is in force, and its lane leads to what it shows.

    Of a device that was revoked or is limited nothing is: how far these count, and for what, is seen from their lanes.
    """
    lane_id = (context.member.home, device)
    owner, lane = context.member.state.devices.get(device), lanes.get(lane_id)
    n, tip = manifest.seen.heads.get(lane_id, (0, b""))
    if owner is None or not owner.full or owner.revoked or lane is None or lane_id in tally.held:
        return False
    if not lane.low - 1 <= n <= lane.n:
        return False
    if lane.low == n + 1 and lane.low_prev != tip:
        await context.refuse(tally, lane_id, refusals.split(device, n))
        return False
    return True


async def _load(
    context: Context, manifest: Manifest, chunks: list[ChunkRef], preparation: Preparation, tally: Tally
) -> None:
    total, done = sum(one.ops for one in chunks), 0
    coming: deque[asyncio.Task[Ready]] = deque()
    left = deque(chunks)
    turn = asyncio.Event()
    turn.set()
    preparation.follow(await context.store.read(lambda q: q.events.last()))
    try:
        while left or coming:
            while left and len(coming) <= SYNC.snapshot_ahead:
                turns = turn, asyncio.Event()
                turn = turns[1]
                coming.append(asyncio.create_task(_ready(context, manifest, left.popleft(), preparation, turns)))
            context.check_disk()
            ready = await coming.popleft()

            def work(tx: Transaction, ready: Ready = ready) -> tuple[int, int]:
                return tx.unconfirmed.take(ready).applied, tx.queries.events.last()

            # Where a power failure takes a chunk, the state still says "loading": the snapshot is read again.
            applied, last = await context.store.write(work, regained=True)
            preparation.settled(ready)
            preparation.follow(last)
            tally.ops_received += applied
            done += len(ready.seqs)
            context.on_progress(Progress(step="snapshot", done=min(done, total), total=total))
        tally.pages += 1
    finally:
        preparation.follow(None)  # what the lanes say next is here
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)


async def _ready(
    context: Context,
    manifest: Manifest,
    chunk: ChunkRef,
    preparation: Preparation,
    turns: tuple[asyncio.Event, asyncio.Event],
) -> Ready:
    """Fetch, check and open a chunk, and make it ready to be stored when it is its turn, as numbers are given in order.

    `turns` are its own and that of the next one.
    """
    turn, following = turns
    try:
        payload = await _payload(context, manifest, chunk)
        await turn.wait()
        making = asyncio.create_task(preparation.ready_chunk(payload))
    finally:
        following.set()
    ready = await making
    seqs = ready.seqs
    if ready.device != chunk.device.hex() or (seqs and not chunk.low <= min(seqs) <= max(seqs) <= chunk.high):
        raise CorruptError("a chunk of the snapshot holds other changes than its maker says", hint=_READ)
    return ready


async def _payload(context: Context, manifest: Manifest, chunk: ChunkRef) -> bytes:
    """Fetch, check and open a chunk. The manifest's signature is over its hash."""
    data = await context.cloud.snapshots.chunk(chunk.hash)
    if sha256(data).digest() != chunk.hash:
        raise CorruptError("the server has another chunk of the snapshot than its maker signed", hint=_READ)
    envelope = parse(data)
    _check_header(context, envelope, ObjectKind.SNAPSHOT_CHUNK, manifest.maker)
    return sealing.unseal(envelope, key=context.key(envelope))


async def _refuse(context: Context, tally: Tally, error: ScrubjayError) -> None:
    """Tell that a snapshot is not used. It holds nothing up."""
    await context.alarm(tally, error, "snapshot", holds=False)


async def discard(context: Context, tally: Tally) -> None:
    """Throw away what came from a snapshot that the lanes do not bear out, and tell who made it."""
    state = await context.store.read(lambda q: q.replication.state())
    maker = b"" if state is None else state.snapshot_maker
    await context.store.write(lambda tx: tx.unconfirmed.discard())
    tally.erased = True
    error = CorruptError(
        f"the snapshot that device {context.member.device_name(maker)} made says what no lane says: all that came from"
        " it was thrown away, and is read from the lanes",
        hint="if nobody knows why, shut that device out: scrubjay devices revoke",
    )
    await context.alarm(tally, error, "snapshot", holds=False)


async def settle(context: Context, tally: Tally) -> bool:
    """Once every lane was read, throw away a snapshot of which something stood in none. Returns whether it did."""
    if not await context.store.read(lambda q: q.snapshots.unconfirmed()):
        return False
    lanes = await context.store.read(lambda q: q.replication.lanes())
    if tally.held or any(lane.low > 1 for lane in lanes.values() if context.reads(lane.scope)):
        return False
    await discard(context, tally)
    return True
