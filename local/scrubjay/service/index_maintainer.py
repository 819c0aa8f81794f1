"""The index in memory beside the store that it is of: loaded, kept up with every commit, saved, emptied of what goes.

Theory of operation. `load` fills an index from the copy beside the store and what was committed since, or from the
store alone. From then on `follow` brings it up to one commit after the other, in a thread of its own, in the order of
the commits; `indexed` waits until that has caught up. `save` writes the copy, and `unsaved` deletes it before words are
erased, because it holds them too.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from scrubjay.index.documents import EventDoc, MemoryDoc
from scrubjay.index.index import Index
from scrubjay.service.imports import batches
from scrubjay.store import Changes, Position, Store, drop_index, save_index, saved_index
from scrubjay.store.rows import EMBEDDED_TYPES
from scrubjay.version import __version__
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.scoring import decode_vectors

log = logging.getLogger(__name__)

SAVED_FROM = 20_000
"""Documents from which on a copy of the index is kept beside the store: fewer are read in half a second."""

SAVED_SHARE = 20
"""Once one document in so many has changed, the copy is written again: catching up with more would take a second."""

SCANNED = 5_000
"""Documents read from the store at a time while catching up."""

GATHER_SECONDS = 0.02
"""How long a commit waits for others before the index follows them together, unless somebody asks. Followed at once,
an append waited for the index's thread, which has the interpreter just when its answer is to be sent."""

GATHERED = 1_000
"""Documents that are followed without waiting for more."""


class IndexMaintainer:
    """Keeps `index` at what `store` holds, with the vectors of `space` (None for none)."""

    def __init__(
        self,
        store: Store,
        *,
        known_space: Callable[[], Awaitable[int | None]],
        follow_erasure: Callable[[], Coroutine[Any, Any, None]],
        wake: Callable[[str], None],
    ) -> None:
        """`known_space` returns the space in use; `follow_erasure` drops the copies of what another device erased."""
        self.index = Index()
        self.space: int | None = None
        self._store = store
        self._known_space = known_space
        self._follow_erasure = follow_erasure
        self._wake = wake
        self._missed: list[Changes] | None = None
        self._gathered: Changes | None = None
        self._gathering: asyncio.TimerHandle
        self._indexing = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._follower = ThreadPoolExecutor(max_workers=1, thread_name_prefix="index")
        self._followed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followed.set_result(None)
        self._erasing = threading.Event()
        self._erasers = 0
        self._dropping: set[asyncio.Task[None]] = set()
        self._unsaved = 0

    async def close(self) -> None:
        """End the thread, after the commits in hand. The store is closed by then."""
        await self.indexed()
        self._follower.shutdown(wait=True)  # it has nothing left to do

    async def erasures(self) -> None:
        """Return once the copies of what other devices had erased are gone."""
        await asyncio.gather(*self._dropping)

    async def enter_space(self, space: int | None) -> None:
        """Search in this space from now on."""
        if space != self.space:
            self.space = space
            await self._load_vectors()
        if space is not None:
            self._wake("embed")

    @asynccontextmanager
    async def rebuilding(self) -> AsyncIterator[None]:
        """Hold what follows the store, so that it may be derived again."""
        async with self._indexing, self.unsaved():
            yield

    async def load(self) -> None:
        """Fill a new index from the copy of an earlier one and the store, or the store alone; replace the old one."""
        if self.space is None:
            self.space = await self._known_space()
        missed: list[Changes] = []
        self._missed = missed
        fresh = await self._saved()
        complete = fresh is not None
        if fresh is None:
            fresh = Index()
            async for events in self._store.pages(lambda q, after: q.documents.events(after)):
                await asyncio.to_thread(fresh.load, events)
            async for memories in self._store.pages(lambda q, after: q.documents.memories(after)):
                await asyncio.to_thread(fresh.load, memories)
            async for memories in self._store.pages(lambda q, after: q.documents.archived(after)):
                await asyncio.to_thread(fresh.load, memories)
            await asyncio.to_thread(fresh.loaded)
            self._unsaved = len(fresh)
        self._apply()  # to the index before: the new one has it from the store, or from what was missed
        self.index, self._missed = fresh, None
        for changes in missed:  # what was committed meanwhile, which the scans may have seen or not
            self.follow(changes)
        await self.indexed()
        if not complete:
            await self._load_vectors()

    async def _load_vectors(self) -> None:
        await self._clear_vectors()
        if (space := self.space) is not None:
            async for rows in self._store.pages(lambda q, after: q.documents.vectors(space, after)):
                await asyncio.to_thread(_put, self.index, rows)

    async def _clear_vectors(self) -> None:
        """Forget the vectors of the space before; what was committed while it was in use is followed first."""
        await self.indexed()
        await asyncio.to_thread(self.index.clear_vectors)

    async def indexed(self) -> None:
        """Return once the index holds everything that was committed before this was called."""
        self._apply()
        if not self._followed.done():
            await asyncio.wait([self._followed])  # whoever waits may be cancelled, and the index must follow anyway

    async def current(self) -> Index:
        """Return the index once it holds everything that was committed before this was called."""
        await self.indexed()
        return self.index

    async def _saved(self) -> Index | None:
        """Return the copy of the index from beside the store, caught up with it; None when there is none of use."""
        found = await asyncio.to_thread(saved_index, self._store.path, self._identity())
        position = None if found is None else msgspec.convert(found[0]["position"], Position)
        changed = (
            None
            if position is None
            else await self._store.read(lambda q: q.ops.changed_since(position, self._store.device))
        )
        if found is None or position is None or changed is None:
            try:
                await asyncio.to_thread(drop_index, self._store.path)
            except UnavailableError as error:  # it is of no use, but does no harm
                log.warning("%s", error)
            return None
        rest, arrays = found
        index = await asyncio.to_thread(Index.unpacked, rest["index"], arrays)
        if rest["space"] != self.space:
            await asyncio.to_thread(index.clear_vectors)
        self._unsaved = 0
        async for events in self._store.pages(lambda q, after: q.documents.events(after), position.events):
            await asyncio.to_thread(partial(index.add, events, keep_vectors=True))
            self._unsaved += len(events)
        for ids in batches(changed, SCANNED):
            memories = await self._store.read(lambda q: q.documents.memories_by_id(ids))
            await asyncio.to_thread(index.remove, set(ids) - {doc.id for doc in memories})
            await asyncio.to_thread(index.add, memories)
            self._unsaved += len(ids)
        if (space := self.space) is not None:
            for ids in batches(await asyncio.to_thread(index.without_vector, EMBEDDED_TYPES), SCANNED):
                rows = await self._store.read(lambda q: q.documents.vectors_of(space, ids))
                await asyncio.to_thread(_put, index, rows)
                self._unsaved += len(rows)
        return index

    def _identity(self) -> dict[str, Any]:
        """Return what a saved index must have been saved under to be of use."""
        return {"version": __version__, "store": self._store.store_id, "schema": self._store.schema_version}

    async def save(self) -> None:
        """Save a copy of the index beside the store, if it is large and has changed enough since the last time."""
        if len(self.index) < SAVED_FROM or self._unsaved * SAVED_SHARE < len(self.index):
            return
        async with self._saving:
            if self._erasing.is_set():
                return
            position, index, space = await self._store.position(), self.index, self.space
            await self.indexed()  # the copy is of the position or later
            unsaved, self._unsaved = self._unsaved, 0
            began = time.perf_counter()

            def stop() -> bool:  # the vectors would be those of another model
                return self._erasing.is_set() or self.space != space

            def write() -> bool:
                rest, arrays = index.packed()
                rest = {"index": rest, "position": msgspec.to_builtins(position), "space": space}
                return save_index(self._store.path, self._identity(), rest, arrays, stop=stop)

            try:
                done = await asyncio.to_thread(write)
            except OSError as error:
                log.warning("the index could not be saved: %s", error.strerror)
                done = False
            if done:
                log.info("saved index documents=%d ms=%d", len(index), (time.perf_counter() - began) * 1000)
            else:
                self._unsaved += unsaved

    @asynccontextmanager
    async def unsaved(self) -> AsyncIterator[None]:
        """Delete the saved index, which holds what is about to be erased, and save none until that is done."""
        self._erasing.set()
        self._erasers += 1
        try:
            async with self._saving:  # one under way ends at once
                await asyncio.to_thread(drop_index, self._store.path)
                self._unsaved = len(self.index)
            yield  # beside others: none waits for another's transaction
        finally:
            self._erasers -= 1
            if not self._erasers:
                self._erasing.clear()

    def follow(self, changes: Changes) -> None:
        """Bring the index up to one commit, and leave no copy of what another device had erased.

        The index is changed in a thread of its own, commit after commit: a batch takes a third of a second, and a
        question that is being ranked has the index locked.
        """
        if self._missed is not None:
            self._missed.append(changes)
        if changes.erased:
            self._erasing.set()
            task = asyncio.get_running_loop().create_task(self._follow_erasure(), name="erasure")
            self._dropping.add(task)
            task.add_done_callback(self._dropping.discard)
        if changes.arrived:
            self._wake("embed")
            self._wake("sweep")
        if changes.events or changes.vectors or changes.removed:
            self._wake("toc")
        self._unsaved += len(changes.events) + len(changes.memories) + len(changes.removed) + len(changes.vectors)
        if self._gathered is None:
            self._gathered = changes
            self._gathering = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._apply)
        else:
            self._gathered.follow(changes)
        if len(self._gathered.events) + len(self._gathered.memories) >= GATHERED:
            self._apply()

    def _apply(self) -> None:
        """Bring the index up to what was gathered, after what it is at."""
        changes, self._gathered = self._gathered, None
        if changes is None:
            return
        self._gathering.cancel()
        loop = asyncio.get_running_loop()
        self._followed = loop.run_in_executor(self._follower, _applied, self.index, changes, self.space)


def _applied(index: Index, changes: Changes, space: int | None) -> None:
    """Bring an index up to one commit; vectors of another embedding space than `space` are not its own."""
    try:
        for stale in (False, True):
            arrived: list[EventDoc | MemoryDoc] = [*changes.events, *changes.memories]
            documents = [doc for doc in arrived if (doc.id in changes.stale) is stale]
            if documents:
                index.add(documents, keep_vectors=not stale)
        if changes.removed:
            index.remove(changes.removed)
        _put(index, [(owner, vector) for number, owner, vector in changes.vectors if number == space])
    except Exception:  # what was committed is durable, and the next commit must be followed too
        log.exception("the index could not follow a commit")


def _put(index: Index, rows: Sequence[tuple[str, bytes]]) -> None:
    """Give documents their stored vectors."""
    if rows:
        owners, blobs = zip(*rows, strict=True)
        index.set_vectors(owners, *decode_vectors(blobs))
