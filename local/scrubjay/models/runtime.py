"""The models in use: which, in what state, what they are asked, and how what waits for a vector gets one.

The service asks; slots hold the models and say when one is left alone; the store keeps the queue. An embedder and the
number of its space are taken together, before anything is awaited: `models use` may change both at any time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scrubjay.model_choice import Choice, Origin, chosen
from scrubjay.models import catalog, http, installed, loading, ports
from scrubjay.models.embedding import Meaning, each_encoded, encoded
from scrubjay.models.slot import OF_THE_TEXT, Slot
from scrubjay.policy import MemoryPolicy
from scrubjay.settings import HTTP_PREFIX, NO_MODEL
from scrubjay.store import FIRST, Store, Transaction, Waiting
from scrubjay.store.rows import MAX_EMBEDDED_CHARS
from scrubjay_shared.errors import ConflictError, ScrubjayError
from scrubjay_shared.scoring import quantise

log = logging.getLogger(__name__)

Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The models that the settings name, and what they need. `origins` says where the settings came from."""

    models_dir: Path
    model: str
    reranker: str = NO_MODEL
    origins: Mapping[str, Origin] = field(default_factory=dict)
    endpoint: http.Endpoint | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as a vector, in which space that is, and how far apart there a question and other texts lie."""

    vector: Floats
    space: int
    spread: tuple[float, float]


class Models:
    """The embedder and the reranker of an open store."""

    def __init__(
        self, store: Store, policy: MemoryPolicy, named: Named, entered: Callable[[int | None], Awaitable[None]]
    ) -> None:
        """`entered` is told of the space that is used from then on, None for none."""
        self._store = store
        self._policy = policy
        self._named = named
        self._entered = entered
        self._calls = http.Calls()
        self._embedding = asyncio.Lock()
        self.embedder: Slot[Meaning] = Slot("embedding model", policy.models, self._load_embedder)
        self.reranker: Slot[ports.Reranker] = Slot("reranking model", policy.models, self._load_reranker)

    # --- which --------------------------------------------------------------------------------------------------------

    async def chosen(self) -> Choice:
        """Return which embedding model is used, and why."""
        return chosen("model", self._named.model, self._origin("model"), await self._store.meta("model"))

    async def chosen_reranker(self) -> Choice:
        """Return which reranking model is used, and why."""
        return chosen("reranker", self._named.reranker, self._origin("reranker"), await self._store.meta("reranker"))

    def _origin(self, setting: str) -> Origin:
        return self._named.origins.get(setting, Origin.DEFAULT)

    async def space_name(self) -> str | None:
        """Return the name of the space in use, None without a model or before it is known."""
        if self.embedder.model is not None:
            return self.embedder.model.embedder.space
        name = (await self.chosen()).name
        return catalog.EMBEDDERS[name].space if name in catalog.EMBEDDERS else None

    async def known_space(self) -> int | None:
        """Return the number of the space in use, as far as it is known without loading the model."""
        name = await self.space_name()
        return None if name is None else await self._store.space_number(name)

    async def start(self) -> None:
        """Take up what the store says: its queue is that of the model in use, and empty without one."""
        name = (await self.chosen()).name
        self._set_patience(name)
        if name == NO_MODEL:
            if await self._store.embed_space() is not None:
                await self._store.write(Transaction.leave_space)
        elif await self.known_space() is not None and not await self._is_queued(name):
            space = catalog.EMBEDDERS[name].space
            await self._store.write(lambda tx: tx.enter_space(space))

    def _set_patience(self, name: str) -> None:
        self.embedder.patience = self._policy.models.question_seconds if name.startswith(HTTP_PREFIX) else None

    # --- state --------------------------------------------------------------------------------------------------------

    async def state(self) -> str:
        """Return the embedder's state: "none", "loaded", "idle", or the code of the error that it met."""
        return NO_MODEL if (await self.chosen()).name == NO_MODEL else _state(self.embedder)

    async def reranker_state(self) -> str:
        """Return the reranker's state likewise, or "absent": it is optional."""
        name = (await self.chosen_reranker()).name
        if name == NO_MODEL:
            return NO_MODEL
        state = _state(self.reranker)
        absent = state == "idle" and installed.is_absent(self._named.models_dir, name)
        return installed.ModelState.ABSENT.value if absent else state

    async def warnings(self) -> list[str]:
        """Return what a person should know, with what to do about it."""
        found = [
            f"{error.message}: {effect}; {error.hint}".rstrip("; ")
            for error, effect in (
                (self.embedder.error, "recall goes by words alone"),
                (self.reranker.error, "nothing is reranked"),
            )
            if error is not None
        ]
        _, refused = await self._store.embeddable()
        if refused:
            texts = "1 text" if refused == 1 else f"{refused:,} texts"
            name = (await self.chosen()).name
            found.append(
                f"the model refused {texts}, found by their words alone; 'scrubjay models use {name}' tries them again"
            )
        found += [one.remark for one in (await self.chosen(), await self.chosen_reranker()) if one.remark]
        return found

    # --- asking -------------------------------------------------------------------------------------------------------

    async def ask(self, text: str) -> tuple[Asked | None, str]:
        """Return a question as a vector, or None and why recall goes by words alone."""
        slot = self.embedder
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
        slot = self.embedder
        meaning = slot.model
        if meaning is None:
            await slot.held()
        elif slot.breaker.closed or slot.breaker.may_try(time.monotonic()):
            embedder = meaning.embedder
            try:
                await slot.run(meaning, lambda: embedder.embed_query("ready?"), patience=slot.patience)
            except ScrubjayError as error:
                log.info("model still fails code=%s", error.code)

    async def meaning(self, texts: Sequence[str], *, question: bool = False) -> tuple[str, Floats] | None:
        """Return the space in use and the vectors of some texts in it; None without a model that works."""
        slot = self.embedder
        meaning = await slot.ready(self.try_again) if question else await slot.held()
        if meaning is None:
            return None
        embedder = meaning.embedder

        def embedded() -> Floats:
            return np.stack([embedder.embed_query(text) for text in texts]) if question else embedder.embed(texts)

        try:
            return embedder.space, await slot.run(meaning, embedded, patience=slot.patience if question else None)
        except ScrubjayError:
            return None

    async def vectors_now(self, texts: Sequence[str]) -> tuple[int, Sequence[bytes]] | None:
        """Return the space and the vectors of a few texts when the model is in memory and works, else None.

        So what is added is found by its meaning at once. What gets no vector here waits in the queue.
        """
        slot, meaning = self.embedder, self.embedder.model
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
        slot, meaning = self.embedder, self.embedder.model
        if meaning is None:
            return None
        embedder = meaning.embedder
        try:
            return meaning.space, await slot.run(
                meaning, lambda: quantise(embedder.embed(texts)), patience=slot.patience
            )
        except ScrubjayError:
            return None

    async def rerank(self, text: str, texts: Sequence[str]) -> tuple[Floats | None, str]:
        """Return how well each of some texts answers, and a note; no scores and no note without a reranking model."""
        slot = self.reranker
        reranker = await slot.held()
        if reranker is None:
            return None, "" if slot.error is None else f"{slot.error.message}: not reranked"
        try:
            return await slot.run(reranker, lambda: reranker.score(text, texts)), ""
        except ScrubjayError as error:
            return None, f"{error.message}: not reranked"

    # --- the queue ----------------------------------------------------------------------------------------------------

    async def may_embed(self) -> bool:
        """Say whether `embed` may have something to do. Costs a few looks, however large the store is."""
        name = (await self.chosen()).name
        slot = self.embedder
        if name == NO_MODEL:
            return False
        if slot.error is not None:
            if slot.patience is None:  # of this machine: it is tried when somebody asks, or pulls it
                return slot.model is not None and slot.breaker.closed and await self._store.may_embed()
            return slot.breaker.closed or slot.breaker.due(time.monotonic())
        return await self._store.may_embed() if await self._is_queued(name) else bool(await self._store.texts())

    async def to_embed(self) -> tuple[int, int]:
        """Return how many texts wait for a vector, and how many the model refused; zeros without a model."""
        name = (await self.chosen()).name
        if name == NO_MODEL:
            return 0, 0
        if await self._is_queued(name):
            return await self._store.embeddable()
        return (await self._store.texts() if self.embedder.error is None else 0), 0

    async def _is_queued(self, name: str) -> bool:
        """Return whether the queue is that of the model of this name."""
        queued = await self._store.embed_space()
        if queued is None:
            return False
        if self.embedder.model is not None:
            return queued[0] == self.embedder.model.space
        return loading.is_space_of(queued[1], name, self._named.endpoint)

    async def embed(self, stopping: asyncio.Event) -> int:
        """Embed what waits, newest first. Returns how many texts that were; 0 without a model that works."""
        done = 0
        below = FIRST
        slot = self.embedder
        async with self._embedding:
            if slot.error is not None and slot.patience is not None:
                await self.try_again()
            while not stopping.is_set():
                if slot.model is None and await self._is_done(stopping):
                    return done
                resting = slot.patience is not None and not slot.breaker.closed
                meaning = None if resting else await slot.held()
                if meaning is None:
                    return done
                more = await self._fill()
                waiting = await self._store.to_embed(self._policy.work.embed_batch, below)
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
        return await self._store.is_filling() and await self._store.write(lambda tx: tx.queue.fill())

    async def _is_done(self, stopping: asyncio.Event) -> bool:
        """Return whether nothing waits, as far as the queue can say without the model, which is not loaded for that."""
        if not await self._is_queued((await self.chosen()).name):
            return False
        while not await self._store.to_embed(1):
            if stopping.is_set() or not await self._fill():
                return not await self._store.to_embed(1)
        return False

    async def _embed_batch(self, meaning: Meaning, waiting: Sequence[Waiting]) -> tuple[int, int] | None:
        """Store the vectors of some texts, and which of them the model refused. Returns how many of each.

        None when the model failed, which is no text's fault.
        """
        work = partial(each_encoded, meaning.embedder, [one.text for one in waiting])
        try:
            found = await self.embedder.run(meaning, work)
        except ScrubjayError:
            return None
        both = list(zip(waiting, found, strict=True))
        vectors = [(one.owner, one.said, row) for one, row in both if isinstance(row, bytes)]
        refused = [(one.owner, one.said, row.message) for one, row in both if isinstance(row, OF_THE_TEXT)]
        await self._store.write(partial(_store, space=meaning.space, vectors=vectors, refused=refused))
        if refused:
            log.warning("texts refused by the model count=%d", len(refused))
        return len(vectors), len(refused)

    # --- choosing -----------------------------------------------------------------------------------------------------

    async def use(self, name: str) -> None:
        """Embed with another model from now on; what the model of this space refused is tried again.

        The model that the settings name is not noted as the store's choice: it is used anyway, and was perhaps only
        fetched just now.
        Raises what loading it raises, or ConflictError where this process was told to use another, and changes nothing.
        """
        if name != NO_MODEL and not name.startswith(HTTP_PREFIX):
            catalog.find(name)
        _refuse_fixed(await self.chosen(), "model", name)
        slot = self.embedder
        if name == NO_MODEL:
            async with slot.loading:  # a model on its way in would stay
                await self._note("model", NO_MODEL, await self.chosen())
                await self._store.write(Transaction.leave_space)
                before = slot.replace(None)
                await self._entered(None)
        else:
            embedder = await asyncio.to_thread(self._loaded, name)
            async with slot.loading:
                await self._note("model", name, await self.chosen())
                space = await self._enter(embedder, again=True)
                before = slot.replace(Meaning(embedder, space))
                self._set_patience(name)
        if before is not None:
            await asyncio.to_thread(before.close)

    async def use_reranker(self, name: str) -> None:
        """Rerank with another model from now on. Raises as `use` does."""
        if name != NO_MODEL:
            catalog.find(name)
        _refuse_fixed(await self.chosen_reranker(), "reranker", name)
        reranker = None if name == NO_MODEL else await asyncio.to_thread(self._loaded_reranker, name)
        async with self.reranker.loading:
            await self._note("reranker", name, await self.chosen_reranker())
            before = self.reranker.replace(reranker)
        if before is not None:
            await asyncio.to_thread(before.close)

    async def _note(self, setting: str, name: str, before: Choice) -> None:
        if before.name != name:
            await self._store.write(lambda tx: tx.set_meta(setting, name))

    async def unload_idle(self) -> bool:
        """Let go of the models that nobody has used for a while. Returns whether there was one."""
        seconds = self._policy.work.unload_seconds
        gone = not self._embedding.locked() and await self.embedder.let_go(unused_for=seconds)
        return await self.reranker.let_go(unused_for=seconds) or gone

    async def close(self) -> None:
        """Let go of both models, and wait for no server."""
        self._calls.cut()
        await self.embedder.close()
        await self.reranker.close()

    # --- loading ------------------------------------------------------------------------------------------------------

    async def _load_embedder(self) -> Meaning | None:
        name = (await self.chosen()).name
        self._set_patience(name)
        if name == NO_MODEL:
            return None
        embedder = await asyncio.to_thread(self._loaded, name)
        return Meaning(embedder, await self._enter(embedder))

    async def _load_reranker(self) -> ports.Reranker | None:
        name = (await self.chosen_reranker()).name
        if name == NO_MODEL or installed.is_absent(self._named.models_dir, name):
            return None
        return await asyncio.to_thread(self._loaded_reranker, name)

    def _loaded(self, name: str) -> ports.Embedder:
        named = self._named
        return loading.load(named.models_dir, name, threads=named.threads, endpoint=named.endpoint, calls=self._calls)

    def _loaded_reranker(self, name: str) -> ports.Reranker:
        return loading.load_reranker(self._named.models_dir, name, threads=self._named.threads)

    async def _enter(self, embedder: ports.Embedder, *, again: bool = False) -> int:
        """Use the space of an embedder. `again` also tries what its model refused before."""

        def work(tx: Transaction) -> int:
            space = tx.enter_space(embedder.space)
            if again:
                tx.queue.retry()
            return space

        space = await self._store.write(work)
        await self._entered(space)
        return space


def _state(slot: Slot[Any]) -> str:
    if slot.error is not None and (slot.model is None or not slot.breaker.closed):
        return slot.error.code
    return "idle" if slot.model is None else "loaded"


def _refuse_fixed(choice: Choice, setting: str, name: str) -> None:
    if choice.fixed and choice.name != name:
        raise ConflictError(
            f"this process uses {choice.name} because {choice.because}, which wins over 'models use'",
            hint=f"unset SCRUBJAY_{setting.upper()} where scrubjay is started, start it again, and choose {name} then",
        )


def _store(
    tx: Transaction,
    space: int,
    vectors: Sequence[tuple[str, str, bytes]],
    refused: Sequence[tuple[str, str, str]],
) -> None:
    tx.put_vectors(space, vectors)
    tx.refuse(space, refused)
