"""The planted bugs of engine, membership, store, sealing and cloud. Each says under which faults it must show itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from scrubjay.store.incarnation import Incarnation
from scrubjay.store.op_ingest import OpIngest
from scrubjay.store.op_log import OpLog
from scrubjay.store.projections.erasure import Erasure
from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay.store.writes.replication import ReplicationWrites
from scrubjay_cloud.lanes import push as cloud_push
from scrubjay_cloud.lanes import store as cloud_store
from scrubjay_shared import clock, envelope, sealing, segment, wire
from scrubjay_shared.errors import UnavailableError
from scrubjay_sync import packing, planning
from scrubjay_sync.account import drafts
from scrubjay_sync.account.admission import Joining
from scrubjay_sync.account.member_scopes import MemberScopes
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.engine import apply, forks, pull, push, repair
from scrubjay_sync.engine.context import Context
from scrubjay_sync.keys.keypairs import RootKey
from scrubjay_sync.planning import Verdict
from simulation.mutants import Mutant, mutant


def _under(*faults: str) -> frozenset[str]:
    return frozenset(faults)


def _none(*_: Any, **__: Any) -> None:
    """Do nothing."""


async def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, later."""


def _verdict_as(wrong: Verdict, told: Verdict) -> Callable[[Any], Any]:
    def replaced(original: Any) -> Any:
        def compare(*args: Any, **asked: Any) -> Verdict:
            found: Verdict = original(*args, **asked)
            return told if found is wrong else found

        return compare

    return replaced


def _assumed(original: Any) -> Any:
    """Take silence for a yes."""

    async def push(self: Cloud, objects: Sequence[envelope.Envelope]) -> Any:
        try:
            return await original(self, objects)
        except UnavailableError:
            return tuple(
                wire.Pushed(
                    scope=one.header.scope,
                    device=one.header.device,
                    n_from=one.header.n_from,
                    n_to=one.header.n_to,
                    status="ok",
                    n=one.header.n_to,
                    tip=one.end,
                )
                for one in objects
            )

    return push


def _first_unsent_skipped(original: Any) -> Any:
    def unsent(self: OpLogQueries, device: str, after_seq: int, limit: int) -> Any:
        found = original(self, device, after_seq, limit)
        return found[1:] if len(found) > 2 else found

    return unsent


def _last_of_run_lost(original: Any) -> Any:
    def receive(self: OpIngest, device: str, run: Any) -> Any:
        return original(self, device, run[:-1] if len(run) > 2 else run)

    return receive


def _forgets_not_applied(original: Any) -> Any:
    return lambda self, forgets: False


def _unsent_dropped(original: Any) -> Any:
    def renew(self: Incarnation, device: str, after_seq: int, *rest: Any) -> Any:
        return original(self, device, max(after_seq, self._context.head.seq), *rest)

    return renew


def _floor_moves_clock(original: Any) -> Any:
    def make(self: OpLog, *args: Any) -> Any:
        made = original(self, *args)
        head = self._context.head
        head.hlc = max(head.hlc, made.hlc)
        return made

    return make


def _any_stamp_moves_clock(_original: Any) -> Any:
    return lambda last, remote, now: max(last, remote)


def _pack_loses_one(original: Any) -> Any:
    def pack(place: Any, covered: Any, entries: Any, signer: Any) -> Any:
        return original(place, covered, entries[:-1] if len(entries) > 1 else entries, signer)

    return pack


def _pack_with_its_own_tip(original: Any) -> Any:
    def pack(place: Any, covered: Any, entries: Any, signer: Any) -> Any:
        return original(place, [*covered[:-1], replace(covered[-1], signature=bytes(64), body=b"")], entries, signer)

    return pack


def _only_first_half_sealed(original: Any) -> Any:
    def segments(place: Any, entries: Any, signer: Any) -> Any:
        return original(place, entries[: max(1, len(entries) // 2)], signer)

    return segments


def _erased_is_skipped(original: Any) -> Any:
    def segments(place: Any, entries: Any, signer: Any) -> Any:
        return original(place, [(seq, data or b"") for seq, data in entries], signer)

    return segments


class _NoCipher:
    """A cipher that does not; what was sealed before still opens."""

    def __init__(self, key: bytes) -> None:
        self._real = AESGCMSIV(key)

    def encrypt(self, nonce: bytes, data: bytes, aad: bytes) -> bytes:
        return data + bytes(16)

    def decrypt(self, nonce: bytes, data: bytes, aad: bytes) -> bytes:
        return data[:-16] if data.endswith(bytes(16)) else self._real.decrypt(nonce, data, aad)


def _any_is_stored(_original: Any) -> Any:
    return lambda *_: True


def _stale_may_push(original: Any) -> Any:
    def refusal(one: Any, state: Any, device: Any) -> str:
        found: str = original(one, state, device)
        return "" if found == "stale_epoch" else found

    return refusal


def _gap_may_push(original: Any) -> Any:
    def head(tx: Any, account: bytes, lane: Any) -> Any:
        n, tip = original(tx, account, lane)
        return (n + 1, tip) if n == 2 else (n, tip)

    return head


def _page_skips_one(original: Any) -> Any:
    async def pull(self: Cloud, cursor: str, **asked: Any) -> Any:
        page = await original(self, cursor, **asked)
        return replace(page, objects=page.objects[:-1]) if len(page.objects) > 1 else page

    return pull


def _never_synced_is_synced(original: Any) -> Any:
    async def settle(context: Context, *args: Any) -> bool:
        await original(context, *args)
        return True

    return settle


def _unsigned_accepted(_original: Any) -> Any:
    return lambda one, keys: True


def _anything_continues(_original: Any) -> Any:
    return lambda run, *, n, prev, keys: None


def _own_root(original: Any) -> Any:
    async def save(self: Any, root: RootKey | None) -> None:
        await original(self, root and replace(root, secret=self.machine.entropy(32)))

    return save


def _old_epoch(original: Any) -> Any:
    return lambda self, scope: max(0, original(self, scope) - 1)


def _lane_not_kept(original: Any) -> Any:
    def put(self: Any, lane: Any, **how: Any) -> None:
        original(self, replace(lane, n=max(0, lane.n - 1)) if lane.n % 3 == 2 else lane, **how)

    return put


def _crash_tears(original: Any) -> Any:
    """Apply objects and move the lane's end in two transactions."""

    async def apply_objects(context: Context, accepted: Any, tally: Any, *, cursor: Any, down: bool = False) -> Any:
        if accepted and not down:
            ends = [(lane, found[-1].envelope) for lane, found in accepted]
            await context.store.write(
                lambda tx: [
                    tx.replication.put_lane(
                        replace(lane, n=last.header.n_to, tip=last.end, hw_n=last.header.n_to, hw_tip=last.end)
                    )
                    for lane, last in ends
                ]
            )
        return await original(context, accepted, tally, cursor=cursor, down=down)

    return apply_objects


def _unsettled_alarm(original: Any) -> Any:
    async def alarm(self: Context, tally: Any, error: Any, subject: str, *, holds: bool = True) -> None:
        if error.code != "rolled_back":
            await original(self, tally, error, subject, holds=holds)

    return alarm


def _nothing_of_some(adopt: Any) -> Any:
    return lambda self, of=None: adopt(self) if of is None else 0


def _last_of_now(original: Any) -> Any:
    """Count what was written between two reads of a new incarnation as shared with the other copy."""

    async def last_shared(context: Context, common: Any, theirs: Any) -> int:
        ours = await context.store.read(lambda q: q.ops.op_ids(context.device))
        found: int = await original(context, common, theirs)
        return context.store.last_seq if found >= max(ours, default=0) else found

    return last_shared


def _written_meanwhile_is_sealed(original: Any) -> Any:
    async def push_all(context: Context, tally: Any) -> None:
        await original(context, tally)
        await context.store.read(lambda q: q.replication.state())
        last = context.store.last_seq
        await context.store.write(lambda tx: tx.replication.set_state(sealed_seq=last))

    return push_all


def _sealed_again(original: Any) -> Any:
    async def push_all(context: Context, tally: Any) -> None:
        last = context.store.last_seq
        state = await context.store.read(lambda q: q.replication.state())
        held = state.sealed_seq if state is not None else 0
        await original(context, tally)
        if context.store.last_seq > last:
            await context.store.write(lambda tx: tx.replication.set_state(sealed_seq=held))
            await original(context, tally)

    return push_all


def _root_not_wrapped(original: Any) -> Any:
    def wraps(before: Any, after: Any, **asked: Any) -> Any:
        found = original(before, after, **asked)
        return tuple(replace(one, target=found[-1].target) for one in found)

    return wraps


ENGINE_MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "a fork is taken for the same",
        (planning, "compare", _verdict_as(Verdict.FORK, Verdict.SAME)),
        faults=_under("restore", "clone"),
    ),
    mutant(
        "a split is taken for the same",
        (planning, "compare", _verdict_as(Verdict.LOST, Verdict.SAME)),
        faults=_under("rollback", "quiet rollback"),
        first=1,
    ),
    mutant(
        "nothing is repaired",
        (repair, "repair_server", lambda _: _nothing),
        faults=_under("rollback", "quiet rollback", "owner lost"),
        first=1,
    ),
    mutant("silence is taken for yes", (Cloud, "push", _assumed), faults=_under("drop", "refusals"), first=6),
    mutant(
        "the first of the outbox is skipped", (OpLogQueries, "unsent", _first_unsent_skipped), faults=_under("drop")
    ),
    mutant("the last of a page is not applied", (OpIngest, "receive", _last_of_run_lost), faults=_under("drop")),
    mutant("a forget that comes is not done", (Erasure, "tombstone", _forgets_not_applied), faults=_under("drop")),
    mutant(
        "a new incarnation drops what was not sent",
        (Incarnation, "renew", _unsent_dropped),
        faults=_under("restore", "clone"),
    ),
    mutant(
        "a fork makes no new incarnation",
        (forks, "new_incarnation", lambda _: _nothing),
        faults=_under("restore", "clone"),
    ),
    mutant("the floor moves the store's clock", (OpLog, "make", _floor_moves_clock), faults=_under("clock")),
    mutant(
        "any stamp moves the store's clock",
        (clock, "receive", _any_stamp_moves_clock),
        faults=_under("clock", "crashes"),
        first=1,
    ),
    mutant("a pack loses an op", (packing, "pack", _pack_loses_one), faults=_under("late joiner")),
    mutant("a pack ends in a link of its own", (packing, "pack", _pack_with_its_own_tip), faults=_under("late joiner")),
    mutant("half a segment is sealed", (packing, "segments", _only_first_half_sealed), faults=_under("drop")),
    mutant(
        "what was erased is sent as an op", (packing, "segments", _erased_is_skipped), faults=_under("drop"), first=1
    ),
    mutant(
        "nothing is encrypted",
        (sealing, "AESGCMSIV", lambda _: _NoCipher),
        (segment, "compress", lambda _: lambda data: (data, 0)),
        faults=_under("drop"),
    ),
    mutant(
        "another object at the same place passes for a copy, and is not compared",
        (cloud_store, "_is_stored", _any_is_stored),
        (planning, "compare", _verdict_as(Verdict.FORK, Verdict.SAME)),
        faults=_under("restore", "clone"),
    ),
    mutant(
        "what is sealed with an old key is taken",
        (cloud_push, "push_refusal", _stale_may_push),
        faults=_under("rotate", "lost answers", "drop"),
        first=2,
    ),
    mutant("the server takes an object beyond a gap", (cloud_store, "_head", _gap_may_push), faults=_under("drop")),
    mutant(
        "a page is cut short, and holes are not read",
        (Cloud, "pull", _page_skips_one),
        (pull, "read_on", lambda _: _nothing),
        faults=_under("drop"),
    ),
    mutant("holes are not read", (pull, "read_on", lambda _: _nothing), faults=_under("skipping", "withheld"), first=4),
    mutant(
        "synced is said too early",
        (pull, "settle", _never_synced_is_synced),
        faults=_under("withheld", "fork"),
        first=1,
    ),
    mutant("signatures are not checked", (envelope, "signed_by", _unsigned_accepted), faults=_under("forged"), first=5),
    mutant(
        "chains are not checked",
        (envelope, "check_run", _anything_continues),
        faults=_under("skipping", "forged"),
        first=2,
    ),
    mutant("a device seals with the key before", (MemberScopes, "epoch", _old_epoch), faults=_under("rotate")),
    mutant(
        "a machine that logs in makes its own root key", (Joining, "_save", _own_root), faults=_under("late joiner")
    ),
    mutant("a lane's end is kept one short", (ReplicationWrites, "put_lane", _lane_not_kept), faults=_under("drop")),
    mutant(
        "a lane moves before its ops are in",
        (apply, "apply_objects", _crash_tears),
        faults=_under("write crashes"),
        first=5,
    ),
    mutant("a rollback is not told", (Context, "alarm", _unsettled_alarm), faults=_under("rollback", "quiet rollback")),
    mutant(
        "a new root key is wrapped for somebody else",
        (drafts, "wraps_after", _root_not_wrapped),
        faults=_under("rotate"),
    ),
    mutant(
        "what is written while a round runs is taken for sealed",
        (push, "push_all", _written_meanwhile_is_sealed),
        faults=_under("busy"),
    ),
    mutant(
        "what is written while a round runs has its ops sealed again",
        (push, "push_all", _sealed_again),
        faults=_under("busy"),
    ),
    mutant(
        "what is written while a new id is taken is taken for shared",
        (forks, "last_shared", _last_of_now),
        faults=_under("busy", "restore", "clone"),
    ),
    mutant("what the account lost with a device is left behind", (Incarnation, "adopt", _nothing_of_some), first=401),
)
