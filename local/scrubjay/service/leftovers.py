"""What is left of erased words beside the tables: in the saved index, the log of the file, and copies of the store.

The copies are those that nobody asked for: of the last nights, and from before a migration. Only what a person forgot
for good is blanked in them. They are what brings back the rest, so that an agent, which a stranger's words may lead,
must not empty them; nor may the agents of another machine.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from scrubjay.service import erasing
from scrubjay.store import (
    FORGET,
    Store,
    automatic_copies,
    copied,
    held_in,
    scratch_folder,
    still_held_in,
    take_over,
)
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.records import Op

log = logging.getLogger(__name__)

T = TypeVar("T")

AGAIN_SECONDS = 5.0
"""Until it is tried again to cut the log back: a busy moment is over, and erased words stand there no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blanked:
    """What became of the copies: how many were blanked, which were deleted, and how many still hold the words."""

    blanked: int = 0
    deleted: tuple[str, ...] = ()
    holding: int = 0


class Together(Generic[T]):
    """Does work of which one run serves all who asked before it began: a hundred forgets cut the log back once."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._one = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None
        self._running: set[asyncio.Task[T]] = set()

    async def done(self, *, within: float | None = None) -> T | None:
        """Return what the next run returns; None where that takes more than some seconds, and then it goes on."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
            self._running.add(self._next)
            self._next.add_done_callback(self._running.discard)
        run = self._next
        await asyncio.wait([run], timeout=within)  # whoever waits may go away, and it goes on
        return run.result() if run.done() else None

    async def close(self) -> None:
        """Return once nothing of it runs any more."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self) -> T:
        async with self._one:
            self._next = None
            return await self._work()


class Leftovers:
    """Those of one store. Within `unsaved_index()` no saved index holds what is erased."""

    def __init__(
        self, store: Store, *, unsaved_index: Callable[[], AbstractAsyncContextManager[None]], now: Callable[[], Millis]
    ) -> None:
        self._store = store
        self._unsaved_index = unsaved_index
        self._now = now
        self._traces = Together(self._drop_traces)
        self._blanking = Together(self._blank)
        self._about: set[str] = set()
        self._may_delete = False
        self._again: asyncio.TimerHandle | None = None
        self._trying: set[asyncio.Task[bool | None]] = set()

    async def drop_traces(self) -> bool:
        """Leave nothing in the log of the file and in a saved index. Returns whether the log could be cut back."""
        return bool(await self._traces.done())

    async def blank(
        self, about: Iterable[str] = (), *, may_delete: bool = False, within: float | None = None
    ) -> Blanked | None:
        """Blank in the copies what persons forgot for good, and whoever forgot it, what is `about` some ids.

        A copy that cannot be blanked is deleted where one `may_delete` it, and else stays. Returns None after `within`
        seconds; it then goes on.
        """
        self._about.update(about)
        self._may_delete |= may_delete
        return await self._blanking.done(within=within)

    async def holding(self, about: Iterable[str]) -> int:
        """Return how many copies still hold what was forgotten with some memories or events."""
        copies = await asyncio.to_thread(automatic_copies, self._store.path)
        if not copies:
            return 0
        erasures = await self._store.read(lambda q: q.tombstones.erasures(about, alone=True))
        return await asyncio.to_thread(lambda: sum(still_held_in(copy, erasures) for copy in copies))

    async def close(self) -> None:
        """Return once nothing is under way."""
        if self._again is not None:
            self._again.cancel()
        await self._traces.close()
        await self._blanking.close()

    async def _drop_traces(self) -> bool:
        async with self._unsaved_index():
            done = await self._store.drop_traces()
        if not done:
            log.warning("the log could not be cut back while others read; it is in a moment, or once a long read ends")
            self._again = asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._try_again)
        return done

    def _try_again(self) -> None:
        """Cut the log back once more: nobody waits for it."""
        task = asyncio.get_running_loop().create_task(self._traces.done())
        self._trying.add(task)
        task.add_done_callback(self._trying.discard)

    async def _blank(self) -> Blanked:
        about, may_delete = frozenset(self._about), self._may_delete
        self._about.clear()
        self._may_delete = False
        await self._store.drop_half_made()
        copies = await asyncio.to_thread(automatic_copies, self._store.path)
        erasures = await self._store.read(lambda q: q.tombstones.erasures(about)) if copies else ()
        blanked, deleted, holding = 0, list[str](), 0
        for copy in copies if erasures else ():
            try:
                blanked += await self._blanked(copy, erasures)
            except (ScrubjayError, OSError) as error:
                why = error.code if isinstance(error, ScrubjayError) else error.strerror
                log.warning("a copy cannot be blanked name=%s deleted=%s why=%s", copy.name, may_delete, why)
                if may_delete:
                    await asyncio.to_thread(copy.unlink, missing_ok=True)
                    deleted.append(str(copy))
                else:
                    holding += 1
        if blanked:
            log.info("blanked copies=%d", blanked)
        return Blanked(blanked=blanked, deleted=tuple(deleted), holding=holding)

    async def _blanked(self, copy: Path, erasures: Sequence[Op]) -> bool:
        """Blank aside what a copy holds of what was erased, then replace the copy. Returns whether it held anything.

        It gets the schema of now. Raises CorruptError, ConflictError (of a newer version), UnavailableError (no space).
        """
        if not await asyncio.to_thread(still_held_in, copy, erasures):
            return False
        folder = await asyncio.to_thread(scratch_folder, self._store.path)
        try:
            scratch = folder / self._store.path.name
            await asyncio.to_thread(copied, copy, scratch)
            opened = await Store.open(scratch, now=self._now, entropy=self._store.entropy)
            try:
                gone = await asyncio.to_thread(held_in, scratch, erasures)
                if gone:
                    await opened.write(
                        lambda tx: erasing.erase_again(tx, gone), cause=opened.new_cause(FORGET, label=copy.name)
                    )
            finally:
                await opened.close()
            if gone:
                await asyncio.to_thread(take_over, scratch, copy)
            return bool(gone)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
