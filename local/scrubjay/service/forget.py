"""Forgetting: a memory or an event, what it was read from, and every copy of the words that is ours to remove."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller, Principal
from scrubjay.ingest import intake
from scrubjay.service import archive_words
from scrubjay.service.erasing import BACK, drop_grip, erase, forget_events, project_of
from scrubjay.service.leftovers import Leftovers
from scrubjay.service.references import References
from scrubjay.store import (
    FORGET,
    UNSWEPT,
    Forget,
    HeldWords,
    MemoryWrite,
    Queries,
    Refusal,
    Store,
    Sweep,
    Transaction,
    Whole,
    kept_copies,
)
from scrubjay_shared import ops, tombstones
from scrubjay_shared.errors import InvalidError, NotFoundError, UnavailableError
from scrubjay_shared.records import ALWAYS_LOADED, Memory

log = logging.getLogger(__name__)

MOST_LISTED = 500
"""Forgets in one answer of `forgets`."""
COPIES_SECONDS = 10.0
"""How long an answer waits for copies to be blanked: a store of 100 MB takes a second or two; a larger one goes on."""
FORGOTTEN_AT_ONCE = 200
"""Memories, or events, of a whole import that one transaction erases: some tenths of a second."""
EXAMPLES = 3
EXAMPLE_CHARS = 80
"""Of a text that goes with a whole import: enough to know it again."""
SWEPT_AT_ONCE = 500
"""Memories, and events, that are compared with forgotten words at a time: some tenths of a second in a thread."""


class Forgetting:
    """Erases from one store; `leftovers` sees to what is left of it beside the tables."""

    def __init__(
        self,
        store: Store,
        *,
        references: References,
        unsaved_index: Callable[[], AbstractAsyncContextManager[None]],
        leftovers: Leftovers,
        wake: Callable[[str], None],
    ) -> None:
        self._store = store
        self._references = references
        self._unsaved_index = unsaved_index
        self._leftovers = leftovers
        self._wake = wake

    async def forget(self, caller: Caller, request: api.ForgetRequest) -> api.ForgetResponse:
        """Erase a memory or an event: rows, full text, vector, log; unless told otherwise, its source passages too.

        A memory that rests on erased words alone goes with them. Where a person forgets for good, the copies that the
        store has beside it are blanked too; backups made by the person are theirs to remove.
        """
        ref = intake.valid(request.ref)
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        found: _Found | None = None
        try:
            event_id, memory_id = await self._named(ref, seen)
        except NotFoundError:
            if not _reaches_copies(caller, request) or not await self._leftovers.holding([ref.upper()]):
                raise  # what an agent forgot is blanked by the person: it may be in copies yet
            return await self._with_copies(caller, request, api.ForgetResponse(forgotten=()), about=ref.upper())
        if event_id is None and request.for_good:
            found = await self._store.read(
                lambda q: _search(q, q.memories.get(memory_id), keep=request.keep_sources, seen=seen)
            )

        def work(tx: Transaction) -> api.ForgetResponse:
            if event_id is not None:
                return _forgotten(tx, forget_events(tx, [event_id], for_good=request.for_good), events=[event_id])
            access.check_forget(caller, tx.queries.memories.get(memory_id))
            return _forget_memory(tx, memory_id, found, keep=request.keep_sources)

        async with self._unsaved_index():
            answer = await self._store.write(work, cause=self._store.new_cause(_kind(caller, request)))
        answer = await self._with_copies(caller, request, answer, about=event_id or memory_id)
        answer = replace(answer, remaining=() if found is None else found.remaining)
        log.info("forgot memories=%d events=%d passages=%d", len(answer.forgotten), len(answer.events), answer.sources)
        if answer.sources:
            self._wake("embed")
        return answer

    async def forget_all(self, _: Caller, request: api.ForgetAllRequest) -> api.ForgetAllResponse:
        """Erase all of an import, a session or a project, or say what that would be.

        It is done in several transactions: after a crash between two of these, the same again erases the rest. Raises
        InvalidError unless one of the three is named, NotFoundError where nothing belongs to it.
        """
        given = [one for one in (request.import_cause, request.session_id, request.project) if one is not None]
        if len(given) != 1:
            raise InvalidError(
                "name one import, one session or one project", hint="scrubjay history --kind import lists imports"
            )
        of = intake.valid(given[0])

        def read(q: Queries) -> tuple[str, Whole, list[str]]:
            cause = None if request.import_cause is None else q.causes.resolve(of)
            if cause is not None and not cause.id.startswith("import:"):
                raise InvalidError(f"{cause.id} is no import", hint=f"scrubjay undo {cause.id} takes it back")
            session = None if request.session_id is None else q.events.session_of(of)
            found = q.tombstones.whole_of(
                cause=None if cause is None else cause.n, session_id=session, project=request.project
            )
            said = [event.text for event in q.events.by_id(found.events[:EXAMPLES], chars=2 * EXAMPLE_CHARS).values()]
            kept = [memory.content for memory in q.memories.by_id(found.memories[:EXAMPLES]).values()]
            return (
                session or (of if cause is None else cause.id),
                found,
                [" ".join(text.split()) for text in (*kept, *said)],
            )

        of, whole, examples = await self._store.read(read)
        if not whole.events and not whole.memories:
            raise NotFoundError(
                f"nothing of {of[:80]} is here",
                hint="scrubjay sessions, projects and history --kind import list what is",
            )
        answer = api.ForgetAllResponse(
            of=of,
            events=len(whole.events),
            memories=len(whole.memories),
            sessions=whole.sessions,
            dry_run=request.dry_run,
            examples=tuple(
                text if len(text) <= EXAMPLE_CHARS else f"{text[: EXAMPLE_CHARS - 1].rstrip()}…" for text in examples
            ),
        )
        if request.dry_run:
            return answer
        answer = replace(answer, examples=())  # what is gone is shown no more
        cause = self._store.new_cause(FORGET, label=of)
        async with self._unsaved_index():
            memories = partial(_forget_memories, whole=frozenset(whole.memories))
            for work, ids in ((memories, whole.memories), (_forget_all_events, whole.events)):
                for at in range(0, len(ids), FORGOTTEN_AT_ONCE):
                    await self._store.write(partial(work, ids=ids[at : at + FORGOTTEN_AT_ONCE]), cause=cause)
        log.info("forgot all memories=%d events=%d", len(whole.memories), len(whole.events))
        in_log = not await self._leftovers.drop_traces()
        done = await self._leftovers.blank(may_delete=True, within=COPIES_SECONDS)
        beside = await asyncio.to_thread(kept_copies, self._store.path)
        answer = replace(answer, in_log=in_log, copies=tuple(map(str, beside)))
        if done is None:  # a large store: it goes on
            return answer
        return replace(answer, blanked=done.blanked, deleted=done.deleted, holding=done.holding)

    async def _with_copies(
        self, caller: Caller, request: api.ForgetRequest, answer: api.ForgetResponse, *, about: str
    ) -> api.ForgetResponse:
        """Return what was forgotten with what became of it beside the tables: in the log, and in copies."""
        in_log = not await self._leftovers.drop_traces()
        answer = replace(
            answer, in_log=in_log, copies=tuple(map(str, await asyncio.to_thread(kept_copies, self._store.path)))
        )
        if not _reaches_copies(caller, request):
            holding = await self._leftovers.holding([about])
            return replace(answer, holding=holding, blanks=f"scrubjay forget {about}" if holding else "")
        done = await self._leftovers.blank([about], may_delete=True, within=COPIES_SECONDS)
        if done is None:  # a large store: it goes on
            return replace(answer, holding=await self._leftovers.holding([about]))
        return replace(answer, blanked=done.blanked, deleted=done.deleted, holding=done.holding)

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

        theirs = await self._store.read(
            lambda q: q.tombstones.left_to_person([one for words in found.words_of.values() for one in words])
        )
        if not found.memories and not found.passages:
            return await self._store.write(lambda tx: _swept(tx, at, found))
        async with self._unsaved_index():
            erased = 0
            for kind, part in _by_kind(found, theirs):
                cause = self._store.new_cause(kind)
                erased += await self._store.write(partial(_swept, at=at, found=part), cause=cause)
        await self.follow_erasure()
        log.info("forgot what came from elsewhere memories=%d events=%d", len(found.memories), len(found.passages))
        return erased

    async def follow_erasure(self) -> None:
        """Leave nothing beside the tables of what another device had erased, as far as persons did."""
        try:
            await self._leftovers.drop_traces()
            await self._leftovers.blank()
        except UnavailableError as error:  # the next maintenance does what is left, and so does the next forget
            log.warning("%s", error)


def _kind(caller: Caller, request: api.ForgetRequest) -> str:
    """Return the kind of the cause of a forget, by which every device knows whether copies are to be blanked."""
    if _reaches_copies(caller, request):
        return FORGET
    return "forget_once" if caller.principal is Principal.PERSON and request.in_copies else "agent_forget"


def _reaches_copies(caller: Caller, request: api.ForgetRequest) -> bool:
    """Say whether a forget is a person's own, for good: only that reaches the copies beside the store."""
    return caller.principal is Principal.PERSON and request.for_good and request.in_copies


def _by_kind(found: Sweep, theirs: set[str]) -> Iterator[tuple[str, Sweep]]:
    """Yield what a sweep found by who forgot the words: only agents, or others. The last one ends it."""
    kept = {one for one, words in found.words_of.items() if theirs.issuperset(words)}
    for kind, wanted in (("agent_forget", kept), (FORGET, found.words_of.keys() - kept)):
        last = kind == FORGET
        if wanted or last:
            yield (
                kind,
                replace(
                    found,
                    memories=tuple(one for one in found.memories if one in wanted),
                    passages={one: spans for one, spans in found.passages.items() if one in wanted},
                    upto=found.upto if last else None,
                ),
            )


def _forget_memories(tx: Transaction, ids: Sequence[str], whole: frozenset[str]) -> None:
    """Erase the next memories of a whole. What is not of it and was put away into one of them comes back."""
    for memory_id in ids:
        if tx.queries.memories.existing([memory_id]):  # or it went with another
            inside = [one for one in tx.queries.memories.put_away_into(memory_id) if one not in whole]
            tx.memories.write([MemoryWrite(memory_id=one, fields=BACK) for one in inside])
            erase(tx, memory_id)
    tx.forget.erase_traces()


def _forget_all_events(tx: Transaction, ids: Sequence[str]) -> None:
    forget_events(tx, sorted(tx.queries.events.existing(ids)), for_good=False)
    tx.forget.erase_traces()


def _swept(tx: Transaction, at: tuple[int, int], found: Sweep) -> int:
    """Erase what a sweep found, that began at some place. Returns how many memories and passages that were."""
    if tx.queries.tombstones.unswept() != at:
        return 0  # more came meanwhile: it begins again
    if found.upto is not None:
        tx.set_meta(UNSWEPT, "" if found.ended else json.dumps(found.upto))
    gone: list[str] = []
    quoting: dict[str, None] = {}
    for memory_id in sorted(tx.queries.memories.existing(found.memories)):
        if tx.queries.memories.existing([memory_id]):
            gone += erase(tx, memory_id)
    for event_id, spans in found.passages.items():
        for grip in tx.queries.grips.over(event_id, spans):
            drop_grip(tx, grip, gone, quoting)
        tx.forget.passages(event_id, spans)
    archive_words.rewrite(tx, quoting)
    erased = len(gone) + len(found.passages)
    if erased:
        tx.forget.erase_traces()
    return erased


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
    project = project_of(memory)
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


def _forget_memory(tx: Transaction, memory_id: str, found: _Found | None, *, keep: bool) -> api.ForgetResponse:
    """Forget a memory and, unless `keep`, the passages it was read from and the memories that rest on them alone.

    With `found`, all that says the same goes too, and is refused from now on.
    """
    memory = tx.queries.memories.get(memory_id)
    same = [memory_id, *(() if found is None else found.memories)]
    refusal = None if found is None else Refusal(texts=found.texts, project=project_of(memory))
    inside = {} if keep else tx.queries.grips.of_memories(same)
    passages = tx.queries.grips.passages([grip for grips in inside.values() for grip in grips])
    said = {} if found is None else found.passages
    for event_id in tx.queries.events.existing(list(said)):
        passages[event_id] = sorted({*passages.get(event_id, ()), *said[event_id]})
    gone: list[str] = []
    for one in same:
        if tx.queries.memories.existing([one]):
            gone += erase(tx, one, refusal if one == memory_id else None)
    quoting: dict[str, None] = {}
    for event_id, spans in passages.items():
        for grip in tx.queries.grips.over(event_id, spans):
            drop_grip(tx, grip, gone, quoting)
        tx.forget.passages(event_id, spans)
    archive_words.rewrite(tx, quoting)
    return _forgotten(tx, gone, sources=sum(len(spans) for spans in passages.values()))


def _forgotten(
    tx: Transaction, memories: Sequence[str], *, events: Sequence[str] = (), sources: int = 0
) -> api.ForgetResponse:
    tx.forget.erase_traces()
    return api.ForgetResponse(forgotten=tuple(memories), events=tuple(events), sources=sources)
