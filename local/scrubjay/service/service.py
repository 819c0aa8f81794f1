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
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import numpy as np

from scrubjay import __version__, api, destination, importers, projects, redaction
from scrubjay.dates import find_dates
from scrubjay.garbage import uncollected
from scrubjay.importers import export_format, reconcile
from scrubjay.importers.reading import as_utf8, decoded
from scrubjay.index.index import Index
from scrubjay.ingest import intake
from scrubjay.ingest.intake import ACTIVE_PREFIX, IDENTITY_PREFIX
from scrubjay.jobs.distill import Distill
from scrubjay.jobs.embed import Embed
from scrubjay.jobs.maintain import Maintain
from scrubjay.jobs.recall_counts import RecallCounts
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.model_choice import Origin
from scrubjay.models import catalog, http, installed
from scrubjay.models.runtime import Models, Named
from scrubjay.policy import DEFAULT, MemoryPolicy, RecallWeights, weighted
from scrubjay.retrieval import budget
from scrubjay.retrieval.recall import CUT, Filters, Query, Ranking, passage, rank, reranked
from scrubjay.retrieval.recall import Hit as Ranked
from scrubjay.service import transfer
from scrubjay.settings import Settings
from scrubjay.store import (
    Changes,
    Disputed,
    MemoryWrite,
    Position,
    Store,
    Transaction,
    copies,
    drop_index,
    save_index,
    saved_index,
    sqlite_version,
)
from scrubjay.store.rows import EMBEDDED_TYPES
from scrubjay_io.sqlite import SAFE_VERSION, version_info
from scrubjay_shared import ops
from scrubjay_shared.clock import MAX_MILLIS, Hlc, Millis, millis_of
from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    TooLargeError,
    UnavailableError,
)
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import (
    Event,
    EventDraft,
    EventType,
    Grip,
    Kind,
    Layer,
    Memory,
    MemoryDraft,
    MemoryType,
    Op,
    Scope,
    content_hash,
)
from scrubjay_shared.scoring import decode_vectors
from scrubjay_shared.text import query_tokens

log = logging.getLogger(__name__)

T = TypeVar("T")

NO_MODEL = "none"

SMALL_CHARS = 4_000
"""Up to this much text is redacted on the loop: a hop to a thread costs more."""

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

    def __init__(self, store: Store, policy: MemoryPolicy, named: Named, now: Callable[[], Millis]) -> None:
        self.store = store
        self.policy = policy
        self.ours: tuple[Path, ...] = ()  # files away from the store that no copy may be written onto
        self._index = Index()
        self._missed: builtins.list[Changes] | None = None
        self._models = Models(store, policy, named, self._enter_space)
        self._models_dir = named.models_dir
        self._now = now
        self._started = now()
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
            identity=lambda: self._slots(Layer.IDENTITY, None, None),
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
        named = Named(
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
        service.ours = (settings.config_path, settings.log_path, settings.token_path, *sockets)
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

    # --- events -------------------------------------------------------------------------------------------------------

    async def ingest(self, request: api.IngestRequest) -> api.IngestAnswer:
        """Redact, normalise and append a batch of events; durable when this returns.

        Raises InvalidError naming the first draft that cannot be an event; then none of the batch is stored.
        """
        if len(request.events) > self.policy.limits.max_batch:
            raise TooLargeError(
                f"a request must have at most {self.policy.limits.max_batch} events, got {len(request.events)}",
                hint="send them in several requests",
            )
        # Metadata is cleaned too, and nobody knows how long it takes before it is.
        chars = sum(SMALL_CHARS if draft.metadata else len(draft.text) + 1 for draft in request.events)
        cleaned = await _off_loop(chars, partial(self._cleaned, request.events, intake.Source.PERSON, self._now()))
        return await self._append([one for one in cleaned if isinstance(one, intake.Clean)], learn=request.learn)

    def _cleaned(
        self, drafts: Sequence[EventDraft], source: intake.Source, now: Millis
    ) -> builtins.list[intake.Clean | InvalidError]:
        """Return drafts as events. Of an import, one that cannot be an event gives its error, and the others go on."""
        found: builtins.list[intake.Clean | InvalidError] = []
        for place, draft in enumerate(drafts):
            try:
                found.append(
                    intake.event(draft, place, device=self.store.device, now=now, policy=self.policy, source=source)
                )
            except InvalidError as error:
                if source is intake.Source.PERSON:
                    raise
                found.append(error)
        return found

    async def _append(self, cleaned: Sequence[intake.Clean], *, learn: bool) -> api.IngestAnswer:
        redactions: Counter[str] = Counter()
        skipped: Counter[str] = Counter()
        wanted: builtins.list[Event | None] = []
        for clean in cleaned:
            if clean.reason:
                skipped[clean.reason] += 1
                wanted.append(None)
            else:
                redactions += clean.redactions
                wanted.append(clean.event)

        def work(tx: Transaction) -> tuple[Sequence[str], int]:
            known = tx.known_events([event for event in wanted if event is not None])
            fresh: builtins.list[Event] = []
            ids: builtins.list[str] = []
            for event in wanted:
                if event is None:
                    ids.append("")
                    continue
                if event.dedupe_key not in known:
                    known[event.dedupe_key] = event.id or tx.new_id()
                    fresh.append(replace(event, id=known[event.dedupe_key]))
                ids.append(known[event.dedupe_key])
            tx.append_events(fresh, learn=learn)
            return ids, len(fresh)

        ids, accepted = await self.store.write(work)
        if accepted:
            self.on_work("learn")
            self.on_work("embed")
        return api.IngestAnswer(
            accepted=accepted,
            duplicates=sum(1 for event in wanted if event is not None) - accepted,
            ids=tuple(ids),
            redactions=dict(sorted(redactions.items())),
            skipped=_skipped(skipped),
        )

    async def events(self, request: api.EventsRequest) -> api.EventsAnswer:
        """Return a page of events in time order."""
        _check_times(request.since, request.until)
        clauses, params = _clauses(
            ("session_id = ?", request.session_id),
            ("(project = ? or project is null)", request.project),
            ("ts >= ?", request.since),
            ("ts < ?", request.until),
        )
        found, more = await self.store.page_of_events(
            clauses,
            params,
            after=_cursor(request.cursor),
            limit=self._page(request.limit),
            chars=self.policy.limits.page_chars,
        )
        notes = await self._notes_on(request.project)
        return api.EventsAnswer(events=tuple(found), next=_cursor_text(more), notes=notes)

    async def sessions(self, _: api.Nothing) -> api.SessionsAnswer:
        """Return all sessions, newest first."""
        return api.SessionsAnswer(sessions=tuple(await self.store.sessions()))

    # --- memories -----------------------------------------------------------------------------------------------------

    async def add(self, request: MemoryDraft) -> api.Entry:
        """Store a memory; one that says the same in the same scope is returned instead, with the new names bound."""
        cleaned = await _off_loop(
            len(request.content), lambda: intake.memory(request, self.policy, intake.Source.PERSON)
        )
        ((memory_id, created),) = await self._add_all([cleaned])
        return await self._entry(memory_id, created=created)

    async def _add_all(self, drafts: Sequence[MemoryDraft]) -> Sequence[tuple[str, bool]]:
        """Store drafts that were cleaned. Returns the id of each and whether it is new."""
        embedded = await self._models.vectors_now([draft.content for draft in drafts])

        def work(tx: Transaction) -> Sequence[tuple[str, bool]]:
            hashes = [content_hash(draft.content) for draft in drafts]
            known = {(said, scope, resource): found for said, scope, resource, found in tx.said(hashes)}
            answers: builtins.list[tuple[str, bool]] = []
            writes: dict[str, MemoryWrite] = {}
            placed: builtins.list[tuple[str, str, bytes]] = []
            for place, (draft, said) in enumerate(zip(drafts, hashes, strict=True)):
                key = (said, draft.scope.value, draft.resource_id)
                found = known.get(key)
                names = tuple(name for name in (draft.name, *draft.aliases) if name is not None)
                if found is None:
                    found = known[key] = tx.new_id(draft.created_at)
                    writes[found] = MemoryWrite(memory_id=found, fields=transfer.fields_of(draft, tx.now), names=names)
                    answers.append((found, True))
                    if embedded is not None:
                        placed.append((found, said, embedded[1][place]))
                    continue
                answers.append((found, False))
                if names:
                    earlier = writes.get(found, MemoryWrite(memory_id=found, fields={}))
                    fields = dict(earlier.fields)
                    if draft.name is not None and not tx.is_named(found) and Field.NAME not in fields:
                        fields[Field.NAME] = draft.name
                    writes[found] = replace(earlier, fields=fields, names=(*earlier.names, *names))
            tx.write_memories(list(writes.values()))
            if embedded is not None:
                tx.put_vectors(embedded[0], placed)
            return answers

        answers = await self.store.write(work)
        if embedded is None and any(created for _, created in answers):
            self.on_work("embed")
        return answers

    async def list(self, request: api.ListRequest) -> api.ListAnswer:
        """Return a page of memories, newest first."""
        _check_times(request.since, request.until)
        clauses, params = _clauses(
            ("m.type = ?", request.type),
            ("m.kind = ?", request.kind),
            ("m.layer = ?", request.layer),
            ("m.scope = ?", request.scope),
            ("m.created_at >= ?", request.since),
            ("m.created_at < ?", request.until),
        )
        if request.project is not None or request.session_id is not None:
            clauses += " and (m.scope = 'user' or m.resource_id in (?, ?))"
            params += (request.project, request.session_id)
        found, more = await self.store.page_of_memories(
            clauses,
            params,
            after=_cursor(request.cursor),
            limit=self._page(request.limit),
            chars=self.policy.limits.page_chars,
        )
        names = await self.store.aliases([memory.id for memory in found])
        return api.ListAnswer(
            entries=tuple(
                api.Entry(memory=memory, aliases=tuple(alias.name for alias in names.get(memory.id, ())))
                for memory in found
            ),
            next=_cursor_text(more),
            notes=await self._notes_on(request.project),
        )

    async def get(self, request: api.RefRequest) -> api.Entry:
        """Return one memory."""
        memory_id = await self._resolve(request.ref, request.project, request.session_id)
        return await self._entry(memory_id)

    async def update(self, request: api.UpdateRequest) -> api.Entry:
        """Write new values for some fields of a memory. Raises InvalidError when none is given."""
        memory_id = await self._resolve(request.ref, request.project, request.session_id)
        intake.check_salience(request.salience)
        fields: dict[Field, Any] = {}
        if request.content is not None:
            content = request.content
            fields[Field.CONTENT] = await _off_loop(len(content), lambda: intake.content(self.policy, content))
        if request.type is not None:
            fields[Field.TYPE] = request.type.value
        if request.salience is not None:
            fields[Field.SALIENCE] = float(request.salience)
        if request.topic is not None:
            fields[Field.TOPIC] = intake.topic(self.policy, request.topic)
        if request.layer is not None:
            intake.check_layer(request.layer, (await self.store.memory(memory_id)).trust)
            fields[Field.LAYER] = request.layer.value
        if request.metadata is not None:
            metadata = request.metadata
            cleaned = await asyncio.to_thread(lambda: intake.metadata(metadata, "memory", self.policy))
            fields[Field.METADATA] = cleaned.value
        if not fields:
            raise InvalidError("nothing to update", hint="give content, type, salience, topic, layer or metadata")
        write = MemoryWrite(memory_id=memory_id, fields=fields, settles=True)
        await self.store.write(lambda tx: tx.write_memories([write]))
        if Field.CONTENT in fields:
            self.on_work("embed")
        return await self._entry(memory_id)

    async def rename(self, request: api.RenameRequest) -> api.Entry:
        """Give a memory another canonical name; the old one stays as an alias."""
        memory_id = await self._resolve(request.ref, request.project, request.session_id)
        name = intake.name(self.policy, request.name)
        write = MemoryWrite(memory_id=memory_id, fields={Field.NAME: name}, names=(name,), settles=True)
        await self.store.write(lambda tx: tx.write_memories([write]))
        return await self._entry(memory_id)

    async def alias(self, request: api.AliasRequest) -> api.Entry:
        """Bind an additional name, or with `remove` take it away."""
        memory_id = await self._resolve(request.ref, request.project, request.session_id)
        name = intake.name(self.policy, request.alias)
        if request.remove:
            await self.store.write(lambda tx: tx.unclaim(memory_id, name))
        else:
            write = MemoryWrite(memory_id=memory_id, fields={}, names=(name,))
            await self.store.write(lambda tx: tx.write_memories([write]))
        return await self._entry(memory_id)

    async def why(self, request: api.RefRequest) -> api.WhyAnswer:
        """Return the passages a memory was read from, with their events, and everything that happened to it."""
        memory_id = await self._resolve(request.ref, request.project, request.session_id)
        grips = (await self.store.grips([memory_id])).get(memory_id, ())
        sources: builtins.list[api.Source] = []
        for grip in grips:
            chars = max(grip.span_end, self.policy.limits.hit_chars)
            run = await self.store.run_of_events(grip.event_id_start, grip.event_id_end, chars=chars)
            seen = tuple(event for event in run if _visible_event(event, request.project, request.session_id))
            sources.append(api.Source(grip=grip, events=seen))
        entry = await self._entry(memory_id)
        history = tuple(_change(row) for row in await self.store.history(memory_id))
        return api.WhyAnswer(
            entry=entry,
            origin=_origin(entry.memory, history, learned=bool(grips), device=self.store.device),
            sources=tuple(sources),
            history=history,
        )

    async def conflicts(self, request: api.ConflictsRequest) -> api.ConflictsAnswer:
        """Return the fields that devices wrote without having seen each other's values, and all these values."""
        found = [one for one in await self.store.conflicts() if not _is_of_places(one)]
        memories = await self.store.memories([one.memory_id for one in found])
        return api.ConflictsAnswer(
            conflicts=tuple(
                _conflict(one, memories[one.memory_id])
                for one in found
                if one.memory_id in memories and _visible(memories[one.memory_id], request.project, request.session_id)
            )
        )

    async def resolve(self, request: api.ResolveRequest) -> api.Entry:
        """Write the version of a field that is right as one that has seen all others; no device lists them again."""
        memory_id = await self._resolve(request.ref, request.project, request.session_id)
        for one in await self.store.conflicts(memory_id):
            if _field_name(one.field) == request.field:
                values = {_version_name(stamp): value for stamp, value in one.versions}
                if request.version is not None and request.version not in values:
                    break
                value = one.shown if request.version is None else values[request.version]
                # A number that this version has no name for is written as it came.
                write = MemoryWrite(memory_id=memory_id, fields={cast("Field", one.field): value}, settles=True)
                await self.store.write(partial(Transaction.write_memories, writes=[write]))
                self.on_work("embed")
                return await self._entry(memory_id)
        raise NotFoundError(
            f"memory {memory_id} has no such conflict about {request.field[:60]!r}",
            hint="scrubjay conflicts lists those that are open",
        )

    async def forget(self, request: api.ForgetRequest) -> api.ForgetAnswer:
        """Erase a memory or an event: rows, full text, vector, log; unless told otherwise, its source passages too.

        A memory that rests on erased words alone goes with them. Copies that migrations left beside the store go too;
        backups made by the person are theirs to remove.
        """
        ref = intake.valid(request.ref)
        event = (await self.store.events([ref], chars=0)).get(ref)
        if event is not None and not _visible_event(event, request.project, request.session_id):
            raise _no_memory(ref)
        memory_id = "" if event is not None else await self._resolve(ref, request.project, request.session_id)

        def work(tx: Transaction) -> api.ForgetAnswer:
            return _forget_events(tx, [ref]) if event else _forget_memory(tx, memory_id, keep=request.keep_sources)

        async with self._unsaved_index():
            answer = await self.store.write(work)
        await self._drop_copies()
        answer = replace(answer, copies=tuple(map(str, await asyncio.to_thread(copies, self.store.path))))
        log.info("forgot memories=%d events=%d passages=%d", len(answer.forgotten), len(answer.events), answer.sources)
        if answer.sources:
            self.on_work("embed")
        return answer

    async def _drop_copies(self) -> None:
        """Leave nothing of what was erased in the log file, in a saved index, or in copies that migrations made."""
        async with self._unsaved_index():
            done = await self.store.drop_copies()
        if not done:
            log.warning("the log could not be cut back while a long read runs; the next maintenance does it")

    async def _follow_erasure(self) -> None:
        try:
            await self._drop_copies()
        except UnavailableError as error:  # its next start deletes what is left, and so does the next forget
            log.warning("%s", error)

    # --- recall -------------------------------------------------------------------------------------------------------

    async def recall(self, request: api.RecallRequest) -> api.RecallAnswer:
        """Return what answers a question, best first, within the budget of tokens. Writes nothing."""
        began = time.perf_counter()
        text = self._check_recall(request)
        hybrid = request.mode is api.Mode.HYBRID
        stages = dict.fromkeys(("embed", "rank", "rerank", "read"), 0.0)
        notes: builtins.list[str] = [*await self._notes_on(request.project)]
        vector = None
        reranks = hybrid and request.rerank and bool(text.strip())
        reranker = None
        if request.mode is not api.Mode.KEYWORD and text.strip():
            # The first question waits for both models: for one beside the other, not for one after the other.
            loading = [self._models.reranker.held()] if reranks else []
            (vector, note), named, *loaded = await asyncio.gather(self._embed_query(text), self._named(text), *loading)
            reranker = loaded[0] if loaded else None
            notes += [note] if note else []
            if reranks and reranker is None and self._models.reranker.error is not None:
                notes.append(f"the hits were not reranked: {self._models.reranker.error.message}")
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
        logits, note = await self._models.rerank(text, passages)
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
        _check_times(request.since, request.until)
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
            fitting, cost, left_out = await _off_loop(chars, partial(budget.fit, hits, max_tokens - spent))
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

    # --- the layers that are always loaded ----------------------------------------------------------------------------

    async def context(self, request: api.ContextRequest) -> api.ContextAnswer:
        """Return the startup context: who the agent is and what it is at, within their budgets."""
        identity = await self._slots(Layer.IDENTITY, request.project, request.session_id)
        active = await self._slots(Layer.ACTIVE, request.project, request.session_id)
        limits = self.policy.limits
        made = partial(
            budget.context,
            identity,
            active,
            identity_tokens=limits.identity_tokens,
            active_tokens=limits.active_tokens,
        )
        found = await _off_loop(sum(map(len, (*identity.values(), *active.values()))), made)
        return replace(found, notes=await self._notes_on(request.project))

    async def set_identity(self, request: api.SlotRequest) -> api.ContextAnswer:
        """Set one line of the identity layer."""
        return await self._set_slot(Layer.IDENTITY, IDENTITY_PREFIX, request)

    async def set_active(self, request: api.SlotRequest) -> api.ContextAnswer:
        """Set one line of the active layer."""
        return await self._set_slot(Layer.ACTIVE, ACTIVE_PREFIX, request)

    async def _set_slot(self, layer: Layer, prefix: str, request: api.SlotRequest) -> api.ContextAnswer:
        name = prefix + intake.name(self.policy, request.key)
        if not request.value.strip():
            held = await self.store.named(name)
            if not held:
                raise NotFoundError(
                    f"the {layer} layer has no line called {request.key!r}", hint="scrubjay context shows its lines"
                )
            await self.forget(api.ForgetRequest(ref=held[0]))
            return await self.context(api.ContextRequest())
        content = await _off_loop(len(request.value), lambda: intake.content(self.policy, request.value))

        def work(tx: Transaction) -> None:
            held = tx.holders([name]).get(name)
            if held is not None:
                if tx.fetch("select 1 from memory where id = ? and trust in ('untrusted', 'import')", (held,)):
                    raise ConflictError(
                        f"the name {name!r} belongs to memory {held}, which came from a file",
                        hint=f"scrubjay forget {held} removes that one; then set the line again",
                    )
                fields = {Field.CONTENT: content, Field.LAYER: layer.value}
                tx.write_memories([MemoryWrite(memory_id=held, fields=fields)])
            else:
                draft = MemoryDraft(content=content, name=name, kind=Kind.NOTE, type=MemoryType.LONG_TERM, layer=layer)
                write = MemoryWrite(memory_id=tx.new_id(), fields=transfer.fields_of(draft, tx.now), names=(name,))
                tx.write_memories([write])

        await self.store.write(work)
        self.on_work("embed")
        return await self.context(api.ContextRequest())

    async def _slots(self, layer: Layer, project: str | None, session_id: str | None) -> dict[str, str]:
        lines: dict[str, str] = {}
        for memory in await self.store.layer(layer.value):
            if _visible(memory, project, session_id) and memory.superseded_by is None:
                name = memory.name or memory.id[-6:]
                lines[name.removeprefix(IDENTITY_PREFIX).removeprefix(ACTIVE_PREFIX)] = memory.content
        return lines

    # --- in and out ---------------------------------------------------------------------------------------------------

    async def import_(self, request: api.ImportRequest) -> api.ImportAnswer:
        """Take in a file's bytes. Importing the same again adds nothing; a note that was edited is updated.

        What a file says of itself counts for no more than an import. An export that the person restores is their own
        act: its layers and its trust count as they stand in it.
        """
        if request.format in {None, export_format.FORMAT} and await asyncio.to_thread(
            export_format.is_export, request.data
        ):
            return await self._import_export(request)
        if request.restore:
            raise InvalidError(
                f"{request.name} is not a scrubjay export, and only an export can be restored",
                hint="import it without --restore; scrubjay restore puts back a backup",
            )
        parsed = await asyncio.to_thread(_kept_from_collector, partial(_parsed, request, self.policy))
        skipped: Counter[str] = Counter(dict(parsed.skipped))
        changed: Counter[str] = Counter()
        if request.dry_run:
            return api.ImportAnswer(
                format=parsed.format.value,
                events=len(parsed.events),
                memories=len(parsed.memories),
                duplicates=0,
                skipped=_skipped(skipped),
            )
        events = memories = duplicates = 0
        redactions: Counter[str] = Counter()
        for drafted in _batches(parsed.events, self.policy.work.import_batch):
            batch = await self._under_earlier_keys(drafted, parsed.earlier_keys)
            cleaned = await asyncio.to_thread(self._cleaned, batch, intake.Source.IMPORT, self._now())
            wanted = [one for one in cleaned if isinstance(one, intake.Clean)]
            skipped["refused"] += len(cleaned) - len(wanted)
            answer = await self._append(wanted, learn=True)
            events += answer.accepted
            duplicates += answer.duplicates
            redactions.update(answer.redactions)
            skipped.update({line.reason: line.count for line in answer.skipped})
        for drafts in _batches(parsed.memories, self.policy.work.import_batch):
            plan, created, said, lowered = await self._import_notes(drafts)
            memories += created + plan.updated
            duplicates += plan.same + len(plan.fresh) - created
            skipped.update(said)
            changed.update(lowered)
        return api.ImportAnswer(
            format=parsed.format.value,
            events=events,
            memories=memories,
            duplicates=duplicates,
            redactions=dict(sorted(redactions.items())),
            renamed=skipped.pop("renamed", 0),
            aliases_taken=skipped.pop("aliases_taken", 0),
            skipped=_skipped(skipped),
            changed=_skipped(changed),
        )

    async def _import_notes(
        self, drafts: Sequence[MemoryDraft]
    ) -> tuple[reconcile.Plan, int, Counter[str], Counter[str]]:
        """Store the notes of a file. Returns what was decided, how many are new, what is to be said, and was lowered.

        A file puts nothing into a memory that is trusted more than a file.
        """
        said: Counter[str] = Counter()
        lowered: Counter[str] = Counter()

        def clean() -> tuple[builtins.list[MemoryDraft], set[str]]:
            cleaned: builtins.list[MemoryDraft] = []
            for draft in drafts:
                try:
                    cleaned.append(intake.memory(draft, self.policy, intake.Source.IMPORT))
                except InvalidError:
                    said["refused" if draft.content.strip() else "empty"] += 1
                else:
                    lowered.update(intake.changes(draft, cleaned[-1]))
            return cleaned, {content_hash(draft.content) for draft in cleaned}

        cleaned, hashes = await asyncio.to_thread(clean)
        known = await self.store.from_sources([draft.metadata["source_key"] for draft in cleaned])
        hashes -= {memory.content_hash for memory in known}
        equal = await self.store.memories_said(hashes) if hashes else ()
        below = [[memory for memory in found if not intake.is_above_import(memory.trust)] for found in (known, equal)]
        plan = await asyncio.to_thread(reconcile.planned, cleaned, *below)
        said["rewritten_here"] += plan.rewritten
        candidates = [name for draft in plan.fresh for name in (*reconcile.names_for(draft), *draft.aliases)]
        candidates += [name for _, names in plan.named for name in names]
        taken = await self.store.taken(candidates) if candidates else set()
        fresh: builtins.list[MemoryDraft] = []
        for draft in plan.fresh:
            named, renamed, lost = reconcile.with_free_names(draft, taken)
            fresh.append(named)
            said["renamed"] += renamed
            said["aliases_taken"] += lost
        changed = _note_writes(plan, taken)
        if changed:
            await self.store.write(lambda tx: tx.write_memories(changed))
            self.on_work("embed")
        added = await self._add_all(fresh) if fresh else []
        return plan, sum(1 for _, new in added if new), said, lowered

    async def _under_earlier_keys(
        self, drafts: tuple[EventDraft, ...], earlier: Mapping[str, str]
    ) -> tuple[EventDraft, ...]:
        """Return the drafts, those under the key of an earlier version that are here under it for the same project."""
        if not earlier:
            return drafts
        keys = [earlier.get(draft.dedupe_key or "", "") for draft in drafts]
        here = await self.store.deduped(keys)
        return tuple(
            replace(draft, dedupe_key=key) if (key, draft.project) in here else draft
            for draft, key in zip(drafts, keys, strict=True)
        )

    async def _import_export(self, request: api.ImportRequest) -> api.ImportAnswer:
        reading = partial(export_format.read, intake.valid(request.name), request.data)
        file = await asyncio.to_thread(_kept_from_collector, reading)
        tally = transfer.Tally(skipped=Counter(bad_line=file.bad))
        if request.dry_run:
            tally.events = sum(line.event is not None for line in file.lines)
            tally.memories = sum(line.memory is not None for line in file.lines)
        elif request.restore and file.version > 1 and await self.store.write(transfer.takes_log):
            await self._restore_log(file, tally)
        else:
            await self._import_records(file, tally, intake.Source.RESTORE if request.restore else intake.Source.IMPORT)
        self.on_work("embed")
        return api.ImportAnswer(
            format=export_format.FORMAT,
            events=tally.events,
            memories=tally.memories,
            duplicates=tally.duplicates,
            redactions=dict(sorted(tally.redactions.items())),
            skipped=_skipped(tally.skipped),
            changed=_skipped(tally.changed),
        )

    async def _import_records(self, file: export_format.Export, tally: transfer.Tally, source: intake.Source) -> None:
        """Store the events and memories of an export, one by one as drafts."""
        size = self.policy.work.import_batch
        for batch in _batches([line.event for line in file.lines if line.event is not None], size):
            ready = await asyncio.to_thread(
                transfer.events_of,
                batch,
                tally,
                source=source,
                device=self.store.device,
                now=self._now(),
                policy=self.policy,
            )
            there, new = await self.store.write(partial(transfer.append_events, ready=ready))
            tally.there.update(there)
            tally.events += new
            tally.duplicates += len(ready) - new
        if source is intake.Source.RESTORE:
            await self.store.write(partial(transfer.forget_copies, records=file.lines, events=False))
        for group in _batches([line.memory for line in file.lines if line.memory is not None], size):
            memories = await asyncio.to_thread(transfer.memories_of, group, tally, source=source, policy=self.policy)
            writing = partial(transfer.write_memories, group=memories, source=source, there=tally.there)
            new, skipped, changed = await self.store.write(writing)
            tally.memories += new
            tally.duplicates += len(memories) - new - skipped["forgotten"]
            tally.skipped += skipped
            tally.changed += changed

    async def _restore_log(self, file: export_format.Export, tally: transfer.Tally) -> None:
        """Take in the log of an export, as sync takes in those of other devices."""
        before = await self.store.counts()
        await self.store.write(partial(transfer.forget_copies, records=file.lines, events=True))
        for device, run in transfer.runs(file.lines):
            taking = partial(transfer.restore_run, device=device, run=run, own=device == self.store.device)
            tally.skipped += await self.store.write(taking)
        after = await self.store.counts()
        tally.events = max(after["events"] - before["events"], 0)
        kinds = ("memories", "identity_keys", "active_keys")
        tally.memories = max(sum(after[kind] - before[kind] for kind in kinds), 0)
        records = sum(line.event is not None or line.memory is not None for line in file.lines)
        tally.duplicates = max(records - tally.events - tally.memories, 0)

    async def export(self) -> AsyncGenerator[bytes, None]:
        """Yield the lines of an export: everything that is not derived, as it is at the first line."""
        await self.recall_counts.run()
        await self.store.write(Transaction.log_counts)
        async with self.store.snapshot() as snapshot:
            yield export_format.header(self.store.store_id, self._now())
            async for event, stamp in snapshot.events():
                told = None if stamp is None else export_format.Stamp(seq=stamp[0], op_id=stamp[1], hlc=stamp[2])
                yield await _off_loop(len(event.text), partial(export_format.line, event, told))
            async for memory, aliases, grips in snapshot.memories():
                kept = export_format.Kept(memory=memory, aliases=aliases, grips=grips)
                yield await _off_loop(len(memory.content), partial(export_format.line, kept))
            async for device, seq, data in snapshot.log():
                logged = export_format.Logged(device=device, seq=seq, data=data)
                yield await _off_loop(len(data or b""), partial(export_format.line, logged))

    async def backup(self, request: api.PathRequest) -> api.PathAnswer:
        """Write a checked copy of the store to an absolute path, while it runs.

        Raises InvalidError for a file of the store itself, ConflictError for another that is there, unless `force`.
        """
        target = Path(request.path)
        if not target.is_absolute():
            raise InvalidError(
                f"{request.path!r} is not an absolute path", hint="give the path from the root of the disk, as /home/…"
            )
        check = partial(destination.check, force=request.force, ours=self.ours)
        target = await asyncio.to_thread(check, target, self.store.path)
        size, digest = await self.store.backup(target, force=request.force)
        return api.PathAnswer(path=str(target), bytes=size, sha256=digest)

    async def rebuild(self, request: api.RebuildRequest) -> api.RebuildAnswer:
        """Make everything derived again, from events and ops alone."""

        def work(tx: Transaction) -> tuple[int, int, str, str]:
            before = tx.view_digest()
            memories, events = tx.rebuild(vectors=request.vectors)
            return memories, events, before, tx.view_digest()

        async with self._indexing, self._unsaved_index():
            with uncollected():
                memories, events, before, after = await self.store.write(work)
                await self._load_index()
        self.on_work("embed")
        return api.RebuildAnswer(memories=memories, events=events, before=before, after=after)

    # --- how it is ----------------------------------------------------------------------------------------------------

    async def stats(self, _: api.Nothing) -> api.StatsAnswer:
        """Return counts and sizes."""
        counts = await self.store.counts()
        oldest, newest = await self.store.bounds()
        embedded = 0 if self._space is None else await self.store.embedded(self._space)
        waiting, refused = await self._models.to_embed()
        return api.StatsAnswer(
            memories=counts["memories"],
            events=counts["events"],
            sessions=counts["sessions"],
            aliases=counts["aliases"],
            grips=counts["grips"],
            ops=counts["ops"],
            identity_keys=counts["identity_keys"],
            active_keys=counts["active_keys"],
            by_type=await self.store.grouped("type"),
            by_kind=await self.store.grouped("kind"),
            file_bytes=self.store.path.stat().st_size,
            schema_version=self.store.schema_version,
            embedded=embedded,
            to_embed=waiting,
            refused=refused,
            to_learn=await self.distill.pending(),
            space=await self._models.space_name(),
            oldest=oldest,
            newest=newest,
        )

    async def status(self, _: api.Nothing) -> api.StatusAnswer:
        """Return how this process is."""
        warnings = []
        if self.failure is not None:
            warnings.append(f"{self.failure.message}: {self.failure.hint}")
        if version_info < SAFE_VERSION:
            warnings.append(
                f"SQLite {sqlite_version} is older than 3.51.3: safe with one writer, which scrubjay is;"
                " upgrade when you can"
            )
        warnings += await self._models.warnings()
        return api.StatusAnswer(
            version=__version__,
            pid=os.getpid(),
            started=self._started,
            file=str(self.store.path),
            sqlite_version=sqlite_version,
            schema_version=self.store.schema_version,
            device=self.store.device,
            model=(await self._models.chosen()).name,
            model_state=await self._models.state(),
            reranker=(await self._models.chosen_reranker()).name,
            reranker_state=await self._models.reranker_state(),
            jobs=await self.scheduler.jobs(),
            warnings=tuple(warnings),
        )

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
        asked, note = await self._models.ask(text)
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
        return await self._models.meaning(texts, question=question)

    async def _place_topics(self) -> None:
        """Give the index the vectors of topic labels that it has none of; only the weighted mode reads them."""
        index, space = self._index, self._space
        labels = await asyncio.to_thread(index.topics_without_vector)
        found = await self._models.vectors_of(labels) if labels else None
        if found is not None and (found[0], self._space, self._index) == (space, space, index):
            await asyncio.to_thread(index.set_topics, labels, *found[1])

    async def _enter_space(self, space: int | None) -> None:
        """Search in this space from now on."""
        if space != self._space:
            self._space = space
            await self._load_vectors()
        if space is not None:
            self.on_work("embed")

    async def models(self, _: api.Nothing) -> api.ModelsAnswer:
        """Return the models that can be used and how far embedding has come."""
        choices = (await self._models.chosen(), await self._models.chosen_reranker())
        chosen = tuple(choice.name for choice in choices)
        found = await asyncio.to_thread(installed.installed, self._models_dir, in_use=chosen)
        waiting, refused = await self._models.to_embed()
        met = (self._models.embedder.error, self._models.reranker.error)
        errors = {name: error.message for name, error in zip(chosen, met, strict=True) if error is not None}
        return api.ModelsAnswer(
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
            space=await self._models.space_name(),
            embedded=0 if self._space is None else await self.store.embedded(self._space),
            to_embed=waiting,
            refused=refused,
            notes=tuple(choice.remark for choice in choices if choice.remark),
        )

    async def use_model(self, request: api.ModelRequest) -> api.ModelsAnswer:
        """Embed or rerank with another model from now on. Recall goes on, lexically until its vectors are there.

        What the model is for says its kind; `request.reranker` says it where the name is "none". The vectors of the
        model before stay in the file, so that going back costs nothing. Raises what loading the model raises, and
        changes nothing then.
        """
        if request.reranker or request.name in catalog.RERANKERS:
            await self._models.use_reranker(request.name)
        else:
            await self._models.use(request.name)
        return await self.models(api.Nothing())

    # --- the index ----------------------------------------------------------------------------------------------------

    async def _load_index(self) -> None:
        """Fill a new index from the copy of an earlier one and the store, or the store alone; replace the old one."""
        if self._space is None:
            self._space = await self._models.known_space()
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
        for ids in _batches(changed, SCANNED):
            memories = await self.store.memory_docs_of(ids)
            await asyncio.to_thread(index.remove, set(ids) - {doc.id for doc in memories})
            await asyncio.to_thread(index.add_memories, memories)
            self._unsaved += len(ids)
        if self._space is not None:
            for ids in _batches(await asyncio.to_thread(index.without_vector, EMBEDDED_TYPES), SCANNED):
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
            task = asyncio.get_running_loop().create_task(self._follow_erasure(), name="erasure")
            self._dropping.add(task)
            task.add_done_callback(self._dropping.discard)
        if changes.arrived:
            self.on_work("embed")
        self._unsaved += len(changes.events) + len(changes.memories) + len(changes.removed) + len(changes.vectors)
        loop = asyncio.get_running_loop()
        self._followed = loop.run_in_executor(self._follower, _applied, self._index, changes, self._space)

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _resolve(self, ref: str, project: str | None, session_id: str | None) -> str:
        """Return the id of the memory that a caller means. Raises NotFoundError for one that it may not see."""
        memory_id = await self.store.resolve(intake.valid(ref))
        if project is not None or session_id is not None:
            memory = (await self.store.memories([memory_id], chars=0)).get(memory_id)
            if memory is None or not _visible(memory, project, session_id):
                raise _no_memory(ref)
        return memory_id

    async def _notes_on(self, project: str | None) -> tuple[str, ...]:
        """Return what is to be said of a project that nothing belongs to; nothing when it is known or not named."""
        if project is None or self._index.projects.find(project) >= 0 or self._index.resources.find(project) >= 0:
            return ()
        known = await self.store.projects()
        return () if project in known else (projects.unknown(project, known),)

    async def _entry(self, memory_id: str, *, created: bool = False) -> api.Entry:
        memory = await self.store.memory(memory_id)
        names = (await self.store.aliases([memory_id])).get(memory_id, ())
        return api.Entry(memory=memory, aliases=tuple(alias.name for alias in names), created=created)

    def _page(self, limit: int) -> int:
        if not 1 <= limit <= self.policy.work.page:
            raise InvalidError(
                f"limit must be between 1 and {self.policy.work.page}, got {limit}",
                hint="ask for the rest with the cursor that the answer gives",
            )
        return limit


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


def _parsed(request: api.ImportRequest, policy: MemoryPolicy) -> importers.Parsed:
    """Return what a file holds. Of notes, what must not be stored is taken out before they are cut into sections.

    A private passage, or a key of several lines, may run over a heading: no section by itself would show it.
    """
    name = intake.identifier(request.name, policy.redact)  # before it is cut into folders: "//" shows a password
    place = None if request.place is None else intake.identifier(request.place, policy.redact)
    parse = partial(importers.parse, name, only=request.only, project=request.project, place=place)
    parsed = parse(data=request.data, format=request.format)
    if parsed.format not in {importers.SourceFormat.MARKDOWN, importers.SourceFormat.TEXT}:
        return parsed
    text = decoded(as_utf8(name, request.data, whole=True), errors="replace")
    cleaned = redaction.clean(text, policy.redact).text
    if not cleaned.strip():
        return replace(parsed, events=(), memories=(), skipped=(("private", 1),))
    return parsed if cleaned == text else parse(data=cleaned.encode("utf-8"), format=parsed.format.value)


def _put(index: Index, rows: Sequence[tuple[str, bytes]]) -> None:
    """Give documents their stored vectors."""
    if rows:
        owners, blobs = zip(*rows, strict=True)
        index.set_vectors(owners, *decode_vectors(blobs))


# --- forgetting -------------------------------------------------------------------------------------------------------


def _forget_memory(tx: Transaction, memory_id: str, *, keep: bool) -> api.ForgetAnswer:
    """Forget a memory and, unless `keep`, the passages it was read from and the memories that rest on them alone."""
    if keep:
        tx.forget_memory(memory_id)
        return _forgotten(tx, [memory_id])
    gone = [memory_id]
    passages = tx.passages(tx.grips_of(memory_id))
    tx.forget_memory(memory_id)
    for event_id, spans in passages.items():
        for grip in tx.grips_over(event_id, spans):
            tx.forget_grip(grip)
            if not tx.grips_of(grip.memory_id) and tx.is_observation(grip.memory_id):
                tx.forget_memory(grip.memory_id)
                gone.append(grip.memory_id)
        tx.blank_event(event_id, spans)
    return _forgotten(tx, gone, sources=sum(len(spans) for spans in passages.values()))


def _forget_events(tx: Transaction, event_ids: Sequence[str]) -> api.ForgetAnswer:
    """Forget whole events, the grips on them, and the memories that rest on them alone."""
    gone: list[str] = []
    for event_id in event_ids:
        for grip in tx.grips_over(event_id, None):
            tx.forget_grip(grip)
            if not tx.grips_of(grip.memory_id) and tx.is_observation(grip.memory_id):
                tx.forget_memory(grip.memory_id)
                gone.append(grip.memory_id)
        tx.forget_event(event_id)
    return _forgotten(tx, gone, events=event_ids)


def _forgotten(
    tx: Transaction, memories: Sequence[str], *, events: Sequence[str] = (), sources: int = 0
) -> api.ForgetAnswer:
    tx.erase_traces()
    return api.ForgetAnswer(forgotten=tuple(memories), events=tuple(events), sources=sources)


# --- what a memory is made of -----------------------------------------------------------------------------------------


def _note_writes(plan: reconcile.Plan, taken: set[str]) -> list[MemoryWrite]:
    """Return the writes to memories that an import found there already. Names that are free go to them."""
    writes: dict[str, MemoryWrite] = {}
    for change in plan.changes:
        fields: dict[Field, Any] = {Field.METADATA: change.metadata}
        if change.content is not None:
            fields[Field.CONTENT] = change.content
        writes[change.memory_id] = MemoryWrite(memory_id=change.memory_id, fields=fields)
    for memory_id, names in plan.named:
        free = tuple(name for name in names if name not in taken)
        taken.update(free)
        if free:
            earlier = writes.get(memory_id, MemoryWrite(memory_id=memory_id, fields={}))
            writes[memory_id] = replace(earlier, names=(*earlier.names, *free))
    return list(writes.values())


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


_CHANGES: dict[int, str] = {
    OpType.MEMORY: "write",
    OpType.CLAIM: "name",
    OpType.UNCLAIM: "unname",
    OpType.COUNT: "recalled",
    OpType.GRIP: "source",
    OpType.FORGET: "forget",
}


def _change(row: tuple[Op | None, int, str, int]) -> api.Change:
    op, op_type, device, seq = row
    fields: tuple[str, ...] = ()
    if op is not None and op_type == OpType.MEMORY:
        fields = tuple(key.name.lower() for key in ops.fields_of(op))
    return api.Change(
        ts=Millis(0) if op is None else millis_of(Hlc(op.hlc)),
        device=device,
        seq=seq,
        change=_CHANGES.get(op_type, str(op_type)),
        fields=fields,
    )


def _origin(memory: Memory, history: Sequence[api.Change], *, learned: bool, device: str) -> api.Origin:
    """Return how a memory came to be. Its first op says when and where; words that were erased leave none."""
    found = reconcile.places(memory.metadata)
    first = next((change for change in history if change.ts), None)
    return api.Origin(
        how="learned" if learned or memory.kind is Kind.OBSERVATION else "imported" if found else "added",
        by=memory.trust.value,
        ts=memory.created_at if first is None else first.ts,
        device="" if first is None else first.device,
        here=first is not None and first.device == device,
        places=tuple(
            api.Place(file=str(place.get("path") or place.get("source") or ""), heading=str(place.get("heading", "")))
            for place in found
        ),
    )


def _field_name(key: int) -> str:
    return Field(key).name.lower() if key in set(Field) else str(key)


def _version_name(stamp: ops.Stamp) -> str:
    return f"{stamp[0]:x}-{stamp[1][:8]}"


def _conflict(found: Disputed, memory: Memory) -> api.Conflict:
    return api.Conflict(
        memory_id=memory.id,
        name=memory.name,
        field=_field_name(found.field),
        shown=found.shown,
        others=tuple(
            api.Version(version=_version_name(stamp), ts=millis_of(Hlc(stamp[0])), device=stamp[1], value=value)
            for stamp, value in sorted(found.versions, reverse=True)
        ),
    )


def _is_of_places(found: Disputed) -> bool:
    """Say whether two devices merely imported one text from different places: nobody has to decide that."""
    versions = [found.shown, *(value for _, value in found.versions)]
    metadata = [each for each in versions if isinstance(each, dict)]
    return found.field == Field.METADATA and len(metadata) == len(versions) and reconcile.differ_in_places(metadata)


def _visible(memory: Memory, project: str | None, session_id: str | None) -> bool:
    if project is None and session_id is None:
        return True
    return memory.scope is Scope.USER or memory.resource_id in {project, session_id} - {None}


def _visible_event(event: Event, project: str | None, session_id: str | None) -> bool:
    if project is None and session_id is None:
        return True
    return event.project in {project, None} or event.session_id == session_id


def _no_memory(ref: str) -> NotFoundError:
    return NotFoundError(f"there is no memory {ref[:60]!r}", hint="scrubjay list shows all memories with their ids")


async def _off_loop(chars: int, work: Callable[[], T]) -> T:
    """Run what takes long on a long text in a thread, and on a short one at once: a hop to a thread costs more."""
    return await asyncio.to_thread(work) if chars > SMALL_CHARS else work()


def _kept_from_collector(work: Callable[[], T]) -> T:
    """Return what `work` makes of a whole file. The collector of garbage never looks at it."""
    with uncollected(keep=True):
        return work()


def _skipped(reasons: Mapping[str, int]) -> tuple[api.Skipped, ...]:
    return tuple(api.Skipped(reason=reason, count=count) for reason, count in sorted(reasons.items()) if count)


def _clauses(*parts: tuple[str, Any]) -> tuple[str, tuple[Any, ...]]:
    given = [(sql, value) for sql, value in parts if value is not None]
    return " and ".join(["1", *(sql for sql, _ in given)]), tuple(value for _, value in given)


def _check_times(since: Millis | None, until: Millis | None) -> None:
    intake.check_time("since", since)
    intake.check_time("until", until)


CURSOR_HINT = "give the cursor as the page before gave it, or leave it out for the first page"


def _cursor(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        at, n = (int(part) for part in text.split("-"))
    except ValueError as error:
        raise InvalidError(f"{text[:60]!r} is not a cursor", hint=CURSOR_HINT) from error
    if max(at, n) > MAX_MILLIS:  # SQLite counts in 64 bits
        raise InvalidError(f"{text[:60]!r} is not a cursor", hint=CURSOR_HINT)
    return at, n


def _cursor_text(at: tuple[int, int] | None) -> str | None:
    return None if at is None else f"{at[0]}-{at[1]}"


def _batches(items: Sequence[Any], size: int) -> Iterable[tuple[Any, ...]]:
    return (tuple(items[at : at + size]) for at in range(0, len(items), size))


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
