"""Forgetting: a memory or an event, what it was read from, and every copy of the words that is ours to remove."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.service import archive_words, put_away
from scrubjay.service.references import References
from scrubjay.store import UNSWEPT, Forget, HeldWords, Queries, Refusal, Store, Transaction, copies
from scrubjay_shared import ops, tombstones
from scrubjay_shared.errors import NotFoundError, UnavailableError
from scrubjay_shared.records import ALWAYS_LOADED, Grip, Memory, Scope

log = logging.getLogger(__name__)

MOST_LISTED = 500
"""Forgets in one answer of `forgets`."""
SWEPT_AT_ONCE = 500
"""Memories, and events, that are compared with forgotten words at a time: some tenths of a second in a thread."""


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
        found: _Found | None = None
        event_id, memory_id = await self._named(ref, seen)
        if event_id is None and request.for_good:
            found = await self._store.read(
                lambda q: _search(q, q.memories.get(memory_id), keep=request.keep_sources, seen=seen)
            )

        def work(tx: Transaction) -> api.ForgetResponse:
            if event_id is not None:
                return forget_events(tx, [event_id], for_good=request.for_good)
            access.check_forget(caller, tx.queries.memories.get(memory_id))
            return _forget_memory(tx, memory_id, found, keep=request.keep_sources)

        async with self._unsaved_index():
            answer = await self._store.write(work, cause=self._store.new_cause("forget"))
        await self.drop_copies()
        answer = replace(
            answer,
            copies=tuple(map(str, await asyncio.to_thread(copies, self._store.path))),
            remaining=() if found is None else found.remaining,
        )
        log.info("forgot memories=%d events=%d passages=%d", len(answer.forgotten), len(answer.events), answer.sources)
        if answer.sources:
            self._wake("embed")
        return answer

    async def _named(self, ref: str, seen: View) -> tuple[str | None, str]:
        """Return the event, or else the memory, that a caller means: a beginning that fits both is the memory's."""
        try:
            return None, await self._references.resolve(ref, seen)
        except NotFoundError:
            event_id = await self._references.event(ref, seen)
            if event_id is None:
                raise
            return event_id, ""

    async def forgets(self, _: Caller, request: api.ForgetsRequest) -> api.ForgetsResponse:
        """Return what was forgotten last, and what each device of the account says of it."""
        limit = min(max(request.limit, 1), MOST_LISTED)
        one = None if request.id is None else intake.valid(request.id).upper()

        def read(queries: Queries) -> api.ForgetsResponse:
            found = queries.tombstones.forgets(one, limit)
            return api.ForgetsResponse(
                forgets=tuple(_listed(queries, forget, own=self._store.device) for forget in found),
                synced=queries.tombstones.is_synced(),
            )

        answer = await self._store.read(read)
        if one is not None and not answer.forgets:
            raise NotFoundError(
                f"nothing with the id {one[:40]} was forgotten here", hint="scrubjay forget --status lists what was"
            )
        return answer

    async def sweep(self) -> int | None:
        """Erase what the next memories and events say of what other devices forgot.

        Returns how many memories and passages that were, None when all was compared.
        """
        at = await self._store.read(lambda q: q.tombstones.unswept())
        if at is None:
            return None
        found = await self._store.read(lambda q: q.tombstones.next_unswept(*at, SWEPT_AT_ONCE))

        def work(tx: Transaction) -> int:
            now = tx.queries.tombstones.unswept()
            if now != at:
                return 0  # more came meanwhile: it begins again
            tx.set_meta(UNSWEPT, "" if found.ended else json.dumps(found.upto))
            memories = sorted(tx.queries.memories.existing(found.memories))
            gone: list[str] = []
            quoting: dict[str, None] = {}
            for memory_id in memories:
                if tx.queries.memories.existing([memory_id]):
                    gone += _erase(tx, memory_id)
            for event_id, spans in found.passages.items():
                for grip in tx.queries.grips.over(event_id, spans):
                    _drop_grip(tx, grip, gone, quoting)
                tx.forget.passages(event_id, spans)
            archive_words.rewrite(tx, quoting)
            erased = len(gone) + len(found.passages)
            if erased:
                tx.forget.erase_traces()
            return erased

        if not found.memories and not found.passages:
            return await self._store.write(work)
        async with self._unsaved_index():
            erased = await self._store.write(work, cause=self._store.new_cause("forget"))
        await self.drop_copies()
        log.info("forgot what came from elsewhere memories=%d events=%d", len(found.memories), len(found.passages))
        return erased

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


def _listed(queries: Queries, forget: Forget, *, own: str) -> api.ForgottenThing:
    return api.ForgottenThing(
        id=forget.id,
        is_event=forget.is_event,
        at=forget.at,
        device=forget.device,
        refuses=forget.refuses,
        lifted=forget.lifted,
        refused=forget.refused,
        refused_at=forget.refused_at,
        waiting=queries.tombstones.waiting_objects(forget),
        receipts=tuple(
            api.ForgetReceipt(device=one.device, at=one.at, seen=one.seen)
            for one in queries.tombstones.receipts(forget)
            if one.device != own
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What holds the words that are to be forgotten: other memories that say them, sentences of events, and the rest.

    `texts` are the words in each way in which they stand somewhere; `remaining` holds a particular word of them in
    another sentence.
    """

    texts: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    passages: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    remaining: tuple[str, ...] = ()


def _search(queries: Queries, memory: Memory, *, keep: bool, seen: View) -> _Found:
    """Look for the words of a memory in all that a caller sees: where else they stand, and what will still hold them.

    The sentences that its passages stand in are words of it too: so they are known again in another transcript.
    """
    project = _project_of(memory)
    texts = dict.fromkeys([memory.content, *_inside(queries, memory.id)])
    if not keep:
        passages = queries.grips.passages(queries.grips.of_memories([memory.id]).get(memory.id, ()))
        for event_id, event in queries.events.by_id(list(passages)).items():
            texts |= dict.fromkeys(event.text[start:end] for start, end in passages[event_id])
            texts |= dict.fromkeys(
                event.text[start:end]
                for start, end in tombstones.sentences(event.text)
                if any(start < last and first < end for first, last in passages[event_id])
            )
    forms = {form for text in texts for form in tombstones.forgotten_forms(text)}
    particular = set(tombstones.particular_words(memory.content))
    rare = [word for text in texts if (word := tombstones.rarest_word(text)) is not None]
    same: list[str] = []
    spans: dict[str, list[tuple[int, int]]] = {}
    remaining: list[str] = []
    for held in queries.tombstones.holding(list(dict.fromkeys([*rare, *sorted(particular)]))):
        if held.id == memory.id or (project and held.project and held.project != project):
            continue
        is_shown = _is_shown(queries, held, seen)
        rest = held.text
        if is_shown and not held.is_event and forms & {*tombstones.forms(held.text)}:
            same.append(held.id)
            continue
        if is_shown and held.is_event and not keep:
            found = [
                (start, end)
                for start, end in tombstones.sentences(held.text)
                if forms & {*tombstones.forms(held.text[start:end])}
            ]
            if found:
                spans[held.id] = found
                rest = ops.blanked(held.text, found)
        if is_shown and particular & {*tombstones.particular_words(rest)}:
            remaining.append(held.id)
    return _Found(texts=tuple(texts), memories=tuple(same), passages=spans, remaining=tuple(remaining))


def _inside(queries: Queries, memory_id: str) -> list[str]:
    """Return the words of the memories that were put away into one."""
    within = queries.memories.put_away_into(memory_id)
    said = [queries.memories.get(one).content for one in within]
    return said + [text for one in within for text in _inside(queries, one)]


def _is_shown(queries: Queries, held: HeldWords, seen: View) -> bool:
    """Say whether a caller sees what holds some words, and may forget it."""
    if held.is_event:
        event = queries.events.by_id([held.id], chars=0).get(held.id)
        return event is not None and seen.shows_event(event)
    memory = queries.memories.get(held.id)
    return memory.layer not in ALWAYS_LOADED and seen.shows(memory)


def _project_of(memory: Memory) -> str | None:
    return memory.resource_id if memory.scope is Scope.PROJECT else None


def _forget_memory(tx: Transaction, memory_id: str, found: _Found | None, *, keep: bool) -> api.ForgetResponse:
    """Forget a memory and, unless `keep`, the passages it was read from and the memories that rest on them alone.

    With `found`, all that says the same goes too, and is refused from now on.
    """
    memory = tx.queries.memories.get(memory_id)
    same = [memory_id, *(() if found is None else found.memories)]
    refusal = None if found is None else Refusal(texts=found.texts, project=_project_of(memory))
    inside = {} if keep else tx.queries.grips.of_memories(same)
    passages = tx.queries.grips.passages([grip for grips in inside.values() for grip in grips])
    said = {} if found is None else found.passages
    for event_id in tx.queries.events.existing(list(said)):
        passages[event_id] = sorted({*passages.get(event_id, ()), *said[event_id]})
    gone: list[str] = []
    for one in same:
        if tx.queries.memories.existing([one]):
            gone += _erase(tx, one, refusal if one == memory_id else None)
    quoting: dict[str, None] = {}
    for event_id, spans in passages.items():
        for grip in tx.queries.grips.over(event_id, spans):
            _drop_grip(tx, grip, gone, quoting)
        tx.forget.passages(event_id, spans)
    archive_words.rewrite(tx, quoting)
    return _forgotten(tx, gone, sources=sum(len(spans) for spans in passages.values()))


def _erase(tx: Transaction, memory_id: str, refusal: Refusal | None = None) -> list[str]:
    """Erase a memory and what was put away into it. Returns their ids."""
    inside = put_away.forget_inside(tx, memory_id)
    put_away.dissolve(tx, memory_id)
    tx.forget.memory(memory_id, refusal)
    return [memory_id, *inside]


def forget_events(tx: Transaction, event_ids: Sequence[str], *, for_good: bool) -> api.ForgetResponse:
    """Forget whole events, the grips on them, and the memories that rest on them alone."""
    gone: list[str] = []
    quoting: dict[str, None] = {}
    for event_id, event in tx.queries.events.by_id(event_ids).items():
        for grip in tx.queries.grips.over(event_id, None):
            _drop_grip(tx, grip, gone, quoting, for_good=for_good)
        tx.forget.event(event_id, Refusal(event=event.text, project=event.project) if for_good else None)
    archive_words.rewrite(tx, quoting)
    return _forgotten(tx, gone, events=event_ids)


def _drop_grip(
    tx: Transaction, grip: Grip, gone: list[str], quoting: dict[str, None], *, for_good: bool = False
) -> None:
    """Forget a grip, and the memory that then rests on none. An archive is noted in `quoting`: it is written again."""
    tx.forget.grip(grip)
    if tx.queries.memories.is_archive(grip.memory_id):
        quoting[grip.memory_id] = None
    elif not tx.queries.grips.of_memory(grip.memory_id) and tx.queries.memories.is_observation(grip.memory_id):
        memory = tx.queries.memories.get(grip.memory_id)
        refusal = Refusal(texts=(memory.content, grip.excerpt), project=_project_of(memory)) if for_good else None
        gone += _erase(tx, grip.memory_id, refusal)


def _forgotten(
    tx: Transaction, memories: Sequence[str], *, events: Sequence[str] = (), sources: int = 0
) -> api.ForgetResponse:
    tx.forget.erase_traces()
    return api.ForgetResponse(forgotten=tuple(memories), events=tuple(events), sources=sources)
