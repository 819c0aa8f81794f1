"""When rounds are: soon after a write, at once on news of other devices, later after a failure. No write waits for one.

One task runs the rounds. Between two it waits for the first of: a local write that is due (two seconds after the last,
so that a turn of conversation is one segment), or the server's long-poll answering. Somebody who asks for a round of
their own takes the engine over with `hold`, which ends the waiting.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from scrubjay.store import Changes, Store
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import RevokedError, ScrubjayError
from scrubjay_sync.engine.results import Round
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.planning import backoff, due
from scrubjay_sync.policy import SYNC

FRAMES = 8
"""Frames logged of an unexpected error, innermost first."""

log = logging.getLogger(__name__)


class Scheduler:
    """Keeps a store in step with its account until closed. `roll` is random in [0, 1); `quiet` blurs when it sends."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        *,
        roll: Callable[[], float],
        quiet: bool = False,
        on_round: Callable[[Round], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._store = store
        self._roll = roll
        self._quiet = quiet
        self._on_round = on_round
        self._synced_seq = store.last_seq
        self._first: Millis | None = None
        self._last: Millis | None = None
        self._wakeup = asyncio.Event()
        self._not_held = asyncio.Event()
        self._not_held.set()
        self._held = asyncio.Lock()
        self._on_change_before = store.on_change
        self._task: asyncio.Task[None] | None = None
        self.ended: ScrubjayError | None = None
        """What ended the rounds by itself: this device was revoked."""

    def start(self) -> None:
        """Begin, with a round at once."""
        self._store.on_change = self._changed
        self._task = asyncio.create_task(self._run(), name="sync")

    async def close(self) -> None:
        """End. What was not sent yet gets one last short chance; the rest is sent after the next start."""
        self._store.on_change = self._on_change_before
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self.ended is None and self._store.last_seq != self._synced_seq:
            try:
                await asyncio.wait_for(self._engine.sync(), SYNC.exit_s)
            except (ScrubjayError, TimeoutError) as error:
                log.info("sync left something for the next start because=%s", type(error).__name__)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Keep the engine free of rounds of ours while the caller runs one, or changes the account."""
        async with self._held:
            self._not_held.clear()
            self._wakeup.set()
            try:
                yield
            finally:
                self._not_held.set()
                self._wakeup.set()

    def _changed(self, changes: Changes) -> None:
        """Follow a commit: note when something of this device's own was written. What sync itself brings in is not."""
        self._on_change_before(changes)
        if self._store.last_seq != self._synced_seq:
            self._last = _clock()
            self._first = self._first or self._last
            self._wakeup.set()

    async def _run(self) -> None:
        failed_ms = 0
        while True:
            await self._not_held.wait()
            self._synced_seq, self._first, self._last = self._store.last_seq, None, None
            try:
                done = await self._round()
            except RevokedError as error:
                log.warning("sync ended code=%s", error.code)
                self.ended = error
                return
            except ScrubjayError as error:
                failed_ms = max(backoff(failed_ms, self._roll()), int(getattr(error, "retry_after", 0) * 1000))
                log.info("sync failed code=%s again_in_ms=%d", error.code, failed_ms)
                await self._pause(failed_ms)
                continue
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end sync for as long as the daemon runs
                failed_ms = backoff(failed_ms, self._roll())
                # Not the exception's own words: they may quote a memory.
                log.error("sync broke error=%s at=%s", type(error).__qualname__, _frames(error))  # noqa: TRY400
                await self._pause(failed_ms)
                continue
            failed_ms = 0
            if done is not None and (done.errors or not done.synced):
                with suppress(TimeoutError):  # what was written meanwhile is due sooner
                    await asyncio.wait_for(self._due(), SYNC.idle_ms / 1000)

    async def _round(self) -> Round | None:
        """Run a round that waits for news, until a write is due or somebody takes over; None when it was cut short.

        Only the waiting is cut short: a round that moves something is let run to its end.
        """
        round_ = asyncio.create_task(self._engine.sync(wait_s=0 if self._quiet else SYNC.wait_s))
        try:
            while True:
                written = asyncio.create_task(self._due())
                await asyncio.wait({round_, written}, return_when=asyncio.FIRST_COMPLETED)
                written.cancel()
                if round_.done():
                    self._on_round(round_.result())
                    break
                if self._engine.waiting:
                    return None
                await asyncio.wait({round_}, timeout=SYNC.look_s)
            if self._quiet:
                await self._due()
            return round_.result()
        finally:
            round_.cancel()
            with suppress(asyncio.CancelledError, ScrubjayError):
                await round_

    async def _due(self) -> None:
        """Return when the next round should begin because of what was written here, or because somebody holds us."""
        while self._not_held.is_set():
            now = _clock()
            if self._first is None and self._quiet:
                return await self._pause(SYNC.quiet_ms)
            left = due(now, self._first, self._last, quiet=self._quiet) - now
            if self._first is not None and left <= 0:
                return None
            self._wakeup.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wakeup.wait(), left / 1000)
        return None

    async def _pause(self, ms: int) -> None:
        """Wait, or until somebody takes over: their round is the next try."""
        deadline = _clock() + ms
        while self._not_held.is_set() and (left := deadline - _clock()) > 0:
            self._wakeup.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wakeup.wait(), left / 1000)


def _frames(error: BaseException) -> str:
    """Return where an exception came from, innermost frame first."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))


def _clock() -> Millis:
    """Return milliseconds of a clock that no one sets: a pause must not depend on the time of day."""
    return Millis(int(asyncio.get_running_loop().time() * 1000))
