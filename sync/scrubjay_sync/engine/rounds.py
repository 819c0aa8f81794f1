"""Rounds: one look at both sides, and everything that makes them the same again, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from scrubjay.store import Store
from scrubjay.store.op_ingest import BOUNDS_NOTED
from scrubjay.store.replication_state import SyncState
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    InvalidError,
    RevokedError,
    RolledBackError,
    ScrubjayError,
    UnavailableError,
)
from scrubjay_sync import searching
from scrubjay_sync.account import recovery, shut_out
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.confinement import Outsider, confined
from scrubjay_sync.engine import bootstrap, checkpoints, comparison, packs, pull, push, snapshot_making, snapshots
from scrubjay_sync.engine.context import Context
from scrubjay_sync.engine.results import Progress, RestartRoundError, Round, Tally, UnfaithfulSnapshotError
from scrubjay_sync.engine.snapshot_making import Made
from scrubjay_sync.engine.status import Status, read_status
from scrubjay_sync.inspect import Inspection, inspect
from scrubjay_sync.policy import SYNC
from scrubjay_sync.searching import Meaning
from scrubjay_sync.teams.lanes import outsider
from scrubjay_sync.teams.log import TeamContext
from scrubjay_sync.teams.rounds import sync_teams
from scrubjay_sync.verify import Verified, verify

log = logging.getLogger(__name__)


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
        """See `Context` for the arguments."""
        self.context = Context(
            store,
            member,
            cloud,
            now=now,
            entropy=entropy,
            sleep=sleep,
            free_bytes=free_bytes,
            on_progress=on_progress,
            meaning=meaning,
        )
        self.teams = TeamContext(store, member, cloud, entropy=entropy)
        """The teams that this person is in. Whoever changes one asks `alone` for its turn."""
        self._alone = asyncio.Lock()

    async def wait_for_news(self, wait_s: float) -> pull.News | None:
        """Wait for news of other devices, at most so long, and return them for a round; None when all is as it was.

        Takes nothing in: a round may run meanwhile, and ending this costs nothing. Raises what a pull raises.
        """
        return await pull.wait_for_news(self.context, wait_s)

    async def sync(self, *, wait_s: float = 0, news: pull.News | None = None) -> Round:
        """Run one round. With `wait_s`, and nothing to do, wait that long for news of other devices.

        `news` is what waiting for them brought: taken in without being asked for again.

        Raises what ends a round: UnavailableError and TooManyError (with `retry_after`), QuotaError, RevokedError,
        SplitError when the account log was replaced, what the store raises. Local work is never harmed, and the next
        round goes on where this one stopped.
        """
        async with self._alone:
            tally = Tally()
            try:
                synced = await self._run(tally, wait_s, news)
            except ScrubjayError as error:
                await self._record_error(error)
                raise
            await self.context.store.write(
                lambda tx: tx.replication.set_state(round_at=self.context.now(), error=None, error_at=None)
            )
            return tally.result(synced=synced)

    @property
    def alone(self) -> asyncio.Lock:
        """What a round holds, so that nothing else changes what it stands on."""
        return self._alone

    async def snapshot(self, *, when_due: bool = False) -> Made:
        """Make a snapshot of the home scope for new machines to begin with, after a round. With `when_due`, only then.

        Rounds may run while it is made. Raises InvalidError on a device that makes none, ConflictError when this one
        does not hold everything, and what a round raises.
        """
        if why := snapshot_making.refusal(self.context):
            if when_due:
                return Made()
            raise InvalidError(why, hint="make it on another device: scrubjay sync snapshot")
        at = self.context.now()
        async with self._alone:
            tally = Tally()
            if not await self._run(tally, 0, None):
                raise ConflictError("this device is not in sync", hint="scrubjay sync says why; then try again")
            found = await snapshot_making.basis(self.context, at)
        if when_due and not snapshot_making.is_due(found, await snapshot_making.current(self.context)):
            return Made()
        return await snapshot_making.make(self.context, found)

    async def status(self) -> Status:
        """Return where replication stands, from what is stored. Needs no network."""
        return await read_status(self.context)

    async def acknowledge(self) -> None:
        """Let go of all alarms: a person has seen them."""
        await self.context.store.write(lambda tx: tx.replication.acknowledge())

    async def verify(self) -> Verified:
        """Read every lane again from the server and check it against the account log and what is held here."""
        async with self._alone:
            return await verify(self.context.store, self.context.member, self.context.cloud)

    async def inspect(self) -> Inspection:
        """Fetch exactly what the server holds, and look in it for anything that it should not have."""
        async with self._alone:
            return await inspect(self.context.store, self.context.member, self.context.cloud)

    async def _run(self, tally: Tally, wait_s: float, news: pull.News | None) -> bool:
        for _ in range(SYNC.rounds_again):
            try:
                return await self._run_once(tally, wait_s, news)
            except RestartRoundError:
                continue
            except UnfaithfulSnapshotError:  # a lane went on with what the snapshot had said otherwise
                await snapshots.discard(self.context, tally)
        raise UnavailableError(
            "other devices changed the account during the round, again and again", hint="scrubjay sync tries again"
        )

    async def _run_once(self, tally: Tally, wait_s: float, news: pull.News | None) -> bool:
        context = self.context
        await _follow_account(context, tally)
        while await context.store.write(lambda tx: tx.superseded.sweep()):
            tally.erased = True
        state = await _begin(context)
        await _note_bounds(context, self.teams)
        if news is not None and news.page.objects and news.follows(state) and not context.server_changed(state):
            await pull.take_in(context, news.page, tally)
        heads = await context.cloud.heads()
        if context.server_changed(state):
            state = await comparison.adopt_restored_server(context, state, heads)
        if state.cursor == "":
            state = await bootstrap.pin_lanes(context, heads)
        await comparison.compare_lanes(context, heads, tally)
        if not context.member.read_only:
            await push.push_all(context, tally)
        await bootstrap.backfill(context, tally)
        if not tally.ops_sent or not await push.skip_own_objects(context):
            await pull.pull_pages(context, heads, tally, 0)
        if not context.member.read_only:
            await checkpoints.publish(context, tally)
            await snapshot_making.drop_stale(context)
            await packs.pack_lanes(context, tally)
        await _give_vectors(context, tally)
        if tally.pages:
            await packs.trim(context)
        busy = tally.ops_sent or tally.pages or tally.repaired or tally.packed
        await self._sync_teams(tally)
        if wait_s and not busy and not tally.errors:
            await pull.pull_pages(context, heads, tally, wait_s)
        return await pull.settle(context, heads, tally)

    async def _sync_teams(self, tally: Tally) -> None:
        """Do the teams' part of a round."""
        done = await sync_teams(self.teams)
        tally.ops_sent += done.sent
        tally.ops_received += done.received
        tally.conflicts += done.conflicts
        tally.quarantined += done.quarantined
        tally.errors += done.errors

    async def _record_error(self, error: ScrubjayError) -> None:
        """Keep what ended a round, for `status`. A store that cannot be written reports that itself."""
        alarming = isinstance(error, (CorruptError, RevokedError))

        def keep(tx: Transaction) -> None:
            tx.replication.set_state(error=error.code, error_at=self.context.now())
            if alarming:
                tx.replication.raise_alarm(error.code, "", error.message, error.hint)

        try:
            await self.context.store.write(keep)
        except ScrubjayError as also:
            log.warning("sync could not note its error code=%s because=%s", error.code, also.code)


async def _follow_account(context: Context, tally: Tally) -> None:
    """Take over what the account log says, and answer as the device that the store is."""
    member = context.member
    try:
        await member.refresh(context.cloud)
    except RolledBackError as error:
        await context.alarm(tally, error, "log")  # first: a crash after the repair would leave nothing to tell of
        tally.repaired += await member.repair_log(context.cloud)
        await member.refresh(context.cloud)
    await shut_out.tell_refusals(context.store, member, context.cloud)
    try:
        if await _knows_of_the_code(context):
            await recovery.confirm_recovery(member, context.cloud, now=context.now, entropy=context.entropy)
    except InvalidError as error:  # this clock is off: another device does it, and this one syncs meanwhile
        await context.alarm(tally, error, "recovery", holds=False)
    context.cloud.use(member.credential)


async def _knows_of_the_code(context: Context) -> bool:
    """Say whether a person was told on this device of the recovery code that waits, and has acknowledged it.

    Who comes by a device can ask for a code and needs only to wait: where nobody has looked, nobody has agreed.
    """
    state, own = context.member.state, context.member.certified
    if state.waiting_recovery is None or own is None:
        return False
    entries = await context.store.read(lambda q: q.replication.account_log(own.added + 1))
    asked = [one for one in map(account_log.read, entries) if one.type == EntryType.RECOVERY_ROTATE]
    told = {alarm.subject for alarm in await context.store.read(lambda q: q.replication.alarms())}
    return bool(asked) and asked[-1].hash.hex() not in told


async def _begin(context: Context) -> SyncState:
    """Begin replication where there is none yet, and bind projects as the account has them bound."""

    def work(tx: Transaction) -> SyncState:
        tx.replication.begin(context.member.account)
        tx.replication.note_erased(context.now())
        tx.memories.name_authors(context.member.scopes.authors)
        state = tx.queries.replication.state()
        assert state is not None  # noqa: S101 - `begin` made it
        projects = dict(context.member.scopes.projects)
        for binding in tx.queries.replication.bindings():
            if projects.get(binding.project) == binding.scope:
                del projects[binding.project]
            else:
                tx.replication.unbind(binding.project)
        # Nothing that was not sealed yet lives anywhere: it may still go where its project was bound to.
        for project, scope in projects.items():
            tx.replication.bind(project, scope, state.sealed_seq)
        return state

    state = await context.store.write(work)
    if state.account != context.member.account:
        raise InvalidError(
            "this store replicates another account",
            hint="scrubjay logout first, or give each account a home of its own (--home)",
        )
    return state


async def _note_bounds(context: Context, teams: TeamContext) -> None:
    """Note the bounds of what somebody outside wrote and a version that noted none took in. Once for a store."""
    if await context.store.read(lambda q: q.meta(BOUNDS_NOTED)) is not None:
        return
    members: dict[tuple[str, bytes], Outsider] = {}
    for team in teams.joined:
        if (found := await teams.pinned(team)) is not None:
            others = [one for one in found.state.devices.values() if one.account != context.member.account]
            members |= {(one.id.hex(), team): outsider(teams, found, one) for one in others}

    def work(tx: Transaction) -> None:
        noted: dict[str, list[tuple[int, str, bytes]]] = {}
        for device in tx.queries.ops.heard():
            known = context.member.state.device_of(bytes.fromhex(device))
            if known is not None and known.full:
                continue
            writes = tx.queries.ops.writes_of(device)
            placed = tx.queries.replication.placed({entity for _, entity, _ in writes})
            for seq, entity, data in writes:
                scope = placed.get(entity, context.member.home)
                by = members.get((device, scope)) if known is None else context.outsider(scope, known.id)
                kept = None if by is None else confined(data, device=device, seq=seq, by=by)
                if kept is not None and kept != data:
                    noted.setdefault(device, []).append((seq, entity, kept))
        tx.ingest.note(noted)

    await context.store.write(work)


async def _give_vectors(context: Context, tally: Tally) -> None:
    """Give searchable scopes the vectors that the server lacks. What it refuses holds up nothing else."""
    try:
        await searching.upload_vectors(
            context.store, context.member, context.cloud, context.meaning, context.unembeddable
        )
    except InvalidError as error:
        await context.alarm(tally, error, "search", holds=False)
