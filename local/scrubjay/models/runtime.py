"""The models of an open store: embedder, reranker, reader, and the queue of texts that wait for a vector."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from scrubjay.models import reading
from scrubjay.models.active_embedder import ActiveEmbedder
from scrubjay.models.active_reranker import ActiveReranker
from scrubjay.models.embed_queue import EmbedQueue
from scrubjay.models.reading import OnnxReader
from scrubjay.models.selection import ModelSettings
from scrubjay.models.slot import Slot
from scrubjay.policy import MemoryPolicy
from scrubjay.settings import NO_MODEL
from scrubjay.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from scrubjay.distill.reading import Reader


class Models:
    """The embedder, the reranker and the reader of an open store, and what waits for the embedder."""

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
        self.embedder = ActiveEmbedder(store, policy, settings, entered)
        self.reranker = ActiveReranker(store, policy, settings)
        self.reader: Slot[OnnxReader] = Slot("reader", policy.models, self._load_reader)
        self.queue = EmbedQueue(store, policy, self.embedder)

    async def start(self) -> None:
        """Take up what the store says."""
        await self.embedder.start()

    async def warnings(self) -> list[str]:
        """Return what a person should know, with what to do about it."""
        found = [
            f"{error.message}: {effect}; {error.hint}".rstrip("; ")
            for error, effect in (
                (self.embedder.slot.error, "recall goes by words alone"),
                (self.reranker.slot.error, "nothing is reranked"),
                (self.reader.error, "of work only what is said in so many words (remember, always, never) is learned"),
            )
            if error is not None
        ]
        _, refused = await self._store.read(lambda q: q.embed_queue.counts())
        if refused:
            texts = "1 text" if refused == 1 else f"{refused:,} texts"
            name = (await self.embedder.choice()).name
            found.append(
                f"the model refused {texts}, found by their words alone; 'scrubjay models use {name}' tries them again"
            )
        found += [one.remark for one in (await self.embedder.choice(), await self.reranker.choice()) if one.remark]
        return found

    async def reading(self) -> Reader:
        """Return what reads turns of work: the reader, or what goes by explicit words where no model is or works."""
        from scrubjay.distill.reading import EXPLICIT_WORDS  # noqa: PLC0415  # an eighth of the daemon's start

        return await self.reader.held() or EXPLICIT_WORDS

    async def unload_idle(self) -> bool:
        """Let go of the models that nobody has used for a while. Returns whether a model was let go."""
        seconds = self._policy.work.unload_seconds
        gone = not self.queue.busy and await self.embedder.slot.let_go(unused_for=seconds)
        gone = await self.reader.let_go(unused_for=self._policy.work.unload_reader_seconds) or gone
        return await self.reranker.slot.let_go(unused_for=seconds) or gone

    async def close(self) -> None:
        """Let go of all three, and wait for no server."""
        await self.embedder.close()
        await self.reranker.close()
        await self.reader.close()

    async def _load_reader(self) -> OnnxReader | None:
        if (await self.embedder.choice()).name == NO_MODEL:
            return None
        return await asyncio.to_thread(reading.load)
