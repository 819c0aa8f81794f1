"""Consolidation as people ask for it: a run, its plan without one, and what changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.jobs.consolidation_run import KIND, ConsolidationRun, Planned, Wording
from scrubjay.lifecycle.comparison import difference
from scrubjay.lifecycle.consolidation import ALL, PRUNE_KIND, PRUNING, Action, Step
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval.packing import CUT
from scrubjay.service.paging import check_times, page_limit
from scrubjay.store import Queries, Store
from scrubjay.writer.budget import Asked
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import Prompt
from scrubjay_shared.clock import COUNTER_BITS, Hlc, Millis, millis_of


def wording_of(writer: BudgetedWriter, job: str) -> Wording | None:
    """Return how a job of a name asks the Writer, None where the person has set none."""
    if not writer.is_on:
        return None

    async def ask(system: str, text: str, most: int) -> str:
        prompt = Prompt(system=system, text=text, max_output_tokens=most)
        return (await writer.write(prompt, job=job)).text

    return ask


class Consolidation:
    """The runs on one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        run: ConsolidationRun,
        stopping: asyncio.Event,
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._run = run
        self._stopping = stopping
        self._wake = wake
        self._now = now
        self._running = asyncio.Lock()

    async def consolidate(self, _caller: Caller, request: api.ConsolidateRequest) -> api.ConsolidateResponse:
        """Carry out a run, or say what it would do. A second run waits for the first."""
        async with self._running:
            if request.dry_run:
                found = await self._run.plan(self._now(), write=False)
                return _told(found, found.plan.steps, None)
            return await self._carried_out(KIND, ALL)

    async def carry_out(self) -> int:
        """Carry out a run that puts nothing away of what decayed, for the job. Returns how many memories it touched."""
        async with self._running:
            return (await self._carried_out(KIND, ALL - PRUNING)).touched

    async def prune(self) -> int:
        """Put away what decayed and is too little for an archive of its own, for the job. Returns how many."""
        async with self._running:
            return (await self._carried_out(PRUNE_KIND, PRUNING)).touched

    async def _carried_out(self, kind: str, wanted: Collection[Action]) -> api.ConsolidateResponse:
        found = await self._run.plan(self._now(), wanted=wanted)
        cause = self._store.new_cause(kind)
        done = await self._run.carry_out(found, cause, self._stopping.is_set)
        if done:
            self._wake("embed")
        return _told(found, done, cause.id if done else None)

    async def asks(self) -> Asked:
        """Return the most that a run would ask of the Writer now."""
        return await self._run.asks(self._now())

    async def diff(self, _caller: Caller, request: api.DiffRequest) -> api.DiffResponse:
        """Return what became of memories from a run or a time on. Raises NotFoundError for a run that there is not."""
        check_times(request.since, None)
        limit = page_limit(self._policy, request.limit)
        stamp = await self._store.read(lambda q: _stamp(q, request))
        ids, more = await self._store.read(lambda q: q.consolidation.changed(stamp, after=request.cursor, limit=limit))
        logs = await self._store.read(lambda q: q.ops.of_entities(ids))
        gone = await self._store.read(lambda q: q.ops.forgotten(ids))

        most = self._policy.limits.hit_chars

        def compared() -> tuple[api.MemoryDiff, ...]:
            found = []
            for one in ids:
                told = difference(one, logs.get(one, ()), stamp, forgotten=one in gone)
                if told is not None:
                    fields = tuple(
                        api.FieldDiff(field=name, before=_cut(old, most), after=_cut(new, most))
                        for name, old, new in told.fields
                    )
                    found.append(
                        api.MemoryDiff(
                            id=one,
                            change=told.change,
                            content=_cut(told.content, most),
                            fields=fields,
                            causes=told.causes,
                        )
                    )
            return tuple(found)

        changes = await asyncio.to_thread(compared)
        return api.DiffResponse(since=millis_of(Hlc(stamp)), changes=changes, next=more)


def _cut(value: Any, most: int) -> Any:
    """Return a value as it is shown: of a long text the beginning, marked as cut."""
    return value[:most] + CUT if isinstance(value, str) and len(value) > most else value


def _stamp(queries: Queries, request: api.DiffRequest) -> int:
    """Return the first stamp that counts."""
    if request.cause is None:
        return int(request.since or 0) << COUNTER_BITS
    cause = queries.causes.resolve(request.cause)
    first = queries.consolidation.first_stamp(cause.n)
    return int(cause.at) << COUNTER_BITS if first is None else first


def _told(found: Planned, steps: Sequence[Step], cause: str | None) -> api.ConsolidateResponse:
    def content(step: Step) -> str | None:
        if step.archive is not None:
            return step.archive.content
        return None if step.into is None else found.memories[step.into].content

    whole = list(steps) == list(found.plan.steps)
    return api.ConsolidateResponse(
        cause=cause,
        steps=tuple(
            api.ConsolidationStep(
                action=step.action.value,
                members=tuple(api.Consolidated(id=one, content=found.memories[one].content) for one in step.members),
                into=step.into,
                content=content(step),
                why=step.why,
            )
            for step in steps
        ),
        considered=found.plan.considered,
        touched=sum(len(step.members) for step in steps),
        left=found.plan.left + (0 if whole else sum(len(one.members) for one in found.plan.steps if one not in steps)),
        tokens_before=found.tokens_before,
        tokens_after=found.tokens_after,
    )
