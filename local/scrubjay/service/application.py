"""The application: an open store with everything around it, and each operation bound to its handler.

Theory of operation. A handler validates, asks `api.access`, decides with the pure modules, and acts through the store.
Writes are durable when it returns. What they leave to be done (distilling, embedding) is found by looking at the store,
never kept in memory, so that a crash loses nothing and repeats a step with the same result. The index in memory follows
the store's commits in their order; `recall` reads only it and the rows of its hits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from scrubjay import accounts, telemetry
from scrubjay import settings as options
from scrubjay.accounts import MAIN
from scrubjay.api.access import EVERYTHING
from scrubjay.jobs import conditions
from scrubjay.jobs.alike import Alike
from scrubjay.jobs.backup import Backup
from scrubjay.jobs.compact import Compact
from scrubjay.jobs.consolidate import Consolidate, Prune
from scrubjay.jobs.consolidation_run import KIND, ConsolidationRun
from scrubjay.jobs.embed import Embed
from scrubjay.jobs.instructions import Instructions
from scrubjay.jobs.integrity import Integrity
from scrubjay.jobs.maintain import Maintain
from scrubjay.jobs.readers import Readers
from scrubjay.jobs.recall_counts import RecallCounts
from scrubjay.jobs.registry import Jobs
from scrubjay.jobs.scheduler import Scheduler
from scrubjay.jobs.spool import Spool
from scrubjay.jobs.surface import Surface
from scrubjay.jobs.sweep import Sweep
from scrubjay.jobs.toc import TableOfContents
from scrubjay.model_choice import Origin
from scrubjay.models import http
from scrubjay.models.runtime import Models
from scrubjay.models.selection import ModelSettings
from scrubjay.policy import DEFAULT, MemoryPolicy
from scrubjay.service import configuration, trusting
from scrubjay.service.account_stores import AccountStores, OpenAccount
from scrubjay.service.agents import Agents
from scrubjay.service.archives import Archives
from scrubjay.service.asking import Asking
from scrubjay.service.background import Background
from scrubjay.service.compaction import Compaction
from scrubjay.service.conflicts import Conflicts
from scrubjay.service.consolidation import Consolidation, wording_of
from scrubjay.service.context import Context
from scrubjay.service.costs import Costs
from scrubjay.service.events import Events
from scrubjay.service.forget import Forgetting
from scrubjay.service.handing import Handing
from scrubjay.service.handlers import Handlers
from scrubjay.service.history import History
from scrubjay.service.hooks import Hooks
from scrubjay.service.imports import Imports
from scrubjay.service.index_maintainer import IndexMaintainer
from scrubjay.service.job_costs import JobCosts
from scrubjay.service.layers import Layers
from scrubjay.service.learning import SESSION as TOLD
from scrubjay.service.learning import Learning
from scrubjay.service.leftovers import Leftovers
from scrubjay.service.memories import Memories
from scrubjay.service.observing import Observing
from scrubjay.service.project_names import ProjectNames
from scrubjay.service.recall import Recall
from scrubjay.service.references import References
from scrubjay.service.relearning import Relearning
from scrubjay.service.route import Router
from scrubjay.service.session_switch import SessionSwitch
from scrubjay.service.settling import Settling
from scrubjay.service.starts import Starts
from scrubjay.service.status import Status
from scrubjay.service.surfacing import Surfacing
from scrubjay.service.toc import Toc
from scrubjay.service.traces import Traces
from scrubjay.service.trusted_projects import TrustedProjects
from scrubjay.service.undo import Undo
from scrubjay.service.vaults.plain_files import PlainFiles
from scrubjay.service.writing import Writing
from scrubjay.settings import Settings
from scrubjay.spool import Report
from scrubjay.store import Store
from scrubjay.trusted_folders import TrustedFolders
from scrubjay.writer import configured
from scrubjay.writer.budget import Caps
from scrubjay.writer.budgeted import BudgetedWriter, Chosen
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.records import Layer

log = logging.getLogger(__name__)

T = TypeVar("T")

NO_MODEL = "none"


class Application:
    """Composes the parts around one store, and closes them. Made by `Application.open`."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        named: ModelSettings,
        now: Callable[[], Millis],
        *,
        writer: BudgetedWriter,
        folders: TrustedFolders,
    ) -> None:
        self.store = store
        self.policy = policy
        self.writer = writer
        """The language model that jobs may ask. Off unless the person has set one."""
        self._now = now
        self.tracer, self._end_telemetry = telemetry.tracer(store.path, policy.trace)
        store.on_caused = self.tracer.wrote
        writer.tracer = self.tracer
        self._maintainer = IndexMaintainer(
            store,
            known_space=lambda: self._models.embedder.known_space(),  # noqa: PLW0108  # made below
            follow_erasure=lambda: self._forgetting.follow_erasure(),  # noqa: PLW0108  # likewise
            wake=self._wake,
        )
        self._models = Models(store, policy, named, self._maintainer.enter_space)
        self._stopping = stopping = asyncio.Event()
        self._alike = alike = Alike(store, policy.work, self._maintainer.current)
        readers = Readers(
            store,
            policy,
            stopping,
            writer=writer,
            identity=lambda: self._context.slots(Layer.IDENTITY, EVERYTHING),
            on_memories=self._learned,
            alike=alike,
            reader=self._models.reading,
            quiet_seconds=lambda: self.handlers.quiet_seconds(),  # noqa: PLW0108  # made below
            told={TOLD},
            now=now,
        )
        self.distill, self.observe, self.relearn = readers.distill, readers.observe, readers.relearn
        self.embed = Embed(self._models, policy.work, stopping)
        self.compact = Compact(
            store,
            policy.work,
            stopping,
            compact=lambda session: self._compaction.carry_out(session),  # noqa: PLW0108  # made below
        )
        self.toc = TableOfContents(
            store,
            policy,
            stopping,
            quiet_seconds=lambda: self.handlers.quiet_seconds(),  # noqa: PLW0108  # made below
        )
        self.recall_counts = RecallCounts(store, policy.work)
        sweep = lambda: self._forgetting.sweep()  # noqa: E731, PLW0108  # made below
        self.sweep = Sweep(store, policy.work, stopping, sweep)
        leftovers = Leftovers(store, unsaved_index=self._maintainer.unsaved, now=now)
        self._leftovers: Leftovers = leftovers
        self.maintain = Maintain(
            store,
            self._models,
            policy.work,
            stopping,
            blank_copies=leftovers.blank,
            save_index=self._maintainer.save,
        )
        spool = Spool(store.path.parent, policy.work, lambda: self._hooks.drain())  # noqa: PLW0108  # made below
        self.instructions = Instructions(
            store,
            policy.work,
            lambda path, project: self._imports.follow(path, project),  # noqa: PLW0108  # made below
        )
        self.integrity = Integrity(store, policy.night, stopping)
        self.surface = Surface(
            policy.work,
            behind=lambda: self.surfacing.is_behind(),  # noqa: PLW0108  # made below
            refresh=lambda: self.surfacing.refresh(),  # noqa: PLW0108  # likewise
        )
        self._consolidation = Consolidation(
            store,
            policy,
            run=ConsolidationRun(store, policy, wording=lambda: wording_of(writer, KIND)),
            stopping=stopping,
            wake=self._wake,
            now=now,
        )
        consolidate = Consolidate(policy.night, carry_out=self._consolidation.carry_out)
        prune = Prune(policy.night, carry_out=self._consolidation.prune)
        of_sessions = (self.distill, self.observe, self.relearn, self.compact, self.embed, self.toc)
        by_day = (self.recall_counts, self.sweep, self.maintain, spool, self.instructions)
        by_night = (Backup(store, policy.night, stopping), self.integrity, self.surface, consolidate, prune)
        jobs = Jobs((*of_sessions, *by_day, *by_night))
        self.scheduler = Scheduler(
            jobs,
            store,
            policy,
            stopping,
            read_conditions=lambda: conditions.read(self.handlers.quiet_seconds()),
            tracer=self.tracer,
        )
        self.on_work: Callable[[str], None] = self.scheduler.wake
        """Told the name of a job that has something to do."""
        self.warnings: list[Callable[[], Awaitable[Iterable[str]]]] = [
            self.observe.warnings,
            self.relearn.warnings,
            self.integrity.warnings,
        ]
        """What `status` is to say of what runs around the store; each is called when it is asked."""
        self._compose(named, folders)

    def _compose(self, named: ModelSettings, folders: TrustedFolders) -> None:
        store, policy, now = self.store, self.policy, self._now
        self._references = References(store, lambda: self._maintainer.index, folders.of_projects)
        self.project_names = ProjectNames(self._references.is_known, folders)
        self._events = Events(store, policy, references=self._references, wake=self._wake, now=now)
        self._memories = Memories(
            store,
            policy,
            models=self._models,
            references=self._references,
            alike=self._alike,
            wake=self._wake,
            now=now,
        )
        self._forgetting = Forgetting(
            store,
            references=self._references,
            unsaved_index=self._maintainer.unsaved,
            leftovers=self._leftovers,
            wake=self._wake,
        )
        recall = Recall(
            store,
            lambda: self.policy,  # a benchmark tries others
            maintainer=self._maintainer,
            models=self._models,
            references=self._references,
            counts=self.recall_counts,
            now=now,
        )
        asking = Asking(store, lambda: self.policy, writer=self.writer, recall=recall, now=now)
        self.surfacing = Surfacing(store, policy, recall=recall.recall, now=now)
        starts = Starts(store, policy, references=self._references, now=now)
        self._handing = Handing(
            store,
            policy,
            recall=recall.recall,
            predicted=self.surfacing.due,
            starts=starts,
            warm=self._warm,
            bears=self._bears,
            tracer=self.tracer,
            now=now,
        )
        self._context = Context(
            store,
            policy,
            references=self._references,
            forgetting=self._forgetting,
            handing=self._handing,
            wake=self._wake,
            now=now,
        )
        layers = Layers(store, policy, context=self._context, references=self._references, wake=self._wake, now=now)
        switch = SessionSwitch(store, policy)
        self.notes = [switch.notes]
        trusted = TrustedProjects(store, folders, wake=self._wake)
        self._hooks = Hooks(
            policy,
            events=self._events,
            handing=self._handing,
            context=self._context,
            switch=switch,
            store=store,
            project_names=self.project_names,
            folder=store.path.parent,
            accounts=lambda: self.accounts,
            now=now,
        )
        self.archives = Archives(
            store,
            flush_accesses=self.recall_counts.run,
            rebuilding=self._maintainer.rebuilding,
            load_index=self._maintainer.load,
            build_contents=self.toc.finish,
            wake=self._wake,
            now=now,
        )
        self._compaction = Compaction(
            store, policy, references=self._references, wake=self._wake, reader=self._models.reading
        )
        agents = Agents(store, policy, references=self._references, now=now)
        history = History(store, policy, references=self._references)
        traces = Traces(store, policy, self.tracer, references=self._references)
        toc = Toc(store, policy, references=self._references)
        router = Router(
            store,
            lambda: self.policy,
            maintainer=self._maintainer,
            models=self._models,
            references=self._references,
            recall=recall,
            toc=toc,
            now=now,
        )
        undo = Undo(store, policy, wake=self._wake, now=now)
        conflicts = Conflicts(store, policy, references=self._references, wake=self._wake)
        self.notes.append(conflicts.notes)
        about_trust = trusting.handlers(
            store, policy, references=self._references, supersede=conflicts.supersede, surfacing=self.surfacing.stats
        )
        self._imports = Imports(
            store,
            policy,
            events=self._events,
            memories=self._memories,
            project_names=self.project_names,
            accounts=lambda: self.accounts,
            wake=self._wake,
            now=now,
        )
        status = Status(
            store,
            models=self._models,
            models_dir=named.models_dir,
            space=lambda: self._maintainer.space,
            to_learn=self.distill.pending,
            jobs=self.scheduler.jobs,
            surfacing=self.surfacing.stats,
            started=now(),
            warnings=self.warnings,
            notes=self.notes,
        )
        learning = Learning(
            store,
            policy,
            events=self._events,
            distill=self.distill.run,
            reader=self._models.reading,
            identity=lambda: self._context.slots(Layer.IDENTITY, EVERYTHING),
            now=now,
        )
        relearning = Relearning(store, policy, job=self.relearn, writer=self.writer, wake=self._wake)
        observing = Observing(
            store,
            policy,
            self._stopping,
            references=self._references,
            on_memories=self._learned,
            alike=self._alike,
        )
        self.warnings.append((costs := Costs(store, policy, writer=self.writer)).warnings)
        self.writing = Writing(store, policy, writer=self.writer, accounts=lambda: self.accounts, now=now)
        asks = {"observe": self.observe.asks, "consolidate": self._consolidation.asks}
        background = Background(self.scheduler, policy, costs=JobCosts(store, policy, writer=self.writer, asks=asks))
        settling = Settling(
            [job.name for job in (self.compact, self.observe, self.distill, self.embed, self.toc)],
            {self.observe.name},
            self.scheduler.finish,
            to_learn=self.distill.pending,
            to_embed=self.embed.pending,
        )
        self.plain_files = PlainFiles(
            store,
            policy,
            wake=self._wake,
            add_job=self.scheduler.add,
            now=now,
            wording=lambda: wording_of(self.writer, "vault"),
        )
        self.warnings.append(self.plain_files.vaults.problems)
        self.indexed = self._maintainer.indexed
        self.handlers = Handlers(
            {
                "ingest": self._events.ingest,
                "hook": self._hooks.hook,
                "events": self._events.events,
                "sessions": self._events.sessions,
                "compact": self._compaction.compact,
                "replay": self._compaction.replay,
                "agents": agents.agents,
                "agent_activity": agents.activity,
                "route": router.route,
                "teleport": router.teleport,
                "layers": router.layers,
                "toc": toc.toc,
                "timeline": toc.timeline,
                "grip": toc.grip,
                "add": self._memories.add,
                "observe": observing.observe,
                "learn": learning.learn,
                "relearn": relearning.relearn,
                "list": self._memories.page,
                "get": self._memories.get,
                "update": self._memories.update,
                "supersede": conflicts.supersede,
                "forget": self._forgetting.forget,
                "forget_all": self._forgetting.forget_all,
                "forgets": self._forgetting.forgets,
                "rename": self._memories.rename,
                "alias": self._memories.alias,
                "why": history.why,
                "trace": traces.trace,
                "history": undo.history,
                "undo": undo.undo,
                "consolidate": self._consolidation.consolidate,
                "diff": self._consolidation.diff,
                **about_trust,
                "projects": trusted.projects,
                "trust_folder": trusted.trust,
                "conflicts": conflicts.conflicts,
                "resolve": conflicts.resolve,
                "recall": self.surfacing.recall,
                "ask": asking.ask,
                "context": self._context.context,
                "brief": starts.brief,
                "set_identity": self._context.set_identity,
                "set_active": self._context.set_active,
                "active": layers.active,
                "confirm_active": layers.confirm,
                "dismiss_active": layers.dismiss,
                "import": self._imports.load,
                "stats": status.stats,
                "status": status.status,
                "settle": settling.settle,
                "jobs": background.jobs,
                "run_job": background.run,
                "pause_job": background.pause,
                "resume_job": background.resume,
                "job_runs": background.history,
                "backup": self.archives.backup,
                "rebuild": self.archives.rebuild,
                "cost": costs.cost,
                "writer": self.writing.writer,
                "try_writer": self.writing.try_writer,
                "use_writer": self.writing.use_writer,
                "models": status.models,
                "use_model": status.use_model,
                **self.plain_files.handlers,
            },
            {"export": self.archives.export},
            self.project_names,
            self.tracer,
        )
        self.call = self.handlers.call
        self.stream = self.handlers.stream

    async def _warm(self) -> None:
        """Load the models, for the first prompt not to wait for them."""
        await self.meaning(["a question"], question=True)
        await self._models.reranker.slot.held()

    async def _bears(self, prompt: str, texts: Sequence[str]) -> Sequence[float] | None:
        """Return how far texts bear on a prompt by the reranking model; None where it is not loaded: a hook waits."""
        if self._models.reranker.slot.model is None:
            return None
        logits, _ = await self._models.reranker.rerank(prompt, texts)
        return None if logits is None else [float(one) for one in logits]

    def _learned(self) -> None:
        self.on_work("embed")
        self.on_work("surface")

    def _wake(self, job: str) -> None:
        self.on_work(job)

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
        writer: Chosen | None = None,
        caps: Caps | None = None,
        now: Callable[[], Millis] = lambda: Millis(time.time_ns() // 1_000_000),
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> Application:
        """Open the store at `path` and load its index. Raises what `Store.open` raises.

        `model` names the embedding model and `reranker` the reranking model, which is used where it is installed;
        `origins` says where these names came from, and `model_choice.chosen` what that means beside the store's own
        choice (`use_model`). `endpoint` is for models that run elsewhere, `threads` how many texts are embedded, or
        pairs scored, at once. `writer` is the language model that jobs may ask, under `caps` (those of the policy,
        unless given).
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
        try:
            known = await store.read(lambda q: q.stats.projects())
            folders = await asyncio.to_thread(TrustedFolders.load, path, known)
        except BaseException:
            await store.close()
            raise
        asked = BudgetedWriter(store, writer, caps, policy.writer)
        service = cls(store, policy, named, now, writer=asked, folders=folders)
        try:
            await service._models.start()
            await service._maintainer.load()
            await service.plain_files.vaults.start()
        except BaseException:
            await store.close()
            raise
        store.on_change = service._maintainer.follow
        return service

    @classmethod
    async def configured(
        cls, settings: Settings, environ: Mapping[str, str], *, path: Path | None = None, policy: MemoryPolicy = DEFAULT
    ) -> Application:
        """Open the store that the settings name (or the one at `path`) with the models that they choose.

        `environ` holds the key of an embeddings server under the name that the settings give. Raises as `open`.
        """
        if settings.account != MAIN:  # a name that was mistyped is not to become a store
            (await asyncio.to_thread(accounts.load, settings.data_dir)).require(settings.account)
        policy = await asyncio.to_thread(configuration.policy_of, settings, policy)
        service = await cls.open(
            settings.store_path if path is None else path,
            models_dir=settings.models_dir,
            model=settings.model,
            reranker=settings.reranker,
            origins=settings.origins,
            policy=policy,
            endpoint=configuration.endpoint_of(settings, environ),
            threads=settings.threads,
            writer=configured.chosen(settings, environ, policy.writer),
            caps=configured.caps(settings),
        )

        async def opener(account: str) -> OpenAccount:
            fresh = await asyncio.to_thread(options.writer_reread, settings)
            opened = await cls.configured(replace(fresh, account=account), environ, policy=policy)
            return OpenAccount(service=opened, close=opened.close)

        service.writing.follow(settings, environ)
        service.handlers.accounts = AccountStores(settings.data_dir, settings.account, opener)
        service.warnings.append(service.handlers.accounts.warnings)
        sockets = () if settings.socket is None else (settings.socket,)
        tokens = (settings.token_path, settings.agent_token_path, settings.hook_door_path)
        service.archives.ours = (settings.config_path, settings.log_path, *tokens, *sockets)
        return service

    @property
    def accounts(self) -> AccountStores | None:
        """The accounts of the home, as seen from this store; None for a store that is by itself."""
        return self.handlers.accounts

    async def has_session(self, session_id: str) -> bool:
        """Say whether anything of a session is stored here."""
        return await self.store.read(lambda q: q.events.has_session(session_id))

    async def take_report(self, report: Report, *, size: int) -> None:
        """Store a report of a host, of so many bytes, that came by the spool. Raises InvalidError, TooLargeError."""
        await self._hooks.take_report(report, size=size)

    @property
    def failure(self) -> ScrubjayError | None:
        """Why nothing can be stored any more until this is opened again; None while all is well."""
        return self.store.failure

    async def close(self) -> None:
        """Write what recall counted, close the store, let go of the models. A second close does nothing."""
        try:
            if self.accounts is not None:
                await self.accounts.close()
            await self._hooks.close()
            await self._handing.close()
            await self.writer.aclose()
            if self.failure is None and not self.store.is_fixed:
                await self.recall_counts.run()
                await self._maintainer.save()
            await self._maintainer.erasures()
            await self._leftovers.close()
        finally:
            self.recall_counts.discard()
            try:
                await self._models.close()
            finally:
                await self.store.close()
                await self._maintainer.close()
                await asyncio.to_thread(self._end_telemetry)

    async def meaning(
        self, texts: Sequence[str], *, question: bool = False
    ) -> tuple[str, np.ndarray[Any, np.dtype[np.float32]]] | None:
        """Return the embedding space in use and the vectors of some texts in it: float32 [n, d], of unit length.

        None without a model that works. `question` embeds them as what is asked, not as what is stored.
        """
        return await self._models.embedder.meaning(texts, question=question)
