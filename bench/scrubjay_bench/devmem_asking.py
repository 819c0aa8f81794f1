"""Stores filled with labelled sessions and asked about them, through the product's own operations; then the rows.

A project has a store of its own. The sessions are ingested as an agent's plug-in sends them, so that the daemon learns
what it can; or, with the labelled memories added instead, nothing is learned and the ranking alone is measured.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from scrubjay import __version__, api
from scrubjay.api.caller import PERSON
from scrubjay.distill.answer import SOURCE as OBSERVER
from scrubjay.service.application import Application
from scrubjay.settings import NO_MODEL
from scrubjay.writer.budget import Caps
from scrubjay.writer.budgeted import Chosen
from scrubjay_bench import daemons, devmem_scores, devmem_writers, retrieval
from scrubjay_bench.devmem import Label, Project, Question, Sessions, Turn
from scrubjay_bench.devmem_scores import ASKED_FOR, Asked, Learned, Matches, Values
from scrubjay_bench.devmem_writers import Answers, LabelWriter
from scrubjay_bench.figures import load, machine
from scrubjay_bench.progress import steps
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.records import EventDraft, MemoryDraft, MemoryType, Scope

AGENT = "claude-code"
BATCH = 200
PAGE = 200
SETTLE_MS = 3_600_000
NO_BUDGET = 1_000_000  # tokens
STORE = "memory.db"
ALL, MEAN = "all", "mean"
LEARNING = (*retrieval.RANKING, "scrubjay/distill", "scrubjay/ingest", "scrubjay/projects.py")
"""What decides the figures: what is learned, beside the order of an answer."""


class Memories(StrEnum):
    """Where the memories of a store come from."""

    LEARNED = "learned"
    OBSERVED = "observed"
    LABELLED = "labelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be measured, and with what.

    With `answers` an observer reads the sessions: `writer` under `caps`, which hold for one project, or labels.
    """

    data: Sessions
    memories: Memories
    models_dir: Path
    model: str
    reranker: str = NO_MODEL
    scratch: Path | None = None
    answers: Answers | None = None
    writer: Chosen | None = None
    caps: Caps | None = None

    def writer_for(self, project: Project) -> Chosen | None:
        """Return what reads the sessions of a project, None where patterns do."""
        if self.answers in {None, Answers.SETTINGS}:
            return self.writer
        return devmem_writers.chosen(project, self.answers)

    @property
    def conditions(self) -> dict[str, Any]:
        """What all rows share, as it stands in JSON."""
        return {
            "data": {"name": self.data.name, "sha256": self.data.sha256},
            "model": retrieval.model_facts(self.model),
            "reranker": retrieval.model_facts(self.reranker),
            "writer": None if self.answers is None else [self.answers.value, self.writer and self.writer.model],
            "scrubjay": __version__,
            "code": retrieval.code(LEARNING),
            "machine": machine(self.scratch or self.models_dir),
            "load": load(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What an observer did: what it counted, its calls and tokens, and how many memories patterns made in its place.

    `said` and `kept` count the labels that a Writer answered with and those that the store then has; None where it
    knows none.
    """

    counts: Mapping[str, int]
    calls: int
    tokens: int
    by_patterns: int
    said: int | None = None
    kept: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one project's store learned and answered."""

    project: Project
    learned: tuple[Learned, ...]
    matches: Matches
    asked: tuple[Asked, ...]
    values: Values
    observed: Observed | None = None

    def details(self) -> dict[str, Any]:
        """Return what the figures are made of, texts included: for whoever may read the sessions."""
        right = self.matches.memories
        return {
            "memories": [
                asdict(memory) | {"turns": sorted(memory.turns), "matches": place in right}
                for place, memory in enumerate(self.learned)
            ],
            "missed": [label.id for label in self.project.labels if self.learned and label.id not in self.matches.best],
            "questions": [
                {
                    "id": one.question.id,
                    "confidence": one.confidence if math.isfinite(one.confidence) else None,
                    "hits": [sorted(turns) for turns in one.turns],
                    "ms": round(one.ms, 1),
                }
                for one in self.asked
            ],
        }


def measured(run: Run) -> Iterator[Seen]:
    """Yield what each project's store learned and answered. Raises UnavailableError when not all is learned."""
    with steps(sum(len(project.questions) for project in run.data.projects)) as progress:
        for project in run.data.projects:
            progress.say(f"{project.name}: {len(project.turns):,} turns")
            yield asyncio.run(_measured(run, project, progress.step))


def rows(seen: Sequence[Seen], memories: Memories) -> list[dict[str, Any]]:
    """Return a row a project, one over all memories, labels and questions, and the mean of the projects' rows."""
    of_projects = [devmem_scores.row(one.values) for one in seen]
    found = [(one.project.name, row) for one, row in zip(seen, of_projects, strict=True)]
    if len(seen) > 1:
        found.append((ALL, devmem_scores.row(devmem_scores.pooled([one.values for one in seen]))))
        found.append((MEAN, devmem_scores.averaged(of_projects)))
    turns = {one.project.name: len(one.project.turns) for one in seen}
    return [
        {"project": name, "from": memories.value, "turns": turns.get(name, sum(turns.values())), **row}
        for name, row in found
    ]


async def _measured(run: Run, project: Project, step: Callable[[], None]) -> Seen:
    # The same ids and times on every run: the same code gives the same figures.
    seed = hashlib.sha256(f"{run.data.sha256} {project.name}".encode()).hexdigest()
    writer = run.writer_for(project)
    learns = run.memories is not Memories.LABELLED
    observed: Observed | None = None
    clock = Clock(project.asked)
    with daemons.scratch(run.scratch) as folder:
        service = await Application.open(
            Path(folder) / STORE,
            models_dir=run.models_dir,
            model=run.model,
            reranker=run.reranker,
            writer=writer,
            caps=run.caps,
            now=lambda: clock.at,
            entropy=random.Random(seed).randbytes,
        )
        try:
            # A night that begins meanwhile would put away what is counted as learned.
            for job in ("consolidate", "prune"):
                await service.call(PERSON, "pause_job", api.JobRequest(name=job))
            turn_of = await said(service, project.turns, project.times, learn=learns)
            given: dict[str, str] = {}
            if run.memories is Memories.LABELLED:
                given = await added(service, project.labels, clock)
            await settled(service, project.name)
            learned: tuple[Learned, ...] = ()
            if learns:
                learned = tuple([memory async for memory in _learned(service, turn_of)])
            if writer is not None:
                observed = await _observed(service, learned, writer)
            asked = []
            for question in project.questions:
                asked.append(await _asked(service, project, question, turn_of, given))
                step()
        finally:
            await service.close()
    matches = devmem_scores.matched(learned, project.labels)
    known = {label: frozenset(learned[place].id for place in places) for label, places in matches.all.items()}
    if run.memories is Memories.LABELLED:
        known = {label: frozenset((memory,)) for memory, label in given.items()}
    values = [devmem_scores.asking(asked, known)]
    if learns:
        values.append(devmem_scores.learning(project, learned, matches))
    return Seen(
        project=project,
        learned=learned,
        matches=matches,
        asked=tuple(asked),
        values=devmem_scores.pooled(values),
        observed=observed,
    )


async def _observed(service: Application, learned: Sequence[Learned], writer: Chosen) -> Observed:
    spent = await service.writer.spent()
    jobs = await service.store.read(lambda q: q.stats.jobs())
    calls = await service.store.read(lambda q: int(q.fetch("select count(*) from writer_call")[0][0]))
    said: Sequence[Label] = writer.writer.said if isinstance(writer.writer, LabelWriter) else ()
    return Observed(
        counts=jobs["observe"].counts if "observe" in jobs else {},
        calls=calls,
        tokens=spent.monthly,
        by_patterns=sum(not memory.by_observer for memory in learned),
        said=len(said) if isinstance(writer.writer, LabelWriter) else None,
        kept=len(devmem_scores.matched(learned, said).best) if isinstance(writer.writer, LabelWriter) else None,
    )


async def said(service: Application, turns: Sequence[Turn], times: Sequence[Millis], *, learn: bool) -> dict[str, str]:
    """Send turns as a plug-in would. Returns the turn of each event; one that says nothing becomes none."""
    turn_of: dict[str, str] = {}
    for start in range(0, len(turns), BATCH):
        batch = turns[start : start + BATCH]
        drafts = tuple(
            EventDraft(
                agent=AGENT,
                session_id=turn.session,
                type=turn.event_type,
                role=turn.role,
                text=turn.text,
                project=turn.project,
                ts=ts,
                trust=turn.trust,
                dedupe_key=turn.id,
            )
            for turn, ts in zip(batch, times[start : start + BATCH], strict=True)
        )
        answer = await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=learn))
        turn_of |= {event: turn.id for event, turn in zip(answer.ids, batch, strict=True) if event}
    return turn_of


@dataclass(slots=True)
class Clock:
    """What the daemon takes for now."""

    at: Millis


async def added(
    service: Application, labels: Sequence[Label], clock: Clock, *, project: str | None = None
) -> dict[str, str]:
    """Add labelled memories, each a millisecond after the one before. Returns the label of each memory.

    Without a project they are the person's, whatever scope the label has.
    """
    scope = Scope.USER if project is None else Scope.PROJECT
    given: dict[str, str] = {}
    for label in labels:
        clock.at = Millis(clock.at + 1)
        # A how-to is added as a fact, as before it was a type of its own: earlier figures stay comparable.
        type_ = MemoryType.FACT if label.type == "howto" else MemoryType(label.type)
        entry = await service.call(
            PERSON, "add", MemoryDraft(content=label.text, type=type_, scope=scope, resource_id=project)
        )
        given[entry.memory.id] = label.id
    return given


async def settled(service: Application, name: str) -> None:
    """Wait until all is learned and embedded. Raises UnavailableError, which says what `name` lacks."""
    left = await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=SETTLE_MS))
    if left.to_learn or left.to_embed:
        raise UnavailableError(
            f"{name}: {left.to_learn} events not distilled, {left.to_embed} texts not embedded",
            hint=left.problem or "scrubjay models list says whether the model is whole",
        )


async def _learned(service: Application, turn_of: dict[str, str]) -> AsyncIterator[Learned]:
    """Yield all memories of the store, each with the turns and words it was read from."""
    cursor: str | None = None
    while True:
        page = await service.call(PERSON, "list", api.ListRequest(limit=PAGE, cursor=cursor))
        for entry in page.entries:
            memory = entry.memory
            why = await service.call(PERSON, "why", api.RefRequest(ref=memory.id))
            turns = {turn_of.get(event.id) for source in why.sources for event in source.events}
            yield Learned(
                id=memory.id,
                content=memory.content,
                type=memory.type.value,
                scope=memory.scope.value,
                trust=memory.trust.value,
                turns=frozenset(turn for turn in turns if turn is not None),
                excerpt=" ".join(source.grip.excerpt for source in why.sources),
                by_observer=any(source.grip.source == OBSERVER for source in why.sources),
                confidence=memory.confidence,
            )
        cursor = page.next
        if cursor is None:
            return


async def _asked(
    service: Application, project: Project, question: Question, turn_of: dict[str, str], given: dict[str, str]
) -> Asked:
    """Ask once as anybody would, for the figures; and once without a budget of tokens, to see what the budget costs."""
    labels = {label.id: label.turns for label in project.labels}

    def turns(answer: api.RecallResponse) -> tuple[frozenset[str], ...]:
        found = []
        for hit in answer.hits:
            read = {turn_of.get(hit.id), *(turn_of.get(quote.event_id) for quote in hit.sources)} - {None}
            found.append(frozenset(turn for turn in read if turn) | labels.get(given.get(hit.id, ""), frozenset()))
        return tuple(found)

    began = time.perf_counter()
    answer = await service.call(PERSON, "recall", api.RecallRequest(query=question.question, limit=ASKED_FOR))
    ms = (time.perf_counter() - began) * 1000
    unbounded: tuple[frozenset[str], ...] = ()
    if question.evidence:
        wide = api.RecallRequest(query=question.question, limit=ASKED_FOR, max_tokens=NO_BUDGET)
        unbounded = turns(await service.call(PERSON, "recall", wide))
    return Asked(
        question=question,
        ids=tuple(hit.id for hit in answer.hits),
        turns=turns(answer),
        unbounded=unbounded,
        tokens=answer.tokens,
        ms=ms,
        confidence=_confidence(answer),
    )


def _confidence(answer: api.RecallResponse) -> float:
    """Return how sure an answer is: what it says itself, else the score of its best hit."""
    if answer.confidence is not None:
        return answer.confidence
    return answer.hits[0].score if answer.hits else -math.inf
