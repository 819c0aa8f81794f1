"""Forgetting: a memory or an event, what it was read from, and every copy of the words that is ours to remove."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.service import archive_words, put_away
from scrubjay.service.references import References
from scrubjay.store import Store, Transaction, copies
from scrubjay_shared.errors import UnavailableError

log = logging.getLogger(__name__)


class Forgetting:
    """Erases from one store. Within `unsaved_index()` no saved index holds what is erased."""

    def __init__(
        self,
        store: Store,
        *,
        references: References,
        unsaved_index: Callable[[], AbstractAsyncContextManager[None]],
        wake: Callable[[str], None],
    ) -> None:
        self._store = store
        self._references = references
        self._unsaved_index = unsaved_index
        self._wake = wake

    async def forget(self, caller: Caller, request: api.ForgetRequest) -> api.ForgetResponse:
        """Erase a memory or an event: rows, full text, vector, log; unless told otherwise, its source passages too.

        A memory that rests on erased words alone goes with them. Copies that migrations left beside the store go too;
        backups made by the person are theirs to remove.
        """
        ref = intake.valid(request.ref)
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        event = (await self._store.read(lambda q: q.events.by_id([ref], chars=0))).get(ref)
        if event is not None and not seen.shows_event(event):
            raise access.not_found(ref)
        memory_id = ""
        if event is None:
            memory_id = await self._references.resolve(ref, seen)

        def work(tx: Transaction) -> api.ForgetResponse:
            if event:
                return _forget_events(tx, [ref])
            access.check_forget(caller, tx.queries.memories.get(memory_id))
            return _forget_memory(tx, memory_id, keep=request.keep_sources)

        async with self._unsaved_index():
            answer = await self._store.write(work, cause=self._store.new_cause("forget"))
        await self.drop_copies()
        answer = replace(answer, copies=tuple(map(str, await asyncio.to_thread(copies, self._store.path))))
        log.info("forgot memories=%d events=%d passages=%d", len(answer.forgotten), len(answer.events), answer.sources)
        if answer.sources:
            self._wake("embed")
        return answer

    async def drop_copies(self) -> None:
        """Leave nothing of what was erased in the log file, in a saved index, or in copies that migrations made."""
        async with self._unsaved_index():
            done = await self._store.drop_copies()
        if not done:
            log.warning("the log could not be cut back while a long read runs; the next maintenance does it")

    async def follow_erasure(self) -> None:
        """Drop the copies of what another device had erased."""
        try:
            await self.drop_copies()
        except UnavailableError as error:  # its next start deletes what is left, and so does the next forget
            log.warning("%s", error)


def _forget_memory(tx: Transaction, memory_id: str, *, keep: bool) -> api.ForgetResponse:
    """Forget a memory and, unless `keep`, the passages it was read from and the memories that rest on them alone."""
    inside = tx.queries.grips.of_memories([memory_id]).get(memory_id, ())
    gone = [memory_id, *put_away.forget_inside(tx, memory_id)]
    put_away.dissolve(tx, memory_id)
    tx.forget.memory(memory_id)
    if keep:
        return _forgotten(tx, gone)
    passages = tx.queries.grips.passages(inside)
    quoting: dict[str, None] = {}
    for event_id, spans in passages.items():
        for grip in tx.queries.grips.over(event_id, spans):
            tx.forget.grip(grip)
            if tx.queries.memories.is_archive(grip.memory_id):
                quoting[grip.memory_id] = None
            elif not tx.queries.grips.of_memory(grip.memory_id) and tx.queries.memories.is_observation(grip.memory_id):
                gone += put_away.forget_inside(tx, grip.memory_id)
                put_away.dissolve(tx, grip.memory_id)
                tx.forget.memory(grip.memory_id)
                gone.append(grip.memory_id)
        tx.forget.passages(event_id, spans)
    archive_words.rewrite(tx, quoting)
    return _forgotten(tx, gone, sources=sum(len(spans) for spans in passages.values()))


def _forget_events(tx: Transaction, event_ids: Sequence[str]) -> api.ForgetResponse:
    """Forget whole events, the grips on them, and the memories that rest on them alone."""
    gone: list[str] = []
    quoting: dict[str, None] = {}
    for event_id in event_ids:
        for grip in tx.queries.grips.over(event_id, None):
            tx.forget.grip(grip)
            if tx.queries.memories.is_archive(grip.memory_id):
                quoting[grip.memory_id] = None
            elif not tx.queries.grips.of_memory(grip.memory_id) and tx.queries.memories.is_observation(grip.memory_id):
                gone += put_away.forget_inside(tx, grip.memory_id)
                put_away.dissolve(tx, grip.memory_id)
                tx.forget.memory(grip.memory_id)
                gone.append(grip.memory_id)
        tx.forget.event(event_id)
    archive_words.rewrite(tx, quoting)
    return _forgotten(tx, gone, events=event_ids)


def _forgotten(
    tx: Transaction, memories: Sequence[str], *, events: Sequence[str] = (), sources: int = 0
) -> api.ForgetResponse:
    tx.forget.erase_traces()
    return api.ForgetResponse(forgotten=tuple(memories), events=tuple(events), sources=sources)
