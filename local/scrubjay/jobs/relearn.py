"""The job that reads sessions anew: what lesser readers had learned of them gives way to what is learned of them now.

Theory of operation. A run is one cause: `undo` takes it back as a whole, also where it is still under way, and other
devices get its ops like any others. How far it came stands in the file (`Run`), written in the transactions that write
its memories: after a crash it goes on where it was. Sessions come in the order of their ids, turns in that of their
arrival. Only when a session was read to its end do those memories of it end that nobody took up and that were not read
again (`lifecycle.relearning`); of one that could not be read they stay.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from scrubjay.jobs.giving_way import give_way
from scrubjay.jobs.registry import Trigger
from scrubjay.jobs.session_commit import Again
from scrubjay.lifecycle.relearning import KIND, READER, By, Kept, Learned, Lesser, lesser
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, MemoryWrite, Queries, Store, Transaction
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import NoAnswerError
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import BudgetError, InvalidError, TooLargeError, UnavailableError
from scrubjay_shared.ops import Field

if TYPE_CHECKING:
    from scrubjay.distill.reading import Reader
    from scrubjay.jobs.session_commit import Stored

Reads = Callable[[str, Mapping[str, str], Cause, Again, int], Awaitable["Stored | None"]]
"""Reads the next turns of a session once more, with half as many where a number of tries failed, and stores that.

Returns None where nothing was written.
"""

KEY = "relearn"
"""The setting of the file in which the run under way stands; "" when there is none."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run under way: `done` of so many `sessions` are read, by the Writer or else by what `learn` reads with.

    `session` is the one that is being read, up to the arrival number `n`, or the last that was, where `n` is None.
    `stands` are memories that were read again in it; `carried`, those of earlier ones that also stand in later ones.
    """

    cause: str
    by_writer: bool
    sessions: int
    done: int = 0
    session: str = ""
    n: int | None = None
    stands: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()


def current(queries: Queries) -> Run | None:
    """Return the run under way."""
    found = queries.meta(KEY)
    if not found:
        return None
    said = json.loads(found)
    return Run(**{**said, "stands": tuple(said["stands"]), "carried": tuple(said["carried"])})


def stop(tx: Transaction, cause: str) -> None:
    """End a run where it is: what it has not written yet, it does not write any more."""
    run = current(tx.queries)
    if run is not None and run.cause == cause:
        tx.set_meta(KEY, "")


def put_away(tx: Transaction, ids: Sequence[str]) -> None:
    """End memories that a new reading of their session did not find again."""
    tx.memories.write([MemoryWrite(memory_id=one, fields={Field.ARCHIVED_AT: int(tx.now)}) for one in ids])


def _keep(tx: Transaction, run: Run) -> None:
    tx.set_meta(KEY, json.dumps(asdict(run)))


@dataclass(slots=True, kw_only=True)
class _Pace:
    """How far a run came since it went on: in how many `steps`, and how often its next one failed.

    `names` say who talks to whom, `reads` what reads, by the Writer or not.
    """

    names: Mapping[str, str]
    reads: dict[bool, Reads] = field(default_factory=dict)
    steps: int = 0
    failures: int = 0


class Relearn:
    """Reads the sessions of a run anew. `told` are sessions of what was told on purpose: nothing of these ends.

    `reads` returns what reads, by the Writer or not; called in a thread. `reader` returns what reads turns of work
    where it is not the Writer.
    """

    name = KIND

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        writer: BudgetedWriter,
        reads: Callable[[bool], Reads],
        reader: Callable[[], Awaitable[Reader]],
        identity: Callable[[], Awaitable[Mapping[str, str]]],
        on_memories: Callable[[], None],
        quiet_seconds: Callable[[], float],
        told: Collection[str],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._writer = writer
        self._reads = reads
        self._reader = reader
        self._identity = identity
        self._on_memories = on_memories
        self._quiet_seconds = quiet_seconds
        self._told = told
        self._now = now
        self._paused_until = Millis(0)  # over its share of the caps, the Writer is not asked at each look

    @property
    def trigger(self) -> Trigger:
        """At the pace of the sweeps, which find what a crash left."""
        return Trigger(seconds=self._policy.work.sweep_seconds)

    async def start(self, sessions: int) -> Run:
        """Begin a run over so many sessions, or return the one that is under way."""
        cause = self._store.new_cause(KIND)

        def work(tx: Transaction) -> Run:
            run = current(tx.queries)
            if run is None:
                run = Run(cause=cause.id, by_writer=self._writer.is_on, sessions=sessions)
                tx.note_cause(cause)
                _keep(tx, run)
            return run

        self._paused_until = Millis(0)
        return await self._store.write(work)

    async def under_way(self) -> Run | None:
        """Return the run under way."""
        return await self._store.read(current)

    async def by(self, run: Run | None) -> By:
        """Return who reads a run now, or would read one that began now."""
        if self._writer.is_on if run is None else run.by_writer:
            return By.WRITER
        return By.READER if (await self._reader()).source.startswith(READER) else By.PATTERNS

    async def learned(self, run: Run | None) -> dict[str, tuple[Learned, Kept | None]]:
        """Return all that who reads a run, or one that began now, may replace, by id, with why it stays."""
        replaced = await self._lesser(run)
        return await self._store.read(lambda q: q.relearning.all(self._told, replaced))

    async def due(self) -> bool:
        """Say whether a run is under way that can go on now."""
        run = await self.under_way()
        return run is not None and not (run.by_writer and self._waits())

    async def pending(self) -> int | None:
        """Return how many sessions are still to be read; None where no run is under way."""
        run = await self.under_way()
        return None if run is None else max(run.sessions - run.done, 1)

    async def run(self) -> int:
        """Go on with the run, between questions, on its share of a day's cap. Returns in how many steps.

        Raises what the Writer raises.
        """
        return await self._go_on(at_leisure=True)

    async def finish(self) -> int:
        """Go on with the run for somebody who waits for that, on all of the caps. Raises as `run`."""
        self._writer.end_rest()
        self._paused_until = Millis(0)
        return await self._go_on(at_leisure=False)

    async def warnings(self) -> tuple[str, ...]:
        """Return what `status` is to say: that a run waits for the Writer."""
        run = await self.under_way()
        if run is None or not run.by_writer or not self._waits():
            return ()
        why = "comes on (scrubjay writer on)" if not self._writer.is_on else "answers, or its caps allow it"
        undo = f"scrubjay undo {run.cause} takes back what was read"
        return (
            f"relearn has read {run.done:,} of {run.sessions:,} sessions, and goes on when the Writer {why}; {undo}",
        )

    def _waits(self) -> bool:
        return not self._writer.is_on or self._writer.rests or self._now() < self._paused_until

    async def _go_on(self, *, at_leisure: bool) -> int:
        pace = _Pace(names=await self._identity())
        try:
            while not self._stopping.is_set() and (run := await self._begun()) is not None:
                if run.by_writer and not self._writer.is_on:
                    raise UnavailableError(
                        "the sessions are being read again by the Writer, and it is off",
                        hint=f"scrubjay writer on goes on with it, scrubjay undo {run.cause} takes it back",
                    )
                if at_leisure:
                    await give_way(self._quiet_seconds, self._stopping, self._policy.toc)
                    if run.by_writer and await self._is_share_used():
                        break
                await self._advance(run, pace)
        except BudgetError:
            self._pause()
            if not pace.steps:
                raise
        finally:
            if pace.steps:
                self._on_memories()
        return pace.steps

    async def _advance(self, run: Run, pace: _Pace) -> None:
        """Read the next turns of the session that a run is at, or end it where none is left or they cannot be read."""
        upto = await self._store.read(lambda q: q.relearning.read_upto(run.session))
        if not await self._store.read(lambda q: q.relearning.has_left(run.session, run.n or 0, upto)):
            await self._ended(run, upto)
            return
        if run.by_writer not in pace.reads:
            pace.reads[run.by_writer] = await asyncio.to_thread(self._reads, run.by_writer)
        try:
            stored = await self._step(run, upto, pace)
        except (NoAnswerError, InvalidError, TooLargeError) as error:
            log.warning("could not read a session again code=%s tries=%d", error.code, pace.failures + 1)
            stored = None
        pace.failures = pace.failures + 1 if stored is None else 0
        pace.steps += stored is not None
        if pace.failures >= self._policy.observer.again_tries:
            await self._ended(run, 0)
            pace.failures = 0

    async def _step(self, run: Run, upto: int, pace: _Pace) -> Stored | None:
        """Read the next turns of a session. Returns None where nothing was written: the run ended, or who forgets."""
        replaced = await self._lesser(run)
        found = await self._store.read(lambda q: q.relearning.of_session(run.session, self._told, replaced))
        again = Again(
            after=run.n or 0,
            upto=upto,
            job=KIND,
            ending={one for one, (_, kept) in found.items() if kept is None},
            holds=lambda tx: _is_at(tx, run),
            mark=lambda tx, n, stands: _keep(tx, replace(run, n=n, stands=(*{*run.stands, *stands},))),
        )
        read = pace.reads[run.by_writer]
        return await read(run.session, pace.names, Cause(id=run.cause), again, pace.failures)

    async def _begun(self) -> Run | None:
        """Return the run at a session that is to be read, the next one where none is; None when all are."""
        run = await self.under_way()
        while run is not None and run.n is None:
            found = await self._store.read(self._next(run, await self._lesser(run)))
            begun = None if found is None else replace(run, session=found, n=0, stands=())
            if not await self._store.write(lambda tx, run=run, begun=begun: _moved(tx, run, begun)):  # type: ignore[misc]
                begun = await self.under_way()
            elif begun is None:
                log.info("read sessions again sessions=%d", run.done)
            run = begun
        return run

    async def _lesser(self, run: Run | None) -> Lesser:
        return lesser(await self.by(run), (await self._reader()).source)

    def _next(self, run: Run, replaced: Lesser) -> Callable[[Queries], str | None]:
        """Return what finds the next session of which anything may end: the others are not read."""

        def find(q: Queries) -> str | None:
            after = run.session
            while (session := q.relearning.next_session(after, replaced)) is not None:
                found = q.relearning.of_session(session, self._told, replaced)
                if any(kept is None for _, kept in found.values()):
                    return session
                after = session
            return None

        return find

    async def _ended(self, run: Run, read_upto: int) -> None:
        """End what a session's new reading did not find again, of turns up to an arrival number; go on to the next."""
        replaced = await self._lesser(run)

        def work(tx: Transaction) -> int | None:
            if not _is_at(tx, run):
                return None
            found = tx.queries.relearning.of_session(run.session, self._told, replaced)
            standing = {*run.stands, *run.carried}
            standing |= {one for one, (learned, _) in found.items() if learned.sessions[run.session] > read_upto}
            later = {one for one, (learned, _) in found.items() if max(learned.sessions) > run.session}
            ends = [one for one, (_, kept) in found.items() if kept is None and one not in standing | later]
            put_away(tx, ends)
            carried = {one for one in standing if (one in later if one in found else one in run.carried)}
            _keep(tx, replace(run, done=run.done + 1, n=None, stands=(), carried=tuple(carried)))
            tx.jobs.count(KIND, {"sessions": 1, "ended_memories": len(ends)})
            return len(ends)

        ended = await self._store.write(work, cause=Cause(id=run.cause))
        log.info("read a session again ended=%s upto=%d", ended, read_upto)

    async def _is_share_used(self) -> bool:
        kept = self._writer.caps.daily * (1 - self._policy.observer.again_share)
        if await self._writer.left() > kept:
            return False
        self._pause()
        return True

    def _pause(self) -> None:
        self._paused_until = Millis(self._now() + round(self._policy.observer.hold_seconds * 1000))


def _is_at(tx: Transaction, run: Run) -> bool:
    """Say whether a run is still where it was when its next step was decided."""
    there = current(tx.queries)
    return there is not None and (there.cause, there.session, there.n) == (run.cause, run.session, run.n)


def _moved(tx: Transaction, run: Run, to: Run | None) -> bool:
    if not _is_at(tx, run):
        return False
    if to is None:
        tx.set_meta(KEY, "")
    else:
        _keep(tx, to)
    return True
