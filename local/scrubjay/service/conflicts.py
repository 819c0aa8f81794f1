"""Conflicts: fields that devices wrote without having seen each other's values, and memories that may replace others.

Listed and settled here: a version is kept, a memory takes another's place, or both hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.importers import reconcile
from scrubjay.ingest import intake
from scrubjay.jobs import successions
from scrubjay.lifecycle.consolidation import GUESSED, MAY_SUPERSEDE
from scrubjay.lifecycle.replacement import check_successor
from scrubjay.lifecycle.trust import risks_of, waiting
from scrubjay.policy import MemoryPolicy
from scrubjay.service import put_away, refusals, transfer
from scrubjay.service.references import References
from scrubjay.service.threads import off_loop
from scrubjay.store import Conflict, MemoryWrite, Store, Transaction
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, millis_of
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Layer, Memory, MemoryDraft, content_hash


class Conflicts:
    """The conflicts of one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        references: References,
        wake: Callable[[str], None],
    ) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._wake = wake

    async def conflicts(self, caller: Caller, request: api.ConflictsRequest) -> api.ConflictsResponse:
        """Return what devices wrote without having seen each other's, and which memories may replace earlier ones."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        found = [one for one in await self._store.read(lambda q: q.conflicts.open()) if not _is_settled(one)]
        unsure = await self._store.read(lambda q: q.conflicts.doubts(MAY_SUPERSEDE))
        ids = [*(one.memory_id for one in found), *(memory_id for pair in unsure for memory_id in pair)]
        memories = {
            memory_id: memory
            for memory_id, memory in (await self._store.read(lambda q: q.memories.by_id(ids))).items()
            if seen.shows(memory)
        }
        return api.ConflictsResponse(
            conflicts=tuple(_conflict(one, memories[one.memory_id]) for one in found if one.memory_id in memories),
            doubts=tuple(
                api.Doubt(new=memories[new], old=memories[old])
                for new, old in unsure
                if new in memories and old in memories
            ),
        )

    async def notes(self) -> tuple[str, ...]:
        """Return how much waits for the person to settle; nothing where nothing does."""
        found = await self.conflicts(PERSON, api.ConflictsRequest())
        waiting = len(found.conflicts) + len(found.doubts)
        return (f"for the person to settle: {waiting:,} (scrubjay conflicts)",) if waiting else ()

    async def supersede(self, caller: Caller, request: api.SupersedeRequest) -> api.SupersedeResponse:
        """Let a memory, or a new one, take another's place from now on. Raises InvalidError unless one is given."""
        if (request.by is None) == (request.content is None):
            raise InvalidError("give the memory that takes its place, or its words", hint="scrubjay supersede OLD NEW")
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        old_id = await self._references.resolve(request.ref, seen)
        draft = new_id = review = None
        if request.by is not None:
            new_id = await self._references.resolve(request.by, seen)
        elif request.content is not None:
            draft = await self._draft(caller, old_id, request.content)
            review = await self._review(caller, draft)

        def work(tx: Transaction) -> tuple[str, bool, str | None]:
            old = tx.queries.memories.get(old_id)
            access.check_change(caller, old)
            put_away.check_one(tx, old)
            tx.memories.write(put_away.taken_out(tx, old_id))
            writes: list[MemoryWrite] = []
            there = new_id if draft is None else _equal(tx, draft)
            if there is None and draft is not None:
                made = tx.new_id()
                fields = transfer.fields_of(draft, tx.now) | transfer.present({Field.REVIEW: review})
                write = MemoryWrite(memory_id=made, fields=fields)
                refusals.lifted(tx, caller, write)
                writes.append(write)
                at, successor = tx.now, made
            else:
                new = tx.queries.memories.get(there or "")
                successor = new.id
                at = Millis(max(new.created_at, new.valid_from or 0, old.created_at))
                check_successor(old_id, successor, tx.queries.memories.successor)
            fields = successions.ending(successor, at, old)
            writes.append(MemoryWrite(memory_id=old_id, fields=fields, settles=True))
            tx.memories.write(writes)
            return successor, there is None, old.superseded_by

        successor, created, before = await self._store.write(work, cause=self._store.new_cause("supersede"))
        if created:
            self._wake("embed")
        return api.SupersedeResponse(
            old=await self._references.entry(old_id),
            new=await self._references.entry(successor, created=created),
            still_holds=None if before is None or before == successor else await self._holding(before, seen),
        )

    async def _holding(self, memory_id: str, seen: View) -> Memory | None:
        """Return a memory that holds; None when it has ended, or may not be seen."""
        found = (await self._store.read(lambda q: q.memories.by_id([memory_id]))).get(memory_id)
        if found is None or found.superseded_by is not None or found.archived_at is not None:
            return None
        return found if seen.shows(found) else None

    async def _review(self, caller: Caller, draft: MemoryDraft) -> str | None:
        """Return the review of what takes a memory's place; None for what the person says."""
        if caller.principal is Principal.PERSON:
            return None
        risks = await asyncio.to_thread(
            partial(risks_of, trust=draft.trust, scope=draft.scope, kind=draft.kind, policy=self._policy.review),
            draft.content,
        )
        return waiting(risks)

    async def _draft(self, caller: Caller, old_id: str, content: str) -> MemoryDraft:
        """Return a new memory of some words, cleaned: of the type, the scope and the topic of the old one."""
        old = (await self._references.entry(old_id)).memory
        draft = MemoryDraft(
            content=content,
            type=old.type,
            scope=old.scope,
            resource_id=old.resource_id,
            layer=Layer.ARCHIVE if caller.principal is Principal.AGENT else old.layer,  # pins are the person's
            salience=old.salience,
            topic=old.topic,
        )
        access.check_memory(caller, draft)
        source = intake.source_of(caller)
        return await off_loop(len(content), lambda: intake.memory(draft, self._policy, source))

    async def resolve(self, caller: Caller, request: api.ResolveRequest) -> api.Entry:
        """Write the version of a field that is right as one that has seen all others; no device lists them again."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        memory_id = await self._references.resolve(request.ref, seen)
        if request.field == MAY_SUPERSEDE:
            return await self._keep_both(caller, memory_id, request, seen)
        for one in await self._store.read(lambda q: q.conflicts.open(memory_id)):
            if _field_name(one.field) == request.field:
                values = {_version_name(stamp): value for stamp, value in one.versions}
                if request.version is not None and request.version not in values:
                    break
                value = one.shown if request.version is None else values[request.version]
                # A number that this version has no name for is written as it came.
                write = MemoryWrite(memory_id=memory_id, fields={cast("Field", one.field): value}, settles=True)

                def work(tx: Transaction) -> None:
                    shown = tx.queries.memories.get(memory_id)
                    access.check_change(caller, shown)
                    refusals.lifted(tx, caller, write, shown)
                    tx.memories.write([write])

                await self._store.write(work, cause=self._store.new_cause("resolve"))
                self._wake("embed")
                return await self._references.entry(memory_id)
        raise NotFoundError(
            f"memory {memory_id} has no such conflict about {request.field[:60]!r}",
            hint="scrubjay conflicts lists those that are open",
        )

    async def _keep_both(self, caller: Caller, memory_id: str, request: api.ResolveRequest, seen: View) -> api.Entry:
        """Write that a memory does not take the place of one that it might have, or of any."""
        other = None if request.version is None else await self._references.resolve(request.version, seen)

        def work(tx: Transaction) -> None:
            memory = tx.queries.memories.get(memory_id)
            access.check_change(caller, memory)
            noted = memory.metadata.get(MAY_SUPERSEDE)
            olds = noted if isinstance(noted, list) else []
            left = [old for old in olds if other is not None and old != other]
            if left == olds:
                raise NotFoundError(
                    f"memory {memory_id} is not one that may take the place of {other or 'another'}",
                    hint="scrubjay conflicts lists those that are open",
                )
            metadata = {key: value for key, value in memory.metadata.items() if key not in {MAY_SUPERSEDE, GUESSED}}
            guessed = memory.metadata.get(GUESSED)
            kept = [old for old in left if isinstance(guessed, list) and old in guessed]
            metadata |= {key: olds for key, olds in ((MAY_SUPERSEDE, left), (GUESSED, kept)) if olds}
            tx.memories.write([MemoryWrite(memory_id=memory_id, fields={Field.METADATA: metadata}, settles=True)])

        await self._store.write(work, cause=self._store.new_cause("resolve"))
        return await self._references.entry(memory_id)


def _equal(tx: Transaction, draft: MemoryDraft) -> str | None:
    """Return the id of the memory that says the same in the same scope already."""
    place = (draft.scope.value, draft.resource_id)
    found = tx.queries.memories.duplicates([content_hash(draft.content)])
    return next((memory_id for _, scope, resource, memory_id in found if (scope, resource) == place), None)


def _field_name(key: int) -> str:
    return Field(key).name.lower() if key in set(Field) else str(key)


def _version_name(stamp: ops.Stamp) -> str:
    return f"{stamp[0]:x}-{stamp[1][:8]}"


def _conflict(found: Conflict, memory: Memory) -> api.Conflict:
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


def _is_settled(found: Conflict) -> bool:
    """Say whether nobody has to decide: devices imported from two places, or put a memory away at two moments."""
    versions = [found.shown, *(value for _, value in found.versions)]
    return _is_of_places(found) or (found.field == Field.ARCHIVED_AT and None not in versions)


def _is_of_places(found: Conflict) -> bool:
    """Say whether two devices merely imported one text from different places: nobody has to decide that."""
    versions = [found.shown, *(value for _, value in found.versions)]
    metadata = [each for each in versions if isinstance(each, dict)]
    return found.field == Field.METADATA and len(metadata) == len(versions) and reconcile.differ_in_places(metadata)
