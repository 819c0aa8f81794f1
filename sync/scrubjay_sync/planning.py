"""What a round decides: what goes where, what is sent again, what is packed, when the next one begins. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scrubjay.store import Outgoing
from scrubjay.store.replication_state import Binding, Lane, Sealed
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import OpType
from scrubjay_shared.segment import Entry
from scrubjay_shared.wire import LaneHead
from scrubjay_sync.policy import SYNC, SyncPolicy

LaneId = tuple[bytes, bytes]
"""(scope, device)."""


# --- when -------------------------------------------------------------------------------------------------------------


def backoff(last_ms: int, roll: float, policy: SyncPolicy = SYNC) -> int:
    """Return how long to wait after a failure, in milliseconds; `last_ms` is the wait before, 0 at the first.

    `roll` is random in [0, 1). Decorrelated jitter: clients that failed together do not come back together.
    """
    most = max(policy.backoff_ms, last_ms * 3)
    return min(policy.backoff_most_ms, int(policy.backoff_ms + roll * (most - policy.backoff_ms)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Writes that no round has taken up: when the first and the last of them were made, by one clock.

    `alone`: before the first nothing had been written for as long as ends a burst.
    """

    first: Millis
    last: Millis
    alone: bool

    @staticmethod
    def grown(burst: Burst | None, now: Millis, before: Millis | None, policy: SyncPolicy = SYNC) -> Burst:
        """Return a burst with one more write, or a new one; `before` is when the last write of all was made."""
        if burst is not None:
            return replace(burst, last=now)
        return Burst(first=now, last=now, alone=before is None or now - before >= policy.debounce_ms)


def due(now: Millis, burst: Burst | None, *, quiet: bool, policy: SyncPolicy = SYNC) -> Millis:
    """Return when the next round should begin.

    A write that comes alone is sent soon, with what follows it at once; what is written after it waits until the burst
    has ended. `burst` None: nothing waits to be taken up. A scheduler that is closed does not wait: it runs a last
    round at once.
    """
    if burst is None:
        return Millis(now + policy.idle_ms)
    if quiet:
        return Millis((burst.first // policy.quiet_ms + 1) * policy.quiet_ms)
    if burst.alone:
        return Millis(burst.first + policy.soon_ms)
    return Millis(min(burst.last + policy.debounce_ms, burst.first + policy.debounce_most_ms))


# --- sealing ----------------------------------------------------------------------------------------------------------


def routed(
    outgoing: Sequence[Outgoing],
    *,
    home: bytes,
    placed: Mapping[str, bytes],
    away: Container[int] = (),
    bindings: Mapping[str, Binding],
    first_op: Callable[[str], int | None],
    teams: Container[bytes] = (),
) -> tuple[dict[bytes, list[Entry]], dict[str, bytes]]:
    """Return the ops of each scope, and which entities are placed outside home by them.

    An entity lives where `placed` says; one whose project is bound lives there if nothing was written of it before the
    binding (`first_op` gives the place of its first op, None when another device wrote of it); all else is home, and so
    are events where the project is bound to one of `teams`: what is said to agents is not shared with others. The ops
    at the places `away` go home: they are about memories that showed in no project bound to where these live.
    """
    scopes: dict[bytes, list[Entry]] = {}
    new: dict[str, bytes] = {}
    for one in outgoing:
        scope = placed.get(one.entity) or new.get(one.entity)
        if one.seq in away:
            scope = home
        if scope is None:
            scope = home
            binding = bindings.get(one.project) if one.project is not None else None
            if binding is not None and not (one.type == OpType.EVENT and binding.scope in teams):
                first = first_op(one.entity)
                if first is not None and first > binding.seq and first == one.seq:
                    scope = new[one.entity] = binding.scope
        scopes.setdefault(scope, []).append((one.seq, one.data))
    return scopes, new


def cut(entries: Sequence[Entry], policy: SyncPolicy = SYNC) -> list[list[Entry]]:
    """Return ops in runs that should fit one object each; an op larger than a run stands alone."""
    runs: list[list[Entry]] = []
    size = 0
    for entry in entries:
        weight = 16 + len(entry[1] or b"")
        if not runs or size + weight > policy.segment_raw_bytes:
            runs.append([])
            size = 0
        runs[-1].append(entry)
        size += weight
    return runs


# --- comparing with the server ----------------------------------------------------------------------------------------


class Verdict(Enum):
    """How a lane here stands to the same lane on the server."""

    SAME = "same"
    SEND = "send"  # own: the server waits for what it never had
    LOST = "lost"  # the server lacks what it had confirmed, or what another device gave it
    READ = "read"  # another device wrote more
    FORK = "fork"  # own: somebody else wrote as this device
    SPLIT = "split"  # another's: the server holds other objects at places that we hold


def compare(lane: Lane, head: LaneHead | None, *, own: bool, link_there: bytes | None) -> Verdict:
    """Say how a lane stands. `head` None: the server has none; `link_there` is our link at its end, if we know it."""
    n, tip = (head.n, head.tip) if head is not None else (0, b"")
    ours = lane.tip if n == lane.n else link_there
    if n and n <= lane.n and ours is not None and ours != tip:
        return Verdict.FORK if own else Verdict.SPLIT
    if n == lane.n:
        return Verdict.SAME
    if n > lane.n:
        return Verdict.FORK if own else Verdict.READ
    return Verdict.SEND if own and n >= lane.acked_n else Verdict.LOST


def repairs(rows: Sequence[Sealed], n: int) -> list[Sealed]:
    """Return which kept objects continue a lane that the server holds up to place `n`; none when there is a hole."""
    found: list[Sealed] = []
    at = n
    for row in sorted(rows, key=lambda one: one.n_from):
        if row.n_to <= n:
            continue
        if row.n_from > at + 1:
            break
        found.append(row)
        at = row.n_to
    return found


def batches(rows: Iterable[Sealed], limit: int) -> list[list[Sealed]]:
    """Return objects in runs of at most `limit` bytes, at least one each."""
    runs: list[list[Sealed]] = []
    size = 0
    for row in rows:
        if not runs or size + row.size > limit:
            runs.append([])
            size = 0
        runs[-1].append(row)
        size += row.size
    return runs


class Outcome(Enum):
    """What to do about the answer to one pushed object."""

    TAKEN = "taken"
    RESEND = "resend"
    FORK = "fork"
    RESEAL = "reseal"
    STOP = "stop"


_OUTCOMES = {
    "ok": Outcome.TAKEN,
    "dup": Outcome.TAKEN,
    "gap": Outcome.RESEND,
    "fork": Outcome.FORK,
    "stale_epoch": Outcome.RESEAL,
}


def outcome(status: str) -> Outcome:
    """Say what to do about the status of a pushed object: any that is not known here ends the push."""
    return _OUTCOMES.get(status, Outcome.STOP)


# --- packing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Neighbouring objects of a lane that one pack shall replace. `erasing`: because words in them were erased."""

    rows: tuple[Sealed, ...]
    erasing: bool


def packs(rows: Sequence[Sealed], dirty: Iterable[int], policy: SyncPolicy = SYNC) -> list[Range]:
    """Return what to pack of a lane's confirmed objects. `dirty` are the places of ops whose words have to go.

    First level: small objects, once there are more than `live_segments` of them. Second: what the first made, once it
    fills a pack. Objects with erased words are packed anew whatever their size; no object is in two ranges.
    """
    wanted = sorted(dirty)
    stale = {row.n_from for row in rows if row.seq_high and any(row.seq_low <= seq <= row.seq_high for seq in wanted)}
    found = [Range(rows=(row,), erasing=True) for row in rows if row.n_from in stale]
    small = [row for row in rows if row.size < policy.small_bytes and row.n_from not in stale]
    if len(small) > policy.live_segments:
        found += _runs([row if row.n_from not in stale else None for row in rows], policy.small_bytes, 0, policy)
    else:
        found += _runs(
            [row if row.n_from not in stale and row.size >= policy.small_bytes else None for row in rows],
            policy.middle_bytes,
            policy.pack_bytes * 3 // 4,
            policy,
        )
    return found


def _runs(rows: Sequence[Sealed | None], below: int, least: int, policy: SyncPolicy) -> list[Range]:
    """Return runs of neighbours, each smaller than `below`, that together have from `least` to `pack_bytes` bytes."""
    found: list[list[Sealed]] = [[]]
    size = 0
    for row in rows:
        if row is None or row.size >= below or (found[-1] and found[-1][-1].n_to + 1 != row.n_from):
            found.append([])
            size = 0
            if row is None or row.size >= below:
                continue
        if size + row.size > policy.pack_bytes:
            found.append([])
            size = 0
        found[-1].append(row)
        size += row.size
    return [
        Range(rows=tuple(run), erasing=False) for run in found if len(run) > 1 and sum(row.size for row in run) >= least
    ]
