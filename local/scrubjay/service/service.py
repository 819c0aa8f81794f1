"""The product as verbs. Each takes one request of `api` and returns one answer; doors only translate to them.

Theory of operation. A verb validates, decides with the pure modules, and acts through the store. Writes are durable
when a verb returns. What they leave to be done (distilling, embedding) is found by looking at the store, never kept in
memory, so that a crash loses nothing and repeats a step with the same result. The index in memory follows the store's
commits in their order; `recall` reads only it and the rows of its hits.
"""

from __future__ import annotations

import asyncio
import builtins
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from scrubjay import __version__, api
from scrubjay.dates import find_dates
from scrubjay.index.index import Index
from scrubjay.ingest import intake
from scrubjay.jobs.distill import Distill
from scrubjay.jobs.embed import Embed
from scrubjay.jobs.maintain import Maintain
from scrubjay.jobs.recall_counts import RecallCounts
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.model_choice import Origin
from scrubjay.models import http
from scrubjay.models.runtime import Models
from scrubjay.models.selection import ModelSettings
from scrubjay.policy import DEFAULT, MemoryPolicy, RecallWeights, weighted
from scrubjay.retrieval import budget
from scrubjay.retrieval.recall import CUT, Filters, Query, Ranking, passage, rank, reranked
from scrubjay.retrieval.recall import Hit as Ranked
from scrubjay.service.archives import Archives
from scrubjay.service.conflicts import Conflicts
from scrubjay.service.context import Context
from scrubjay.service.events import Events
from scrubjay.service.forget import Forgetting
from scrubjay.service.history import History
from scrubjay.service.imports import Imports, batches
from scrubjay.service.memories import Memories
from scrubjay.service.paging import check_times
from scrubjay.service.references import References
from scrubjay.service.status import Status
from scrubjay.service.threads import off_loop
from scrubjay.settings import Settings
from scrubjay.store import (
    Changes,
    Position,
    Store,
    Transaction,
    drop_index,
    save_index,
    saved_index,
)
from scrubjay.store.rows import EMBEDDED_TYPES
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    DeniedError,
    InvalidError,
    ScrubjayError,
    TooLargeError,
    UnavailableError,
)
from scrubjay_shared.records import (
    Event,
    EventType,
    Grip,
    Layer,
    Memory,
)
from scrubjay_shared.scoring import decode_vectors
from scrubjay_shared.text import query_tokens

log = logging.getLogger(__name__)

T = TypeVar("T")

NO_MODEL = "none"


SAVED_FROM = 20_000
"""Documents from which on a copy of the index is kept beside the store: fewer are read in half a second."""

SAVED_SHARE = 20
"""Once one document in so many has changed, the copy is written again: catching up with more would take a second."""

RERANKED_CHARS = 8_000
"""Of a text given to the reranking model, whose window is 512 tokens: more words than it reads."""

READ_HITS = 16
"""Hits whose texts are read at a time: an answer of the usual size is read at once, and a budget soon spent ends it."""

SCANNED = 5_000
"""Documents read from the store at a time while catching up."""


class Service:
    """An open store with everything around it. Made by `Service.open`."""

    def __init__(self, store: Store, policy: MemoryPolicy, named: ModelSettings, now: Callable[[], Millis]) -> None:
        self.store = store
        self.policy = policy
        self._index = Index()
        self._missed: builtins.list[Changes] | None = None
        self._models = Models(store, policy, named, self._enter_space)
        self._now = now
        self._space: int | None = None
        self._spread = (0.0, 1.0)
        self._indexing = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._follower = ThreadPoolExecutor(max_workers=1, thread_name_prefix="index")
        self._followed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followed.set_result(None)
        self._erasing = threading.Event()
        self._dropping: set[asyncio.Task[None]] = set()
        self._unsaved = 0
        stopping = asyncio.Event()
        self.distill = Distill(
            store,
            policy,
            stopping,
            identity=lambda: self._context.slots(Layer.IDENTITY, None, None),
            on_memories=lambda: self.on_work("embed"),
        )
        self.embed = Embed(self._models, stopping)
        self.recall_counts = RecallCounts(store, policy.work)
        self.maintain = Maintain(store, self._models, stopping, save_index=self._save_index)
        self.scheduler = Scheduler(
            (self.distill, self.embed, self.recall_counts, self.maintain), store, policy.work, stopping
        )
        self.on_work: Callable[[str], None] = self.scheduler.wake
        """Told the name of a job that has something to do."""
        self._compose(named)

    def _compose(self, named: ModelSettings) -> None:
        store, policy, now = self.store, self.policy, self._now
        self._references = References(store, lambda: self._index)
        self._events = Events(store, policy, references=self._references, wake=self._wake, now=now)
        self._memories = Memories(store, policy, models=self._models, references=self._references, wake=self._wake)
        self._forgetting = Forgetting(
            store, references=self._references, unsaved_index=self._unsaved_index, wake=self._wake
        )
        self._context = Context(
            store, policy, references=self._references, forgetting=self._forgetting, wake=self._wake
        )
        self.archives = Archives(
            store,
            flush_accesses=self.recall_counts.run,
            rebuilding=self._rebuilding,
            load_index=self._load_index,
            wake=self._wake,
            now=now,
        )
        history = History(store, policy, references=self._references)
        conflicts = Conflicts(store, references=self._references, wake=self._wake)
        imports = Imports(store, policy, events=self._events, memories=self._memories, wake=self._wake, now=now)
        status = Status(
            store,
            models=self._models,
            models_dir=named.models_dir,
            space=lambda: self._space,
            to_learn=self.distill.pending,
            jobs=self.scheduler.jobs,
            started=now(),
        )
        self.ingest = self._events.ingest
        self.events = self._events.events
        self.sessions = self._events.sessions
        self.add = self._memories.add
        self.list = self._memories.page
        self.get = self._memories.get
        self.update = self._memories.update
        self.rename = self._memories.rename
        self.alias = self._memories.alias
        self.why = history.why
        self.conflicts = conflicts.conflicts
        self.resolve = conflicts.resolve
        self.forget = self._forgetting.forget
        self.context = self._context.context
        self.set_identity = self._context.set_identity
        self.set_active = self._context.set_active
        self.import_ = imports.load
        self.export = self.archives.export
        self.backup = self.archives.backup
        self.rebuild = self.archives.rebuild
        self.stats = status.stats
        self.status = status.status
        self.models = status.models
        self.use_model = status.use_model

    def _wake(self, job: str) -> None:
        self.on_work(job)

    @asynccontextmanager
    async def _rebuilding(self) -> AsyncIterator[None]:
        """Hold what follows the store, so that it may be derived again."""
        async with self._indexing, self._unsaved_index():
            yield

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        models_dir: Path,
        model: str,
        reranker: str = NO_MODEL,
        policy: MemoryPolicy = DEFAULT,
        origins: Mapping[str, Origin] | None = None,
        endpoint: http.Endpoint | None = None,
        threads: int | None = None,
        now: Callable[[], Millis] = lambda: Millis(time.time_ns() // 1_000_000),
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> Service:
        """Open the store at `path` and load its index. Raises what `Store.open` raises.

        `model` names the embedding model and `reranker` the reranking model, which is used where it is installed;
        `origins` says where these names came from, and `choice.chosen` what that means beside the store's own choice
        (`use_model`). `endpoint` is for models that run elsewhere, `threads` how many texts are embedded, or pairs
        scored, at once.
        """
        store = await Store.open(path, now=now, entropy=entropy)
        named = ModelSettings(
            models_dir=models_dir,
            model=model,
            reranker=reranker,
            origins=origins or {},
            endpoint=endpoint,
            threads=threads,
        )
        service = cls(store, policy, named, now)
        try:
            await store.write(Transaction.drop_leases)
            await service._models.start()
            await service._load_index()
        except BaseException:
            await store.close()
            raise
        store.on_change = service._follow
        return service

    @classmethod
    async def configured(
        cls, settings: Settings, environ: Mapping[str, str], *, path: Path | None = None, policy: MemoryPolicy = DEFAULT
    ) -> Service:
        """Open the store that the settings name (or the one at `path`) with the models that they choose.

        `environ` holds the key of an embeddings server under the name that the settings give. Raises as `open`.
        """
        endpoint = None
        if settings.embed_url:
            key = environ.get(settings.embed_key_env, "") if settings.embed_key_env else ""
            endpoint = http.Endpoint(url=settings.embed_url, api=settings.embed_api, key=key)
        if settings.recall_weights is not None:
            weights = await asyncio.to_thread(_weights, settings.recall_weights)
            policy = replace(policy, recall=weighted(policy.recall, weights))
        service = await cls.open(
            settings.store_path if path is None else path,
            models_dir=settings.models_dir,
            model=settings.model,
            reranker=settings.reranker,
            origins=settings.origins,
            policy=policy,
            endpoint=endpoint,
            threads=settings.threads,
        )
        sockets = () if settings.socket is None else (settings.socket,)
        service.archives.ours = (settings.config_path, settings.log_path, settings.token_path, *sockets)
        return service

    @property
    def failure(self) -> ScrubjayError | None:
        """Why nothing can be stored any more until this is opened again; None while all is well."""
        return self.store.failure

    async def close(self) -> None:
        """Write what recall counted, close the store, let go of the models. Closing twice is fine."""
        try:
            if self.failure is None:
                await self.recall_counts.run()
                await self._save_index()
            await asyncio.gather(*self._dropping)
        finally:
            self.recall_counts.discard()
            try:
                await self._models.close()
            finally:
                await self.store.close()
                await self.indexed()
                self._follower.shutdown(wait=True)  # it has nothing left to do

    # --- recall -------------------------------------------------------------------------------------------------------

    async def recall(self, request: api.RecallRequest) -> api.RecallAnswer:
        """Return what answers a question, best first, within the budget of tokens. Writes nothing."""
        began = time.perf_counter()
        text = self._check_recall(request)
        hybrid = request.mode is api.Mode.HYBRID
        stages = dict.fromkeys(("embed", "rank", "rerank", "read"), 0.0)
        notes: builtins.list[str] = [*await self._references.notes_on(request.project)]
        vector = None
        reranks = hybrid and request.rerank and bool(text.strip())
        reranker = None
        if request.mode is not api.Mode.KEYWORD and text.strip():
            # The first question waits for both models: for one beside the other, not for one after the other.
            loading = [self._models.reranker.slot.held()] if reranks else []
            (vector, note), named, *loaded = await asyncio.gather(self._embed_query(text), self._named(text), *loading)
            reranker = loaded[0] if loaded else None
            notes += [note] if note else []
            if reranks and reranker is None and self._models.reranker.slot.error is not None:
                notes.append(f"the hits were not reranked: {self._models.reranker.slot.error.message}")
        else:
            named = await self._named(text)
        stages["embed"] = _lap(began)
        now = self._now()
        query = Query(
            text=text,
            tokens=tuple(query_tokens(text)),
            vector=vector,
            named=tuple(named),
            dates=tuple((found.start, found.end) for found in find_dates(text, now, _local_offset(now))),
            spread=self._spread,
        )
        filters = Filters(
            caller_project=request.project,
            caller_session=request.session_id,
            kinds=frozenset(request.kinds),
            types=frozenset(kind.value for kind in request.types) or None,
            min_salience=request.min_salience,
            agent=request.agent,
            scope=None if request.scope is None else request.scope.value,
            resource_id=request.resource_id,
            since=request.since,
            until=request.until,
        )
        policy = self.policy.recall

        def ranked() -> Ranking:
            return rank(
                self._index,
                query,
                filters,
                policy,
                limit=request.limit if reranker is None else max(request.limit, policy.rerank_hits),
                mode=request.mode.value,
                neighbours=request.neighbours,
                before=0 if reranker is None else policy.window_turns,
            )

        if request.mode is api.Mode.WEIGHTED:
            await self._place_topics()
        lap = time.perf_counter()
        await self.indexed()
        ranking = await asyncio.to_thread(ranked)
        stages["rank"] = _lap(lap)
        if reranker is not None:
            lap = time.perf_counter()
            ranking, note = await self._rerank(text, ranking, request.limit)
            notes += [note] if note else []
            stages["rerank"] = _lap(lap)
        lap = time.perf_counter()
        max_tokens = self.policy.limits.recall_tokens if request.max_tokens is None else request.max_tokens
        kept, tokens, left_out = await self._packed(ranking.hits, max_tokens)
        stages["read"] = _lap(lap)
        self.recall_counts.add((hit.id for hit in kept if hit.kind == "memory"), now)
        return api.RecallAnswer(
            hits=kept,
            mode=ranking.mode if vector is not None or not hybrid else "lexical",
            tokens=tokens,
            elapsed_ms=_lap(began),
            left_out=left_out,
            notes=tuple(dict.fromkeys([*notes, *ranking.notes])),
            stages_ms=stages,
        )

    async def _rerank(self, text: str, ranking: Ranking, limit: int) -> tuple[Ranking, str]:
        """Return the best `limit` hits as the reranking model orders the first of them, or as they were and why."""
        policy = self.policy.recall
        first = ranking.hits[: policy.rerank_hits]
        if len(first) < 2:
            return replace(ranking, hits=ranking.hits[:limit]), ""
        asked = [hit for hit in first if hit.kind == "event"]
        memories, events, before = await asyncio.gather(
            self.store.memories([hit.id for hit in first if hit.kind == "memory"], chars=RERANKED_CHARS),
            self.store.events([hit.id for hit in asked], chars=RERANKED_CHARS),
            self.store.events([id_ for hit in asked for id_ in hit.before], chars=-RERANKED_CHARS),
        )
        passages = [
            memories[hit.id].content
            if hit.id in memories
            else passage(
                events[hit.id].speaker,
                events[hit.id].text,
                [(before[id_].speaker, before[id_].text) for id_ in hit.before if id_ in before],
                policy,
            )
            if hit.id in events
            else ""  # forgotten since it was ranked: it is left out when the hits are read
            for hit in first
        ]
        logits, note = await self._models.reranker.rerank(text, passages)
        if logits is None:
            return replace(ranking, hits=ranking.hits[:limit]), note
        return reranked(ranking, logits, policy, limit=limit), note

    def _check_recall(self, request: api.RecallRequest) -> str:
        work = self.policy.work
        if not 1 <= request.limit <= work.recalled_hits:
            raise InvalidError(
                f"limit must be between 1 and {work.recalled_hits}, got {request.limit}",
                hint="ask for fewer hits, or leave the limit out",
            )
        if not 0 <= request.neighbours <= work.neighbours:
            raise InvalidError(
                f"neighbours must be between 0 and {work.neighbours}, got {request.neighbours}",
                hint="0, the default, gives the hits alone",
            )
        intake.check_salience(request.min_salience)
        check_times(request.since, request.until)
        if request.max_tokens is not None and request.max_tokens < 1:
            raise InvalidError(
                f"max_tokens must be 1 or more, got {request.max_tokens}", hint="leave it out for the usual budget"
            )
        if len(request.query) > self.policy.limits.max_query_chars:
            raise TooLargeError(
                f"a question must have at most {self.policy.limits.max_query_chars} characters, "
                f"got {len(request.query)}",
                hint="ask for what you want to know in a few sentences",
            )
        if not request.kinds or not set(request.kinds) <= {"memory", "event"}:
            raise InvalidError(
                f"kinds must be memory, event or both, got {', '.join(request.kinds)[:80] or 'an empty list'}",
                hint="leave it out to search both",
            )
        caller = {request.project, request.session_id} - {None}
        if caller and request.resource_id is not None and request.resource_id not in caller:
            raise DeniedError(
                f"{request.resource_id} is not the caller's own project or session", hint="leave out resource_id"
            )
        return intake.valid(request.query)

    async def _named(self, text: str) -> Sequence[str]:
        name = " ".join(text.split())
        if not name or len(name) > self.policy.limits.max_name_chars:
            return []
        return await self.store.named(name)

    async def _packed(self, ranked: Sequence[Ranked], max_tokens: int) -> tuple[tuple[api.Hit, ...], int, int]:
        """Return the hits that fit a budget, what they cost, and how many did not; no more is read than can fit."""
        kept: builtins.list[api.Hit] = []
        spent = 0
        for at in range(0, len(ranked), READ_HITS):
            most = min(self.policy.limits.hit_chars, budget.chars_within(max_tokens - spent))
            hits = await self._hits(ranked[at : at + READ_HITS], most)
            chars = sum(len(hit.text) + sum(len(quote.text) for quote in hit.neighbours) for hit in hits)
            fitting, cost, left_out = await off_loop(chars, partial(budget.fit, hits, max_tokens - spent))
            kept += fitting
            spent += cost
            if left_out or (fitting and fitting[-1].text != hits[len(fitting) - 1].text):
                return tuple(kept), spent, left_out + len(ranked[at + READ_HITS :])
        return tuple(kept), spent, 0

    async def _hits(self, ranked: Sequence[Ranked], most: int) -> tuple[api.Hit, ...]:
        """Return ranked hits with their texts, of which none has more than about `most` characters.

        A longer one is cut and marked, so that it does not look whole; of a cut text, at least as many are left as can
        matter to a budget that gave `most`.
        """
        memory_ids = [hit.id for hit in ranked if hit.kind == "memory"]
        event_ids = {hit.id for hit in ranked if hit.kind == "event"}
        around = {event_id for hit in ranked for event_id in hit.neighbours}
        memories, grips, events = await asyncio.gather(
            self.store.memories(memory_ids, chars=most + 1),
            self.store.grips(memory_ids),
            self.store.events([*event_ids, *around], chars=most + 1),
        )
        ends = {grip.event_id_start for found in grips.values() for grip in found} - events.keys()
        events |= await self.store.events([*ends], chars=0)  # only who said it and when: the grip has the words
        found: builtins.list[api.Hit] = []
        for hit in ranked:
            neighbours = tuple(_quote(events[at]) for at in hit.neighbours if at in events)
            if hit.kind == "event" and hit.id in events:
                event = events[hit.id]
                found.append(
                    api.Hit(
                        id=hit.id,
                        kind="event",
                        text=event.text or str(event.metadata.get("caption", "")),
                        score=hit.score,
                        ts=event.ts,
                        type=event.type.value,
                        parts=hit.parts,
                        trust=event.trust.value,
                        sources=(replace(_quote(event), text=""),),
                        neighbours=neighbours,
                    )
                )
            elif hit.kind == "memory" and hit.id in memories:
                found.append(_memory_hit(hit, memories[hit.id], grips.get(hit.id, ()), events, neighbours))
        return tuple(_cut(hit, most) for hit in found)

    async def settle(self, request: api.SettleRequest) -> api.SettleAnswer:
        """Do what is left to learn and embed now, for at most `timeout_ms`, and say what is still left."""
        if request.timeout_ms > 0:
            try:
                async with asyncio.timeout(request.timeout_ms / 1000):
                    await self.distill.run()
                    await self.embed.run()
            except TimeoutError:
                log.info("settle gave up after ms=%d", request.timeout_ms)
        return api.SettleAnswer(to_learn=await self.distill.pending(), to_embed=await self.embed.pending())

    # --- embedding ----------------------------------------------------------------------------------------------------

    async def _embed_query(self, text: str) -> tuple[np.ndarray[Any, np.dtype[np.float32]] | None, str]:
        asked, note = await self._models.embedder.ask(text)
        if asked is None:
            return None, note
        if asked.space != self._space:  # the index holds vectors of another model by now
            return None, "the model was changed meanwhile: lexical only"
        self._spread = asked.spread
        return asked.vector, ""

    async def meaning(
        self, texts: Sequence[str], *, question: bool = False
    ) -> tuple[str, np.ndarray[Any, np.dtype[np.float32]]] | None:
        """Return the embedding space in use and the vectors of some texts in it: float32 [n, d], of unit length.

        None without a model that works. `question` embeds them as what is asked, not as what is stored.
        """
        return await self._models.embedder.meaning(texts, question=question)

    async def _place_topics(self) -> None:
        """Give the index the vectors of topic labels that it has none of; only the weighted mode reads them."""
        index, space = self._index, self._space
        labels = await asyncio.to_thread(index.topics_without_vector)
        found = await self._models.embedder.vectors_of(labels) if labels else None
        if found is not None and (found[0], self._space, self._index) == (space, space, index):
            await asyncio.to_thread(index.set_topics, labels, *found[1])

    async def _enter_space(self, space: int | None) -> None:
        """Search in this space from now on."""
        if space != self._space:
            self._space = space
            await self._load_vectors()
        if space is not None:
            self.on_work("embed")

    # --- the index ----------------------------------------------------------------------------------------------------

    async def _load_index(self) -> None:
        """Fill a new index from the copy of an earlier one and the store, or the store alone; replace the old one."""
        if self._space is None:
            self._space = await self._models.embedder.known_space()
        missed: builtins.list[Changes] = []
        self._missed = missed
        fresh = await self._saved_index()
        complete = fresh is not None
        if fresh is None:
            fresh = Index()
            async for events in self.store.event_docs():
                await asyncio.to_thread(fresh.load_events, events)
            async for memories in self.store.memory_docs():
                await asyncio.to_thread(fresh.load_memories, memories)
            await asyncio.to_thread(fresh.loaded)
            self._unsaved = len(fresh)
        self._index, self._missed = fresh, None
        for changes in missed:  # what was committed meanwhile, which the scans may have seen or not
            self._follow(changes)
        await self.indexed()
        if not complete:
            await self._load_vectors()

    async def _load_vectors(self) -> None:
        await self._clear_vectors()
        if self._space is not None:
            async for rows in self.store.vectors(self._space):
                await asyncio.to_thread(_put, self._index, rows)

    async def _clear_vectors(self) -> None:
        """Forget the vectors of the space before; what was committed while it was in use is followed first."""
        await self.indexed()
        await asyncio.to_thread(self._index.clear_vectors)

    async def indexed(self) -> None:
        """Return once the index holds everything that was committed before this was called."""
        if not self._followed.done():
            await asyncio.wait([self._followed])  # whoever waits may be cancelled, and the index must follow anyway

    async def _saved_index(self) -> Index | None:
        """Return the copy of the index from beside the store, caught up with it; None when there is none of use."""
        found = await asyncio.to_thread(saved_index, self.store.path, self._identity())
        position = None if found is None else msgspec.convert(found[0]["position"], Position)
        changed = None if position is None else await self.store.since(position)
        if found is None or position is None or changed is None:
            try:
                await asyncio.to_thread(drop_index, self.store.path)
            except UnavailableError as error:  # it is of no use, but does no harm
                log.warning("%s", error)
            return None
        rest, arrays = found
        index = await asyncio.to_thread(Index.unpacked, rest["index"], arrays)
        if rest["space"] != self._space:
            await asyncio.to_thread(index.clear_vectors)
        self._unsaved = 0
        async for events in self.store.event_docs(position.events):
            await asyncio.to_thread(partial(index.add_events, events, keep_vectors=True))
            self._unsaved += len(events)
        for ids in batches(changed, SCANNED):
            memories = await self.store.memory_docs_of(ids)
            await asyncio.to_thread(index.remove, set(ids) - {doc.id for doc in memories})
            await asyncio.to_thread(index.add_memories, memories)
            self._unsaved += len(ids)
        if self._space is not None:
            for ids in batches(await asyncio.to_thread(index.without_vector, EMBEDDED_TYPES), SCANNED):
                rows = await self.store.vectors_of(self._space, ids)
                await asyncio.to_thread(_put, index, rows)
                self._unsaved += len(rows)
        return index

    def _identity(self) -> dict[str, Any]:
        """Return what a saved index must have been saved under to be of use."""
        return {"version": __version__, "store": self.store.store_id, "schema": self.store.schema_version}

    async def _save_index(self) -> None:
        """Save a copy of the index beside the store, if it is large and has changed enough since the last time."""
        if len(self._index) < SAVED_FROM or self._unsaved * SAVED_SHARE < len(self._index):
            return
        async with self._saving:
            position, index, space = await self.store.position(), self._index, self._space
            await self.indexed()  # the copy is of the position or later
            unsaved, self._unsaved = self._unsaved, 0
            began = time.perf_counter()

            def stop() -> bool:  # the vectors would be those of another model
                return self._erasing.is_set() or self._space != space

            def write() -> bool:
                rest, arrays = index.packed()
                rest = {"index": rest, "position": msgspec.to_builtins(position), "space": space}
                return save_index(self.store.path, self._identity(), rest, arrays, stop=stop)

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
    async def _unsaved_index(self) -> AsyncIterator[None]:
        """Delete the saved index, which holds what is about to be erased, and save none until that is done."""
        self._erasing.set()
        async with self._saving:
            await asyncio.to_thread(drop_index, self.store.path)
            self._unsaved = len(self._index)
            self._erasing.clear()
            yield

    def _follow(self, changes: Changes) -> None:
        """Bring the index up to one commit, and leave no copy of what another device had erased.

        The index is changed in a thread of its own, commit after commit: a batch takes a third of a second, and a
        question that is being ranked has the index locked.
        """
        if self._missed is not None:
            self._missed.append(changes)
        if changes.erased:
            self._erasing.set()
            task = asyncio.get_running_loop().create_task(self._forgetting.follow_erasure(), name="erasure")
            self._dropping.add(task)
            task.add_done_callback(self._dropping.discard)
        if changes.arrived:
            self.on_work("embed")
        self._unsaved += len(changes.events) + len(changes.memories) + len(changes.removed) + len(changes.vectors)
        loop = asyncio.get_running_loop()
        self._followed = loop.run_in_executor(self._follower, _applied, self._index, changes, self._space)


def _applied(index: Index, changes: Changes, space: int | None) -> None:
    """Bring an index up to one commit; vectors of another embedding space than `space` are not its own."""
    try:
        for stale in (False, True):
            events = [doc for doc in changes.events if (doc.id in changes.stale) is stale]
            memories = [doc for doc in changes.memories if (doc.id in changes.stale) is stale]
            if events:
                index.add_events(events, keep_vectors=not stale)
            if memories:
                index.add_memories(memories, keep_vectors=not stale)
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


# --- what a memory is made of -----------------------------------------------------------------------------------------


# --- answers ----------------------------------------------------------------------------------------------------------


def _quote(event: Event, text: str | None = None) -> api.Quote:
    return api.Quote(
        event_id=event.id,
        session_id=event.session_id,
        ts=event.ts,
        utc_offset=event.utc_offset,
        speaker=_who(event),
        text=event.text if text is None else text,
    )


def _who(event: Event) -> str:
    """Return who said something: the speaker, or the file that a paragraph stands in."""
    source = event.metadata.get("source")
    return source if event.type is EventType.NOTE and isinstance(source, str) and source else event.speaker


def _cut(hit: api.Hit, most: int) -> api.Hit:
    """Return a hit whose texts end after `most` characters and say so."""
    if len(hit.text) <= most and all(len(quote.text) <= most for quote in (*hit.sources, *hit.neighbours)):
        return hit

    def quotes(given: Sequence[api.Quote]) -> tuple[api.Quote, ...]:
        return tuple(
            replace(quote, text=quote.text[:most] + CUT) if len(quote.text) > most else quote for quote in given
        )

    cut = len(hit.text) > most
    return replace(
        hit,
        text=hit.text[:most] + CUT if cut else hit.text,
        truncated=cut,
        sources=quotes(hit.sources),
        neighbours=quotes(hit.neighbours),
    )


def _memory_hit(
    hit: Ranked,
    memory: Memory,
    grips: Sequence[Grip],
    events: Mapping[str, Event],
    neighbours: tuple[api.Quote, ...],
) -> api.Hit:
    return api.Hit(
        id=memory.id,
        kind="memory",
        text=memory.content,
        score=hit.score,
        ts=memory.created_at,
        type=memory.type.value,
        parts=hit.parts,
        name=memory.name,
        scope=memory.scope.value,
        resource_id=memory.resource_id,
        salience=memory.salience,
        trust=memory.trust.value,
        superseded_by=memory.superseded_by,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        sources=tuple(
            _quote(events[grip.event_id_start], grip.excerpt) for grip in grips if grip.event_id_start in events
        ),
        neighbours=neighbours,
    )


def _weights(path: Path) -> Mapping[str, float]:
    """Return the weights in a file that `scrubjay bench fit` wrote. Raises InvalidError when it did not."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecallWeights).weights
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidError(
            f"recall_weights: {path} is not a file of weights ({type(error).__name__})",
            hint="name a file that scrubjay bench fit wrote, or leave the setting out",
        ) from error


def _lap(began: float) -> float:
    """Return the milliseconds since a moment."""
    return round((time.perf_counter() - began) * 1000, 3)


def _local_offset(now: Millis) -> int:
    """Return this machine's minutes east of UTC: "yesterday" in a question is the person's."""
    return time.localtime(now / 1000).tm_gmtoff // 60
