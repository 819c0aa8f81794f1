"""What a caller means by a reference, and what it may see: the memory behind a name, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay import api, projects
from scrubjay.index.index import Index
from scrubjay.ingest import intake
from scrubjay.store import Store
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.records import Event, Memory, Scope


class References:
    """Resolves references of one store. `index` returns the index in use."""

    def __init__(self, store: Store, index: Callable[[], Index]) -> None:
        self._store = store
        self._index = index

    async def resolve(self, ref: str, project: str | None, session_id: str | None) -> str:
        """Return the id of the memory that a caller means. Raises NotFoundError for one that it may not see."""
        memory_id = await self._store.read(lambda q: q.memories.resolve(intake.valid(ref)))
        if project is not None or session_id is not None:
            memory = (await self._store.read(lambda q: q.memories.by_id([memory_id], chars=0))).get(memory_id)
            if memory is None or not visible(memory, project, session_id):
                raise no_memory(ref)
        return memory_id

    async def notes_on(self, project: str | None) -> tuple[str, ...]:
        """Return what is to be said of a project that nothing belongs to; nothing when it is known or not named."""
        if project is None:
            return ()
        index = self._index()
        if index.projects.find(project) >= 0 or index.resources.find(project) >= 0:
            return ()
        known = await self._store.read(lambda q: q.stats.projects())
        return () if project in known else (projects.unknown(project, known),)

    async def entry(self, memory_id: str, *, created: bool = False) -> api.Entry:
        """Return a memory with its names."""
        memory = await self._store.read(lambda q: q.memories.get(memory_id))
        names = (await self._store.read(lambda q: q.names.aliases([memory_id]))).get(memory_id, ())
        return api.Entry(memory=memory, aliases=tuple(alias.name for alias in names), created=created)


def visible(memory: Memory, project: str | None, session_id: str | None) -> bool:
    """Say whether a caller sees a memory."""
    if project is None and session_id is None:
        return True
    return memory.scope is Scope.USER or memory.resource_id in {project, session_id} - {None}


def visible_event(event: Event, project: str | None, session_id: str | None) -> bool:
    """Say whether a caller sees an event."""
    if project is None and session_id is None:
        return True
    return event.project in {project, None} or event.session_id == session_id


def no_memory(ref: str) -> NotFoundError:
    """Return the error for a memory that is not there, or not to be seen."""
    return NotFoundError(f"there is no memory {ref[:60]!r}", hint="scrubjay list shows all memories with their ids")
