"""Having sessions read anew: what a run would read, end and cost, and starting it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.jobs.relearn import Relearn
from scrubjay.lifecycle.relearning import By, Kept, Learned
from scrubjay.policy import MemoryPolicy
from scrubjay.service.writer_outlook import outlook
from scrubjay.store import Store
from scrubjay.writer.budgeted import BudgetedWriter, Chosen


class Relearning:
    """Runs that read the sessions of one store anew. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        job: Relearn,
        writer: BudgetedWriter,
        wake: Callable[[str], None],
    ) -> None:
        self._store = store
        self._policy = policy
        self._job = job
        self._writer = writer
        self._wake = wake

    async def relearn(self, _caller: Caller, request: api.RelearnRequest) -> api.RelearnResponse:
        """Say what a run would do, and begin it unless that is all; where one is under way, say how far it is."""
        run = await self._job.under_way()
        by = await self._job.by(run)
        sessions, memories, kept = _found(await self._job.learned(run))
        chosen = self._writer.chosen
        cost = await self._cost(chosen, sessions) if by is By.WRITER and chosen is not None else None
        if run is None and sessions and not request.dry_run:
            run = await self._job.start(len(sessions))
        if run is not None and not request.dry_run:
            self._wake(self._job.name)
        return api.RelearnResponse(
            cause=None if run is None else run.cause,
            reader=by.value,
            sessions=len(sessions) if run is None else run.sessions,
            done=0 if run is None else run.done,
            memories=memories,
            kept=dict(sorted(kept.items())),
            cost=cost,
        )

    async def _cost(self, chosen: Chosen, sessions: set[str]) -> api.RelearnCost:
        policy = self._policy
        sizes = await self._store.read(lambda q: q.relearning.sizes(sessions))

        def estimated() -> tuple[int, int]:
            from scrubjay.distill.observer_prompt import SYSTEM  # noqa: PLC0415  # as in `Distill`

            told = outlook(sizes, policy.observer, instruction_chars=len(SYSTEM))
            return told.calls, round(told.chars / policy.writer.token_chars) + told.calls * chosen.framing_tokens

        calls, read = await asyncio.to_thread(estimated)
        written = calls * policy.writer.answer_tokens
        share = round(self._writer.caps.daily * policy.observer.again_share)
        left = await self._writer.left()
        return api.RelearnCost(
            destination=chosen.destination,
            model=chosen.model,
            leaves=chosen.leaves,
            calls=calls,
            input_tokens=read,
            output_tokens=written,
            left_today=max(0, left - (self._writer.caps.daily - share)),
            days=-(-(read + written) // max(share, 1)),
        )


def _found(learned: Mapping[str, tuple[Learned, Kept | None]]) -> tuple[set[str], int, Counter[str]]:
    """Return the sessions that would be read, how many memories may end, and how many stay by why."""
    sessions: set[str] = set()
    kept: Counter[str] = Counter()
    memories = 0
    for one, why in learned.values():
        if why is None:
            memories += 1
            sessions |= one.sessions.keys()
        else:
            kept[why.value] += 1
    return sessions, memories, kept
