"""One device's side of replication: rounds that seal, push, pull, heal and pack until device and server hold the same.

Theory of operation. Everything that must survive a crash is in the store and changes together with what it speaks of: a
segment is sealed in the transaction that counts its ops as sealed, a page is applied in the one that moves the cursor.
So a round may end anywhere (an error, a cancellation, kill -9), and the next begins with a look at both sides: the
server's heads against our lanes. What it finds decides what is done:

* the server lacks what we sealed: push. What it has confirmed before, or what another device wrote: heal, verbatim;
* the server has more of another's lane: pull by cursor; by lane, where the cursor cannot be trusted (a restored server)
  or an object was refused; and backwards from the newest end, on a new device;
* the server has what we never wrote as this device: a copy of this store is at work, or this store is a backup. What
  was never confirmed goes on under a new device id, with the same op ids; what the other wrote is read like anyone's;
* both have the same places with different links: somebody shows us another history. Nothing of it is taken in.

An object is applied only after format, place, certificate, signature, chain, commitment, tag and padding have been
checked, in that order. One that fails holds up its lane, not the round: it becomes an alarm, and the lane is read
again in the next round. Own lanes are never read: what stands in them is compared by its link.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from scrubjay.store import Store, replica
from scrubjay.store.replica import Alarm, Lane, Sealed, SyncState
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as accountlog
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared import ops
from scrubjay_shared.account import EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Envelope, ObjectKind, lane_root, signed_by
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    CorruptError,
    ForkError,
    InvalidError,
    MalformedError,
    NotFoundError,
    QuotaError,
    RevokedError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    TooLargeError,
    UnavailableError,
    UpdateNeededError,
    WithheldError,
    WrongKeyError,
    from_code,
)
from scrubjay_shared.parts import joined
from scrubjay_shared.wire import Heads, Pushed
from scrubjay_sync import packing, planning, searching
from scrubjay_sync.cloud import Cloud
from scrubjay_sync.inspect import Inspection, inspect
from scrubjay_sync.membership import Draft, Member
from scrubjay_sync.packing import Beacon, Hand, Opened, Place
from scrubjay_sync.planning import LaneId, Outcome, Verdict
from scrubjay_sync.policy import SYNC
from scrubjay_sync.searching import Meaning
from scrubjay_sync.verify import Verified, verify

log = logging.getLogger(__name__)

_REFUSED = (CorruptError, MalformedError, UpdateNeededError, RevokedError)
"""What one object can be refused for; everything else ends the round."""
_VERIFY = "scrubjay sync verify reads every lane again and says what is affected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a long step of a round is: `step` is "push", "pull", "bootstrap", "heal" or "pack"; counts of places."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did. `synced`: the server has echoed everything of ours, and we hold everything it has.

    `errors` are those that held up one lane or one step and not the round; each is kept as an alarm too. `ops_sent`
    and `ops_received` count ops, `healed` objects given back to the server, `packed` objects that packs replaced.
    `reincarnated`: this device goes on under a new id, because another wrote under the old one. `erased`: words of this
    store went because another device forgot them, so that copies beside it must go too.
    """

    synced: bool
    ops_sent: int = 0
    ops_received: int = 0
    pages: int = 0
    healed: int = 0
    packed: int = 0
    conflicts: int = 0
    parked: int = 0
    reincarnated: bool = False
    erased: bool = False
    errors: tuple[ScrubjayError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane: `n` held here, `acked` confirmed by the server (own lanes), `missing` places not read yet."""

    scope: bytes
    device: bytes
    own: bool
    n: int
    acked: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What `scrubjay sync status` shows. Times in UTC milliseconds; `pending_ops` wait to be confirmed.

    `clock_offset_ms` is what to add to this device's clock to get the server's; `clock_off` says that it is too much.
    """

    account: bytes
    origin: str
    device: bytes
    sign_key: bytes
    pending_ops: int
    lanes: tuple[LaneStatus, ...]
    round_at: Millis | None
    error_at: Millis | None
    error: str | None
    alarms: tuple[Alarm, ...]
    seen: Mapping[bytes, Millis]
    clock_offset_ms: int | None
    clock_off: bool
    quota_percent: int
    verified_at: Millis | None


@dataclass(slots=True)
class _Tally:
    """What a round has done so far."""

    ops_sent: int = 0
    ops_received: int = 0
    pages: int = 0
    healed: int = 0
    packed: int = 0
    conflicts: int = 0
    parked: int = 0
    reincarnated: bool = False
    erased: bool = False
    errors: list[ScrubjayError] = field(default_factory=list)
    held: set[LaneId] = field(default_factory=set)
    """Lanes of which an object was refused in this round."""


class _AgainError(Exception):
    """The round found something that changes what it stands on, has dealt with it, and begins anew."""


class Engine:
    """Replicates one store as one member of an account. One round at a time; safe to cancel or kill at any moment."""

    def __init__(
        self,
        store: Store,
        member: Member,
        cloud: Cloud,
        *,
        now: Callable[[], Millis],
        entropy: Callable[[int], bytes],
        sleep: Callable[[float], Awaitable[None]],
        free_bytes: Callable[[], int],
        on_progress: Callable[[Progress], None] = lambda _: None,
        meaning: Meaning | None = None,
    ) -> None:
        """`sleep(0)` lets others run between objects; `free_bytes` tells the space left on the store's disk.

        `meaning` embeds the topics of searchable scopes.
        """
        self._store = store
        self._member = member
        self._cloud = cloud
        self._now = now
        self._entropy = entropy
        self._sleep = sleep
        self._free_bytes = free_bytes
        self._on_progress = on_progress
        self._hand = Hand(sign=member.sign, entropy=entropy)
        self.waiting = False
        """Whether a round has nothing to do but to wait for news: ending it costs nothing."""
        self._alone = asyncio.Lock()
        self._push_bytes = SYNC.push_bytes
        self._meaning = meaning
        self._mute: set[bytes] = set()

    # --- rounds -------------------------------------------------------------------------------------------------------

    async def sync(self, *, wait_s: float = 0) -> Round:
        """Run one round. With `wait_s`, and nothing to do, wait that long for news of other devices.

        Raises what ends a round: UnavailableError and TooManyError (with `retry_after`), QuotaError, RevokedError,
        SplitError when the account log was replaced, what the store raises. Local work is never harmed, and the next
        round goes on where this one stopped.
        """
        async with self._alone:
            tally = _Tally()
            try:
                synced = await self._round(tally, wait_s)
            except ScrubjayError as error:
                await self._ended(error)
                raise
            await self._store.write(lambda tx: replica.set_state(tx, round_at=self._now(), error=None, error_at=None))
            return Round(
                synced=synced,
                ops_sent=tally.ops_sent,
                ops_received=tally.ops_received,
                pages=tally.pages,
                healed=tally.healed,
                packed=tally.packed,
                conflicts=tally.conflicts,
                parked=tally.parked,
                reincarnated=tally.reincarnated,
                erased=tally.erased,
                errors=tuple(tally.errors),
            )

    async def _ended(self, error: ScrubjayError) -> None:
        """Keep what ended a round, for whoever asks; a store that cannot be written says so itself."""
        alarming = isinstance(error, (CorruptError, RevokedError))

        def keep(tx: Transaction) -> None:
            replica.set_state(tx, error=error.code, error_at=self._now())
            if alarming:
                replica.raise_alarm(tx, error.code, "", error.message, error.hint)

        try:
            await self._store.write(keep)
        except ScrubjayError as also:
            log.warning("sync could not note its error code=%s because=%s", error.code, also.code)

    async def _round(self, tally: _Tally, wait_s: float) -> bool:
        for _ in range(SYNC.rounds_again):
            try:
                return await self._once(tally, wait_s)
            except _AgainError:
                continue
        raise UnavailableError(
            "other devices changed the account during the round, again and again", hint="scrubjay sync tries again"
        )

    async def _once(self, tally: _Tally, wait_s: float) -> bool:
        await self._admitted(tally)
        state = await self._begun()
        heads = await self._cloud.heads()
        if self._strange(state):
            state = await self._trusted_again(state, heads)
        if state.cursor == "":
            state = await self._started(heads)
        await self._compared(heads, tally)
        if not self._member.read_only:
            await self._pushed(tally)
        await self._backfilled(tally)
        if not tally.ops_sent or not await self._passed_over():
            await self._pulled(heads, tally, 0)
        if not self._member.read_only:
            await self._beaconed(tally)
            await self._packed(tally)
        await self._gave_vectors(tally)
        if tally.pages:
            await self._kept_small()
        busy = tally.ops_sent or tally.pages or tally.healed or tally.packed
        if wait_s and not busy and not tally.errors:
            self.waiting = True
            try:
                await self._pulled(heads, tally, wait_s)
            finally:
                self.waiting = False
        return await self._settled(heads, tally)

    async def _gave_vectors(self, tally: _Tally) -> None:
        """Give searchable scopes the vectors that the server lacks. What it refuses holds up nothing else."""
        try:
            await searching.given(self._store, self._member, self._cloud, self._meaning, self._mute)
        except InvalidError as error:
            await self._alarm(tally, error, "search", holds=False)

    async def _admitted(self, tally: _Tally) -> None:
        """Take over what the account log says, and answer as the device that the store is."""
        member = self._member
        try:
            await member.refresh(self._cloud)
        except RolledBackError as error:
            given = await member.heal(self._cloud)
            tally.healed += given
            await self._alarm(tally, error, "log")
            await member.refresh(self._cloud)
        self._cloud.use(member.credential)

    async def _begun(self) -> SyncState:
        def work(tx: Transaction) -> SyncState:
            replica.begin(tx, self._member.account)
            replica.note_erased(tx, self._now())
            state = replica.state_in(tx)
            assert state is not None  # noqa: S101 - `begin` made it
            projects = dict(self._member.projects)
            for binding in replica.bindings_in(tx):
                if projects.get(binding.project) == binding.scope:
                    del projects[binding.project]
                else:
                    replica.unbind(tx, binding.project)
            # Nothing that was not sealed yet lives anywhere: it may still go where its project was bound to.
            for project, scope in projects.items():
                replica.bind(tx, project, scope, state.sealed_seq)
            return state

        state = await self._store.write(work)
        if state.account != self._member.account:
            raise InvalidError(
                "this store replicates another account",
                hint="scrubjay logout first, or give each account a home of its own (--home)",
            )
        return state

    # --- what the server has, against what we have --------------------------------------------------------------------

    def _strange(self, state: SyncState) -> bool:
        """Say whether this is another store than the one that our cursor is of: replaced, or restored from a backup."""
        return bool(state.store_id) and (state.store_id, state.generation) != (
            self._cloud.store_id,
            self._cloud.generation,
        )

    async def _trusted_again(self, state: SyncState, heads: Heads) -> SyncState:
        """Go on from a server that was restored: its cursor is of a place in another order, so lanes are read by place.

        Everything up to the heads' own cursor is then read lane by lane (`_settled`).
        """
        log.info("sync server_changed generation=%s", self._cloud.generation)

        def work(tx: Transaction) -> None:
            replica.set_state(
                tx,
                cursor=heads.cursor,
                store_id=self._cloud.store_id or "",
                generation=self._cloud.generation or 0,
            )

        await self._store.write(work)
        return replace(
            state,
            cursor=heads.cursor,
            store_id=self._cloud.store_id or "",
            generation=self._cloud.generation or 0,
        )

    async def _started(self, heads: Heads) -> SyncState:
        """Begin on a device that has read nothing: pin where every lane ends, to be read backwards from there."""

        def work(tx: Transaction) -> SyncState:
            for head in heads.heads:
                if head.device == self._device or head.scope not in self._scopes:
                    continue
                known = self._member.state.devices.get(head.device)
                ends = known.ends if known is not None else None
                n, tip = head.n, head.tip
                if ends is not None and n > ends.get(head.scope, (0, b""))[0]:
                    n, tip = ends.get(head.scope, (0, b""))
                if n and replica.lane_in(tx, head.scope, head.device) is None:
                    pinned = self._empty(head.scope, head.device)
                    pinned = replace(pinned, n=n, tip=tip, low=n + 1, low_prev=tip, hw_n=n, hw_tip=tip)
                    replica.put_lane(tx, pinned)
            replica.set_state(
                tx, cursor=heads.cursor, store_id=self._cloud.store_id or "", generation=self._cloud.generation or 0
            )
            state = replica.state_in(tx)
            assert state is not None  # noqa: S101 - `_begun` made it
            return state

        return await self._store.write(work)

    async def _compared(self, heads: Heads, tally: _Tally) -> None:
        """Compare every lane with the server's, and deal with what should not be."""
        there = {(head.scope, head.device): head for head in heads.heads}
        lanes = await replica.lanes(self._store)
        own_ids = {(scope, self._device) for scope in self._scopes}
        lost: list[tuple[Lane, int]] = []
        for lane_id in sorted(lanes.keys() | (own_ids & there.keys())):
            scope, device = lane_id
            if scope not in self._scopes:
                continue
            head = there.get(lane_id)
            lane = lanes.get(lane_id) or self._empty(scope, device)
            n = head.n if head is not None else 0
            if n >= self._counts_to(scope, device):
                continue  # its device was revoked, and the server has all of it that counts
            known = await replica.link(self._store, scope, device, n) if n < lane.n else None
            verdict = planning.compare(lane, head, own=device == self._device, link_there=known)
            if verdict is Verdict.FORK:
                await self._reincarnate(tally)
                raise _AgainError
            if verdict is Verdict.SPLIT:
                await self._refuse(tally, lane_id, self._split(device, n))
            elif verdict is Verdict.LOST:
                lost.append((lane, n))
            elif device == self._device and n > lane.acked_n:  # an answer was lost: it has what we did not know of
                await self._put_lane(replace(lane, acked_n=n))
            if head is not None and verdict in {Verdict.READ, Verdict.SAME} and n < lane.hw_n:
                await self._refuse(tally, lane_id, self._rolled_back(device, lane.hw_n, n))
        if lost:
            await self._heal(lost, tally)

    async def _heal(self, lost: Sequence[tuple[Lane, int]], tally: _Tally) -> None:
        """Give the server back what it lost of lanes that we hold, as it was first sent."""
        for lane, n in lost:
            end = min(lane.n, self._counts_to(lane.scope, lane.device))
            kept = await replica.sealed(self._store, lane.scope, lane.device, after=n)
            rows = planning.healing([row for row in kept if row.n_to <= end], n)
            given = 0
            for batch in planning.batches(rows, self._push_bytes):
                found = [wire_envelope.parse(data) for data in await replica.objects(self._store, batch)]
                if not found:
                    continue
                for result in await self._sent(self._cloud.heal, found):
                    if planning.outcome(result.status) is not Outcome.TAKEN:
                        await self._refuse(tally, (lane.scope, lane.device), self._unhealed(lane.device, result))
                        break
                    given += 1
                self._on_progress(Progress(step="heal", done=given, total=len(rows)))
            tally.healed += given
            subject = _subject(lane.scope, lane.device)
            left = "" if rows and rows[-1].n_to >= end else "; the rest is not kept here"
            error = RolledBackError(
                f"the server had lost places {n + 1} to {end} of lane {_short(lane.device)};"
                f" this device gave {given} objects back{left}",
                hint="the server was restored from a backup: its operator should know",
            )
            await self._alarm(tally, error, subject, holds=False)

    # --- sealing and pushing ------------------------------------------------------------------------------------------

    async def _pushed(self, tally: _Tally) -> None:
        """Seal and send until the server has confirmed everything that this device wrote."""
        while True:
            await self._send_sealed(tally)
            sealed = await self._store.write(self._seal)
            if not sealed:
                return
            tally.ops_sent += sealed

    def _seal(self, tx: Transaction) -> int:
        """Seal the next ops into objects that continue our lanes. Returns how many ops."""
        state = replica.state_in(tx)
        assert state is not None  # noqa: S101 - a round begins with it
        outgoing = tx.unsent(state.sealed_seq, SYNC.seal_ops)
        if not outgoing:
            return 0
        bindings = {one.project: one for one in replica.bindings_in(tx)}
        placed = replica.placed(tx, {one.entity for one in outgoing})
        routes, new = planning.routed(
            outgoing,
            home=self._member.home,
            placed=placed,
            bindings=bindings,
            first_op=lambda entity: replica.first_op(tx, entity, self._store.device),
        )
        replica.place(tx, new)
        for scope, entries in sorted(routes.items()):
            if scope not in self._scopes:
                continue  # a limited device's own notes outside its scopes stay on it
            for run in planning.cut(entries):
                self._keep_own(tx, scope, packing.segments(self._next(tx, scope), run, self._hand))
        last = outgoing[-1].seq
        replica.set_state(tx, sealed_seq=last)
        # What was erased before it was sealed is in no object.
        replica.settle_erased(tx, self._device, [one.seq for one in outgoing])
        return len(outgoing)

    def _next(self, tx: Transaction, scope: bytes) -> Place:
        lane = replica.lane_in(tx, scope, self._device) or self._empty(scope, self._device)
        epoch = self._member.current_epoch(scope)
        return Place(
            account=self._member.account,
            scope=scope,
            device=self._device,
            n=lane.n + 1,
            prev=lane.tip,
            suite=int(self._member.suite(scope)),
            epoch=epoch,
            key=self._member.scope_key(scope, epoch),
        )

    def _keep_own(self, tx: Transaction, scope: bytes, made: Sequence[Opened]) -> None:
        self._keep(tx, made)
        lane = replica.lane_in(tx, scope, self._device) or self._empty(scope, self._device)
        n, tip = made[-1].envelope.header.n_to, made[-1].envelope.end
        replica.put_lane(tx, replace(lane, n=n, tip=tip, hw_n=n, hw_tip=tip))

    def _keep(self, tx: Transaction, found: Sequence[Opened]) -> None:
        """Keep objects as they are sent, and the links of their ends."""
        for one in found:
            header, (low, high) = one.envelope.header, packing.seqs([one])
            data = one.envelope.data
            replica.keep_sealed(
                tx,
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
            replica.keep_link(tx, header.scope, header.device, header.n_to, one.envelope.end)

    async def _send_sealed(self, tally: _Tally) -> None:
        """Send what is sealed and not confirmed."""
        for scope in self._scopes:
            while True:
                lane = await self._own_lane(scope)
                rows = await replica.sealed(self._store, scope, self._device, after=lane.acked_n)
                if not rows:
                    break
                batch = planning.batches(rows, self._push_bytes)[0]
                found = [wire_envelope.parse(data) for data in await replica.objects(self._store, batch)]
                results = await self._sent(self._cloud.push, found)
                await self._answered(lane, found, results, tally)
                self._on_progress(Progress(step="push", done=results[-1].n, total=lane.n))

    async def _sent(
        self, send: Callable[[Sequence[Envelope]], Awaitable[tuple[Pushed, ...]]], found: Sequence[Envelope]
    ) -> tuple[Pushed, ...]:
        """Send objects, in halves when something on the way refuses the body's size, and remember what passed."""
        try:
            return await send(found)
        except TooLargeError:
            if len(found) == 1:
                raise
        half = len(found) // 2
        size = sum(len(one.data) for one in found[:half])
        self._push_bytes = max(size, 1)
        first = await self._sent(send, found[:half])
        if any(planning.outcome(one.status) is not Outcome.TAKEN for one in first):
            return first
        return first + await self._sent(send, found[half:])

    async def _answered(self, lane: Lane, sent: Sequence[Envelope], results: Sequence[Pushed], tally: _Tally) -> None:
        """Take over what the server confirms of a lane of ours, and act on what it does not."""
        failed = next((one for one in results if planning.outcome(one.status) is not Outcome.TAKEN), None)
        last = failed or results[-1]
        echoed = lane.tip if last.n == lane.n else await replica.link(self._store, lane.scope, lane.device, last.n)
        forked = last.n > lane.n or (last.n > 0 and echoed is not None and echoed != last.tip)
        if forked or (failed is not None and planning.outcome(failed.status) is Outcome.FORK):
            await self._reincarnate(tally)
            raise _AgainError
        if failed is None and last.n < results[-1].n_to:
            raise MalformedError(
                f"{self._cloud.origin} took objects, and then said that it does not have them",
                hint="tell its operator; nothing was counted as sent",
            )
        if last.n != lane.acked_n:
            if last.n < lane.acked_n:
                tally.healed += lane.acked_n - last.n
                error = self._rolled_back(lane.device, lane.acked_n, last.n)
                await self._alarm(tally, error, _subject(lane.scope, lane.device), holds=False)
            await self._put_lane(replace(lane, acked_n=last.n))
        if failed is None:
            return
        what = planning.outcome(failed.status)
        if what is Outcome.RESEAL:
            await self._member.refresh(self._cloud)
            epoch = self._member.current_epoch(lane.scope)
            if any(one.header.n_from == failed.n_from and one.header.epoch == epoch for one in sent):
                raise self._unsent(failed)
            await self._store.write(lambda tx: self._reseal(tx, lane.scope, last.n))
        elif what is Outcome.STOP:
            raise self._unsent(failed)
        elif last.n == lane.acked_n:  # a gap right behind what it has: it contradicts itself
            raise MalformedError(
                f"{self._cloud.origin} refuses the object that follows the last one it says it has",
                hint="tell its operator; nothing was counted as sent",
            )

    def _reseal(self, tx: Transaction, scope: bytes, after: int) -> None:
        """Seal what the server has not taken again, under the epoch of now: the same ops at the same places."""
        before = [
            packing.opened(envelope, self._key(envelope))
            for envelope in map(wire_envelope.parse, replica.drop_sealed(tx, scope, self._device, after=after))
        ]
        lane = replica.lane_in(tx, scope, self._device)
        assert lane is not None  # noqa: S101 - something of it was pushed
        tip = before[0].envelope.header.prev if before else lane.tip
        replica.put_lane(tx, replace(lane, n=after, tip=tip, acked_n=after))
        for one in before:
            self._keep_own(tx, scope, packing.resealed(self._next(tx, scope), one, self._hand))

    async def _passed_over(self) -> bool:
        """Move the cursor behind what this device has just sent, if nothing of another stands before it."""
        heads = await self._cloud.heads()
        lanes = await replica.lanes(self._store)
        for head in heads.heads:
            lane = lanes.get((head.scope, head.device))
            if self._mine_to_read(head.scope) and (lane is None or (head.n, head.tip) != (lane.n, lane.tip)):
                return False
        await self._store.write(lambda tx: replica.set_state(tx, cursor=heads.cursor))
        return True

    # --- pulling ------------------------------------------------------------------------------------------------------

    async def _pulled(self, heads: Heads, tally: _Tally, wait_s: float) -> None:
        """Read what other devices wrote, page by page, until there is no more."""
        state = await replica.state(self._store)
        assert state is not None  # noqa: S101 - a round begins with it
        cursor = state.cursor
        furthest: dict[LaneId, int] = {}  # a server that hands out the same for ever must not keep us for ever
        while True:
            self._check_disk()
            try:
                page = await self._cloud.pull(
                    cursor,
                    limit=SYNC.pull_bytes,
                    wait_s=wait_s,
                    scopes=self._scopes if self._member.limited else (),
                )
            except (InvalidError, RolledBackError) as error:
                if isinstance(error, (MalformedError, TooLargeError)) or cursor == heads.cursor:
                    raise
                # It does not know its own cursor, or was set back behind it. `_settled` reads up to the heads by lane.
                await self._store.write(lambda tx: replica.set_state(tx, cursor=heads.cursor))
                return
            wait_s = 0
            if self._strange(state):
                raise _AgainError
            if page.cursor == cursor and page.head == cursor and not page.objects:
                return
            further = {one.lane: one.header.n_to for one in page.objects if one.header.n_to > furthest.get(one.lane, 0)}
            if page.cursor == cursor or not (further or page.cursor == page.head):
                raise WithheldError(
                    f"{self._cloud.origin} says that there are more objects, and hands out none",
                    hint="tell its operator; nothing was lost here",
                )
            furthest |= further
            await self._taken(page.objects, tally, cursor=page.cursor)
            tally.pages += bool(page.objects)
            cursor = page.cursor
            if cursor == page.head:
                return

    async def _taken(self, objects: Sequence[Envelope], tally: _Tally, *, cursor: str | None) -> None:
        """Check and open some objects, and apply what holds, together with the cursor behind them."""
        if any(self._ahead_of_log(envelope) for envelope in objects):
            await self._member.refresh(self._cloud)
        lanes = await replica.lanes(self._store)
        groups: dict[LaneId, list[Envelope]] = {}
        for envelope in objects:
            groups.setdefault(envelope.lane, []).append(envelope)
        accepted: list[tuple[Lane, list[Opened]]] = []
        for lane_id, group in groups.items():
            scope, device = lane_id
            if not self._mine_to_read(scope):
                continue
            lane = lanes.get(lane_id) or self._empty(scope, device)
            run = [one for one in group if one.header.n_to <= self._counts_to(scope, device)]
            if not run:
                continue
            try:
                if device == self._device:
                    await self._check_own(lane, run)
                    continue
                opened = await self._checked(lane, run, tally)
            except _REFUSED as error:
                await self._refuse(tally, lane_id, error)
                continue
            if opened:
                accepted.append((lane, opened))
        await self._applied(accepted, tally, cursor=cursor)

    async def _check_own(self, lane: Lane, run: Sequence[Envelope]) -> None:
        """Compare objects of our own lane with what we sent."""
        for envelope in run:
            n = envelope.header.n_to
            ours = lane.tip if n == lane.n else await replica.link(self._store, lane.scope, lane.device, n)
            if ours is not None and ours != envelope.end:
                raise BrokenChainError(f"the server holds another place {n} of this device's own lane", hint=_VERIFY)
            if n > lane.n:
                self._expected(envelope)
                if not signed_by(envelope, self._keys_of(envelope)):
                    raise BadSignatureError(f"place {n} of this device's own lane is not signed by it", hint=_VERIFY)
                raise _AgainError  # a copy of this store wrote it meanwhile: the heads show it now

    async def _checked(self, lane: Lane, run: Sequence[Envelope], tally: _Tally) -> list[Opened]:
        """Return what of a run of one lane holds and is new, opened. Raises when its first new object is refused."""
        new: list[Envelope] = []
        for envelope in run:
            self._expected(envelope)
            if envelope.header.n_to <= lane.n:
                known = await replica.link(self._store, lane.scope, lane.device, envelope.header.n_to)
                if known is not None and known != envelope.end:
                    raise self._split(lane.device, envelope.header.n_to)
            else:
                new.append(envelope)
        if not new or new[0].header.n_from > lane.n + 1:
            return []  # a hole: `_settled` reads the lane from where it begins
        first: list[Envelope] = []
        if new[0].header.n_from <= lane.n:  # a pack over the end of what we hold
            first = [new.pop(0)]
            await self._check_over(lane, first[0])
        n, prev = (first[0].header.n_to, first[0].end) if first else (lane.n, lane.tip)
        good, error = self._good(new, n, prev)
        opened: list[Opened] = []
        for envelope in first + good:
            try:
                opened.append(packing.opened(envelope, self._key(envelope)))
            except _REFUSED as refusal:
                error = refusal
                break
            await self._sleep(0)
        if error is not None:
            if not opened:
                raise error
            await self._refuse(tally, (lane.scope, lane.device), error)
        return opened

    def _good(self, run: Sequence[Envelope], n: int, prev: bytes) -> tuple[list[Envelope], ScrubjayError | None]:
        """Return the objects of a run up to the first that does not hold, and why that one does not."""
        if not run:
            return [], None
        try:
            wire_envelope.check_run(run, n=n, prev=prev, keys=self._keys_of)
        except _REFUSED as error:
            # The last signature vouched for all of them. Without it each has to stand for itself.
            for place in range(len(run)):
                try:
                    wire_envelope.check_run(run[place : place + 1], n=n, prev=prev, keys=self._keys_of)
                except _REFUSED as first:
                    return list(run[:place]), first
                n, prev = run[place].header.n_to, run[place].end
            return list(run), error
        return list(run), None

    async def _check_over(self, lane: Lane, pack: Envelope) -> None:
        """Check a pack that begins within what we hold and ends beyond it."""
        header = pack.header
        if header.kind != ObjectKind.PACK or not signed_by(pack, self._keys_of(pack)):
            raise BadSignatureError(
                f"place {header.n_from} of lane {_short(lane.device)} is not signed by its device", hint=_VERIFY
            )
        before = await replica.link(self._store, lane.scope, lane.device, header.n_from - 1)
        if header.n_from == 1:
            before = lane_root(header.account, header.scope, header.device)
        if before is not None and before != header.prev:
            raise self._split(lane.device, header.n_from)

    def _expected(self, envelope: Envelope) -> None:
        """Check that an object may stand where it stands: this account, a known device, the scope's own mode."""
        header, state = envelope.header, self._member.state
        where = f"place {header.n_from} of lane {_short(header.device)}"
        if header.account != self._member.account:
            raise BrokenChainError(f"{where} is of another account", hint=_VERIFY)
        scope, device = state.scopes.get(header.scope), state.devices.get(header.device)
        if device is None or scope is None:
            raise BadSignatureError(f"{where} is of a device or scope that the account does not know", hint=_VERIFY)
        if header.suite != scope.suite:
            raise BadSignatureError(f"{where} has another encryption than its scope has", hint=_VERIFY)
        if header.kind not in wire_envelope.LANE_KINDS:
            raise MalformedError(
                f"{where} is of a kind that this version does not expect there", hint="update scrubjay"
            )
        if header.epoch > scope.epoch:
            raise WrongKeyError(f"{where} is sealed under an epoch that the account does not know", hint=_VERIFY)
        end = (device.ends or {}).get(header.scope)
        if end is not None and header.n_to == end[0] and envelope.end != end[1]:
            raise self._split(header.device, header.n_to)
        if header.n_to > self._counts_to(header.scope, header.device):
            raise RevokedError(
                f"{where} was written after its device was revoked, and is not read",
                hint="nothing needs to be done; scrubjay sync acknowledge clears the alarm",
            )

    async def _applied(
        self,
        accepted: Sequence[tuple[Lane, Sequence[Opened]]],
        tally: _Tally,
        *,
        cursor: str | None,
        down: bool = False,
    ) -> None:
        """Write opened objects and what follows from them, in one transaction. `down`: below what we hold."""

        def work(tx: Transaction) -> list[tuple[int, int, int, bool]]:
            told = []
            for lane, found in accepted:
                told.append(self._receive(tx, lane, found))
                self._keep(tx, found)
                first, last = found[0].envelope, found[-1].envelope
                if down:
                    changed = replace(lane, low=first.header.n_from, low_prev=first.header.prev)
                else:
                    n, tip = last.header.n_to, last.end
                    changed = replace(lane, n=n, tip=tip, hw_n=n, hw_tip=tip)
                replica.put_lane(tx, changed)
            if cursor is not None:
                replica.set_state(tx, cursor=cursor)
            return told

        for applied, conflicts, parked, erased in await self._store.write(work):
            tally.ops_received += applied
            tally.conflicts += conflicts
            tally.parked += parked
            tally.erased |= erased
        for lane, found in accepted:
            for one in found:
                if one.beacon is not None:
                    await self._heard(lane.device, one.beacon, tally)

    def _receive(self, tx: Transaction, lane: Lane, found: Sequence[Opened]) -> tuple[int, int, int, bool]:
        device = lane.device.hex()
        entries = [entry for one in found for entry in one.entries]
        for one in found:
            if one.part is not None:
                seq, number, count, data = one.part
                whole = replica.keep_part(tx, device, seq, place=number, parts=count, data=data)
                if whole is not None:
                    entries.append((seq, _joined(whole)))
            if one.beacon is not None:
                replica.saw(tx, lane.device, one.beacon.at)
        if not entries:
            return 0, 0, 0, False
        if lane.scope != self._member.home:
            replica.place(tx, {entity: lane.scope for seq, data in entries for entity in _entities(data, device, seq)})
        told = tx.receive(device, entries)
        return told.applied, told.conflicts, told.parked, told.erased

    async def _heard(self, device: bytes, beacon: Beacon, tally: _Tally) -> None:
        """Compare what another device has seen with what the server showed us."""
        lanes = await replica.lanes(self._store)
        unseen: list[Lane] = []
        for (scope, owner), (n, tip) in sorted(beacon.heads.items()):
            lane = lanes.get((scope, owner))
            if not self._mine_to_read(scope):
                continue
            known = await replica.link(self._store, scope, owner, n)
            if known is not None and known != tip:
                error = SplitError(
                    f"device {_short(device)} was shown another lane of {_short(owner)} than this one",
                    hint="the server shows different histories: " + _VERIFY,
                )
                await self._alarm(tally, error, _subject(scope, owner))
            elif n > (lane.hw_n if lane is not None else 0) and owner != self._device:
                # It has seen more than the server shows us; if that stays so, `_settled` says it.
                unseen.append(replace(lane or self._empty(scope, owner), hw_n=n, hw_tip=tip))
        for lane in unseen:
            await self._put_lane(lane)
        entries = await replica.log(self._store)
        if beacon.log_seq >= len(entries):
            await self._member.refresh(self._cloud)
            entries = await replica.log(self._store)
        if beacon.log_seq >= len(entries) or accountlog.read(entries[beacon.log_seq]).hash != beacon.log_head:
            error = SplitError(
                f"device {_short(device)} was shown another account log than this one",
                hint="the server shows different histories: " + _VERIFY,
            )
            await self._alarm(tally, error, "log")

    # --- reading by lane ----------------------------------------------------------------------------------------------

    async def _backfilled(self, tally: _Tally) -> None:
        """Read what a new device still lacks, from each lane's newest end backwards, the lanes in turn."""
        waiting = [lane_id for lane_id, lane in sorted((await replica.lanes(self._store)).items()) if lane.low > 1]
        total = sum(lane.n for lane in (await replica.lanes(self._store)).values())
        reach: dict[LaneId, int] = {}
        while waiting:
            for lane_id in list(waiting):
                self._check_disk()
                lane = (await replica.lanes(self._store))[lane_id]
                if lane.low <= 1 or lane_id in tally.held or not self._mine_to_read(lane.scope):
                    waiting.remove(lane_id)
                    continue
                try:
                    reach[lane_id] = await self._one_back(lane, reach.get(lane_id, SYNC.reach_places), tally)
                except _REFUSED as error:
                    await self._refuse(tally, lane_id, error)
                tally.pages += 1
            left = sum(lane.low - 1 for lane in (await replica.lanes(self._store)).values())
            self._on_progress(Progress(step="bootstrap", done=total - left, total=total))

    async def _one_back(self, lane: Lane, reach: int, tally: _Tally) -> int:
        """Read the objects before what we hold of a lane, `reach` places or the pack that holds them.

        Returns how far to reach the next time, so that a page is filled and not overrun.
        """
        start = max(1, lane.low - reach)
        got = await self._cloud.lane(lane.scope, lane.device, start=start, limit=SYNC.pull_bytes)
        page = [envelope for envelope in got if envelope.header.n_from < lane.low]
        if not page:
            raise WithheldError(
                f"the server does not hand out places up to {lane.low - 1} of lane {_short(lane.device)}", hint=_VERIFY
            )
        if page[-1].header.n_to < lane.low - 1 and len(page) == len(got) and reach > 1:
            return max(1, reach // 2)  # the page was full before it came so far
        above, prev, found = lane.low, lane.low_prev, []
        for envelope in reversed(page):
            await self._check_below(lane, envelope, above, prev)
            found.append(packing.opened(envelope, self._key(envelope)))
            above, prev = envelope.header.n_from, envelope.header.prev
            await self._sleep(0)
        await self._applied([(lane, found[::-1])], tally, cursor=None, down=True)
        filled = sum(len(envelope.data) for envelope in got) > SYNC.pull_bytes // 2
        return reach if filled else reach * 2

    async def _check_below(self, lane: Lane, envelope: Envelope, above: int, prev: bytes) -> None:
        """Check that an object leads to place `above`, which names `prev` as the link before it."""
        header = envelope.header
        self._expected(envelope)
        broken = header.n_to < above - 1 or (header.n_to == above - 1 and envelope.end != prev)
        if envelope.lane != (lane.scope, lane.device) or broken or header.n_from >= above:
            raise BrokenChainError(
                f"place {header.n_to} of lane {_short(lane.device)} does not lead to place {above}", hint=_VERIFY
            )
        if header.n_to >= above:  # packed since we read what stands above it
            known = await replica.link(self._store, lane.scope, lane.device, header.n_to)
            if header.kind != ObjectKind.PACK or (known is not None and known != envelope.end):
                raise self._split(lane.device, header.n_to)
        # Whatever a checked object names as `prev` is vouched for; a pack's link says nothing of its body.
        vouched = above <= lane.n and header.kind != ObjectKind.PACK
        if not vouched and not signed_by(envelope, self._keys_of(envelope)):
            raise BadSignatureError(
                f"place {header.n_to} of lane {_short(lane.device)} is not signed by its device", hint=_VERIFY
            )
        if header.n_from == 1 and header.prev != lane_root(header.account, header.scope, header.device):
            raise BrokenChainError(f"lane {_short(lane.device)} does not begin at its first place", hint=_VERIFY)

    async def _settled(self, heads: Heads, tally: _Tally) -> bool:
        """Read by lane what is still missing, and say whether nothing is, on either side."""
        shown = {(head.scope, head.device): head.n for head in heads.heads}
        known = await replica.lanes(self._store)
        for lane_id in sorted(known.keys() | shown.keys()):
            if lane_id[1] == self._device or not self._mine_to_read(lane_id[0]):
                continue
            lane = known.get(lane_id) or self._empty(*lane_id)
            wanted = min(max(lane.hw_n, shown.get(lane_id, 0)), self._counts_to(*lane_id))
            if lane.n < wanted:
                await self._read_on(lane, wanted, tally)
        state = await replica.state(self._store)
        lanes = await replica.lanes(self._store)
        return (
            state is not None
            and not tally.held
            and (self._member.read_only or state.sealed_seq >= self._store.last_seq)
            and all(lane.acked_n == lane.n for (_, device), lane in lanes.items() if device == self._device)
            and all(lane.low <= 1 for (scope, _), lane in lanes.items() if self._mine_to_read(scope))
        )

    async def _read_on(self, lane: Lane, wanted: int, tally: _Tally) -> None:
        """Read a lane from its end here to a place that was shown: a hole, or an object that was refused before."""
        lane_id = (lane.scope, lane.device)
        while lane.n < wanted:
            self._check_disk()
            page = await self._cloud.lane(*lane_id, start=lane.n + 1, limit=SYNC.pull_bytes)
            if not page:
                error = WithheldError(
                    f"the server does not hand out places {lane.n + 1} to {wanted} of lane {_short(lane.device)}",
                    hint="if the server was restored from a backup, the device that wrote them gives them back; "
                    + _VERIFY,
                )
                await self._refuse(tally, lane_id, error)
                return
            if any(envelope.lane != lane_id for envelope in page):
                await self._refuse(
                    tally, lane_id, BrokenChainError("the server answered with another lane", hint=_VERIFY)
                )
                return
            if page[0].header.n_from > lane.n + 1:
                error = WithheldError(
                    f"the server left out place {lane.n + 1} of lane {_short(lane.device)}", hint=_VERIFY
                )
                await self._refuse(tally, lane_id, error)
                return
            await self._taken(page, tally, cursor=None)
            tally.pages += 1
            after = (await replica.lanes(self._store)).get(lane_id) or lane
            if after.n <= lane.n:
                return  # refused, and said so
            lane = after

    # --- a copy of this store -----------------------------------------------------------------------------------------

    async def _reincarnate(self, tally: _Tally) -> None:
        """Go on under a new device id with what was never confirmed, and leave the rest to the old one.

        Only on proof: objects that the server shows at places of our own lanes must bear our own signature. The ops
        keep their ids, so that one which the server had after all is the same op twice.
        """
        common: dict[bytes, int] = {}
        theirs: dict[int, bytes] = {}
        proved = False
        for scope in self._scopes:
            common[scope], found, shown = await self._diverged(scope)
            theirs |= found
            proved |= shown
        if not proved:
            raise SplitError(
                f"{self._cloud.origin} says that a copy of this store wrote as this device, and does not show it",
                hint="do not trust this server; nothing was changed here",
            )
        old = self._device
        after = await self._unshared(common, theirs)
        new = self._entropy(16).hex()
        lanes = await replica.lanes(self._store)

        def work(tx: Transaction) -> int:
            for scope, n in common.items():
                lane = lanes.get((scope, old))
                if lane is None:
                    continue
                tip = replica.link_in(tx, scope, old, n) if n else None
                if tip is None:
                    replica.drop_lane(tx, scope, old)
                    continue
                replica.drop_sealed(tx, scope, old, after=n)
                tx.fetch("delete from lane where scope = ? and device = ?", (scope, old))
                replica.put_lane(tx, replace(lane, n=n, tip=tip, acked_n=0, hw_n=n, hw_tip=tip))
            replica.settle_erased(tx, old, [seq for seq in theirs if seq > after])
            replica.set_state(tx, sealed_seq=0, beacon_at=0, beacon_n=0)
            return tx.reincarnate(new, after)

        moved = await self._store.write(work)
        tally.reincarnated = True
        log.warning("sync reincarnated old=%s new=%s ops=%d", _short(old), new[:8], moved)
        error = ForkError(
            f"another copy of this store wrote as device {_short(old)}; this one goes on as device {new[:8]}"
            f" with {moved} changes that only it had",
            hint="nothing was lost. A restored backup or a copied data folder causes this; else look for a copy",
        )
        await self._alarm(tally, error, old.hex(), holds=False)

    async def _diverged(self, scope: bytes) -> tuple[int, dict[int, bytes], bool]:
        """Return up to where the server's lane of ours is what we sent, and what follows: op ids by place.

        Also whether anything follows, or differs, that bears our own signature.
        """
        lane = (await replica.lanes(self._store)).get((scope, self._device)) or self._empty(scope, self._device)
        root = lane_root(self._member.account, scope, self._device)
        n, prev, common, found = 0, root, 0, dict[int, bytes]()
        parts: dict[int, dict[int, bytes]] = {}
        proved = False
        while page := await self._cloud.lane(scope, self._device, start=n + 1, limit=SYNC.pull_bytes):
            for envelope in page:
                self._expected(envelope)
            wire_envelope.check_run(page, n=n, prev=prev, keys=self._keys_of)
            for envelope in page:
                n, prev = envelope.header.n_to, envelope.end
                if not found and not proved and await self._have(lane, n, prev):
                    common = n
                    continue
                proved = True
                opened = packing.opened(envelope, self._key(envelope))
                entries = list(opened.entries)
                if opened.part is not None:
                    seq, number, count, data = opened.part
                    pieces = parts.setdefault(seq, {})
                    pieces[number] = data
                    if len(pieces) == count:
                        entries.append((seq, joined(pieces[place] for place in range(count))))
                device = self._device.hex()
                found |= {seq: _op_id(data, device, seq) for seq, data in entries if data is not None}
        return common, found, proved

    async def _have(self, lane: Lane, n: int, tip: bytes) -> bool:
        if n == lane.n:
            return tip == lane.tip
        return n < lane.n and await replica.link(self._store, lane.scope, lane.device, n) == tip

    async def _unshared(self, common: Mapping[bytes, int], theirs: Mapping[int, bytes]) -> int:
        """Return the place of the last op of this device before the first that the server does not have."""
        state = await replica.state(self._store)
        assert state is not None  # noqa: S101 - a round begins with it
        ours = await replica.op_ids(self._store, self._device)
        missing = [seq for seq, op_id in ours.items() if seq > state.sealed_seq and theirs.get(seq) != op_id]
        for scope, n in common.items():
            rows = await replica.sealed(self._store, scope, self._device, after=n)
            for data in await replica.objects(self._store, rows):
                envelope = wire_envelope.parse(data)
                if envelope.header.n_from <= n:
                    continue
                opened = packing.opened(envelope, self._key(envelope))
                seqs = [seq for seq, _ in opened.entries] + ([opened.part[0]] if opened.part else [])
                missing += [seq for seq in seqs if seq in ours and theirs.get(seq) != ours[seq]]
        # Not the store's last place of now: what was written since `ours` was read is of this device alone.
        return min(missing) - 1 if missing else max(ours, default=0)

    # --- keeping watch, keeping small ---------------------------------------------------------------------------------

    async def _beaconed(self, tally: _Tally) -> None:
        """Tell the other devices, once a day and once in a thousand objects, what this one has seen."""
        state = await replica.state(self._store)
        assert state is not None  # noqa: S101 - a round begins with it
        home = self._member.home
        if home not in self._scopes:
            return
        lane = await self._own_lane(home)
        fresh = 0 <= self._now() - state.beacon_at < SYNC.beacon_ms
        if state.beacon_at and fresh and lane.n - state.beacon_n < SYNC.beacon_places:
            return
        lanes = await replica.lanes(self._store)
        seen = Beacon(
            at=self._now(),
            heads={lane_id: (one.n, one.tip) for lane_id, one in lanes.items() if one.n and one.low <= one.n},
            log_seq=self._member.state.seq,
            log_head=self._member.state.head,
        )

        def work(tx: Transaction) -> None:
            place = self._next(tx, home)
            self._keep_own(tx, home, [packing.beacon(place, seen, self._hand)])
            replica.set_state(tx, beacon_at=seen.at, beacon_n=place.n)

        await self._store.write(work)
        await self._send_sealed(tally)

    async def _packed(self, tally: _Tally) -> None:
        """Put packs in the place of many small objects, and of those that hold words which were erased."""
        lanes = await replica.lanes(self._store)
        for device in sorted({lane.device for lane in lanes.values()}):
            mine = [lane for lane in lanes.values() if lane.device == device and lane.scope in self._scopes]
            mine = [lane for lane in mine if lane.low <= 1 and (lane.scope, device) not in tally.held]
            await self._packed_of(device, mine, tally)

    async def _packed_of(self, device: bytes, lanes: Sequence[Lane], tally: _Tally) -> None:
        own = device == self._device
        erased = await replica.erased(self._store, device)
        due = {seq for seq, at in erased.items() if not 0 <= self._now() - at < SYNC.repack_after_ms}
        found: set[int] = set()
        for lane in lanes:
            confirmed = lane.acked_n if own else lane.n
            rows = await replica.sealed(self._store, lane.scope, device)
            ranges = planning.packs([row for row in rows if row.n_to <= confirmed], due)
            if any(row.n_to > confirmed for row in rows):
                found |= due  # what is not confirmed yet may hold them
            if not ranges:
                continue
            if own or await self._adopts((lane.scope, device)):
                for one in ranges:
                    found |= await self._pack(lane, one, set(erased), tally)
            else:
                stale = [one.rows[0] for one in ranges if one.erasing]
                found |= await self._repacked_by_owner(lane, stale, due, tally)
        if due - found:  # they stand in nothing that is kept or served
            await self._store.write(lambda tx: replica.settle_erased(tx, device, due - found))

    async def _adopts(self, lane_id: LaneId) -> bool:
        """Say whether this device packs a lane whose device is gone.

        Who revoked that device has adopted its lanes. Where that one is gone too, the oldest full device does it now.
        """
        scope, device = lane_id
        state = self._member.state
        if not state.devices[device].revoked or self._member.limited:
            return False
        in_force = [one.id for one in state.active() if one.full]
        adopters = [one for one in state.adopters.get(lane_id, ()) if one in in_force]
        if adopters or in_force[:1] != [self._device]:
            return adopters[:1] == [self._device]
        body = {1: scope, 2: device, 3: self._device}
        await self._member.append(self._cloud, lambda _state, _ring: Draft(entries=[(EntryType.LANE_ADOPT, body)]))
        return True

    async def _pack(self, lane: Lane, chosen: planning.Range, erased: set[int], tally: _Tally) -> set[int]:
        """Send one pack, and keep it in the place of what it covers once the server has it.

        Returns which erased ops stood in what it covers.
        """
        covered = [wire_envelope.parse(data) for data in await replica.objects(self._store, chosen.rows)]
        if len(covered) != len(chosen.rows):
            return erased
        opened = [packing.opened(envelope, self._key(envelope)) for envelope in covered]
        entries: dict[int, bytes | None] = {seq: data for one in opened for seq, data in one.entries}
        parts = {one.part[0] for one in opened if one.part is not None}
        gone = erased & (entries.keys() | parts)
        if parts - gone or (chosen.erasing and not gone):
            # Parts of a living op stay as they are. What was erased may stand in another lane's object.
            return gone
        entries |= dict.fromkeys(parts)
        if gone:
            device = lane.device.hex()
            current = await self._store.write(
                lambda tx: {one.seq: one.data for one in tx.ops_between(device, min(gone), max(gone))}
            )
            entries |= {seq: current.get(seq) for seq in gone}
        epoch = self._member.current_epoch(lane.scope)
        place = Place(
            account=self._member.account,
            scope=lane.scope,
            device=lane.device,
            n=covered[0].header.n_from,
            prev=covered[0].header.prev,
            suite=int(self._member.suite(lane.scope)),
            epoch=epoch,
            key=self._member.scope_key(lane.scope, epoch),
        )
        made = packing.pack(place, covered, sorted(entries.items()), self._hand)
        if made is None:
            return gone  # what it stands for is as small as it can be
        result = (await self._cloud.pack([made]))[0]
        outcome = planning.outcome(result.status)
        if outcome is Outcome.RESEND and await self._took_over(lane, made.header.n_from, tally):
            return gone  # and what stands there now is planned again, in the next round
        if outcome is not Outcome.TAKEN:
            await self._refuse(tally, (lane.scope, lane.device), self._unsent(result))
            return gone
        low, high = (min(entries), max(entries)) if entries else (0, 0)

        def work(tx: Transaction) -> None:
            header = made.header
            replica.keep_sealed(
                tx,
                Sealed(
                    scope=header.scope,
                    device=header.device,
                    n_from=header.n_from,
                    n_to=header.n_to,
                    seq_low=low,
                    seq_high=high,
                    size=len(made.data),
                    tip=made.end,
                ),
                made.data,
            )
            replica.settle_erased(tx, lane.device, gone)

        await self._store.write(work)
        tally.packed += len(covered)
        self._on_progress(Progress(step="pack", done=len(covered), total=len(covered)))
        return gone

    async def _took_over(self, lane: Lane, n: int, tally: _Tally) -> bool:
        """Keep the pack that the server has at a place in the place of what we hold there; say whether there is one.

        The answer to a pack of ours was lost, and ours was planned anew since, with other ends: a server never cuts one
        object in two. Or somebody else packs this lane too.
        """
        served = await self._served_pack(lane, n, tally)
        if served is None:
            return False
        header = served.envelope.header
        rows = await replica.sealed(self._store, lane.scope, lane.device)
        ends = {row.n_from for row in rows} & {header.n_from}, {row.n_to for row in rows} & {header.n_to}
        if not all(ends):  # it would cut one of ours in two
            return False
        await self._store.write(lambda tx: self._keep(tx, [served]))
        return True

    async def _served_pack(self, lane: Lane, n: int, tally: _Tally) -> Opened | None:
        """Return the pack that the server has at a place of a lane, checked; None when there is none that we know."""
        page = await self._cloud.lane(lane.scope, lane.device, start=n, limit=1)
        if not page or page[0].header.kind != ObjectKind.PACK or page[0].lane != (lane.scope, lane.device):
            return None
        pack = page[0]
        known = await replica.link(self._store, lane.scope, lane.device, pack.header.n_to)
        try:
            self._expected(pack)
            if known is not None and (known != pack.end or not signed_by(pack, self._keys_of(pack))):
                raise self._split(lane.device, pack.header.n_to)
            opened = packing.opened(pack, self._key(pack))
        except _REFUSED as error:
            await self._refuse(tally, (lane.scope, lane.device), error)
            return None
        return None if known is None else opened

    async def _repacked_by_owner(self, lane: Lane, rows: Sequence[Sealed], due: set[int], tally: _Tally) -> set[int]:
        """Take over what a lane's owner packed anew after a forget, so that no device gives the old words back.

        Returns which erased ops stand in these objects. Until the owner has been here, they are looked at again after
        a while.
        """
        found = set[int]()
        for row in rows:
            held = [seq for seq in due if row.seq_low <= seq <= row.seq_high]
            found.update(held)
            now_said = await self._store.write(partial(self._said_now, lane.device, held))
            opened = await self._served_pack(lane, row.n_from, tally)
            if opened is None:
                continue
            said = dict(opened.entries)
            clean = [seq for seq in held if seq not in said or said[seq] == now_said.get(seq)]
            if clean == held:
                await self._store.write(partial(self._swap, opened, held))
        return found

    def _said_now(self, device: bytes, seqs: Sequence[int], tx: Transaction) -> dict[int, bytes | None]:
        """Return what some erased ops of a device say by now, and put off looking at them again."""
        replica.wait_erased(tx, device, seqs, self._now())
        return {one.seq: one.data for one in tx.ops_between(device.hex(), min(seqs), max(seqs))}

    def _swap(self, pack: Opened, seqs: Sequence[int], tx: Transaction) -> None:
        self._keep(tx, [pack])
        replica.settle_erased(tx, pack.envelope.header.device, seqs)

    async def _kept_small(self) -> None:
        """Let go of other devices' oldest objects when they take too much room; the server has them."""
        await self._store.write(lambda tx: replica.trim_sealed(tx, [self._device], SYNC.heal_bytes))

    # --- saying it ----------------------------------------------------------------------------------------------------

    async def status(self) -> Status:
        """Return where replication stands, from what is stored. Needs no network."""
        state = await replica.state(self._store) or SyncState(account=self._member.account)
        lanes = await replica.lanes(self._store)
        waiting = self._store.last_seq - state.sealed_seq
        told = []
        for (scope, device), lane in sorted(lanes.items()):
            own = device == self._device
            if own:
                rows = await replica.sealed(self._store, scope, device, after=lane.acked_n)
                waiting += sum(row.seq_high - row.seq_low + 1 for row in rows if row.seq_high)
            told.append(
                LaneStatus(
                    scope=scope,
                    device=device,
                    own=own,
                    n=lane.n,
                    acked=lane.acked_n if own else lane.n,
                    missing=lane.low - 1 + lane.hw_n - lane.n,
                )
            )
        offset = self._cloud.offset_ms
        device_state = self._member.state.devices.get(self._device)
        return Status(
            account=self._member.account,
            origin=self._cloud.origin,
            device=self._device,
            sign_key=device_state.sign_pub if device_state is not None else b"",
            pending_ops=waiting,
            lanes=tuple(told),
            round_at=Millis(state.round_at) if state.round_at is not None else None,
            error_at=Millis(state.error_at) if state.error_at is not None else None,
            error=state.error,
            alarms=tuple(await replica.alarms(self._store)),
            seen=await replica.seen(self._store),
            clock_offset_ms=offset,
            clock_off=offset is not None and abs(offset) > SYNC.clock_off_ms,
            quota_percent=self._cloud.quota_percent,
            verified_at=Millis(state.verified_at) if state.verified_at else None,
        )

    async def acknowledge(self) -> None:
        """Let go of all alarms: a person has seen them."""
        await self._store.write(replica.acknowledge)

    async def verify(self) -> Verified:
        """Read every lane again from the server and check it against the account log and what is held here."""
        async with self._alone:
            return await verify(self._store, self._member, self._cloud)

    async def inspect(self) -> Inspection:
        """Fetch exactly what the server holds, and look in it for anything that it should not have."""
        async with self._alone:
            return await inspect(self._store, self._member, self._cloud)

    async def _refuse(self, tally: _Tally, lane_id: LaneId, error: ScrubjayError) -> None:
        """Hold a lane up for the rest of the round, and say why."""
        tally.held.add(lane_id)
        await self._alarm(tally, error, _subject(*lane_id))

    async def _alarm(self, tally: _Tally, error: ScrubjayError, subject: str, *, holds: bool = True) -> None:
        """Keep an alarm; with `holds`, it is also among the round's errors."""
        if holds:
            tally.errors.append(error)
        new = await self._store.write(
            lambda tx: replica.raise_alarm(tx, error.code, subject, error.message, error.hint)
        )
        if new:
            log.warning("sync alarm code=%s subject=%s", error.code, subject[:16])

    def _split(self, device: bytes, n: int) -> SplitError:
        return SplitError(
            f"the server shows another place {n} of lane {_short(device)} than it has shown before", hint=_VERIFY
        )

    def _rolled_back(self, device: bytes, before: int, n: int) -> RolledBackError:
        return RolledBackError(
            f"the server shows lane {_short(device)} up to place {n}, and has shown or confirmed place {before}",
            hint="if the server was restored from a backup, the devices that have the rest give it back; " + _VERIFY,
        )

    def _unhealed(self, device: bytes, result: Pushed) -> ScrubjayError:
        return from_code(
            result.status,
            f"the server does not take back place {result.n_from} of lane {_short(device)}",
            _VERIFY,
        )

    def _unsent(self, result: Pushed) -> ScrubjayError:
        """Return the error of an object that the server does not take, and that sending again would not help."""
        if result.status == QuotaError.code:
            return QuotaError(
                "the account's storage on the server is used up",
                hint="nothing is lost: changes wait here. Ask the server's operator for more storage",
            )
        if result.status == RevokedError.code:
            return RevokedError(
                "this device was revoked: it syncs no more, and its memories stay here",
                hint="scrubjay logout, then scrubjay login asks to be added again",
            )
        return from_code(
            result.status,
            f"the server does not take place {result.n_from} of this device's lane ({result.status})",
            "nothing is lost: changes wait here. Update scrubjay; scrubjay sync verify says more",
        )

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _device(self) -> bytes:
        return bytes.fromhex(self._store.device)

    @property
    def _scopes(self) -> tuple[bytes, ...]:
        return self._member.scopes

    def _mine_to_read(self, scope: bytes) -> bool:
        """Say whether a scope is one of ours, or none that the account knows: that one is refused, not passed over."""
        return scope in self._scopes or scope not in self._member.state.scopes

    def _counts_to(self, scope: bytes, device: bytes) -> int:
        """Return the last place of a lane that counts: where its device was when it was revoked, else the furthest."""
        known = self._member.state.devices.get(device)
        if known is None or known.ends is None:
            return wire_envelope.LIMIT
        return known.ends.get(scope, (0, b""))[0]

    def _ahead_of_log(self, envelope: Envelope) -> bool:
        """Say whether an object speaks of what the account log, as far as we have read it, does not know."""
        state, header = self._member.state, envelope.header
        scope = state.scopes.get(header.scope)
        return header.device not in state.devices or scope is None or header.epoch > scope.epoch

    def _empty(self, scope: bytes, device: bytes) -> Lane:
        root = lane_root(self._member.account, scope, device)
        return Lane(scope=scope, device=device, n=0, tip=root, acked_n=0, low=1, low_prev=root, hw_n=0, hw_tip=root)

    async def _put_lane(self, lane: Lane) -> None:
        await self._store.write(lambda tx: replica.put_lane(tx, lane))

    async def _own_lane(self, scope: bytes) -> Lane:
        return (await replica.lanes(self._store)).get((scope, self._device)) or self._empty(scope, self._device)

    def _key(self, envelope: Envelope) -> bytes:
        header = envelope.header
        try:
            return self._member.scope_key(header.scope, header.epoch)
        except NotFoundError as error:
            raise WrongKeyError(error.message, hint=error.hint) from error

    def _keys_of(self, envelope: Envelope) -> tuple[bytes, ...]:
        header = envelope.header
        return self._member.state.keys_of(header.scope, header.device, pack=header.kind == ObjectKind.PACK)

    def _check_disk(self) -> None:
        free = self._free_bytes()
        if free < SYNC.free_bytes:
            raise UnavailableError(
                f"only {free // 1_048_576} MB of the disk are free: changes of other devices are not read",
                hint=f"free some space: from {SYNC.free_bytes // 1_048_576} MB on they are read. Local work goes on",
            )


def _subject(scope: bytes, device: bytes) -> str:
    return f"{scope.hex()}/{device.hex()}"


def _short(device: bytes) -> str:
    return device.hex()[:8]


def _joined(pieces: bytes) -> bytes:
    """Return the op of all its parts. What does not join is returned as it is, and the store parks it."""
    try:
        return joined([pieces])
    except MalformedError:
        return pieces


def _op_id(data: bytes, device: str, seq: int) -> bytes:
    return ops.decode(data, device=device, seq=seq).op_id


def _entities(data: bytes | None, device: str, seq: int) -> tuple[str, ...]:
    """Return what an op is about, as far as it can be read here."""
    if data is None:
        return ()
    try:
        op = ops.decode(data, device=device, seq=seq)
    except CorruptError:
        return ()  # it is parked, and placed nowhere
    return () if ops.problem(op) else (ops.owner_of(op) or ops.entity_of(op),)
