"""Memories: stored, listed, read, rewritten, named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller, Principal
from scrubjay.ingest import intake
from scrubjay.jobs.alike import Alike
from scrubjay.lifecycle.replacement import check_period, check_successor
from scrubjay.lifecycle.trust import is_held_back
from scrubjay.models.runtime import Models
from scrubjay.policy import MemoryPolicy
from scrubjay.service import put_away, refusals, transfer
from scrubjay.service.adding import Added, Adding, compared, review_of
from scrubjay.service.paging import check_times, cursor, cursor_text, page_limit
from scrubjay.service.references import References
from scrubjay.service.threads import off_loop
from scrubjay.store import Cause, MemoryFilter, MemoryWrite, Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import (
    Kind,
    Layer,
    Memory,
    MemoryDraft,
    ReviewState,
    Scope,
    Trust,
    review_state,
)

CLEARED = {
    "topic": Field.TOPIC,
    "valid_from": Field.VALID_FROM,
    "valid_to": Field.VALID_TO,
    "superseded_by": Field.SUPERSEDED_BY,
}
"""The fields that an update can clear, by name."""


class Memories:
    """The memories of one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        models: Models,
        references: References,
        alike: Alike,
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._alike = alike
        self._models = models
        self._references = references
        self._wake = wake
        self._now = now

    async def add(self, caller: Caller, request: MemoryDraft) -> api.Entry:
        """Store a memory; one that says the same in the same scope is returned instead, with the new names bound."""
        access.check_memory(caller, request)
        source = intake.source_of(caller)
        cleaned = await off_loop(len(request.content), lambda: intake.memory(request, self._policy, source))
        [added] = await self.add_all(caller, [cleaned], cause=self._store.new_cause("add"))
        found = await self._references.entry(added.memory_id, created=added.created, lifted=added.lifted)
        if added.created:
            ended = await self._store.read(lambda q: q.memories.superseded_by(added.memory_id))
            seen = access.view(caller, project=None, session_id=None)
            found = replace(found, supersedes=tuple(memory for memory in ended if seen.shows(memory)))
        if not added.created and review_state(found.memory.review) is ReviewState.REJECTED:
            raise refusals.rejected()
        return found

    async def add_all(self, caller: Caller, drafts: Sequence[MemoryDraft], *, cause: Cause) -> Sequence[Added]:
        """Store drafts that were cleaned. What was forgotten for good, the person alone stores again.

        What the person rejected is not stored for anybody else: it is returned as what is there already.
        """
        embedded = await self._models.embedder.vectors_now([draft.content for draft in drafts])
        found = await compared(self._store, caller, drafts, self._policy, alike=self._alike, now=self._now())

        def work(tx: Transaction) -> Sequence[Added]:
            return Adding(tx, caller, found, embedded).carry_out()

        answers = await self._store.write(work, cause=cause)
        if embedded is None and any(added.created for added in answers):
            self._wake("embed")
        return answers

    async def page(self, caller: Caller, request: api.ListRequest) -> api.ListResponse:
        """Return a page of memories, newest first or what agents are handed first."""
        check_times(request.since, request.until)
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        chosen = MemoryFilter(
            type=request.type,
            kind=request.kind,
            layer=request.layer,
            scope=request.scope,
            since=request.since,
            until=request.until,
            archived=request.archived,
            project=seen.project,
            session_id=seen.session_id,
        )
        found, more = await self._store.read(
            lambda q: q.memories.page(
                chosen,
                after=cursor(request.cursor),
                limit=page_limit(self._policy, request.limit),
                chars=self._policy.limits.page_chars,
                handed_first=request.handed_first,
            )
        )
        names = await self._store.read(lambda q: q.names.aliases([memory.id for memory in found]))
        return api.ListResponse(
            entries=tuple(
                api.Entry(memory=memory, aliases=tuple(alias.name for alias in names.get(memory.id, ())))
                for memory in found
            ),
            next=cursor_text(more),
            notes=await self._references.notes_on(request.project),
        )

    async def get(self, caller: Caller, request: api.RefRequest) -> api.Entry:
        """Return one memory."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        return await self._references.entry(await self._references.resolve(request.ref, seen))

    async def update(self, caller: Caller, request: api.UpdateRequest) -> api.Entry:
        """Write new values for some fields of a memory. Raises InvalidError when none is given."""
        memory_id = await self._resolved(caller, request)
        fields = await self._fields(caller, request) | await self._lifespan(caller, request)
        if not fields:
            raise InvalidError(
                "nothing to update",
                hint="give content, type, salience, topic, layer, metadata, valid_from, valid_to, superseded_by, "
                "archived or clear",
            )
        write = MemoryWrite(memory_id=memory_id, fields=fields, settles=True)
        said = risky = None
        if Field.CONTENT in fields and caller.principal is not Principal.PERSON:
            said = MemoryDraft(content=fields[Field.CONTENT], trust=access.TRUST_CEILING[caller.principal])
            draft = replace(said, scope=Scope.SESSION)
            risky = await asyncio.to_thread(lambda: review_of(draft, self._policy.review))

        def work(tx: Transaction) -> bool:
            shown = tx.queries.memories.get(memory_id)
            access.check_change(caller, shown)
            if shown.kind is Kind.ARCHIVE and Field.CONTENT in fields:
                raise ConflictError(
                    f"memory {memory_id} is an archive, and archives are not rewritten",
                    hint="scrubjay add keeps another note; scrubjay forget erases words from an archive too",
                )
            if request.layer is not None:
                intake.check_layer(request.layer, shown.trust)
                _check_reviewed(shown, request.layer)
            if request.archived:
                put_away.check_one(tx, shown)
                tx.memories.write(put_away.taken_out(tx, memory_id))
            _check_lifespan(tx, write)
            is_other = said is not None and review_state(shown.review) is ReviewState.ACCEPTED  # than what was accepted
            reviewed = {Field.REVIEW: risky} if risky is not None or is_other else {}
            lifted = refusals.lifted(tx, caller, write, shown)
            chosen = _chosen(caller, shown, request.layer)
            tx.memories.write([replace(write, fields={**write.fields, **reviewed, **chosen})])
            return lifted

        lifted = await self._store.write(work, cause=self._store.new_cause("update"))
        if Field.CONTENT in fields:
            self._wake("embed")
        return await self._references.entry(memory_id, lifted=lifted)

    async def _fields(self, caller: Caller, request: api.UpdateRequest) -> dict[Field, Any]:
        """Return what an update says of the memory itself, cleaned."""
        intake.check_salience(request.salience)
        fields: dict[Field, Any] = {}
        if request.content is not None:
            content = request.content
            fields[Field.CONTENT] = await off_loop(len(content), lambda: intake.content(self._policy, content))
        if request.type is not None:
            fields[Field.TYPE] = request.type.value
        if request.salience is not None:
            fields[Field.SALIENCE] = float(request.salience)
        if request.topic is not None:
            fields[Field.TOPIC] = intake.topic(self._policy, request.topic)
        if request.layer is not None:
            access.check_layer(caller, request.layer)
            fields[Field.LAYER] = request.layer.value
        if request.metadata is not None:
            metadata = request.metadata
            cleaned = await asyncio.to_thread(lambda: intake.metadata(metadata, "memory", self._policy))
            fields[Field.METADATA] = cleaned.value
        return fields

    async def _lifespan(self, caller: Caller, request: api.UpdateRequest) -> dict[Field, Any]:
        """Return what an update says of when a memory holds, what took its place, and whether it is archived."""
        check_times(request.valid_from, request.valid_to)
        unknown = sorted(set(request.clear) - CLEARED.keys())
        if unknown:
            raise InvalidError(
                f"{unknown[0][:60]!r} is not a field that can be cleared", hint=f"choose from {', '.join(CLEARED)}"
            )
        fields: dict[Field, Any] = {CLEARED[name]: None for name in request.clear}
        given: dict[Field, Any] = {Field.VALID_FROM: request.valid_from, Field.VALID_TO: request.valid_to}
        if request.superseded_by is not None:
            seen = access.view(caller, project=request.project, session_id=request.session_id)
            given[Field.SUPERSEDED_BY] = await self._references.resolve(request.superseded_by, seen)
        if request.archived is not None:
            fields[Field.ARCHIVED_AT] = int(self._now()) if request.archived else None
        return fields | transfer.present(given)

    async def rename(self, caller: Caller, request: api.RenameRequest) -> api.Entry:
        """Give a memory another canonical name; the old one stays as an alias."""
        memory_id = await self._resolved(caller, request)
        name = intake.name(self._policy, request.name)
        access.check_name(caller, name)
        write = MemoryWrite(memory_id=memory_id, fields={Field.NAME: name}, names=(name,), settles=True)

        def work(tx: Transaction) -> None:
            access.check_change(caller, tx.queries.memories.get(memory_id))
            tx.memories.write([write])

        await self._store.write(work, cause=self._store.new_cause("rename"))
        return await self._references.entry(memory_id)

    async def alias(self, caller: Caller, request: api.AliasRequest) -> api.Entry:
        """Bind an additional name, or with `remove` take it away."""
        memory_id = await self._resolved(caller, request)
        name = intake.name(self._policy, request.alias)
        access.check_name(caller, name)

        def work(tx: Transaction) -> None:
            access.check_change(caller, tx.queries.memories.get(memory_id))
            if request.remove:
                tx.memories.unclaim(memory_id, name)
            else:
                tx.memories.write([MemoryWrite(memory_id=memory_id, fields={}, names=(name,))])

        await self._store.write(work, cause=self._store.new_cause("alias"))
        return await self._references.entry(memory_id)

    async def _resolved(self, caller: Caller, request: api.UpdateRequest | api.RenameRequest | api.AliasRequest) -> str:
        """Return the id of the memory that a request names. Whether the caller may change it is asked in the write."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        return await self._references.resolve(request.ref, seen)


def _check_reviewed(memory: Memory, layer: Layer) -> None:
    """Check that a memory may be promoted to a layer that is loaded by itself. Raises ConflictError."""
    if layer is not Layer.ARCHIVE and is_held_back(memory.review):
        raise ConflictError(
            f"memory {memory.id} waits for your review, and is not promoted before",
            hint=f"scrubjay review accept {memory.id}",
        )


def _chosen(caller: Caller, memory: Memory, layer: Layer | None) -> dict[Field, Any]:
    """Return what is written beside a layer: words that are not the person's are accepted when the person pins them."""
    is_choice = caller.principal is Principal.PERSON and layer is Layer.SURFACED and memory.trust is not Trust.USER
    return {Field.REVIEW: ReviewState.ACCEPTED.value} if is_choice else {}


def _check_lifespan(tx: Transaction, write: MemoryWrite) -> None:
    """Check what a write says of when a memory holds, and what took its place. Raises InvalidError."""
    shown = tx.queries.memories.get(write.memory_id)
    check_period(write.fields.get(Field.VALID_FROM, shown.valid_from), write.fields.get(Field.VALID_TO, shown.valid_to))
    successor = write.fields.get(Field.SUPERSEDED_BY)
    if successor is not None:
        check_successor(write.memory_id, successor, tx.queries.memories.successor)
