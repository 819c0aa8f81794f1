"""Rounds in the background: soon after a write, at once on news of other devices, later after a failure.

The rounds of a login are a job of the daemon (`SyncJob`), which runs, notes and pauses it like its own. What makes the
next round due is told to it: one task waits for the first of a local write that is due (soon when it comes alone; what
follows goes once nobody has written for a second, so that a burst is two segments), the server's long poll answering,
and the end of a pause. The long poll is no part of the job, which would run without end; it hands what it brought to
the round that it wakes. One that the server held to its end is asked again without a round. A paused job asks the
server for nothing. No write waits for a round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import DEFAULT
from scrubjay.store import Changes, Store
from scrubjay.tracebacks import frames_of
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import RevokedError, ScrubjayError, TooManyError, UnavailableError
from scrubjay_sync.engine.pull import News
from scrubjay_sync.engine.results import Round
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.engine.snapshot_making import Made
from scrubjay_sync.planning import Burst, backoff, due
from scrubjay_sync.policy import SYNC

JOB = "sync"
"""The name that the job has for people, and in the store's history."""

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What the daemon has for rounds in the background: `wake` has the job look at once, unless it is `paused`.

    `roll` is random in [0, 1).
    """

    wake: Callable[[], None]
    paused: Callable[[], bool]
    roll: Callable[[], float]


class Rounds:
    """The rounds of one login, until closed.

    Without `background`, each is asked for. `quiet` blurs when it sends. `on_done` is awaited after each that ended
    well.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        background: Background | None,
        *,
        quiet: bool = False,
        on_done: Callable[[], Awaitable[None]],
    ) -> None:
        self._on_done = on_done
        self._engine = engine
        self._store = store
        self._background = background
        self._quiet = quiet
        self._taken_seq = store.last_seq  # up to here the last round took up what was written
        self._burst: Burst | None = None
        self._last_write: Millis | None = None
        self._calm_until = Millis(0)
        self._written = asyncio.Event()
        self._ran = asyncio.Event()
        self._is_due = False
        self._is_settled = False
        self._pause_ms = 0
        self._poll_pause_ms = 0
        self._poll_from = Millis(0)
        self._news: News | None = None
        self._on_change_before = store.on_change
        self._running: set[asyncio.Task[Any]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.ended: ScrubjayError | None = None
        """What ended the rounds by itself: this device was revoked."""

    def start(self) -> None:
        """Begin, in the background with a round at once."""
        if self._background is not None:
            self._store.on_change = self._changed
            self._watch = asyncio.create_task(self._watched(self._background), name="sync")

    async def close(self) -> None:
        """End. What was not sent yet gets one last short chance; the rest is sent after the next start."""
        self._is_due = False
        for running in tuple(self._running):
            await _cancelled(running)
        if self._background is None or self._watch is None:
            return
        self._store.on_change = self._on_change_before
        await _cancelled(self._watch)
        if self.ended is None and not self._background.paused() and self._store.last_seq != self._taken_seq:
            try:
                await asyncio.wait_for(self._engine.sync(), SYNC.exit_s)
            except (ScrubjayError, TimeoutError) as error:
                log.info("sync left something for the next start because=%s", type(error).__name__)

    @property
    def is_due(self) -> bool:
        """Whether the job has a round to run."""
        return self._is_due and self.ended is None

    async def pending(self) -> int:
        """Return how many ops wait to be confirmed by the server."""
        return (await self._engine.status()).pending_ops

    async def run(self, *, wait_s: float = 0) -> Round:
        """Run a round, and choose when the next one is due. Raises what ends a round, and UnavailableError at `close`.

        One that somebody asks for, due or not, counts like any other: it ends a pause. For `wait_s` see `Engine.sync`.
        """
        news, self._news = self._news, None
        self._is_due = False
        self._taken_seq, self._burst = self._store.last_seq, None
        running = asyncio.create_task(self._engine.sync(wait_s=wait_s, news=news))
        self._running.add(running)
        try:
            done = await _outcome(running)
        except RevokedError as error:
            self.ended = error
            raise
        except Exception as error:
            self._pause_ms = max(self._backoff(self._pause_ms), int(getattr(error, "retry_after", 0) * 1000))
            raise
        else:
            self._pause_ms, self._is_settled = 0, done.synced and not done.errors
            # What was sent or brought has consequences that a next round finds: vectors to give, places to pack.
            busy = done.ops_sent or done.pages or done.repaired or done.packed
            self._calm_until = Millis(_clock() + (0 if busy else SYNC.calm_ms))
            await self._on_done()
            return done
        finally:
            self._running.discard(running)
            self._ran.set()

    async def snapshot(self, *, when_due: bool = False) -> Made:
        """Make a snapshot, as `Engine.snapshot` does; ended by `close` like a round."""
        running = asyncio.create_task(self._engine.snapshot(when_due=when_due))
        self._running.add(running)
        try:
            return await _outcome(running)
        finally:
            self._running.discard(running)

    def _changed(self, changes: Changes) -> None:
        """Follow a commit: note when something of this device's own was written. What sync itself brings in is not."""
        self._on_change_before(changes)
        if self._store.last_seq != self._taken_seq:
            now = _clock()
            self._burst, self._last_write = Burst.grown(self._burst, now, self._last_write), now
            self._written.set()

    def _backoff(self, last_ms: int) -> int:
        return 0 if self._background is None else backoff(last_ms, self._background.roll())

    async def _watched(self, background: Background) -> None:
        """Wake the job each time that a round is due, until the device is revoked."""
        while self.ended is None:
            self._ran.clear()
            self._is_due = True
            background.wake()
            await self._ran.wait()
            await self._next_due(background)

    async def _next_due(self, background: Background) -> None:
        """Return when the next round should begin."""
        if self._pause_ms:
            await self._pause(self._pause_ms)
        elif self._quiet:
            await self._write_due()
        elif not self._is_settled:
            with suppress(TimeoutError):  # what was written meanwhile is due sooner
                async with asyncio.timeout(SYNC.idle_ms / 1000):
                    await self._write_due()
        else:
            await self._news_or_write_due(background)

    async def _news_or_write_due(self, background: Background) -> None:
        """Return when there is news of other devices, when a write is due, or when a round is due all the same."""
        written = asyncio.create_task(self._write_due())
        try:
            while not await self._polled(written) and not background.paused():
                pass
        finally:
            await _cancelled(written)

    async def _polled(self, written: asyncio.Task[None]) -> bool:
        """Wait for news once, or until a write is due; say whether a round should follow.

        None follows when the server held its answer to the end: then nothing has changed. It answers early, without
        objects, when something of the account has. A poll that fails is followed by a time without polls, as long as
        the server asks for, however well the rounds themselves go.
        """
        began = _clock()
        if self._poll_from > began:
            return await self._without_polls(written)
        poll = asyncio.create_task(self._engine.wait_for_news(SYNC.wait_s))
        try:
            await asyncio.wait({poll, written}, return_when=asyncio.FIRST_COMPLETED)
            if poll.done():
                self._news = poll.result()
                self._poll_pause_ms = 0
        except Exception as error:  # noqa: BLE001  # a bug of ours must not end sync for as long as the daemon runs
            asked_ms = int(error.retry_after * 1000) if isinstance(error, TooManyError) else 0
            self._poll_pause_ms = self._backoff(self._poll_pause_ms)
            self._poll_from = Millis(_clock() + max(self._poll_pause_ms, asked_ms))
            if isinstance(error, ScrubjayError):
                log.info("no news code=%s again_in_ms=%d", error.code, self._poll_pause_ms)
            else:  # not its words: they may quote a memory
                log.error("no news error=%s at=%s", type(error).__qualname__, frames_of(error))  # noqa: TRY400
            return await self._without_polls(written)
        finally:
            await _cancelled(poll)
        now = _clock()
        held = now - began >= SYNC.held_share * SYNC.wait_s * 1000
        return written.done() or self._news is not None or not held or now >= self._calm_until

    async def _without_polls(self, written: asyncio.Task[None]) -> bool:
        """Wait until the server may be asked to hold an answer again, or a write is due; a round should follow."""
        await asyncio.wait({written}, timeout=max(0, self._poll_from - _clock()) / 1000)
        return True

    async def _write_due(self) -> None:
        """Return when a round should begin because of what was written here; in quiet mode after its time at last."""
        while True:
            now = _clock()
            if self._burst is None and self._quiet:
                return await self._pause(SYNC.quiet_ms)
            left = due(now, self._burst, quiet=self._quiet) - now
            if self._burst is not None and left <= 0:
                return None
            self._written.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left / 1000):
                    await self._written.wait()

    async def _pause(self, ms: int) -> None:
        """Wait, or until somebody has asked for a round."""
        self._ran.clear()
        with suppress(TimeoutError):  # not `wait_for`: in Python 3.11 it loses an end that comes with the event
            async with asyncio.timeout(ms / 1000):
                await self._ran.wait()


class SyncJob:
    """The rounds of whatever login is in use, as a job of the daemon. Without a login there is nothing to do."""

    name = JOB
    trigger = Trigger(seconds=SYNC.idle_ms / 1000, gathers=False)

    def __init__(self, rounds: Callable[[], Rounds | None]) -> None:
        self._rounds = rounds

    async def due(self) -> bool:
        """Say whether a round is due."""
        rounds = self._rounds()
        return rounds is not None and rounds.is_due

    async def pending(self) -> int | None:
        """Return how many ops wait to be confirmed by the server; None without a login."""
        rounds = self._rounds()
        return None if rounds is None else await rounds.pending()

    async def run(self) -> None:
        """Run one round."""
        rounds = self._rounds()
        if rounds is not None:
            await rounds.run()


class SnapshotJob:
    """Makes the snapshot with which a new machine of the account begins, when enough was written since the last."""

    name = "snapshot"
    trigger = Trigger.nightly(DEFAULT.night)

    def __init__(self, rounds: Callable[[], Rounds | None]) -> None:
        self._rounds = rounds

    async def due(self) -> bool:
        """Say whether there is a login; whether a snapshot is due is asked of the server."""
        rounds = self._rounds()
        return rounds is not None and rounds.ended is None

    async def pending(self) -> int | None:
        """Return 0; None without a login."""
        return None if self._rounds() is None else 0

    async def run(self) -> None:
        """Make one, unless the one that stands is as good."""
        rounds = self._rounds()
        if rounds is not None:
            await rounds.snapshot(when_due=True)


async def _outcome(running: asyncio.Task[T]) -> T:
    """Return the result of a round. Raises UnavailableError when it was ended and the caller was not."""
    try:
        return await running
    except asyncio.CancelledError:
        running.cancel()
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise UnavailableError(
            "the round was ended: this machine logged out, or its daemon stopped",
            hint="scrubjay sync status shows which",
        ) from None


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _clock() -> Millis:
    """Return milliseconds of a clock that no one sets: a pause must not depend on the time of day."""
    return Millis(int(asyncio.get_running_loop().time() * 1000))
