"""The job of the observer: where a Writer is set, sessions are read by it, at some length or at their end.

A session is read when so much is new that a question is worth its tokens, and a while after its end; one whose end
nobody told, after longer. Where the Writer is away, over its caps, or gives no answer, sessions wait for it: nothing is
marked as read, and the run fails with the Writer's error. One whose own question fails is tried less and less often,
each time with fewer turns, while the others go on. Where it answers without directives, a step is read without it. Of
a session that was under way when the Writer was turned on, the beginning is read too, and replaces what was made of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrubjay.jobs.alike import Alike
from scrubjay.jobs.registry import Trigger
from scrubjay.jobs.session_locks import SessionLocks
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, Store
from scrubjay.store.queries.events import SessionEnd
from scrubjay.writer.budget import Asked, asked
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import NoAnswerError, Prompt, UsageUnknownError
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import BudgetError, InvalidError, ScrubjayError, TooLargeError
from scrubjay_shared.records import EventType

if TYPE_CHECKING:
    from scrubjay.distill.reading import Reader
    from scrubjay.jobs.observe_session import SessionObserver

JOB = "observe"
STREAK = "malformed_reject_streak"

OF_A_QUESTION = (NoAnswerError, InvalidError, TooLargeError)
"""The errors that one session's question may be to blame for, and not the Writer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A session whose question failed so many times by itself: it is left alone until a time."""

    failures: int
    until: Millis


class Observe:
    """Has the Writer read what was said. Without one it is not listed, and nothing is asked."""

    name = JOB

    @property
    def trigger(self) -> Trigger:
        """Often, because a look at a quiet store costs nothing; without a Writer at the pace of the sweeps."""
        look, sweep = self._policy.observer.look_seconds, self._policy.work.sweep_seconds
        return Trigger(seconds=look if self.is_on() else sweep)

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        writer: BudgetedWriter,
        identity: Callable[[], Awaitable[Mapping[str, str]]],
        on_memories: Callable[[], None],
        alike: Alike,
        locks: SessionLocks,
        reader: Callable[[], Awaitable[Reader]],
        told: Collection[str],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._writer = writer
        self._identity = identity
        self._on_memories = on_memories
        self._alike = alike
        self._locks = locks
        self._reader = reader
        self._told = told
        self._now = now
        self._held: dict[str, _Held] = {}
        self._reread: set[str] = set()  # sessions whose beginning was looked at: it is read once, whatever came of it
        self._paused_until = Millis(0)  # over its caps, the Writer is not asked in vain at each look
        self._seen: tuple[int, list[SessionEnd]] = (-1, [])  # the store's commits at the last look, and what waited

    def is_on(self) -> bool:
        """Say whether a Writer is set."""
        return self._writer.is_on

    async def due(self) -> bool:
        """Say whether a session is to be read now."""
        resting = self._writer.rests or self._now() < self._paused_until
        return self.is_on() and not resting and bool(await self._ready())

    async def pending(self) -> int | None:
        """Return how many events wait to be read; None where no Writer is set."""
        return sum(end.waiting for end in await self._waiting()) if self.is_on() else None

    async def run(self) -> int:
        """Read the sessions that are long enough or over. Returns how many memories are new.

        Raises the Writer's last error where no question was answered.
        """
        return await self._read(await self._ready()) if self.is_on() else 0

    async def finish(self) -> int:
        """Read all that waits, over or not. Returns how many memories are new. Raises as `run` does."""
        if not self.is_on():
            return 0
        self._writer.end_rest()
        return await self._read([end.session_id for end in await self._waiting()])

    async def asks(self) -> Asked:
        """Return what a run would ask now if it read all that waits, quiet or not."""
        most = self._policy.observer.estimated_calls
        found: list[Prompt] = []
        observer = await asyncio.to_thread(self.observer)
        names = await self._identity()
        for end in await self._waiting() if self.is_on() else ():
            found += await observer.prompts(end.session_id, names, most + 1 - len(found))
            if len(found) > most:
                break
        return asked(found[:most], whole=len(found) <= most)

    async def warnings(self) -> tuple[str, ...]:
        """Return what `status` is to say: that sessions wait for the Writer, that it answers what cannot be read."""
        if not self.is_on():
            return ()
        told = []
        statistics = (await self._store.read(lambda q: q.stats.jobs())).get(JOB)
        streak = 0 if statistics is None else statistics.counts.get(STREAK, 0)
        if streak >= self._policy.observer.streak:
            told.append(
                f"the Writer's answers held malformed directives {streak} times in a row ({STREAK}):"
                " another model may do better (writer_model)"
            )
        is_away = self._writer.rests or self._now() < self._paused_until
        is_away |= statistics is not None and statistics.last_error is not None
        waiting = await self._waiting()
        kept = waiting if is_away else [end for end in waiting if end.session_id in self._held]
        if kept:
            events = sum(end.waiting for end in kept)
            told.append(
                f"{len(kept):,} sessions with {events:,} events wait for the Writer and are read when it answers"
                " (scrubjay jobs run observe asks it now)"
            )
        return tuple(told)

    async def _ready(self) -> list[str]:
        now, policy = self._now(), self._policy.observer
        ready = []
        for end in await self._waiting():
            held = self._held.get(end.session_id)
            if held is not None and now < held.until:
                continue
            quiet_ms = now - end.last
            limit = policy.quiet_seconds if end.last_type is EventType.SESSION_END else policy.wait_seconds
            is_long = end.chars >= policy.new_chars or end.waiting >= policy.new_events
            # A clock that was ahead must not keep a session waiting for good.
            if is_long or not 0 <= quiet_ms < limit * 1000:
                ready.append(end.session_id)
        return ready

    async def _waiting(self) -> list[SessionEnd]:
        commits, waiting = self._seen
        if commits != self._store.commits:
            commits = self._store.commits
            waiting = await self._store.read(lambda q: q.events.ends_of_undistilled())
            self._seen = (commits, waiting)
        return waiting

    async def _read(self, session_ids: list[str]) -> int:
        if not session_ids:
            return 0
        made = 0
        failed: ScrubjayError | None = None
        observer = await asyncio.to_thread(self.observer)
        names = await self._identity()
        cause = self._store.new_cause(JOB)
        for session_id in session_ids:
            held = self._held.get(session_id)
            before = await self._store.read(lambda q, one=session_id: q.relearning.read_upto(one))  # type: ignore[misc]
            try:
                while not self._stopping.is_set():
                    step = await observer.observe(session_id, names, cause, halvings=held.failures if held else 0)
                    self._held.pop(session_id, None)
                    if step is None:
                        break
                    made += step
                made += await self._from_the_beginning(observer, session_id, names, cause, before)
            except ScrubjayError as error:
                failed = error
                self._hold(session_id, error)
                if self._writer.rests or isinstance(error, BudgetError):
                    break
        if made:
            self._on_memories()
        if failed is not None:
            if not observer.answered:
                raise failed
            log.warning("sessions wait for the writer code=%s", failed.code)
        return made

    async def _from_the_beginning(
        self, observer: SessionObserver, session_id: str, names: Mapping[str, str], cause: Cause, upto: int
    ) -> int:
        """Read what lesser readers had read of a session, once while this runs. Returns how many memories are new."""
        if session_id in self._reread or self._stopping.is_set():
            return 0
        self._reread.add(session_id)
        try:
            return await observer.from_the_beginning(session_id, names, cause, upto, self._told)
        except OF_A_QUESTION as error:
            log.warning("what was made of a session stays code=%s", error.code)
            return 0

    def _hold(self, session_id: str, error: ScrubjayError) -> None:
        """Leave a session alone for a while where the next look would only fail again."""
        policy, now = self._policy.observer, self._now()
        if isinstance(error, BudgetError):
            self._paused_until = Millis(now + round(policy.hold_seconds * 1000))
        elif isinstance(error, (*OF_A_QUESTION, UsageUnknownError)):
            before = self._held.get(session_id)
            failures = (before.failures if before else 0) + isinstance(error, OF_A_QUESTION)
            seconds = min(policy.hold_seconds * 2.0**failures, policy.hold_most_seconds)
            self._held[session_id] = _Held(failures=failures, until=Millis(now + round(seconds * 1000)))

    def observer(self) -> SessionObserver:
        """Return what reads one session with the Writer. Loads the patterns: called in a thread."""
        from scrubjay.jobs.observe_session import SessionObserver  # noqa: PLC0415  # see `Distill`

        return SessionObserver(
            self._store,
            self._policy,
            self._stopping,
            writer=self._writer,
            alike=self._alike,
            locks=self._locks,
            reader=self._reader,
        )
