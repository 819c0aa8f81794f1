"""How the store and this process are: counts, sizes, models, jobs, warnings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from scrubjay import api, refusals
from scrubjay.api.caller import Caller
from scrubjay.models import catalog, installed
from scrubjay.models.runtime import Models
from scrubjay.store import Store, sqlite_version
from scrubjay.version import __version__
from scrubjay_io.sqlite import SAFE_VERSION, version_info
from scrubjay_shared.clock import Millis


class Status:
    """Looks at one store and what runs around it. `space` returns the number of the embedding space in use."""

    def __init__(
        self,
        store: Store,
        *,
        models: Models,
        models_dir: Path,
        space: Callable[[], int | None],
        to_learn: Callable[[], Awaitable[int]],
        jobs: Callable[[], Awaitable[tuple[api.Job, ...]]],
        surfacing: Callable[[], Awaitable[api.SurfacingStats]],
        started: Millis,
        warnings: Iterable[Callable[[], Awaitable[Iterable[str]]]],
        notes: Iterable[Callable[[], Awaitable[Iterable[str]]]],
    ) -> None:
        self._store = store
        self._models = models
        self._models_dir = models_dir
        self._space = space
        self._to_learn = to_learn
        self._jobs = jobs
        self._surfacing = surfacing
        self._started = started
        self._warnings = warnings
        self._notes = notes

    async def stats(self, _caller: Caller, _: api.Nothing) -> api.StatsResponse:
        """Return counts and sizes."""
        counts = await self._store.read(lambda q: q.stats.counts())
        oldest, newest = await self._store.read(lambda q: q.stats.bounds())
        space = self._space()
        embedded = 0 if space is None else await self._store.read(lambda q: q.documents.embedded(space))
        waiting, refused = await self._models.queue.to_embed()
        return api.StatsResponse(
            memories=counts["memories"],
            events=counts["events"],
            sessions=counts["sessions"],
            aliases=counts["aliases"],
            grips=counts["grips"],
            ops=counts["ops"],
            identity_keys=counts["identity_keys"],
            active_keys=counts["active_keys"],
            by_type=await self._store.read(lambda q: q.stats.grouped("type")),
            by_kind=await self._store.read(lambda q: q.stats.grouped("kind")),
            file_bytes=self._store.path.stat().st_size,
            schema_version=self._store.schema_version,
            embedded=embedded,
            to_embed=waiting,
            refused=refused,
            to_learn=await self._to_learn(),
            space=await self._models.embedder.space_name(),
            oldest=oldest,
            newest=newest,
            surfacing=await self._surfacing(),
            refused_reports=len(
                await asyncio.to_thread(refusals.counted, self._store.path.parent, now=self._store.clock())
            ),
        )

    async def status(self, _caller: Caller, _: api.Nothing) -> api.StatusResponse:
        """Return how this process is."""
        warnings = []
        if self._store.failure is not None:
            warnings.append(f"{self._store.failure.message}: {self._store.failure.hint}")
        if version_info < SAFE_VERSION:
            warnings.append(
                f"SQLite {sqlite_version} is older than 3.51.3: safe with one writer, which scrubjay is;"
                " upgrade when you can"
            )
        warnings += await self._models.warnings()
        for lines in self._warnings:
            warnings += await lines()
        return api.StatusResponse(
            version=__version__,
            pid=os.getpid(),
            started=self._started,
            file=str(self._store.path),
            sqlite_version=sqlite_version,
            schema_version=self._store.schema_version,
            device=self._store.device,
            model=(await self._models.embedder.choice()).name,
            model_state=await self._models.embedder.state(),
            reranker=(await self._models.reranker.choice()).name,
            reranker_state=await self._models.reranker.state(),
            jobs=await self._jobs(),
            warnings=tuple(warnings),
            notes=tuple([note for lines in self._notes for note in await lines()]),
            surfacing=await self._surfacing(),
        )

    async def models(self, _caller: Caller, _: api.Nothing) -> api.ModelsResponse:
        """Return the models that can be used and how far embedding has come."""
        choices = (await self._models.embedder.choice(), await self._models.reranker.choice())
        chosen = tuple(choice.name for choice in choices)
        found = await asyncio.to_thread(installed.installed, self._models_dir, in_use=chosen)
        waiting, refused = await self._models.queue.to_embed()
        space = self._space()
        met = (self._models.embedder.slot.error, self._models.reranker.slot.error)
        errors = {name: error.message for name, error in zip(chosen, met, strict=True) if error is not None}
        return api.ModelsResponse(
            models=tuple(
                api.ModelState(
                    name=model.name,
                    kind=model.kind.value,
                    state=model.state.value,
                    bytes=model.size,
                    licence=model.licence,
                    in_use=model.in_use,
                    error=errors.get(model.name),
                )
                for model in found
            ),
            space=await self._models.embedder.space_name(),
            embedded=0 if space is None else await self._store.read(lambda q: q.documents.embedded(space)),
            to_embed=waiting,
            refused=refused,
            notes=tuple(choice.remark for choice in choices if choice.remark),
        )

    async def use_model(self, caller: Caller, request: api.ModelRequest) -> api.ModelsResponse:
        """Embed or rerank with another model from now on. Recall goes on, lexically until its vectors are there.

        What the model is for says its kind; `request.reranker` says it where the name is "none". The vectors of the
        model before stay in the file, so that going back costs nothing. Raises what loading the model raises, and
        changes nothing then.
        """
        if request.reranker or request.name in catalog.RERANKERS:
            await self._models.reranker.use(request.name)
        else:
            await self._models.embedder.use(request.name)
        return await self.models(caller, api.Nothing())
