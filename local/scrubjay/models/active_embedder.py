"""The embedding model in use: what it is asked, and how another one takes its place.

An embedder and the number of its space are taken together, before anything is awaited: `models use` may change both at
any time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from scrubjay.model_choice import Choice
from scrubjay.models import catalog, http, loading
from scrubjay.models.embedding import Meaning, encoded
from scrubjay.models.ports import Embedder, Vectors
from scrubjay.models.selection import ModelSettings, Selection
from scrubjay.models.slot import Slot
from scrubjay.policy import MemoryPolicy
from scrubjay.setting_values import HTTP_PREFIX
from scrubjay.settings import NO_MODEL
from scrubjay.store import Store, Transaction
from scrubjay.store.rows import MAX_EMBEDDED_CHARS
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.scoring import quantise

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as a vector, in which space that is, and how far apart there a question and other texts lie."""

    vector: Vectors
    space: int
    spread: tuple[float, float]


class ActiveEmbedder:
    """The embedding model of an open store."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        settings: ModelSettings,
        entered: Callable[[int | None], Awaitable[None]],
    ) -> None:
        """`entered` is told which space is used from then on, None without a model."""
        self._store = store
        self._policy = policy
        self._settings = settings
        self._entered = entered
        self._calls = http.Calls()
        self._selection = Selection("model", settings.model, store, settings)
        self.slot: Slot[Meaning] = Slot("embedding model", policy.models, self._load)

    async def choice(self) -> Choice:
        """Return which model is used, and why."""
        return await self._selection.choice()

    async def space_name(self) -> str | None:
        """Return the name of the space in use, None without a model or before it is known."""
        if self.slot.model is not None:
            return self.slot.model.embedder.space
        name = (await self.choice()).name
        return catalog.EMBEDDERS[name].space if name in catalog.EMBEDDERS else None

    async def known_space(self) -> int | None:
        """Return the number of the space in use, as far as it is known without loading the model."""
        name = await self.space_name()
        return None if name is None else await self._store.read(lambda q: q.embed_queue.space_number(name))

    async def is_queued(self, name: str) -> bool:
        """Return whether the queue of texts is that of the model of this name."""
        queued = await self._store.read(lambda q: q.embed_queue.space())
        if queued is None:
            return False
        if self.slot.model is not None:
            return queued[0] == self.slot.model.space
        return loading.is_space_of(queued[1], name, self._settings.endpoint)

    async def start(self) -> None:
        """Take up what the store says: its queue is that of the model in use, and empty without a model."""
        name = (await self.choice()).name
        self._set_patience(name)
        if name == NO_MODEL:
            if await self._store.read(lambda q: q.embed_queue.space()) is not None:
                await self._store.write(lambda tx: tx.vectors.leave_space())
        elif await self.known_space() is not None and not await self.is_queued(name):
            space = catalog.EMBEDDERS[name].space
            await self._store.write(lambda tx: tx.vectors.enter_space(space))

    def _set_patience(self, name: str) -> None:
        self.slot.patience = self._policy.models.question_seconds if name.startswith(HTTP_PREFIX) else None

    async def state(self) -> str:
        """Return the embedder's state: "none", "loaded", "idle", or the code of the error that it met."""
        return NO_MODEL if (await self.choice()).name == NO_MODEL else self.slot.state

    async def ask(self, text: str) -> tuple[Asked | None, str]:
        """Return a question as a vector, or None and why recall goes by words alone."""
        slot = self.slot
        meaning = await slot.ready(self.try_again)
        if meaning is None:
            return (
                None,
                "no model in use: lexical only" if slot.error is None else f"{slot.error.message}: lexical only",
            )
        embedder = meaning.embedder
        try:
            vector = await slot.run(meaning, lambda: embedder.embed_query(text), patience=slot.patience)
        except ScrubjayError as error:
            return None, f"{error.message}: lexical only"
        return Asked(vector=vector, space=meaning.space, spread=embedder.spread), ""

    async def try_again(self) -> None:
        """Ask a model that failed for one vector; how that ends opens or closes its breaker."""
        slot = self.slot
        meaning = slot.model
        if meaning is None:
            await slot.held()
        elif slot.breaker.closed or slot.breaker.may_try(time.monotonic()):
            embedder = meaning.embedder
            try:
                await slot.run(meaning, lambda: embedder.embed_query("ready?"), patience=slot.patience)
            except ScrubjayError as error:
                log.info("model still fails code=%s", error.code)

    async def meaning(self, texts: Sequence[str], *, question: bool = False) -> tuple[str, Vectors] | None:
        """Return the space in use and the vectors of some texts in it; None without a model that works."""
        slot = self.slot
        meaning = await slot.ready(self.try_again) if question else await slot.held()
        if meaning is None:
            return None
        embedder = meaning.embedder

        def embedded() -> Vectors:
            return np.stack([embedder.embed_query(text) for text in texts]) if question else embedder.embed(texts)

        try:
            return embedder.space, await slot.run(meaning, embedded, patience=slot.patience if question else None)
        except ScrubjayError:
            return None

    async def vectors_now(self, texts: Sequence[str]) -> tuple[int, Sequence[bytes]] | None:
        """Return the space and the vectors of a few texts when the model is in memory and works, else None.

        So what is added is found by its meaning at once. What gets no vector here waits in the queue.
        """
        slot, meaning = self.slot, self.slot.model
        if meaning is None or not slot.breaker.closed or not texts or len(texts) > self._policy.work.embed_batch:
            return None
        clipped = [text[:MAX_EMBEDDED_CHARS] for text in texts]
        try:
            return meaning.space, await slot.run(
                meaning, partial(encoded, meaning.embedder, clipped), patience=slot.patience
            )
        except ScrubjayError:
            return None

    async def vectors_of(self, texts: Sequence[str]) -> tuple[int, tuple[Any, Any]] | None:
        """Return the space and the quantised rows and scales of some texts when the model is in memory, else None."""
        slot, meaning = self.slot, self.slot.model
        if meaning is None:
            return None
        embedder = meaning.embedder
        try:
            return meaning.space, await slot.run(
                meaning, lambda: quantise(embedder.embed(texts)), patience=slot.patience
            )
        except ScrubjayError:
            return None

    async def use(self, name: str) -> None:
        """Embed with another model from now on; what the model of this space refused is tried again.

        The model that the settings name is not noted as the store's choice: it is used anyway, and was perhaps only
        fetched just now.
        Raises what loading it raises, or ConflictError where this process was told to use another, and changes nothing.
        """
        if name != NO_MODEL and not name.startswith(HTTP_PREFIX):
            catalog.find(name)
        await self._selection.refuse_fixed(name)
        slot = self.slot
        if name == NO_MODEL:
            async with slot.loading:  # a model on its way in would stay
                await self._selection.note(NO_MODEL)
                await self._store.write(lambda tx: tx.vectors.leave_space())
                before = slot.replace(None)
                await self._entered(None)
        else:
            embedder = await asyncio.to_thread(self._loaded, name)
            async with slot.loading:
                await self._selection.note(name)
                space = await self._enter(embedder, again=True)
                before = slot.replace(Meaning(embedder, space))
                self._set_patience(name)
        if before is not None:
            await asyncio.to_thread(before.close)

    async def close(self) -> None:
        """Let go of the model, and wait for no server."""
        self._calls.cut()
        await self.slot.close()

    async def _load(self) -> Meaning | None:
        name = (await self.choice()).name
        self._set_patience(name)
        if name == NO_MODEL:
            return None
        embedder = await asyncio.to_thread(self._loaded, name)
        return Meaning(embedder, await self._enter(embedder))

    def _loaded(self, name: str) -> Embedder:
        named = self._settings
        return loading.load(named.models_dir, name, threads=named.threads, endpoint=named.endpoint, calls=self._calls)

    async def _enter(self, embedder: Embedder, *, again: bool = False) -> int:
        """Use the space of an embedder. `again` also tries what its model refused before."""

        def work(tx: Transaction) -> int:
            space = tx.vectors.enter_space(embedder.space)
            if again:
                tx.vectors.queue.retry()
            return space

        space = await self._store.write(work)
        await self._entered(space)
        return space
