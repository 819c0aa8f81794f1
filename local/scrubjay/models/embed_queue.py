"""The queue of texts that wait for a vector, and the work on it. The store keeps the queue."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial

from scrubjay.models.active_embedder import ActiveEmbedder
from scrubjay.models.embedding import Meaning, each_encoded
from scrubjay.models.slot import OF_THE_TEXT
from scrubjay.policy import MemoryPolicy
from scrubjay.settings import NO_MODEL
from scrubjay.store import FIRST, Store, Transaction, Waiting
from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)


class EmbedQueue:
    """The texts of an open store that wait for a vector."""

    def __init__(self, store: Store, policy: MemoryPolicy, embedder: ActiveEmbedder) -> None:
        self._store = store
        self._policy = policy
        self._embedder = embedder
        self._working = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Whether texts are being embedded."""
        return self._working.locked()

    async def may_embed(self) -> bool:
        """Say whether `embed` may have something to do. Costs a few looks, however large the store is."""
        name = (await self._embedder.choice()).name
        slot = self._embedder.slot
        if name == NO_MODEL:
            return False
        if slot.error is not None:
            if slot.patience is None:  # of this machine: it is tried when somebody asks, or pulls it
                return (
                    slot.model is not None
                    and slot.breaker.closed
                    and await self._store.read(lambda q: q.embed_queue.may_wait())
                )
            return slot.breaker.closed or slot.breaker.due(time.monotonic())
        return (
            await self._store.read(lambda q: q.embed_queue.may_wait())
            if await self._embedder.is_queued(name)
            else bool(await self._store.read(lambda q: q.embed_queue.texts()))
        )

    async def to_embed(self) -> tuple[int, int]:
        """Return how many texts wait for a vector, and how many the model refused; zeros without a model."""
        name = (await self._embedder.choice()).name
        if name == NO_MODEL:
            return 0, 0
        if await self._embedder.is_queued(name):
            return await self._store.read(lambda q: q.embed_queue.counts())
        return (await self._store.read(lambda q: q.embed_queue.texts()) if self._embedder.slot.error is None else 0), 0

    async def embed(self, stopping: asyncio.Event) -> int:
        """Embed what waits, newest first. Returns how many texts that were; 0 without a model that works."""
        done = 0
        below = FIRST
        slot = self._embedder.slot
        async with self._working:
            if slot.error is not None and slot.patience is not None:
                await self._embedder.try_again()
            while not stopping.is_set():
                if slot.model is None and await self._is_done(stopping):
                    return done
                resting = slot.patience is not None and not slot.breaker.closed
                meaning = None if resting else await slot.held()
                if meaning is None:
                    return done
                more = await self._fill()
                waiting = await self._store.read(lambda q: q.embed_queue.first(self._policy.work.embed_batch, below))
                if not waiting and not more:
                    return done
                settled = await self._embed_batch(meaning, waiting) if waiting else (0, 0)
                if settled is None:
                    return done
                if sum(settled) < len(waiting):
                    below = waiting[-1].place  # the server failed over one, which is tried again the next time
                done += settled[0]
        return done

    async def _fill(self) -> bool:
        """Look at some of what was there before the space was entered. Returns whether more of it is left."""
        return await self._store.read(lambda q: q.embed_queue.is_filling()) and await self._store.write(
            lambda tx: tx.vectors.queue.fill()
        )

    async def _is_done(self, stopping: asyncio.Event) -> bool:
        """Return whether nothing waits, as far as the queue can say without the model, which is not loaded for that."""
        if not await self._embedder.is_queued((await self._embedder.choice()).name):
            return False
        while not await self._store.read(lambda q: q.embed_queue.first(1)):
            if stopping.is_set() or not await self._fill():
                return not await self._store.read(lambda q: q.embed_queue.first(1))
        return False

    async def _embed_batch(self, meaning: Meaning, waiting: Sequence[Waiting]) -> tuple[int, int] | None:
        """Store the vectors of some texts, and which of them the model refused. Returns how many of each.

        None when the model failed, for which no text is to blame.
        """
        work = partial(each_encoded, meaning.embedder, [one.text for one in waiting])
        try:
            found = await self._embedder.slot.run(meaning, work)
        except ScrubjayError:
            return None
        both = list(zip(waiting, found, strict=True))
        vectors = [(one.owner, one.said, row) for one, row in both if isinstance(row, bytes)]
        refused = [(one.owner, one.said, row.message) for one, row in both if isinstance(row, OF_THE_TEXT)]
        await self._store.write(partial(_store, space=meaning.space, vectors=vectors, refused=refused))
        if refused:
            log.warning("texts refused by the model count=%d", len(refused))
        return len(vectors), len(refused)


def _store(
    tx: Transaction,
    space: int,
    vectors: Sequence[tuple[str, str, bytes]],
    refused: Sequence[tuple[str, str, str]],
) -> None:
    tx.vectors.put(space, vectors)
    tx.vectors.refuse(space, refused)
