"""Conflicts: fields that devices wrote without having seen each other's values, listed and resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.importers import reconcile
from scrubjay.service.references import References
from scrubjay.store import Conflict, MemoryWrite, Store, Transaction
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, millis_of
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Memory


class Conflicts:
    """The conflicts of one store. `wake` tells a background job that it has something to do."""

    def __init__(self, store: Store, *, references: References, wake: Callable[[str], None]) -> None:
        self._store = store
        self._references = references
        self._wake = wake

    async def conflicts(self, caller: Caller, request: api.ConflictsRequest) -> api.ConflictsResponse:
        """Return the fields that devices wrote without having seen each other's values, and all these values."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        found = [one for one in await self._store.read(lambda q: q.conflicts.open()) if not _is_of_places(one)]
        memories = await self._store.read(lambda q: q.memories.by_id([one.memory_id for one in found]))
        return api.ConflictsResponse(
            conflicts=tuple(
                _conflict(one, memories[one.memory_id])
                for one in found
                if one.memory_id in memories and seen.shows(memories[one.memory_id])
            )
        )

    async def resolve(self, caller: Caller, request: api.ResolveRequest) -> api.Entry:
        """Write the version of a field that is right as one that has seen all others; no device lists them again."""
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        memory_id = await self._references.resolve(request.ref, seen)
        for one in await self._store.read(lambda q: q.conflicts.open(memory_id)):
            if _field_name(one.field) == request.field:
                values = {_version_name(stamp): value for stamp, value in one.versions}
                if request.version is not None and request.version not in values:
                    break
                value = one.shown if request.version is None else values[request.version]
                # A number that this version has no name for is written as it came.
                write = MemoryWrite(memory_id=memory_id, fields={cast("Field", one.field): value}, settles=True)

                def work(tx: Transaction) -> None:
                    access.check_change(caller, tx.queries.memories.get(memory_id))
                    tx.memories.write([write])

                await self._store.write(work, cause=self._store.new_cause("resolve"))
                self._wake("embed")
                return await self._references.entry(memory_id)
        raise NotFoundError(
            f"memory {memory_id} has no such conflict about {request.field[:60]!r}",
            hint="scrubjay conflicts lists those that are open",
        )


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


def _is_of_places(found: Conflict) -> bool:
    """Say whether two devices merely imported one text from different places: nobody has to decide that."""
    versions = [found.shown, *(value for _, value in found.versions)]
    metadata = [each for each in versions if isinstance(each, dict)]
    return found.field == Field.METADATA and len(metadata) == len(versions) and reconcile.differ_in_places(metadata)
