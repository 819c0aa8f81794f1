"""Making a snapshot of the home scope, and deleting one that holds what was forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from scrubjay.store.queries import Queries
from scrubjay.store.writes.unconfirmed import RUN
from scrubjay_shared import snapshot
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import ZERO
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_shared.snapshot import Chunk, ChunkRef
from scrubjay_sync import packing
from scrubjay_sync.engine import snapshots
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.refusals import REFUSED
from scrubjay_sync.engine.results import Progress
from scrubjay_sync.packing import Checkpoint, Manifest, SealContext
from scrubjay_sync.policy import SYNC


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a snapshot is made of: what its maker had seen at the end of a round, and each device's last op in it."""

    seen: Checkpoint
    ends: dict[str, int]
    ops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A snapshot that was made: its ops and chunks, and how many of these had to be sent. None where none was due."""

    ops: int = 0
    chunks: int = 0
    sent: int = 0


def refusal(context: Context) -> str:
    """Return why this device makes no snapshots, in words; "" when it may."""
    if context.member.limited or context.member.read_only:
        return "only a full device makes snapshots"
    return "" if snapshots.has_snapshots(context) else "the home scope is not encrypted, and has no snapshots"


async def basis(context: Context, at: Millis) -> Basis:
    """Return what a snapshot is made of, right after a round that began at `at` and left nothing open.

    Raises ConflictError when something here waits to be confirmed by lanes, or could not be applied.
    """
    home, state = context.member.home, context.member.state

    def look(q: Queries) -> Basis:
        kept = q.replication.state()
        assert kept is not None  # noqa: S101 - a round was before it
        lanes = {lane_id: lane for lane_id, lane in q.replication.lanes().items() if lane_id[0] == home}
        if q.snapshots.unconfirmed() or any(lane.low > 1 for lane in lanes.values()):
            raise ConflictError("this device is still reading what others wrote", hint="try again when it is in sync")
        ends = q.ops.ends()
        found: dict[str, int] = {}
        for _, device in lanes:
            owner = state.devices.get(device)
            if owner is None or not owner.full or owner.revoked or q.snapshots.parked(device.hex()):
                continue  # left to be read from its lane
            end = kept.sealed_seq if device == context.device else ends.get(device.hex(), (0,))[0]
            if end:
                found[device.hex()] = end
        seen = Checkpoint(
            at=at,
            heads={lane_id: (lane.n, lane.tip) for lane_id, lane in lanes.items() if lane.n},
            log_seq=state.seq,
            log_head=state.head,
        )
        return Basis(seen=seen, ends=found, ops=sum(q.snapshots.count(device, end) for device, end in found.items()))

    return await context.store.read(look)


async def current(context: Context) -> Manifest | None:
    """Return the snapshot that stands at the server, None when there is none that a new machine would use."""
    try:
        return await snapshots.manifest_of(context)
    except (NotFoundError, *REFUSED):
        return None


def is_due(found: Basis, standing: Manifest | None) -> bool:
    """Say whether a snapshot would spare new machines enough."""
    if found.ops < SYNC.snapshot_ops:
        return False
    return standing is None or found.ops >= sum(one.ops for one in standing.chunks) * SYNC.snapshot_growth


async def make(context: Context, found: Basis) -> Made:
    """Make a snapshot and send it. Chunks that the server has already are not sent again."""
    home, member = context.member.home, context.member
    epoch = member.scopes.epoch(home)
    seal = SealContext(
        account=member.account,
        scope=home,
        device=context.device,
        n=0,
        prev=ZERO,
        suite=int(member.scopes.suite(home)),
        epoch=epoch,
        key=member.scopes.key(home, epoch),
    )
    refs: list[tuple[int, ChunkRef]] = []
    waiting: list[tuple[bytes, bytes]] = []
    sent = done = 0
    async for latest, chunk in _chunks(context, found):
        for part in _sealed(context, seal, chunk):
            ref, data = part
            refs.append((latest, ref))
            waiting.append((ref.hash, data))
        if len(waiting) >= SYNC.snapshot_sent:
            sent += await _send(context, waiting)
            waiting.clear()
        done += len(chunk.events) + len(chunk.others)
        context.on_progress(Progress(step="snapshot", done=min(done, found.ops), total=found.ops))
    sent += await _send(context, waiting)
    ordered = [ref for _, ref in sorted(refs, key=lambda one: -one[0])]
    manifest = packing.manifest(seal, found.seen, ordered, context.signer)
    await context.cloud.snapshots.put(home, manifest.data, [ref.hash for ref in ordered])
    return Made(ops=sum(ref.ops for ref in ordered), chunks=len(ordered), sent=sent)


async def _chunks(context: Context, found: Basis) -> AsyncIterator[tuple[int, Chunk]]:
    """Yield the ops of each device in runs that begin at the same places each time, with the last stamp of each."""
    for device, end in sorted(found.ends.items()):
        for base in range(0, end + 1, RUN):
            low, high = max(base, 1), min(base + RUN - 1, end)
            latest, chunk = await context.store.read(partial(_read, device, low, high))
            if chunk.events or chunk.others:
                yield latest, chunk


def _read(device: str, low: int, high: int, q: Queries) -> tuple[int, Chunk]:
    return q.snapshots.latest(device, low, high), q.snapshots.chunk(device, low, high)


def _sealed(context: Context, seal: SealContext, chunk: Chunk) -> list[tuple[ChunkRef, bytes]]:
    """Return the objects of some ops: one, or more when they do not fit. An op that fits none is left to its lane."""
    seqs = sorted([*(one.seq for one in chunk.events), *(seq for seq, _ in chunk.others)])
    if not seqs:
        return []
    envelope = packing.chunk(seal, snapshot.encode_chunk(chunk), context.signer)
    if envelope is not None:
        digest = sha256(envelope.data).digest()
        ref = ChunkRef(hash=digest, device=chunk.device, low=seqs[0], high=seqs[-1], ops=len(seqs))
        return [(ref, envelope.data)]
    if len(seqs) == 1:
        return []
    middle = seqs[len(seqs) // 2]
    halves = (
        Chunk(
            chunk.device,
            [one for one in chunk.events if (one.seq < middle) == lower],
            [one for one in chunk.others if (one[0] < middle) == lower],
        )
        for lower in (True, False)
    )
    return [part for half in halves for part in _sealed(context, seal, half)]


async def _send(context: Context, made: Sequence[tuple[bytes, bytes]]) -> int:
    if not made:
        return 0
    missing = await context.cloud.snapshots.missing(context.member.home, [digest for digest, _ in made])
    for digest, data in made:
        if digest in missing:
            await context.cloud.snapshots.put_chunk(digest, data)
    return len(missing)


async def drop_stale(context: Context) -> bool:
    """Delete the snapshot when it may hold words that leave the lanes in this round. Returns whether it was deleted.

    These are words that were erased long enough ago that the objects which held them are packed anew. A snapshot made
    by a round that began after this device had noticed is made without them; clocks may differ by some minutes.
    """
    if context.member.read_only or not snapshots.has_snapshots(context):
        return False
    noticed = await context.store.read(lambda q: q.replication.erased_times())
    due = [at for at in noticed if not 0 <= context.now() - at < SYNC.repack_after_ms]
    if not due:
        return False
    try:
        standing = await snapshots.manifest_of(context)
    except NotFoundError:
        return False
    except REFUSED:
        standing = None  # made by who knows whom, of who knows what
    if standing is not None and standing.seen.at > max(due) + SYNC.clock_off_ms:
        return False
    await context.cloud.snapshots.delete(context.member.home)
    return True
