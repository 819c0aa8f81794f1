"""The reranking model in use. It is optional: where it is not installed, nothing is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from scrubjay.model_choice import Choice
from scrubjay.models import catalog, installed, loading
from scrubjay.models.ports import Reranker, Vectors
from scrubjay.models.selection import ModelSettings, Selection
from scrubjay.models.slot import Slot
from scrubjay.policy import MemoryPolicy
from scrubjay.settings import NO_MODEL
from scrubjay.store import Store
from scrubjay_shared.errors import ScrubjayError


class ActiveReranker:
    """The reranking model of an open store."""

    def __init__(self, store: Store, policy: MemoryPolicy, settings: ModelSettings) -> None:
        self._settings = settings
        self._selection = Selection("reranker", settings.reranker, store, settings)
        self.slot: Slot[Reranker] = Slot("reranking model", policy.models, self._load)

    async def choice(self) -> Choice:
        """Return which model is used, and why."""
        return await self._selection.choice()

    async def state(self) -> str:
        """Return its state: "none", "absent", "loaded", "idle", or the code of the error that it met."""
        name = (await self.choice()).name
        if name == NO_MODEL:
            return NO_MODEL
        state = self.slot.state
        absent = state == "idle" and installed.is_absent(self._settings.models_dir, name)
        return installed.ModelState.ABSENT.value if absent else state

    async def rerank(self, text: str, texts: Sequence[str]) -> tuple[Vectors | None, str]:
        """Return how well each of some texts answers, and a note; no scores and no note without a reranking model."""
        slot = self.slot
        reranker = await slot.held()
        if reranker is None:
            return None, "" if slot.error is None else f"{slot.error.message}: not reranked"
        try:
            return await slot.run(reranker, lambda: reranker.score(text, texts)), ""
        except ScrubjayError as error:
            return None, f"{error.message}: not reranked"

    async def use(self, name: str) -> None:
        """Rerank with another model from now on. Raises as `ActiveEmbedder.use` does."""
        if name != NO_MODEL:
            catalog.find(name)
        await self._selection.refuse_fixed(name)
        reranker = None if name == NO_MODEL else await asyncio.to_thread(self._loaded, name)
        async with self.slot.loading:
            await self._selection.note(name)
            before = self.slot.replace(reranker)
        if before is not None:
            await asyncio.to_thread(before.close)

    async def close(self) -> None:
        """Let go of the model."""
        await self.slot.close()

    async def _load(self) -> Reranker | None:
        name = (await self.choice()).name
        if name == NO_MODEL or installed.is_absent(self._settings.models_dir, name):
            return None
        return await asyncio.to_thread(self._loaded, name)

    def _loaded(self, name: str) -> Reranker:
        return loading.load_reranker(self._settings.models_dir, name, threads=self._settings.threads)
